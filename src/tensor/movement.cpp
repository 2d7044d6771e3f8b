// Movement operations: checks with the user's words, then the views of graph/.
#include <algorithm>
#include <numeric>

#include "tensor/lift.h"

namespace mote {

Tensor Tensor::reshape(Dims to, Where where) const {
  const Within op("reshape", where);
  const std::int64_t n = numel();
  const auto open = std::ranges::find(to, -1);
  std::int64_t known = 1;
  for (auto size = to.begin(); size != to.end(); ++size) {
    if (size == open) continue;
    if (*size < 0)
      refuse<ShapeError>("size {} in {}; one size may be -1, the others are 0 or more", *size, to);
    if (__builtin_mul_overflow(known, *size, &known))
      refuse<ShapeError>("the sizes {} do not fit in 63 bits; use smaller sizes", to);
  }
  Dims filled = to;
  if (open != to.end()) filled[static_cast<std::size_t>(open - to.begin())] = known ? n / known : 0;
  if (product(filled) != n)
    refuse<ShapeError>("shape {} has {} elements, {} does not; the number of elements must stay",
                       *this, n, filled);
  return wrap(mote::reshape(lazy(), shape_of(filled)));
}

Tensor Tensor::permute(std::vector<int> axes, Where where) const {
  const Within op("permute", where);
  if (static_cast<int>(axes.size()) != ndim())
    refuse<ShapeError>("axes are {} for shape {}; name each axis once", axes.size(), *this);
  checked_axes(axes, *this);
  for (int& a : axes) a = checked_axis(a, *this);
  return wrap(mote::permute(lazy(), axes));
}

Tensor Tensor::transpose(int a, int b, Where where) const {
  const Within op("transpose", where);
  std::vector<int> axes(idx(ndim()));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[idx(checked_axis(a, *this))], axes[idx(checked_axis(b, *this))]);
  return permute(std::move(axes));
}

Tensor Tensor::t(Where where) const {
  const Within op("t", where);
  if (ndim() > 2)
    refuse<ShapeError>("the tensor has shape {}; t takes up to 2 axes; use transpose", *this);
  return ndim() < 2 ? *this : transpose(0, 1);
}

Tensor Tensor::expand(Dims to, Where where) const {
  const Within op("expand", where);
  const Dims from = shape(), asked = to;
  if (to.size() < from.size())
    refuse<ShapeError>("shape {} has more axes than {}; give at least as many axes", *this, to);
  const std::size_t extra = to.size() - from.size();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::int64_t have = i < extra ? 1 : from[i - extra];
    if (to[i] == -1 && i < extra)
      refuse<ShapeError>("-1 for new axis {} of {}; -1 keeps a size; give new axes one", i, asked);
    if (to[i] == -1) to[i] = have;
    if (to[i] < 0 || (have != 1 && have != to[i]))
      refuse<ShapeError>("shape {} does not expand to {}; only axes of size 1 expand", *this,
                         asked);
  }
  checked_count(to);
  return wrap(broadcast_to(lazy(), shape_of(to)));
}

Tensor Tensor::shrink(Pairs spans, Where where) const {
  const Within op("shrink", where);
  if (spans.size() != idx(ndim()))
    refuse<ShapeError>("{} spans for shape {}; give one for each axis", spans.size(), *this);
  Spans out;
  for (int i = 0; i < ndim(); ++i) {
    const auto [begin, end] = spans[idx(i)];
    if (begin < 0 || end < begin || end > size(i))
      refuse<IndexError>("span {}..{} of axis {} of {}; it must lie in 0..{}", begin, end, i, *this,
                         size(i));
    out.push_back({begin, end});
  }
  return wrap(mote::shrink(lazy(), out));
}

Tensor Tensor::pad(Pairs padding, const Operand& value, Where where) const {
  const Within op("pad", where);
  if (padding.size() != idx(ndim()))
    refuse<ShapeError>("{} pairs for shape {}; give one for each axis", padding.size(), *this);
  Pairs crop;
  Padding out;
  for (int i = 0; i < ndim(); ++i) {
    const auto [before, after] = padding[idx(i)];
    crop.emplace_back(std::max<std::int64_t>(-before, 0),
                      size(i) - std::max<std::int64_t>(-after, 0));
    if (crop.back().first > crop.back().second)
      refuse<ShapeError>("axis {} of {} is cropped to less than nothing; crop less", i, *this);
    out.emplace_back(std::max<std::int64_t>(before, 0), std::max<std::int64_t>(after, 0));
  }
  const Lazy x = shrink(crop).lazy();
  const Tensor padded = wrap(mote::pad(x, out));
  if (is_number(value) && value.real() == 0) return padded;
  // The validity is a padded view of a constant: no bytes.
  const Lazy ones = constant_lazy(Scalar(DType::boolean, 1), x->shape, *x->device);
  return mote::where(wrap(mote::pad(ones, out)), padded, value);
}

Tensor Tensor::flip(std::vector<int> axes, Where where) const {
  return Within("flip", where)(wrap(mote::flip(lazy(), checked_axes(axes, *this))));
}

Tensor Tensor::squeeze(std::optional<int> axis, Where where) const {
  const Within op("squeeze", where);
  const int chosen = axis ? checked_axis(*axis, *this) : -1;
  Dims to;
  for (int i = 0; i < ndim(); ++i)
    if (size(i) != 1 || (axis && i != chosen)) to.push_back(size(i));
  return reshape(to);
}

Tensor Tensor::unsqueeze(int axis, Where where) const {
  const Within op("unsqueeze", where);
  Dims to = shape();
  to.insert(to.begin() + checked_axis(axis, ndim() + 1, *this), 1);
  return reshape(to);
}

Tensor Tensor::flatten(int start, int end, Where where) const {
  const Within op("flatten", where);
  if (ndim() == 0) return reshape({1});
  const int first = checked_axis(start, *this), last = checked_axis(end, *this);
  if (first > last)
    refuse<IndexError>("axis {} comes after axis {}; give the first axis first", start, end);
  Dims to = shape();
  const Dims joined(to.begin() + first, to.begin() + last + 1);
  to.erase(to.begin() + first, to.begin() + last);
  to[idx(first)] = product(joined);
  return reshape(to);
}

Tensor Tensor::unflatten(int axis, Dims sizes, Where where) const {
  const Within op("unflatten", where);
  const int a = checked_axis(axis, *this);
  const auto open = std::ranges::find(sizes, -1);
  if (open != sizes.end()) {
    *open = 1;
    const std::int64_t known = product(sizes);
    *open = known ? size(a) / known : 0;
  }
  if (product(sizes) != size(a))
    refuse<ShapeError>(
        "the sizes {} do not make {}, the size of axis {}; their product must be "
        "the axis; one may be -1",
        sizes, size(a), axis);
  Dims to = shape();
  to.erase(to.begin() + a);
  to.insert(to.begin() + a, sizes.begin(), sizes.end());
  return reshape(to);
}

std::vector<Tensor> Tensor::split(std::vector<std::int64_t> sizes, int axis, Where where) const {
  const Within op("split", where);
  const int a = checked_axis(axis, *this);
  if (std::ranges::any_of(sizes, [](std::int64_t s) { return s < 0; }))
    refuse<ValueError>("a size is negative; sizes are 0 or more");
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (total != size(a))
    refuse<ShapeError>("the sizes add up to {}, axis {} has {}; they must add up to the axis",
                       total, axis, size(a));
  std::vector<Tensor> out;
  std::int64_t from = 0;
  for (std::int64_t s : sizes) {
    out.push_back(cut(*this, a, from, from + s));
    from += s;
  }
  return out;
}

std::vector<Tensor> Tensor::split(std::int64_t each, int axis, Where where) const {
  const Within op("split", where);
  const int a = checked_axis(axis, *this);
  if (each <= 0) refuse<ValueError>("the size is {}; give a positive size", each);
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = size(a); left > 0; left -= each) sizes.push_back(std::min(left, each));
  return split(std::move(sizes), axis);
}

std::vector<Tensor> Tensor::chunk(std::int64_t chunks, int axis, Where where) const {
  const Within op("chunk", where);
  const std::int64_t n = size(checked_axis(axis, *this));
  if (chunks <= 0) refuse<ValueError>("the number of chunks is {}; give a positive number", chunks);
  return split(std::max<std::int64_t>((n + chunks - 1) / chunks, 1), axis);
}

namespace {

// The dtype and the size along the axis of all parts joined.
std::pair<DType, std::int64_t> joined(const std::vector<Tensor>& parts, int axis) {
  DType dtype = parts[0].dtype();
  std::int64_t total = 0;
  for (const Tensor& p : parts) {
    expect_same_device(parts[0], p);
    Dims mine = p.shape(), first = parts[0].shape();
    if (mine.size() == first.size()) first[idx(axis)] = mine[idx(axis)];
    if (mine != first)
      refuse<ShapeError>("shapes {} and {}; all axes but the joined one must agree", parts[0], p);
    total += mine[idx(axis)];
    dtype = promote(dtype, p.dtype());
  }
  return {dtype, total};
}

}  // namespace

// Each part padded to its place; a select by place keeps -0.0 and infinities: the part is taken,
// never added.
Tensor cat(const std::vector<Tensor>& parts, int axis, Where where) {
  const Within op("cat", where);
  if (parts.empty()) refuse<ValueError>("no tensor is given; give at least one");
  const int a = checked_axis(axis, parts[0]);
  const auto [dtype, total] = joined(parts, a);
  Tensor out;
  std::int64_t from = 0;
  for (const Tensor& p : parts) {
    const std::int64_t size = p.size(a);
    Pairs padding(idx(p.ndim()), {0, 0});
    padding[idx(a)] = {from, total - from - size};
    from += size;
    if (size == 0) continue;
    const Tensor x = p.cast(dtype).pad(padding);
    if (!out.is_defined()) {
      out = x;
      continue;
    }
    const Tensor ones = Tensor::ones(p.shape(), {DType::boolean, p.device(), false});
    out = mote::where(ones.pad(padding), x, out);
  }
  return out.is_defined() ? out : parts[0].cast(dtype);
}

Tensor stack(const std::vector<Tensor>& parts, int axis, Where where) {
  const Within op("stack", where);
  std::vector<Tensor> wide;
  for (const Tensor& p : parts) {
    if (p.shape() != parts[0].shape())
      refuse<ShapeError>("shapes {} and {}; all shapes must be equal", parts[0], p);
    wide.push_back(p.unsqueeze(axis));
  }
  return cat(wide, axis);
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, Where where) {
  const Within op("meshgrid", where);
  Dims full;
  for (const Tensor& t : axes) full.push_back(t.numel());
  std::vector<Tensor> out;
  for (const Tensor& t : axes)
    out.push_back(
        along(t, static_cast<int>(out.size()), static_cast<int>(axes.size())).expand(full));
  return out;
}

Tensor Tensor::repeat(Dims repeats, Where where) const {
  const Within op("repeat", where);
  Dims from = shape();
  if (repeats.size() < from.size())
    refuse<ShapeError>("{} repeats for shape {}; give at least one for each axis", repeats.size(),
                       *this);
  if (std::ranges::any_of(repeats, [](std::int64_t n) { return n < 0; }))
    refuse<ValueError>("the repeats {} hold a negative one; give 0 or more", repeats);
  from.insert(from.begin(), repeats.size() - from.size(), 1);
  Dims wide, all, to;
  for (std::size_t i = 0; i < from.size(); ++i) {
    wide.insert(wide.end(), {1, from[i]});
    all.insert(all.end(), {repeats[i], from[i]});
    to.push_back(repeats[i] * from[i]);
  }
  return reshape(wide).expand(all).reshape(to);
}

Tensor Tensor::repeat_interleave(std::int64_t repeats, std::optional<int> axis, Where where) const {
  const Within op("repeat_interleave", where);
  if (repeats < 0) refuse<ValueError>("the number of repeats is {}; give 0 or more", repeats);
  const Tensor x = axis ? *this : flatten();
  const int a = checked_axis(axis.value_or(0), x);
  Dims all = x.shape(), to = all;
  all.insert(all.begin() + a + 1, repeats);
  to[idx(a)] *= repeats;
  return x.unsqueeze(a + 1).expand(all).reshape(to);
}

Tensor Tensor::roll(std::vector<std::int64_t> shifts, std::vector<int> axes, Where where) const {
  const Within op("roll", where);
  if (shifts.size() != axes.size())
    refuse<ValueError>("{} shifts for {} axes; give one shift for each axis", shifts.size(),
                       axes.size());
  Tensor out = *this;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int a = checked_axis(axes[i], *this);
    const std::int64_t n = size(a);
    if (n == 0) continue;
    const std::int64_t s = ((shifts[i] % n) + n) % n;
    out = mote::cat({cut(out, a, n - s, n), cut(out, a, 0, n - s)}, a);
  }
  return out;
}

Tensor Tensor::unfold(int axis, std::int64_t width, std::int64_t step, Where where) const {
  const Within op("unfold", where);
  const int a = checked_axis(axis, *this);
  if (width < 0 || step < 1 || width > size(a))
    refuse<ShapeError>(
        "windows of {} every {} in axis {} of {}; a window must fit, steps are 1 or "
        "more",
        width, step, axis, *this);
  std::vector<int> last, back;  // the axis to the end, and its windows back
  for (int i = 0; i < ndim(); ++i) {
    if (i != a) last.push_back(i);
    back.push_back(i < a ? i : i == a ? ndim() - 1 : i - 1);
  }
  last.push_back(a);
  back.push_back(ndim());
  const Lazy moved = permute(last).lazy();
  return wrap(mote::windows(moved, {{width, step, 1}})).permute(back);  // (.., a', width)
}

// (.., n, n) flat, padded by n: rows of n + 1, whose first column is the diagonal.
Tensor Tensor::diagonal(Where where) const {
  const Within op("diagonal", where);
  if (ndim() < 2 || size(-1) != size(-2))
    refuse<ShapeError>("shape {}; the last two axes must be equal", *this);
  const std::int64_t n = size(-1);
  Dims to = shape(), rows = to;
  to.pop_back();
  rows.back() = n + 1;
  Pairs padding(idx(ndim() - 1), {0, 0});
  padding.back() = {0, n};
  return cut(flatten(-2).pad(padding).reshape(rows), ndim() - 1, 0, n ? 1 : 0).reshape(to);
}

Tensor Tensor::diag(Where where) const {
  const Within op("diag", where);
  if (ndim() == 2) return diagonal();
  if (ndim() != 1) refuse<ShapeError>("shape {}; give a vector or a square matrix", *this);
  const Tensor on = eye(numel(), {}, {DType::boolean, device(), false});
  return mote::where(on, *this, 0);
}

}  // namespace mote
