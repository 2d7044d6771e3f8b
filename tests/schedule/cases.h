// Small programs whose kernels are counted (at the sizes of use, on NULL) and whose values are
// compared with REF (at small sizes, on each device that runs).
//
//   {"softmax", [](Inputs& in) { return Tensors{in.floats({in.size(256, 3), ..}).softmax(1)}; }}
#pragma once
#include <mote/mote.h>

#include <functional>
#include <string>
#include <vector>

namespace mote::cases {

using Tensors = std::vector<Tensor>;

// What a program starts from: tensors with bytes on the default device. On NULL they hold none.
class Inputs {
 public:
  explicit Inputs(bool large) : large_(large) {}
  // The size in the counted run, and in the run whose values are compared.
  std::int64_t size(std::int64_t large, std::int64_t small) const { return large_ ? large : small; }
  Tensor floats(Dims shape);                      // in -1..1, no two near each other equal
  Tensor weights(Dims shape);                     // the same, with a gradient
  Tensor integers(Dims shape, std::int64_t end);  // in 0..end-1
  // What layers and optimizers start with is realized, and kernels are counted from here on.
  void begin(const nn::Module& net);

 private:
  bool large_;
  int made_ = 0;  // tensors: each holds other values
};

struct Case {
  const char* name;
  std::function<Tensors(Inputs&)> build;  // gives the roots; may have realized others
};

const std::vector<Case>& forward();   // elementwise, reductions, products, norms, losses
const std::vector<Case>& movement();  // views, indexing, scans, writes in place
const std::vector<Case>& training();  // gradients, optimizers' steps
std::vector<Case> all();

// The devices whose values are compared with REF; one that cannot be used here is left out.
std::vector<std::string> devices_that_run();

}  // namespace mote::cases
