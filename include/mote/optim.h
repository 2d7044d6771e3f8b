// room: nn
// Optimizers. Each keeps its numbers that change (learning rate, step count) as Tensors, so that a
// captured step stays right; set_lr may be called between replays.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "mote/tensor.h"

namespace mote::optim {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Applies the gradients, and realizes parameters and state together. GradientError when no
  // parameter has a gradient.
  void step(Where = Where::here());
  void zero_grad();
  double lr() const;
  void set_lr(double, Where = Where::here());
  const std::vector<Tensor>& parameters() const { return parameters_; }

 protected:
  Optimizer(std::string_view name, std::vector<Tensor> parameters, double lr, Where);
  // The new value of parameter i, whose gradient is g; updates the state with assign. Both are
  // given in the dtype of the state: 8- and 16-bit floats are stepped in float32.
  virtual Tensor update(std::size_t i, const Tensor& parameter, const Tensor& g) = 0;
  virtual void begin_step() {}
  virtual std::vector<Tensor> state() const = 0;      // tensors to realize with the parameters
  std::vector<Tensor> zeros_like_parameters() const;  // in the dtype of the state

  std::vector<Tensor> parameters_;
  Tensor lr_;  // a scalar
};

class SGD : public Optimizer {  // PyTorch's formula
 public:
  struct Options {
    double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
    bool nesterov = false;
  };
  SGD(std::vector<Tensor> parameters, Options, Where = Where::here());
  explicit SGD(std::vector<Tensor> parameters, double lr = 1e-3, Where = Where::here());

 private:
  Tensor update(std::size_t, const Tensor&, const Tensor&) override;
  std::vector<Tensor> state() const override;
  Options options_;
  std::vector<Tensor> momentum_;
  std::vector<Tensor> started_;  // scalar per step: the first one sets
};

class RMSprop : public Optimizer {  // PyTorch's formula
 public:
  struct Options {
    double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
    bool centered = false;
  };
  RMSprop(std::vector<Tensor> parameters, Options, Where = Where::here());
  explicit RMSprop(std::vector<Tensor> parameters, double lr = 1e-2, Where = Where::here());

 private:
  Tensor update(std::size_t, const Tensor&, const Tensor&) override;
  std::vector<Tensor> state() const override;
  Options options_;
  std::vector<Tensor> square_, mean_, momentum_;
};

class Adam : public Optimizer {  // Kingma & Ba 2014, PyTorch's form
 public:
  struct Options {
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  };
  Adam(std::vector<Tensor> parameters, Options, Where = Where::here());
  explicit Adam(std::vector<Tensor> parameters, double lr = 1e-3, Where = Where::here());

 protected:
  Adam(std::string_view name, std::vector<Tensor> parameters, Options, bool decoupled, Where);

 private:
  Tensor update(std::size_t, const Tensor&, const Tensor&) override;
  void begin_step() override;
  std::vector<Tensor> state() const override;
  Options options_;
  bool decoupled_;
  std::vector<Tensor> mean_, square_;
  Tensor betas_, powers_;  // (beta1, beta2) and (beta1^t, beta2^t)
};

class AdamW : public Adam {  // Loshchilov & Hutter 2017: decoupled decay
 public:
  AdamW(std::vector<Tensor> parameters, Options, Where = Where::here());
  explicit AdamW(std::vector<Tensor> parameters, double lr = 1e-3, Where = Where::here());
};

}  // namespace mote::optim
