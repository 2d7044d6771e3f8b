// opt: which moves, in which order. It looks at the AST and the Target alone, never at the number
// of threads: the order of sums is a result.
#pragma once
#include "kernel/kernel.h"

namespace mote {

Kernel optimize(Kernel, const Target&);

}  // namespace mote
