#include <algorithm>
#include <cmath>

#include "mote/nn.h"

namespace mote::nn {
namespace {

std::string known_names(const StateDict& all) {
  std::string out;
  for (const auto& [name, t] : all) out += (out.empty() ? "" : ", ") + name;
  return out;
}

std::string shape_text(const Tensor& t) {
  std::string out = "(";
  for (std::int64_t s : t.shape()) out += (out.size() > 1 ? ", " : "") + std::to_string(s);
  return out + ")";
}

std::string at_place(Where where) { return where.line ? " at " + where.text() : ""; }

// PyTorch's default: uniform in +-1/sqrt(fan in).
Tensor parameter(Dims shape, double fan_in) {
  const double bound = fan_in > 0 ? 1 / std::sqrt(fan_in) : 0;
  return Tensor::uniform(std::move(shape), -bound, bound, {.requires_grad = true});
}

Tensor constant_parameter(Dims shape, double value, bool wanted) {
  if (!wanted) return {};
  return Tensor::full(std::move(shape), value, {.requires_grad = true});
}

void check(bool ok, const std::string& what, Where where) {
  if (!ok) throw ValueError(what + at_place(where));
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
  StateDict mine = state_dict();
  for (const auto& [name, t] : given) {
    if (!mine.contains(name) && strict)
      throw ValueError("load_state_dict: there is no tensor '" + name + "' in the module" +
                       at_place(where) + "; it has " + known_names(mine));
  }
  const NoGrad off;
  std::vector<Tensor> written;
  for (auto& [name, t] : mine) {
    const auto at = given.find(name);
    if (at == given.end()) {
      if (strict)
        throw ValueError("load_state_dict: '" + name + "' is missing" + at_place(where) +
                         "; given are " + known_names(given));
      continue;
    }
    if (at->second.shape() != t.shape()) {
      throw ShapeError("load_state_dict: '" + name + "' has shape " + shape_text(t) +
                       ", the value " + shape_text(at->second) + at_place(where) +
                       "; build the module with the same sizes");
    }
    t.assign(at->second.to(t.device()), where);
    written.push_back(t);
  }
  realize(written, where);
}

void Module::zero_grad() {
  for (Tensor& t : parameters()) t.set_grad({});
}

Linear::Linear(std::int64_t in, std::int64_t out, bool with_bias, Where where) {
  check(in > 0 && out > 0,
        "linear: sizes " + std::to_string(in) + " and " + std::to_string(out) + " must be positive",
        where);
  weight = parameter({out, in}, static_cast<double>(in));
  if (with_bias) bias = parameter({out}, static_cast<double>(in));
}
Tensor Linear::forward(const Tensor& x) const { return x.linear(weight, bias); }

Conv2d::Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, Where where)
    : Conv2d(in, out, kernel, Options{}, where) {}
Conv2d::Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, Options o, Where where)
    : options(o) {
  check(in > 0 && out > 0 && kernel > 0 && o.groups > 0,
        "conv2d: channels, kernel and groups must be positive", where);
  check(in % o.groups == 0 && out % o.groups == 0,
        "conv2d: groups must divide both numbers of channels", where);
  const auto fan = static_cast<double>(in / o.groups * kernel * kernel);
  weight = parameter({out, in / o.groups, kernel, kernel}, fan);
  if (o.bias) bias = parameter({out}, fan);
}
Tensor Conv2d::forward(const Tensor& x) const {
  return x.conv2d(weight, bias, options.stride, options.padding, options.dilation, options.groups);
}

BatchNorm::BatchNorm(std::int64_t channels, double e, double m, bool affine, Where where)
    : eps(e), momentum(m) {
  check(channels > 0, "batchnorm: the number of channels must be positive", where);
  weight = constant_parameter({channels}, 1, affine);
  bias = constant_parameter({channels}, 0, affine);
  running_mean = Tensor::zeros({channels}).contiguous();
  running_var = Tensor::ones({channels}).contiguous();
}

Tensor BatchNorm::forward(const Tensor& x) const {
  const std::int64_t channels = running_mean.numel();
  check(x.ndim() >= 2 && x.size(1) == channels,
        "batchnorm: the layer has " + std::to_string(channels) + " channels, axis 1 of the input " +
            (x.ndim() < 2 ? "does not exist" : "has " + std::to_string(x.size(1))) +
            "; give (N, channels, ..)",
        Where{});
  std::vector<int> axes{0};
  Dims line(static_cast<std::size_t>(x.ndim()), 1);
  line[1] = x.size(1);
  for (int i = 2; i < x.ndim(); ++i) axes.push_back(i);
  Tensor mean = running_mean.reshape(line), var = running_var.reshape(line);
  if (Training::is_on()) {
    mean = x.mean(axes, true);
    const Tensor off = x - mean;
    var = (off * off).mean(axes, true);
    const NoGrad no_history;
    const double n = static_cast<double>(x.numel() / x.size(1));
    Tensor m = running_mean, v = running_var;
    m.assign(running_mean * (1 - momentum) + mean.detach().reshape({x.size(1)}) * momentum);
    v.assign(running_var * (1 - momentum) +
             var.detach().reshape({x.size(1)}) * (momentum * n / (n > 1 ? n - 1 : 1)));
  }
  const Tensor y = (x - mean) * (var + eps).rsqrt();
  return weight.is_defined() ? y * weight.reshape(line) + bias.reshape(line) : y;
}

LayerNorm::LayerNorm(Dims shape, double e, bool affine, Where where) : normalized(shape), eps(e) {
  check(!shape.empty(), "layernorm: no axis is named", where);
  weight = constant_parameter(shape, 1, affine);
  bias = constant_parameter(shape, 0, affine);
}
Tensor LayerNorm::forward(const Tensor& x) const {
  const Tensor y = x.layernorm(static_cast<int>(normalized.size()), eps);
  return weight.is_defined() ? y * weight + bias : y;
}

GroupNorm::GroupNorm(std::int64_t g, std::int64_t channels, double e, bool affine, Where where)
    : groups(g), eps(e) {
  check(g > 0 && channels % g == 0, "groupnorm: the groups must divide the channels", where);
  weight = constant_parameter({channels}, 1, affine);
  bias = constant_parameter({channels}, 0, affine);
}
Tensor GroupNorm::forward(const Tensor& x) const {
  const Tensor y = x.reshape({x.size(0), groups, -1}).layernorm(1, eps).reshape(x.shape());
  Dims line(static_cast<std::size_t>(x.ndim()), 1);
  line[1] = x.size(1);
  return weight.is_defined() ? y * weight.reshape(line) + bias.reshape(line) : y;
}

RMSNorm::RMSNorm(std::int64_t size, double e, Where where) : eps(e) {
  check(size > 0, "rmsnorm: the size must be positive", where);
  weight = constant_parameter({size}, 1, true);
}
Tensor RMSNorm::forward(const Tensor& x) const {
  return x * ((x * x).mean(-1, true) + eps).rsqrt() * weight;
}

Embedding::Embedding(std::int64_t count, std::int64_t size, std::optional<std::int64_t> padding,
                     Where where)
    : padding_idx(padding) {
  check(count > 0 && size > 0, "embedding: sizes must be positive", where);
  weight = Tensor::randn({count, size}, {.requires_grad = true});
}
Tensor Embedding::forward(const Tensor& index) const {
  Tensor table = weight;
  if (padding_idx) {
    const std::int64_t n = weight.size(0), row = *padding_idx < 0 ? *padding_idx + n : *padding_idx;
    const Tensor is_padding = (Tensor::arange(n) == row).unsqueeze(1);
    table = where(is_padding, weight.detach(), weight);
  }
  Dims to = index.shape();
  to.push_back(weight.size(1));
  return table.index_select(0, index.flatten()).reshape(to);
}

}  // namespace mote::nn
