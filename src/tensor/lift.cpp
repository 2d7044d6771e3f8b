#include "tensor/lift.h"

#include <algorithm>

#include "engine/engine.h"
#include "graph/gradient.h"

namespace mote {
namespace {

// An integer of 2^63 and more has the bits of a negative one.
bool is_large(const Operand& o) { return o.integer() < 0 && o.real() > 0; }

// The dtype that a number takes beside a tensor: it never widens it within its kind.
DType dtype_beside(const Operand& number, DType tensor) {
  if (number.number() == Operand::Number::boolean || is_float(tensor)) return tensor;
  if (number.number() == Operand::Number::floating) return default_float();
  return tensor == DType::boolean ? default_int() : tensor;
}

}  // namespace

Shape shape_of(const Dims& dims) { return Shape(dims.begin(), dims.end()); }

Dims dims_of(const Shape& shape) {
  Dims dims;
  for (const Int& size : shape) dims.push_back(size.is_constant() ? size.value() : size.hi());
  return dims;
}

std::int64_t product(const Dims& sizes) {
  std::int64_t n = 1;
  for (std::int64_t s : sizes) n *= s;
  return n;
}

std::int64_t steps_between(std::int64_t begin, std::int64_t end, std::int64_t step) {
  const std::int64_t span = step > 0 ? end - begin : begin - end, size = step > 0 ? step : -step;
  return span > 0 ? (span - 1) / size + 1 : 0;
}

// As cast() does, on the host.
std::vector<std::byte> converted(std::span<const std::byte> elements, DType from, DType to) {
  const auto have = static_cast<std::size_t>(size_of(from)),
             want = static_cast<std::size_t>(size_of(to));
  std::vector<std::byte> out(elements.size() / have * want);
  for (std::size_t i = 0; i * have < elements.size(); ++i)
    store_scalar(out.data() + i * want, cast(load_scalar(elements.data() + i * have, from), to));
  return out;
}

std::vector<Lazy> lazies(const std::vector<Tensor>& tensors) {
  std::vector<Lazy> out;
  for (const Tensor& t : tensors) out.push_back(t.is_defined() ? t.lazy() : nullptr);
  return out;
}

// ---- operands

Tensor tensor_of(const Operand& o) {
  if (!o.state()) refuse<ValueError>("the tensor is not defined; give it a value first");
  const std::lock_guard lock(o.state()->mutex);
  return wrap(o.state()->lazy);
}

DType own_dtype(const Operand& number) {
  if (number.number() == Operand::Number::boolean) return DType::boolean;
  if (number.number() == Operand::Number::floating) return default_float();
  return is_large(number) ? DType::uint64 : default_int();
}

// A float takes every number, a bool its truth, an integer what it can give back.
Scalar scalar_of(const Operand& o, DType to) {
  const bool real = o.number() == Operand::Number::floating;
  const Scalar number = real ? Scalar(DType::float64, o.real())
                             : Scalar(is_large(o) ? DType::uint64 : DType::int64, o.integer());
  const Scalar out = cast(number, to);
  if (is_float(to) || to == DType::boolean) return out;
  const auto negative = [](Scalar s) { return is_signed(s.dtype) && s.as_int() < 0; };
  if (real ? out.as_double() == o.real()
           : out.bits == number.bits && negative(out) == negative(number))
    return out;
  refuse<ValueError>("the number {} does not fit in {}; cast the tensor to a wider dtype first",
                     real ? cat(o.real()) : number.text(), to);
}

Lazy lazy_of(const Operand& o, DType as, Device& device) {
  if (!is_number(o)) return cast_lazy(tensor_of(o).lazy(), as);
  return constant_lazy(scalar_of(o, as), {}, device);
}

DType common_dtype(const Operand& a, const Operand& b) {
  if (is_number(a) && is_number(b)) return promote(own_dtype(a), own_dtype(b));
  if (is_number(a)) return dtype_beside(a, tensor_of(b).dtype());
  if (is_number(b)) return dtype_beside(b, tensor_of(a).dtype());
  return promote(tensor_of(a).dtype(), tensor_of(b).dtype());
}

std::pair<Lazy, Lazy> lift(const Operand& a, const Operand& b) {
  const DType dtype = common_dtype(a, b);
  Device& device = !is_number(a)   ? *tensor_of(a).lazy()->device
                   : !is_number(b) ? *tensor_of(b).lazy()->device
                                   : default_device();
  const Lazy x = lazy_of(a, dtype, device), y = lazy_of(b, dtype, device);
  expect_same_device(wrap(x), wrap(y));
  const Shape common = common_shape(x->shape, y->shape);
  return {broadcast_to(x, common), broadcast_to(y, common)};
}

Tensor as_float(const Tensor& t) { return is_float(t.dtype()) ? t : t.cast(default_float()); }

Lazy broadcast_into(const Lazy& value, const Shape& shape, std::string_view target,
                    std::string_view why) {
  try {
    if (broadcast_shape(value->shape, shape) == shape) return broadcast_to(value, shape);
  } catch (const ShapeError&) {}
  refuse<ShapeError>("a value of shape {} does not broadcast to the {} shape {}; {}",
                     to_text(value->shape), target, to_text(shape), why);
}

// ---- arguments

Shape common_shape(const Shape& a, const Shape& b) {
  try {
    return broadcast_shape(a, b);
  } catch (const ShapeError&) {
    refuse<ShapeError>(
        "the shapes {} and {} do not broadcast; sizes must be equal or 1, counted "
        "from the last axis",
        to_text(a), to_text(b));
  }
}

void expect_same_device(const Tensor& a, const Tensor& b) {
  const Device *one = a.lazy()->device, *other = b.lazy()->device;
  if (one == other) return;
  refuse<DeviceError>("the operands are on {} and {}; move one with .to(device)", one->name(),
                      other->name());
}

void expect_integers(std::string_view what, const Tensor& t) {
  if (is_integer(t.dtype())) return;
  refuse<DTypeError>("{} has dtype {}; cast it to an integer", what, t.dtype());
}

DType checked_dtype(DType t) {
  if (t < DType::index) return t;
  refuse<DTypeError>("no tensor has the dtype of number {}; use one of boolean .. float64",
                     static_cast<int>(t));
}

DType dtype_of(const Options& o, DType otherwise) {
  return checked_dtype(o.dtype.value_or(otherwise));
}

Device& device_of(const Options& o) {
  return o.device.empty() ? default_device() : device_at(o.device);
}

Device& device_at(std::string_view name) {
  try {
    return device_named(name);
  } catch (const DeviceError& e) {
    refuse<DeviceError>("{}", e.what());
  }
}

std::int64_t checked_count(const Dims& shape) {
  std::int64_t n = 1;
  for (std::int64_t s : shape) {
    if (s < 0) refuse<ShapeError>("size {} is negative; sizes are 0 or more", s);
    if (__builtin_mul_overflow(n, s, &n))
      refuse<ShapeError>("the sizes do not fit in 63 bits; use smaller sizes");
  }
  return n;
}

int checked_axis(int axis, int ndim, const Tensor& t) {
  if (axis >= -ndim && axis < ndim) return axis < 0 ? axis + ndim : axis;
  refuse<IndexError>("axis {} is out of range for shape {}; {}", axis, t,
                     ndim ? cat("use ", -ndim, "..", ndim - 1) : "a scalar has no axes");
}

int checked_axis(int axis, const Tensor& t) { return checked_axis(axis, t.ndim(), t); }

std::vector<int> checked_axes(const AxisList& list, const Tensor& t) {
  std::vector<int> axes;
  for (int i = 0; list.all && i < t.ndim(); ++i) axes.push_back(i);
  for (int a : list.axes) {
    const int axis = checked_axis(a, t);
    if (std::ranges::find(axes, axis) != axes.end())
      refuse<IndexError>("axis {} is given twice; name each axis once", a);
    axes.push_back(axis);
  }
  std::ranges::sort(axes);
  return axes;
}

// ---- results

Tensor finished(const Tensor& t, const Options& o) {
  Tensor out = t;
  return o.requires_grad ? out.set_requires_grad() : out;
}

namespace {

std::vector<Lazy> applied(const GradientRule& rule, const Lazy& g, const Lazy& value) {
  return lazies(rule(wrap(g), wrap(value)));
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

Tensor along(const Tensor& elements, int axis, int ndim) {
  Dims line(idx(ndim), 1);
  line[idx(axis)] = elements.numel();
  return elements.reshape(line);
}
Tensor places_along(int axis, std::int64_t count, int ndim, const std::string& device) {
  return along(Tensor::arange(count, {DType::int64, device, false}), axis, ndim);
}

Tensor cut(const Tensor& x, int axis, std::int64_t begin, std::int64_t end) {
  Pairs spans;
  for (std::int64_t size : x.shape()) spans.emplace_back(0, size);
  spans[idx(axis)] = {begin, end};
  return x.shrink(spans);
}

}  // namespace mote
