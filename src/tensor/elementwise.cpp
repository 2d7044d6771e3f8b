// Elementwise operations: the operators, and what is composed of the primitive ones.
#include <cmath>
#include <numbers>

#include "tensor/lift.h"

namespace mote {
namespace {

using Tensors = std::vector<Tensor>;

Tensor apply(Op op, const Tensor& x, Where at) {
  const PlaceScope place(at);
  return wrap(elementwise(op, {x.lazy()}));
}

Tensor float_op(std::string_view name, Op op, const Tensor& x, Where at) {
  expect_defined(name, x, at);
  return apply(op, as_float(x, at), at);
}

Tensor binary(std::string_view name, Op op, const Operand& a, const Operand& b) {
  auto [x, y] = lift(name, a, b);
  const PlaceScope place(a.where());
  return wrap(elementwise(op, {x, y}));
}

// Runs f in float64 and rounds once: for functions of several steps.
template <class F>
Tensor in_double(const Tensor& x, Where at, F f) {
  const Tensor t = as_float(x, at);
  if (t.dtype() == DType::float64) return f(t);
  return f(t.cast(DType::float64, at)).cast(t.dtype(), at);
}

void expect_integral(std::string_view name, DType t, Where at) {
  if (is_integer(t) || t == DType::boolean) return;
  fail<DTypeError>(name, cat("the dtype is ", std::string(name_of(t))), at,
                   "bit operations take integers and bools; cast first");
}

Tensor bit_op(std::string_view name, Op op, const Operand& a, const Operand& b) {
  expect_integral(name, common_dtype(name, a, b), a.where());
  return binary(name, op, a, b);
}

Tensor is_negative(const Tensor& x) { return (x < 0.0) | ((x == 0.0) & (1.0 / x < 0.0)); }

}  // namespace

// ---- operators

Tensor operator+(const Operand& a, const Operand& b) {
  return binary("add", common_dtype("add", a, b) == DType::boolean ? Op::or_ : Op::add, a, b);
}
Tensor operator*(const Operand& a, const Operand& b) {
  return binary("mul", common_dtype("mul", a, b) == DType::boolean ? Op::and_ : Op::mul, a, b);
}
Tensor operator-(const Operand& a, const Operand& b) {
  auto [x, y] = lift("sub", a, b);
  if (x->dtype == DType::boolean)
    fail<DTypeError>("sub", "both operands are bool", a.where(), "use ^ or cast to an integer");
  const PlaceScope place(a.where());
  return wrap(elementwise(Op::add, {x, elementwise(Op::neg, {y})}));
}
Tensor operator/(const Operand& a, const Operand& b) {
  auto [x, y] = lift("div", a, b);
  const PlaceScope place(a.where());
  const DType t = is_float(x->dtype) ? x->dtype : default_float();
  return wrap(elementwise(Op::div, {cast_lazy(x, t), cast_lazy(y, t)}));
}
Tensor operator%(const Operand& a, const Operand& b) {
  if (a.number() == Operand::Number::none) return tensor_of(a, "remainder").remainder(b, a.where());
  return tensor_of(b, "remainder").full_like(a, a.where()).remainder(b, a.where());
}
Tensor operator-(const Operand& x) { return tensor_of(x, "neg").neg(x.where()); }
Tensor operator~(const Operand& x) { return tensor_of(x, "bitwise_not").bitwise_not(x.where()); }
Tensor operator!(const Operand& x) { return tensor_of(x, "logical_not").logical_not(x.where()); }
Tensor operator&(const Operand& a, const Operand& b) { return bit_op("and", Op::and_, a, b); }
Tensor operator|(const Operand& a, const Operand& b) { return bit_op("or", Op::or_, a, b); }
Tensor operator^(const Operand& a, const Operand& b) { return bit_op("xor", Op::xor_, a, b); }
Tensor operator<<(const Operand& a, const Operand& b) { return bit_op("shl", Op::shl, a, b); }
Tensor operator>>(const Operand& a, const Operand& b) { return bit_op("shr", Op::shr, a, b); }
Tensor operator==(const Operand& a, const Operand& b) { return binary("eq", Op::eq, a, b); }
Tensor operator!=(const Operand& a, const Operand& b) { return !(a == b); }
Tensor operator<(const Operand& a, const Operand& b) { return binary("lt", Op::lt, a, b); }
Tensor operator>(const Operand& a, const Operand& b) { return binary("gt", Op::lt, b, a); }
// Not the negation of b < a: with NaN both are false.
Tensor operator<=(const Operand& a, const Operand& b) { return (a < b) | (a == b); }
Tensor operator>=(const Operand& a, const Operand& b) { return (b < a) | (a == b); }

Tensor where(const Tensor& condition, const Operand& a, const Operand& b, Where at) {
  expect_defined("where", condition, at);
  if (condition.dtype() != DType::boolean) {
    fail<DTypeError>("where",
                     cat("the condition has dtype ", std::string(name_of(condition.dtype()))), at,
                     "compare it with something, or cast it to bool");
  }
  auto [x, y] = lift("where", a, b);
  const PlaceScope place(at);
  Lazy c = condition.lazy();
  if (c->device != x->device && a.number() != Operand::Number::none &&
      b.number() != Operand::Number::none) {
    x = copy_to(x, *c->device);  // two numbers: constants of the condition's device
    y = copy_to(y, *c->device);
  }
  const Shape shape = common_shape("where", c->shape, x->shape, at);
  return wrap(elementwise(
      Op::where, {broadcast_to(c, shape), broadcast_to(x, shape), broadcast_to(y, shape)}));
}

Tensor maximum(const Operand& a, const Operand& b) {
  const bool truth = common_dtype("maximum", a, b) == DType::boolean;
  return binary("maximum", truth ? Op::or_ : Op::max, a, b);
}
Tensor minimum(const Operand& a, const Operand& b) {
  const bool truth = common_dtype("minimum", a, b) == DType::boolean;
  return binary("minimum", truth ? Op::and_ : Op::min, a, b);
}
Tensor Tensor::maximum(const Operand& b, Where at) const {
  return mote::maximum(Operand(*this, at), b);
}
Tensor Tensor::minimum(const Operand& b, Where at) const {
  return mote::minimum(Operand(*this, at), b);
}

// ---- one operand

Tensor Tensor::neg(Where at) const {
  expect_defined("neg", *this, at);
  if (dtype() == DType::boolean)
    fail<DTypeError>("neg", "the dtype is bool", at, "use ! or cast to an integer");
  return apply(Op::neg, *this, at);
}

Tensor Tensor::sign(Where at) const {
  expect_defined("sign", *this, at);
  if (dtype() == DType::boolean) return *this;
  const Tensor x = detach(at), zero = x.zeros_like(at), one = x.ones_like(at);
  const Tensor below = is_unsigned(dtype()) ? zero : -one;
  const Tensor value = mote::where(zero < x, one, mote::where(x < zero, below, zero));
  if (!is_float(dtype())) return value;
  return with_element_gradient(
      mote::where(x.isnan(at), x, value), {*this},
      [](const Tensor& g, const Tensor&) { return Tensors{g.zeros_like()}; });
}

Tensor Tensor::abs(Where at) const {
  expect_defined("abs", *this, at);
  if (dtype() == DType::boolean || is_unsigned(dtype())) return *this;
  const Tensor x = detach(at);
  const Tensor positive = mote::where(x < 0, -x, x);
  if (!is_float(dtype())) return positive;
  return with_element_gradient(
      positive + 0.0, {*this},
      [self = *this](const Tensor& g, const Tensor&) { return Tensors{g * self.sign()}; });
}

Tensor Tensor::exp(Where at) const { return float_op("exp", Op::exp, *this, at); }
Tensor Tensor::log(Where at) const { return float_op("log", Op::log, *this, at); }
Tensor Tensor::sqrt(Where at) const { return float_op("sqrt", Op::sqrt, *this, at); }
Tensor Tensor::sin(Where at) const { return float_op("sin", Op::sin, *this, at); }
Tensor Tensor::cos(Where at) const { return float_op("cos", Op::cos, *this, at); }
Tensor Tensor::tanh(Where at) const { return float_op("tanh", Op::tanh, *this, at); }
Tensor Tensor::erf(Where at) const { return float_op("erf", Op::erf, *this, at); }
Tensor Tensor::square(Where at) const {
  expect_defined("square", *this, at);
  return *this * *this;
}
Tensor Tensor::reciprocal(Where at) const { return 1.0 / as_float(*this, at); }
Tensor Tensor::rsqrt(Where at) const { return 1.0 / sqrt(at); }
Tensor Tensor::exp2(Where at) const {
  return in_double(*this, at, [](const Tensor& x) { return (x * std::numbers::ln2).exp(); });
}
Tensor Tensor::log2(Where at) const {
  return in_double(*this, at, [](const Tensor& x) { return x.log() / std::numbers::ln2; });
}
Tensor Tensor::log10(Where at) const {
  return in_double(*this, at, [](const Tensor& x) { return x.log() / std::numbers::ln10; });
}

// log1p and expm1 by Kahan's correction: the rounding of 1 + x cancels in the quotient.
Tensor Tensor::log1p(Where at) const {
  return in_double(*this, at, [](const Tensor& x) {
    const Tensor d = x.detach(), u = d + 1.0, lost = u - 1.0;
    const Tensor plain = (lost == 0.0) | !u.isfinite();
    const Tensor value = mote::where(plain, mote::where(lost == 0.0, d, u.log()),
                                     u.log() * (d / mote::where(plain, 1.0, lost)));
    return with_element_gradient(
        value, {x}, [x](const Tensor& g, const Tensor&) { return Tensors{g / (x + 1.0)}; });
  });
}
Tensor Tensor::expm1(Where at) const {
  return in_double(*this, at, [](const Tensor& x) {
    const Tensor d = x.detach(), u = d.exp(), less = u - 1.0;
    const Tensor plain = (u == 1.0) | (less == -1.0) | !u.isfinite();
    const Tensor value = mote::where(plain, mote::where(u == 1.0, d, less),
                                     less * (d / mote::where(plain, 1.0, u.log())));
    return with_element_gradient(
        value, {x}, [x](const Tensor& g, const Tensor&) { return Tensors{g * x.exp()}; });
  });
}

Tensor Tensor::tan(Where at) const {
  return in_double(*this, at, [](const Tensor& x) { return x.sin() / x.cos(); });
}

namespace {

// Halves the angle twice, atan(x) = 2 atan(x / (1 + sqrt(1 + x^2))), then the series in x^2
// (|x| <= tan(pi/16) = 0.199 after 1/x for |x| > 1): 13 terms leave less than 1e-17.
Tensor atan_double(const Tensor& x) {
  const Tensor d = x.detach(), size = d.abs();
  const Tensor large = 1.0 < size;
  Tensor t = where(large, 1.0 / size, size);
  for (int i = 0; i < 2; ++i) t = t / (1.0 + (1.0 + t * t).sqrt());
  const Tensor z = t * t;
  Tensor series = z.full_like(1.0 / 25);
  for (int k = 11; k >= 0; --k) series = series * z + (k % 2 ? -1.0 : 1.0) / (2 * k + 1);
  const Tensor angle = series * t * 4.0;
  const Tensor positive = where(large, std::numbers::pi / 2 - angle, angle);
  const Tensor value = where(d < 0.0, -positive, where(d == 0.0, d, positive));
  return with_element_gradient(
      value, {x}, [x](const Tensor& g, const Tensor&) { return Tensors{g / (1.0 + x * x)}; });
}

Tensor asin_double(const Tensor& x) {
  const Tensor d = x.detach();
  const Tensor value = atan_double(d / ((1.0 - d) * (1.0 + d)).sqrt());
  return with_element_gradient(value, {x}, [x](const Tensor& g, const Tensor&) {
    return Tensors{g / ((1.0 - x) * (1.0 + x)).sqrt()};
  });
}

}  // namespace

Tensor Tensor::atan(Where at) const { return in_double(*this, at, atan_double); }
Tensor Tensor::asin(Where at) const { return in_double(*this, at, asin_double); }
Tensor Tensor::acos(Where at) const {
  return in_double(*this, at,
                   [](const Tensor& x) { return std::numbers::pi / 2 - asin_double(x); });
}
namespace {

// An odd function of its value at |x|: -0.0 and NaN stay.
Tensor with_sign_of(const Tensor& x, const Tensor& size) {
  return where(x < 0.0, -size, where(x == 0.0, x, size));
}

// log(2x) where x^2 would overflow, else log1p(f(x)).
Tensor log_of_twice(const Tensor& x, const Tensor& less_one) {
  return where(0x1p28 < x, x.log() + std::numbers::ln2, less_one.log1p());
}

// (E + E / (E + 1)) / 2 with E = e^|x| - 1 is exact for small x; e^x / 2 in two steps for large x.
Tensor sinh_double(const Tensor& x) {
  const Tensor d = x.detach(), a = d.abs(), e = a.expm1(), root = (a * 0.5).exp();
  const Tensor size = where(a < 40.0, (e + e / (e + 1.0)) * 0.5, root * 0.5 * root);
  return with_element_gradient(with_sign_of(d, size), {x}, [x](const Tensor& g, const Tensor&) {
    return Tensors{g * x.cosh()};
  });
}

Tensor cosh_double(const Tensor& x) {
  const Tensor d = x.detach(), a = d.abs(), root = (a * 0.5).exp();
  const Tensor value = where(a < 40.0, (a.exp() + (-a).exp()) * 0.5, root * 0.5 * root);
  return with_element_gradient(
      value, {x}, [x](const Tensor& g, const Tensor&) { return Tensors{g * x.sinh()}; });
}

Tensor asinh_double(const Tensor& x) {
  const Tensor d = x.detach(), a = d.abs();
  const Tensor value = with_sign_of(d, log_of_twice(a, a + a * a / (1.0 + (a * a + 1.0).sqrt())));
  return with_element_gradient(value, {x}, [x](const Tensor& g, const Tensor&) {
    return Tensors{g / (x * x + 1.0).sqrt()};
  });
}

Tensor acosh_double(const Tensor& x) {
  const Tensor d = x.detach(), over = d - 1.0;
  const Tensor value =
      mote::where(d < 1.0, NAN, log_of_twice(d, over + (over * 2.0 + over * over).sqrt()));
  return with_element_gradient(value, {x}, [x](const Tensor& g, const Tensor&) {
    return Tensors{g / ((x - 1.0).sqrt() * (x + 1.0).sqrt())};
  });
}

}  // namespace

Tensor Tensor::sinh(Where at) const { return in_double(*this, at, sinh_double); }
Tensor Tensor::cosh(Where at) const { return in_double(*this, at, cosh_double); }
Tensor Tensor::asinh(Where at) const { return in_double(*this, at, asinh_double); }
Tensor Tensor::acosh(Where at) const { return in_double(*this, at, acosh_double); }
Tensor Tensor::atanh(Where at) const {
  return in_double(*this, at, [](const Tensor& x) { return (2.0 * x / (1.0 - x)).log1p() * 0.5; });
}

Tensor Tensor::trunc(Where at) const {
  return is_float(dtype()) ? apply(Op::trunc, *this, at) : *this;
}
Tensor Tensor::floor(Where at) const {
  const Tensor t = trunc(at);
  return is_float(dtype()) ? mote::where(*this < t, t - 1.0, t) : t;
}
Tensor Tensor::ceil(Where at) const {
  const Tensor t = trunc(at);
  return is_float(dtype()) ? mote::where(t < *this, t + 1.0, t) : t;
}
Tensor Tensor::round(Where at) const {
  if (!is_float(dtype())) return *this;
  const Tensor t = trunc(at), rest = (*this - t).abs(at), half = t * 0.5;
  const Tensor odd = half.trunc(at) != half;
  return mote::where((0.5 < rest) | ((rest == 0.5) & odd), t + sign(at), t);
}

Tensor Tensor::logical_not(Where at) const { return apply(Op::not_, cast(DType::boolean, at), at); }
Tensor Tensor::bitwise_not(Where at) const {
  expect_integral("bitwise_not", dtype(), at);
  return apply(Op::not_, *this, at);
}
Tensor Tensor::isnan(Where at) const {
  expect_defined("isnan", *this, at);
  return *this != *this;
}
Tensor Tensor::isinf(Where at) const {
  if (!is_float(dtype())) return zeros_like(at).cast(DType::boolean, at);
  return (*this == INFINITY) | (*this == -INFINITY);
}
Tensor Tensor::isfinite(Where at) const { return !(isinf(at) | isnan(at)); }

// Compared, not by max and min: on its bounds the gradient is 1, and NaN stays.
Tensor Tensor::clip(std::optional<double> low, std::optional<double> high, Where at) const {
  if (!low && !high) fail<ValueError>("clip", "no bound is given", at, "give low, high or both");
  const bool whole = (!low || *low == std::floor(*low)) && (!high || *high == std::floor(*high));
  if (!is_float(dtype()) && !whole)
    fail<DTypeError>("clip", "a bound of an integer tensor is no whole number", at,
                     "cast the tensor");
  Tensor out = *this;
  if (low) out = mote::where(out < out.full_like(*low, at), out.full_like(*low, at), out);
  if (high) out = mote::where(out.full_like(*high, at) < out, out.full_like(*high, at), out);
  return out;
}

// ---- activations

Tensor Tensor::relu(Where at) const {
  expect_defined("relu", *this, at);
  const Tensor x = detach(at);
  const Tensor value = mote::where(x <= 0, x.zeros_like(at), x);
  if (!is_float(dtype())) return value;
  return with_element_gradient(value, {*this}, [](const Tensor& g, const Tensor& out) {
    return Tensors{mote::where(out <= 0, g.zeros_like(), g)};
  });
}

// 1 / (1 + e^-x), by e to a negative power only: it never overflows.
Tensor Tensor::sigmoid(Where at) const {
  const Tensor x = as_float(*this, at), d = x.detach(at);
  const Tensor e = (-d.abs(at)).exp(at);
  const Tensor value = mote::where(d < 0.0, e, e.ones_like(at)) / (1.0 + e);
  return with_element_gradient(
      value, {x}, [](const Tensor& g, const Tensor& s) { return Tensors{g * s * (1.0 - s)}; });
}

Tensor Tensor::relu6(Where at) const { return clip(0.0, 6.0, at); }
Tensor Tensor::silu(Where at) const { return *this * sigmoid(at); }
Tensor Tensor::quick_gelu(Where at) const { return *this * (*this * 1.702).sigmoid(at); }
Tensor Tensor::gelu(bool by_tanh, Where at) const {
  const Tensor x = as_float(*this, at);
  if (!by_tanh) return x * 0.5 * ((x * (1 / std::numbers::sqrt2)).erf(at) + 1.0);
  return x * 0.5 * (((x + x * x * x * 0.044715) * std::sqrt(2 / std::numbers::pi)).tanh(at) + 1.0);
}
Tensor Tensor::leaky_relu(double slope, Where) const {
  return mote::where(*this < 0, *this * slope, *this);
}
Tensor Tensor::elu(double alpha, Where at) const {
  return mote::where(0 < *this, *this, minimum(0, at).expm1(at) * alpha);
}
Tensor Tensor::celu(double alpha, Where at) const {
  return mote::where(0 < *this, *this, (minimum(0, at) / alpha).expm1(at) * alpha);
}
Tensor Tensor::selu(Where at) const { return elu(1.6732632423543772, at) * 1.0507009873554805; }
Tensor Tensor::softplus(double beta, Where at) const {
  const Tensor x = as_float(*this, at);  // max(x, 0) + log(1 + e^-|beta x|) / beta
  return x.relu(at) + (-(x * beta).abs(at)).exp(at).log1p(at) / beta;
}
Tensor Tensor::softsign(Where at) const { return *this / (1.0 + abs(at)); }
Tensor Tensor::mish(Where at) const { return *this * softplus(1.0, at).tanh(at); }
Tensor Tensor::hardsigmoid(Where at) const { return (*this + 3.0).clip(0.0, 6.0, at) / 6.0; }
Tensor Tensor::hardswish(Where at) const { return *this * hardsigmoid(at); }
Tensor Tensor::hardtanh(double low, double high, Where at) const { return clip(low, high, at); }
Tensor Tensor::logsigmoid(Where at) const { return -((-*this).softplus(1.0, at)); }

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
Tensor long_division(const Tensor& a, const Tensor& b, bool narrow) {
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

Tensor float_fmod(const Tensor& a, const Tensor& b, bool narrow) {
  return with_element_gradient(long_division(a.detach(), b.detach(), narrow), {a, b},
                               [a, b](const Tensor& g, const Tensor& rest) {
                                 return Tensors{g, -(g * ((a - rest) / b).round())};
                               });
}

Tensor float_remainder(const Tensor& a, const Tensor& b, bool narrow) {
  const Tensor rest = float_fmod(a, b, narrow);
  const Tensor wrong = (rest != 0.0) & ((rest < 0.0) ^ (b < 0.0));
  return where(wrong, rest + b, rest);
}

// By the remainder: a / b may round up to a whole number.
Tensor float_floor_divide(const Tensor& a, const Tensor& b, bool narrow) {
  const Tensor plain = (a / b).trunc();
  const Tensor value = ((a - float_remainder(a, b, narrow)) / b).round();
  const Tensor minus = where((a != 0.0) & ((a < 0.0) ^ (b < 0.0)), -1.0, 0.0).cast(a.dtype());
  return where(b.isinf() & a.isfinite(), minus,
               where((b == 0.0) | !plain.isfinite(), plain, value));
}

// f also learns whether its operands were narrower.
template <class F>
Tensor both_in_double(const Tensor& a, const Tensor& b, F f) {
  if (a.dtype() == DType::float64) return f(a, b, false);
  return f(a.cast(DType::float64), b.cast(DType::float64), true).cast(a.dtype());
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

Tensor float_pow(const Tensor& a, const Tensor& b, bool) {  // float64
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
  if (rounding == Rounding::none) return Operand(*this, at) / b;
  if (rounding == Rounding::floor) return floor_divide(b, at);
  auto [x, y] = lift("div", Operand(*this, at), b);
  if (is_float(x->dtype)) return wrap(elementwise(Op::trunc, {elementwise(Op::div, {x, y})}));
  return wrap(elementwise(Op::tdiv, {x, y}));
}

Tensor Tensor::floor_divide(const Operand& b, Where at) const {
  auto [x, y] = lift("floor_divide", Operand(*this, at), b);
  if (!is_float(x->dtype)) return wrap(elementwise(Op::idiv, {x, y}));
  return both_in_double(wrap(x), wrap(y), float_floor_divide);
}

Tensor Tensor::remainder(const Operand& b, Where at) const {
  auto [x, y] = lift("remainder", Operand(*this, at), b);
  if (!is_float(x->dtype)) return wrap(elementwise(Op::mod, {x, y}));
  return both_in_double(wrap(x), wrap(y), float_remainder);
}

Tensor Tensor::fmod(const Operand& b, Where at) const {
  auto [x, y] = lift("fmod", Operand(*this, at), b);
  if (!is_float(x->dtype)) return wrap(elementwise(Op::tmod, {x, y}));
  return both_in_double(wrap(x), wrap(y), float_fmod);
}

Tensor Tensor::pow(const Operand& exponent, Where at) const {
  auto [x, y] = lift("pow", Operand(*this, at), exponent);
  const Tensor a = wrap(x), b = wrap(y);
  if (!is_float(a.dtype())) return integer_pow(a, b);
  const double n = exponent.real();
  if (exponent.number() != Operand::Number::none) {
    if (n != 0 && n == std::floor(n) && std::abs(n) <= 64)
      return whole_pow(a, static_cast<std::int64_t>(n));
    if (n == 0.5) return a.sqrt(at);
  }
  const Tensor value = both_in_double(a.detach(at), b.detach(at), float_pow);
  return with_element_gradient(value, {a, b}, [a, b](const Tensor& g, const Tensor& out) {
    const Tensor by_a = mote::where(b == 0.0, g.zeros_like(), g * b * a.pow(b - 1.0));
    const Tensor by_b = mote::where((a == 0.0) & (0.0 <= b), g.zeros_like(), g * out * a.log());
    return Tensors{by_a, by_b};
  });
}

Tensor Tensor::lerp(const Tensor& end, const Operand& weight, Where at) const {
  const OuterPlace outer(at);
  return *this + (Operand(end, at) - *this) * weight;
}

Tensor Tensor::copysign(const Operand& b, Where at) const {
  auto [x, y] = lift("copysign", Operand(as_float(*this, at), at), b);
  const Tensor size = wrap(x).abs(at);
  return mote::where(is_negative(wrap(y)), -size, size);
}

Tensor Tensor::logaddexp(const Operand& b, Where at) const {
  auto [x, y] = lift("logaddexp", Operand(as_float(*this, at), at), b);
  const Tensor a = wrap(x), c = wrap(y), top = a.maximum(c, at).detach(at);
  const Tensor base = mote::where(top.isinf(at), top.zeros_like(at), top);
  return ((a - base).exp(at) + (c - base).exp(at)).log(at) + base;
}

Tensor Tensor::isclose(const Tensor& b, double rtol, double atol, bool equal_nan, Where at) const {
  expect_defined("isclose", *this, at);
  expect_defined("isclose", b, at);
  common_shape("isclose", lazy()->shape, b.lazy()->shape, at);
  const OuterPlace outer(at);
  const Tensor near = (*this - b).abs(at) <= (b.abs(at) * rtol + atol);
  const Tensor equal = (*this == b) | (near & isfinite(at) & b.isfinite(at));
  return equal_nan ? equal | (isnan(at) & b.isnan(at)) : equal;
}

}  // namespace mote
