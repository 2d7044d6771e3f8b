// One elementwise op on values, as docs/semantics.md says: what constants fold by and what the
// interpreters compute with.
#include <bit>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "ir/expr.h"
#include "mote/error.h"

namespace mote {
namespace {

std::int64_t trunc_div(std::int64_t a, std::int64_t b) {
  if (b == 0) return 0;
  return b == -1 ? static_cast<std::int64_t>(-static_cast<std::uint64_t>(a)) : a / b;
}

Scalar divide_unsigned(Op op, DType t, std::uint64_t a, std::uint64_t b) {
  if (b == 0) return Scalar(t, std::uint64_t{0});
  return Scalar(t, op == Op::idiv || op == Op::tdiv ? a / b : a % b);
}

std::int64_t shift(Op op, DType t, std::int64_t a, std::int64_t by) {
  const bool out = by < 0 || by >= bits_of(t);
  if (op == Op::shl)
    return out ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) << by);
  if (t == DType::uint64)
    return out ? 0 : static_cast<std::int64_t>(static_cast<std::uint64_t>(a) >> by);
  return a >> (out ? 63 : by);
}

Scalar integer_op(Op op, DType t, std::span<const Scalar> v) {
  const std::int64_t a = v[0].as_int(), b = v.size() > 1 ? v[1].as_int() : 0;
  const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
  const bool big = t == DType::uint64;
  switch (op) {
    case Op::neg: return Scalar(t, static_cast<std::int64_t>(-ua));
    case Op::not_: return t == DType::boolean ? Scalar(t, a == 0) : Scalar(t, ~a);
    case Op::mul: return Scalar(t, static_cast<std::int64_t>(ua * ub));
    case Op::idiv: return big ? divide_unsigned(op, t, ua, ub) : Scalar(t, floor_div(a, b));
    case Op::mod:
      if (big) return divide_unsigned(op, t, ua, ub);
      return Scalar(t, b == 0 ? 0
                              : static_cast<std::int64_t>(
                                    ua - static_cast<std::uint64_t>(floor_div(a, b)) * ub));
    case Op::tdiv: return big ? divide_unsigned(op, t, ua, ub) : Scalar(t, trunc_div(a, b));
    case Op::tmod:
      if (big) return divide_unsigned(op, t, ua, ub);
      return Scalar(t, b == 0 || b == -1 ? std::int64_t{0} : a % b);
    case Op::max: return (big ? ua > ub : a > b) ? v[0] : v[1];
    case Op::min: return (big ? ua < ub : a < b) ? v[0] : v[1];
    case Op::and_: return Scalar(t, a & b);
    case Op::or_: return Scalar(t, a | b);
    case Op::xor_: return Scalar(t, a ^ b);
    case Op::shl:
    case Op::shr: return Scalar(t, shift(op, t, a, b));
    default: break;
  }
  throw InternalError(
      cat("evaluate: ", std::string(name_of(op)), " is not for ", std::string(name_of(t))));
}

double float_max(double a, double b) { return a > b || std::isnan(a) ? a : b; }
double float_min(double a, double b) { return a < b || std::isnan(a) ? a : b; }

// In double, rounded once by the caller's Scalar: exact for float32's + * / and sqrt.
double float_op(Op op, std::span<const Scalar> v) {
  const double a = v[0].as_double(), b = v.size() > 1 ? v[1].as_double() : 0;
  switch (op) {
    case Op::neg: return -a;
    case Op::sqrt: return std::sqrt(a);
    case Op::exp: return std::exp(a);
    case Op::log: return std::log(a);
    case Op::sin: return std::sin(a);
    case Op::cos: return std::cos(a);
    case Op::tanh: return std::tanh(a);
    case Op::erf: return std::erf(a);
    case Op::trunc: return std::trunc(a);
    case Op::mul: return a * b;
    case Op::div: return a / b;
    case Op::max: return float_max(a, b);
    case Op::min: return float_min(a, b);
    default: break;
  }
  throw InternalError(cat("evaluate: ", std::string(name_of(op)), " is not for floats"));
}

bool compare(Op op, const Scalar& a, const Scalar& b) {
  if (is_float(a.dtype))
    return op == Op::lt ? a.as_double() < b.as_double() : a.as_double() == b.as_double();
  if (a.dtype == DType::uint64) return op == Op::lt ? a.bits < b.bits : a.bits == b.bits;
  return op == Op::lt ? a.as_int() < b.as_int() : a.as_int() == b.as_int();
}

Scalar sum(DType t, std::span<const Scalar> v) {
  if (is_float(t)) return Scalar(t, v[0].as_double() + v[1].as_double());
  std::uint64_t total = 0;
  for (const Scalar& s : v) total += static_cast<std::uint64_t>(s.as_int());
  return Scalar(t, static_cast<std::int64_t>(total));
}

}  // namespace

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  const std::int64_t q = trunc_div(a, b);
  return b != 0 && b != -1 && a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;
}

Scalar evaluate(Op op, DType t, std::span<const Scalar> v) {
  switch (op) {
    case Op::where: return v[0].as_bool() ? v[1] : v[2];
    case Op::cast: return cast(v[0], t);
    case Op::bitcast: return bitcast(v[0], t);
    case Op::lt:
    case Op::eq: return Scalar(DType::boolean, compare(op, v[0], v[1]));
    case Op::add: return sum(t, v);
    default: return is_float(t) ? Scalar(t, float_op(op, v)) : integer_op(op, t, v);
  }
}

bool accumulates(Op op) {
  return op == Op::add || op == Op::mul || op == Op::max || op == Op::min || op == Op::and_ ||
         op == Op::or_ || op == Op::xor_;
}

Scalar identity_of(Op op, DType t) {
  switch (op) {
    case Op::add:
    case Op::or_:
    case Op::xor_: return Scalar(t, 0);
    case Op::mul: return Scalar(t, 1);
    case Op::and_: return Scalar(t, std::int64_t{-1});
    case Op::max:
    case Op::min: break;
    default: throw InternalError(cat("reduce: ", std::string(name_of(op)), " has no identity"));
  }
  const bool least = op == Op::max;
  const double most = t == DType::float8_e4m3 ? 448 : INFINITY;  // e4m3 has no infinity
  if (is_float(t)) return Scalar(t, least ? -most : most);
  if (t == DType::boolean) return Scalar(t, !least);
  if (is_unsigned(t)) return Scalar(t, least ? std::int64_t{0} : std::int64_t{-1});
  const int shift = 64 - bits_of(t);
  return Scalar(t, (least ? std::numeric_limits<std::int64_t>::min()
                          : std::numeric_limits<std::int64_t>::max()) >>
                       shift);
}

}  // namespace mote
