#include "base/hash.h"

#include <cstring>

namespace mote {

std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed) {
  const char* at = static_cast<const char*>(data);
  std::uint64_t h = combine(seed, size);
  for (; size >= 8; at += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    h = combine(h, word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, at, size);
  return size ? combine(h, rest) : h;
}

}  // namespace mote
