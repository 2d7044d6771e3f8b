#include "mote/optim.h"

#include <cmath>

#include "tensor/errors.h"

namespace mote::optim {

namespace {

void expect_rate(double lr) {
  if (!(lr >= 0 && lr < INFINITY))
    refuse<ValueError>("the learning rate is {}; give a finite number of 0 or more", lr);
}

void expect_share(std::string_view what, double v) {
  if (!(v >= 0 && v < 1)) refuse<ValueError>("{} is {}; give 0 or more and less than 1", what, v);
}

using Named = std::pair<std::string_view, double>;
void expect_not_negative(std::initializer_list<Named> options) {
  for (const auto& [name, v] : options)
    if (!(v >= 0)) refuse<ValueError>("{} is {}; give 0 or more", name, v);
}

}  // namespace

Optimizer::Optimizer(std::string_view name, std::vector<Tensor> parameters, double lr, Where where)
    : parameters_(std::move(parameters)) {
  const Within op(name, where);
  if (parameters_.empty()) refuse<ValueError>("no parameter is given; pass module.parameters()");
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].requires_grad())
      refuse<GradientError>(
          "a parameter does not require a gradient; call set_requires_grad on it "
          "first");
    for (std::size_t k = 0; k < i; ++k)
      if (parameters_[i].same(parameters_[k]))
        refuse<ValueError>("parameters {} and {} are the same tensor; give each once", k, i);
  }
  expect_rate(lr);
  // Bytes of its own, that set_lr writes over.
  lr_ = Tensor(std::vector<float>{static_cast<float>(lr)}, {}, {.device = parameters_[0].device()});
}

double Optimizer::lr() const { return lr_.item<double>(); }
void Optimizer::set_lr(double lr, Where where) {
  const Within op("set_lr", where);
  expect_rate(lr);
  lr_.assign(lr).realize();
}
void Optimizer::zero_grad() {
  for (Tensor& p : parameters_) p.set_grad({});
}

std::vector<Tensor> Optimizer::zeros_like_parameters() const {
  std::vector<Tensor> out;
  for (const Tensor& p : parameters_)
    out.push_back(
        Tensor::zeros(p.shape(), {accumulator_dtype(p.dtype()), p.device(), false}).contiguous());
  return out;
}

void Optimizer::step(Where where) {
  const Within op("step", where);
  const NoGrad off;
  std::vector<Tensor> results;
  begin_step();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor g = parameters_[i].grad();
    if (!g.is_defined()) continue;
    results.push_back(g);  // .grad stays readable after the step
    const DType wide = accumulator_dtype(parameters_[i].dtype());
    parameters_[i].assign(update(i, parameters_[i].cast(wide), g.cast(wide)));
    results.push_back(parameters_[i]);
  }
  if (results.empty())
    refuse<GradientError>("no parameter has a gradient; call backward before step");
  for (Tensor& t : state()) results.push_back(t);
  realize(results);
}

// ---- SGD

SGD::SGD(std::vector<Tensor> p, double lr, Where where)
    : SGD(std::move(p), Options{.lr = lr}, where) {}
SGD::SGD(std::vector<Tensor> p, Options o, Where where)
    : Optimizer("SGD", std::move(p), o.lr, where), options_(o) {
  const Within op("SGD", where);
  expect_not_negative({{"the momentum", o.momentum}, {"the weight decay", o.weight_decay}});
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
    refuse<ValueError>("nesterov takes a momentum and no dampening; set momentum above 0");
  if (o.momentum != 0) momentum_ = zeros_like_parameters();
  if (o.momentum != 0 && o.dampening != 0)
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      started_.push_back(Tensor::zeros({}, {.device = parameters_[i].device()}).contiguous());
}

// m = momentum m + (1 - dampening) g, the first time m = g
Tensor SGD::update(std::size_t i, const Tensor& p, const Tensor& gradient) {
  Tensor g = options_.weight_decay != 0 ? gradient + p * options_.weight_decay : gradient;
  if (options_.momentum != 0) {
    Tensor share = g;
    if (options_.dampening != 0) {
      share = g * where(started_[i] == 0.0, 1.0, 1 - options_.dampening);
      started_[i].assign(1.0);
    }
    momentum_[i].assign(momentum_[i] * options_.momentum + share);
    g = options_.nesterov ? g + momentum_[i] * options_.momentum : momentum_[i];
  }
  return p - g * lr_.cast(p.dtype());
}

std::vector<Tensor> SGD::state() const {
  std::vector<Tensor> out = momentum_;
  out.insert(out.end(), started_.begin(), started_.end());
  return out;
}

// ---- RMSprop

RMSprop::RMSprop(std::vector<Tensor> p, double lr, Where where)
    : RMSprop(std::move(p), Options{.lr = lr}, where) {}
RMSprop::RMSprop(std::vector<Tensor> p, Options o, Where where)
    : Optimizer("RMSprop", std::move(p), o.lr, where), options_(o) {
  const Within op("RMSprop", where);
  expect_share("alpha", o.alpha);
  expect_not_negative(
      {{"eps", o.eps}, {"the momentum", o.momentum}, {"the weight decay", o.weight_decay}});
  square_ = zeros_like_parameters();
  if (o.centered) mean_ = zeros_like_parameters();
  if (o.momentum != 0) momentum_ = zeros_like_parameters();
}

Tensor RMSprop::update(std::size_t i, const Tensor& p, const Tensor& gradient) {
  const Tensor g = options_.weight_decay != 0 ? gradient + p * options_.weight_decay : gradient;
  square_[i].assign(square_[i] * options_.alpha + g * g * (1 - options_.alpha));
  Tensor size = square_[i];
  if (options_.centered) {
    mean_[i].assign(mean_[i] * options_.alpha + g * (1 - options_.alpha));
    size = size - mean_[i] * mean_[i];
  }
  Tensor step = g / (size.sqrt() + options_.eps);
  if (options_.momentum != 0) {
    momentum_[i].assign(momentum_[i] * options_.momentum + step);
    step = momentum_[i];
  }
  return p - step * lr_.cast(p.dtype());
}

std::vector<Tensor> RMSprop::state() const {
  std::vector<Tensor> out = square_;
  out.insert(out.end(), mean_.begin(), mean_.end());
  out.insert(out.end(), momentum_.begin(), momentum_.end());
  return out;
}

// ---- Adam

Adam::Adam(std::vector<Tensor> p, double lr, Where where)
    : Adam(std::move(p), Options{.lr = lr}, where) {}
Adam::Adam(std::vector<Tensor> p, Options o, Where where)
    : Adam("Adam", std::move(p), o, false, where) {}
Adam::Adam(std::string_view name, std::vector<Tensor> p, Options o, bool decoupled, Where where)
    : Optimizer(name, std::move(p), o.lr, where), options_(o), decoupled_(decoupled) {
  const Within op(name, where);
  expect_share("beta1", o.beta1);
  expect_share("beta2", o.beta2);
  expect_not_negative({{"eps", o.eps}, {"the weight decay", o.weight_decay}});
  mean_ = zeros_like_parameters();
  square_ = zeros_like_parameters();
  const std::string device = parameters_[0].device();
  betas_ = Tensor(std::vector<double>{o.beta1, o.beta2}, {2},
                  {.dtype = DType::float32, .device = device});
  powers_ = Tensor::ones({2}, {.dtype = DType::float32, .device = device}).contiguous();
}

void Adam::begin_step() { powers_.assign(powers_ * betas_); }

Tensor Adam::update(std::size_t i, const Tensor& parameter, const Tensor& gradient) {
  const Tensor lr = lr_.cast(parameter.dtype());
  Tensor p = parameter, g = gradient;
  if (options_.weight_decay != 0 && decoupled_) p = p * (1.0 - lr * options_.weight_decay);
  if (options_.weight_decay != 0 && !decoupled_) g = g + p * options_.weight_decay;
  mean_[i].assign(mean_[i] * options_.beta1 + g * (1 - options_.beta1));
  square_[i].assign(square_[i] * options_.beta2 + g * g * (1 - options_.beta2));
  const Tensor left = (1.0 - powers_).cast(p.dtype());
  const Tensor mean = mean_[i] / left(0), square = square_[i] / left(1);
  return p - mean / (square.sqrt() + options_.eps) * lr;
}

std::vector<Tensor> Adam::state() const {
  std::vector<Tensor> out = mean_;
  out.insert(out.end(), square_.begin(), square_.end());
  out.push_back(powers_);
  return out;
}

AdamW::AdamW(std::vector<Tensor> p, double lr, Where where)
    : AdamW(std::move(p), Options{.lr = lr, .weight_decay = 0.01}, where) {}
AdamW::AdamW(std::vector<Tensor> p, Options o, Where where)
    : Adam("AdamW", std::move(p), o, true, where) {}

}  // namespace mote::optim
