// Reductions, scans and what is composed of them.
#include <algorithm>
#include <cmath>

#include "tensor/lift.h"

namespace mote {
namespace {

std::int64_t count_along(const Tensor& t, const std::vector<int>& axes) {
  std::int64_t n = 1;
  for (int a : axes) n *= t.size(a);
  return n;
}

// The reduced axes stay as 1, or go.
Tensor shaped(const Tensor& reduced, const std::vector<int>& axes, bool keepdim) {
  Dims to;
  for (int i = 0; i < reduced.ndim(); ++i)
    if (keepdim || std::ranges::find(axes, i) == axes.end()) to.push_back(reduced.size(i));
  return reduced.reshape(to);
}

Tensor reduced(Op op, const Tensor& x, const AxisList& list, bool keepdim) {
  const auto axes = checked_axes(list, x);
  return shaped(wrap(reduce_lazy(op, x.lazy(), axes)), axes, keepdim);
}

Tensor accumulated(std::string_view name, Where at, Op op, const Tensor& x, const AxisList& axes,
                   bool keepdim, std::optional<DType> dtype) {
  const Within within(name, at);
  const DType to = dtype.value_or(sum_dtype(x.dtype()));
  return reduced(op, x.cast(accumulator_dtype(to)), axes, keepdim).cast(to);
}

// f of a float in the dtype that sums run in, rounded once: small floats accumulate in float32.
template <class F>
Tensor in_accumulator(std::string_view name, Where at, const Tensor& x, F f) {
  const Within within(name, at);
  const Tensor t = as_float(x);
  return f(t.cast(accumulator_dtype(t.dtype()))).cast(t.dtype());
}

// max and min have no value for no element, unless there is no result either.
void expect_elements(const Tensor& x, const std::vector<int>& axes) {
  std::int64_t results = 1;
  for (int i = 0; i < x.ndim(); ++i)
    if (std::ranges::find(axes, i) == axes.end()) results *= x.size(i);
  if (count_along(x, axes) == 0 && results > 0)
    refuse<ShapeError>(
        "there is no element to choose from in shape {}; reduce an axis that is not "
        "empty",
        x);
}

Tensor extreme(std::string_view name, Where at, Op op, const Tensor& x, const AxisList& list,
               bool keepdim) {
  const Within within(name, at);
  expect_elements(x, checked_axes(list, x));
  if (x.dtype() == DType::boolean) op = op == Op::max ? Op::or_ : Op::and_;
  return reduced(op, x, list, keepdim);
}

// The first place of the best value, or of NaN: counted backwards from the end, the greatest wins.
Tensor arg_extreme(std::string_view name, Where at, Op op, const Tensor& x, std::optional<int> axis,
                   bool keepdim) {
  const Within within(name, at);
  if (!axis) {
    expect_elements(x, checked_axes({}, x));
    const Tensor flat = arg_extreme(name, at, op, x.flatten(), 0, false);
    return keepdim ? flat.reshape(Dims(idx(x.ndim()), 1)) : flat;
  }
  const int a = checked_axis(*axis, x);
  const std::int64_t n = x.size(a);
  const Tensor place = n - places_along(a, n, x.ndim(), x.device());
  Tensor hit = x == extreme(name, at, op, x, a, true);
  if (is_float(x.dtype())) hit = hit | x.isnan();
  return n - mote::where(hit, place, 0).max(a, keepdim);
}

Tensor scanned(Op op, const Tensor& x, int axis) {
  return x.ndim() ? wrap(scan_lazy(op, x.lazy(), checked_axis(axis, x))) : x;
}

Tensor sum_scan(std::string_view name, Where at, Op op, const Tensor& x, int axis) {
  const Within within(name, at);
  const DType to = sum_dtype(x.dtype());
  return scanned(op, x.cast(accumulator_dtype(to)), axis).cast(to);
}

// What has no code of its own is exact in a wider dtype.
Tensor extreme_scan(std::string_view name, Where at, Op op, const Tensor& x, int axis) {
  const Within within(name, at);
  const DType t = x.dtype(), wide = t == DType::boolean ? DType::uint8 : t;
  return scanned(op, x.cast(is_float(t) ? accumulator_dtype(t) : wide), axis).cast(t);
}

}  // namespace

Tensor Tensor::sum(const AxisList& axes, bool keepdim, std::optional<DType> t, Where at) const {
  return accumulated("sum", at, Op::add, *this, axes, keepdim, t);
}
Tensor Tensor::prod(const AxisList& axes, bool keepdim, std::optional<DType> t, Where at) const {
  return accumulated("prod", at, Op::mul, *this, axes, keepdim, t);
}

Tensor Tensor::mean(const AxisList& list, bool keepdim, Where at) const {
  return in_accumulator("mean", at, *this, [&](const Tensor& x) {
    const auto n = static_cast<double>(count_along(x, checked_axes(list, x)));
    return x.sum(list, keepdim) / n;
  });
}
Tensor Tensor::var(const AxisList& list, bool keepdim, double correction, Where at) const {
  return in_accumulator("var", at, *this, [&](const Tensor& x) {
    const auto n = static_cast<double>(count_along(x, checked_axes(list, x)));
    return (x - x.mean(list, true)).square().sum(list, keepdim) / std::max(0.0, n - correction);
  });
}
Tensor Tensor::std(const AxisList& list, bool keepdim, double correction, Where at) const {
  return Within("std", at)(var(list, keepdim, correction).sqrt());
}

Tensor Tensor::max(const AxisList& list, bool keepdim, Where at) const {
  return extreme("max", at, Op::max, *this, list, keepdim);
}
Tensor Tensor::min(const AxisList& list, bool keepdim, Where at) const {
  return extreme("min", at, Op::min, *this, list, keepdim);
}
Tensor Tensor::any(const AxisList& list, bool keepdim, Where at) const {
  return Within("any", at)(reduced(Op::or_, cast(DType::boolean), list, keepdim));
}
Tensor Tensor::all(const AxisList& list, bool keepdim, Where at) const {
  return Within("all", at)(reduced(Op::and_, cast(DType::boolean), list, keepdim));
}
Tensor Tensor::argmax(std::optional<int> axis, bool keepdim, Where at) const {
  return arg_extreme("argmax", at, Op::max, *this, axis, keepdim);
}
Tensor Tensor::argmin(std::optional<int> axis, bool keepdim, Where at) const {
  return arg_extreme("argmin", at, Op::min, *this, axis, keepdim);
}

Tensor Tensor::norm(double p, const AxisList& list, bool keepdim, Where at) const {
  const Within within("norm", at);
  const Tensor x = as_float(*this);
  if (p == INFINITY) return x.abs().max(list, keepdim);
  if (p == 1) return x.abs().sum(list, keepdim);
  if (p == 2) return x.square().sum(list, keepdim).sqrt();
  return x.abs().pow(p).sum(list, keepdim).pow(1 / p);
}

Tensor Tensor::logsumexp(const AxisList& list, bool keepdim, Where at) const {
  const Within within("logsumexp", at);
  const Tensor x = as_float(*this);
  const auto axes = checked_axes(list, x);
  if (count_along(x, axes) == 0) return x.sum(axes, keepdim).log();  // of nothing: -inf
  const Tensor top = x.max(axes, true).detach();
  const Tensor base = mote::where(top.isinf(), top.zeros_like(), top);
  return shaped((x - base).exp().sum(axes, true).log() + base, axes, keepdim);
}

Tensor Tensor::softmax(int axis, Where at) const {
  return in_accumulator("softmax", at, *this, [&](const Tensor& x) {
    if (x.ndim() == 0) return x.ones_like();
    checked_axis(axis, x);
    if (x.numel() == 0) return x;
    const Tensor e = (x - x.max(axis, true).detach()).exp();
    return e / e.sum(axis, true);
  });
}
Tensor Tensor::log_softmax(int axis, Where at) const {
  return in_accumulator("log_softmax", at, *this, [&](const Tensor& x) {
    if (x.ndim() == 0) return x.zeros_like();
    checked_axis(axis, x);
    if (x.numel() == 0) return x;
    const Tensor off = x - x.max(axis, true).detach();
    return off - off.exp().sum(axis, true).log();
  });
}
Tensor Tensor::softmin(int axis, Where at) const {
  return Within("softmin", at)(neg().softmax(axis));
}

Tensor Tensor::normalize(double p, int axis, double eps, Where at) const {
  return Within("normalize", at)(*this / mote::maximum(norm(p, axis, true), eps));
}

Tensor Tensor::layernorm(int axes, double eps, Where at) const {
  const Within within("layernorm", at);
  if (axes < 1 || axes > ndim())
    refuse<IndexError>("{} axes of shape {}; give 1..{}, counted from the last", axes, *this,
                       ndim());
  std::vector<int> last;
  for (int i = ndim() - axes; i < ndim(); ++i) last.push_back(i);
  const Tensor off = *this - mean(last, true);
  return off * (off.square().mean(last, true) + eps).rsqrt();
}

Tensor Tensor::cumsum(int axis, Where at) const {
  return sum_scan("cumsum", at, Op::add, *this, axis);
}
Tensor Tensor::cumprod(int axis, Where at) const {
  return sum_scan("cumprod", at, Op::mul, *this, axis);
}
Tensor Tensor::cummax(int axis, Where at) const {
  return extreme_scan("cummax", at, Op::max, *this, axis);
}
Tensor Tensor::cummin(int axis, Where at) const {
  return extreme_scan("cummin", at, Op::min, *this, axis);
}

// By doubling: after step k each element holds the sum of the 2^k that end at it.
Tensor Tensor::logcumsumexp(int axis, Where at) const {
  return in_accumulator("logcumsumexp", at, *this, [&](const Tensor& x) {
    if (x.ndim() == 0) return x;
    const int a = checked_axis(axis, x);
    Tensor sums = x;
    for (std::int64_t step = 1; step < x.size(a); step *= 2) {
      Pairs later(idx(x.ndim()), {0, 0});
      later[idx(a)] = {step, -step};
      sums = sums.logaddexp(sums.pad(later, -INFINITY));
    }
    return sums;
  });
}

}  // namespace mote
