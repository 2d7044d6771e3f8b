// Matrix products, convolution and pooling: views of the operands, a product and a sum. What makes
// them fast is the compiler's business.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tensor/lift.h"

namespace mote {
namespace {

using Numbers = std::vector<std::int64_t>;

// a * b summed over the last axes, accumulated and rounded as semantics.md says.
Tensor contracted(const Tensor& a, const Tensor& b, std::vector<int> axes, DType result) {
  const DType inside = is_float(result) ? accumulator_dtype(result) : result;
  const Tensor product = a.cast(inside) * b.cast(inside);
  return wrap(reduce_lazy(Op::add, product.lazy(), axes)).cast(result);
}

// One number for each of n axes.
Numbers spread(std::string_view what, const Numbers& v, std::size_t n) {
  if (v.size() == 1) return Numbers(n, v[0]);
  if (v.size() != n)
    refuse<ShapeError>("{} numbers for {} of {} axes; give one, or one for each axis", v.size(),
                       what, n);
  return v;
}

Pairs spread_padding(const Numbers& v, std::size_t n) {
  Pairs out;
  if (v.size() == 2 * n && n > 1) {
    for (std::size_t i = 0; i < n; ++i) out.emplace_back(v[2 * i], v[2 * i + 1]);
    return out;
  }
  for (std::int64_t p : spread("padding", v, n)) out.emplace_back(p, p);
  return out;
}

Tensor pad_last(const Tensor& x, const Pairs& pairs, const Operand& value) {
  Pairs all(idx(x.ndim()) - pairs.size(), {0, 0});
  all.insert(all.end(), pairs.begin(), pairs.end());
  return x.pad(all, value);
}

// Windows over the last axes: (.., o.., k..).
Tensor windowed(const Tensor& x, const Numbers& kernel, const Numbers& stride,
                const Numbers& dilation) {
  Windows w;
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t have = x.size(x.ndim() - static_cast<int>(kernel.size() - i)),
                       need = dilation[i] * (kernel[i] - 1) + 1;
    if (stride[i] < 1 || dilation[i] < 1 || kernel[i] < 1)
      refuse<ValueError>("a kernel, stride or dilation is less than 1; use 1 or more");
    if (need > have)
      refuse<ShapeError>(
          "the kernel reaches over {} elements, the padded input has {}; use a "
          "smaller kernel or more padding",
          need, have);
    w.push_back({kernel[i], stride[i], dilation[i]});
  }
  return wrap(windows(x.lazy(), w));
}

// The axes before the last two broadcast.
void expect_batches(const Tensor& a, const Tensor& b) {
  for (int i = 3; i <= std::min(a.ndim(), b.ndim()); ++i) {
    const std::int64_t m = a.size(-i), n = b.size(-i);
    if (m != n && m != 1 && n != 1)
      refuse<ShapeError>(
          "batch sizes differ, {} and {} (lhs {}, rhs {}); sizes before the last "
          "two must be equal or 1",
          m, n, a, b);
  }
}

}  // namespace

// (.., m, k) x (.., k, n) -> (.., m, 1, k) * (.., 1, n, k), summed over k.
Tensor Tensor::matmul(const Tensor& other, std::optional<DType> dtype, Where at) const {
  const Within within("matmul", at);
  if (ndim() == 0 || other.ndim() == 0)
    refuse<ShapeError>("an operand is a scalar; multiply by * instead");
  const Tensor a = ndim() == 1 ? unsqueeze(0) : *this,
               b = other.ndim() == 1 ? other.unsqueeze(1) : other;
  if (a.size(-1) != b.size(-2))
    refuse<ShapeError>(
        "inner sizes differ, {} and {} (lhs {}, rhs {}); transpose one side or "
        "check in_features",
        a.size(-1), b.size(-2), *this, other);
  expect_same_device(a, b);
  expect_batches(a, b);
  const DType result = checked_dtype(dtype.value_or(promote(a.dtype(), b.dtype())));
  const Tensor x = a.unsqueeze(-2), y = b.transpose(-1, -2).unsqueeze(-3);
  const Tensor out = contracted(x, y, {std::max(x.ndim(), y.ndim()) - 1}, result).squeeze(-1);
  if (ndim() == 1 && other.ndim() == 1) return out.reshape({});
  if (ndim() == 1) return out.squeeze(-2);
  return other.ndim() == 1 ? out.squeeze(-1) : out;
}

Tensor matmul(const Tensor& a, const Tensor& b, Where at) { return a.matmul(b, {}, at); }
Tensor Tensor::dot(const Tensor& other, Where at) const { return Within("dot", at)(matmul(other)); }

Tensor Tensor::linear(const Tensor& weight, const Tensor& bias, Where at) const {
  const Within within("linear", at);
  const Tensor y = matmul(weight.ndim() == 1 ? weight : weight.t());
  return bias.is_defined() ? y + bias : y;
}

namespace {

struct ConvSizes {
  Numbers stride, dilation;
  std::int64_t groups;
};

// x is padded already: (n, c, ..); the view of its windows: (n, c, o.., k..).
Tensor conv_windows(const Tensor& x, const Tensor& weight, const ConvSizes& sizes) {
  const Dims w = weight.shape();
  return windowed(x, {w.begin() + 2, w.end()}, sizes.stride, sizes.dilation);
}

// `count` axes of 1 before an axis.
Tensor with_ones(const Tensor& x, int axis, int count) {
  Dims to = x.shape();
  to.insert(to.begin() + axis, idx(count), 1);
  return x.reshape(to);
}

// first, first + 1, ..
std::vector<int> axes_from(int first, int count) {
  std::vector<int> axes(idx(count));
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// The windows with an axis for the outputs of a group: (n, g, 1, c/g, o.., k..).
Tensor grouped_windows(const Tensor& x, const Tensor& weight, const ConvSizes& sizes) {
  const Tensor view = conv_windows(x, weight, sizes);
  Dims to = view.shape();
  to[1] = weight.size(1);
  to.insert(to.begin() + 1, {sizes.groups, 1});
  return view.reshape(to);
}

// (n, g, 1, c/g, o.., k..) * (g, o/g, c/g, 1.., k..), summed over c/g and k.
Tensor conv_product(const Tensor& x, const Tensor& weight, const ConvSizes& sizes, DType result) {
  const int spatial = weight.ndim() - 2;
  const Tensor w = weight.unflatten(0, {sizes.groups, weight.size(0) / sizes.groups});
  std::vector<int> summed = axes_from(4 + spatial, spatial);
  summed.insert(summed.begin(), 3);
  const Tensor out = contracted(grouped_windows(x, weight, sizes), with_ones(w, 3, spatial), summed,
                                result);  // (n, g, o/g, 1, o.., 1..)
  Dims to = out.shape();
  to.resize(idx(4 + spatial));
  return out.reshape(to).flatten(1, 3);
}

// (o, c/g, k..) of a convolution with its input and output channels exchanged and its window
// turned.
Tensor turned_weight(const Tensor& weight, std::int64_t groups) {
  std::vector<int> spatial;
  for (int i = 2; i < weight.ndim(); ++i) spatial.push_back(i);
  const Tensor grouped = weight.flip(spatial).unflatten(0, {groups, weight.size(0) / groups});
  return grouped.transpose(1, 2).flatten(0, 1);
}

// The gradients of a convolution of steps of one, as convolutions again: by x from the padded
// gradient and the turned weight, by the weight from x's windows and the gradient.
std::vector<Tensor> conv_gradients(const Tensor& x, const Tensor& weight, const ConvSizes& sizes,
                                   const Tensor& g) {
  const int spatial = weight.ndim() - 2;
  const Dims w = weight.shape();
  Pairs around(2, {0, 0});
  for (int i = 0; i < spatial; ++i) around.emplace_back(w[idx(2 + i)] - 1, w[idx(2 + i)] - 1);
  const Tensor by_x =
      conv_product(g.pad(around), turned_weight(weight, sizes.groups), sizes, x.dtype());
  // (n, g, 1, c/g, o.., k..) * (n, g, o/g, 1, o.., 1..), summed over n and o.
  const Tensor grouped = g.unflatten(1, {sizes.groups, g.size(1) / sizes.groups}).unsqueeze(3);
  std::vector<int> summed = axes_from(4, spatial);
  summed.insert(summed.begin(), 0);
  const Tensor by_w = contracted(grouped_windows(x, weight, sizes),
                                 with_ones(grouped, 4 + spatial, spatial), summed, weight.dtype());
  return {by_x, by_w.reshape(weight.shape())};
}

void expect_bias(const Tensor& bias, std::int64_t outs) {
  if (!bias.is_defined() || bias.shape() == Dims{outs}) return;
  refuse<ShapeError>("the bias has shape {} for {} outputs; give one number for each output", bias,
                     outs);
}

}  // namespace

Tensor Tensor::conv(const Tensor& weight, const Tensor& bias, const ConvOptions& o,
                    Where at) const {
  const Within within("conv", at);
  const int spatial = weight.ndim() - 2;
  if (spatial < 1 || ndim() != weight.ndim())
    refuse<ShapeError>("input {} and weight {}; give (N, C, ..) and (O, C/groups, ..)", *this,
                       weight);
  const std::size_t s = idx(spatial);
  const std::int64_t channels = size(1), outs = weight.size(0), each = weight.size(1);
  if (o.groups < 1 || channels != each * o.groups || outs % o.groups != 0)
    refuse<ShapeError>(
        "the input has {} channels, the weight takes {} in each of {} groups for {} "
        "outputs; channels must be groups times the weight's second size, and "
        "groups divide the outputs",
        channels, each, o.groups, outs);
  expect_same_device(*this, weight);
  expect_bias(bias, outs);
  const ConvSizes sizes{spread("stride", o.stride, s), spread("dilation", o.dilation, s), o.groups};
  const Tensor x = pad_last(*this, spread_padding(o.padding, s), 0);
  const DType result = promote(dtype(), weight.dtype());
  const auto one = [](std::int64_t n) { return n == 1; };
  Tensor y;
  if (is_float(result) && x.dtype() == weight.dtype() && std::ranges::all_of(sizes.stride, one) &&
      std::ranges::all_of(sizes.dilation, one)) {
    y = with_own_gradient(conv_product(x.detach(), weight.detach(), sizes, result), {x, weight},
                          [x, weight, sizes](const Tensor& g, const Tensor&) {
                            return conv_gradients(x, weight, sizes, g);
                          });
  } else {
    y = conv_product(x, weight, sizes, result);
  }
  return bias.is_defined() ? y + along(bias, 1, ndim()) : y;
}

Tensor Tensor::conv2d(const Tensor& weight, const Tensor& bias, std::int64_t stride,
                      std::int64_t padding, std::int64_t dilation, std::int64_t groups,
                      Where at) const {
  return Within("conv2d", at)(conv(weight, bias, {{stride}, {padding}, {dilation}, groups}));
}

namespace {

// Zeros between the elements of an axis: every step-th is one of x.
Tensor apart(const Tensor& x, int axis, std::int64_t step) {
  if (step == 1) return x;
  Pairs gap(idx(x.ndim()) + 1, {0, 0});
  gap[idx(axis) + 1] = {0, step - 1};
  const Tensor wide = x.unsqueeze(axis + 1).pad(gap).flatten(axis, axis + 1);
  return cut(wide, axis, 0, (x.size(axis) - 1) * step + 1);
}

}  // namespace

// The adjoint of conv: the input spread by stride, then convolved with the flipped weight.
Tensor Tensor::conv_transpose(const Tensor& weight, const Tensor& bias, const ConvOptions& o,
                              std::vector<std::int64_t> output_padding, Where at) const {
  const Within within("conv_transpose", at);
  const int spatial = weight.ndim() - 2;
  if (spatial < 1 || ndim() != weight.ndim() || size(1) != weight.size(0))
    refuse<ShapeError>("input {} and weight {}; give (N, C, ..) and (C, O/groups, ..)", *this,
                       weight);
  if (o.groups < 1 || size(1) % o.groups != 0)
    refuse<ShapeError>("{} groups do not divide the {} channels; give groups that do", o.groups,
                       size(1));
  expect_bias(bias, weight.size(1) * o.groups);
  const std::size_t s = idx(spatial);
  const Numbers stride = spread("stride", o.stride, s),
                dilation = spread("dilation", o.dilation, s),
                extra = spread("output padding", output_padding, s);
  const Pairs padding = spread_padding(o.padding, s);
  Tensor x = *this;
  Pairs around;
  for (std::size_t i = 0; i < s; ++i) {
    const int a = static_cast<int>(i) + 2;
    if (stride[i] < 1 || extra[i] < 0)
      refuse<ValueError>(
          "a stride is less than 1, or an output padding less than 0; use 1 or "
          "more, and 0 or more");
    x = apart(x, a, stride[i]);
    const std::int64_t reach = dilation[i] * (weight.size(a) - 1);
    around.emplace_back(reach - padding[i].first, reach - padding[i].second + extra[i]);
  }
  return pad_last(x, around, 0)
      .conv(turned_weight(weight, o.groups), bias, {{1}, {0}, o.dilation, o.groups});
}

namespace {

struct Pool {
  Numbers kernel, stride, dilation;
  Pairs padding;            // asked for
  Pairs extra;              // after the padding, for the windows of ceil_mode that reach over it
  std::vector<int> window;  // the axes of the kernel in the view of the windows
};

Pool pool_of(const Tensor& x, const Numbers& kernel, const PoolOptions& o) {
  const std::size_t s = kernel.size();
  if (idx(x.ndim()) < s)
    refuse<ShapeError>("shape {} has fewer axes than the kernel; pool over the last axes", x);
  Pool p{kernel,
         o.stride.empty() ? kernel : spread("stride", o.stride, s),
         spread("dilation", o.dilation, s),
         spread_padding(o.padding, s),
         Pairs(s, {0, 0}),
         {}};
  for (std::size_t i = 0; i < s; ++i) {
    p.window.push_back(x.ndim() + static_cast<int>(i));
    if (!o.ceil_mode || p.stride[i] < 1) continue;
    const std::int64_t n = x.size(x.ndim() - static_cast<int>(s - i)), before = p.padding[i].first;
    const std::int64_t reach = p.dilation[i] * (kernel[i] - 1) + 1,
                       all = n + before + p.padding[i].second;
    std::int64_t count = (all - reach + p.stride[i] - 1) / p.stride[i] + 1;
    if ((count - 1) * p.stride[i] >= n + before) --count;  // a window must begin inside
    p.extra[i].second = std::max<std::int64_t>((count - 1) * p.stride[i] + reach - all, 0);
  }
  return p;
}

// (.., o.., k..): x padded by `fill`, then by `beyond`.
Tensor pooled(const Tensor& x, const Pool& p, const Operand& fill, const Operand& beyond) {
  const Tensor padded = pad_last(pad_last(x, p.padding, fill), p.extra, beyond);
  return windowed(padded, p.kernel, p.stride, p.dilation);
}

}  // namespace

Tensor Tensor::max_pool(std::vector<std::int64_t> kernel, const PoolOptions& o, Where at) const {
  const Within within("max_pool", at);
  const Pool p = pool_of(*this, kernel, o);
  const Tensor least = wrap(constant_lazy(identity_of(Op::max, dtype()), {}, *lazy()->device));
  return pooled(*this, p, least, least).max(p.window);
}

// The sum of a window over the elements that count: with the padding that was asked for, but not
// with what ceil_mode adds.
Tensor Tensor::avg_pool(std::vector<std::int64_t> kernel, const PoolOptions& o, Where at) const {
  const Within within("avg_pool", at);
  const Tensor x = as_float(*this);
  const Pool p = pool_of(x, kernel, o);
  const Tensor view = pooled(x, p, 0, 0);
  if (o.count_include_pad && !o.ceil_mode) return view.mean(p.window);
  const Tensor counted = pooled(x.ones_like(), p, o.count_include_pad ? 1 : 0, 0);
  return view.sum(p.window) / counted.sum(p.window);
}

Tensor Tensor::scaled_dot_product_attention(const Tensor& key, const Tensor& value,
                                            const Tensor& mask, bool causal, double dropout,
                                            Where at) const {
  const Within within("scaled_dot_product_attention", at);
  Tensor scores = matmul(key.transpose(-2, -1)) / std::sqrt(static_cast<double>(size(-1)));
  Tensor allowed = mask.is_defined() && mask.dtype() == DType::boolean ? mask : Tensor();
  if (causal) {
    const Tensor lower =
        ones({scores.size(-2), scores.size(-1)}, {DType::boolean, device(), false}).tril();
    allowed = allowed.is_defined() ? allowed & lower : lower;
  }
  if (allowed.is_defined()) scores = mote::where(allowed, scores, -INFINITY);
  if (mask.is_defined() && mask.dtype() != DType::boolean) scores = scores + mask;
  // A row with nothing allowed gives zeros, and zero gradients.
  const Tensor top = scores.max(-1, true).detach();
  const Tensor none = top == -INFINITY;
  const Tensor e = (scores - mote::where(none, 0.0, top)).exp();
  const Tensor total = e.sum(-1, true);
  Tensor weights = e / mote::where(none, 1.0, total);
  if (dropout != 0) weights = weights.dropout(dropout);
  return weights.matmul(value).cast(dtype());
}

}  // namespace mote
