// Scalars: every small float, every rounding tie, and the conversion rules of docs/semantics.md.
#include "base/scalar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace mote {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double decoded(std::uint32_t code, DType t) {
  std::uint32_t raw = code;
  return load_scalar(&raw, t).as_double();
}

std::uint32_t encoded(double v, DType t) {
  std::uint32_t raw = 0;
  store_scalar(&raw, Scalar(t, v));
  return raw;
}

// Sign, then magnitude: the code of zero is 0 and greater codes are greater values.
std::uint32_t sign_bit(DType t) { return 1u << (bits_of(t) - 1); }

class SmallFloats : public ::testing::TestWithParam<DType> {};

TEST_P(SmallFloats, EveryCodeComesBack) {
  const DType t = GetParam();
  for (std::uint32_t code = 0; code < 2 * sign_bit(t); ++code) {
    const double v = decoded(code, t);
    if (std::isnan(v)) {
      EXPECT_TRUE(std::isnan(decoded(encoded(v, t), t))) << code;
    } else {
      EXPECT_EQ(encoded(v, t), code) << v;
    }
  }
}

TEST_P(SmallFloats, CodesAreOrderedAndSignsMirror) {
  const DType t = GetParam();
  for (std::uint32_t code = 0; code + 1 < sign_bit(t) && !std::isnan(decoded(code + 1, t));
       ++code) {
    EXPECT_LT(decoded(code, t), decoded(code + 1, t)) << code;
    EXPECT_EQ(decoded(code | sign_bit(t), t), -decoded(code, t)) << code;
  }
}

// Between two neighbours: the middle goes to the even code, anything else to the nearer one.
TEST_P(SmallFloats, RoundsToNearestTiesToEven) {
  const DType t = GetParam();
  for (std::uint32_t code = 0; code + 1 < sign_bit(t); ++code) {
    const double low = decoded(code, t), high = decoded(code + 1, t);
    if (!std::isfinite(high)) break;
    const double middle = (low + high) / 2;  // exact in double
    for (const std::uint32_t sign : {0u, sign_bit(t)}) {
      const double s = sign ? -1 : 1;
      EXPECT_EQ(encoded(s * middle, t), (code & 1 ? code + 1 : code) | sign) << middle;
      EXPECT_EQ(encoded(s * std::nextafter(middle, low), t), code | sign) << middle;
      EXPECT_EQ(encoded(s * std::nextafter(middle, high), t), (code + 1) | sign) << middle;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SmallFloats,
                         ::testing::Values(float8_e4m3, float8_e5m2, float16, bfloat16),
                         [](const auto& row) { return std::string(name_of(row.param)); });

TEST(Half, EveryCodeIsThatOfTheCompiler) {
  for (std::uint32_t code = 0; code < 65536; ++code) {
    const auto want =
        static_cast<double>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(code)));
    const double got = from_half(static_cast<std::uint16_t>(code));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << code;
    } else {
      EXPECT_EQ(got, want) << code;
    }
  }
}

TEST(Brain, EveryCodeIsTheUpperHalfOfAFloat) {
  for (std::uint32_t code = 0; code < 65536; ++code) {
    const double want = std::bit_cast<float>(code << 16);
    const double got = from_bfloat(static_cast<std::uint16_t>(code));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << code;
    } else {
      EXPECT_EQ(got, want) << code;
    }
  }
}

struct Code {
  DType dtype;
  std::uint32_t code;
  double value;
};

// From the definitions of the formats (OCP 8-bit floating point, IEEE 754, bfloat16).
TEST(SmallFloat, KnownCodes) {
  // clang-format off
  const std::vector<Code> rows{
      {float8_e4m3, 0x00, 0.0},         {float8_e4m3, 0x01, 0x1p-9},
      {float8_e4m3, 0x07, 0x1.cp-7},    {float8_e4m3, 0x08, 0x1p-6},
      {float8_e4m3, 0x38, 1.0},         {float8_e4m3, 0x7e, 448.0},
      {float8_e4m3, 0x7f, nan},         {float8_e4m3, 0xff, nan},
      {float8_e4m3, 0xfe, -448.0},      {float8_e5m2, 0x01, 0x1p-16},
      {float8_e5m2, 0x04, 0x1p-14},     {float8_e5m2, 0x3c, 1.0},
      {float8_e5m2, 0x7b, 57344.0},     {float8_e5m2, 0x7c, infinity},
      {float8_e5m2, 0xfc, -infinity},   {float8_e5m2, 0x7e, nan},
      {float16, 0x0001, 0x1p-24},       {float16, 0x03ff, 0x1.ff8p-15},
      {float16, 0x7bff, 65504.0},       {float16, 0x7c00, infinity},
      {bfloat16, 0x0001, 0x1p-133},     {bfloat16, 0x7f7f, 0x1.fep127},
      {bfloat16, 0x7f80, infinity},     {bfloat16, 0x3f80, 1.0},
  };
  // clang-format on
  for (const Code& row : rows) {
    const double v = decoded(row.code, row.dtype);
    if (std::isnan(row.value)) {
      EXPECT_TRUE(std::isnan(v)) << name_of(row.dtype) << " " << row.code;
    } else {
      EXPECT_EQ(v, row.value) << name_of(row.dtype) << " " << row.code;
      EXPECT_EQ(encoded(row.value, row.dtype), row.code);
    }
  }
}

TEST(SmallFloat, OverflowGoesToInfinityAndInE4m3ToNan) {
  EXPECT_EQ(Scalar(float16, 65519.0).as_double(), 65504);  // below the middle to 65536
  EXPECT_EQ(Scalar(float16, 65520.0).as_double(), infinity);
  EXPECT_EQ(Scalar(float16, -1e30).as_double(), -infinity);
  EXPECT_EQ(Scalar(bfloat16, 1e39).as_double(), infinity);
  EXPECT_EQ(Scalar(float8_e5m2, 61439.0).as_double(), 57344);
  EXPECT_EQ(Scalar(float8_e5m2, 61440.0).as_double(), infinity);
  EXPECT_EQ(Scalar(float8_e4m3, 464.0).as_double(), 448);  // a tie, to even
  EXPECT_TRUE(Scalar(float8_e4m3, 465.0).is_nan());
  EXPECT_TRUE(Scalar(float8_e4m3, infinity).is_nan());
  EXPECT_EQ(Scalar(float32, 1e39).as_double(), infinity);
}

TEST(SmallFloat, ZeroKeepsItsSign) {
  for (const DType t : {float8_e4m3, float8_e5m2, float16, bfloat16, float32, float64}) {
    EXPECT_TRUE(std::signbit(Scalar(t, -0.0).as_double())) << name_of(t);
    EXPECT_TRUE(std::signbit(Scalar(t, -1e-320).as_double())) << name_of(t);
    EXPECT_FALSE(std::signbit(Scalar(t, 0.0).as_double())) << name_of(t);
  }
}

struct Conversion {
  double from;
  DType to;
  std::int64_t want;
};

TEST(Scalar, FloatToInteger) {
  // clang-format off
  const std::vector<Conversion> rows{
      {2.9, int32, 2},             {-2.9, int32, -2},         {-0.9, uint8, 0},
      {255.9, uint8, 255},         {256, uint8, 0},           {300, uint8, 44},
      {-1, uint8, 255},            {128, int8, -128},         {-129, int8, 127},
      {70000, int16, 4464},        {-1, uint16, 65535},       {2147483647, int8, -1},
      {2147483648.0, int8, 0},     {-2147483648.0, uint8, 0}, {1e10, int16, 0},
      {2147483647, int32, 2147483647}, {2147483648.0, int32, 0},
      {-2147483648.0, int32, -2147483648LL}, {-2147483649.0, int32, 0},
      {-1, uint32, 0},             {-0.5, uint32, 0},         {4294967295.0, uint32, 4294967295LL},
      {4294967296.0, uint32, 0},   {0x1p63, int64, 0},        {-0x1p63, int64, INT64_MIN},
      {0x1p62, int64, 1LL << 62},  {-1, uint64, 0},           {0x1p64, uint64, 0},
      {0x1p63, uint64, INT64_MIN}, {1e300, int64, 0},
      {nan, int8, 0},              {nan, int64, 0},           {infinity, uint8, 0},
      {-infinity, int32, 0},       {nan, boolean, 1},         {0.0, boolean, 0},
      {-0.0, boolean, 0},          {0.1, boolean, 1},         {infinity, boolean, 1},
  };
  // clang-format on
  for (const Conversion& row : rows) {
    EXPECT_EQ(Scalar(row.to, row.from).as_int(), row.want) << row.from << " " << name_of(row.to);
    EXPECT_EQ(cast(Scalar(float64, row.from), row.to).as_int(), row.want);
  }
}

TEST(Scalar, IntegersWrap) {
  EXPECT_EQ(Scalar(uint8, 300).as_int(), 44);
  EXPECT_EQ(Scalar(int8, 200).as_int(), -56);
  EXPECT_EQ(Scalar(int16, -32769).as_int(), 32767);
  EXPECT_EQ(Scalar(uint32, -1).as_int(), 4294967295LL);
  EXPECT_EQ(Scalar(uint64, -1).bits, UINT64_MAX);
  EXPECT_EQ(Scalar(uint64, -1).as_double(), 0x1p64);
  EXPECT_EQ(Scalar(boolean, 256).as_int(), 1);
  EXPECT_EQ(cast(Scalar(int64, INT64_MIN), uint64).bits, 1ULL << 63);
  EXPECT_EQ(cast(Scalar(uint64, UINT64_MAX), int64).as_int(), -1);
}

TEST(Scalar, IntegersToFloatsRoundOnce) {
  const std::int64_t v = (1LL << 40) + (1LL << 16) + 1;  // just above the middle of two floats
  EXPECT_EQ(Scalar(float32, v).as_double(), 0x1p40 + 0x1p17);
  const std::int64_t huge = (1LL << 62) + (1LL << 38) + 1;  // a double would lose the last bit
  EXPECT_EQ(Scalar(float32, huge).as_double(), 0x1p62 + 0x1p39);
  EXPECT_EQ(Scalar(float64, INT64_MAX).as_double(), 0x1p63);
  EXPECT_EQ(Scalar(float64, UINT64_MAX).as_double(), 0x1p64);
  EXPECT_EQ(Scalar(float16, 2049).as_double(), 2048);
  EXPECT_EQ(Scalar(float16, 2051).as_double(), 2052);
}

TEST(Scalar, SmallestIntegersAreExact) {
  EXPECT_EQ(Scalar(int64, INT64_MIN).text(), "-9223372036854775808");
  EXPECT_EQ(Scalar(uint64, UINT64_MAX).text(), "18446744073709551615");
}

TEST(Scalar, LoadAndStoreAtAnyAlignment) {
  std::vector<unsigned char> bytes(32, 0xaa);
  for (int i = 0; i < dtype_count - 1; ++i) {
    const auto t = static_cast<DType>(i);
    const Scalar one(t, 1);
    store_scalar(bytes.data() + 3, one);
    EXPECT_EQ(load_scalar(bytes.data() + 3, t), one) << name_of(t);
    EXPECT_EQ(bytes[static_cast<std::size_t>(3 + size_of(t))], 0xaa) << "wrote past its end";
    std::fill(bytes.begin(), bytes.end(), 0xaa);
  }
}

TEST(Scalar, Bitcast) {
  EXPECT_EQ(bitcast(Scalar(float32, 1.0), int32).as_int(), 0x3f800000);
  EXPECT_EQ(bitcast(Scalar(int16, 0x3c00), float16).as_double(), 1);
  EXPECT_EQ(bitcast(Scalar(uint8, 0x7e), float8_e4m3).as_double(), 448);
  EXPECT_EQ(bitcast(Scalar(float64, -0.0), int64).as_int(), INT64_MIN);
}

TEST(Scalar, Text) {
  EXPECT_EQ(Scalar(float32, 0.5).text(), "0.5");
  EXPECT_EQ(Scalar(float32, 3).text(), "3.0");
  EXPECT_EQ(Scalar(float64, 1e20).text(), "1e+20");
  EXPECT_EQ(Scalar(float32, nan).text(), "nan");
  EXPECT_EQ(Scalar(float32, -infinity).text(), "-inf");
  EXPECT_EQ(Scalar(boolean, true).text(), "true");
  for (const double v : {0.1, 1.0 / 3, 1e-45, 3.4e38, -2.5e-7}) {  // nothing is lost
    const Scalar s(float32, v);
    EXPECT_EQ(Scalar(float32, std::stod(s.text())), s) << s.text();
  }
}

}  // namespace
}  // namespace mote
