#include "base/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace mote {
namespace detail {

std::string piece(std::string_view s) { return std::string(s); }
std::string piece(long long v) { return std::to_string(v); }
std::string piece(unsigned long long v) { return std::to_string(v); }

std::string piece(double v) {
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), v).ptr;
  return std::string(text.data(), end);
}

}  // namespace detail

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string out;
  for (const std::string& p : parts) {
    if (&p != parts.data()) out += separator;
    out += p;
  }
  return out;
}

namespace {

// Levenshtein's distance, upper and lower case alike.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = std::tolower(static_cast<unsigned char>(a[i - 1])) ==
                        std::tolower(static_cast<unsigned char>(b[j - 1]));
      const std::size_t next = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (same ? 0 : 1)});
      diagonal = row[j];
      row[j] = next;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> known) {
  std::string best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 2) + 1;
  for (const std::string& k : known) {
    const std::size_t d = distance(word, k);
    if (d >= least) continue;
    least = d;
    best = k;
  }
  return best;
}

}  // namespace mote
