#include <cmath>

#include "tensor/gradient_rows.h"

namespace mote::testing {
namespace {

using In = const Tensors&;
using Run = std::function<Tensor(In)>;
using Unary = Tensor (Tensor::*)(Where) const;
const Slice all;

GradientRow unary(const char* name, Unary f, double low = -2, double high = 2, bool twice = false) {
  return {name, {{2, 3}}, [f](In x) { return (x[0].*f)(Where::here()); }, low, high, twice};
}
GradientRow row(const char* name, std::vector<Dims> shapes, Run f, double low = -2,
                double high = 2) {
  return {name, std::move(shapes), std::move(f), low, high, false};
}
GradientRow twice(GradientRow r) {
  r.twice = true;
  return r;
}

Tensor index(std::vector<std::int64_t> v, Dims shape) { return Tensor(v, std::move(shape)); }

}  // namespace

// clang-format off
std::vector<GradientRow> elementwise_gradients() {
  const Dims a{2, 3}, b{3};
  return {
    unary("neg", &Tensor::neg),
    unary("abs", &Tensor::abs),
    unary("exp", &Tensor::exp, -2, 2, true),
    unary("exp2", &Tensor::exp2),
    unary("log", &Tensor::log, 0.2, 4, true),
    unary("log2", &Tensor::log2, 0.2, 4),
    unary("log10", &Tensor::log10, 0.2, 4),
    unary("log1p", &Tensor::log1p, -0.8, 4, true),
    unary("expm1", &Tensor::expm1, -2, 2, true),
    unary("sqrt", &Tensor::sqrt, 0.2, 4, true),
    unary("rsqrt", &Tensor::rsqrt, 0.2, 4),
    unary("reciprocal", &Tensor::reciprocal, 0.3, 4),
    unary("square", &Tensor::square),
    unary("sin", &Tensor::sin, -4, 4, true),
    unary("cos", &Tensor::cos, -4, 4, true),
    unary("tan", &Tensor::tan, -1.2, 1.2),
    unary("asin", &Tensor::asin, -0.9, 0.9, true),
    unary("acos", &Tensor::acos, -0.9, 0.9),
    unary("atan", &Tensor::atan, -3, 3, true),
    unary("sinh", &Tensor::sinh, -2, 2, true),
    unary("cosh", &Tensor::cosh, -2, 2, true),
    unary("tanh", &Tensor::tanh, -2, 2, true),
    unary("asinh", &Tensor::asinh, -3, 3, true),
    unary("acosh", &Tensor::acosh, 1.2, 4, true),
    unary("atanh", &Tensor::atanh, -0.8, 0.8),
    unary("erf", &Tensor::erf, -2, 2, true),
    unary("relu", &Tensor::relu),
    unary("relu6", &Tensor::relu6, -3, 9),
    unary("sigmoid", &Tensor::sigmoid, -4, 4, true),
    unary("silu", &Tensor::silu, -2, 2, true),
    unary("quick_gelu", &Tensor::quick_gelu),
    unary("selu", &Tensor::selu),
    unary("softsign", &Tensor::softsign),
    unary("mish", &Tensor::mish),
    unary("hardswish", &Tensor::hardswish, -5, 5),
    unary("hardsigmoid", &Tensor::hardsigmoid, -5, 5),
    unary("logsigmoid", &Tensor::logsigmoid, -4, 4, true),
    unary("floor", &Tensor::floor),
    unary("round", &Tensor::round),
    unary("sign", &Tensor::sign),
    row("clip", {a}, [](In x) { return x[0].clip(-1.0, 0.7); }),
    row("gelu", {a}, [](In x) { return x[0].gelu(); }),
    row("gelu_tanh", {a}, [](In x) { return x[0].gelu(true); }),
    row("leaky_relu", {a}, [](In x) { return x[0].leaky_relu(0.1); }),
    row("elu", {a}, [](In x) { return x[0].elu(1.3); }),
    row("celu", {a}, [](In x) { return x[0].celu(1.3); }),
    row("softplus", {a}, [](In x) { return x[0].softplus(2.0); }),
    row("hardtanh", {a}, [](In x) { return x[0].hardtanh(); }),
    row("add", {a, b}, [](In x) { return x[0] + x[1]; }),
    row("sub", {a, b}, [](In x) { return x[0] - x[1]; }),
    twice(row("mul", {a, b}, [](In x) { return x[0] * x[1]; })),
    twice(row("div", {a, b}, [](In x) { return x[0] / x[1]; }, 0.4, 3)),
    row("maximum", {a, b}, [](In x) { return maximum(x[0], x[1]); }),
    row("minimum", {a, b}, [](In x) { return minimum(x[0], x[1]); }),
    twice(row("pow", {a, b}, [](In x) { return x[0].pow(x[1]); }, 0.3, 2)),
    row("pow_number", {a}, [](In x) { return x[0].pow(1.7); }, 0.3, 2),
    twice(row("pow_whole", {a}, [](In x) { return x[0].pow(3); })),
    row("pow_negative", {a}, [](In x) { return x[0].pow(-2); }, 0.4, 2),
    row("fmod", {a, b}, [](In x) { return (x[0] * 4).fmod(x[1]); }, 0.5, 2),
    row("remainder", {a, b}, [](In x) { return (x[0] * -4).remainder(x[1]); }, 0.5, 2),
    row("floor_divide", {a, b}, [](In x) { return (x[0] * 4).floor_divide(x[1]); }, 0.5, 2),
    twice(row("logaddexp", {a, b}, [](In x) { return x[0].logaddexp(x[1]); })),
    row("copysign", {a, b}, [](In x) { return x[0].copysign(x[1]); }),
    row("lerp", {a, b}, [](In x) { return x[0].lerp(x[1].expand({2, 3}), 0.3); }),
    row("lerp_weight", {a, a, b}, [](In x) { return x[0].lerp(x[1], x[2]); }),
    row("where", {a, b}, [](In x) { return where(x[0].detach() < 0.1, x[0] * x[1], x[1] + 1); }),
    twice(row("cube", {a}, [](In x) { return x[0] * x[0] * x[0]; })),
    row("cast", {a}, [](In x) { return x[0].cast(DType::float64) * x[0]; }),
    row("reused", {a, b}, [](In x) { const Tensor y = x[0] * x[1]; return y.sin() * y + y.exp(); }),
  };
}

std::vector<GradientRow> shape_gradients() {
  const Dims cube{2, 3, 4}, square{3, 3};
  return {
    row("sum", {cube}, [](In x) { return x[0].sum({0, 2}); }),
    row("mean", {cube}, [](In x) { return x[0].mean(1, true); }),
    twice(row("prod", {{2, 3}}, [](In x) { return x[0].prod(1); })),
    row("max", {cube}, [](In x) { return x[0].max(1); }),
    row("min", {cube}, [](In x) { return x[0].min({0, 1}); }),
    row("max_all", {cube}, [](In x) { return x[0].max(); }),
    twice(row("var", {{3, 4}}, [](In x) { return x[0].var(1); })),
    row("std", {cube}, [](In x) { return x[0].std({1, 2}, false, 0); }),
    row("norm", {cube}, [](In x) { return x[0].norm(2, 2); }),
    row("norm1", {cube}, [](In x) { return x[0].norm(1, 2); }),
    row("norm3", {cube}, [](In x) { return x[0].norm(3, 2); }),
    row("norm_inf", {cube}, [](In x) { return x[0].norm(INFINITY, 2); }),
    twice(row("logsumexp", {{2, 4}}, [](In x) { return x[0].logsumexp(1); })),
    twice(row("softmax", {{2, 4}}, [](In x) { return x[0].softmax(); })),
    row("softmax0", {cube}, [](In x) { return x[0].softmax(0); }),
    twice(row("log_softmax", {{2, 4}}, [](In x) { return x[0].log_softmax(1); })),
    row("softmin", {cube}, [](In x) { return x[0].softmin(1); }),
    row("normalize", {cube}, [](In x) { return x[0].normalize(); }),
    twice(row("layernorm", {{2, 4}}, [](In x) { return x[0].layernorm(); })),
    row("layernorm2", {cube}, [](In x) { return x[0].layernorm(2); }),
    row("cumsum", {cube}, [](In x) { return x[0].cumsum(1); }),
    row("cumprod", {cube}, [](In x) { return x[0].cumprod(1); }),
    row("cummax", {cube}, [](In x) { return x[0].cummax(2); }),
    row("cummin", {cube}, [](In x) { return x[0].cummin(2); }),
    row("logcumsumexp", {cube}, [](In x) { return x[0].logcumsumexp(2); }),

    row("reshape", {cube}, [](In x) { return x[0].reshape({4, 6}).square(); }),
    row("permute", {cube}, [](In x) { return x[0].permute({2, 0, 1}).square(); }),
    row("expand", {{3, 1}}, [](In x) { return x[0].expand({2, 3, 4}).square(); }),
    row("shrink", {cube}, [](In x) { return x[0].shrink({{0, 2}, {1, 3}, {2, 4}}).square(); }),
    row("pad", {cube}, [](In x) { return x[0].pad({{1, 0}, {0, 2}, {-1, 1}}, 3.0).square(); }),
    row("flip", {cube}, [](In x) { return x[0].flip({0, 2}).square(); }),
    row("slices", {cube}, [](In x) { return x[0](all, Slice({}, {}, -2), Slice(1, {}, 2)).square(); }),
    row("cat", {{2, 3}, {1, 3}}, [](In x) { return cat({x[0], x[1], x[0]}).square(); }),
    row("stack", {{2, 3}, {2, 3}}, [](In x) { return stack({x[0], x[1], x[0]}, 1).square(); }),
    row("split", {cube}, [](In x) { const Tensors p = x[0].split(3, 2); return p[0].sum() * p[1].square().sum(); }),
    row("repeat", {{2, 3}}, [](In x) { return x[0].repeat({2, 1, 2}).square(); }),
    row("repeat_interleave", {{2, 3}}, [](In x) { return x[0].repeat_interleave(3, 1).square(); }),
    row("roll", {cube}, [](In x) { return x[0].roll({1, -1}, {0, 2}).square(); }),
    row("unfold", {{2, 7}}, [](In x) { return x[0].unfold(1, 3, 2).square(); }),
    row("unfold_first", {{5, 2}}, [](In x) { return x[0].unfold(0, 2, 1).square(); }),
    row("diag", {{4}}, [](In x) { return x[0].diag().square(); }),
    row("diagonal", {square}, [](In x) { return x[0].diagonal().square(); }),
    row("tril", {square}, [](In x) { return x[0].tril().square(); }),
    row("triu", {square}, [](In x) { return x[0].triu(1).square(); }),
    row("contiguous", {cube}, [](In x) { return x[0].permute({1, 0, 2}).contiguous().square(); }),
    row("fancy", {cube}, [](In x) { return x[0](all, index({2, 0, 2, -1}, {4})).square(); }),
    row("fancy_two", {square}, [](In x) { return x[0](index({0, 0, 2}, {3}), index({1, 1, -3}, {3})).square(); }),
    row("mask", {cube}, [](In x) { return x[0](x[0].detach() < 0.3).square(); }),
    row("gather", {square}, [](In x) { return x[0].gather(1, index({0, -1, 2, 2, 9, 1}, {3, 2})).square(); }),
    row("index_select", {cube}, [](In x) { return x[0].index_select(2, index({3, 3, 0}, {3})).square(); }),
    row("masked_fill", {cube}, [](In x) { return x[0].masked_fill(x[0].detach() < 0, 5.0).square(); }),
    row("scatter", {{4, 2}, {3, 2}}, [](In x) { return x[0].scatter(0, index({0, 3, 0, -1, 1, 9}, {3, 2}), x[1]).square(); }),
    row("scatter_sum", {{4, 2}, {3, 2}}, [](In x) { return x[0].scatter_reduce(0, index({0, 3, 0, -1, 1, 9}, {3, 2}), x[1], ScatterReduce::sum).square(); }),
    row("scatter_mean", {{4, 2}, {3, 2}}, [](In x) { return x[0].scatter_reduce(0, index({0, 3, 0, -1, 1, 9}, {3, 2}), x[1], ScatterReduce::mean).square(); }),
    row("scatter_amax", {{4, 2}, {3, 2}}, [](In x) { return x[0].scatter_reduce(0, index({0, 3, 0, -1, 1, 9}, {3, 2}), x[1], ScatterReduce::amax).square(); }),
    row("scatter_amin", {{4, 2}, {3, 2}}, [](In x) { return x[0].scatter_reduce(0, index({0, 3, 0, -1, 1, 9}, {3, 2}), x[1], ScatterReduce::amin, false).square(); }),
    row("setitem", {{3, 4}, {4}}, [](In x) { Tensor y = x[0] * 2; y(1) = x[1]; y(all, 2) *= 3; return y.square(); }),
    row("setitem_step", {{3, 4}, {2}}, [](In x) { Tensor y = x[0].sin(); y(all, Slice({}, {}, -2)) = x[1]; return y.square(); }),
    row("setitem_fancy", {{3, 4}, {3}}, [](In x) { Tensor y = x[0].sin(); y(index({0, 2, 0}, {3}), index({1, 3, 1}, {3})) = x[1]; return y.square(); }),
    row("assign", {{3}, {3}}, [](In x) { Tensor y = x[0] * 2; const Tensor z = y.cumsum(); y.assign(x[1]); y += x[0]; return z * y; }),
  };
}

std::vector<GradientRow> product_gradients() {
  const auto conv = [](ConvOptions o) { return [o](In x) { return x[0].conv(x[1], x[2], o); }; };
  const auto transposed = [](ConvOptions o, std::vector<std::int64_t> extra) {
    return [o, extra](In x) { return x[0].conv_transpose(x[1], {}, o, extra); };
  };
  const auto classes = [] { return index({0, 2, -100, 1}, {4}); };
  return {
    twice(row("matmul", {{2, 3}, {3, 2}}, [](In x) { return x[0].matmul(x[1]); })),
    row("matmul_vectors", {{3}, {3}}, [](In x) { return x[0].dot(x[1]); }),
    row("matmul_batch", {{2, 1, 2, 3}, {2, 3, 2}}, [](In x) { return x[0].matmul(x[1]); }),
    row("matmul_vector", {{2, 2, 3}, {3}}, [](In x) { return x[0].matmul(x[1]); }),
    row("linear", {{2, 3}, {4, 3}, {4}}, [](In x) { return x[0].linear(x[1], x[2]); }),
    row("conv1d", {{1, 2, 6}, {2, 2, 3}, {2}}, conv({{1}, {1}, {1}, 1})),
    twice(row("conv2d", {{1, 1, 3, 3}, {2, 1, 2, 2}, {2}}, conv({}))),
    row("conv2d_pad", {{1, 2, 3, 3}, {2, 2, 3, 3}, {2}}, conv({{1}, {1}, {1}, 1})),
    row("conv2d_stride", {{1, 2, 5, 4}, {2, 2, 2, 2}, {2}}, conv({{2, 1}, {1, 0}, {1}, 1})),
    row("conv2d_dilate", {{1, 2, 5, 4}, {2, 2, 2, 2}, {2}}, conv({{1}, {0}, {2, 1}, 1})),
    row("conv2d_groups", {{1, 4, 3, 3}, {4, 2, 2, 2}, {4}}, conv({{1}, {0}, {1}, 2})),
    row("conv3d", {{1, 1, 2, 3, 2}, {1, 1, 2, 2, 1}, {1}}, conv({})),
    row("conv_transpose", {{1, 2, 3, 2}, {2, 1, 2, 2}}, transposed({{2}, {1, 0}, {1}, 1}, {1})),
    row("conv_transpose_groups", {{1, 2, 3}, {2, 2, 2}}, transposed({{1}, {0}, {2}, 2}, {0})),
    row("max_pool", {{1, 1, 4, 4}}, [](In x) { return x[0].max_pool2d(2); }),
    row("max_pool_over", {{1, 1, 4, 5}}, [](In x) { return x[0].max_pool({3, 2}, {{1, 2}, {1, 0}, {1}}); }),
    row("avg_pool", {{1, 1, 4, 5}}, [](In x) { return x[0].avg_pool({3, 2}, {{1, 2}, {1, 0}, {1}, true}).square(); }),
    row("avg_pool_skip", {{1, 1, 4, 4}}, [](In x) { return x[0].avg_pool({2, 2}, {{1}, {1}, {1}, false, false}).square(); }),
    row("attention", {{1, 3, 2}, {1, 3, 2}, {1, 3, 2}}, [](In x) { return x[0].scaled_dot_product_attention(x[1], x[2], {}, true); }),
    row("attention_masked", {{1, 2, 2}, {1, 3, 2}, {1, 3, 2}}, [](In x) {
       const Tensor mask = Tensor({{true, false, true}, {false, false, false}});
       return x[0].scaled_dot_product_attention(x[1], x[2], mask);
     }),
    twice(row("cross_entropy", {{4, 3}}, [=](In x) { return cross_entropy(x[0], classes()); })),
    row("cross_entropy_smooth", {{4, 3}}, [=](In x) {
       LossOptions o;
       o.label_smoothing = 0.1;
       o.weight = Tensor(std::vector<double>{0.5, 1, 2}, {3});
       return cross_entropy(x[0], classes(), o);
     }),
    row("cross_entropy_soft", {{4, 3}, {4, 3}}, [](In x) { return cross_entropy(x[0], x[1].softmax()); }),
    row("bce", {{2, 3}, {2, 3}}, [](In x) { return binary_cross_entropy(x[0], x[1]); }, 0.1, 0.9),
    row("bce_logits", {{2, 3}, {2, 3}, {3}}, [](In x) { return binary_cross_entropy_with_logits(x[0], x[1].sigmoid(), Reduction::mean, x[2]); }),
    row("mse", {{2, 3}, {2, 3}}, [](In x) { return mse_loss(x[0], x[1]); }),
    row("l1", {{2, 3}, {2, 3}}, [](In x) { return l1_loss(x[0], x[1]); }),
  };
}
// clang-format on

}  // namespace mote::testing
