// The dtype of a result: between tensors, and beside a number.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "mote/mote.h"
#include "tensor/devices.h"
#include "testing.h"

namespace mote::testing {
namespace {

using D = DType;

const std::map<std::string, DType> short_names{
    {"b", D::boolean},   {"u1", D::uint8},       {"u2", D::uint16},      {"u4", D::uint32},
    {"u8", D::uint64},   {"i1", D::int8},        {"i2", D::int16},       {"i4", D::int32},
    {"i8", D::int64},    {"e4", D::float8_e4m3}, {"e5", D::float8_e5m2}, {"f2", D::float16},
    {"bf", D::bfloat16}, {"f4", D::float32},     {"f8", D::float64}};

// clang-format off
const char* const lattice = R"(
      b  u1 u2 u4 u8 i1 i2 i4 i8 e4 e5 f2 bf f4 f8
  b   b  u1 u2 u4 u8 i1 i2 i4 i8 e4 e5 f2 bf f4 f8
  u1  u1 u1 u2 u4 u8 i2 i2 i4 i8 e4 e5 f2 bf f4 f8
  u2  u2 u2 u2 u4 u8 i4 i4 i4 i8 e4 e5 f2 bf f4 f8
  u4  u4 u4 u4 u4 u8 i8 i8 i8 i8 e4 e5 f2 bf f4 f8
  u8  u8 u8 u8 u8 u8 f4 f4 f4 f4 e4 e5 f2 bf f4 f8
  i1  i1 i2 i4 i8 f4 i1 i2 i4 i8 e4 e5 f2 bf f4 f8
  i2  i2 i2 i4 i8 f4 i2 i2 i4 i8 e4 e5 f2 bf f4 f8
  i4  i4 i4 i4 i8 f4 i4 i4 i4 i8 e4 e5 f2 bf f4 f8
  i8  i8 i8 i8 i8 f4 i8 i8 i8 i8 e4 e5 f2 bf f4 f8
  e4  e4 e4 e4 e4 e4 e4 e4 e4 e4 e4 f2 f2 bf f4 f8
  e5  e5 e5 e5 e5 e5 e5 e5 e5 e5 f2 e5 f2 bf f4 f8
  f2  f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f2 f4 f4 f8
  bf  bf bf bf bf bf bf bf bf bf bf bf f4 bf f4 f8
  f4  f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8
  f8  f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8
)";
// clang-format on

Tensor one(DType t) { return Tensor::from_bytes({}, {0}, t); }

TEST(Promotion, OfTwoTensors) {
  std::istringstream lines(lattice);
  std::string line;
  std::getline(lines, line);  // empty
  std::getline(lines, line);
  std::vector<std::string> columns;
  std::istringstream heads(line);
  for (std::string w; heads >> w;) columns.push_back(w);
  ASSERT_EQ(columns.size(), short_names.size());
  int pairs = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string left, result;
    words >> left;
    for (const std::string& right : columns) {
      words >> result;
      const Tensor a = one(short_names.at(left)), b = one(short_names.at(right));
      const DType want = short_names.at(result);
      EXPECT_EQ(name_of((a + b).dtype()), name_of(want)) << left << " + " << right;
      EXPECT_EQ(name_of(maximum(a, b).dtype()), name_of(want)) << left << ", " << right;
      EXPECT_EQ(name_of(cat({a, b}).dtype()), name_of(want)) << left << ", " << right;
      EXPECT_EQ((a < b).dtype(), D::boolean);
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, 15 * 15);
}

// The values: 2 of every pair of numbers that are not both bool, computed on every device.
TEST(Promotion, OneAndOneIsTwo) {
  for (const char* device : computing_devices) {
    if (fast() && std::string_view(device) == "CLANG") continue;
    set_default_device(device);
    std::vector<Tensor> sums;
    for (const auto& [left, a] : short_names) {
      for (const auto& [right, b] : short_names)
        sums.push_back(Tensor::ones({2}, {.dtype = a}).contiguous() +
                       Tensor::ones({2}, {.dtype = b}).contiguous());
    }
    realize(sums);
    for (const Tensor& t : sums) {
      const double want = t.dtype() == D::boolean ? 1 : 2;
      EXPECT_EQ(t.to_vector<double>(), (std::vector<double>{want, want})) << name_of(t.dtype());
    }
  }
}

TEST(Promotion, ANumberDoesNotWiden) {
  struct Row {
    const char* what;
    Tensor got;
    DType want;
  };
  const auto of = [](DType t) { return Tensor::ones({2}, {.dtype = t}); };
  const Row rows[] = {
      {"uint8 + 1", of(D::uint8) + 1, D::uint8},
      {"1 + int8", 1 + of(D::int8), D::int8},
      {"uint8 + 1.5", of(D::uint8) + 1.5, D::float32},
      {"int64 + 1.5", of(D::int64) + 1.5, D::float32},
      {"bool + 1", of(D::boolean) + 1, D::int64},
      {"bool + true", of(D::boolean) + true, D::boolean},
      {"int16 + true", of(D::int16) + true, D::int16},
      {"bool + 1.5", of(D::boolean) + 1.5, D::float32},
      {"float16 + 1.5", of(D::float16) + 1.5, D::float16},
      {"bfloat16 * 2", of(D::bfloat16) * 2, D::bfloat16},
      {"float64 + 1.5f", of(D::float64) + 1.5f, D::float64},
      {"uint64 + 9e18", of(D::uint64) + std::int64_t{9000000000000000000}, D::uint64},
      {"int32 / int32", of(D::int32) / of(D::int32), D::float32},
      {"int64 / 2", of(D::int64) / 2, D::float32},
      {"float16 / int32", of(D::float16) / of(D::int32), D::float16},
      {"int32 // 2", of(D::int32).floor_divide(2), D::int32},
      {"int32 % 2", of(D::int32) % 2, D::int32},
      {"where(c, 1, 2)", where(of(D::boolean), 1, 2), D::int64},
      {"where(c, 1.0, 2)", where(of(D::boolean), 1.0, 2), D::float32},
      {"where(c, int8, 2)", where(of(D::boolean), of(D::int8), 2), D::int8},
      {"uint8.pow(2)", of(D::uint8).pow(2), D::uint8},
      {"int32.exp()", of(D::int32).exp(), D::float32},
      {"float16.exp()", of(D::float16).exp(), D::float16},
      {"int32.mean()", of(D::int32).mean(), D::float32},
      {"bool.sum()", of(D::boolean).sum(), D::int64},
      {"uint8.sum()", of(D::uint8).sum(), D::uint64},
      {"int8.cumsum()", of(D::int8).cumsum(), D::int64},
      {"int8.prod()", of(D::int8).prod(), D::int64},
      {"float16.sum()", of(D::float16).sum(), D::float16},
      {"float16.sum(f32)", of(D::float16).sum({}, false, D::float32), D::float32},
      {"int32.sum(i32)", of(D::int32).sum({}, false, D::int32), D::int32},
      {"argmax", of(D::float16).argmax(), D::int64},
      {"int8 @ int16", of(D::int8).matmul(of(D::int16)), D::int16},
      {"tensor of doubles", Tensor({1.5, 2.5}), D::float32},
      {"tensor of a double", Tensor(1.5), D::float32},
      {"tensor of ints", Tensor({1, 2}), D::int32},
      {"tensor of chars", Tensor(std::vector<std::int8_t>{1}, {1}), D::int8},
      {"vector of doubles", Tensor(std::vector<double>{1}, {1}), D::float64},
      {"arange(3)", Tensor::arange(3), D::int64},
      {"arange(3.0)", Tensor::arange(3.0), D::float32},
      {"full(true)", Tensor::full({1}, true), D::boolean},
      {"zeros", Tensor::zeros({1}), D::float32},
  };
  for (const Row& r : rows) EXPECT_EQ(name_of(r.got.dtype()), name_of(r.want)) << r.what;
}

TEST(Promotion, DefaultsMayBeSet) {
  set_default_float(D::float64);
  set_default_int(D::int32);
  const DType quotient = (Tensor({1}) / Tensor({2})).dtype(), literal = Tensor(1.5).dtype(),
              range = Tensor::arange(3).dtype(), beside = (Tensor({true}) + 1).dtype();
  set_default_float(D::float32);
  set_default_int(D::int64);
  EXPECT_EQ(name_of(quotient), "float64");
  EXPECT_EQ(name_of(literal), "float64");
  EXPECT_EQ(name_of(range), "int32");
  EXPECT_EQ(name_of(beside), "int32");
}

}  // namespace
}  // namespace mote::testing
