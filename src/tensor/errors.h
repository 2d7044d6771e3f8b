// The message of a wrong call: "gather: the index has shape (3,), the tensor (2, 3) at
// train.cpp:41; they need the same number of axes". The operation and the place are those of the
// outermost call.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "graph/lazy_buffer.h"
#include "mote/tensor.h"

namespace mote {

// A public operation, while it runs on this thread: what fails below it is told under its name and
// at its place, and so are the nodes that it makes.
class Within {
 public:
  Within(std::string_view op, Where);
  ~Within();
  Within(const Within&) = delete;
  // `return Within("silu", at)(*this * sigmoid())`: the callee is evaluated before the argument.
  template <class T>
  T operator()(T value) const {
    return value;
  }

 private:
  std::string_view op_before_;
  PlaceScope place_;
};

// "op: " + text with each {} replaced by a value, and the place before its first "; ".
std::string message(std::string_view text, const std::vector<std::string>& values);

std::string word(const Tensor&);  // its shape
std::string word(const Dims&);
std::string word(DType);
template <class T>
std::string word(const T& value) {
  return cat(value);
}

// refuse<ShapeError>("size {} is negative; sizes are 0 or more", n)
template <class E, class... T>
[[noreturn]] void refuse(std::string_view text, const T&... values) {
  throw E(message(text, {word(values)...}));
}

}  // namespace mote
