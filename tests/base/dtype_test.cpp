#include "mote/dtype.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mote/error.h"

namespace mote {
namespace {

std::vector<DType> all() {
  std::vector<DType> out;
  for (int i = 0; i < dtype_count - 1; ++i) out.push_back(static_cast<DType>(i));
  return out;
}

TEST(DTypes, NamesComeBack) {
  for (const DType t : all()) EXPECT_EQ(dtype_named(name_of(t)), t);
}

TEST(DTypes, UnknownNamesOfferTheNearest) {
  const auto message = [](std::string_view name) {
    try {
      dtype_named(name);
    } catch (const DTypeError& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_EQ(message("flaot32"), "no dtype is called 'flaot32'; did you mean 'float32'?");
  EXPECT_EQ(message("INT8"), "no dtype is called 'INT8'; did you mean 'int8'?");
  EXPECT_EQ(message("quaternion").rfind("no dtype is called 'quaternion'; known are bool, ", 0),
            0u);
}

TEST(DTypes, EachIsOfOneFamily) {
  for (const DType t : all()) {
    EXPECT_EQ(is_float(t) + is_signed(t) + is_unsigned(t) + (t == boolean), 1) << name_of(t);
    EXPECT_EQ(is_integer(t), is_signed(t) || is_unsigned(t)) << name_of(t);
    EXPECT_EQ(size_of(t) * 8, bits_of(t)) << name_of(t);
  }
}

TEST(Promotion, IsALatticeJoin) {
  for (const DType a : all()) {
    EXPECT_EQ(promote(a, a), a);
    for (const DType b : all()) EXPECT_EQ(promote(a, b), promote(b, a)) << name_of(a) << name_of(b);
  }
}

struct Row {
  DType a, b, want;
};

TEST(Promotion, Table) {
  // clang-format off
  const std::vector<Row> rows{
      {boolean, uint8, uint8},     {boolean, float16, float16},
      {uint8, int8, int16},        {uint16, int16, int32},
      {uint32, int32, int64},      {uint64, int64, float32},
      {uint64, int8, float32},     {uint8, int32, int32},
      {uint32, int8, int64},       {uint8, uint64, uint64},
      {int64, float16, float16},   {uint64, float8_e5m2, float8_e5m2},
      {float16, bfloat16, float32}, {float8_e4m3, float8_e5m2, float16},
      {float8_e4m3, bfloat16, bfloat16}, {float16, float32, float32},
      {float32, float64, float64}, {bfloat16, float64, float64},
  };
  // clang-format on
  for (const Row& r : rows)
    EXPECT_EQ(promote(r.a, r.b), r.want) << name_of(r.a) << " " << name_of(r.b);
}

TEST(Promotion, Sums) {
  EXPECT_EQ(sum_dtype(boolean), int64);
  EXPECT_EQ(sum_dtype(int8), int64);
  EXPECT_EQ(sum_dtype(uint8), uint64);
  EXPECT_EQ(sum_dtype(float16), float16);
  EXPECT_EQ(accumulator_dtype(float16), float32);
  EXPECT_EQ(accumulator_dtype(float8_e4m3), float32);
  EXPECT_EQ(accumulator_dtype(float64), float64);
  EXPECT_EQ(accumulator_dtype(int8), int8);
}

}  // namespace
}  // namespace mote
