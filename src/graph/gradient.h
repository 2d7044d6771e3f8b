// Reverse-mode gradients of the lazy graph: one rule for each primitive, made of lazy ops itself, so
// gradients of gradients work.
#pragma once
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

// The leaves with requires_grad below the outputs, in the order first met.
std::vector<Lazy> gradient_leaves(std::span<const Lazy> outputs);

// Lets go of the history of a graph: nodes below the outputs stop keeping their sources once they
// are realized, and are no longer differentiable.
void release_history(std::span<const Lazy> outputs);

}  // namespace mote
