// What all tests share: how many random rounds to run, and from which seed.
//
//   for (std::uint64_t seed : seeds(1000)) {
//     SCOPED_TRACE(seed);   // a failure names the seed; MOTE_SEED=<it> runs that one alone
//     std::mt19937_64 random(seed);
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace mote::testing {

inline std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// `./dev test --fast` sets MOTE_FAST: a tenth of the rounds, at least one.
inline bool fast() { return !variable("MOTE_FAST").empty(); }
inline int rounds(int n) { return fast() ? (n + 9) / 10 : n; }

// The seeds of n rounds: 0, 1, .. unless MOTE_SEED names one. Failing seeds stay reproducible.
inline std::vector<std::uint64_t> seeds(int n) {
  const std::string one = variable("MOTE_SEED");
  if (!one.empty()) return {std::stoull(one)};
  std::vector<std::uint64_t> all;
  for (int i = 0; i < rounds(n); ++i) all.push_back(static_cast<std::uint64_t>(i));
  return all;
}

}  // namespace mote::testing
