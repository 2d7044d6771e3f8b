// Movement operations: checks with the user's words, then the views of graph/.
#include <algorithm>
#include <numeric>

#include "tensor/lift.h"

namespace mote {
Tensor Tensor::reshape(Dims to, Where where) const {
  expect_defined("reshape", *this, where);
  const std::int64_t n = numel();
  std::int64_t known = 1;
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == -1 && !open) open = i;
    else if (to[i] < 0)
      fail<ShapeError>("reshape", cat("size ", to[i], " in ", to_text(shape_of(to))), where,
                       "one size may be -1, the others are 0 or more");
    else known *= to[i];
  }
  if (open) to[*open] = known ? n / known : 0;
  std::int64_t total = 1;
  for (std::int64_t s : to) total *= s;
  if (total != n) {
    fail<ShapeError>("reshape",
                     cat("shape ", shape_text(*this), " has ", n, " elements, ",
                         to_text(shape_of(to)), " does not"),
                     where, "the number of elements must stay");
  }
  return wrap(mote::reshape(lazy(), shape_of(to)));
}

Tensor Tensor::permute(std::vector<int> axes, Where where) const {
  expect_defined("permute", *this, where);
  if (static_cast<int>(axes.size()) != ndim())
    fail<ShapeError>("permute", cat("axes are ", axes.size(), " for shape ", shape_text(*this)),
                     where, "name each axis once");
  const AxisList list(axes);
  checked_axes("permute", list, *this, where);
  for (int& a : axes) a = checked_axis("permute", a, ndim(), *this, where);
  return wrap(mote::permute(lazy(), axes));
}

Tensor Tensor::transpose(int a, int b, Where where) const {
  const int x = checked_axis("transpose", a, ndim(), *this, where),
            y = checked_axis("transpose", b, ndim(), *this, where);
  std::vector<int> axes(idx(ndim()));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[idx(x)], axes[idx(y)]);
  return permute(std::move(axes), where);
}

Tensor Tensor::t(Where where) const {
  if (ndim() > 2)
    fail<ShapeError>("t", cat("the tensor has shape ", shape_text(*this)), where,
                     "t takes up to 2 axes; use transpose");
  return ndim() < 2 ? *this : transpose(0, 1, where);
}

Tensor Tensor::expand(Dims to, Where where) const {
  const Dims from = shape();
  const std::size_t extra = to.size() - from.size();
  if (to.size() < from.size())
    fail<ShapeError>(
        "expand", cat("shape ", shape_text(*this), " has more axes than ", to_text(shape_of(to))),
        where, "give at least as many axes");
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::int64_t have = i < extra ? 1 : from[i - extra];
    if (to[i] == -1 && i < extra)
      fail<ShapeError>("expand", cat("-1 for new axis ", i, " of ", to_text(shape_of(to))), where,
                       "-1 keeps a size; give new axes one");
    if (to[i] == -1) to[i] = have;
    if (to[i] < 0 || (have != 1 && have != to[i])) {
      fail<ShapeError>(
          "expand", cat("shape ", shape_text(*this), " does not expand to ", to_text(shape_of(to))),
          where, "only axes of size 1 expand");
    }
  }
  return wrap(broadcast_to(lazy(), shape_of(to)));
}

Tensor Tensor::shrink(std::vector<std::pair<std::int64_t, std::int64_t>> spans, Where where) const {
  const Dims from = shape();
  if (spans.size() != from.size())
    fail<ShapeError>("shrink", cat(spans.size(), " spans for shape ", shape_text(*this)), where,
                     "give one for each axis");
  Spans out;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto [b, e] = spans[i];
    if (b < 0 || e < b || e > from[i])
      fail<IndexError>("shrink",
                       cat("span ", b, "..", e, " of axis ", i, " of ", shape_text(*this)), where,
                       cat("it must lie in 0..", from[i]));
    out.push_back({b, e});
  }
  return wrap(mote::shrink(lazy(), out));
}

Tensor Tensor::pad(std::vector<std::pair<std::int64_t, std::int64_t>> padding, const Operand& value,
                   Where where) const {
  const Dims from = shape();
  if (padding.size() != from.size())
    fail<ShapeError>("pad", cat(padding.size(), " pairs for shape ", shape_text(*this)), where,
                     "give one for each axis");
  std::vector<std::pair<std::int64_t, std::int64_t>> crop;
  Padding out;
  for (std::size_t i = 0; i < padding.size(); ++i) {
    const auto [b, a] = padding[i];
    crop.emplace_back(std::max<std::int64_t>(-b, 0), from[i] - std::max<std::int64_t>(-a, 0));
    if (crop.back().first > crop.back().second)
      fail<ShapeError>(
          "pad", cat("axis ", i, " of ", shape_text(*this), " is cropped to less than nothing"),
          where, "crop less");
    out.emplace_back(std::max<std::int64_t>(b, 0), std::max<std::int64_t>(a, 0));
  }
  const Tensor x = shrink(crop, where);
  const Tensor padded = wrap(mote::pad(x.lazy(), out));
  const bool zero =
      value.number() != Operand::Number::none && value.real() == 0 && value.integer() == 0;
  if (zero) return padded;
  // The validity is a padded view of a constant: no bytes.
  const Lazy ones = constant_lazy(Scalar(DType::boolean, 1), x.lazy()->shape, *x.lazy()->device);
  return mote::where(wrap(mote::pad(ones, out)), padded, value, where);
}

Tensor Tensor::flip(std::vector<int> axes, Where where) const {
  return wrap(mote::flip(lazy(), checked_axes("flip", AxisList(axes), *this, where)));
}

Tensor Tensor::squeeze(std::optional<int> axis, Where where) const {
  Dims to;
  const Dims from = shape();
  const int chosen = axis ? checked_axis("squeeze", *axis, ndim(), *this, where) : -1;
  for (int i = 0; i < ndim(); ++i)
    if (from[idx(i)] != 1 || (axis && i != chosen)) to.push_back(from[idx(i)]);
  return reshape(to, where);
}

Tensor Tensor::unsqueeze(int axis, Where where) const {
  const int i = checked_axis("unsqueeze", axis, ndim() + 1, *this, where);
  Dims to = shape();
  to.insert(to.begin() + i, 1);
  return reshape(to, where);
}

Tensor Tensor::flatten(int start, int end, Where where) const {
  if (ndim() == 0) return reshape({1}, where);
  const int s = checked_axis("flatten", start, ndim(), *this, where),
            e = checked_axis("flatten", end, ndim(), *this, where);
  if (s > e)
    fail<IndexError>("flatten", cat("axis ", start, " comes after axis ", end), where,
                     "give the first axis first");
  const Dims from = shape();
  Dims to(from.begin(), from.begin() + s);
  std::int64_t n = 1;
  for (int i = s; i <= e; ++i) n *= from[idx(i)];
  to.push_back(n);
  to.insert(to.end(), from.begin() + e + 1, from.end());
  return reshape(to, where);
}

Tensor Tensor::unflatten(int axis, Dims sizes, Where where) const {
  const int i = checked_axis("unflatten", axis, ndim(), *this, where);
  Dims to = shape();
  const std::int64_t n = to[idx(i)];
  std::int64_t known = 1;
  for (std::int64_t s : sizes)
    if (s != -1) known *= s;
  for (std::int64_t& s : sizes)
    if (s == -1) s = known ? n / known : 0;
  std::int64_t total = 1;
  for (std::int64_t s : sizes) total *= s;
  if (total != n)
    fail<ShapeError>("unflatten",
                     cat("the sizes ", to_text(shape_of(sizes)), " do not make ", n,
                         ", the size of axis ", axis),
                     where, "their product must be the axis; one may be -1");
  to.erase(to.begin() + i);
  to.insert(to.begin() + i, sizes.begin(), sizes.end());
  return reshape(to, where);
}

std::vector<Tensor> Tensor::split(std::vector<std::int64_t> sizes, int axis, Where where) const {
  const int a = checked_axis("split", axis, ndim(), *this, where);
  const std::int64_t total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  if (std::ranges::any_of(sizes, [](std::int64_t s) { return s < 0; }))
    fail<ValueError>("split", "a size is negative", where, "sizes are 0 or more");
  if (total != shape()[idx(a)])
    fail<ShapeError>("split",
                     cat("the sizes add up to ", total, ", axis ", axis, " has ", shape()[idx(a)]),
                     where, "they must add up to the axis");
  std::vector<Tensor> out;
  std::int64_t from = 0;
  for (std::int64_t s : sizes) {
    std::vector<std::pair<std::int64_t, std::int64_t>> spans;
    for (std::int64_t n : shape()) spans.emplace_back(0, n);
    spans[idx(a)] = {from, from + s};
    out.push_back(shrink(spans, where));
    from += s;
  }
  return out;
}

Tensor cat(const std::vector<Tensor>& parts, int axis, Where where) {
  if (parts.empty()) fail<ValueError>("cat", "no tensor is given", where, "give at least one");
  for (const Tensor& p : parts) {
    expect_defined("cat", p, where);
    expect_same_device("cat", parts[0], p, where);
  }
  const int a = checked_axis("cat", axis, parts[0].ndim(), parts[0], where);
  std::int64_t total = 0;
  DType dtype = parts[0].dtype();
  for (const Tensor& p : parts) {
    Dims mine = p.shape(), first = parts[0].shape();
    if (p.ndim() == parts[0].ndim()) {
      total += mine[idx(a)];
      mine[idx(a)] = first[idx(a)] = 0;
    }
    if (mine != first)
      fail<ShapeError>("cat", cat("shapes ", shape_text(parts[0]), " and ", shape_text(p)), where,
                       "all axes but the joined one must agree");
    dtype = promote(dtype, p.dtype());
  }
  // Each part padded to its place; where the places meet, the sum of a part and zeros. A select by
  // place keeps -0.0 and infinities: the part is taken, never added.
  Tensor out;
  std::int64_t from = 0;
  for (const Tensor& p : parts) {
    std::vector<std::pair<std::int64_t, std::int64_t>> padding(idx(p.ndim()), {0, 0});
    const std::int64_t size = p.shape()[idx(a)];
    padding[idx(a)] = {from, total - from - size};
    from += size;
    if (size == 0 && parts.size() > 1) continue;
    const Tensor x = p.cast(dtype, where).pad(padding, 0, where);
    if (!out.is_defined()) {
      out = x;
      continue;
    }
    const Lazy ones =
        constant_lazy(Scalar(DType::boolean, 1), shape_of(p.shape()), *p.lazy()->device);
    Padding bounds;
    for (auto [b, e] : padding) bounds.emplace_back(b, e);
    out = mote::where(wrap(pad(ones, bounds)), x, out, where);
  }
  return out.is_defined() ? out : parts[0].cast(dtype, where);
}

std::vector<Tensor> Tensor::split(std::int64_t size, int axis, Where where) const {
  const int a = checked_axis("split", axis, ndim(), *this, where);
  if (size <= 0)
    fail<ValueError>("split", mote::cat("the size is ", size), where, "give a positive size");
  std::vector<std::int64_t> sizes;
  for (std::int64_t left = shape()[idx(a)]; left > 0; left -= size)
    sizes.push_back(std::min(left, size));
  return split(std::move(sizes), axis, where);
}

std::vector<Tensor> Tensor::chunk(std::int64_t chunks, int axis, Where where) const {
  const int a = checked_axis("chunk", axis, ndim(), *this, where);
  if (chunks <= 0)
    fail<ValueError>("chunk", mote::cat("the number of chunks is ", chunks), where,
                     "give a positive number");
  const std::int64_t n = shape()[idx(a)];
  return split(std::max<std::int64_t>((n + chunks - 1) / chunks, 1), axis, where);
}

Tensor stack(const std::vector<Tensor>& parts, int axis, Where where) {
  for (const Tensor& p : parts) {
    expect_defined("stack", p, where);
    if (p.shape() != parts[0].shape())
      fail<ShapeError>("stack", cat("shapes ", shape_text(parts[0]), " and ", shape_text(p)), where,
                       "all shapes must be equal");
  }
  if (parts.empty()) fail<ValueError>("stack", "no tensor is given", where, "give at least one");
  std::vector<Tensor> wide;
  for (const Tensor& p : parts) wide.push_back(p.unsqueeze(axis, where));
  return cat(wide, axis, where);
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, Where where) {
  Dims full;
  for (const Tensor& t : axes) full.push_back(t.numel());
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    Dims line(axes.size(), 1);
    line[i] = full[i];
    out.push_back(axes[i].reshape(line, where).expand(full, where));
  }
  return out;
}

Tensor Tensor::repeat(Dims repeats, Where where) const {
  Dims from = shape();
  if (repeats.size() < from.size())
    fail<ShapeError>("repeat", mote::cat(repeats.size(), " repeats for shape ", shape_text(*this)),
                     where, "give at least one for each axis");
  if (std::ranges::any_of(repeats, [](std::int64_t n) { return n < 0; }))
    fail<ValueError>("repeat",
                     mote::cat("the repeats ", to_text(shape_of(repeats)), " hold a negative one"),
                     where, "give 0 or more");
  from.insert(from.begin(), repeats.size() - from.size(), 1);
  Dims wide, all, to;
  for (std::size_t i = 0; i < from.size(); ++i) {
    wide.insert(wide.end(), {1, from[i]});
    all.insert(all.end(), {repeats[i], from[i]});
    to.push_back(repeats[i] * from[i]);
  }
  return reshape(wide, where).expand(all, where).reshape(to, where);
}

Tensor Tensor::repeat_interleave(std::int64_t repeats, std::optional<int> axis, Where where) const {
  if (repeats < 0)
    fail<ValueError>("repeat_interleave", mote::cat("the number of repeats is ", repeats), where,
                     "give 0 or more");
  const Tensor x = axis ? *this : flatten(0, -1, where);
  const int a = checked_axis("repeat_interleave", axis.value_or(0), x.ndim(), x, where);
  Dims wide = x.shape(), to = wide;
  wide.insert(wide.begin() + a + 1, 1);
  Dims all = wide;
  all[idx(a) + 1] = repeats;
  to[idx(a)] *= repeats;
  return x.reshape(wide, where).expand(all, where).reshape(to, where);
}

Tensor Tensor::roll(std::vector<std::int64_t> shifts, std::vector<int> axes, Where where) const {
  if (shifts.size() != axes.size())
    fail<ValueError>("roll", mote::cat(shifts.size(), " shifts for ", axes.size(), " axes"), where,
                     "give one shift for each axis");
  Tensor out = *this;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int a = checked_axis("roll", axes[i], ndim(), *this, where);
    const std::int64_t n = shape()[idx(a)];
    if (n == 0) continue;
    const std::int64_t s = ((shifts[i] % n) + n) % n;
    const auto parts = out.split({n - s, s}, a, where);
    out = mote::cat({parts[1], parts[0]}, a, where);
  }
  return out;
}

Tensor Tensor::unfold(int axis, std::int64_t size, std::int64_t step, Where where) const {
  const int a = checked_axis("unfold", axis, ndim(), *this, where);
  if (size < 0 || step < 1 || size > shape()[idx(a)])
    fail<ShapeError>("unfold",
                     mote::cat("windows of ", size, " every ", step, " in axis ", axis, " of ",
                               shape_text(*this)),
                     where, "a window must fit, steps are 1 or more");
  std::vector<int> last(idx(ndim())), back;
  std::iota(last.begin(), last.end(), 0);
  last.erase(last.begin() + a);
  last.push_back(a);
  const Tensor x =
      wrap(mote::windows(permute(last, where).lazy(), {{size, step, 1}}));  // (.., a', size)
  for (int i = 0; i < ndim(); ++i) back.push_back(i < a ? i : i == a ? ndim() - 1 : i - 1);
  back.push_back(ndim());
  return x.permute(back, where);
}

Tensor Tensor::diagonal(Where where) const {
  if (ndim() < 2 || size(-1) != size(-2))
    fail<ShapeError>("diagonal", mote::cat("shape ", shape_text(*this)), where,
                     "the last two axes must be equal");
  const std::int64_t n = size(-1);
  Dims lead = shape();
  lead.resize(lead.size() - 2);
  if (n == 0) {
    lead.push_back(0);
    return reshape(lead, where);
  }
  // (n, n) flat, padded by n: rows of n + 1, whose first column is the diagonal.
  std::vector<std::pair<std::int64_t, std::int64_t>> padding(lead.size(), {0, 0}), spans;
  padding.emplace_back(0, n);
  for (std::int64_t s : lead) spans.emplace_back(0, s);
  Dims flat = lead, rows = lead, out = lead;
  flat.push_back(n * n);
  rows.insert(rows.end(), {n, n + 1});
  out.push_back(n);
  spans.emplace_back(0, n);
  spans.emplace_back(0, 1);
  return reshape(flat, where)
      .pad(padding, 0, where)
      .reshape(rows, where)
      .shrink(spans, where)
      .reshape(out, where);
}

Tensor Tensor::diag(Where where) const {
  if (ndim() == 2) return diagonal(where);
  if (ndim() != 1)
    fail<ShapeError>("diag", mote::cat("shape ", shape_text(*this)), where,
                     "give a vector or a square matrix");
  const std::int64_t n = numel();
  const Tensor on = Tensor::eye(n, {}, {DType::boolean, device(), false}, where);
  return mote::where(on, reshape({1, n}, where).expand({n, n}, where), 0, where);
}

}  // namespace mote
