#include "ir/bounds.h"

#include <algorithm>
#include <limits>

namespace mote {
namespace {

__extension__ typedef __int128 Wide;
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t greatest = std::numeric_limits<std::int64_t>::max();

struct WideBounds {
  Wide lo, hi;
};

bool is_integral(DType t) { return is_integer(t) || t == DType::boolean; }

// What does not fit in the dtype may have wrapped: then nothing is known.
Bounds clipped(WideBounds b, DType t) {
  const Bounds all = whole(t);
  if (b.lo < all.lo || b.hi > all.hi) return all;
  return {static_cast<std::int64_t>(b.lo), static_cast<std::int64_t>(b.hi)};
}

WideBounds hull(std::initializer_list<Wide> values) { return {std::min(values), std::max(values)}; }

Bounds divided(const Expr& a, const Expr& b, DType t, bool floors) {
  if (b->lo <= 0 && b->hi >= 0) {  // by 0 gives 0; else |quotient| <= |a|
    const Wide size =
        std::max(a->lo < 0 ? -Wide(a->lo) : Wide(a->lo), a->hi < 0 ? -Wide(a->hi) : Wide(a->hi));
    return clipped({-size - 1, size + 1}, t);
  }
  if (a->lo == least && b->lo <= -1) return whole(t);  // least / -1 wraps
  const auto q = [&](std::int64_t x, std::int64_t y) -> Wide {
    return floors ? floor_div(x, y) : x / y;
  };
  return clipped(hull({q(a->lo, b->lo), q(a->lo, b->hi), q(a->hi, b->lo), q(a->hi, b->hi)}), t);
}

// |remainder| < |divisor|, and not more than |a| where the signs agree.
Bounds remainder(const Expr& a, const Expr& b, DType t, bool floors) {
  const Wide size = std::max(Wide(b->hi), -Wide(b->lo)) - 1;
  if (size < 0) return {0, 0};  // b is 0
  Wide lo = -size, hi = size;
  if (floors) {
    if (b->lo >= 0) lo = 0;
    if (b->hi <= 0) hi = 0;
    if (b->lo > 0 && a->lo >= 0) hi = std::min(hi, Wide(a->hi));
    if (b->lo > 0 && a->lo >= 0 && a->hi < b->lo) lo = a->lo;
  } else {
    lo = a->lo >= 0 ? 0 : std::max(lo, Wide(a->lo));
    hi = a->hi <= 0 ? 0 : std::min(hi, Wide(a->hi));
  }
  return clipped({lo, hi}, t);
}

Bounds of_bits(Op op, const Expr& a, const Expr& b, DType t) {
  if (a->lo < 0 || b->lo < 0) return whole(t);
  if (op == Op::and_) return {0, std::min(a->hi, b->hi)};
  std::int64_t ones = 1;  // 2^k - 1 that covers both
  while (ones < std::max(a->hi, b->hi)) ones = ones * 2 + 1;
  return {0, std::min(ones, whole(t).hi)};
}

Bounds of_shift(Op op, const Expr& a, const Expr& b, DType t) {
  if (b->lo < 0 || b->hi > 62 || b->hi >= bits_of(t)) {
    return op == Op::shr && a->lo >= 0 ? Bounds{0, a->hi} : whole(t);
  }
  if (op == Op::shr) {
    return {std::min(a->lo >> b->lo, a->lo >> b->hi), std::max(a->hi >> b->lo, a->hi >> b->hi)};
  }
  const Wide least_factor = Wide(1) << b->lo, factor = Wide(1) << b->hi;
  return clipped(hull({a->lo * least_factor, a->lo * factor, a->hi * least_factor, a->hi * factor}),
                 t);
}

Bounds of_compare(Op op, const Expr& a, const Expr& b) {
  if (!is_integral(a->dtype) || a->dtype == DType::uint64) return {0, 1};
  if (op == Op::lt) {
    if (a->hi < b->lo) return {1, 1};
    return {0, a->lo >= b->hi || a == b ? 0 : 1};
  }
  if (a == b || (a->lo == a->hi && b->lo == b->hi && a->lo == b->lo)) return {1, 1};
  return {0, a->hi < b->lo || b->hi < a->lo ? 0 : 1};
}

Bounds of_reduce(Op op, const Expr& body, DType t) {
  if (op == Op::max || op == Op::min) {
    const Scalar empty = identity_of(op, t);  // an empty range gives the identity
    return {std::min(body->lo, empty.as_int()), std::max(body->hi, empty.as_int())};
  }
  return t == DType::boolean ? Bounds{0, 1} : whole(t);
}

}  // namespace

Bounds whole(DType t) {
  if (t == DType::boolean) return {0, 1};
  if (is_float(t)) return {0, 0};
  if (bits_of(t) == 64) return {least, greatest};  // uint64: its bits
  if (is_unsigned(t)) return {0, (std::int64_t{1} << bits_of(t)) - 1};
  return {-(std::int64_t{1} << (bits_of(t) - 1)), (std::int64_t{1} << (bits_of(t) - 1)) - 1};
}

Bounds bounds_of(Op op, DType t, std::span<const Expr> src, std::int64_t arg, std::int64_t arg2) {
  if (op == Op::lt || op == Op::eq) return of_compare(op, src[0], src[1]);
  if (!is_integral(t)) return {0, 0};
  if (op == Op::constant) return {arg, arg};
  if (t == DType::uint64) return whole(t);
  switch (op) {
    case Op::variable: return {arg, arg2};
    case Op::range: return {0, std::max<std::int64_t>(src[0]->hi, 1) - 1};
    case Op::neg: return clipped({-Wide(src[0]->hi), -Wide(src[0]->lo)}, t);
    case Op::not_: return t == DType::boolean ? Bounds{1 - src[0]->hi, 1 - src[0]->lo} : whole(t);
    case Op::cast:
      if (!is_integral(src[0]->dtype) || src[0]->dtype == DType::uint64) return whole(t);
      if (t == DType::boolean)
        return src[0]->lo > 0 || src[0]->hi < 0 ? Bounds{1, 1} : Bounds{0, 1};
      return clipped({src[0]->lo, src[0]->hi}, t);
    case Op::add: {
      WideBounds sum{0, 0};
      for (const Expr& s : src) {
        sum.lo += s->lo;
        sum.hi += s->hi;
      }
      return clipped(sum, t);
    }
    case Op::mul:
      return clipped(hull({Wide(src[0]->lo) * src[1]->lo, Wide(src[0]->lo) * src[1]->hi,
                           Wide(src[0]->hi) * src[1]->lo, Wide(src[0]->hi) * src[1]->hi}),
                     t);
    case Op::idiv: return divided(src[0], src[1], t, true);
    case Op::tdiv: return divided(src[0], src[1], t, false);
    case Op::mod: return remainder(src[0], src[1], t, true);
    case Op::tmod: return remainder(src[0], src[1], t, false);
    case Op::max: return {std::max(src[0]->lo, src[1]->lo), std::max(src[0]->hi, src[1]->hi)};
    case Op::min: return {std::min(src[0]->lo, src[1]->lo), std::min(src[0]->hi, src[1]->hi)};
    case Op::and_:
    case Op::or_:
    case Op::xor_:
      if (t == DType::boolean && op == Op::and_)
        return {src[0]->lo & src[1]->lo, src[0]->hi & src[1]->hi};
      if (t == DType::boolean && op == Op::or_)
        return {src[0]->lo | src[1]->lo, src[0]->hi | src[1]->hi};
      return of_bits(op, src[0], src[1], t);
    case Op::shl:
    case Op::shr: return of_shift(op, src[0], src[1], t);
    case Op::where: return {std::min(src[1]->lo, src[2]->lo), std::max(src[1]->hi, src[2]->hi)};
    case Op::reduce:
    case Op::scan: return of_reduce(static_cast<Op>(arg), src[0], t);
    case Op::stage: return {src[0]->lo, src[0]->hi};
    case Op::stage_at:
      return {std::min<std::int64_t>(src[0]->lo, 0), std::max<std::int64_t>(src[0]->hi, 0)};
    default: return whole(t);
  }
}

}  // namespace mote
