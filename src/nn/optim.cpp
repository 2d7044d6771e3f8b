#include "mote/optim.h"

namespace mote::optim {

Optimizer::Optimizer(std::vector<Tensor> parameters, double lr)
    : parameters_(std::move(parameters)) {
  if (parameters_.empty())
    throw ValueError("optimizer: no parameter is given; pass module.parameters()");
  for (const Tensor& p : parameters_)
    if (!p.requires_grad())
      throw GradientError(
          "optimizer: a parameter does not require a gradient; call set_requires_grad on it first");
  if (!(lr >= 0))
    throw ValueError("optimizer: the learning rate " + std::to_string(lr) + " is negative");
  // Bytes of its own, that set_lr writes over.
  lr_ = Tensor(std::vector<float>{static_cast<float>(lr)}, {}, {.device = parameters_[0].device()});
}

double Optimizer::lr() const { return lr_.item<double>(); }
void Optimizer::set_lr(double lr) { lr_.assign(lr).realize(); }
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
  const NoGrad off;
  std::vector<Tensor> results;
  begin_step();
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor g = parameters_[i].grad();
    if (!g.is_defined()) continue;
    results.push_back(g);  // .grad stays readable after the step
    const DType wide = accumulator_dtype(parameters_[i].dtype());
    parameters_[i].assign(update(i, parameters_[i].cast(wide), g.cast(wide)), where);
    results.push_back(parameters_[i]);
  }
  if (results.empty())
    throw GradientError("optimizer: no parameter has a gradient; call backward before step");
  for (Tensor& t : state()) results.push_back(t);
  realize(results, where);
}

// ---- SGD

SGD::SGD(std::vector<Tensor> p, double lr) : SGD(std::move(p), Options{.lr = lr}) {}
SGD::SGD(std::vector<Tensor> p, Options o) : Optimizer(std::move(p), o.lr), options_(o) {
  if (o.nesterov && (o.momentum <= 0 || o.dampening != 0))
    throw ValueError("SGD: nesterov takes a momentum and no dampening; set momentum above 0");
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

RMSprop::RMSprop(std::vector<Tensor> p, double lr) : RMSprop(std::move(p), Options{.lr = lr}) {}
RMSprop::RMSprop(std::vector<Tensor> p, Options o) : Optimizer(std::move(p), o.lr), options_(o) {
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

Adam::Adam(std::vector<Tensor> p, double lr) : Adam(std::move(p), Options{.lr = lr}) {}
Adam::Adam(std::vector<Tensor> p, Options o) : Adam(std::move(p), o, false) {}
Adam::Adam(std::vector<Tensor> p, Options o, bool decoupled)
    : Optimizer(std::move(p), o.lr), options_(o), decoupled_(decoupled) {
  for (double beta : {o.beta1, o.beta2})
    if (!(beta >= 0 && beta < 1))
      throw ValueError("Adam: beta " + std::to_string(beta) + " is not in 0..1; give less than 1");
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

AdamW::AdamW(std::vector<Tensor> p, double lr)
    : AdamW(std::move(p), Options{.lr = lr, .weight_decay = 0.01}) {}
AdamW::AdamW(std::vector<Tensor> p, Options o) : Adam(std::move(p), o, true) {}

}  // namespace mote::optim
