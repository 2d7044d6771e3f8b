// Differentiable operations: how to run each, and on which inputs its gradient is checked.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "mote/mote.h"

namespace mote::testing {

using Tensors = std::vector<Tensor>;

struct GradientRow {
  std::string name;
  std::vector<Dims> shapes;                   // of the float64 inputs
  std::function<Tensor(const Tensors&)> run;  // any shape
  double low = -2, high = 2;                  // the inputs lie there; no two are nearly equal
  bool twice = false;                         // the second derivative is checked too
};

std::vector<GradientRow> elementwise_gradients();
std::vector<GradientRow> shape_gradients();    // reductions, scans, movement, indexing
std::vector<GradientRow> product_gradients();  // matmul, conv, pools, losses, attention

}  // namespace mote::testing
