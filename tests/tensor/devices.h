// The devices that compute; each must give the same values.
#pragma once

namespace mote::testing {

inline constexpr const char* computing_devices[] = {"REF", "CLANG", "CPU"};

}  // namespace mote::testing
