// The algebra of values: rules that keep docs/semantics.md. For floats x * 0, x + 0, x - x and x /
// x do not fold (NaN, infinities, -0.0); for integers everything holds that holds modulo 2^n.
#pragma once
#include "ir/rule.h"

namespace mote {

const RuleSet& float_algebra();
const RuleSet& integer_algebra();  // integers and bools that are data, not indices

}  // namespace mote
