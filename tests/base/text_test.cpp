#include "base/text.h"

#include <gtest/gtest.h>

#include <set>

#include "base/hash.h"
#include "mote/error.h"

namespace mote {
namespace {

TEST(Text, CatPrintsNumbersByTheirShortestForm) {
  EXPECT_EQ(cat("a", 1, 'c', true, 2.5, 0.1f), "a1ctrue2.50.10000000149011612");
  EXPECT_EQ(cat(0.1, " ", 1e300, " ", -3), "0.1 1e+300 -3");
  EXPECT_EQ(cat(UINT64_MAX, " ", INT64_MIN), "18446744073709551615 -9223372036854775808");
}

TEST(Text, Join) {
  EXPECT_EQ(join({}), "");
  const std::vector<std::string> parts{"a", "b", "c"};
  EXPECT_EQ(join(parts), "a, b, c");
  EXPECT_EQ(join(parts, " | "), "a | b | c");
}

TEST(Text, NearestWord) {
  const std::vector<std::string> known{"float16", "float32", "int8", "bool", "CLANG", "CPU"};
  EXPECT_EQ(nearest("flot32", known), "float32");
  EXPECT_EQ(nearest("float61", known), "float16");
  EXPECT_EQ(nearest("clang", known), "CLANG");
  EXPECT_EQ(nearest("CPUs", known), "CPU");
  EXPECT_EQ(nearest("zzzzzzzz", known), "");
  EXPECT_EQ(nearest("", known), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Text, PlacesDropTheFolder) {
  EXPECT_EQ((Where{"a/b/train.cpp", 41}.text()), "train.cpp:41");
  EXPECT_EQ((Where{"train.cpp", 7}.text()), "train.cpp:7");
  EXPECT_EQ(Where{}.text(), "");
  EXPECT_EQ(Where::here().text().rfind("text_test.cpp:", 0), 0u);
}

TEST(Hash, DependsOnEveryByteAndOnTheLength) {
  const std::string text = "the quick brown fox jumps over it";
  std::set<std::uint64_t> seen{hash_text(text), hash_text(text, 1)};
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string other = text;
    other[i] = static_cast<char>(other[i] + 1);
    seen.insert(hash_text(other));
    seen.insert(hash_text(std::string_view(text).substr(0, i)));
  }
  EXPECT_EQ(seen.size(), 2 + 2 * text.size());
  EXPECT_NE(hash_text(std::string_view("\0", 1)), hash_text(std::string_view("\0\0", 2)));
}

TEST(Hash, IsTheSameInEveryProcess) {
  EXPECT_EQ(mix(0), 0xe220a8397b1dcdafu);  // the first output of SplitMix64 from seed 0
}

}  // namespace
}  // namespace mote
