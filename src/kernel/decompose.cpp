// decompose: what no machine has, in what every machine has. Walks an AST once, sources first.
//
// Small floats (float16, bfloat16, float8) are computed as float32 and rounded after each
// operation: while the walk goes on, such a value is represented by a float32 expression that holds
// it exactly. The functions of mathematics are in decompose_math.cpp.
#include "kernel/decompose.h"

#include <cmath>
#include <unordered_map>

#include "base/text.h"
#include "ir/printer.h"
#include "kernel/decompose_math.h"
#include "mote/error.h"
#include "symbolic/int.h"

namespace mote {
namespace {

bool is_small_float(DType t) { return is_float(t) && bits_of(t) < 32; }
DType computed(DType t) { return is_small_float(t) ? DType::float32 : t; }

Expr number(DType t, double v) { return constant(Scalar(t, v)); }
Expr op2(Op op, const Expr& a, const Expr& b) { return binary(op, a, b); }
Expr shifted(Op op, const Expr& a, int by) { return binary(op, a, constant(Scalar(a->dtype, by))); }

// ---- small floats

struct SmallFloat {
  int mantissa, bias;
  double greatest;
  bool has_infinity;
  DType storage;
};

SmallFloat small(DType t) {
  switch (t) {
    case DType::bfloat16: return {7, 127, 0, true, DType::uint16};
    case DType::float8_e4m3: return {3, 7, 448, false, DType::uint8};
    default: return {2, 15, 57344, true, DType::uint8};
  }
}

// A float32 rounded to the small type, ties to even, as a float32.
Expr rounded(const Expr& x, DType t) {
  if (t == DType::float16) return cast(cast(x, DType::float16), DType::float32);
  const SmallFloat f = small(t);
  const int cut = 23 - f.mantissa;
  const Expr u = bitcast(x, DType::uint32);
  const Expr odd = op2(Op::and_, shifted(Op::shr, u, cut), constant(Scalar(DType::uint32, 1)));
  const Expr up = u + odd + constant(Scalar(DType::uint32, (std::int64_t{1} << (cut - 1)) - 1));
  const Expr kept =
      op2(Op::and_, up, constant(Scalar(DType::uint32, ~((std::int64_t{1} << cut) - 1))));
  Expr y = bitcast(kept, DType::float32);
  const Expr nan = not_(eq(x, x));
  if (t == DType::bfloat16) return where(nan, x, y);
  // Below the least normal number the distance between numbers stays: adding and taking away a
  // large number rounds to it.
  const double unit = std::ldexp(1, 1 - f.bias - f.mantissa), least = std::ldexp(1, 1 - f.bias);
  const Expr size = where(lt(x, number(float32, 0)), -x, x);
  const Expr large = number(float32, unit * 12582912.0);  // 1.5 * 2^23 units
  const Expr magnitude = where(lt(size, number(float32, least)), (size + large) + -large,
                               where(lt(y, number(float32, 0)), -y, y));
  const Expr over = lt(number(float32, f.greatest), magnitude);
  const Expr top = number(float32, f.has_infinity ? INFINITY : NAN);
  const Expr sign = op2(Op::and_, u, constant(Scalar(DType::uint32, std::int64_t{1} << 31)));
  const Expr with_sign = bitcast(
      op2(Op::or_, bitcast(where(over, top, magnitude), DType::uint32), sign), DType::float32);
  return where(nan, x, with_sign);
}

// The stored code of a rounded value, and back.
Expr encoded(const Expr& x, DType t) {
  const SmallFloat f = small(t);
  const Expr u = bitcast(x, DType::uint32);
  if (t == DType::bfloat16) return cast(shifted(Op::shr, u, 16), DType::uint16);
  const int cut = 23 - f.mantissa;
  const auto c32 = [](std::int64_t v) { return constant(Scalar(DType::uint32, v)); };
  const Expr size = op2(Op::and_, u, c32(0x7fffffff));
  const Expr normal =
      shifted(Op::shr, size, cut) + c32(-(std::int64_t{127 - f.bias} << f.mantissa));
  const double unit = std::ldexp(1, 1 - f.bias - f.mantissa);
  const Expr subnormal =
      cast(bitcast(size, DType::float32) * number(float32, 1 / unit), DType::uint32);
  const Expr is_subnormal =
      lt(bitcast(size, DType::float32), number(float32, std::ldexp(1, 1 - f.bias)));
  const std::int64_t last = f.has_infinity ? 0x7c : 0x7f;
  Expr code = where(is_subnormal, where(is_subnormal, subnormal, c32(0)), normal);
  if (f.has_infinity)
    code = where(eq(bitcast(size, DType::float32), number(float32, INFINITY)), c32(last), code);
  code = where(not_(eq(x, x)), c32(f.has_infinity ? 0x7e : 0x7f), code);
  return cast(op2(Op::or_, code, op2(Op::and_, shifted(Op::shr, u, 24), c32(0x80))), DType::uint8);
}

Expr decoded(const Expr& code, DType t) {
  const SmallFloat f = small(t);
  const Expr u = cast(code, DType::uint32);
  if (t == DType::bfloat16) return bitcast(shifted(Op::shl, u, 16), DType::float32);
  const int cut = 23 - f.mantissa;
  const auto c32 = [](std::int64_t v) { return constant(Scalar(DType::uint32, v)); };
  const Expr size = op2(Op::and_, u, c32(0x7f));
  const Expr normal =
      bitcast(shifted(Op::shl, size, cut) + c32(std::int64_t{127 - f.bias} << 23), DType::float32);
  const double unit = std::ldexp(1, 1 - f.bias - f.mantissa);
  const Expr subnormal = cast(cast(size, DType::int32), DType::float32) * number(float32, unit);
  Expr v = where(lt(size, c32(std::int64_t{1} << f.mantissa)), subnormal, normal);
  if (f.has_infinity) {
    v = where(eq(size, c32(0x7c)), number(float32, INFINITY), v);
    v = where(lt(c32(0x7c), size), number(float32, NAN), v);
  } else {
    v = where(eq(size, c32(0x7f)), number(float32, NAN), v);
  }
  const Expr sign = shifted(Op::shl, op2(Op::and_, u, c32(0x80)), 24);
  return bitcast(op2(Op::or_, bitcast(v, DType::uint32), sign), DType::float32);
}

// ---- integers

Expr zero(const Expr& e) { return constant(Scalar(e->dtype, 0)); }

// Division by a divisor that is never 0 and never -1 where the dividend is the least number.
Expr divided(Op op, const Expr& a, const Expr& b) {
  const bool may_be_zero =
      b->dtype == DType::uint64 ? !(is_constant(b) && b->arg != 0) : b->lo <= 0 && b->hi >= 0;
  const std::int64_t least = is_signed(a->dtype) ? INT64_MIN >> (64 - bits_of(a->dtype)) : 0;
  const bool may_wrap = is_signed(a->dtype) && a->lo == least && b->lo <= -1 && b->hi >= -1;
  Expr bad = may_be_zero ? eq(b, zero(b)) : never();
  const Expr minus_one = constant(Scalar(b->dtype, std::int64_t{-1}));
  const Expr wraps = may_wrap ? eq(b, minus_one) : never();
  Expr guard = bad == never() ? wraps : wraps == never() ? bad : or_(bad, wraps);
  const Expr safe = guard == never() ? b : where(guard, constant(Scalar(b->dtype, 1)), b);
  Expr out = op2(op, a, safe);
  if (wraps != never()) out = where(wraps, op == Op::tdiv ? -a : zero(a), out);
  if (bad != never()) out = where(bad, zero(a), out);
  return out;
}

Expr floor_divided(Op op, const Expr& a, const Expr& b) {
  const bool plain = !is_signed(a->dtype) || (a->lo >= 0 && b->lo >= 0);
  if (plain) return divided(op == Op::idiv ? Op::tdiv : Op::tmod, a, b);
  const Expr rest = divided(Op::tmod, a, b);
  const Expr wrong = b->lo > 0 ? lt(rest, zero(rest))
                               : and_(not_(eq(rest, zero(rest))),
                                      op2(Op::xor_, lt(rest, zero(rest)), lt(b, zero(b))));
  if (op == Op::mod) return where(wrong, rest + b, rest);
  const Expr quotient = divided(Op::tdiv, a, b);
  return where(wrong, quotient + constant(Scalar(a->dtype, std::int64_t{-1})), quotient);
}

Expr guarded_shift(Op op, const Expr& a, const Expr& by) {
  const int width = bits_of(a->dtype);
  if (is_constant(by)) {
    const std::int64_t n = by->dtype == DType::uint64 && by->arg < 0 ? 64 : by->arg;
    if (n >= 0 && n < width) return op2(op, a, constant(Scalar(a->dtype, n)));
    return op == Op::shr && is_signed(a->dtype) ? op2(op, a, constant(Scalar(a->dtype, width - 1)))
                                                : zero(a);
  }
  const Expr wide = cast(by, is_unsigned(by->dtype) ? DType::uint64 : DType::int64);
  const auto limit = [&](std::int64_t v) { return constant(Scalar(wide->dtype, v)); };
  const Expr inside = is_unsigned(by->dtype)
                          ? lt(wide, limit(width))
                          : and_(not_(lt(wide, limit(0))), lt(wide, limit(width)));
  const bool fills = op == Op::shr && is_signed(a->dtype);
  const Expr amount = cast(where(inside, wide, limit(fills ? width - 1 : 0)), a->dtype);
  const Expr shifted_value = op2(op, a, amount);
  return fills ? shifted_value : where(inside, shifted_value, zero(a));
}

// ---- casts

// Toward zero; 8 and 16 bits wrap below 2^31; everything else that does not fit is 0.
Expr float_to_integer(const Expr& x, DType t) {
  const DType through = bits_of(t) <= 16 ? DType::int32 : t;
  const double limit =
      std::ldexp(1, is_unsigned(through) ? bits_of(through) : bits_of(through) - 1);
  const Expr whole = unary(Op::trunc, x);
  const Expr low = is_unsigned(through) ? number(x->dtype, 0) : number(x->dtype, -limit);
  Expr fits = and_(lt(whole, number(x->dtype, limit)), not_(lt(whole, low)));
  if (bits_of(t) <= 16)
    fits = and_(lt(whole, number(x->dtype, 0x1p31)), lt(number(x->dtype, -0x1p31), whole));
  const Expr safe = where(fits, whole, number(x->dtype, 0));
  return cast(cast(safe, through), t);
}

Expr converted(const Expr& x, DType from, DType to) {
  if (to == DType::boolean) return not_(eq(x, zero(x)));
  if (is_float(from) && !is_float(to)) {
    return to == DType::index ? cast(float_to_integer(x, DType::int64), to)
                              : float_to_integer(x, to);
  }
  if (is_small_float(to)) {
    // A wide integer goes through float64, or it would be rounded twice.
    const bool wide = !is_float(from) && bits_of(from) > 16;
    Expr y = x;
    if (from == DType::float64 || wide) {
      const Expr d = cast(x, DType::float64);
      if (to == DType::float16) return cast(cast(d, DType::float16), DType::float32);
      // Round to odd in float32 keeps what the second rounding needs.
      const Expr f = cast(d, DType::float32);
      const Expr back = cast(f, DType::float64);
      const Expr inexact = and_(not_(eq(back, d)), eq(f, f));
      const Expr u = bitcast(f, DType::uint32);
      const Expr size_f = where(lt(back, number(float64, 0)), -back, back),
                 size_d = where(lt(d, number(float64, 0)), -d, d);
      const Expr down =
          where(lt(size_d, size_f), u + constant(Scalar(DType::uint32, std::int64_t{-1})), u);
      y = bitcast(where(inexact, op2(Op::or_, down, constant(Scalar(DType::uint32, 1))), u),
                  DType::float32);
    } else {
      y = cast(x, DType::float32);
    }
    return rounded(y, to);
  }
  return cast(x, computed(to));
}

class Decomposer {
 public:
  Expr run(const Expr& root) {
    for (const Expr& e : topological(root)) done_[e] = made(e);
    return done_.at(root);
  }

 private:
  const Expr& of(const Expr& e) const { return done_.at(e); }

  Expr slot_of(const Expr& s) const {
    const bool coded = is_small_float(s->dtype) && s->dtype != DType::float16;
    return coded ? slot(static_cast<int>(s->arg), small(s->dtype).storage, s->arg2) : s;
  }

  Expr made(const Expr& e) {
    const DType t = e->dtype;
    switch (e->op) {
      case Op::constant:
        return is_small_float(t) ? constant(cast(scalar_of(e), DType::float32)) : e;
      case Op::slot: return e;
      case Op::load: return loaded(e);
      case Op::store: return stored(e);
      case Op::cast: return converted(of(e->src[0]), e->src[0]->dtype, t);
      case Op::bitcast: return reinterpreted(e);
      case Op::reduce:
      case Op::scan: {
        const Expr total = intern(e->op, computed(t), sources(e), e->arg);
        return is_small_float(t) && e->op == Op::reduce ? rounded(total, t) : total;
      }
      case Op::stage:
      case Op::stage_at: return intern(e->op, computed(t), sources(e), e->arg, e->arg2);
      default: break;
    }
    if (!is_elementwise(e->op)) return rebuild(e, sources(e));
    const Expr out = machine(e);
    return is_small_float(t) && e->op != Op::where && e->op != Op::neg && e->op != Op::max &&
                   e->op != Op::min
               ? rounded(out, t)
               : out;
  }

  std::vector<Expr> sources(const Expr& e) const {
    std::vector<Expr> out;
    for (const Expr& s : e->src) out.push_back(of(s));
    return out;
  }

  Expr loaded(const Expr& e) {
    std::vector<Expr> src = sources(e);
    src[0] = slot_of(e->src[0]);
    const Expr raw = intern(Op::load, src[0]->dtype, src);
    if (!is_small_float(e->dtype)) return raw;
    return e->dtype == DType::float16 ? cast(raw, DType::float32) : decoded(raw, e->dtype);
  }

  Expr stored(const Expr& e) {
    std::vector<Expr> src = sources(e);
    src[0] = slot_of(e->src[0]);
    const DType t = e->dtype;
    if (is_small_float(t)) {
      if (static_cast<Op>(e->arg) != Op::store)
        throw InternalError(
            "decompose: a scatter that accumulates small floats; cast them to float32 first");
      src[2] = t == DType::float16 ? cast(src[2], DType::float16) : encoded(src[2], t);
    }
    return intern(Op::store, src[0]->dtype, src, e->arg);
  }

  Expr reinterpreted(const Expr& e) {
    const DType from = e->src[0]->dtype, to = e->dtype;
    Expr x = of(e->src[0]);
    if (is_small_float(from))
      x = from == DType::float16 ? bitcast(cast(x, DType::float16), DType::uint16)
                                 : encoded(x, from);
    if (!is_small_float(to)) return bitcast(x, to);
    return to == DType::float16 ? cast(bitcast(x, DType::float16), DType::float32)
                                : decoded(bitcast(x, small(to).storage), to);
  }

  Expr machine(const Expr& e) {
    const std::vector<Expr> s = sources(e);
    switch (e->op) {
      case Op::idiv:
      case Op::mod: return floor_divided(e->op, s[0], s[1]);
      case Op::tdiv:
      case Op::tmod: return divided(e->op, s[0], s[1]);
      case Op::shl:
      case Op::shr: return guarded_shift(e->op, s[0], s[1]);
      case Op::exp:
      case Op::log:
      case Op::sin:
      case Op::cos:
      case Op::tanh:
      case Op::erf: return math_function(e->op, s[0]);
      case Op::lt:
        if (e->src[0]->dtype == DType::boolean) return and_(not_(s[0]), s[1]);
        return lt(s[0], s[1]);
      case Op::eq:
        if (e->src[0]->dtype == DType::boolean) return not_(op2(Op::xor_, s[0], s[1]));
        return eq(s[0], s[1]);
      case Op::max:
        if (e->dtype == DType::boolean) return or_(s[0], s[1]);
        break;
      case Op::min:
        if (e->dtype == DType::boolean) return and_(s[0], s[1]);
        break;
      case Op::mul:
        if (e->dtype == DType::boolean) return and_(s[0], s[1]);
        break;
      case Op::add:
        if (e->dtype == DType::boolean) return or_(s[0], s[1]);
        break;
      default: break;
    }
    if (e->dtype == DType::index || (!s.empty() && s[0]->dtype == DType::index))
      return rebuild(e, s);
    return intern(e->op, e->op == Op::lt || e->op == Op::eq ? DType::boolean : computed(e->dtype),
                  s);
  }

  std::unordered_map<Expr, Expr> done_;
};

}  // namespace

Expr decompose(const Expr& e, const Target&) { return Decomposer().run(e); }

}  // namespace mote
