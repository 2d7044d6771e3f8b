// Reductions, scans and what is composed of them.
#include <algorithm>
#include <cmath>

#include "tensor/lift.h"

namespace mote {
namespace {

std::int64_t count_along(const Tensor& t, const std::vector<int>& axes) {
  std::int64_t n = 1;
  const Dims shape = t.shape();
  for (int a : axes) n *= shape[idx(a)];
  return n;
}

// The reduced axes stay as 1, or go.
Tensor shaped(const Tensor& reduced, const std::vector<int>& axes, bool keepdim, Where at) {
  if (keepdim) return reduced;
  Dims to;
  const Dims from = reduced.shape();
  for (int i = 0; i < reduced.ndim(); ++i)
    if (std::ranges::find(axes, i) == axes.end()) to.push_back(from[idx(i)]);
  return reduced.reshape(to, at);
}

Tensor reduced(std::string_view name, Op op, const Tensor& x, const AxisList& list, bool keepdim,
               Where at) {
  const auto axes = checked_axes(name, list, x, at);
  const PlaceScope place(at);
  return shaped(wrap(reduce_lazy(op, x.lazy(), axes)), axes, keepdim, at);
}

// Small floats accumulate in float32 and are rounded once.
Tensor accumulated(std::string_view name, Op op, const Tensor& x, const AxisList& axes,
                   bool keepdim, std::optional<DType> dtype, Where at) {
  expect_defined(name, x, at);
  const DType to = dtype.value_or(sum_dtype(x.dtype()));
  return reduced(name, op, x.cast(accumulator_dtype(to), at), axes, keepdim, at).cast(to, at);
}

// max and min have no value for no element, unless there is no result either.
void expect_elements(std::string_view name, const Tensor& x, const std::vector<int>& axes,
                     Where at) {
  if (count_along(x, axes) > 0) return;
  std::int64_t results = 1;
  const Dims shape = x.shape();
  for (int i = 0; i < x.ndim(); ++i)
    if (std::ranges::find(axes, i) == axes.end()) results *= shape[idx(i)];
  if (results > 0)
    fail<ShapeError>(name, cat("there is no element to choose from in shape ", shape_text(x)), at,
                     "reduce an axis that is not empty");
}

Tensor extreme(std::string_view name, Op op, const Tensor& x, const AxisList& list, bool keepdim,
               Where at) {
  expect_defined(name, x, at);
  expect_elements(name, x, checked_axes(name, list, x, at), at);
  if (x.dtype() == DType::boolean) op = op == Op::max ? Op::or_ : Op::and_;
  return reduced(name, op, x, list, keepdim, at);
}

// The first place of the best value, or of NaN: counted backwards from the end, the greatest wins.
Tensor arg_extreme(std::string_view name, Op op, const Tensor& x, std::optional<int> axis,
                   bool keepdim, Where at) {
  expect_defined(name, x, at);
  if (!axis) {
    expect_elements(name, x, checked_axes(name, {}, x, at), at);
    const Tensor flat = arg_extreme(name, op, x.flatten(0, -1, at), 0, false, at);
    return keepdim ? flat.reshape(Dims(idx(x.ndim()), 1), at) : flat;
  }
  const int a = checked_axis(name, *axis, x.ndim(), x, at);
  const Tensor best = extreme(name, op, x, a, true, at);
  const std::int64_t n = x.shape()[idx(a)];
  Dims line(idx(x.ndim()), 1);
  line[idx(a)] = n;
  const Tensor place =
      n - Tensor::arange(n, {DType::int64, x.device(), false}, at).reshape(line, at);
  Tensor hit = x == best;
  if (is_float(x.dtype())) hit = hit | x.isnan(at);
  return n - mote::where(hit, place, 0).max(a, keepdim, at);
}

Tensor scanned(std::string_view name, Op op, const Tensor& x, int axis, Where at) {
  if (x.ndim() == 0) return x;
  const int a = checked_axis(name, axis, x.ndim(), x, at);
  const PlaceScope place(at);
  return wrap(scan_lazy(op, x.lazy(), a));
}

// In which the greatest and the least are found: what has no code of its own is exact in a wider one.
DType scan_dtype(DType t) {
  if (t == DType::boolean) return DType::uint8;
  return is_float(t) ? accumulator_dtype(t) : t;
}

Tensor shifted_by_max(const Tensor& x, int axis, Where at) {
  return x - x.max(axis, true, at).detach(at);
}

}  // namespace

Tensor Tensor::sum(const AxisList& axes, bool keepdim, std::optional<DType> t, Where at) const {
  return accumulated("sum", Op::add, *this, axes, keepdim, t, at);
}
Tensor Tensor::prod(const AxisList& axes, bool keepdim, std::optional<DType> t, Where at) const {
  return accumulated("prod", Op::mul, *this, axes, keepdim, t, at);
}

Tensor Tensor::mean(const AxisList& list, bool keepdim, Where at) const {
  const Tensor x = as_float(*this, at);
  const auto n = static_cast<double>(count_along(x, checked_axes("mean", list, x, at)));
  return (x.cast(accumulator_dtype(x.dtype()), at).sum(list, keepdim, {}, at) / n)
      .cast(x.dtype(), at);
}

Tensor Tensor::var(const AxisList& list, bool keepdim, double correction, Where at) const {
  const Tensor t = as_float(*this, at), x = t.cast(accumulator_dtype(t.dtype()), at);
  const auto n = static_cast<double>(count_along(x, checked_axes("var", list, x, at)));
  const Tensor off = x - x.mean(list, true, at);
  return ((off * off).sum(list, keepdim, {}, at) / std::max(0.0, n - correction))
      .cast(t.dtype(), at);
}

Tensor Tensor::std(const AxisList& list, bool keepdim, double correction, Where at) const {
  return var(list, keepdim, correction, at).sqrt(at);
}
Tensor Tensor::max(const AxisList& list, bool keepdim, Where at) const {
  return extreme("max", Op::max, *this, list, keepdim, at);
}
Tensor Tensor::min(const AxisList& list, bool keepdim, Where at) const {
  return extreme("min", Op::min, *this, list, keepdim, at);
}
Tensor Tensor::any(const AxisList& list, bool keepdim, Where at) const {
  return reduced("any", Op::or_, cast(DType::boolean, at), list, keepdim, at);
}
Tensor Tensor::all(const AxisList& list, bool keepdim, Where at) const {
  return reduced("all", Op::and_, cast(DType::boolean, at), list, keepdim, at);
}
Tensor Tensor::argmax(std::optional<int> axis, bool keepdim, Where at) const {
  return arg_extreme("argmax", Op::max, *this, axis, keepdim, at);
}
Tensor Tensor::argmin(std::optional<int> axis, bool keepdim, Where at) const {
  return arg_extreme("argmin", Op::min, *this, axis, keepdim, at);
}

Tensor Tensor::norm(double p, const AxisList& list, bool keepdim, Where at) const {
  const Tensor x = as_float(*this, at);
  if (p == INFINITY) return extreme("norm", Op::max, x.abs(at), list, keepdim, at);
  if (p == 1) return x.abs(at).sum(list, keepdim, {}, at);
  if (p == 2) return (x * x).sum(list, keepdim, {}, at).sqrt(at);
  return x.abs(at).pow(p, at).sum(list, keepdim, {}, at).pow(1 / p, at);
}

Tensor Tensor::logsumexp(const AxisList& list, bool keepdim, Where at) const {
  const Tensor x = as_float(*this, at);
  const auto axes = checked_axes("logsumexp", list, x, at);
  if (count_along(x, axes) == 0) return x.sum(axes, keepdim, {}, at).log(at);  // of nothing: -inf
  const Tensor top = x.max(axes, true, at).detach(at);
  const Tensor base = mote::where(top.isinf(at), top.zeros_like(at), top);
  const Tensor total = (x - base).exp(at).sum(axes, true, {}, at).log(at) + base;
  return shaped(total, axes, keepdim, at);
}

Tensor Tensor::softmax(int axis, Where at) const {
  const Tensor t = as_float(*this, at), x = t.cast(accumulator_dtype(t.dtype()), at);
  if (x.ndim() == 0) return x.ones_like(at).cast(t.dtype(), at);
  checked_axis("softmax", axis, x.ndim(), x, at);
  if (x.numel() == 0) return t;
  const Tensor e = shifted_by_max(x, checked_axis("softmax", axis, x.ndim(), x, at), at).exp(at);
  return (e / e.sum(axis, true, {}, at)).cast(t.dtype(), at);
}

Tensor Tensor::log_softmax(int axis, Where at) const {
  const Tensor t = as_float(*this, at), x = t.cast(accumulator_dtype(t.dtype()), at);
  if (x.ndim() == 0) return x.zeros_like(at).cast(t.dtype(), at);
  checked_axis("log_softmax", axis, x.ndim(), x, at);
  if (x.numel() == 0) return t;
  const Tensor off = shifted_by_max(x, checked_axis("log_softmax", axis, x.ndim(), x, at), at);
  return (off - off.exp(at).sum(axis, true, {}, at).log(at)).cast(t.dtype(), at);
}

Tensor Tensor::softmin(int axis, Where at) const { return neg(at).softmax(axis, at); }

Tensor Tensor::normalize(double p, int axis, double eps, Where at) const {
  const OuterPlace outer(at);
  checked_axis("normalize", axis, ndim(), *this, at);
  const Tensor size = norm(p, axis, true, at);
  return *this / mote::maximum(size, eps);
}

Tensor Tensor::layernorm(int axes, double eps, Where at) const {
  const OuterPlace outer(at);
  expect_defined("layernorm", *this, at);
  if (axes < 1 || axes > ndim())
    fail<IndexError>("layernorm", cat(axes, " axes of shape ", shape_text(*this)), at,
                     cat("give 1..", ndim(), ", counted from the last"));
  std::vector<int> last;
  for (int i = ndim() - axes; i < ndim(); ++i) last.push_back(i);
  const Tensor off = *this - mean(last, true, at);
  return off * ((off * off).mean(last, true, at) + eps).rsqrt(at);
}

Tensor Tensor::cumsum(int axis, Where at) const {
  const DType to = sum_dtype(dtype());
  return scanned("cumsum", Op::add, cast(accumulator_dtype(to), at), axis, at).cast(to, at);
}
Tensor Tensor::cumprod(int axis, Where at) const {
  const DType to = sum_dtype(dtype());
  return scanned("cumprod", Op::mul, cast(accumulator_dtype(to), at), axis, at).cast(to, at);
}
Tensor Tensor::cummax(int axis, Where at) const {
  return scanned("cummax", Op::max, cast(scan_dtype(dtype()), at), axis, at).cast(dtype(), at);
}
Tensor Tensor::cummin(int axis, Where at) const {
  return scanned("cummin", Op::min, cast(scan_dtype(dtype()), at), axis, at).cast(dtype(), at);
}

// By doubling: after step k each element holds the sum of the 2^k that end at it.
Tensor Tensor::logcumsumexp(int axis, Where at) const {
  const Tensor x = as_float(*this, at);
  if (x.ndim() == 0) return x;
  const int a = checked_axis("logcumsumexp", axis, x.ndim(), x, at);
  const std::int64_t n = x.size(a);
  Tensor sums = x.cast(accumulator_dtype(x.dtype()), at);
  for (std::int64_t step = 1; step < n; step *= 2) {
    std::vector<std::pair<std::int64_t, std::int64_t>> later(idx(x.ndim()), {0, 0});
    later[idx(a)] = {step, -step};
    sums = sums.logaddexp(sums.pad(later, -INFINITY, at), at);
  }
  return sums.cast(x.dtype(), at);
}

}  // namespace mote
