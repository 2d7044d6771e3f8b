// Kernel: how one AST runs, as a set of let-bound tables over ranges. A small value: moves take one
// and give one back, so trying and undoing is copying.
//
//   Nest{loops, buf[index] op= value} says `let T[dims] = value`. A loop that the index does not
//   mention is a reduction. Where a nest runs is never stored: it is computed just inside the
//   innermost loop that it captures (uses without binding).
//
// What must hold (checked by linearize; see facts in docs/kernel.md):
//   1 a range is bound by exactly one nest or Reduce; a table has one producer; reads are total
//   2 every captured range is bound on the path to the anchor
//   3 in a nest a loop comes after all loops that its extent mentions
//   4 an expanded range has a constant extent where it is opened; none depends on a vector range
//   5 at most one vector range is live in a nest
//   6 a register table is indexed by constants
//   7 register accumulators sit only over expanded spatial loops
//   8 a home is a hint, checked last
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/target.h"
#include "kernel/code.h"
#include "symbolic/int.h"

namespace mote {

// The AST (Sink of Stores, Loads, Reduces, Scans, Stages) as a Kernel: each Store and Stage becomes
// a nest, each binder gets ranges of its own; a Reduce stays in its expression until a move names
// it. Always runs as it is: linearize(open(ast)) is the plain path, MOTE_NOOPT=1.
struct Kernel;
Kernel open(const Expr& sink);
Code linearize(const Kernel&, const Target&);

enum class LoopKind : std::uint8_t { serial, thread, unroll, vector };
enum class Where_ : std::uint8_t { slot, scratch, reg };

struct Range {
  Expr node;                // the leaf: id and static bound
  Int extent;               // of outer ranges and Variables
  LoopKind kind = LoopKind::serial;
  std::string name;         // "m", "k", "ic": for printing and words
};

struct Table {
  std::string name;
  Where_ space = Where_::slot;
  DType dtype = DType::float32;
  int slot = -1;                     // of a slot
  std::vector<Int> dims;             // static bounds of a scratch or register table's axes
  std::vector<std::int64_t> padding; // extra elements a row, to spread over cache sets
  int home = -1;                     // hint: a table in whose memory this one may live
};

struct Output {
  int table;
  std::vector<Expr> index;           // of a slot: one flat index
  Op op = Op::store;                 // store, or what accumulates
  Expr value;
  Expr gate;                         // null: always
  bool scan = false;                 // a running op along the last loop: each partial is stored
};

struct Nest {
  std::vector<int> loops;            // range ids, outermost first
  std::vector<Output> outs;
};

struct Kernel {
  std::string name;
  std::vector<Range> ranges;         // by id
  std::vector<Table> tables;         // a stage_at/load in a value names its table by number
  std::vector<Nest> nests;           // producers first
  std::vector<Expr> variables;
  std::vector<std::string> words;    // the moves so far: print, store, replay
};

}  // namespace mote
