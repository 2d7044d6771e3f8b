// Kernel: how one AST runs. The AST stays what it is; what is chosen beside it is, for each range,
// how its loop is run: how many steps are written out (unroll) and how many lie in one vector
// (lanes). Neither touches a value, so every choice is legal.
//
//   matmul, C[m, n] = sum_k A[m, k] B[k, n]:   m unroll 6, n lanes 8 unroll 2
//
// Nesting is derived: a reduce or a table is computed in the innermost loop that it depends on, and
// reduces over equal ranges share one loop. So the choice above makes twelve vector accumulators in
// one loop over k, with two loads of B and six of A: expansion is substitution, and equal
// expressions are one node.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "base/target.h"
#include "kernel/code.h"
#include "symbolic/int.h"

namespace mote {

struct LoopChoice {
  int unroll = 1;
  int lanes = 1;  // 1, or a power of two
};

// Stores over the same loops, outermost first.
struct Nest {
  std::vector<Expr> loops;  // ranges
  std::vector<Expr> stores;
};

struct Kernel {
  std::string name;
  Expr sink;
  std::vector<Nest> nests;
  std::unordered_map<Expr, LoopChoice> choices;  // by range; what is not there is serial
  std::vector<std::string> words;                // the moves so far, for MOTE_DEBUG=3
};

// The AST (Sink of Stores, Loads, Reduces, Scans, Stages) with nothing chosen: it runs as it is.
// linearize(open(ast)) is the plain path, MOTE_NOOPT=1.
Kernel open(const Expr& sink);
Code linearize(const Kernel&, const Target&);

// Moves. Each gives a new kernel, or throws InternalError that says why it is refused.
Kernel unroll(Kernel, const Expr& range, int times);
Kernel vectorize(Kernel, const Expr& range, int lanes);
// Loops of a nest in another order; every range of the nest must be named once.
Kernel order(Kernel, std::size_t nest, std::span<const Expr> loops);

std::string to_text(const Kernel&);

}  // namespace mote
