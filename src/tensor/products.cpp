// Matrix products, convolution and pooling: views of the operands, a product and a sum. What makes
// them fast is the compiler's business.
#include <algorithm>
#include <cmath>

#include "tensor/lift.h"

namespace mote {
namespace {

// a * b summed over the last axes, accumulated and rounded as semantics.md says.
Tensor contracted(const Tensor& a, const Tensor& b, std::vector<int> axes, DType result, Where at) {
  const DType inside = is_float(result) ? accumulator_dtype(result) : result;
  const Tensor product = a.cast(inside, at) * b.cast(inside, at);
  return wrap(reduce_lazy(Op::add, product.lazy(), axes)).cast(result, at);
}

// One number for each of n axes.
std::vector<std::int64_t> spread(std::string_view op, const char* what,
                                 const std::vector<std::int64_t>& v, std::size_t n, Where at) {
  if (v.size() == 1) return std::vector<std::int64_t>(n, v[0]);
  if (v.size() != n)
    fail<ShapeError>(op, cat(v.size(), " numbers for ", what, " of ", n, " axes"), at,
                     "give one, or one for each axis");
  return v;
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

Pairs spread_padding(std::string_view op, const std::vector<std::int64_t>& v, std::size_t n,
                     Where at) {
  Pairs out;
  if (v.size() == 2 * n && n > 1) {
    for (std::size_t i = 0; i < n; ++i) out.emplace_back(v[2 * i], v[2 * i + 1]);
    return out;
  }
  for (std::int64_t p : spread(op, "padding", v, n, at)) out.emplace_back(p, p);
  return out;
}

Tensor pad_last(const Tensor& x, const Pairs& pairs, const Operand& value, Where at) {
  Pairs all(idx(x.ndim()) - pairs.size(), {0, 0});
  all.insert(all.end(), pairs.begin(), pairs.end());
  return x.pad(all, value, at);
}

Tensor windowed(std::string_view op, const Tensor& x, const std::vector<std::int64_t>& kernel,
                const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& dilation,
                Where at) {
  Windows w;
  const Dims shape = x.shape();
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const std::int64_t have = shape[shape.size() - kernel.size() + i],
                       need = dilation[i] * (kernel[i] - 1) + 1;
    if (stride[i] < 1 || dilation[i] < 1 || kernel[i] < 1)
      fail<ValueError>(op, "a kernel, stride or dilation is less than 1", at, "use 1 or more");
    if (need > have)
      fail<ShapeError>(
          op, cat("the kernel reaches over ", need, " elements, the padded input has ", have), at,
          "use a smaller kernel or more padding");
    w.push_back({kernel[i], stride[i], dilation[i]});
  }
  const PlaceScope place(at);
  return wrap(windows(x.lazy(), w));
}

}  // namespace

namespace {

// The axes before the last two broadcast.
void expect_batches(const Tensor& a, const Tensor& b, Where at) {
  const Dims x = a.shape(), y = b.shape();
  for (std::size_t i = 3; i <= std::min(x.size(), y.size()); ++i) {
    const std::int64_t m = x[x.size() - i], n = y[y.size() - i];
    if (m == n || m == 1 || n == 1) continue;
    fail<ShapeError>("matmul",
                     cat("batch sizes differ, ", m, " and ", n, " (lhs ", shape_text(a), ", rhs ",
                         shape_text(b), ")"),
                     at, "sizes before the last two must be equal or 1");
  }
}

}  // namespace

// (.., m, k) x (.., k, n) -> (.., m, 1, k) * (.., 1, n, k), summed over k.
Tensor Tensor::matmul(const Tensor& other, std::optional<DType> dtype, Where at) const {
  expect_defined("matmul", *this, at);
  expect_defined("matmul", other, at);
  if (ndim() == 0 || other.ndim() == 0)
    fail<ShapeError>("matmul", "an operand is a scalar", at, "multiply by * instead");
  const Tensor a = ndim() == 1 ? unsqueeze(0, at) : *this,
               b = other.ndim() == 1 ? other.unsqueeze(1, at) : other;
  if (a.size(-1) != b.size(-2)) {
    fail<ShapeError>("matmul",
                     cat("inner sizes differ, ", a.size(-1), " and ", b.size(-2), " (lhs ",
                         shape_text(*this), ", rhs ", shape_text(other), ")"),
                     at, "transpose one side or check in_features");
  }
  expect_same_device("matmul", a, b, at);
  expect_batches(a, b, at);
  const DType result = dtype.value_or(promote(a.dtype(), b.dtype()));
  const Tensor x = a.unsqueeze(-2, at), y = b.transpose(-1, -2, at).unsqueeze(-3, at);
  const Tensor out =
      contracted(x, y, {std::max(x.ndim(), y.ndim()) - 1}, result, at).squeeze(-1, at);
  if (ndim() == 1 && other.ndim() == 1) return out.reshape({}, at);
  if (ndim() == 1) return out.squeeze(-2, at);
  return other.ndim() == 1 ? out.squeeze(-1, at) : out;
}

Tensor matmul(const Tensor& a, const Tensor& b, Where at) { return a.matmul(b, {}, at); }
Tensor Tensor::dot(const Tensor& other, Where at) const { return matmul(other, {}, at); }

Tensor Tensor::linear(const Tensor& weight, const Tensor& bias, Where at) const {
  const Tensor y = matmul(weight.ndim() == 1 ? weight : weight.t(at), {}, at);
  return bias.is_defined() ? y + bias : y;
}

namespace {

struct ConvSizes {
  std::vector<std::int64_t> stride, dilation;
  std::int64_t groups;
};

// x is padded already: (n, c, ..); the view of its windows: (n, c, o.., k..).
Tensor conv_windows(const Tensor& x, const Tensor& weight, const ConvSizes& sizes, Where at) {
  const Dims w = weight.shape();
  return windowed("conv", x, {w.begin() + 2, w.end()}, sizes.stride, sizes.dilation, at);
}

// (n, g, 1, o.., c/g, k..) * (1, g, o/g, 1.., c/g, k..), summed over c/g and k.
Tensor conv_product(const Tensor& x, const Tensor& weight, const ConvSizes& sizes, DType result,
                    Where at) {
  const int spatial = weight.ndim() - 2;
  const std::size_t s = idx(spatial);
  const Tensor view = conv_windows(x, weight, sizes, at);
  const Dims v = view.shape(), w = weight.shape();
  Dims x_shape{v[0], sizes.groups, 1, w[1]}, w_shape{1, sizes.groups, w[0] / sizes.groups, w[1]};
  x_shape.insert(x_shape.end(), v.begin() + 2, v.end());
  w_shape.insert(w_shape.end(), s, 1);
  w_shape.insert(w_shape.end(), w.begin() + 2, w.end());
  std::vector<int> order{0, 1, 2}, summed;
  for (int i = 0; i < spatial; ++i) order.push_back(4 + i);
  order.push_back(3);
  for (int i = 0; i < spatial; ++i) order.push_back(4 + spatial + i);
  for (int i = 0; i <= spatial; ++i) summed.push_back(3 + spatial + i);
  const Tensor out = contracted(view.reshape(x_shape, at).permute(order, at),
                                weight.reshape(w_shape, at).permute(order, at), summed, result, at);
  Dims to{v[0], w[0]};
  to.insert(to.end(), v.begin() + 2, v.begin() + 2 + spatial);
  return out.reshape(to, at);
}

// (o, c/g, k..) of a convolution with its input and output channels exchanged and its window turned.
Tensor turned_weight(const Tensor& weight, std::int64_t groups, Where at) {
  std::vector<int> spatial;
  for (int i = 2; i < weight.ndim(); ++i) spatial.push_back(i);
  const Dims w = weight.shape();
  Dims grouped = w, joined = w;
  grouped.insert(grouped.begin(), groups);
  grouped[1] = w[0] / groups;
  joined[0] = w[1] * groups;
  joined[1] = w[0] / groups;
  return weight.flip(spatial, at).reshape(grouped, at).transpose(1, 2, at).reshape(joined, at);
}

// The gradients of a convolution of steps of one, as convolutions again: by x from the padded
// gradient and the turned weight, by the weight from x's windows and the gradient.
std::vector<Tensor> conv_gradients(const Tensor& x, const Tensor& weight, const ConvSizes& sizes,
                                   const Tensor& g, Where at) {
  const int spatial = weight.ndim() - 2;
  const Dims w = weight.shape(), out = g.shape();
  Pairs around(2, {0, 0});
  for (int i = 0; i < spatial; ++i) around.emplace_back(w[idx(2 + i)] - 1, w[idx(2 + i)] - 1);
  const Tensor by_x = conv_product(g.pad(around, 0, at).contiguous(at),
                                   turned_weight(weight, sizes.groups, at), sizes, x.dtype(), at);
  const Tensor view = conv_windows(x, weight, sizes, at);
  const Dims v = view.shape();
  Dims x_shape{v[0], sizes.groups, 1, w[1]}, g_shape{v[0], sizes.groups, w[0] / sizes.groups, 1};
  x_shape.insert(x_shape.end(), v.begin() + 2, v.end());
  g_shape.insert(g_shape.end(), out.begin() + 2, out.end());
  g_shape.insert(g_shape.end(), idx(spatial), 1);
  std::vector<int> summed{0};
  for (int i = 0; i < spatial; ++i) summed.push_back(4 + i);
  const Tensor by_w =
      contracted(view.reshape(x_shape, at), g.reshape(g_shape, at), summed, weight.dtype(), at)
          .reshape(w, at);
  return {by_x, by_w};
}

}  // namespace

namespace {

void expect_bias(std::string_view op, const Tensor& bias, std::int64_t outs, Where at) {
  if (!bias.is_defined() || bias.shape() == Dims{outs}) return;
  fail<ShapeError>(op, cat("the bias has shape ", shape_text(bias), " for ", outs, " outputs"), at,
                   "give one number for each output");
}

}  // namespace

Tensor Tensor::conv(const Tensor& weight, const Tensor& bias, const ConvOptions& o,
                    Where at) const {
  expect_defined("conv", *this, at);
  expect_defined("conv", weight, at);
  const int spatial = weight.ndim() - 2;
  if (spatial < 1 || ndim() != weight.ndim()) {
    fail<ShapeError>("conv", cat("input ", shape_text(*this), " and weight ", shape_text(weight)),
                     at, "give (N, C, ..) and (O, C/groups, ..)");
  }
  const std::size_t s = idx(spatial);
  const std::int64_t channels = size(1), outs = weight.size(0), each = weight.size(1);
  if (o.groups < 1 || channels != each * o.groups || outs % o.groups != 0) {
    fail<ShapeError>(
        "conv",
        cat("the input has ", channels, " channels, the weight takes ", each, " in each of ",
            o.groups, " groups for ", outs, " outputs"),
        at,
        "channels must be groups times the weight's second size, and groups divide the outputs");
  }
  expect_same_device("conv", *this, weight, at);
  expect_bias("conv", bias, outs, at);
  const OuterPlace outer(at);
  const ConvSizes sizes{spread("conv", "stride", o.stride, s, at),
                        spread("conv", "dilation", o.dilation, s, at), o.groups};
  const Tensor x = pad_last(*this, spread_padding("conv", o.padding, s, at), 0, at);
  const DType result = promote(dtype(), weight.dtype());
  const auto one = [](std::int64_t n) { return n == 1; };
  Tensor y;
  if (is_float(result) && x.dtype() == weight.dtype() && std::ranges::all_of(sizes.stride, one) &&
      std::ranges::all_of(sizes.dilation, one)) {
    y = with_own_gradient(conv_product(x.detach(at), weight.detach(at), sizes, result, at),
                          {x, weight}, [x, weight, sizes, at](const Tensor& g, const Tensor&) {
                            return conv_gradients(x, weight, sizes, g, at);
                          });
  } else {
    y = conv_product(x, weight, sizes, result, at);
  }
  if (!bias.is_defined()) return y;
  Dims line(idx(ndim()), 1);
  line[1] = outs;
  return y + bias.reshape(line, at);
}

Tensor Tensor::conv2d(const Tensor& weight, const Tensor& bias, std::int64_t stride,
                      std::int64_t padding, std::int64_t dilation, std::int64_t groups,
                      Where at) const {
  return conv(weight, bias, {{stride}, {padding}, {dilation}, groups}, at);
}

// The adjoint of conv: the input spread by stride, then convolved with the flipped weight.
Tensor Tensor::conv_transpose(const Tensor& weight, const Tensor& bias, const ConvOptions& o,
                              std::vector<std::int64_t> output_padding, Where at) const {
  const int spatial = weight.ndim() - 2;
  if (spatial < 1 || ndim() != weight.ndim() || size(1) != weight.size(0)) {
    fail<ShapeError>("conv_transpose",
                     cat("input ", shape_text(*this), " and weight ", shape_text(weight)), at,
                     "give (N, C, ..) and (C, O/groups, ..)");
  }
  if (o.groups < 1 || size(1) % o.groups != 0)
    fail<ShapeError>("conv_transpose",
                     cat(o.groups, " groups do not divide the ", size(1), " channels"), at,
                     "give groups that do");
  expect_bias("conv_transpose", bias, weight.size(1) * o.groups, at);
  const OuterPlace outer(at);
  const std::size_t s = idx(spatial);
  const auto stride = spread("conv_transpose", "stride", o.stride, s, at),
             dilation = spread("conv_transpose", "dilation", o.dilation, s, at);
  const auto extra = spread("conv_transpose", "output padding", output_padding, s, at);
  const Pairs padding = spread_padding("conv_transpose", o.padding, s, at);
  Tensor x = *this;
  Pairs around;
  for (int i = 0; i < spatial; ++i) {
    const int a = 2 + i;
    const std::int64_t n = x.size(a), step = stride[idx(i)];
    if (step > 1) {
      Dims apart = x.shape(), joined = apart;
      apart.insert(apart.begin() + a + 1, 1);
      Pairs gap(apart.size(), {0, 0}), trim;
      gap[idx(a) + 1] = {0, step - 1};
      joined[idx(a)] = n * step;
      for (std::int64_t d : joined) trim.emplace_back(0, d);
      trim[idx(a)].second = (n - 1) * step + 1;
      x = x.reshape(apart, at).pad(gap, 0, at).reshape(joined, at).shrink(trim, at);
    }
    const std::int64_t reach = dilation[idx(i)] * (weight.size(a) - 1);
    around.emplace_back(reach - padding[idx(i)].first,
                        reach - padding[idx(i)].second + extra[idx(i)]);
  }
  const Tensor turned = turned_weight(weight, o.groups, at);
  return pad_last(x, around, 0, at).conv(turned, bias, {{1}, {0}, o.dilation, o.groups}, at);
}

namespace {

struct Pool {
  std::vector<std::int64_t> kernel, stride, dilation;
  Pairs padding;            // asked for
  Pairs extra;              // after the padding, for the windows of ceil_mode that reach over it
  std::vector<int> window;  // the axes of the kernel in the view of the windows
};

Pool pool_of(std::string_view op, const Tensor& x, const std::vector<std::int64_t>& kernel,
             const PoolOptions& o, Where at) {
  const std::size_t s = kernel.size();
  if (idx(x.ndim()) < s)
    fail<ShapeError>(op, cat("shape ", shape_text(x), " has fewer axes than the kernel"), at,
                     "pool over the last axes");
  Pool p{kernel,
         o.stride.empty() ? kernel : spread(op, "stride", o.stride, s, at),
         spread(op, "dilation", o.dilation, s, at),
         spread_padding(op, o.padding, s, at),
         Pairs(s, {0, 0}),
         {}};
  const Dims shape = x.shape();
  for (std::size_t i = 0; i < s; ++i) {
    p.window.push_back(x.ndim() + static_cast<int>(i));
    if (!o.ceil_mode) continue;
    const std::int64_t n = shape[shape.size() - s + i], before = p.padding[i].first;
    const std::int64_t reach = p.dilation[i] * (kernel[i] - 1) + 1,
                       all = n + before + p.padding[i].second;
    std::int64_t count = (all - reach + p.stride[i] - 1) / p.stride[i] + 1;
    if ((count - 1) * p.stride[i] >= n + before) --count;  // a window must begin inside
    p.extra[i].second = std::max<std::int64_t>((count - 1) * p.stride[i] + reach - all, 0);
  }
  return p;
}

// (.., o.., k..): x padded by `fill`, then by `beyond`.
Tensor pooled(std::string_view op, const Tensor& x, const Pool& p, const Operand& fill,
              const Operand& beyond, Where at) {
  const Tensor padded = pad_last(pad_last(x, p.padding, fill, at), p.extra, beyond, at);
  return windowed(op, padded, p.kernel, p.stride, p.dilation, at);
}

}  // namespace

Tensor Tensor::max_pool(std::vector<std::int64_t> kernel, const PoolOptions& o, Where at) const {
  const Pool p = pool_of("max_pool", *this, kernel, o, at);
  if (is_float(dtype()))
    return pooled("max_pool", *this, p, -INFINITY, -INFINITY, at).max(p.window, false, at);
  const std::int64_t least = identity_of(Op::max, dtype()).as_int();
  return pooled("max_pool", *this, p, least, least, at).max(p.window, false, at);
}

// The sum of a window over the elements that count: with the padding that was asked for, but not
// with what ceil_mode adds.
Tensor Tensor::avg_pool(std::vector<std::int64_t> kernel, const PoolOptions& o, Where at) const {
  const Tensor x = as_float(*this, at);
  const Pool p = pool_of("avg_pool", x, kernel, o, at);
  const Tensor view = pooled("avg_pool", x, p, 0, 0, at);
  if (o.count_include_pad && !o.ceil_mode) return view.mean(p.window, false, at);
  const Tensor counted = pooled("avg_pool", x.ones_like(at), p, o.count_include_pad ? 1 : 0, 0, at);
  return view.sum(p.window, false, {}, at) / counted.sum(p.window, false, {}, at);
}

Tensor Tensor::scaled_dot_product_attention(const Tensor& key, const Tensor& value,
                                            const Tensor& mask, bool causal, double dropout,
                                            Where at) const {
  const OuterPlace outer(at);
  Tensor scores =
      matmul(key.transpose(-2, -1, at), {}, at) / std::sqrt(static_cast<double>(size(-1)));
  Tensor allowed = mask.is_defined() && mask.dtype() == DType::boolean ? mask : Tensor();
  if (causal) {
    const Tensor lower =
        ones({scores.size(-2), scores.size(-1)}, {DType::boolean, device(), false}, at).tril(0, at);
    allowed = allowed.is_defined() ? allowed & lower : lower;
  }
  if (allowed.is_defined()) scores = mote::where(allowed, scores, -INFINITY, at);
  if (mask.is_defined() && mask.dtype() != DType::boolean) scores = scores + mask;
  // A row with nothing allowed gives zeros, and zero gradients.
  const Tensor top = scores.max(-1, true, at).detach(at);
  const Tensor none = top == -INFINITY;
  const Tensor e = (scores - mote::where(none, 0.0, top, at)).exp(at);
  const Tensor total = e.sum(-1, true, {}, at);
  Tensor weights = e / mote::where(none, 1.0, total, at);
  if (dropout > 0) weights = weights.dropout(dropout, at);
  return weights.matmul(value, {}, at).cast(dtype(), at);
}

}  // namespace mote
