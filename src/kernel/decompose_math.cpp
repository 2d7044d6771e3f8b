#include "kernel/decompose_math.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace mote {
namespace {

Expr number(const Expr& like, double v) { return constant(Scalar(like->dtype, v)); }

// c[0] + x*(c[1] + x*(c[2] + ..))
Expr horner(const Expr& x, const std::vector<double>& c) {
  Expr out = number(x, c.back());
  for (std::size_t i = c.size() - 1; i-- > 0;) out = out * x + number(x, c[i]);
  return out;
}

// Nearest whole number, ties to even, for |x| below half of the magic number.
Expr nearest_whole(const Expr& x) {
  const double magic =
      x->dtype == DType::float32 ? 12582912.0 : 6755399441055744.0;  // 1.5 * 2^23, 2^52
  return (x + magic) - magic;
}

// 2^n for a whole n within the normal exponents, by the bits of the exponent.
Expr power_of_two(const Expr& n) {
  const bool narrow = n->dtype == DType::float32;
  const DType t = narrow ? DType::int32 : DType::int64;
  const Expr shifted = binary(Op::shl, cast(n, t) + constant(Scalar(t, narrow ? 127 : 1023)),
                              constant(Scalar(t, narrow ? 23 : 52)));
  return bitcast(shifted, n->dtype);
}

// 1/k! for k = from..to: the Taylor series of exp on |r| <= ln2/2.
std::vector<double> inverse_factorials(int from, int to, int step = 1, bool alternate = false) {
  std::vector<double> out;
  double sign = 1;
  for (int k = from; k <= to; k += step) {
    out.push_back(sign / std::tgamma(k + 1.0));
    if (alternate) sign = -sign;
  }
  return out;
}

struct Reduced {
  Expr n, r;  // x = n ln2 + r
};

Reduced by_ln2(const Expr& x) {
  const bool narrow = x->dtype == DType::float32;
  const Expr n = nearest_whole(x * std::numbers::log2e);
  // ln2 in two parts; n times the first is exact.
  const Expr r = (x - n * (narrow ? 0.693115234375 : 0.6931471803691238164901733)) -
                 n * (narrow ? 3.194618494530941723e-5 : 1.908214929270587816144266e-10);
  return {n, r};
}

// e^x: x is clamped to where the result neither overflows nor vanishes; 2^n is applied in two
// halves, so that subnormal results are rounded once.
Expr exp_of(const Expr& x) {
  const bool narrow = x->dtype == DType::float32;
  const double low = narrow ? -104.5 : -746, high = narrow ? 89.5 : 710.5;
  const Expr inside = where(lt(x, number(x, low)), number(x, low),
                            where(lt(number(x, high), x), number(x, high), x));
  const auto [n, r] = by_ln2(inside);
  const Expr p = horner(r, inverse_factorials(0, narrow ? 7 : 13));
  const Expr half = nearest_whole(n * 0.5);
  const Expr y = p * power_of_two(half) * power_of_two(n - half);
  return where(eq(x, x), y, x);
}

// x = m 2^e with m in [sqrt(1/2), sqrt(2)); log(1 + f) = f - (f^2/2 - s (f^2/2 + R(s^2))), with
// s = f / (2 + f) and R the rest of the series of atanh.
Expr log_double(const Expr& x) {
  const auto i64 = [](std::int64_t v) { return constant(Scalar(DType::int64, v)); };
  const Expr tiny = lt(x, number(x, 0x1p-1022));
  const Expr scaled = where(tiny, x * 0x1p54, x);
  const Expr u = bitcast(scaled, DType::int64);
  // The exponent of scaled / sqrt(1/2), by subtracting the bits of sqrt(1/2).
  const Expr shifted = u - i64(0x3fe6a09e667f3bcd);
  const Expr e = binary(Op::shr, shifted, i64(52));
  const Expr m = bitcast(u - binary(Op::shl, e, i64(52)), DType::float64);
  const Expr n = cast(e - where(tiny, i64(54), i64(0)), DType::float64);
  const Expr f = m - 1.0;
  const Expr s = f / (2.0 + f), z = s * s;
  std::vector<double> series{0};
  for (int k = 1; k <= 11; ++k) series.push_back(2.0 / (2 * k + 1));
  const Expr half = f * f * 0.5;
  const Expr tail = n * 1.908214929270587816144266e-10 + s * (half + horner(z, series));
  const Expr y = n * 0.6931471803691238164901733 - ((half - tail) - f);
  const Expr zero = eq(x, number(x, 0)), negative = lt(x, number(x, 0));
  const Expr infinite = eq(x, number(x, INFINITY));
  return where(zero, number(x, -INFINITY),
               where(negative, number(x, NAN), where(infinite, x, where(eq(x, x), y, x))));
}

// x - k pi/2 with pi/2 in four parts of 23 bits: k times each of the first three is exact for
// |k| < 2^30. Then the Taylor series of sin and cos on |r| <= pi/4.
Expr sin_or_cos(const Expr& x, bool cosine) {
  const Expr k = nearest_whole(x * (2 / std::numbers::pi));
  Expr r = x - k * 1.5707962512969970703125;
  r = r - k * 7.54978941586159635335207e-8;
  r = r - k * 5.390302529957764765544681e-15;
  r = r - k * 3.282003542873500542628329e-22;
  const Expr z = r * r;
  const Expr sine = r + r * z * horner(z, inverse_factorials(3, 19, 2, true)) * -1.0;
  const Expr cosine_value = 1.0 + z * horner(z, inverse_factorials(2, 20, 2, true)) * -1.0;
  const auto i64 = [](std::int64_t v) { return constant(Scalar(DType::int64, v)); };
  const Expr bounded = lt(where(lt(k, number(k, 0)), -k, k), number(k, 0x1p62));
  const Expr quadrant = cast(where(bounded, k, number(k, 0)), DType::int64) + i64(cosine ? 1 : 0);
  const Expr odd = eq(binary(Op::and_, quadrant, i64(1)), i64(1));
  const Expr flipped = eq(binary(Op::and_, quadrant, i64(2)), i64(2));
  const Expr y = where(odd, cosine_value, sine);
  const Expr finite = lt(where(lt(x, number(x, 0)), -x, x), number(x, INFINITY));
  const Expr value = where(finite, where(flipped, -y, y), number(x, NAN));
  return cosine ? value : where(eq(x, number(x, 0)), x, value);  // sin(-0.0) is -0.0
}

// E / (E + 2) with E = e^2x - 1 = 2^n (e^r - 1) + (2^n - 1).
Expr tanh_double(const Expr& x) {
  const Expr size = where(lt(x, number(x, 0)), -x, x);
  const Expr inside = where(lt(number(x, 20), size), number(x, 20), size) * 2.0;
  const auto [n, r] = by_ln2(inside);
  const Expr two = power_of_two(n);
  const Expr e = two * (r * horner(r, inverse_factorials(1, 14))) + (two - 1.0);
  const Expr y = e / (e + 2.0);
  const Expr signed_y = where(lt(x, number(x, 0)), -y, y);
  return where(eq(x, number(x, 0)), x, where(eq(x, x), signed_y, x));
}

// Below 1 the Taylor series; above, 1 - e^(-x^2) Q(t) with t = (x - 2.5) / (x + 2.5) and Q fitted
// to erfc(x) e^(x^2) on 1..6.5 (Chebyshev, error 1.5e-23: tools/fit_math.py).
Expr erf_double(const Expr& x) {
  static const std::vector<double> fitted{
      0.21080636406114358065,     -0.3717367339489733533,      0.25171319321744924657,
      -0.12503305237882904292,    0.039922539075593722252,     -0.0039937011658797064561,
      -0.0026423659648265190396,  0.00087591545086355455818,   0.00022838039458261519674,
      -0.00012887718348571848789, -0.000034182499439867017792, 0.000018614551581053911095,
      7.5551588469244889014e-6,   -2.2982277948135982861e-6,   -1.8167154333163256965e-6,
      7.4669474948137456045e-8,   3.8993896902776919539e-7,    8.9216347023571753665e-8,
      -6.0288141853803631065e-8,  -3.9236561981445402227e-8,   3.0985367903234318893e-9,
      8.781771752394932621e-9};
  std::vector<double> taylor;
  for (int k = 0; k <= 20; ++k)
    taylor.push_back((k % 2 ? -1 : 1) * 2 / std::sqrt(std::numbers::pi) /
                     (std::tgamma(k + 1.0) * (2 * k + 1)));
  const Expr size = where(lt(x, number(x, 0)), -x, x);
  const Expr inside = where(lt(number(x, 6.5), size), number(x, 6.5), size);
  const Expr small = x * horner(x * x, taylor);
  const Expr large =
      1.0 - exp_of(-(inside * inside)) * horner((inside - 2.5) / (inside + 2.5), fitted);
  const Expr signed_large = where(lt(x, number(x, 0)), -large, large);
  const Expr y = where(lt(size, number(x, 1)), small, signed_large);
  return where(eq(x, x), y, x);
}

Expr in_double(Op op, const Expr& x) {
  switch (op) {
    case Op::exp: return exp_of(x);
    case Op::log: return log_double(x);
    case Op::sin: return sin_or_cos(x, false);
    case Op::cos: return sin_or_cos(x, true);
    case Op::tanh: return tanh_double(x);
    default: return erf_double(x);
  }
}

}  // namespace

Expr math_function(Op op, const Expr& x) {
  if (x->dtype == DType::float64) return in_double(op, x);
  if (op == Op::exp) return exp_of(x);
  return cast(in_double(op, cast(x, DType::float64)), DType::float32);
}

}  // namespace mote
