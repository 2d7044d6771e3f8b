// The handle itself: making, reading, writing in place.
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/engine.h"
#include "tensor/lift.h"

namespace mote {
namespace {

std::atomic<DType> float_default{DType::float32}, int_default{DType::int64};

Device& device_of(const Options& o, std::string_view op, Where where) {
  return o.device.empty() ? default_device() : device_at(op, o.device, where);
}

std::int64_t checked_count(std::string_view op, const Dims& shape, Where where) {
  std::int64_t n = 1;
  for (std::int64_t s : shape) {
    if (s < 0) fail<ShapeError>(op, cat("size ", s, " is negative"), where, "sizes are 0 or more");
    if (__builtin_mul_overflow(n, s, &n))
      fail<ShapeError>(op, "the sizes do not fit in 63 bits", where, "use smaller sizes");
  }
  return n;
}

Tensor finished(Lazy n, const Options& o, Where where) {
  Tensor t(std::move(n));
  if (o.requires_grad) t.set_requires_grad(true, where);
  return t;
}

Tensor filled(std::string_view op, const Dims& shape, Scalar value, const Options& o, Where where) {
  checked_count(op, shape, where);
  const PlaceScope place(where);
  return finished(constant_lazy(value, shape_of(shape), device_of(o, op, where)), o, where);
}

}  // namespace

DType default_float() { return float_default; }
DType default_int() { return int_default; }
void set_default_float(DType t) {
  if (!is_float(t))
    throw DTypeError(cat("set_default_float: ", std::string(name_of(t)), " is no float"));
  float_default = t;
}
void set_default_int(DType t) {
  if (!is_integer(t))
    throw DTypeError(cat("set_default_int: ", std::string(name_of(t)), " is no integer"));
  int_default = t;
}

Operand::Operand(const Tensor& t, Where where) : state_(t.state_), where_(where) {}

Tensor::Tensor(std::shared_ptr<LazyBuffer> lazy) : state_(std::make_shared<TensorState>()) {
  state_->lazy = std::move(lazy);
}

std::shared_ptr<LazyBuffer> Tensor::lazy() const {
  if (!state_) throw ValueError("the tensor is not defined; give it a value first");
  const std::lock_guard lock(state_->mutex);
  return state_->lazy;
}

namespace {
// A part is copied as a value: what is done to the copy in place does not reach the base.
State value_state(const State& state) {
  if (!state || !state->part) return state;
  const auto own = std::make_shared<TensorState>();
  const std::lock_guard lock(state->mutex);
  own->lazy = state->lazy;
  return own;
}
}  // namespace

Tensor::Tensor(const Tensor& other) : state_(value_state(other.state_)) {}
Tensor::Tensor(Tensor&& other) noexcept : state_(value_state(other.state_)) {
  other.state_.reset();
}
Tensor& Tensor::operator=(Tensor other) noexcept {
  state_ = std::move(other.state_);
  return *this;
}

void Tensor::set_lazy(std::shared_ptr<LazyBuffer> lazy) {
  const std::lock_guard lock(state_->mutex);
  state_->lazy = std::move(lazy);
}

// ---- making

Tensor Tensor::from_elements(const void* data, std::size_t count, DType from, Dims shape,
                             const Options& o, Where where) {
  const std::int64_t n = checked_count("tensor", shape, where);
  if (n != static_cast<std::int64_t>(count)) {
    fail<ShapeError>("tensor",
                     cat(count, " values were given for shape ", to_text(shape_of(shape))), where,
                     cat("give ", n, " values, or another shape"));
  }
  const DType to = o.dtype.value_or(from);
  const auto width = static_cast<std::size_t>(size_of(to)),
             source = static_cast<std::size_t>(size_of(from));
  std::vector<std::byte> bytes(count * width);
  for (std::size_t i = 0; i < count; ++i) {
    const Scalar given = load_scalar(static_cast<const char*>(data) + i * source, from);
    store_scalar(bytes.data() + i * width, mote::cast(given, to));
  }
  return from_bytes(bytes, std::move(shape), to, o, where);
}

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, Dims shape, DType dtype, Options o,
                          Where where) {
  const std::int64_t n = checked_count("tensor", shape, where);
  if (n > (INT64_MAX >> 3) || n * size_of(dtype) != static_cast<std::int64_t>(bytes.size())) {
    fail<ShapeError>(
        "tensor",
        cat(bytes.size(), " bytes were given for ", to_text(shape_of(shape)), " of ",
            std::string(name_of(dtype))),
        where, "the size of the data must be the product of the shape times the size of the dtype");
  }
  auto buffer =
      Buffer::make(device_of(o, "tensor", where), static_cast<std::int64_t>(bytes.size()));
  if (!bytes.empty()) buffer->write(bytes.data(), 0, buffer->bytes());
  return finished(from_buffer(std::move(buffer), shape_of(shape), dtype), o, where);
}

Tensor Tensor::from_blob(void* data, Dims shape, DType dtype, Where where) {
  const std::int64_t n = checked_count("from_blob", shape, where);
  if (!data && n > 0)
    fail<ValueError>("from_blob", "the address is null", where, "give memory that outlives it");
  return Tensor(from_buffer(Buffer::borrow(default_device(), data, n * size_of(dtype), [] {}),
                            shape_of(shape), dtype));
}

Tensor Tensor::empty(Dims shape, Options o, Where where) {
  return zeros(std::move(shape), std::move(o), where);
}
Tensor Tensor::zeros(Dims shape, Options o, Where where) {
  return filled("zeros", shape, Scalar(o.dtype.value_or(default_float()), 0), o, where);
}
Tensor Tensor::ones(Dims shape, Options o, Where where) {
  return filled("ones", shape, Scalar(o.dtype.value_or(default_float()), 1), o, where);
}

Tensor Tensor::full(Dims shape, const Operand& value, Options o, Where where) {
  if (value.number() == Operand::Number::none)
    return tensor_of(value).expand(std::move(shape), where);
  const Within op("full", where);
  return filled("full", shape, scalar_of(value, o.dtype.value_or(own_dtype(value))), o, where);
}

Tensor Tensor::arange(const Operand& end, Options o, Where where) {
  return arange(0, end, 1, std::move(o), where);
}

Tensor Tensor::arange(const Operand& start, const Operand& end, const Operand& step, Options o,
                      Where where) {
  for (const Operand& x : {start, end, step}) {
    if (x.number() == Operand::Number::none)
      fail<ValueError>("arange", "a bound or the step is a tensor", where,
                       "give numbers; item() reads one");
  }
  const auto real = [](const Operand& x) { return x.number() == Operand::Number::floating; };
  const bool whole = !real(start) && !real(end) && !real(step);
  if (step.real() == 0)
    fail<ValueError>("arange", "the step is 0", where, "give a step that is not 0");
  const double span = (end.real() - start.real()) / step.real();
  const std::int64_t n = span > 0 ? static_cast<std::int64_t>(std::ceil(span)) : 0;
  const DType t = o.dtype.value_or(whole ? default_int() : default_float());
  const DType count_type = is_float(t) ? DType::float64 : DType::int64;
  const PlaceScope place(where);
  const Tensor i(iota(n, count_type, device_of(o, "arange", where)));
  if (n == 0) return zeros({0}, {t, o.device, false}, where);
  Tensor value = i;
  if (step.real() != 1) value = is_float(t) ? value * step.real() : value * step.integer();
  if (start.real() != 0) value = is_float(t) ? value + start.real() : value + start.integer();
  return finished(value.cast(t, where).lazy(), o, where);
}

Tensor Tensor::linspace(double start, double end, std::int64_t steps, Options o, Where where) {
  if (steps < 0)
    fail<ShapeError>("linspace", cat("the number of steps is ", steps), where, "give 0 or more");
  if (steps == 0) return zeros({0}, o, where);
  const Tensor i(iota(steps, DType::float64, device_of(o, "linspace", where)));
  const Tensor t = i * (steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0.0) + start;
  return finished(t.cast(o.dtype.value_or(default_float()), where).lazy(), o, where);
}

Tensor Tensor::eye(std::int64_t n, std::optional<std::int64_t> m, Options o, Where where) {
  const std::int64_t columns = m.value_or(n);
  checked_count("eye", {n, columns}, where);
  const Tensor i =
      arange(static_cast<int64_t>(n), {.device = o.device}, where).reshape({n, 1}, where);
  const Tensor j = arange(static_cast<int64_t>(columns), {.device = o.device}, where)
                       .reshape({1, columns}, where);
  return finished((i == j).cast(o.dtype.value_or(default_float()), where).lazy(), o, where);
}

Tensor Tensor::empty_like(Where where) const { return zeros_like(where); }
Tensor Tensor::zeros_like(Where where) const { return full_like(0, where); }
Tensor Tensor::ones_like(Where where) const { return full_like(1, where); }
Tensor Tensor::full_like(const Operand& value, Where where) const {
  const Within op("full_like", where);
  const Lazy n = lazy();
  return wrap(broadcast_to(lazy_of(value, n->dtype, *n->device), n->shape));
}

void throw_ragged(std::size_t expected, std::size_t found, Where where) {
  fail<ShapeError>("tensor", cat("a row of ", found, " values stands beside rows of ", expected),
                   where, "all rows need the same length");
}

// ---- properties

Dims Tensor::shape() const { return dims_of(lazy()->shape); }
int Tensor::ndim() const { return static_cast<int>(lazy()->shape.size()); }
std::int64_t Tensor::size(int axis) const {
  return shape()[static_cast<std::size_t>(checked_axis("size", axis, ndim(), *this, Where{}))];
}
std::int64_t Tensor::numel() const {
  std::int64_t n = 1;
  for (std::int64_t s : shape()) n *= s;
  return n;
}
DType Tensor::dtype() const { return lazy()->dtype; }
std::string Tensor::device() const { return lazy()->device->name(); }
bool Tensor::is_realized() const {
  const Lazy n = lazy();
  return (n->is_view() ? n->base : n)->is_realized();
}
const std::string& Tensor::name() const { return state_->name; }
Tensor& Tensor::set_name(std::string name) {
  lazy()->name = name;
  state_->name = std::move(name);
  return *this;
}

// ---- running and reading

namespace {

// Tensors with bytes that were written in place on this thread and not realized since: running
// statistics, the counters of random numbers. They are realized with whatever is realized next, so
// that a recorded step holds them.
std::vector<std::weak_ptr<TensorState>>& pending_writes() {
  thread_local std::vector<std::weak_ptr<TensorState>> all;
  return all;
}

}  // namespace

void realize(const std::vector<Tensor>& tensors, Where where) {
  const PlaceScope place(where);
  std::vector<Lazy> roots;
  for (const Tensor& t : tensors) roots.push_back(t.lazy());
  std::vector<std::weak_ptr<TensorState>> pending;
  pending.swap(pending_writes());
  for (const auto& weak : pending) {
    const auto state = weak.lock();
    if (!state) continue;
    const std::lock_guard lock(state->mutex);
    if (state->lazy->op == Op::assign && !state->lazy->is_realized()) roots.push_back(state->lazy);
  }
  realize(roots);
}

Tensor& Tensor::realize(Where where) {
  expect_defined("realize", *this, where);
  mote::realize(std::vector<Tensor>{*this}, where);
  return *this;
}

std::vector<std::byte> Tensor::to_bytes(Where where) const {
  expect_defined("to_bytes", *this, where);
  if (capturing()) {
    fail<JitError>("jit", "a value is read on the host while a function is recorded", where,
                   "return the tensor and read it after the call");
  }
  const Tensor t(mote::contiguous(lazy()));
  mote::realize(std::vector<Tensor>{t}, where);
  const Lazy n = t.lazy();
  const Lazy& stored = n->is_view() ? n->base : n;
  std::vector<std::byte> bytes(static_cast<std::size_t>(numel() * size_of(dtype())));
  const std::lock_guard lock(graph_lock());
  if (!bytes.empty())
    stored->buffer->read(bytes.data(), 0, static_cast<std::int64_t>(bytes.size()));
  return bytes;
}

// By the conversion of cast(), on the host.
std::vector<std::byte> Tensor::converted(DType to, Where where) const {
  const DType from = dtype();
  const auto bytes = to_bytes(where);
  const auto have = static_cast<std::size_t>(size_of(from)),
             want = static_cast<std::size_t>(size_of(to));
  std::vector<std::byte> out(bytes.size() / have * want);
  for (std::size_t i = 0; i * have < bytes.size(); ++i)
    store_scalar(out.data() + i * want, mote::cast(load_scalar(bytes.data() + i * have, from), to));
  return out;
}

void Tensor::read_item(void* value, DType as, Where where) const {
  const Within op("item", where);
  expect_defined("item", *this, where);
  if (numel() != 1)
    refuse<ShapeError>("the tensor has shape {}, not one element; index or reduce it first", *this);
  const auto bytes = converted(as, where);
  std::memcpy(value, bytes.data(), bytes.size());
}

// ---- writing in place

bool is_leaf(const Lazy& n) {
  return n->requires_grad &&
         (n->src.empty() || (n->own_gradient && n->own_gradient->inputs.empty()));
}

void expect_writable(const Lazy& old) {
  if (!is_leaf(old) || !grad_enabled()) return;
  refuse<GradientError>(
      "a leaf that requires a gradient is written in place{}; do it under NoGrad, "
      "or write to a copy",
      old->name.empty() ? "" : ": '" + old->name + "'");
}

void write_over(const State& handle, Lazy written) {
  const Lazy old = current(handle);
  if (is_leaf(old)) {
    written->requires_grad = true;
    written->own_gradient = std::make_shared<OwnGradient>();
  }
  const Where place = current_place();
  if (old->requires_grad) old->overwritten = place.line ? place : Where{"?", 1};
  written->name = old->name;
  pending_writes().push_back(handle);
  const std::lock_guard lock(handle->mutex);
  handle->lazy = std::move(written);
}

Tensor& Tensor::assign(const Operand& value, Where where) {
  expect_defined("assign", *this, where);
  const Within op(state_->part ? "setitem" : "assign", where);
  const Lazy old = lazy();
  Lazy v = lazy_of(value, old->dtype, *old->device);
  if (v->device != old->device)
    refuse<DeviceError>("the value is on {}, the tensor on {}; move it with .to(device)",
                        v->device->name(), old->device->name());
  if (state_->part) {
    write_part(state_, value);
    return *this;
  }
  expect_writable(old);
  const Shape given = v->shape;
  try {
    v = broadcast_to(v, broadcast_shape(v->shape, old->shape));
  } catch (const ShapeError&) {
    v = nullptr;
  }
  if (!v || v->shape != old->shape) {
    refuse<ShapeError>(
        "a value of shape {} does not broadcast to the tensor's shape {}; assign "
        "keeps the shape",
        to_text(given), to_text(old->shape));
  }
  write_over(state_, mote::assign(old, v));
  return *this;
}

namespace {

// x = x op v, of a part on what its base holds now. The dtype stays, and may not lose the kind.
void update(Tensor& x, std::string_view name, const Operand& v,
            Tensor (*op)(const Operand&, const Operand&)) {
  const Within within(name, v.where());
  expect_defined(name, x, v.where());
  const Tensor result = op(wrap(current(Operand(x).state())), v);
  const auto kind = [](DType t) { return is_float(t) ? 2 : t == DType::boolean ? 0 : 1; };
  if (kind(result.dtype()) > kind(x.dtype())) {
    refuse<DTypeError>("the result is {}, the tensor {}; cast the tensor, or the result by assign",
                       result.dtype(), x.dtype());
  }
  x.assign(result, v.where());
}

}  // namespace

Tensor& Tensor::operator+=(const Operand& v) {
  update(*this, "add", v, mote::operator+);
  return *this;
}
Tensor& Tensor::operator-=(const Operand& v) {
  update(*this, "sub", v, mote::operator-);
  return *this;
}
Tensor& Tensor::operator*=(const Operand& v) {
  update(*this, "mul", v, mote::operator*);
  return *this;
}
Tensor& Tensor::operator/=(const Operand& v) {
  update(*this, "div", v, mote::operator/);
  return *this;
}

// ---- dtype and device

Tensor Tensor::cast(DType t, Where where) const {
  expect_defined("cast", *this, where);
  const PlaceScope place(where);
  return wrap(cast_lazy(lazy(), t));
}

Tensor Tensor::bitcast(DType t, Where where) const {
  if (size_of(dtype()) != size_of(t)) {
    fail<DTypeError>("bitcast",
                     cat(std::string(name_of(dtype())), " and ", std::string(name_of(t)),
                         " have different sizes"),
                     where, "use cast to convert values");
  }
  return wrap(bitcast_lazy(lazy(), t));
}

Tensor Tensor::to(std::string_view device, Where where) const {
  expect_defined("to", *this, where);
  const PlaceScope place(where);
  return wrap(copy_to(lazy(), device_at("to", device, where)));
}

Tensor Tensor::contiguous(Where where) const {
  expect_defined("contiguous", *this, where);
  const PlaceScope place(where);
  return wrap(mote::contiguous(lazy()));
}

}  // namespace mote
