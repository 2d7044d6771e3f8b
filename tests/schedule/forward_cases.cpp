// Programs without gradients that compute: elementwise, reductions, products, norms, losses.
#include "schedule/cases.h"

namespace mote::cases {
namespace {

Tensors attention(Inputs& in, bool causal) {
  const Dims shape{in.size(8, 2), in.size(1024, 5), in.size(64, 4)};
  const Tensor q = in.floats(shape), k = in.floats(shape), v = in.floats(shape);
  return {q.scaled_dot_product_attention(k, v, {}, causal)};
}

Tensor image(Inputs& in) {
  return in.floats({in.size(8, 2), in.size(16, 2), in.size(32, 6), in.size(32, 6)});
}

Tensor table(Inputs& in) { return in.floats({in.size(256, 3), in.size(1024, 7)}); }

Tensors chain(Inputs& in) {
  Tensor x = table(in);
  const Tensor y = table(in);
  for (int i = 0; i < 5; ++i) x = (x * y) + 1;
  return {x};
}

Tensors linear_relu(Inputs& in) {
  const std::int64_t n = in.size(1024, 9);
  return {(in.floats({n, n}).matmul(in.floats({n, n})) + in.floats({n})).relu()};
}

Tensors conv_relu(Inputs& in) {
  const Tensor x = image(in), w = in.floats({in.size(32, 3), in.size(16, 2), 3, 3});
  return {x.conv2d(w, in.floats({in.size(32, 3)}), 1, 1).relu()};
}

Tensors conv_of_conv(Inputs& in) {
  const std::int64_t c = in.size(16, 2);
  const Tensor x = image(in), w = in.floats({c, c, 3, 3}), w2 = in.floats({c, c, 3, 3});
  return {x.conv2d(w).conv2d(w2)};
}

Tensors sum_and_max(Inputs& in) {
  const Tensor x = table(in);
  return {x.sum(1), x.max(1)};
}

Tensors two_outputs(Inputs& in) {
  const Tensor x = table(in), y = table(in);
  return {x + y, x * y};
}

Tensors batchnorm(Inputs& in, bool train) {
  const Training mode(train);
  const nn::BatchNorm norm(in.size(16, 2));
  in.begin(norm);
  return {norm(image(in)), norm.running_mean, norm.running_var};
}

template <class Norm>
Tensors normed(Inputs& in, const Norm& norm, const Tensor& x) {
  in.begin(norm);
  return {norm(x)};
}

Tensors matmul_of_matmul(Inputs& in) {
  const std::int64_t n = in.size(256, 6);
  return {in.floats({n, n}).matmul(in.floats({n, n})).matmul(in.floats({n, n}))};
}

Tensors classes_loss(Inputs& in) {
  const Tensor logits = in.floats({in.size(512, 4), in.size(1000, 5)});
  return {cross_entropy(logits, in.integers({logits.size(0)}, logits.size(1)))};
}

Tensors binary_loss(Inputs& in) {
  const Tensor x = table(in);
  return {binary_cross_entropy_with_logits(x, (table(in) > 0).to_float())};
}

Tensors masked_softmax(Inputs& in) {
  const Tensor x = table(in);
  return {x.masked_fill(table(in) > 0.9, -1e9).softmax(1)};
}

Tensors moments(Inputs& in) {
  const Tensor x = table(in);
  return {x.mean(1), x.var(1)};
}

Tensors dropped(Inputs& in) {
  const Training on;
  const Tensor x = table(in);
  return {x.dropout(0.5)};
}

}  // namespace

const std::vector<Case>& forward() {
  // clang-format off
  static const std::vector<Case> list{
      {"elementwise_chain_of_10", chain},
      {"matmul_bias_relu",        linear_relu},
      {"conv_bias_relu",          conv_relu},
      {"sum_and_max",             sum_and_max},
      {"softmax",                 [](Inputs& in) { return Tensors{table(in).softmax(1)}; }},
      {"layernorm",               [](Inputs& in) { return normed(in, nn::LayerNorm({in.size(1024, 7)}), table(in)); }},
      {"two_outputs",             two_outputs},
      {"attention",               [](Inputs& in) { return attention(in, false); }},
      {"attention_causal",        [](Inputs& in) { return attention(in, true); }},
      {"gelu",                    [](Inputs& in) { return Tensors{table(in).gelu()}; }},
      {"log_softmax",             [](Inputs& in) { return Tensors{table(in).log_softmax(1)}; }},
      {"softmax_axis_0",          [](Inputs& in) { return Tensors{table(in).softmax(0)}; }},
      {"logsumexp",               [](Inputs& in) { return Tensors{table(in).logsumexp(1)}; }},
      {"masked_softmax",          masked_softmax},
      {"mean_and_var",            moments},
      {"var_of_all",              [](Inputs& in) { return Tensors{table(in).var()}; }},
      {"sum_of_all",              [](Inputs& in) { return Tensors{table(in).sum()}; }},
      {"argmax",                  [](Inputs& in) { return Tensors{table(in).argmax(1)}; }},
      {"norm_2",                  [](Inputs& in) { return Tensors{table(in).norm(2, 1)}; }},
      {"normalize",               [](Inputs& in) { return Tensors{table(in).normalize()}; }},
      {"rmsnorm",                 [](Inputs& in) { return normed(in, nn::RMSNorm(in.size(1024, 7)), table(in)); }},
      {"groupnorm",               [](Inputs& in) { return normed(in, nn::GroupNorm(2, in.size(16, 2)), image(in)); }},
      {"batchnorm_training",      [](Inputs& in) { return batchnorm(in, true); }},
      {"batchnorm_inference",     [](Inputs& in) { return batchnorm(in, false); }},
      {"matmul_of_matmul",        matmul_of_matmul},
      {"conv_of_conv",            conv_of_conv},
      {"max_pool",                [](Inputs& in) { return Tensors{image(in).max_pool2d(2)}; }},
      {"avg_pool",                [](Inputs& in) { return Tensors{image(in).avg_pool2d(2)}; }},
      {"global_mean",             [](Inputs& in) { return Tensors{image(in).mean({2, 3})}; }},
      {"cross_entropy",           classes_loss},
      {"mse_loss",                [](Inputs& in) { return Tensors{mse_loss(table(in), table(in))}; }},
      {"l1_loss",                 [](Inputs& in) { return Tensors{l1_loss(table(in), table(in))}; }},
      {"binary_cross_entropy",    binary_loss},
      {"dropout",                 dropped},
  };
  // clang-format on
  return list;
}

}  // namespace mote::cases
