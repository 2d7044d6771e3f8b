// exp, log, sin, cos, tanh and erf of float32 and float64 in elementary operations, without
// branches or tables, so that they vectorize. float32 exp is computed in float32, the others in
// float64 and rounded once.
#pragma once
#include "ir/expr.h"

namespace mote {

Expr math_function(Op, const Expr& x);

}  // namespace mote
