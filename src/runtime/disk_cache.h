// Bytes kept between processes: compiled objects, winners of searches. One SQLite file in
// MOTE_CACHE_DIR. Never needed for a result: whatever goes wrong with it (locked, damaged, full,
// read-only, MOTE_CACHE=0) reads as a miss. Values carry a checksum that their key is part of;
// damaged ones are not returned, a damaged file is made anew. A child that is forked from a process
// that has used the cache does without.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace mote {

// `table`: "object", "winner", ..; `key`: text that holds everything the value depends on.
std::optional<std::vector<std::byte>> cache_get(std::string_view table, std::string_view key);
// Written later by a thread of its own, at the latest when the process ends.
void cache_put(std::string_view table, std::string_view key, std::span<const std::byte> value);
void cache_flush();  // waits until what was put is written

}  // namespace mote
