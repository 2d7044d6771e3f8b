// The naive runner of an AST over host memory: the oracle of schedule and kernel in tests. It knows
// nothing of moves or code.
#pragma once
#include <span>
#include <unordered_map>

#include "ir/expr.h"

namespace mote {

// Runs the stores of a sink in order, each over its free ranges with ascending ids (the last id
// runs fastest). `slots`: element storage by slot number. InternalError on an access out of bounds.
void interpret(const Expr& sink, std::span<void* const> slots,
               const std::unordered_map<Expr, std::int64_t>& variables = {});

}  // namespace mote
