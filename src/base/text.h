// Small helpers for messages: joining, tuples as (2, 3), the nearest known word.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mote {

std::string join(std::span<const std::string>, std::string_view separator = ", ");
// "a", 1, 2.5 -> one string; numbers by their shortest exact form.
template <class... Ts>
std::string cat(const Ts&... parts);
// The known word with the least edit distance to `word`, for "did you mean"; empty: none is near.
std::string nearest(std::string_view word, std::span<const std::string> known);

namespace detail {
std::string piece(std::string_view);
std::string piece(double);
std::string piece(long long);
std::string piece(unsigned long long);
inline std::string piece(const std::string& s) { return s; }
inline std::string piece(const char* s) { return s; }
inline std::string piece(char c) { return std::string(1, c); }
inline std::string piece(bool b) { return b ? "true" : "false"; }
inline std::string piece(int v) { return piece(static_cast<long long>(v)); }
inline std::string piece(long v) { return piece(static_cast<long long>(v)); }
inline std::string piece(unsigned v) { return piece(static_cast<unsigned long long>(v)); }
inline std::string piece(unsigned long v) { return piece(static_cast<unsigned long long>(v)); }
inline std::string piece(float v) { return piece(static_cast<double>(v)); }
}  // namespace detail

template <class... Ts>
std::string cat(const Ts&... parts) {
  std::string out;
  ((out += detail::piece(parts)), ...);
  return out;
}

}  // namespace mote
