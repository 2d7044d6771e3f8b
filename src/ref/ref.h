// The naive interpreter of the lazy graph: the oracle of every test. It shares no code with
// schedule, kernel, opt and render: it walks the graph node by node and computes each element as
// docs/semantics.md says.
#pragma once
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/lazy_buffer.h"

namespace mote {

struct RefOptions {
  bool float64 = false;  // compute every float op in float64, without rounding to the dtype
  std::unordered_map<Expr, std::int64_t> variables;
};

// The elements of each root in row-major order. Realized nodes are read from their buffers.
std::vector<std::vector<Scalar>> reference(std::span<const Lazy> roots, const RefOptions& = {});

// Computes the roots and gives them buffers on their device (REF's realize).
void realize_by_reference(std::span<const Lazy> roots, const RefOptions& = {});

}  // namespace mote
