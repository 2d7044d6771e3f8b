// Programs with gradients: backward of the layers, and steps of the optimizers.
#include "schedule/cases.h"

namespace mote::cases {
namespace {

// The gradients of all parameters and of x, for a loss that weighs each output differently.
Tensors backward(Inputs& in, const nn::Module& net, const std::function<Tensor()>& output,
                 Tensors wanted) {
  in.begin(net);
  const Tensor y = output();
  (y * in.floats(y.shape())).sum().backward();
  Tensors grads;
  for (const Tensor& p : net.parameters()) wanted.push_back(p);
  for (const Tensor& t : wanted) grads.push_back(t.grad());
  return grads;
}

Tensor rows(Inputs& in) { return in.weights({in.size(128, 4), in.size(512, 6)}); }
Tensor image(Inputs& in) {
  return in.weights({in.size(8, 2), in.size(16, 2), in.size(32, 6), in.size(32, 6)});
}

Tensors of_linear(Inputs& in) {
  const nn::Linear layer(in.size(512, 6), in.size(256, 5));
  const Tensor x = rows(in);
  return backward(in, layer, [&] { return layer(x); }, {x});
}

Tensors of_conv(Inputs& in) {
  const nn::Conv2d layer(in.size(16, 2), in.size(32, 3), 3);
  const Tensor x = image(in);
  return backward(in, layer, [&] { return layer(x); }, {x});
}

Tensors of_layernorm(Inputs& in) {
  const nn::LayerNorm layer({in.size(512, 6)});
  const Tensor x = rows(in);
  return backward(in, layer, [&] { return layer(x); }, {x});
}

Tensors of_batchnorm(Inputs& in) {
  const Training on;
  const nn::BatchNorm layer(in.size(16, 2));
  const Tensor x = image(in);
  return backward(in, layer, [&] { return layer(x); }, {x});
}

Tensors of_embedding(Inputs& in) {
  const nn::Embedding layer(in.size(50257, 11), in.size(768, 4));
  const Tensor tokens = in.integers({in.size(128, 5)}, in.size(50257, 11));
  return backward(in, layer, [&] { return layer(tokens); }, {});
}

struct Nothing : nn::Module {};

Tensors of_softmax(Inputs& in) {
  const Tensor x = rows(in);
  return backward(in, Nothing(), [&] { return x.softmax(1); }, {x});
}

Tensors of_max_pool(Inputs& in) {
  const Tensor x = image(in);
  return backward(in, Nothing(), [&] { return x.max_pool2d(2); }, {x});
}

Tensors of_cumsum(Inputs& in) {
  const Tensor x = rows(in);
  return backward(in, Nothing(), [&] { return x.cumsum(1); }, {x});
}

Tensors of_attention(Inputs& in) {
  const Dims shape{in.size(8, 2), in.size(256, 5), in.size(64, 4)};
  const Tensor q = in.weights(shape), k = in.weights(shape), v = in.weights(shape);
  return backward(in, Nothing(), [&] { return q.scaled_dot_product_attention(k, v, {}, true); },
                  {q, k, v});
}

Tensors of_cross_entropy(Inputs& in) {
  const Tensor logits = rows(in);
  const Tensor target = in.integers({logits.size(0)}, logits.size(1));
  cross_entropy(logits, target).backward();
  return {logits.grad()};
}

struct Mlp : nn::Module {
  nn::Linear first, second;
  explicit Mlp(const Inputs& in)
      : first(in.size(784, 6), in.size(128, 5)), second(in.size(128, 5), in.size(10, 3)) {}
  MOTE_MODULE(Mlp, first, second)
  Tensor forward(const Tensor& x) const { return second(first(x).relu()); }
};

// The second of two steps: the optimizer's state is born in the first.
template <class Optimizer>
Tensors stepped(Inputs& in, typename Optimizer::Options options) {
  const Mlp net(in);
  Optimizer opt(net.parameters(), options);
  const Tensor x = in.floats({in.size(512, 4), in.size(784, 6)});
  const Tensor y = in.integers({in.size(512, 4)}, in.size(10, 3));
  Tensor loss;
  for (int i = 0; i < 2; ++i) {
    in.begin(net);
    opt.zero_grad();
    loss = cross_entropy(net(x), y);
    loss.backward();
    opt.step();
  }
  Tensors out = net.parameters();
  out.push_back(loss);
  return out;
}

}  // namespace

const std::vector<Case>& training() {
  // clang-format off
  static const std::vector<Case> list{
      {"backward_linear",        of_linear},
      {"backward_conv",          of_conv},
      {"backward_layernorm",     of_layernorm},
      {"backward_batchnorm",     of_batchnorm},
      {"backward_embedding",     of_embedding},
      {"backward_softmax",       of_softmax},
      {"backward_max_pool",      of_max_pool},
      {"backward_cumsum",        of_cumsum},
      {"backward_attention",     of_attention},
      {"backward_cross_entropy", of_cross_entropy},
      {"step_sgd",               [](Inputs& in) { return stepped<optim::SGD>(in, {.lr = 0.1}); }},
      {"step_sgd_momentum",      [](Inputs& in) { return stepped<optim::SGD>(in, {.lr = 0.1, .momentum = 0.9}); }},
      {"step_rmsprop",           [](Inputs& in) { return stepped<optim::RMSprop>(in, {.lr = 0.01}); }},
      {"step_adam",              [](Inputs& in) { return stepped<optim::Adam>(in, {.lr = 0.01}); }},
      {"step_adamw",             [](Inputs& in) { return stepped<optim::AdamW>(in, {.lr = 0.01, .weight_decay = 0.1}); }},
  };
  // clang-format on
  return list;
}

}  // namespace mote::cases
