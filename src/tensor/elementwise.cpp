// Elementwise operations: the operators, and what is composed of the primitive ones.
#include <cmath>
#include <numbers>

#include "tensor/lift.h"

namespace mote {
namespace {

using Tensors = std::vector<Tensor>;
using X = const Tensor&;
using Side = const Operand&;  // of an operator

Tensor apply(Op op, const Tensor& x) { return wrap(elementwise(op, {x.lazy()})); }

Tensor float_op(std::string_view name, Where at, Op op, const Tensor& x) {
  const Within within(name, at);
  return apply(op, as_float(x));
}

Tensor binary(std::string_view name, Op op, Side a, Side b) {
  const Within within(name, a.where());
  auto [x, y] = lift(a, b);
  return wrap(elementwise(op, {x, y}));
}

// With another op where both are bool.
Tensor binary(std::string_view name, Op op, Op of_bools, Side a, Side b) {
  const Within within(name, a.where());
  return binary(name, common_dtype(a, b) == DType::boolean ? of_bools : op, a, b);
}

// Runs f in float64 and rounds once: for functions of several steps.
template <class F>
Tensor in_double(std::string_view name, Where at, const Tensor& x, F f) {
  const Within within(name, at);
  const Tensor t = as_float(x);
  return f(t.cast(DType::float64)).cast(t.dtype());
}

// value(x) as a function whose gradient is g * slope(x, value).
template <class F>
Tensor with_slope(const Tensor& value, const Tensor& x, F slope) {
  return with_element_gradient(value, {x},
                               [x, slope](X g, X v) { return Tensors{g * slope(x, v)}; });
}

void expect_bits(DType t) {
  if (is_integer(t) || t == DType::boolean) return;
  refuse<DTypeError>("the dtype is {}; bit operations take integers and bools; cast first", t);
}

Tensor bit_op(std::string_view name, Op op, Side a, Side b) {
  const Within within(name, a.where());
  expect_bits(common_dtype(a, b));
  return binary(name, op, a, b);
}

Tensor is_negative(const Tensor& x) { return (x < 0.0) | ((x == 0.0) & (1.0 / x < 0.0)); }

}  // namespace

// ---- operators

Tensor operator+(Side a, Side b) { return binary("add", Op::add, Op::or_, a, b); }
Tensor operator*(Side a, Side b) { return binary("mul", Op::mul, Op::and_, a, b); }
Tensor operator-(Side a, Side b) {
  const Within within("sub", a.where());
  auto [x, y] = lift(a, b);
  if (x->dtype == DType::boolean)
    refuse<DTypeError>("both operands are bool; use ^ or cast to an integer");
  return wrap(elementwise(Op::add, {x, elementwise(Op::neg, {y})}));
}
Tensor operator/(Side a, Side b) {
  const Within within("div", a.where());
  auto [x, y] = lift(a, b);
  return wrap(elementwise(Op::div, {as_float(wrap(x)).lazy(), as_float(wrap(y)).lazy()}));
}
Tensor operator-(Side x) { return Within("neg", x.where())(tensor_of(x).neg()); }
Tensor operator~(Side x) { return Within("bitwise_not", x.where())(tensor_of(x).bitwise_not()); }
Tensor operator!(Side x) { return Within("logical_not", x.where())(tensor_of(x).logical_not()); }
Tensor operator&(Side a, Side b) { return bit_op("and", Op::and_, a, b); }
Tensor operator|(Side a, Side b) { return bit_op("or", Op::or_, a, b); }
Tensor operator^(Side a, Side b) { return bit_op("xor", Op::xor_, a, b); }
Tensor operator<<(Side a, Side b) { return bit_op("shl", Op::shl, a, b); }
Tensor operator>>(Side a, Side b) { return bit_op("shr", Op::shr, a, b); }
Tensor operator==(Side a, Side b) { return binary("eq", Op::eq, a, b); }
Tensor operator!=(Side a, Side b) { return Within("ne", a.where())(!(a == b)); }
Tensor operator<(Side a, Side b) { return binary("lt", Op::lt, a, b); }
Tensor operator>(Side a, Side b) { return Within("gt", a.where())(b < a); }
// Not the negation of b < a: with NaN both are false.
Tensor operator<=(Side a, Side b) { return Within("le", a.where())((a < b) | (a == b)); }
Tensor operator>=(Side a, Side b) { return Within("ge", a.where())((b < a) | (a == b)); }

Tensor where(const Tensor& condition, const Operand& a, const Operand& b, Where at) {
  const Within within("where", at);
  if (condition.dtype() != DType::boolean)
    refuse<DTypeError>("the condition has dtype {}; compare it with something, or cast it to bool",
                       condition.dtype());
  auto [x, y] = lift(a, b);
  Lazy c = condition.lazy();
  if (is_number(a) && is_number(b)) {  // constants of the condition's device
    x = copy_to(x, *c->device);
    y = copy_to(y, *c->device);
  }
  const Shape shape = common_shape(c->shape, x->shape);
  return wrap(elementwise(
      Op::where, {broadcast_to(c, shape), broadcast_to(x, shape), broadcast_to(y, shape)}));
}

Tensor maximum(Side a, Side b) { return binary("maximum", Op::max, Op::or_, a, b); }
Tensor minimum(Side a, Side b) { return binary("minimum", Op::min, Op::and_, a, b); }
Tensor Tensor::maximum(const Operand& b, Where at) const {
  return mote::maximum(Operand(*this, at), b);
}
Tensor Tensor::minimum(const Operand& b, Where at) const {
  return mote::minimum(Operand(*this, at), b);
}

// ---- one operand

Tensor Tensor::neg(Where at) const {
  const Within within("neg", at);
  if (dtype() == DType::boolean)
    refuse<DTypeError>("the dtype is bool; use ! or cast to an integer");
  return apply(Op::neg, *this);
}

Tensor Tensor::sign(Where at) const {
  const Within within("sign", at);
  if (dtype() == DType::boolean) return *this;
  const Tensor x = detach(), zero = x.zeros_like(), one = x.ones_like();
  const Tensor below = is_unsigned(dtype()) ? zero : -one;
  const Tensor value = mote::where(zero < x, one, mote::where(x < zero, below, zero));
  if (!is_float(dtype())) return value;
  return with_element_gradient(mote::where(x.isnan(), x, value), {*this},
                               [](X g, X) { return Tensors{g.zeros_like()}; });
}

Tensor Tensor::abs(Where at) const {
  const Within within("abs", at);
  if (dtype() == DType::boolean || is_unsigned(dtype())) return *this;
  const Tensor x = detach(), positive = mote::where(x < 0, -x, x);
  if (!is_float(dtype())) return positive;
  return with_slope(positive + 0.0, *this, [](X a, X) { return a.sign(); });
}

Tensor Tensor::exp(Where at) const { return float_op("exp", at, Op::exp, *this); }
Tensor Tensor::log(Where at) const { return float_op("log", at, Op::log, *this); }
Tensor Tensor::sqrt(Where at) const { return float_op("sqrt", at, Op::sqrt, *this); }
Tensor Tensor::sin(Where at) const { return float_op("sin", at, Op::sin, *this); }
Tensor Tensor::cos(Where at) const { return float_op("cos", at, Op::cos, *this); }
Tensor Tensor::tanh(Where at) const { return float_op("tanh", at, Op::tanh, *this); }
Tensor Tensor::erf(Where at) const { return float_op("erf", at, Op::erf, *this); }
Tensor Tensor::square(Where at) const { return Within("square", at)(*this * *this); }
Tensor Tensor::reciprocal(Where at) const { return Within("reciprocal", at)(1.0 / *this); }
Tensor Tensor::rsqrt(Where at) const { return Within("rsqrt", at)(1.0 / sqrt()); }

namespace {

// log1p and expm1 by Kahan's correction: the rounding of 1 + x cancels in the quotient.
Tensor log1p_double(X x) {
  const Tensor d = x.detach(), u = d + 1.0, lost = u - 1.0;
  const Tensor plain = (lost == 0.0) | !u.isfinite();
  const Tensor value =
      where(plain, where(lost == 0.0, d, u.log()), u.log() * (d / where(plain, 1.0, lost)));
  return with_slope(value, x, [](X a, X) { return 1.0 / (a + 1.0); });
}

Tensor expm1_double(X x) {
  const Tensor d = x.detach(), u = d.exp(), less = u - 1.0;
  const Tensor plain = (u == 1.0) | (less == -1.0) | !u.isfinite();
  const Tensor value =
      where(plain, where(u == 1.0, d, less), less * (d / where(plain, 1.0, u.log())));
  return with_slope(value, x, [](X a, X) { return a.exp(); });
}

// Halves the angle twice, atan(x) = 2 atan(x / (1 + sqrt(1 + x^2))), then the series in x^2
// (|x| <= tan(pi/16) = 0.199 after 1/x for |x| > 1): 13 terms leave less than 1e-17.
Tensor atan_double(X x) {
  const Tensor d = x.detach(), size = d.abs(), large = 1.0 < size;
  Tensor t = where(large, 1.0 / size, size);
  for (int i = 0; i < 2; ++i) t = t / (1.0 + (1.0 + t * t).sqrt());
  const Tensor z = t * t;
  Tensor series = z.full_like(1.0 / 25);
  for (int k = 11; k >= 0; --k) series = series * z + (k % 2 ? -1.0 : 1.0) / (2 * k + 1);
  const Tensor angle = series * t * 4.0;
  const Tensor positive = where(large, std::numbers::pi / 2 - angle, angle);
  const Tensor value = where(d < 0.0, -positive, where(d == 0.0, d, positive));
  return with_slope(value, x, [](X a, X) { return 1.0 / (1.0 + a * a); });
}

Tensor asin_double(X x) {
  const Tensor d = x.detach(), value = atan_double(d / ((1.0 - d) * (1.0 + d)).sqrt());
  return with_slope(value, x, [](X a, X) { return 1.0 / ((1.0 - a) * (1.0 + a)).sqrt(); });
}

// An odd function of its value at |x|: -0.0 and NaN stay.
Tensor with_sign_of(const Tensor& x, const Tensor& size) {
  return where(x < 0.0, -size, where(x == 0.0, x, size));
}

// log(2x) where x^2 would overflow, else log1p(f(x)).
Tensor log_of_twice(const Tensor& x, const Tensor& less_one) {
  return where(0x1p28 < x, x.log() + std::numbers::ln2, less_one.log1p());
}

// (E + E / (E + 1)) / 2 with E = e^|x| - 1 is exact for small x; e^x / 2 in two steps for large x.
Tensor sinh_double(X x) {
  const Tensor d = x.detach(), a = d.abs(), e = a.expm1(), root = (a * 0.5).exp();
  const Tensor size = where(a < 40.0, (e + e / (e + 1.0)) * 0.5, root * 0.5 * root);
  return with_slope(with_sign_of(d, size), x, [](X b, X) { return b.cosh(); });
}

Tensor cosh_double(X x) {
  const Tensor d = x.detach(), a = d.abs(), root = (a * 0.5).exp();
  const Tensor value = where(a < 40.0, (a.exp() + (-a).exp()) * 0.5, root * 0.5 * root);
  return with_slope(value, x, [](X b, X) { return b.sinh(); });
}

Tensor asinh_double(X x) {
  const Tensor d = x.detach(), a = d.abs();
  const Tensor value = with_sign_of(d, log_of_twice(a, a + a * a / (1.0 + (a * a + 1.0).sqrt())));
  return with_slope(value, x, [](X b, X) { return 1.0 / (b * b + 1.0).sqrt(); });
}

Tensor acosh_double(X x) {
  const Tensor d = x.detach(), over = d - 1.0;
  const Tensor value =
      where(d < 1.0, NAN, log_of_twice(d, over + (over * 2.0 + over * over).sqrt()));
  return with_slope(value, x, [](X b, X) { return 1.0 / ((b - 1.0).sqrt() * (b + 1.0).sqrt()); });
}

Tensor exp2_double(X x) { return (x * std::numbers::ln2).exp(); }
Tensor log2_double(X x) { return x.log() / std::numbers::ln2; }
Tensor log10_double(X x) { return x.log() / std::numbers::ln10; }
Tensor tan_double(X x) { return x.sin() / x.cos(); }
Tensor acos_double(X x) { return std::numbers::pi / 2 - asin_double(x); }
Tensor atanh_double(X x) { return (2.0 * x / (1.0 - x)).log1p() * 0.5; }

}  // namespace

Tensor Tensor::exp2(Where at) const { return in_double("exp2", at, *this, exp2_double); }
Tensor Tensor::log2(Where at) const { return in_double("log2", at, *this, log2_double); }
Tensor Tensor::log10(Where at) const { return in_double("log10", at, *this, log10_double); }
Tensor Tensor::log1p(Where at) const { return in_double("log1p", at, *this, log1p_double); }
Tensor Tensor::expm1(Where at) const { return in_double("expm1", at, *this, expm1_double); }
Tensor Tensor::tan(Where at) const { return in_double("tan", at, *this, tan_double); }
Tensor Tensor::asin(Where at) const { return in_double("asin", at, *this, asin_double); }
Tensor Tensor::acos(Where at) const { return in_double("acos", at, *this, acos_double); }
Tensor Tensor::atan(Where at) const { return in_double("atan", at, *this, atan_double); }
Tensor Tensor::sinh(Where at) const { return in_double("sinh", at, *this, sinh_double); }
Tensor Tensor::cosh(Where at) const { return in_double("cosh", at, *this, cosh_double); }
Tensor Tensor::asinh(Where at) const { return in_double("asinh", at, *this, asinh_double); }
Tensor Tensor::acosh(Where at) const { return in_double("acosh", at, *this, acosh_double); }
Tensor Tensor::atanh(Where at) const { return in_double("atanh", at, *this, atanh_double); }

Tensor Tensor::trunc(Where at) const {
  return Within("trunc", at)(is_float(dtype()) ? apply(Op::trunc, *this) : *this);
}
Tensor Tensor::floor(Where at) const {
  const Within within("floor", at);
  const Tensor t = trunc();
  return is_float(dtype()) ? mote::where(*this < t, t - 1.0, t) : t;
}
Tensor Tensor::ceil(Where at) const {
  const Within within("ceil", at);
  const Tensor t = trunc();
  return is_float(dtype()) ? mote::where(t < *this, t + 1.0, t) : t;
}
Tensor Tensor::round(Where at) const {
  const Within within("round", at);
  if (!is_float(dtype())) return *this;
  const Tensor t = trunc(), rest = (*this - t).abs(), half = t * 0.5;
  const Tensor odd = half.trunc() != half;
  return mote::where((0.5 < rest) | ((rest == 0.5) & odd), t + sign(), t);
}

Tensor Tensor::logical_not(Where at) const {
  return Within("logical_not", at)(apply(Op::not_, cast(DType::boolean)));
}
Tensor Tensor::bitwise_not(Where at) const {
  const Within within("bitwise_not", at);
  expect_bits(dtype());
  return apply(Op::not_, *this);
}
Tensor Tensor::isnan(Where at) const { return Within("isnan", at)(*this != *this); }
Tensor Tensor::isinf(Where at) const {
  const Within within("isinf", at);
  if (!is_float(dtype())) return zeros_like().cast(DType::boolean);
  return (*this == INFINITY) | (*this == -INFINITY);
}
Tensor Tensor::isfinite(Where at) const { return Within("isfinite", at)(!(isinf() | isnan())); }

// Compared, not by max and min: on its bounds the gradient is 1, and NaN stays.
Tensor Tensor::clip(std::optional<double> low, std::optional<double> high, Where at) const {
  const Within within("clip", at);
  if (!low && !high) refuse<ValueError>("no bound is given; give low, high or both");
  const bool whole = (!low || *low == std::floor(*low)) && (!high || *high == std::floor(*high));
  if (!is_float(dtype()) && !whole)
    refuse<DTypeError>("a bound of an integer tensor is no whole number; cast the tensor");
  Tensor out = *this;
  if (low) out = mote::where(out < out.full_like(*low), out.full_like(*low), out);
  if (high) out = mote::where(out.full_like(*high) < out, out.full_like(*high), out);
  return out;
}

// ---- activations

Tensor Tensor::relu(Where at) const {
  const Within within("relu", at);
  const Tensor x = detach(), value = mote::where(x <= 0, x.zeros_like(), x);
  if (!is_float(dtype())) return value;
  return with_element_gradient(
      value, {*this}, [](X g, X out) { return Tensors{mote::where(out <= 0, g.zeros_like(), g)}; });
}

// 1 / (1 + e^-x), by e to a negative power only: it never overflows.
Tensor Tensor::sigmoid(Where at) const {
  const Within within("sigmoid", at);
  const Tensor x = as_float(*this), d = x.detach(), e = (-d.abs()).exp();
  const Tensor value = mote::where(d < 0.0, e, e.ones_like()) / (1.0 + e);
  return with_slope(value, x, [](X, X s) { return s * (1.0 - s); });
}

Tensor Tensor::gelu(bool by_tanh, Where at) const {
  const Within within("gelu", at);
  const Tensor x = as_float(*this);
  if (!by_tanh) return x * 0.5 * ((x * (1 / std::numbers::sqrt2)).erf() + 1.0);
  return x * 0.5 * (((x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi)).tanh() + 1.0);
}
Tensor Tensor::softplus(double beta, Where at) const {
  const Within within("softplus", at);
  const Tensor x = as_float(*this);  // max(x, 0) + log(1 + e^-|beta x|) / beta
  return x.relu() + (-(x * beta).abs()).exp().log1p() / beta;
}
Tensor Tensor::relu6(Where at) const { return Within("relu6", at)(clip(0.0, 6.0)); }
Tensor Tensor::silu(Where at) const { return Within("silu", at)(*this * sigmoid()); }
Tensor Tensor::quick_gelu(Where at) const {
  return Within("quick_gelu", at)(*this * (*this * 1.702).sigmoid());
}
Tensor Tensor::leaky_relu(double slope, Where at) const {
  return Within("leaky_relu", at)(mote::where(*this < 0, *this * slope, *this));
}
Tensor Tensor::elu(double alpha, Where at) const {
  return Within("elu", at)(mote::where(0 < *this, *this, minimum(0).expm1() * alpha));
}
Tensor Tensor::celu(double alpha, Where at) const {
  return Within("celu", at)(mote::where(0 < *this, *this, (minimum(0) / alpha).expm1() * alpha));
}
Tensor Tensor::selu(Where at) const {
  return Within("selu", at)(elu(1.6732632423543772) * 1.0507009873554805);
}
Tensor Tensor::softsign(Where at) const { return Within("softsign", at)(*this / (1.0 + abs())); }
Tensor Tensor::mish(Where at) const { return Within("mish", at)(*this * softplus().tanh()); }
Tensor Tensor::hardsigmoid(Where at) const {
  return Within("hardsigmoid", at)((*this + 3.0).clip(0.0, 6.0) / 6.0);
}
Tensor Tensor::hardswish(Where at) const { return Within("hardswish", at)(*this * hardsigmoid()); }
Tensor Tensor::hardtanh(double low, double high, Where at) const {
  return Within("hardtanh", at)(clip(low, high));
}
Tensor Tensor::logsigmoid(Where at) const {
  return Within("logsigmoid", at)(-((-*this).softplus()));
}

// ---- two operands

namespace {

// a's leading bits, rounded away from zero: what is left of a has 27 bits and the other sign.
Tensor leading_bits(const Tensor& a) {
  const std::int64_t rest = (1 << 27) - 1;
  return ((a.bitcast(DType::int64) + rest) & ~rest).bitcast(DType::float64);
}

// Long division: each step takes the multiples of |b| 2^k below what is left, exactly, since a
// quotient of `bits` bits times a part of the divisor fits in 53. `bits` and `steps` cover every
// quotient of narrower floats; in float64 those below 2^150.
Tensor long_division(X a, X b, bool narrow) {
  const int bits = narrow ? 29 : 25, steps = narrow ? 10 : 6;
  Tensor size = b.abs(), left = a.abs();
  const Tensor small = left < size;
  const Tensor shrunk = where(size < 0x1p1000, 1.0, 0x1p-60);  // leading bits may not overflow
  if (!narrow) {
    size = size * shrunk;
    left = left * shrunk;
  }
  const Tensor high = narrow ? size : leading_bits(size);
  for (int k = steps - 1; k >= 0; --k) {
    const double scale = std::ldexp(1.0, bits * k);
    const Tensor c = size * scale, times = (left / c).trunc();
    Tensor less = left - times * (high * scale);
    if (!narrow) less = less - times * ((size - high) * scale);
    less = where(less < 0.0, less + c, less);  // the quotient was rounded up
    left = where(c <= left, less, left);
  }
  if (!narrow) left = left / shrunk;
  const Tensor undefined = (b == 0.0) | !a.isfinite() | b.isnan();
  return where(undefined, a.full_like(NAN), where(small, a, where(a < 0.0, -left, left)));
}

Tensor float_fmod(X a, X b, bool narrow) {
  return with_element_gradient(
      long_division(a.detach(), b.detach(), narrow), {a, b},
      [a, b](X g, X rest) { return Tensors{g, -(g * ((a - rest) / b).round())}; });
}

Tensor float_remainder(X a, X b, bool narrow) {
  const Tensor rest = float_fmod(a, b, narrow);
  const Tensor wrong = (rest != 0.0) & ((rest < 0.0) ^ (b < 0.0));
  return where(wrong, rest + b, rest);
}

// By the remainder: a / b may round up to a whole number.
Tensor float_floor_divide(X a, X b, bool narrow) {
  const Tensor plain = (a / b).trunc();
  const Tensor value = ((a - float_remainder(a, b, narrow)) / b).round();
  const Tensor minus = where((a != 0.0) & ((a < 0.0) ^ (b < 0.0)), -1.0, 0.0).cast(a.dtype());
  return where(b.isinf() & a.isfinite(), minus,
               where((b == 0.0) | !plain.isfinite(), plain, value));
}

// f also learns whether its operands were narrower.
template <class F>
Tensor both_in_double(const Tensor& a, const Tensor& b, F f) {
  const bool narrow = a.dtype() != DType::float64;
  return f(a.cast(DType::float64), b.cast(DType::float64), narrow).cast(a.dtype());
}

// Integers have an op of their own.
Tensor divided(std::string_view name, Side a, Side b, Op of_integers,
               Tensor (*of_floats)(X, X, bool)) {
  const Within within(name, a.where());
  auto [x, y] = lift(a, b);
  if (!is_float(x->dtype)) return wrap(elementwise(of_integers, {x, y}));
  return both_in_double(wrap(x), wrap(y), of_floats);
}

Tensor integer_pow(const Tensor& a, const Tensor& b) {
  Tensor result = a.ones_like(), power = a;
  for (int bit = 0; bit < bits_of(a.dtype()); ++bit) {
    result = where(((b >> bit) & 1) != 0, result * power, result);
    power = power * power;
  }
  if (!is_signed(a.dtype())) return result;
  const Tensor one = a.ones_like(), odd = (b & 1) != 0;
  return where(b < 0, where(a == 1, one, where(a == -1, where(odd, -one, one), a.zeros_like())),
               result);
}

Tensor float_pow(X a, X b, bool) {  // float64
  const Tensor size = (b * a.abs().log()).exp();
  const Tensor whole = b.floor() == b, half = b * 0.5;
  const Tensor odd = whole & (half.floor() != half);
  const Tensor signed_size = where(is_negative(a) & odd, -size, size);
  const Tensor defined =
      where((a < 0.0) & !whole & a.isfinite() & b.isfinite(), a.full_like(NAN), signed_size);
  return where((b == 0.0) | (a == 1.0) | ((a == -1.0) & b.isinf()), a.ones_like(), defined);
}

// By squaring: exact where multiplication is.
Tensor whole_pow(const Tensor& x, std::int64_t n) {
  if (n < 0) return 1.0 / whole_pow(x, -n);
  Tensor result, power = x;
  for (; n; n >>= 1) {
    if (n & 1) result = result.is_defined() ? result * power : power;
    if (n > 1) power = power * power;
  }
  return result;
}

}  // namespace

Tensor Tensor::div(const Operand& b, Rounding rounding, Where at) const {
  const Within within("div", at);
  if (rounding == Rounding::none) return *this / b;
  if (rounding == Rounding::floor) return floor_divide(b);
  if (is_float(common_dtype(*this, b))) return (*this / b).trunc();
  return binary("div", Op::tdiv, *this, b);
}

Tensor Tensor::floor_divide(const Operand& b, Where at) const {
  return divided("floor_divide", Operand(*this, at), b, Op::idiv, float_floor_divide);
}
Tensor Tensor::remainder(const Operand& b, Where at) const { return Operand(*this, at) % b; }
Tensor operator%(Side a, Side b) { return divided("remainder", a, b, Op::mod, float_remainder); }
Tensor Tensor::fmod(const Operand& b, Where at) const {
  return divided("fmod", Operand(*this, at), b, Op::tmod, float_fmod);
}

Tensor Tensor::pow(const Operand& exponent, Where at) const {
  const Within within("pow", at);
  auto [x, y] = lift(*this, exponent);
  const Tensor a = wrap(x), b = wrap(y);
  if (!is_float(a.dtype())) return integer_pow(a, b);
  const double n = exponent.real();
  if (is_number(exponent)) {
    if (n != 0 && n == std::floor(n) && std::abs(n) <= 64)
      return whole_pow(a, static_cast<std::int64_t>(n));
    if (n == 0.5) return a.sqrt();
  }
  const Tensor value = both_in_double(a.detach(), b.detach(), float_pow);
  return with_element_gradient(value, {a, b}, [a, b](X g, X out) {
    const Tensor by_a = mote::where(b == 0.0, g.zeros_like(), g * b * a.pow(b - 1.0));
    const Tensor by_b = mote::where((a == 0.0) & (0.0 <= b), g.zeros_like(), g * out * a.log());
    return Tensors{by_a, by_b};
  });
}

Tensor Tensor::lerp(const Tensor& end, const Operand& weight, Where at) const {
  return Within("lerp", at)(*this + (end - *this) * weight);
}

Tensor Tensor::copysign(const Operand& b, Where at) const {
  const Within within("copysign", at);
  auto [x, y] = lift(as_float(*this), b);
  const Tensor size = wrap(x).abs();
  return mote::where(is_negative(wrap(y)), -size, size);
}

Tensor Tensor::logaddexp(const Operand& b, Where at) const {
  const Within within("logaddexp", at);
  auto [x, y] = lift(as_float(*this), b);
  const Tensor a = wrap(x), c = wrap(y), top = a.maximum(c).detach();
  const Tensor base = mote::where(top.isinf(), top.zeros_like(), top);
  return ((a - base).exp() + (c - base).exp()).log() + base;
}

Tensor Tensor::isclose(const Tensor& b, double rtol, double atol, bool equal_nan, Where at) const {
  const Within within("isclose", at);
  const Tensor near = (*this - b).abs() <= (b.abs() * rtol + atol);
  const Tensor equal = (*this == b) | (near & isfinite() & b.isfinite());
  return equal_nan ? equal | (isnan() & b.isnan()) : equal;
}

}  // namespace mote
