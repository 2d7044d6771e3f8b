// Reverse-mode gradients of the lazy graph: one rule for each primitive, made of lazy ops itself,
// so gradients of gradients work.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "graph/lazy_buffer.h"

namespace mote {

// d(sum of outputs * seeds) / d(inputs): one tensor for each input, of its shape and dtype; null
// where an input does not reach the outputs. A seed of null is ones (float outputs only,
// GradientError otherwise). Throws GradientError when a value that a rule needs was overwritten in
// place since: the message names both places. Values that are not needed may be.
std::vector<Lazy> gradient(std::span<const Lazy> outputs, std::span<const Lazy> seeds,
                           std::span<const Lazy> inputs);

// The rule of an elementwise op for a gradient g: where g is where(c, h, 0), or a view of it, each
// part is where(c, part of h, 0), so that the branch not taken adds exactly 0.
std::vector<Lazy> where_taken(const Lazy& g,
                              const std::function<std::vector<Lazy>(const Lazy&)>& rule);

// The leaves with requires_grad below the outputs, in the order first met.
std::vector<Lazy> gradient_leaves(std::span<const Lazy> outputs);

// Lets go of the history of a graph: nodes below the outputs stop keeping their sources once they
// are realized, and are no longer differentiable.
void release_history(std::span<const Lazy> outputs);

}  // namespace mote
