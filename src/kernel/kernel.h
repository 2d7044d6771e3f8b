// Kernel: how one AST runs. A kernel is a list of nests, `loops: slot[index] = value`, and what is
// chosen beside them is, for each range, how its loop is run. Matrices of 1000 x 1000, their
// product added up in blocks of k, with a block of B packed before it is used:
//
//   nest kc 0..4, m 0..1000 unroll 6, n 0..1000 unroll 2 lanes 8
//     x0[m*1000 + n] add= sum over ki of x1[..] * table over (ki, n) of x2[..]      summed over kc
//
// Tables (Stage), sums (Reduce) and scans are the only binders, and nesting is derived, never
// stored: a table or a sum is computed just inside the innermost loop that it captures, that is
// whose range is free in it. What a table does not bind it captures, and that is its level. A table
// that captures nothing is a nest of its own, with a slot from `first_table` on as its memory.
//
// Expansion is substitution: the copies of an unrolled range, and the lanes of a vector, are the
// same expressions with other indices; sums over equal ranges share one loop, and equal expressions
// are one node. So the choices above make twelve vector accumulators in one loop over ki.
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
  // Loops that no index mentions: their values are added up (or what `op` says) in the slot; where
  // all of them are at 0 the slot is written.
  std::vector<Expr> sums;
  Op op = Op::add;
};

// The nest of a scatter or of a scan: the order of its loops counts.
bool is_ordered(const Nest&);

inline constexpr int first_table = 1000;  // slots from here on are scratch that all tasks see
inline constexpr int most_ranges = 190;   // ids of ranges; those above are linearize's

struct Kernel {
  std::string name;
  std::vector<Nest> nests;                      // in the order that they run
  std::unordered_map<int, LoopChoice> choices;  // by the id of a range; serial if it is not there
  std::vector<std::string> words;               // the moves so far, for MOTE_DEBUG=3
  int tables = 0;                               // slots given out
};

// The AST (Sink of Stores, Loads, Reduces, Scans, Stages) with nothing chosen: it runs as it is.
// Ranges of one id are one range from here on.
// linearize(open(ast)) is the plain path, MOTE_NOOPT=1.
Kernel open(const Expr& sink);
Code linearize(const Kernel&, const Target&);

// ---- moves: each is an identity. It gives a new kernel, or throws InternalError that says why it
// is refused. Ranges are named by themselves; a range of one name that several binders bind (the
// sums of one row, say) is moved in all of them.

// How a loop runs: `times` copies written out; `lanes` in one vector. Where its extent is no number
// it runs step by step.
Kernel unroll(Kernel, const Expr& range, int times);
Kernel vectorize(Kernel, const Expr& range, int lanes);
// Loops of a nest in another order; every range of the nest must be named once.
Kernel order(Kernel, std::size_t nest, std::span<const Expr> loops);
// r := outer * by + inner. The inner extent is `by`, or min(by, what is left). `made`, if given,
// gets the two ranges.
Kernel split(Kernel, const Expr& range, std::int64_t by, std::pair<Expr, Expr>* made = nullptr);
// Two neighbouring loops as one: a := p / extent of b, b := p % extent of b.
Kernel fuse(Kernel, const Expr& a, const Expr& b, Expr* made = nullptr);
// A value becomes a table over some of its free ranges, read where it stood. Over all of them, it
// is a nest of its own.
Kernel stage(Kernel, const Expr& value, std::span<const Expr> dims);
// The same where an axis may be a sum of ranges, such as h*2 + r, and the value depends on those by
// that sum alone.
Kernel window(Kernel, const Expr& value, std::span<const Int> axes);
// A table that captures nothing becomes a nest of its own.
Kernel stage_alone(Kernel, const Expr& stage);
// A table is computed where it is read.
Kernel inline_table(Kernel, const Expr& stage);
// A table binds a range that it captured, as its first axis (`made`, if given): it is computed for
// all of that range at once, one loop further out.
Kernel widen(Kernel, const Expr& stage, const Expr& range, Expr* made = nullptr);
// The axes of a table in another order: they are the loops that fill it.
Kernel order_table(Kernel, const Expr& stage, std::span<const Expr> dims);
// The sum over (a, b) is the sum over a of the sum over b.
Kernel nest_reduce(Kernel, const Expr& reduce, std::span<const Expr> inner);
// A nest that stores sums adds up over these ranges in memory instead, by loops of its own.
Kernel accumulate(Kernel, std::size_t nest, std::span<const Expr> ranges);
// The loop of a nest, or of sums, as two: 0..at and at..extent.
Kernel cut(Kernel, const Expr& range, std::int64_t at);
// A table that one nest alone reads, at the places where it stores, lives where that stores.
Kernel home(Kernel, std::size_t nest);

std::string to_text(const Kernel&);

// The flat index of an element of a table, row-major over the greatest extents.
Int flat_index(std::span<const Expr> dims, std::span<const Int> indices);

}  // namespace mote
