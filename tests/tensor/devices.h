// The devices that compute, and each must give the same values; and those of them that compile.
#pragma once

namespace mote::testing {

inline constexpr const char* computing_devices[] = {"REF", "CLANG", "CPU"};
inline constexpr const char* compiling_devices[] = {"CLANG", "CPU"};

}  // namespace mote::testing
