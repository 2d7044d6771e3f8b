// Bytes kept between processes: compiled objects, winners of searches. One SQLite file in
// MOTE_CACHE_DIR. Never needed for a result: whatever goes wrong with it (locked, damaged, full,
// read-only, MOTE_CACHE=0) reads as a miss. Values carry a checksum; damaged ones are dropped, a
// damaged file is made anew.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace mote {

// `table`: "object", "winner", ..; `key`: text that holds everything the value depends on.
std::optional<std::vector<std::byte>> cache_get(std::string_view table, std::string_view key);
void cache_put(std::string_view table, std::string_view key, std::span<const std::byte> value);
void cache_flush();   // waits until what was put is written

}  // namespace mote
