#include "tensor/lift.h"

namespace mote {
namespace {

Tensor finished(const Tensor& each, Reduction r, Where at) {
  if (r == Reduction::none) return each;
  return r == Reduction::mean ? each.mean({}, false, at) : each.sum({}, false, {}, at);
}

void expect_fitting(std::string_view op, const Tensor& x, const Tensor& target, Where at) {
  expect_defined(op, x, at);
  expect_defined(op, target, at);
  common_shape(op, x.lazy()->shape, target.lazy()->shape, at);
}

void expect_weight(std::string_view op, const Tensor& weight, std::int64_t classes, Where at) {
  if (!weight.is_defined() || weight.shape() == Dims{classes}) return;
  fail<ShapeError>(op,
                   cat("the weight has shape ", shape_text(weight), " for ", classes, " classes"),
                   at, "give one number for each class");
}

// Classes are axis 1 of (N, C, ..), or the only axis of (C,).
int class_axis(const Tensor& x) { return x.ndim() == 1 ? 0 : 1; }

void expect_classes(std::string_view op, const Tensor& x, const Tensor& target, Where at) {
  Dims want = x.shape();
  if (want.empty()) fail<ShapeError>(op, "the input is a scalar", at, "give (N, C) or (C,)");
  want.erase(want.begin() + class_axis(x));
  if (target.shape() != want)
    fail<ShapeError>(op, cat("input ", shape_text(x), " and target ", shape_text(target)), at,
                     "the target has the input's shape without the classes");
}

// The sum of weight * loss over the chosen classes, and of the weights.
Tensor picked_loss(const Tensor& log_p, const Tensor& target, const LossOptions& o, Where at) {
  const int axis = class_axis(log_p);
  const std::int64_t classes = log_p.size(axis);
  expect_weight("nll_loss", o.weight, classes, at);
  const Tensor counts = target != o.ignore_index;
  const Tensor safe = where(counts, target, 0, at).cast(DType::int64, at);
  const Tensor index = safe.unsqueeze(axis, at);
  Tensor weight = counts.cast(log_p.dtype(), at);
  if (o.weight.is_defined()) {
    Dims line(static_cast<std::size_t>(log_p.ndim()), 1);
    line[static_cast<std::size_t>(axis)] = classes;
    weight = weight * o.weight.reshape(line, at)
                          .expand(log_p.shape(), at)
                          .gather(axis, index, at)
                          .squeeze(axis, at);
  }
  Tensor loss = -log_p.gather(axis, index, at).squeeze(axis, at) * weight;
  if (o.label_smoothing > 0) {
    Tensor all = -log_p;
    if (o.weight.is_defined()) {
      Dims line(static_cast<std::size_t>(log_p.ndim()), 1);
      line[static_cast<std::size_t>(axis)] = classes;
      all = all * o.weight.reshape(line, at);
    }
    const Tensor smooth = all.sum(axis, false, {}, at) / static_cast<double>(classes);
    loss = loss * (1 - o.label_smoothing) + where(counts, smooth, 0.0, at) * o.label_smoothing;
  }
  if (o.reduction == Reduction::none) return loss;
  if (o.reduction == Reduction::sum) return loss.sum({}, false, {}, at);
  return loss.sum({}, false, {}, at) / weight.sum({}, false, {}, at);
}

}  // namespace

Tensor nll_loss(const Tensor& log_p, const Tensor& target, const LossOptions& o, Where at) {
  expect_classes("nll_loss", log_p, target, at);
  return picked_loss(log_p, target, o, at);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target, const LossOptions& o, Where at) {
  const OuterPlace outer(at);
  expect_defined("cross_entropy", logits, at);
  expect_defined("cross_entropy", target, at);
  if (logits.ndim() == 0)
    fail<ShapeError>("cross_entropy", "the input is a scalar", at, "give (N, C) or (C,)");
  const int axis = class_axis(logits);
  expect_weight("cross_entropy", o.weight, logits.size(axis), at);
  const Tensor log_p = logits.log_softmax(axis, at);
  if (!is_float(target.dtype())) {
    expect_classes("cross_entropy", logits, target, at);
    return picked_loss(log_p, target, o, at);
  }
  if (target.shape() != logits.shape())
    fail<ShapeError>("cross_entropy",
                     cat("logits ", shape_text(logits), " and probabilities ", shape_text(target)),
                     at, "their shapes must be equal");
  const double smooth = o.label_smoothing;
  const Tensor p = target * (1 - smooth) + smooth / static_cast<double>(logits.size(axis));
  Tensor each = -(log_p * p);
  if (o.weight.is_defined()) {
    Dims line(static_cast<std::size_t>(logits.ndim()), 1);
    line[static_cast<std::size_t>(axis)] = logits.size(axis);
    each = each * o.weight.reshape(line, at);
  }
  return finished(each.sum(axis, false, {}, at), o.reduction, at);
}

Tensor binary_cross_entropy(const Tensor& p, const Tensor& target, Reduction r, Where at) {
  const OuterPlace outer(at);
  expect_fitting("binary_cross_entropy", p, target, at);
  // Logarithms are kept above -100, as PyTorch does.
  const Tensor yes = maximum(p.log(at), -100.0), no = maximum((1.0 - p).log(at), -100.0);
  return finished(-(target * yes + (1.0 - target) * no), r, at);
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, Reduction r,
                                        const Tensor& pos_weight, Where at) {
  const OuterPlace outer(at);
  expect_fitting("binary_cross_entropy_with_logits", x, target, at);
  const Tensor yes = x.logsigmoid(at), no = (-x).logsigmoid(at);
  const Tensor weighted = pos_weight.is_defined() ? yes * pos_weight : yes;
  return finished(-(target * weighted + (1.0 - target) * no), r, at);
}

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction r, Where at) {
  const OuterPlace outer(at);
  expect_fitting("mse_loss", x, target, at);
  return finished((x - target).square(at), r, at);
}
Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction r, Where at) {
  const OuterPlace outer(at);
  expect_fitting("l1_loss", x, target, at);
  return finished((x - target).abs(at), r, at);
}

}  // namespace mote
