// Each row makes the values of the case of its name in golden.py; the numbers of convolutions and
// pools are those of its tables CONVS, TRANSPOSED and POOLS.
#include "tensor/golden.h"

namespace mote::testing {
namespace {

using In = const Tensors&;
using Sizes = std::vector<std::int64_t>;

Row row(std::string op, std::function<Tensors(In)> f) {
  return {std::move(op), Bound::reduce, std::move(f)};
}

Row conv(const char* label, Sizes stride, Sizes padding, Sizes dilation, std::int64_t groups) {
  const ConvOptions o{std::move(stride), std::move(padding), std::move(dilation), groups};
  return row(std::string("conv_") + label,
             [o](In in) { return Tensors{in[0].conv(in[1], {}, o), in[0].conv(in[1], in[2], o)}; });
}

Row transposed(const char* label, Sizes stride, Sizes padding, Sizes dilation, std::int64_t groups,
               Sizes extra) {
  const ConvOptions o{std::move(stride), std::move(padding), std::move(dilation), groups};
  return row(std::string("conv_transpose_") + label, [o, extra](In in) {
    return Tensors{in[0].conv_transpose(in[1], {}, o, extra),
                   in[0].conv_transpose(in[1], in[2], o, extra)};
  });
}

void pools(Rows& rows, const char* label, Sizes kernel, PoolOptions o) {
  rows.push_back(row(std::string("max_pool_") + label,
                     [=](In in) { return Tensors{in[0].max_pool(kernel, o)}; }));
  PoolOptions skipping = o;
  skipping.count_include_pad = false;
  rows.push_back(row(std::string("avg_pool_") + label, [=](In in) {
    return Tensors{in[0].avg_pool(kernel, o), in[0].avg_pool(kernel, skipping)};
  }));
}

Rows matmul_rows() {
  return {
      row("matmul", [](In in) { return Tensors{in[0].matmul(in[1])}; }),
      row("matmul_wide", [](In in) { return Tensors{in[0].matmul(in[1], DType::float32)}; }),
      row("linear", [](In in) { return Tensors{in[0].linear(in[1]), in[0].linear(in[1], in[2])}; }),
      row("matmul_views",
          [](In in) {
            const Tensor& t = in[0];
            return Tensors{
                t.t().matmul(t),
                t(Slice({}, {}, 2), Slice({}, {}, -1)).matmul(t(Slice(1, 5), Slice(0, 2))),
                t(Slice(0, 1)).matmul(t(0, 1).expand({4, 3}))};
          }),
      row("attention",
          [](In in) {
            const Tensor &q = in[0], &k = in[1], &v = in[2], &mask = in[3], &bias = in[4];
            return Tensors{q.scaled_dot_product_attention(k, v),
                           q.scaled_dot_product_attention(k, v, {}, true),
                           q.scaled_dot_product_attention(k, v, mask),
                           q.scaled_dot_product_attention(k, v, mask, true),
                           q.scaled_dot_product_attention(k, v, bias)};
          }),
  };
}

// clang-format off
Rows convolution_rows() {
  return {
      conv("1d", {1}, {0}, {1}, 1),
      conv("1d_stride", {2}, {2}, {2}, 2),
      conv("2d", {1}, {0}, {1}, 1),
      conv("2d_pad", {1, 1}, {1, 1}, {1}, 1),
      conv("2d_stride", {2, 3}, {1, 2}, {1}, 1),
      conv("2d_dilate", {1, 2}, {0, 1, 2, 0}, {2, 3}, 2),
      conv("2d_depthwise", {1}, {1, 0, 1, 1}, {1}, 4),
      conv("2d_one", {1}, {0}, {1}, 1),
      conv("3d", {1, 2, 1}, {1, 0, 1}, {1, 1, 2}, 1),
      row("conv_int", [](In in) { return Tensors{in[0].conv2d(in[1], {}, 1, 1)}; }),
      transposed("1d", {2}, {1}, {1}, 1, {1}),
      transposed("2d", {2, 1}, {1, 0}, {1, 2}, 2, {0}),
      transposed("2d_odd", {2, 1}, {2, 1}, {3, 1}, 1, {0}),
      transposed("2d_plain", {1}, {0}, {1}, 1, {0}),
      transposed("3d", {2, 2, 1}, {0, 1, 0}, {1}, 1, {1, 1, 0}),
  };
}

Rows pool_rows() {
  Rows rows;
  pools(rows, "2d", {2, 2}, {});
  pools(rows, "2d_over", {3, 2}, {{2, 1}, {1, 0}, {1}});
  pools(rows, "2d_ceil", {2, 2}, {{2}, {1}, {1}, true});
  pools(rows, "2d_ceil_b", {3, 3}, {{2}, {0, 1}, {1}, true});
  pools(rows, "1d_dilate", {3}, {{1}, {1}, {2}});
  pools(rows, "3d", {2, 2, 2}, {{1, 2, 2}, {0, 1, 0}, {1}});
  rows.push_back(row("max_pool_nan", [](In in) { return Tensors{in[0].max_pool2d(2)}; }));
  rows.push_back(row("max_pool_int", [](In in) {
    return Tensors{in[0].max_pool({3, 3}, {{1}, {1}, {1}})};
  }));
  return rows;
}
// clang-format on

LossOptions with(Reduction r, double smoothing = 0) {
  LossOptions o;
  o.reduction = r;
  o.label_smoothing = smoothing;
  return o;
}
LossOptions weighted(const Tensor& w) {
  LossOptions o;
  o.weight = w;
  return o;
}

Rows loss_rows() {
  return {
      row("cross_entropy",
          [](In in) {
            const Tensor &x = in[0], &t = in[1], &w = in[2];
            return Tensors{cross_entropy(x, t), cross_entropy(x, t, with(Reduction::sum)),
                           cross_entropy(x, t, with(Reduction::none)),
                           cross_entropy(x, t, weighted(w)),
                           cross_entropy(x, t, with(Reduction::mean, 0.1))};
          }),
      row("nll_loss",
          [](In in) {
            const Tensor &x = in[0], &t = in[1], &w = in[2];
            return Tensors{nll_loss(x, t), nll_loss(x, t, weighted(w)),
                           nll_loss(x, t, with(Reduction::none))};
          }),
      row("cross_entropy_soft",
          [](In in) {
            return Tensors{cross_entropy(in[0], in[1]),
                           cross_entropy(in[0], in[1], with(Reduction::none))};
          }),
      row("cross_entropy_image", [](In in) { return Tensors{cross_entropy(in[0], in[1])}; }),
      row("binary_cross_entropy",
          [](In in) {
            return Tensors{binary_cross_entropy(in[0], in[1]),
                           binary_cross_entropy(in[0], in[1], Reduction::none)};
          }),
      row("bce_logits",
          [](In in) {
            const Tensor &x = in[0], &t = in[1], &pos = in[2];
            return Tensors{binary_cross_entropy_with_logits(x, t),
                           binary_cross_entropy_with_logits(x, t, Reduction::none),
                           binary_cross_entropy_with_logits(x, t, Reduction::sum, pos)};
          }),
      row("mse_loss",
          [](In in) {
            return Tensors{mse_loss(in[0], in[1]), mse_loss(in[0], in[1], Reduction::sum),
                           mse_loss(in[0], in[1], Reduction::none)};
          }),
      row("l1_loss",
          [](In in) {
            return Tensors{l1_loss(in[0], in[1]), l1_loss(in[0], in[1], Reduction::none)};
          }),
  };
}

}  // namespace

Rows product_rows() {
  Rows rows = matmul_rows();
  for (const Rows& more : {convolution_rows(), pool_rows(), loss_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace mote::testing
