// What to_text printed, read back: the proof that a print holds all that a node is.
#pragma once
#include <string_view>

#include "ir/expr.h"

namespace mote {

Expr parse(std::string_view text);  // ValueError names the line and what was expected

}  // namespace mote
