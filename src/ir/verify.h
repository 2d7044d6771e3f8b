// The verifier of the AST stage: what schedule hands over and kernel opens.
#pragma once
#include "ir/expr.h"

namespace mote {

// Binders scope as in any language: an inner one may bind an id again, which hides the outer range.
// Throws InternalError that names the first illegal node with its printed form.
void verify_ast(const Expr& sink);

}  // namespace mote
