// Expressions as text: an exact form of one line a node, which holds all that a node is
// (tests/ir/parse.h reads it back), and a short one for traces.
//
//   %0 = constant index 4
//   %1 = range index 0 %0
//   %2 = slot float32 0 4
//   %3 = load float32 %2 %1
#pragma once
#include <string>
#include <string_view>

#include "ir/expr.h"

namespace mote {

std::string to_text(const Expr&);
// Infix, cut where it gets deep: "(x * 1.0)", "r0*4 + r1".
std::string short_text(const Expr&, int depth = 6);

}  // namespace mote
