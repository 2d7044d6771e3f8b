// Placement: where each value of the graph is computed. See docs/schedule.md.
//
// A value is a node that is no view. Its uses are the places it is read at: (kernel, index,
// validity, open loops). From them follows what each choice would cost:
//   inlined   evaluations x cost        the expression is written again at each use
//   staged    n x cost + accesses       once for each prefix of the loops, in scratch of its kernel
//   stored    n x cost + bytes + launch a kernel of its own
#pragma once
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "schedule/schedule.h"

namespace mote {

// An index tuple with its validity: the element of a value that is meant, and whether it is real.
struct Spot {
  std::vector<Int> index;
  Expr valid;  // bool
  bool operator==(const Spot&) const = default;
  RangeSet free() const;
};

struct Use {
  int kernel;
  Spot spot;
  RangeSet open;           // the ranges of all loops around it
  bool in_binder = false;  // inside of a reduce's or a stage's body
};

enum class At : std::uint8_t { inlined, staged, stored };

struct Value {
  Lazy node;
  At at = At::inlined;
  double cost = 0;  // of one element with everything inlined, in 0.1 ns
  std::vector<Use> uses;
  int kernel = -1;  // of a stored value: its own; of a staged one: where
  std::vector<bool> staged_axes;
};

struct KernelPlan {
  Lazy root;
  Shape shape;                     // of the loops: the root's, or the part that is written
  bool in_place = false;           // an assign that takes over bytes; elsewhere it is a plain value
  std::vector<RangeSet> prefixes;  // sets of loops that something is hoisted to: a chain
};

struct Placement {
  std::vector<Lazy> order;                              // every node, sources first
  std::unordered_map<const LazyBuffer*, Value> values;  // of the nodes that are no views
  std::vector<KernelPlan> kernels;                      // consumers first
};

// The value below a node, and where the node's element lies in it.
const Lazy& base_of(const Lazy&);
Spot through(const Lazy& node, const Spot&);  // the spot in base_of(node)
Spot loops_of(const Shape&, int first_id);    // one range an axis that is longer than 1
// The spot of a reduce's source, its own ranges new.
Spot under_reduce(const LazyBuffer& reduce, const Spot&, std::vector<Expr>& ranges);
// The spot in an assign's value; valid where the region is.
Spot in_region(const LazyBuffer& assign, const Spot&);
int next_bound(const Spot&);         // above every id free in the spot
bool is_stored_anyway(const Lazy&);  // realized, or of an op that must be
// The realized node whose bytes an assign takes over; null where there is none.
Lazy in_place_target(const LazyBuffer& assign);
// Does an assign in place write its region alone? Else all of its value.
bool writes_region(const LazyBuffer& assign);
// sum_r where(r == e, X(r), 0): no loop is needed.
bool is_gather(const Lazy& reduce);

Placement place(std::span<const Lazy> roots, const std::unordered_set<const LazyBuffer*>& forced,
                const ScheduleOptions&);

}  // namespace mote
