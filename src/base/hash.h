// Deterministic 64-bit hashing of values: the same in every process, never of an address.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mote {

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every input bit moves every output bit.
constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr std::uint64_t combine(std::uint64_t seed, std::uint64_t value) {
  return mix(seed ^ (value + 0x9e3779b97f4a7c15u + (seed << 6) + (seed >> 2)));
}
std::uint64_t hash_bytes(const void*, std::size_t, std::uint64_t seed = 0);
inline std::uint64_t hash_text(std::string_view s, std::uint64_t seed = 0) {
  return hash_bytes(s.data(), s.size(), seed);
}

}  // namespace mote
