#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "mote/nn.h"
#include "tensor/errors.h"

namespace mote::nn {
namespace {

std::string names_of(const StateDict& all) {
  std::vector<std::string> names;
  for (const auto& [name, t] : all) names.push_back(name);
  return names.empty() ? "no tensors" : join(names);
}

// PyTorch's default: uniform in +-1/sqrt(fan in).
Tensor parameter(Dims shape, std::int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return Tensor::uniform(std::move(shape), -bound, bound, {.requires_grad = true});
}

Tensor constant_parameter(Dims shape, double value, bool wanted = true) {
  if (!wanted) return {};
  return Tensor::full(std::move(shape), value, {.requires_grad = true});
}

void expect_positive(std::string_view what, std::initializer_list<std::int64_t> sizes) {
  for (std::int64_t n : sizes)
    if (n < 1) refuse<ValueError>("{} of {} is given; give 1 or more", what, n);
}

// Numbers of channels as a shape that broadcasts over (N, C, ..).
Tensor along_channels(const Tensor& t, const Tensor& x) {
  Dims line(static_cast<std::size_t>(x.ndim()), 1);
  line[1] = x.size(1);
  return t.reshape(line);
}

void expect_channels(const Tensor& x, std::int64_t channels) {
  if (x.ndim() < 2 || x.size(1) != channels)
    refuse<ShapeError>("the layer has {} channels, the input the shape {}; give (N, channels, ..)",
                       channels, x);
}

// The input ends in the axes that the layer normalizes.
void expect_last(const Tensor& x, const Dims& sizes) {
  const Dims have = x.shape();
  if (have.size() < sizes.size() || !std::equal(sizes.rbegin(), sizes.rend(), have.rbegin()))
    refuse<ShapeError>(
        "the input has shape {}, the layer normalizes {}; the last axes must be "
        "equal",
        x, sizes);
}

}  // namespace

void FieldVisitor::field(std::string_view name, const Tensor& t) {
  if (!t.is_defined()) return;
  const std::string full = prefix.empty() ? std::string(name) : prefix + "." + std::string(name);
  if (all) all->emplace(full, t);
  if (ordered) ordered->emplace_back(full, t);
}

void FieldVisitor::field(std::string_view name, const Module& m) {
  FieldVisitor inner{prefix.empty() ? std::string(name) : prefix + "." + std::string(name), all,
                     ordered};
  m.visit(inner);
}

std::vector<Tensor> Module::parameters() const {
  std::vector<std::pair<std::string, Tensor>> ordered;
  FieldVisitor v{"", nullptr, &ordered};
  visit(v);
  std::vector<Tensor> out;
  for (auto& [name, t] : ordered) {
    if (!t.requires_grad()) continue;
    if (t.name().empty()) t.set_name(name);
    out.push_back(t);
  }
  return out;
}

StateDict Module::state_dict() const {
  StateDict all;
  FieldVisitor v{"", &all, nullptr};
  visit(v);
  return all;
}

void Module::load_state_dict(const StateDict& given, bool strict, Where where) {
  const Within op("load_state_dict", where);
  StateDict mine = state_dict();
  for (const auto& [name, t] : given) {
    if (!mine.contains(name) && strict)
      refuse<ValueError>("there is no tensor '{}' in the module; it has {}", name, names_of(mine));
  }
  for (const auto& [name, t] : mine) {  // everything is checked before anything is written
    const auto value = given.find(name);
    if (value == given.end() && strict)
      refuse<ValueError>("'{}' is missing; given are {}", name, names_of(given));
    if (value != given.end() && value->second.shape() != t.shape())
      refuse<ShapeError>("'{}' has shape {}, the value {}; build the module with the same sizes",
                         name, t, value->second);
  }
  const NoGrad off;
  std::vector<Tensor> written;
  for (auto& [name, t] : mine) {
    const auto value = given.find(name);
    if (value == given.end()) continue;
    written.push_back(t.assign(value->second.to(t.device())));
  }
  realize(written);
}

void Module::zero_grad() {
  for (Tensor& t : parameters()) t.set_grad({});
}

Linear::Linear(std::int64_t in, std::int64_t out, bool with_bias, Where where) {
  const Within op("linear", where);
  expect_positive("a size", {in, out});
  weight = parameter({out, in}, in);
  if (with_bias) bias = parameter({out}, in);
}
Tensor Linear::forward(const Tensor& x, Where where) const { return x.linear(weight, bias, where); }

Conv2d::Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, Where where)
    : Conv2d(in, out, kernel, Options{}, where) {}
Conv2d::Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, Options o, Where where)
    : options(o) {
  const Within op("conv2d", where);
  expect_positive("a number of channels", {in, out});
  expect_positive("a kernel, stride, dilation or number of groups",
                  {kernel, o.stride, o.dilation, o.groups});
  if (in % o.groups != 0 || out % o.groups != 0)
    refuse<ValueError>("{} groups do not divide {} and {} channels; give groups that divide both",
                       o.groups, in, out);
  if (o.padding < 0) refuse<ValueError>("the padding is {}; give 0 or more", o.padding);
  const std::int64_t fan = in / o.groups * kernel * kernel;
  weight = parameter({out, in / o.groups, kernel, kernel}, fan);
  if (o.bias) bias = parameter({out}, fan);
}
Tensor Conv2d::forward(const Tensor& x, Where where) const {
  return x.conv2d(weight, bias, options.stride, options.padding, options.dilation, options.groups,
                  where);
}

BatchNorm::BatchNorm(std::int64_t channels, double e, double m, bool affine, Where where)
    : eps(e), momentum(m) {
  const Within op("batchnorm", where);
  expect_positive("a number of channels", {channels});
  weight = constant_parameter({channels}, 1, affine);
  bias = constant_parameter({channels}, 0, affine);
  running_mean = Tensor::zeros({channels}).contiguous();
  running_var = Tensor::ones({channels}).contiguous();
}

Tensor BatchNorm::forward(const Tensor& x, Where where) const {
  const Within op("batchnorm", where);
  const std::int64_t channels = running_mean.numel();
  expect_channels(x, channels);
  std::vector<int> axes{0};
  for (int i = 2; i < x.ndim(); ++i) axes.push_back(i);
  Tensor mean = along_channels(running_mean, x), var = along_channels(running_var, x);
  if (Training::is_on()) {
    mean = x.mean(axes, true);
    var = (x - mean).square().mean(axes, true);
    const NoGrad no_history;
    const double n = static_cast<double>(x.numel() / channels);
    Tensor m = running_mean, v = running_var;
    m.assign(running_mean * (1 - momentum) + mean.detach().reshape({channels}) * momentum);
    v.assign(running_var * (1 - momentum) +
             var.detach().reshape({channels}) * (momentum * n / (n > 1 ? n - 1 : 1)));
  }
  const Tensor y = (x - mean) * (var + eps).rsqrt();
  return weight.is_defined() ? y * along_channels(weight, x) + along_channels(bias, x) : y;
}

LayerNorm::LayerNorm(Dims shape, double e, bool affine, Where where) : normalized(shape), eps(e) {
  const Within op("layernorm", where);
  if (shape.empty()) refuse<ValueError>("no axis is named; give the sizes of the last axes");
  weight = constant_parameter(shape, 1, affine);
  bias = constant_parameter(shape, 0, affine);
}
Tensor LayerNorm::forward(const Tensor& x, Where where) const {
  const Within op("layernorm", where);
  expect_last(x, normalized);
  const Tensor y = x.layernorm(static_cast<int>(normalized.size()), eps);
  return weight.is_defined() ? y * weight + bias : y;
}

GroupNorm::GroupNorm(std::int64_t g, std::int64_t c, double e, bool affine, Where where)
    : groups(g), channels(c), eps(e) {
  const Within op("groupnorm", where);
  expect_positive("a number of groups or channels", {g, c});
  if (c % g != 0)
    refuse<ValueError>("{} groups do not divide {} channels; give groups that do", g, c);
  weight = constant_parameter({c}, 1, affine);
  bias = constant_parameter({c}, 0, affine);
}
Tensor GroupNorm::forward(const Tensor& x, Where where) const {
  const Within op("groupnorm", where);
  expect_channels(x, channels);
  const Tensor y = x.reshape({x.size(0), groups, -1}).layernorm(1, eps).reshape(x.shape());
  return weight.is_defined() ? y * along_channels(weight, x) + along_channels(bias, x) : y;
}

RMSNorm::RMSNorm(std::int64_t size, double e, Where where) : eps(e) {
  const Within op("rmsnorm", where);
  expect_positive("a size", {size});
  weight = constant_parameter({size}, 1);
}
Tensor RMSNorm::forward(const Tensor& x, Where where) const {
  const Within op("rmsnorm", where);
  expect_last(x, weight.shape());
  return x * (x.square().mean(-1, true) + eps).rsqrt() * weight;
}

Embedding::Embedding(std::int64_t count, std::int64_t size, std::optional<std::int64_t> padding,
                     Where where)
    : padding_idx(padding) {
  const Within op("embedding", where);
  expect_positive("a size", {count, size});
  if (padding && (*padding < -count || *padding >= count))
    refuse<IndexError>("the padding index {} is out of range; use {}..{}", *padding, -count,
                       count - 1);
  weight = Tensor::randn({count, size}, {.requires_grad = true});
}
Tensor Embedding::forward(const Tensor& index, Where where) const {
  const Within op("embedding", where);
  Tensor table = weight;
  if (padding_idx) {
    const std::int64_t n = weight.size(0), row = *padding_idx < 0 ? *padding_idx + n : *padding_idx;
    const Tensor is_padding = (Tensor::arange(n) == row).unsqueeze(1);
    table = mote::where(is_padding, weight.detach(), weight);
  }
  Dims to = index.shape();
  to.push_back(weight.size(1));
  return table.index_select(0, index.flatten()).reshape(to);
}

Dropout::Dropout(double probability, Where where) : p(probability) {
  const Within op("dropout", where);
  if (!(p >= 0 && p <= 1)) refuse<ValueError>("the probability is {}; give one in 0..1", p);
}

}  // namespace mote::nn
