// Every environment variable that mote reads, in one table with its sentence of help. `mote env`
// prints it and the documentation is generated from it.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mote {

struct Flag {
  std::string_view name;      // "MOTE_DEBUG"
  std::string_view fallback;  // the value when it is not set
  std::string_view help;
};

std::span<const Flag> all_flags();
// The value: what set_flag said, else the environment, else the fallback. The name must be in the
// table (InternalError). Values are read anew at each call, so tests may change them.
std::string flag(std::string_view name);
std::int64_t flag_int(std::string_view name);  // ValueError when it is no integer
bool flag_on(std::string_view name);           // ValueError when it is neither 0 nor 1
void set_flag(std::string_view name, std::string value);
void unset_flag(std::string_view name);
// Grows with each change by set_flag and unset_flag: what a cache of a flag compares.
int flags_version();

}  // namespace mote
