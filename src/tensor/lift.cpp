#include "tensor/lift.h"

#include <algorithm>

#include "engine/engine.h"
#include "graph/gradient.h"

namespace mote {
namespace {

// The dtype that a number takes beside a tensor: it never widens it within its kind.
DType dtype_beside(const Operand& number, DType tensor) {
  if (number.number() == Operand::Number::boolean || is_float(tensor)) return tensor;
  if (number.number() == Operand::Number::floating) return default_float();
  return tensor == DType::boolean ? default_int() : tensor;
}

bool is_number(const Operand& o) { return o.number() != Operand::Number::none; }

}  // namespace

Tensor tensor_of(const Operand& o, std::string_view op) {
  if (!o.state()) {
    fail<ValueError>(op, "the tensor is not defined", o.where(), "give it a value first");
  }
  const std::lock_guard lock(o.state()->mutex);
  return wrap(o.state()->lazy);
}

DType own_dtype(const Operand& number) {
  if (number.number() == Operand::Number::boolean) return DType::boolean;
  if (number.number() == Operand::Number::floating) return default_float();
  return number.integer() < 0 && number.real() > 0 ? DType::uint64 : default_int();
}

// A float takes every number, a bool its truth, an integer what it can give back.
Scalar fitting(Scalar number, DType to) {
  const Scalar out = cast(number, to);
  if (is_float(to) || to == DType::boolean) return out;
  const auto negative = [](Scalar s) { return is_signed(s.dtype) && s.as_int() < 0; };
  if (is_float(number.dtype) ? out.as_double() == number.as_double()
                             : out.bits == number.bits && negative(out) == negative(number))
    return out;
  refuse<ValueError>("the number {} does not fit in {}; cast the tensor to a wider dtype first",
                     is_float(number.dtype) ? cat(number.as_double()) : number.text(), to);
}

Scalar scalar_of(const Operand& o, DType as) {
  if (o.number() == Operand::Number::floating) return fitting(Scalar(DType::float64, o.real()), as);
  const bool large = o.integer() < 0 && o.real() > 0;
  return fitting(Scalar(large ? DType::uint64 : DType::int64, o.integer()), as);
}

Lazy lazy_of(const Operand& o, DType as, Device& device) {
  if (!is_number(o)) return cast_lazy(tensor_of(o).lazy(), as);
  return constant_lazy(scalar_of(o, as), {}, device);
}

Shape shape_of(const Dims& dims) { return Shape(dims.begin(), dims.end()); }

Dims dims_of(const Shape& shape) {
  Dims dims;
  for (const Int& size : shape) dims.push_back(size.is_constant() ? size.value() : size.hi());
  return dims;
}

std::string shape_text(const Tensor& t) { return to_text(t.lazy()->shape); }

DType common_dtype(std::string_view op, const Operand& a, const Operand& b) {
  if (is_number(a) && !is_number(b)) return dtype_beside(a, tensor_of(b, op).dtype());
  if (is_number(b) && !is_number(a)) return dtype_beside(b, tensor_of(a, op).dtype());
  if (!is_number(a)) return promote(tensor_of(a, op).dtype(), tensor_of(b, op).dtype());
  return promote(own_dtype(a), own_dtype(b));
}

std::pair<Lazy, Lazy> lift(std::string_view op, const Operand& a, const Operand& b) {
  const Within within(op, a.where());
  const DType dtype = common_dtype(op, a, b);
  Device& device = !is_number(a)   ? *tensor_of(a).lazy()->device
                   : !is_number(b) ? *tensor_of(b).lazy()->device
                                   : default_device();
  const Lazy x = lazy_of(a, dtype, device), y = lazy_of(b, dtype, device);
  expect_same_device(op, wrap(x), wrap(y), a.where());
  const Shape common = common_shape(op, x->shape, y->shape, a.where());
  return {broadcast_to(x, common), broadcast_to(y, common)};
}

Shape common_shape(std::string_view op, const Shape& a, const Shape& b, Where where) {
  try {
    return broadcast_shape(a, b);
  } catch (const ShapeError&) {
    fail<ShapeError>(op, cat("the shapes ", to_text(a), " and ", to_text(b), " do not broadcast"),
                     where, "sizes must be equal or 1, counted from the last axis");
  }
}

void expect_same_device(std::string_view op, const Tensor& a, const Tensor& b, Where where) {
  const Device *one = a.lazy()->device, *other = b.lazy()->device;
  if (one == other) return;
  fail<DeviceError>(op, cat("the operands are on ", one->name(), " and ", other->name()), where,
                    "move one with .to(device)");
}

Device& device_at(std::string_view op, std::string_view name, Where where) {
  try {
    return device_named(name);
  } catch (const DeviceError& e) {
    const std::string at = outermost(where).text();
    throw DeviceError(cat(std::string(op), at.empty() ? "" : " at " + at, ": ", e.what()));
  }
}

int checked_axis(int axis, int ndim, const Tensor& t) {
  if (axis >= -ndim && axis < ndim) return axis < 0 ? axis + ndim : axis;
  refuse<IndexError>("axis {} is out of range for shape {}; {}", axis, t,
                     ndim ? cat("use ", -ndim, "..", ndim - 1) : "a scalar has no axes");
}

void expect_integers(std::string_view what, const Tensor& t) {
  if (is_integer(t.dtype())) return;
  refuse<DTypeError>("{} has dtype {}; cast it to an integer", what, t.dtype());
}

int checked_axis(std::string_view op, int axis, int ndim, const Tensor& t, Where where) {
  if (axis >= -ndim && axis < ndim) return axis < 0 ? axis + ndim : axis;
  fail<IndexError>(op, cat("axis ", axis, " is out of range for shape ", shape_text(t)), where,
                   ndim ? cat("use ", -ndim, "..", ndim - 1) : "a scalar has no axes");
}

std::vector<int> checked_axes(std::string_view op, const AxisList& list, const Tensor& t,
                              Where where) {
  std::vector<int> axes;
  for (int i = 0; list.all && i < t.ndim(); ++i) axes.push_back(i);
  for (int a : list.axes) {
    const int axis = checked_axis(op, a, t.ndim(), t, where);
    if (std::ranges::find(axes, axis) != axes.end())
      fail<IndexError>(op, cat("axis ", a, " is given twice"), where, "name each axis once");
    axes.push_back(axis);
  }
  std::ranges::sort(axes);
  return axes;
}

Tensor as_float(const Tensor& t, Where where) {
  return is_float(t.dtype()) ? t : t.cast(default_float(), where);
}

void expect_defined(std::string_view op, const Tensor& t, Where where) {
  if (t.is_defined()) return;
  fail<ValueError>(op, "the tensor is not defined", where, "give it a value first");
}

namespace {

std::vector<Lazy> applied(const GradientRule& rule, const Lazy& g, const Lazy& value) {
  std::vector<Lazy> out;
  for (const Tensor& t : rule(wrap(g), wrap(value)))
    out.push_back(t.is_defined() ? t.lazy() : nullptr);
  return out;
}

std::vector<Lazy> lazies(const std::vector<Tensor>& tensors) {
  std::vector<Lazy> out;
  for (const Tensor& t : tensors) out.push_back(t.lazy());
  return out;
}

}  // namespace

Tensor with_own_gradient(const Tensor& value, const std::vector<Tensor>& inputs,
                         GradientRule rule) {
  return wrap(with_gradient(
      value.lazy(), lazies(inputs),
      [rule = std::move(rule)](const Lazy& g, const Lazy& v) { return applied(rule, g, v); }));
}

Tensor with_element_gradient(const Tensor& value, const std::vector<Tensor>& inputs,
                             GradientRule rule) {
  return wrap(with_gradient(
      value.lazy(), lazies(inputs), [rule = std::move(rule)](const Lazy& g, const Lazy& v) {
        return where_taken(g, [&](const Lazy& h) { return applied(rule, h, v); });
      }));
}

}  // namespace mote
