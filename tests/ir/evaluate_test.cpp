// evaluate() against the rules of docs/semantics.md, a row for each doubtful point.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "random_expr.h"
#include "testing.h"

namespace mote {
namespace {

using testing::Random;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

Scalar of(Op op, DType t, Scalar a) { return evaluate(op, t, {{a}}); }
Scalar of(Op op, DType t, double a, double b) {
  return evaluate(op, t, {{Scalar(t, a), Scalar(t, b)}});
}

struct Row {
  Op op;
  DType t;
  double a, b, want;
};

// clang-format off
const Row rows[] = {
    {Op::add,  DType::uint8,  200, 200, 144},
    {Op::mul,  DType::int8,   100, 3, 44},
    {Op::idiv, DType::int32,  -7, 2, -4},
    {Op::idiv, DType::int32,  7, -2, -4},
    {Op::mod,  DType::int32,  -7, 2, 1},
    {Op::mod,  DType::int32,  7, -2, -1},
    {Op::tdiv, DType::int32,  -7, 2, -3},
    {Op::tmod, DType::int32,  -7, 2, -1},
    {Op::tmod, DType::int32,  7, -2, 1},
    {Op::idiv, DType::int16,  5, 0, 0},
    {Op::mod,  DType::int16,  5, 0, 0},
    {Op::tdiv, DType::int16,  5, 0, 0},
    {Op::tmod, DType::int16,  5, 0, 0},
    {Op::idiv, DType::int8,   -128, -1, -128},
    {Op::mod,  DType::int8,   -128, -1, 0},
    {Op::tdiv, DType::int8,   -128, -1, -128},
    {Op::tmod, DType::int8,   -128, -1, 0},
    {Op::idiv, DType::int64,  -0x1p63, -1, -0x1p63},
    {Op::mod,  DType::index,  -7, 4, 1},
    {Op::shl,  DType::int32,  1, 32, 0},
    {Op::shl,  DType::int32,  1, -1, 0},
    {Op::shl,  DType::uint8,  255, 1, 254},
    {Op::shr,  DType::int32,  -8, 40, -1},
    {Op::shr,  DType::int32,  -8, -1, -1},
    {Op::shr,  DType::int32,  -8, 1, -4},
    {Op::shr,  DType::uint32, 8, 32, 0},
    {Op::max,  DType::float32, nan, 1, nan},
    {Op::max,  DType::float32, 1, nan, nan},
    {Op::min,  DType::float32, nan, 1, nan},
    {Op::min,  DType::float32, 1, nan, nan},
    {Op::max,  DType::float32, -infinity, -3, -3},
    {Op::add,  DType::float16, 65504, 65504, infinity},
    {Op::add,  DType::float8_e4m3, 448, 448, nan},
    {Op::mul,  DType::float16, 0x1p-14, 0x1p-10, 0x1p-24},
    {Op::div,  DType::float32, 1, 0, infinity},
    {Op::mul,  DType::float32, 0, infinity, nan},
    {Op::mul,  DType::float32, -1, 0, -0.0},
    {Op::xor_, DType::uint8,  12, 10, 6},
};
// clang-format on

TEST(Evaluate, TheDoubtfulPoints) {
  for (const Row& r : rows) {
    const Scalar got = of(r.op, r.t, r.a, r.b);
    EXPECT_TRUE(testing::same(got, Scalar(r.t, r.want)))
        << name_of(r.op) << " " << name_of(r.t) << " " << r.a << " " << r.b << " gave "
        << got.text();
  }
}

TEST(Evaluate, UnsignedOf64Bits) {
  const Scalar big(DType::uint64, ~std::uint64_t{0}), two(DType::uint64, 2), zero(DType::uint64, 0);
  EXPECT_EQ(evaluate(Op::idiv, DType::uint64, {{big, two}}).bits, ~std::uint64_t{0} / 2);
  EXPECT_EQ(evaluate(Op::mod, DType::uint64, {{big, two}}).bits, 1u);
  EXPECT_EQ(evaluate(Op::tdiv, DType::uint64, {{big, zero}}).bits, 0u);
  EXPECT_EQ(evaluate(Op::max, DType::uint64, {{big, two}}), big);
  EXPECT_EQ(evaluate(Op::lt, DType::boolean, {{big, two}}).bits, 0u);
  EXPECT_EQ(evaluate(Op::shr, DType::uint64, {{big, Scalar(DType::uint64, 63)}}).bits, 1u);
  EXPECT_EQ(evaluate(Op::shr, DType::uint64, {{big, Scalar(DType::uint64, 64)}}).bits, 0u);
}

TEST(Evaluate, ComparisonsWithNaNAreFalse) {
  for (DType t : {DType::float16, DType::float32, DType::float64}) {
    for (double other : {nan, 1.0, infinity}) {
      for (Op op : {Op::lt, Op::eq}) {
        EXPECT_FALSE(evaluate(op, DType::boolean, {{Scalar(t, nan), Scalar(t, other)}}).as_bool());
        EXPECT_FALSE(evaluate(op, DType::boolean, {{Scalar(t, other), Scalar(t, nan)}}).as_bool());
      }
    }
  }
  EXPECT_TRUE(
      evaluate(Op::eq, DType::boolean, {{Scalar(float32, 0.0), Scalar(float32, -0.0)}}).as_bool());
}

TEST(Evaluate, Casts) {
  const auto to = [](DType t, Scalar v) { return of(Op::cast, t, v); };
  EXPECT_EQ(to(DType::uint8, Scalar(float32, 300.7)), Scalar(DType::uint8, 44));
  EXPECT_EQ(to(DType::int8, Scalar(float32, 0x1p31)), Scalar(DType::int8, 0));
  EXPECT_EQ(to(DType::int32, Scalar(float32, 3e9)), Scalar(DType::int32, 0));
  EXPECT_EQ(to(DType::int32, Scalar(float32, nan)), Scalar(DType::int32, 0));
  EXPECT_EQ(to(DType::int32, Scalar(float32, -1.9)), Scalar(DType::int32, -1));
  EXPECT_EQ(to(DType::boolean, Scalar(float32, nan)), Scalar(DType::boolean, true));
  EXPECT_EQ(to(DType::boolean, Scalar(DType::int16, 256)), Scalar(DType::boolean, true));
  EXPECT_TRUE(to(DType::float8_e4m3, Scalar(float32, 1000.0)).is_nan());
  EXPECT_EQ(of(Op::bitcast, DType::int32, Scalar(float32, 1.0)), Scalar(DType::int32, 0x3f800000));
  EXPECT_TRUE(std::signbit(of(Op::neg, float32, Scalar(float32, 0.0)).as_double()));
}

// Double, then one rounding, is the machine's own float32 operation.
TEST(Evaluate, Float32IsExact) {
  Random random(1);
  for (int n = 0; n < testing::rounds(100'000); ++n) {
    const Scalar a = random.scalar(float32), b = random.scalar(float32);
    const volatile float x = static_cast<float>(a.as_double()),
                         y = static_cast<float>(b.as_double());
    const auto expect = [&](Op op, float want) {
      const Scalar v[] = {a, b};
      const Scalar got = evaluate(op, float32, std::span<const Scalar>(v, op == Op::sqrt ? 1 : 2));
      EXPECT_TRUE(testing::same(got, Scalar(float32, static_cast<double>(want))))
          << name_of(op) << a.text() << b.text();
    };
    expect(Op::add, x + y);
    expect(Op::mul, x * y);
    expect(Op::div, x / y);
    expect(Op::sqrt, std::sqrt(x));
  }
}

TEST(Evaluate, AnIdentityChangesNothing) {
  Random random(2);
  for (DType t : testing::all_dtypes()) {
    for (Op op : {Op::add, Op::mul, Op::max, Op::min, Op::and_, Op::or_, Op::xor_}) {
      if (is_float(t) && (op == Op::and_ || op == Op::or_ || op == Op::xor_)) continue;
      for (int n = 0; n < 50; ++n) {
        const Scalar v = random.scalar(t);
        const Scalar got = evaluate(op, t, {{identity_of(op, t), v}});
        const bool zeros = v.as_double() == 0 && got.as_double() == 0;  // 0 + -0.0 is 0
        EXPECT_TRUE(zeros || testing::same(got, v))
            << name_of(op) << " " << name_of(t) << " " << v.text() << " " << got.text();
      }
    }
  }
}

}  // namespace
}  // namespace mote
