// opt: which moves, in which order. It looks at the AST and the Target alone, never at the number
// of threads: the order of sums is a result.
#pragma once
#include "kernel/kernel.h"

namespace mote {

// `tile`: which of the tiles that fit a sum of products, in the order of their estimates.
Kernel optimize(Kernel, const Target&, int tile = 0);

}  // namespace mote
