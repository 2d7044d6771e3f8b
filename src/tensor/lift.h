// What the files of this room share: from Tensors and numbers to lazy buffers of one shape and
// dtype, and the checks of arguments.
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

inline std::size_t idx(int axis) { return static_cast<std::size_t>(axis); }
inline Tensor wrap(Lazy lazy) { return Tensor(std::move(lazy)); }
inline bool is_number(const Operand& o) { return o.number() != Operand::Number::none; }
Shape shape_of(const Dims&);
Dims dims_of(const Shape&);
std::int64_t product(const Dims&);
std::int64_t steps_between(std::int64_t begin, std::int64_t end, std::int64_t step);
std::vector<std::byte> converted(std::span<const std::byte>, DType from, DType to);
std::vector<Lazy> lazies(const std::vector<Tensor>&);  // null for what is not defined

// ---- operands
Tensor tensor_of(const Operand&);
Lazy lazy_of(const Operand&, DType as, Device&);  // a number becomes a constant
// The dtype that the two are promoted to; a number adapts to the tensor beside it.
DType common_dtype(const Operand&, const Operand&);
// The two at their promoted dtype and common shape.
std::pair<Lazy, Lazy> lift(const Operand&, const Operand&);
DType own_dtype(const Operand& number);  // what a number has alone
// A number as an element of a dtype; ValueError where that cannot hold it.
Scalar scalar_of(const Operand& number, DType);
Tensor as_float(const Tensor&);  // integers and bools become default_float
// value broadcast to a shape that it is written to; ShapeError says to what and why.
Lazy broadcast_into(const Lazy& value, const Shape&, std::string_view target, std::string_view why);

// ---- arguments; what is wrong names the operation, the values and the place
Shape common_shape(const Shape&, const Shape&);
void expect_same_device(const Tensor&, const Tensor&);
void expect_integers(std::string_view what, const Tensor&);
DType checked_dtype(DType);  // one that a tensor may have
DType dtype_of(const Options&, DType otherwise);
Device& device_of(const Options&);  // the default one where none is named
Device& device_at(std::string_view name);
std::int64_t checked_count(const Dims& shape);        // its elements; sizes are 0 or more
int checked_axis(int axis, int ndim, const Tensor&);  // counted from the front
int checked_axis(int axis, const Tensor&);
std::vector<int> checked_axes(const AxisList&, const Tensor&);

// ---- results
Tensor finished(const Tensor&, const Options&);  // with a gradient if that is asked for
// value with a gradient of its own; `rule` gets Tensors (gradient, value).
using GradientRule = std::function<std::vector<Tensor>(const Tensor&, const Tensor&)>;
Tensor with_own_gradient(const Tensor& value, const std::vector<Tensor>& inputs, GradientRule rule);
// The same for an elementwise op of inputs of one shape: a branch not taken adds exactly 0.
Tensor with_element_gradient(const Tensor& value, const std::vector<Tensor>& inputs,
                             GradientRule rule);
// The elements along one axis, 1 at all others; of places, 0, 1, ..
Tensor along(const Tensor& elements, int axis, int ndim);
Tensor places_along(int axis, std::int64_t count, int ndim, const std::string& device);
// Every axis from its begin to its end, but one.
Tensor cut(const Tensor&, int axis, std::int64_t begin, std::int64_t end);

// ---- writing in place
bool is_leaf(const Lazy&);  // that gradients are asked for
// A handle takes the value written in place of its old one; GradientError for a leaf while history
// is recorded.
void expect_writable(const Lazy& old);
void write_over(const State&, Lazy written);
// Of a part: its value in what its base holds now; else the handle's own.
Lazy current(const State&);
void write_part(const State& part, const Operand& value);

}  // namespace mote
