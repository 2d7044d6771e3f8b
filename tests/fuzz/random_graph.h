// Random lazy graphs: any op, ranks 0 to 5, sizes 0 to 7, views of views, casts, reductions, scans,
// gathers, scatters, assigns, several outputs, and gradients. The same seed and length give the same
// graph; a shorter one is its beginning, so that a failing graph can be cut.
#pragma once
#include <random>
#include <vector>

#include "graph/lazy_buffer.h"

namespace mote::testing {

class RandomGraph {
 public:
  // `steps` operations over a few inputs on the device.
  RandomGraph(std::uint64_t seed, int steps, Device& device);
  // What is to be computed: outputs, gradients among them.
  const std::vector<Lazy>& roots() const { return roots_; }

 private:
  struct Value {
    Lazy node;
    bool exact;  // its float elements are small dyadic numbers: comparing and truncating are safe
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  const Value& any() {
    return pool_[static_cast<std::size_t>(below(static_cast<int>(pool_.size())))];
  }
  const Value* some(bool (*wanted)(DType));
  Shape random_shape();
  Value input(Shape shape, DType t);
  Value like(const Value& v);  // of its shape and dtype: from the pool where there is one
  void step();
  Value elementwise_of(const Value& v);
  Value float_op(const Value& v);
  Value integer_op(const Value& v);
  Value moved(const Value& v);
  Value reduced(const Value& v);
  Value scanned(const Value& v);
  Value casted(const Value& v);
  Value gathered(const Value& v);
  Value scattered(const Value& v);
  Value assigned(const Value& v);
  Lazy number(const Lazy& like, double v) const;
  void choose_roots();

  std::mt19937_64 random_;
  Device& device_;
  std::vector<Value> pool_;
  std::vector<Lazy> inputs_;  // float32 ones, for gradients
  std::vector<Lazy> roots_;
};

}  // namespace mote::testing
