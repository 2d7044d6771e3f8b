// The handle itself: making, reading, writing in place.
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/engine.h"
#include "tensor/lift.h"

namespace mote {
namespace {

std::atomic<DType> float_default{DType::float32}, int_default{DType::int64};

Tensor filled(const Dims& shape, Scalar value, const Options& o) {
  checked_count(shape);
  return finished(wrap(constant_lazy(value, shape_of(shape), device_of(o))), o);
}

}  // namespace

DType default_float() { return float_default; }
DType default_int() { return int_default; }
void set_default_float(DType t, Where where) {
  const Within op("set_default_float", where);
  if (!is_float(checked_dtype(t))) refuse<DTypeError>("{} is no float; give float32 or another", t);
  float_default = t;
}
void set_default_int(DType t, Where where) {
  const Within op("set_default_int", where);
  if (!is_integer(checked_dtype(t)))
    refuse<DTypeError>("{} is no integer; give int64 or another", t);
  int_default = t;
}

Operand::Operand(const Tensor& t, Where where) : state_(t.state_), where_(where) {}

Tensor::Tensor(std::shared_ptr<LazyBuffer> lazy) : state_(std::make_shared<TensorState>()) {
  state_->lazy = std::move(lazy);
}

std::shared_ptr<LazyBuffer> Tensor::lazy() const {
  if (!state_) refuse<ValueError>("the tensor is not defined; give it a value first");
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
  const Within op("tensor", where);
  const std::int64_t n = checked_count(shape);
  if (n != static_cast<std::int64_t>(count))
    refuse<ShapeError>("{} values were given for shape {}; give {} values, or another shape", count,
                       shape, n);
  const auto width = static_cast<std::size_t>(size_of(from));
  const std::span all(static_cast<const std::byte*>(data), count * width);
  const DType to = dtype_of(o, from);
  return from_bytes(mote::converted(all, from, to), std::move(shape), to, o);
}

Tensor Tensor::from_bytes(std::span<const std::byte> bytes, Dims shape, DType dtype, Options o,
                          Where where) {
  const Within op("tensor", where);
  const std::int64_t n = checked_count(shape), size = static_cast<std::int64_t>(bytes.size());
  if (n > (INT64_MAX >> 3) || n * size_of(checked_dtype(dtype)) != size)
    refuse<ShapeError>(
        "{} bytes were given for {} of {}; the size of the data must be the product "
        "of the shape times the size of the dtype",
        size, shape, dtype);
  auto buffer = Buffer::make(device_of(o), size);
  if (size) buffer->write(bytes.data(), 0, size);
  return finished(wrap(from_buffer(std::move(buffer), shape_of(shape), dtype)), o);
}

Tensor Tensor::from_blob(void* data, Dims shape, DType dtype, Where where) {
  const Within op("from_blob", where);
  const std::int64_t n = checked_count(shape);
  if (!data && n > 0) refuse<ValueError>("the address is null; give memory that outlives it");
  auto shared = Buffer::borrow(default_device(), data, n * size_of(checked_dtype(dtype)), [] {});
  return wrap(from_buffer(std::move(shared), shape_of(shape), dtype));
}

Tensor Tensor::empty(Dims shape, Options o, Where where) {
  return Within("empty", where)(zeros(std::move(shape), std::move(o)));
}
Tensor Tensor::zeros(Dims shape, Options o, Where where) {
  return Within("zeros", where)(filled(shape, Scalar(dtype_of(o, default_float()), 0), o));
}
Tensor Tensor::ones(Dims shape, Options o, Where where) {
  return Within("ones", where)(filled(shape, Scalar(dtype_of(o, default_float()), 1), o));
}
Tensor Tensor::full(Dims shape, const Operand& value, Options o, Where where) {
  const Within op("full", where);
  if (is_number(value)) return filled(shape, scalar_of(value, dtype_of(o, own_dtype(value))), o);
  const Tensor t = tensor_of(value);
  const Tensor there = o.device.empty() ? t : t.to(o.device);
  return finished(there.cast(dtype_of(o, t.dtype())).expand(std::move(shape)), o);
}

Tensor Tensor::arange(const Operand& end, Options o, Where where) {
  return Within("arange", where)(arange(0, end, 1, std::move(o)));
}

Tensor Tensor::arange(const Operand& start, const Operand& end, const Operand& step, Options o,
                      Where where) {
  const Within op("arange", where);
  bool whole = true;
  for (const Operand& x : {start, end, step}) {
    if (!is_number(x))
      refuse<ValueError>("a bound or the step is a tensor; give numbers; item() reads one");
    whole &= x.number() != Operand::Number::floating;
  }
  if (step.real() == 0) refuse<ValueError>("the step is 0; give a step that is not 0");
  const double span = (end.real() - start.real()) / step.real();
  if (!(std::abs(span) < 0x1p62) || !std::isfinite(step.real()))
    refuse<ShapeError>(
        "{} to {} by {} is no number of elements; give finite bounds and a step "
        "that reaches them",
        start.real(), end.real(), step.real());
  const std::int64_t n = whole      ? steps_between(start.integer(), end.integer(), step.integer())
                         : span > 0 ? static_cast<std::int64_t>(std::ceil(span))
                                    : 0;
  const DType t = dtype_of(o, whole ? default_int() : default_float());
  if (n == 0) return filled({0}, Scalar(t, 0), o);
  Tensor value = wrap(iota(n, is_float(t) ? DType::float64 : DType::int64, device_of(o)));
  if (step.real() != 1) value = is_float(t) ? value * step.real() : value * step.integer();
  if (start.real() != 0) value = is_float(t) ? value + start.real() : value + start.integer();
  return finished(value.cast(t), o);
}

Tensor Tensor::linspace(double start, double end, std::int64_t steps, Options o, Where where) {
  const Within op("linspace", where);
  if (steps < 0) refuse<ShapeError>("the number of steps is {}; give 0 or more", steps);
  const DType t = dtype_of(o, default_float());
  if (steps == 0) return filled({0}, Scalar(t, 0), o);
  const Tensor i = wrap(iota(steps, DType::float64, device_of(o)));
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0.0;
  return finished((i * step + start).cast(t), o);
}

Tensor Tensor::eye(std::int64_t n, std::optional<std::int64_t> m, Options o, Where where) {
  const Within op("eye", where);
  checked_count({n, m.value_or(n)});
  const Tensor on = places_along(0, n, 2, o.device) == places_along(1, m.value_or(n), 2, o.device);
  return finished(on.cast(dtype_of(o, default_float())), o);
}

Tensor Tensor::empty_like(Where where) const { return Within("empty_like", where)(zeros_like()); }
Tensor Tensor::zeros_like(Where where) const { return Within("zeros_like", where)(full_like(0)); }
Tensor Tensor::ones_like(Where where) const { return Within("ones_like", where)(full_like(1)); }
Tensor Tensor::full_like(const Operand& value, Where where) const {
  const Within op("full_like", where);
  const Lazy n = lazy();
  return wrap(broadcast_to(lazy_of(value, n->dtype, *n->device), n->shape));
}

void throw_ragged(std::size_t expected, std::size_t found, Where where) {
  const Within op("tensor", where);
  refuse<ShapeError>("a row of {} values stands beside rows of {}; all rows need the same length",
                     found, expected);
}

// ---- properties

Dims Tensor::shape() const { return dims_of(lazy()->shape); }
int Tensor::ndim() const { return static_cast<int>(lazy()->shape.size()); }
std::int64_t Tensor::size(int axis, Where where) const {
  const Within op("size", where);
  const Dims all = shape();
  return all[idx(checked_axis(axis, static_cast<int>(all.size()), *this))];
}
std::int64_t Tensor::numel() const { return product(shape()); }
DType Tensor::dtype() const { return lazy()->dtype; }
std::string Tensor::device() const { return lazy()->device->name(); }
bool Tensor::is_realized() const {
  const Lazy n = lazy();
  return (n->is_view() ? n->base : n)->is_realized();
}
const std::string& Tensor::name() const {
  if (!state_) refuse<ValueError>("the tensor is not defined; give it a value first");
  return state_->name;
}
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
  const Within op("realize", where);
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
  mote::realize(std::vector<Tensor>{*this}, where);
  return *this;
}

std::vector<std::byte> Tensor::to_bytes(Where where) const {
  const Within op("to_bytes", where);
  if (capturing())
    refuse<JitError>(
        "a value is read on the host while a function is recorded; return the tensor "
        "and read it after the call");
  const Tensor t = wrap(mote::contiguous(lazy()));
  mote::realize(std::vector<Tensor>{t});
  const Lazy n = t.lazy();
  const Lazy& stored = n->is_view() ? n->base : n;
  std::vector<std::byte> bytes(static_cast<std::size_t>(numel() * size_of(dtype())));
  const std::lock_guard lock(graph_lock());
  if (!bytes.empty())
    stored->buffer->read(bytes.data(), 0, static_cast<std::int64_t>(bytes.size()));
  return bytes;
}

std::vector<std::byte> Tensor::converted(DType to, Where where) const {
  return mote::converted(to_bytes(where), dtype(), to);
}

void Tensor::read_item(void* value, DType as, Where where) const {
  const Within op("item", where);
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
    written->handle = handle;
  }
  const Where place = current_place();
  if (old->requires_grad) old->overwritten = place.line ? place : Where{"?", 1};
  written->name = old->name;
  pending_writes().push_back(handle);
  const std::lock_guard lock(handle->mutex);
  handle->lazy = std::move(written);
}

Tensor& Tensor::assign(const Operand& value, Where where) {
  const Within op(state_ && state_->part ? "setitem" : "assign", where);
  const Lazy old = lazy(), v = lazy_of(value, old->dtype, *old->device);
  if (v->device != old->device)
    refuse<DeviceError>("the value is on {}, the tensor on {}; move it with .to(device)",
                        v->device->name(), old->device->name());
  if (state_->part) {
    write_part(state_, wrap(v));
    return *this;
  }
  expect_writable(old);
  const Lazy whole = broadcast_into(v, old->shape, "tensor's", "assign keeps the shape");
  write_over(state_, mote::assign(old, whole));
  return *this;
}

namespace {

// x = x op v, of a part on what its base holds now. The dtype stays, and may not lose the kind.
Tensor& update(Tensor& x, std::string_view name, const Operand& v,
               Tensor (*op)(const Operand&, const Operand&)) {
  const Within within(name, v.where());
  const State state = Operand(x).state();
  const Tensor result = op(state ? wrap(current(state)) : x, v);
  const auto kind = [](DType t) { return is_float(t) ? 2 : t == DType::boolean ? 0 : 1; };
  if (kind(result.dtype()) > kind(x.dtype()))
    refuse<DTypeError>("the result is {}, the tensor {}; cast the tensor, or the result by assign",
                       result.dtype(), x.dtype());
  return x.assign(result);
}

}  // namespace

Tensor& Tensor::operator+=(const Operand& v) { return update(*this, "add", v, mote::operator+); }
Tensor& Tensor::operator-=(const Operand& v) { return update(*this, "sub", v, mote::operator-); }
Tensor& Tensor::operator*=(const Operand& v) { return update(*this, "mul", v, mote::operator*); }
Tensor& Tensor::operator/=(const Operand& v) { return update(*this, "div", v, mote::operator/); }

// ---- dtype and device

Tensor Tensor::cast(DType t, Where where) const {
  return Within("cast", where)(wrap(cast_lazy(lazy(), checked_dtype(t))));
}

Tensor Tensor::bitcast(DType t, Where where) const {
  const Within op("bitcast", where);
  if (size_of(dtype()) != size_of(checked_dtype(t)))
    refuse<DTypeError>("{} and {} have different sizes; use cast to convert values", dtype(), t);
  return wrap(bitcast_lazy(lazy(), t));
}

Tensor Tensor::to(std::string_view device, Where where) const {
  return Within("to", where)(wrap(copy_to(lazy(), device_at(device))));
}
Tensor Tensor::contiguous(Where where) const {
  return Within("contiguous", where)(wrap(mote::contiguous(lazy())));
}

}  // namespace mote
