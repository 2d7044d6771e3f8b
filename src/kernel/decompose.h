// Rewrites each operation that a machine lacks into ones it has, by rules: exp, log, sin, cos, tanh
// and erf into polynomials (with stated ulp bounds), floor division into truncating division with
// the guards of docs/semantics.md, casts that saturate, bfloat16 and float8 arithmetic by integers.
// Runs on the values of an AST before linearize; what is left is the table in code.h.
#pragma once
#include "base/target.h"
#include "ir/expr.h"

namespace mote {

Expr decompose(const Expr&, const Target&);

}  // namespace mote
