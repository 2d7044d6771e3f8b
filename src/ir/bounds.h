// The interval of an integer node from those of its sources. Sound, not tight: what cannot be
// said is the whole range of the dtype. An interval that would overflow is the whole range.
#pragma once
#include <cstdint>
#include <span>

#include "ir/expr.h"

namespace mote {

struct Bounds {
  std::int64_t lo = 0, hi = 0;
  bool operator==(const Bounds&) const = default;
};

Bounds bounds_of(Op, DType, std::span<const Expr> src, std::int64_t arg, std::int64_t arg2);
Bounds whole(DType);  // of the dtype; uint64 and float: see bounds.cpp

}  // namespace mote
