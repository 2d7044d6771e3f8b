// Losses, composed; Reduction says what becomes of the losses of the elements.
#include "tensor/lift.h"

namespace mote {
namespace {

Tensor finished(const Tensor& each, Reduction r) {
  if (r == Reduction::none) return each;
  return r == Reduction::mean ? each.mean() : each.sum();
}

// Classes are axis 1 of (N, C, ..), or the only axis of (C,).
int class_axis(const Tensor& x) {
  if (x.ndim() == 0) refuse<ShapeError>("the input is a scalar; give (N, C) or (C,)");
  return x.ndim() == 1 ? 0 : 1;
}

void expect_options(const Tensor& x, const LossOptions& o) {
  const std::int64_t classes = x.size(class_axis(x));
  if (o.weight.is_defined() && o.weight.shape() != Dims{classes})
    refuse<ShapeError>("the weight has shape {} for {} classes; give one number for each class",
                       o.weight, classes);
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    refuse<ValueError>("label_smoothing is {}; give one in 0..1", o.label_smoothing);
}

// x times the weights of its classes.
Tensor weighted(const Tensor& x, const LossOptions& o) {
  return o.weight.is_defined() ? x * along(o.weight, class_axis(x), x.ndim()) : x;
}

// The sum of weight * loss over the chosen classes, and of the weights.
Tensor picked_loss(const Tensor& log_p, const Tensor& target, const LossOptions& o) {
  const int axis = class_axis(log_p);
  Dims want = log_p.shape();
  want.erase(want.begin() + axis);
  if (target.shape() != want)
    refuse<ShapeError>(
        "input {} and target {}; the target has the input's shape without the "
        "classes",
        log_p, target);
  expect_integers("the target", target);
  const Tensor counts = target != o.ignore_index;
  const Tensor index = where(counts, target, 0).cast(DType::int64).unsqueeze(axis);
  const auto picked = [&](const Tensor& x) { return x.gather(axis, index).squeeze(axis); };
  Tensor weight = counts.cast(log_p.dtype());
  if (o.weight.is_defined()) weight = weight * picked(weighted(log_p.ones_like(), o));
  Tensor loss = -picked(log_p) * weight;
  if (o.label_smoothing > 0) {
    const Tensor smooth = weighted(-log_p, o).sum(axis) / static_cast<double>(log_p.size(axis));
    loss = loss * (1 - o.label_smoothing) + where(counts, smooth, 0.0) * o.label_smoothing;
  }
  if (o.reduction != Reduction::mean) return finished(loss, o.reduction);
  return loss.sum() / weight.sum();
}

}  // namespace

Tensor nll_loss(const Tensor& log_p, const Tensor& target, const LossOptions& o, Where at) {
  const Within within("nll_loss", at);
  expect_options(log_p, o);
  return picked_loss(log_p, target, o);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const LossOptions& o, Where at) {
  const Within within("cross_entropy", at);
  expect_options(logits, o);
  const int axis = class_axis(logits);
  const Tensor log_p = logits.log_softmax(axis);
  if (!is_float(target.dtype())) return picked_loss(log_p, target, o);
  if (target.shape() != logits.shape())
    refuse<ShapeError>("logits {} and probabilities {}; their shapes must be equal", logits,
                       target);
  const double smooth = o.label_smoothing;
  const Tensor p = target * (1 - smooth) + smooth / static_cast<double>(logits.size(axis));
  return finished(weighted(-(log_p * p), o).sum(axis), o.reduction);
}

// Logarithms are kept above -100, as PyTorch does.
Tensor binary_cross_entropy(const Tensor& p, const Tensor& target, Reduction r, Where at) {
  const Within within("binary_cross_entropy", at);
  const Tensor yes = maximum(p.log(), -100.0), no = maximum((1.0 - p).log(), -100.0);
  return finished(-(yes * target + no * (1.0 - target)), r);
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, Reduction r,
                                        const Tensor& pos_weight, Where at) {
  const Within within("binary_cross_entropy_with_logits", at);
  const Tensor yes = x.logsigmoid(), no = (-x).logsigmoid();
  const Tensor weighted = pos_weight.is_defined() ? yes * pos_weight : yes;
  return finished(-(weighted * target + no * (1.0 - target)), r);
}

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction r, Where at) {
  return Within("mse_loss", at)(finished((x - target).square(), r));
}
Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction r, Where at) {
  return Within("l1_loss", at)(finished((x - target).abs(), r));
}

}  // namespace mote
