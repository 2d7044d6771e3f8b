// backward, .grad, gradient(), and the scopes that say whether history is recorded.
#include "graph/gradient.h"
#include "tensor/lift.h"

namespace mote {
namespace {

thread_local bool training = false;

// The gradient of t has its shape and lies on its device.
void expect_gradient(const Tensor& g, const Tensor& t) {
  if (g.shape() != t.shape())
    refuse<ShapeError>("the gradient has shape {}, the tensor {}; their shapes must be equal", g,
                       t);
  expect_same_device(g, t);
}

}  // namespace

bool Tensor::requires_grad() const { return lazy()->requires_grad; }

Tensor& Tensor::set_requires_grad(bool on, Where at) {
  const Within within("set_requires_grad", at);
  const Lazy old = lazy();
  if (!on) {
    set_lazy(mote::detach(old));
    return *this;
  }
  if (!is_float(old->dtype))
    refuse<GradientError>("the dtype is {}; only floats have gradients", old->dtype);
  // A node of its own: others may hold the old one, without a gradient.
  Lazy leaf;
  if (old->is_realized()) {
    leaf = from_buffer(old->buffer, old->shape, old->dtype);
  } else {
    const NoGrad off;
    leaf = make_lazy(Op::contiguous, {old}, old->shape, old->dtype, old->device);
    leaf->own_gradient = std::make_shared<OwnGradient>();
  }
  leaf->requires_grad = true;
  leaf->name = old->name;
  leaf->handle = state_;
  set_lazy(leaf);
  return *this;
}

void Tensor::backward(const Tensor& seed, bool retain_graph, Where at) {
  const Within within("backward", at);
  const Lazy out = lazy();
  if (!out->requires_grad)
    refuse<GradientError>(
        "the tensor does not depend on one that requires a gradient; call "
        "set_requires_grad on a parameter, and keep the history (no NoGrad, no "
        "earlier backward)");
  if (!seed.is_defined() && numel() != 1)
    refuse<GradientError>(
        "the tensor has shape {}, not one element; reduce it first, or give the "
        "gradient of the output",
        *this);
  if (seed.is_defined()) expect_gradient(seed, *this);
  const std::vector<Lazy> found = gradient_leaves(std::span(&out, 1));
  const Lazy start = seed.is_defined() ? cast_lazy(seed.lazy(), out->dtype) : nullptr;
  const std::vector<Lazy> grads = gradient(std::span(&out, 1), std::span(&start, 1), found);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const State state = found[i]->handle.lock();
    if (!grads[i] || !state) continue;
    const Tensor g = wrap(mote::detach(grads[i]));
    const std::lock_guard lock(state->mutex);
    state->grad = state->grad.is_defined() ? state->grad + g : g;
  }
  if (!retain_graph) release_history(std::span(&out, 1));
}

Tensor Tensor::grad() const {
  if (!state_) return {};
  const std::lock_guard lock(state_->mutex);
  return state_->grad;
}

void Tensor::set_grad(const Tensor& g, Where at) {
  const Within within("set_grad", at);
  if (g.is_defined()) expect_gradient(g, *this);
  if (g.is_defined() && g.dtype() != dtype())
    refuse<DTypeError>("the gradient has dtype {}, the tensor {}; cast the gradient", g.dtype(),
                       dtype());
  lazy();
  const std::lock_guard lock(state_->mutex);
  state_->grad = g;
}

Tensor Tensor::detach(Where at) const { return Within("detach", at)(wrap(mote::detach(lazy()))); }

std::vector<Tensor> gradient(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& seeds, Where at) {
  const Within within("gradient", at);
  if (!seeds.empty() && seeds.size() != outputs.size())
    refuse<ValueError>("{} seeds for {} outputs; give one for each, or none", seeds.size(),
                       outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!is_float(outputs[i].dtype()))
      refuse<GradientError>("an output has dtype {}; only floats have gradients",
                            outputs[i].dtype());
    if (!seeds.empty() && seeds[i].is_defined()) expect_gradient(seeds[i], outputs[i]);
  }
  for (const Tensor& x : inputs) {
    if (!x.requires_grad())
      refuse<GradientError>(
          "an input does not require a gradient; call set_requires_grad on it "
          "first");
  }
  const auto grads = gradient(lazies(outputs), lazies(seeds), lazies(inputs));
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    out.push_back(grads[i] ? wrap(grads[i]) : inputs[i].zeros_like());
  return out;
}

NoGrad::NoGrad() : before_(grad_enabled()) { set_grad_enabled(false); }
NoGrad::~NoGrad() { set_grad_enabled(before_); }
Training::Training(bool on) : before_(training) { training = on; }
Training::~Training() { training = before_; }
bool Training::is_on() { return training; }

}  // namespace mote
