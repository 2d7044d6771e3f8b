#include "mote/dtype.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

enum class Family : std::uint8_t { boolean, unsigned_, signed_, floating };

struct Row {
  std::string_view name;
  int bits;
  Family family;
};

// clang-format off
constexpr std::array<Row, dtype_count> rows{{
    {"bool", 8, Family::boolean},
    {"uint8", 8, Family::unsigned_}, {"uint16", 16, Family::unsigned_},
    {"uint32", 32, Family::unsigned_}, {"uint64", 64, Family::unsigned_},
    {"int8", 8, Family::signed_}, {"int16", 16, Family::signed_},
    {"int32", 32, Family::signed_}, {"int64", 64, Family::signed_},
    {"float8_e4m3", 8, Family::floating}, {"float8_e5m2", 8, Family::floating},
    {"float16", 16, Family::floating}, {"bfloat16", 16, Family::floating},
    {"float32", 32, Family::floating}, {"float64", 64, Family::floating},
    {"index", 64, Family::signed_},
}};
// clang-format on

const Row& row(DType t) { return rows[static_cast<std::size_t>(t)]; }

DType signed_of(int bits) {
  switch (bits) {
    case 8: return DType::int8;
    case 16: return DType::int16;
    case 32: return DType::int32;
    default: return DType::int64;
  }
}

DType promote_integers(DType a, DType b) {
  if (is_signed(a) == is_signed(b)) return bits_of(a) >= bits_of(b) ? a : b;
  const DType s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  if (bits_of(s) > bits_of(u)) return s;
  return bits_of(u) == 64 ? DType::float32 : signed_of(2 * bits_of(u));
}

DType promote_floats(DType a, DType b) {
  if (bits_of(a) != bits_of(b)) return bits_of(a) > bits_of(b) ? a : b;
  return bits_of(a) == 8 ? DType::float16 : DType::float32;  // two different ones of one size
}

}  // namespace

int size_of(DType t) { return row(t).bits / 8; }
int bits_of(DType t) { return row(t).bits; }
std::string_view name_of(DType t) { return row(t).name; }

DType dtype_named(std::string_view name) {
  std::vector<std::string> known;
  for (int i = 0; i < dtype_count - 1; ++i) {
    if (rows[static_cast<std::size_t>(i)].name == name) return static_cast<DType>(i);
    known.emplace_back(rows[static_cast<std::size_t>(i)].name);
  }
  const std::string near = nearest(name, known);
  throw DTypeError(
      cat("no dtype is called '", std::string(name), "'; ",
          near.empty() ? cat("known are ", join(known)) : cat("did you mean '", near, "'?")));
}

bool is_float(DType t) { return row(t).family == Family::floating; }
bool is_integer(DType t) { return is_signed(t) || is_unsigned(t); }
bool is_signed(DType t) { return row(t).family == Family::signed_; }
bool is_unsigned(DType t) { return row(t).family == Family::unsigned_; }

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a == DType::boolean) return b;
  if (b == DType::boolean) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  return is_float(a) ? promote_floats(a, b) : promote_integers(a, b);
}

DType sum_dtype(DType t) {
  if (is_float(t)) return t;
  return is_unsigned(t) ? DType::uint64 : DType::int64;
}

DType accumulator_dtype(DType t) { return is_float(t) && bits_of(t) < 32 ? DType::float32 : t; }

}  // namespace mote
