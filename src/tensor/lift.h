// What the files of this room share: from Tensors and numbers to lazy buffers of one shape and
// dtype, and the messages of wrong calls.
#pragma once
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "graph/lazy_buffer.h"
#include "mote/tensor.h"
#include "tensor/errors.h"

namespace mote {

struct PartOf;
using State = std::shared_ptr<TensorState>;

// What a Tensor's handles share.
struct TensorState {
  mutable std::mutex mutex;
  Lazy lazy;    // guarded by mutex
  Tensor grad;  // guarded by mutex
  std::string name;
  std::shared_ptr<const PartOf> part;  // of a Part: what it is a part of
};

using OuterPlace = PlaceScope;
inline Where outermost(Where at) { return current_place().line ? current_place() : at; }

// "sum: axis 3 is out of range for shape (2, 3) at train.cpp:41; use -2..1"
template <class E>
[[noreturn]] void fail(std::string_view op, const std::string& what, Where where,
                       const std::string& remedy) {
  const std::string at = outermost(where).text();
  throw E(cat(std::string(op), ": ", what, at.empty() ? "" : " at " + at, "; ", remedy));
}

inline Tensor wrap(Lazy lazy) { return Tensor(std::move(lazy)); }
Lazy lazy_of(const Operand&, DType as, Device&);  // a number becomes a constant
Shape shape_of(const Dims&);
Dims dims_of(const Shape&);
std::string shape_text(const Tensor&);

// The two operands at their promoted dtype and common shape.
std::pair<Lazy, Lazy> lift(std::string_view op, const Operand&, const Operand&);
// The dtype that the two are promoted to; a number adapts to the tensor beside it.
DType common_dtype(std::string_view op, const Operand&, const Operand&);
Tensor tensor_of(const Operand&, std::string_view op = "operand");
// The common shape of two; ShapeError names the op and both.
Shape common_shape(std::string_view op, const Shape&, const Shape&, Where);
void expect_same_device(std::string_view op, const Tensor&, const Tensor&, Where);
Device& device_at(std::string_view op, std::string_view name, Where);

// An axis counted from the front; IndexError names the op, the axis and the shape.
int checked_axis(std::string_view op, int axis, int ndim, const Tensor&, Where);
std::vector<int> checked_axes(std::string_view op, const AxisList&, const Tensor&, Where);
Tensor as_float(const Tensor&, Where);  // integers and bools become default_float
void expect_defined(std::string_view op, const Tensor&, Where);

// value with a gradient of its own; `rule` gets Tensors (gradient, value).
using GradientRule = std::function<std::vector<Tensor>(const Tensor&, const Tensor&)>;
Tensor with_own_gradient(const Tensor& value, const std::vector<Tensor>& inputs, GradientRule rule);
// The same for an elementwise op of inputs of one shape: a branch not taken adds exactly 0.
Tensor with_element_gradient(const Tensor& value, const std::vector<Tensor>& inputs,
                             GradientRule rule);

// Is the node a leaf that gradients are asked for?
bool is_leaf(const Lazy&);
// A handle takes the value written in place of its old one; GradientError for a leaf while history
// is recorded.
void expect_writable(const Lazy& old);
void write_over(const State&, Lazy written);
// Of a part: its value in what its base holds now; else the handle's own.
Lazy current(const State&);
void write_part(const State& part, const Operand& value);
// A number as an element, and an element as another dtype; ValueError where that cannot hold it.
Scalar scalar_of(const Operand& number, DType);
Scalar fitting(Scalar, DType);
DType own_dtype(const Operand&);  // of a number: what it has alone
inline std::size_t idx(int axis) { return static_cast<std::size_t>(axis); }
void expect_integers(std::string_view what, const Tensor&);  // DTypeError
int checked_axis(int axis, int ndim, const Tensor&);

}  // namespace mote
