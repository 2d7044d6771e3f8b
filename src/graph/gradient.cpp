// The gradient rules, one for each primitive, and the walk that applies them. A rule gets the
// gradient g of its node n and gives one for each source; everything is built of lazy ops again.
#include "graph/gradient.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"

namespace mote {
namespace {

Lazy like(const Lazy& x, double v) {
  return constant_lazy(Scalar(x->dtype, v), x->shape, *x->device);
}
Lazy neg(const Lazy& a) { return elementwise(Op::neg, {a}); }
Lazy add(const Lazy& a, const Lazy& b) { return elementwise(Op::add, {a, b}); }
Lazy sub(const Lazy& a, const Lazy& b) { return add(a, neg(b)); }
Lazy mul(const Lazy& a, const Lazy& b) { return elementwise(Op::mul, {a, b}); }
Lazy div(const Lazy& a, const Lazy& b) { return elementwise(Op::div, {a, b}); }
Lazy choose(const Lazy& c, const Lazy& a, const Lazy& b) {
  return elementwise(Op::where, {c, a, b});
}
Lazy both(const Lazy& a, const Lazy& b) { return elementwise(Op::and_, {a, b}); }
Lazy nothing(const Lazy& x) { return like(x, 0); }

bool is_zero(const Lazy& x) {
  const Lazy& n = x->is_view() ? x->base : x;
  return n->op == Op::constant && std::get<Scalar>(n->arg).as_double() == 0;
}

// x under the movement of g.
Lazy moved_as(const Lazy& g, const Lazy& x) {
  switch (g->op) {
    case Op::reshape: return reshape(x, g->shape);
    case Op::permute: return permute(x, std::get<Axes>(g->arg));
    case Op::expand: return expand(x, g->shape);
    case Op::shrink: return shrink(x, std::get<Spans>(g->arg));
    case Op::pad: return pad(x, std::get<Padding>(g->arg));
    case Op::flip: return flip(x, std::get<Axes>(g->arg));
    default: return windows(x, std::get<Windows>(g->arg));
  }
}

// g as where(taken, inside, 0): itself, or a view, a cast or the negation of one. Outside of what
// is taken a view is 0 as well.
struct Branch {
  Lazy taken, inside;  // null where g is none
};
Branch branch_of(const Lazy& g, bool through_expand) {
  if (g->op == Op::where && is_zero(g->src[2])) return {g->src[0], g->src[1]};
  if (g->op == Op::where && is_zero(g->src[1]))
    return {elementwise(Op::not_, {g->src[0]}), g->src[2]};
  if (g->src.empty() || (g->op == Op::expand && !through_expand)) return {};
  const bool cast = g->op == Op::cast && is_float(g->src[0]->dtype);
  if (!is_movement(g->op) && g->op != Op::neg && !cast) return {};
  const Branch from = branch_of(g->src[0], through_expand);
  if (!from.taken) return {};
  if (g->op == Op::neg) return {from.taken, neg(from.inside)};
  if (cast) return {from.taken, cast_lazy(from.inside, g->dtype)};
  return {moved_as(g, from.taken), moved_as(g, from.inside)};
}

using Gradients = std::vector<Lazy>;
using ElementRule = std::function<Gradients(const Lazy& g)>;

// The branch not taken adds exactly 0, also where the rule gives NaN or infinity there.
Gradients where_taken(const Lazy& g, bool through_expand, const ElementRule& rule) {
  const Branch branch = branch_of(g, through_expand);
  if (!branch.taken) return rule(g);
  Gradients out = where_taken(branch.inside, through_expand, rule);
  for (Lazy& part : out)
    if (part) part = choose(branch.taken, part, nothing(part));
  return out;
}

Lazy scaled(const Lazy& g, const Lazy& d) {
  return where_taken(g, true, [&](const Lazy& h) { return Gradients{mul(h, d)}; })[0];
}

// x's elements summed where an axis was expanded from 1.
Lazy sum_to(const Lazy& g, const Shape& shape) {
  Axes axes;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (!(shape[i] == g->shape[i])) axes.push_back(static_cast<int>(i));
  return reduce_lazy(Op::add, g, axes);
}

Lazy broadcast_back(const Lazy& reduced, const Shape& shape) { return expand(reduced, shape); }

Gradients of_elementwise(const Lazy& n, const Lazy& g) {
  const auto& s = n->src;
  switch (n->op) {
    case Op::neg: return {neg(g)};
    case Op::sqrt: return {div(g, mul(n, like(n, 2)))};
    case Op::exp: return {mul(g, n)};
    case Op::log: return {div(g, s[0])};
    case Op::sin: return {mul(g, elementwise(Op::cos, {s[0]}))};
    case Op::cos: return {neg(mul(g, elementwise(Op::sin, {s[0]})))};
    case Op::tanh: return {mul(g, sub(like(n, 1), mul(n, n)))};
    case Op::erf: {
      const Lazy e = elementwise(Op::exp, {neg(mul(s[0], s[0]))});
      return {mul(g, mul(e, like(n, 1.1283791670955126)))};  // 2 / sqrt(pi)
    }
    case Op::trunc: return {nothing(n)};
    case Op::cast: return {is_float(s[0]->dtype) ? cast_lazy(g, s[0]->dtype) : nullptr};
    case Op::add: return {g, g};
    case Op::mul: return {mul(g, s[1]), mul(g, s[0])};
    case Op::div: return {div(g, s[1]), neg(div(mul(g, n), s[1]))};
    case Op::max:
    case Op::min: {  // equal values share
      const Lazy equal = elementwise(Op::eq, {s[0], s[1]});
      const Lazy first =
          n->op == Op::max ? elementwise(Op::lt, {s[1], s[0]}) : elementwise(Op::lt, {s[0], s[1]});
      const Lazy share = choose(equal, mul(g, like(g, 0.5)), g);
      const Lazy nan = elementwise(Op::not_, {elementwise(Op::eq, {s[0], s[0]})});
      const Lazy mine = elementwise(Op::or_, {first, nan});
      return {choose(elementwise(Op::or_, {mine, equal}), share, nothing(g)),
              choose(mine, nothing(g), share)};
    }
    case Op::where: return {nullptr, choose(s[0], g, nothing(g)), choose(s[0], nothing(g), g)};
    default: return Gradients(s.size());
  }
}

// The product of all others along the axes, right with zeros: by counting them.
Lazy product_of_others(const Lazy& n, const Lazy& x) {
  const Axes axes = std::get<Axes>(n->arg);
  const Lazy zero = elementwise(Op::eq, {x, nothing(x)});
  const Lazy without = choose(zero, like(x, 1), x);
  const Lazy rest = reduce_lazy(Op::mul, without, axes);  // of the nonzero ones
  const Lazy zeros = reduce_lazy(Op::add, choose(zero, like(x, 1), nothing(x)), axes);
  const Lazy all = broadcast_back(rest, x->shape), count = broadcast_back(zeros, x->shape);
  const Lazy none = elementwise(Op::eq, {count, nothing(x)}),
             one = elementwise(Op::eq, {count, like(x, 1)});
  return choose(none, div(all, without), choose(both(one, zero), all, nothing(x)));
}

Gradients of_reduce(const Lazy& n, const Lazy& g) {
  const Lazy& x = n->src[0];
  const Lazy wide = broadcast_back(g, x->shape);
  if (n->reduce_op == Op::add) return {wide};
  if (n->reduce_op == Op::mul) return {scaled(wide, product_of_others(n, x))};
  if (n->reduce_op != Op::max && n->reduce_op != Op::min) return {nullptr};
  const Lazy best = elementwise(Op::eq, {x, broadcast_back(n, x->shape)});
  const Lazy count =
      reduce_lazy(Op::add, choose(best, like(x, 1), nothing(x)), std::get<Axes>(n->arg));
  return {choose(best, div(wide, broadcast_back(count, x->shape)), nothing(x))};
}

// The sum of what lies at or after each place along the axis.
Lazy sum_from(const Lazy& g, int axis) {
  return flip(scan_lazy(Op::add, flip(g, {axis}), axis), {axis});
}

Gradients of_scan(const Lazy& n, const Lazy& g) {
  const Lazy& x = n->src[0];
  const int axis = std::get<Axes>(n->arg)[0];
  if (n->reduce_op == Op::add) return {sum_from(g, axis)};
  if (n->reduce_op == Op::mul) {
    // Before the first zero: sum over later outputs of g*out, over x. At it: the products without
    // it, which stop at the second zero. After it: nothing.
    const Lazy zero = elementwise(Op::eq, {x, nothing(x)});
    const Lazy zeros = scan_lazy(Op::add, choose(zero, like(x, 1), nothing(x)), axis);
    const Lazy none = elementwise(Op::eq, {zeros, nothing(x)}),
               one = elementwise(Op::eq, {zeros, like(x, 1)});
    const Lazy safe = choose(zero, like(x, 1), x);
    const Lazy without = scan_lazy(Op::mul, safe, axis);
    const Lazy before =
        div(sum_from(choose(none, elementwise(Op::mul, {g, n}), nothing(g)), axis), safe);
    const Lazy at = sum_from(choose(one, elementwise(Op::mul, {g, without}), nothing(g)), axis);
    return {choose(none, before, choose(both(one, zero), at, nothing(g)))};
  }
  // Running max or min: an output's gradient goes to the last place that set it, which is found by
  // a running max over the places of new bests.
  const Int size = x->shape[static_cast<std::size_t>(axis)];
  Shape line(x->shape.size(), 1);
  line[static_cast<std::size_t>(axis)] = size;
  const Lazy place = broadcast_to(reshape(iota(size, DType::int64, *x->device), line), x->shape);
  const Lazy best = elementwise(Op::eq, {x, n});
  const Lazy none = constant_lazy(Scalar(DType::int64, 0), x->shape, *x->device);
  const Lazy setter = scan_lazy(Op::max, choose(best, place, none), axis);
  return {scatter(nothing(x), setter, g, axis, Op::add)};
}

// The adjoint of windows, one axis at a time: the windows are spread apart (step, dilation) and
// summed where they overlap, by scattering each element to the place it was read from.
Gradients of_windows(const Lazy& n, const Lazy& g) {
  const Lazy& x = n->src[0];
  const auto& sizes = std::get<Windows>(n->arg);
  const std::size_t rank = x->shape.size(), first = rank - sizes.size();
  Lazy out = g;  // (.., a', b', wa, wb): the last window axis is folded in first
  for (std::size_t k = sizes.size(); k-- > 0;) {
    const std::size_t axis = first + k;
    const Window& w = sizes[k];
    const std::size_t last = out->shape.size() - 1;
    const Int count = out->shape[axis], full = x->shape[axis];
    // Sum over the window's places: each a slice, spread by step, padded to its place.
    Lazy total;
    for (std::int64_t j = 0; j < w.size.value(); ++j) {
      Spans spans;
      for (const Int& s : out->shape) spans.push_back({0, s});
      spans[last] = {j, j + 1};
      Shape shape(out->shape.begin(), out->shape.end() - 1);
      Lazy part = reshape(shrink(out, spans), shape);
      if (!w.step.is(1)) {  // (a') -> (a', step) -> (a' * step)
        Shape apart = shape;
        apart.insert(apart.begin() + static_cast<std::ptrdiff_t>(axis) + 1, 1);
        Padding padding(apart.size(), {0, 0});
        padding[axis + 1] = {0, w.step - 1};
        part = pad(reshape(part, apart), padding);
        shape[axis] = count * w.step;
        part = reshape(part, shape);
        Spans trimmed;
        for (const Int& s : shape) trimmed.push_back({0, s});
        trimmed[axis].end = (count - 1) * w.step + 1;
        part = shrink(part, trimmed);
      }
      Padding padding(part->shape.size(), {0, 0});
      const Int before = w.dilation * j;
      padding[axis] = {before, full - before - part->shape[axis]};
      part = pad(part, padding);
      total = total ? add(total, part) : part;
    }
    out = total;
  }
  return {out};
}

Gradients of_movement(const Lazy& n, const Lazy& g) {
  const Lazy& x = n->src[0];
  switch (n->op) {
    case Op::reshape: return {reshape(g, x->shape)};
    case Op::expand: return {sum_to(g, x->shape)};
    case Op::flip: return {flip(g, std::get<Axes>(n->arg))};
    case Op::permute: {
      const Axes& axes = std::get<Axes>(n->arg);
      Axes back(axes.size());
      for (std::size_t i = 0; i < axes.size(); ++i)
        back[static_cast<std::size_t>(axes[i])] = static_cast<int>(i);
      return {permute(g, back)};
    }
    case Op::shrink: {
      Padding padding;
      const auto& spans = std::get<Spans>(n->arg);
      for (std::size_t i = 0; i < spans.size(); ++i)
        padding.emplace_back(spans[i].begin, x->shape[i] - spans[i].end);
      return {pad(g, padding)};
    }
    case Op::pad: {
      Spans spans;
      const auto& padding = std::get<Padding>(n->arg);
      for (std::size_t i = 0; i < padding.size(); ++i)
        spans.push_back({padding[i].first, padding[i].first + x->shape[i]});
      return {shrink(g, spans)};
    }
    default: return of_windows(n, g);
  }
}

Gradients of_graph(const Lazy& n, const Lazy& g) {
  const auto& s = n->src;
  switch (n->op) {
    case Op::contiguous: return {g};
    case Op::copy: return {copy_to(g, *s[0]->device)};
    case Op::assign: {
      const Region& region = std::get<Region>(n->arg);
      if (region.empty()) return {nothing(g), g};
      Shape part;
      for (const Step& step : region) part.push_back(step.count);
      return {assign(g, constant_lazy(Scalar(g->dtype, 0), part, *g->device), region),
              taken(g, region)};
    }
    case Op::scatter: {
      const int axis = std::get<Axes>(n->arg)[0];
      // out-of-range places read 0, as gather does
      const auto read = [&](const Lazy& from) {
        const std::size_t rank = from->shape.size();
        Shape wide = s[1]->shape;
        wide.insert(wide.begin() + axis + 1, from->shape[static_cast<std::size_t>(axis)]);
        Shape line(rank + 1, 1);
        line[static_cast<std::size_t>(axis) + 1] = from->shape[static_cast<std::size_t>(axis)];
        const Lazy place = broadcast_to(
            reshape(iota(from->shape[static_cast<std::size_t>(axis)], s[1]->dtype, *from->device),
                    line),
            wide);
        Shape index_shape = s[1]->shape, from_shape = from->shape;
        index_shape.insert(index_shape.begin() + axis + 1, 1);
        from_shape.insert(from_shape.begin() + axis, 1);
        const Lazy at = broadcast_to(reshape(s[1], index_shape), wide);
        const Lazy rows = broadcast_to(reshape(from, from_shape), wide);
        const Lazy zero = constant_lazy(Scalar(from->dtype, 0), wide, *from->device);
        return reshape(
            reduce_lazy(Op::add, choose(elementwise(Op::eq, {place, at}), rows, zero), {axis + 1}),
            s[1]->shape);
      };
      if (n->reduce_op == Op::add) return {g, nullptr, read(g)};
      if (n->reduce_op == Op::store) {
        const Lazy hit =
            scatter(nothing(g), s[1], constant_lazy(Scalar(g->dtype, 1), s[1]->shape, *g->device),
                    axis, Op::store);
        const Lazy kept = choose(elementwise(Op::eq, {hit, nothing(hit)}), g, nothing(g));
        // Only the last write to a place counts: its number is scattered, and read back.
        const std::int64_t total = s[1]->elements();
        const Lazy number = reshape(iota(total, DType::int64, *g->device), s[1]->shape);
        const Lazy last = scatter(constant_lazy(Scalar(DType::int64, -1), g->shape, *g->device),
                                  s[1], number, axis, Op::store);
        const Lazy mine = elementwise(Op::eq, {read(last), number});
        return {kept, nullptr,
                choose(mine, read(g), constant_lazy(Scalar(g->dtype, 0), s[1]->shape, *g->device))};
      }
      if (n->reduce_op == Op::max ||
          n->reduce_op == Op::min) {  // shared equally among the equal ones
        const Lazy from_target = elementwise(Op::eq, {s[0], n});
        const Lazy from_value = elementwise(Op::eq, {s[2], read(n)});
        const Lazy ones = choose(from_value, like(s[2], 1), nothing(s[2]));
        const Lazy count =
            scatter(choose(from_target, like(g, 1), nothing(g)), s[1], ones, axis, Op::add);
        const Lazy share =
            div(g, choose(elementwise(Op::eq, {count, nothing(count)}), like(count, 1), count));
        return {choose(from_target, share, nothing(g)), nullptr,
                choose(from_value, read(share), nothing(s[2]))};
      }
      throw GradientError(cat("scatter: a product has no gradient; made at ", n->made.text(),
                              "; use add, max or min"));
    }
    default: return Gradients(s.size());
  }
}

Gradients gradients_of(const Lazy& n, const Lazy& g) {
  if (n->own_gradient) return n->own_gradient->rule(g, n);
  if (is_elementwise(n->op)) {
    // A product under an expand is a contraction, whose inner loop would hold the choice.
    return where_taken(g, n->op != Op::mul, [&](const Lazy& h) { return of_elementwise(n, h); });
  }
  if (is_movement(n->op)) return of_movement(n, g);
  if (n->op == Op::reduce) return of_reduce(n, g);
  if (n->op == Op::scan) return of_scan(n, g);
  return of_graph(n, g);
}

const std::vector<Lazy>& sources_of(const Lazy& n) {
  return n->own_gradient ? n->own_gradient->inputs : n->src;
}

// Nodes below the outputs that a gradient flows through, sources first; realized ones too.
std::vector<Lazy> differentiable(std::span<const Lazy> outputs) {
  std::vector<Lazy> order;
  std::unordered_set<const LazyBuffer*> seen;
  std::vector<std::pair<Lazy, std::size_t>> stack;
  for (const Lazy& root : outputs) {
    if (!root->requires_grad || !seen.insert(root.get()).second) continue;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      const auto& sources = sources_of(n);
      if (next == sources.size()) {
        order.push_back(std::move(n));
        stack.pop_back();
        continue;
      }
      const Lazy s = sources[next++];
      if (s->released)
        throw GradientError(cat("backward: the history of a tensor of shape ", to_text(s->shape),
                                " was let go by an earlier backward at ", current_place().text(),
                                "; give that one retain_graph = true, or detach the tensor"));
      if (s->requires_grad && seen.insert(s.get()).second) stack.emplace_back(s, 0);
    }
  }
  return order;
}

// A value that a rule needs and that was overwritten in place since throws. What was computed from
// it before (a node below the outputs) may be needed: it keeps its value.
void refuse_overwritten(const std::vector<Lazy>& results, std::span<const Lazy> outputs) {
  std::unordered_set<const LazyBuffer*> before, seen;
  for (const Lazy& n : topological(outputs)) before.insert(n.get());
  std::vector<Lazy> left;
  const auto visit = [&](const Lazy& n) {
    if (n && seen.insert(n.get()).second) left.push_back(n);
  };
  for (const Lazy& r : results) visit(r);
  while (!left.empty()) {
    const Lazy n = left.back();
    left.pop_back();
    if (n->overwritten.line != 0) {
      throw GradientError(cat(
          "backward: it needs the value of ", n->name.empty() ? "a tensor" : "'" + n->name + "'",
          " of shape ", to_text(n->shape), " that was overwritten in place at ",
          n->overwritten.text(), "; backward was called at ", current_place().text(),
          "; call backward before writing, or write to a copy"));
    }
    if (before.contains(n.get()) && !n->is_view()) continue;
    for (const Lazy& s : n->src) visit(s);
  }
}

}  // namespace

std::vector<Lazy> gradient(std::span<const Lazy> outputs, std::span<const Lazy> seeds,
                           std::span<const Lazy> inputs) {
  std::unordered_map<const LazyBuffer*, Lazy> of;
  const auto accumulate = [&](const Lazy& n, const Lazy& g) {
    Lazy& sum = of[n.get()];
    sum = sum ? add(sum, g) : g;
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!is_float(outputs[i]->dtype))
      throw GradientError(cat("gradient: output ", i, " has dtype ",
                              std::string(name_of(outputs[i]->dtype)),
                              "; only floats have gradients"));
    accumulate(outputs[i], i < seeds.size() && seeds[i] ? seeds[i] : like(outputs[i], 1));
  }
  std::unordered_set<const LazyBuffer*> wanted;
  for (const Lazy& x : inputs) wanted.insert(x.get());
  const std::vector<Lazy> order = differentiable(outputs);
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const auto g = of.find(at->get());
    if (g == of.end()) continue;
    const auto& sources = sources_of(*at);
    if (sources.empty()) continue;
    const Lazy mine = g->second;
    if (!wanted.contains(at->get())) of.erase(g);
    const Gradients parts = gradients_of(*at, mine);
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (parts[i] && sources[i]->requires_grad) accumulate(sources[i], parts[i]);
  }
  std::vector<Lazy> out;
  for (const Lazy& x : inputs) out.push_back(of.contains(x.get()) ? of[x.get()] : nullptr);
  refuse_overwritten(out, outputs);
  return out;
}

std::vector<Lazy> where_taken(const Lazy& g,
                              const std::function<std::vector<Lazy>(const Lazy&)>& rule) {
  return where_taken(g, true, rule);
}

std::vector<Lazy> gradient_leaves(std::span<const Lazy> outputs) {
  std::vector<Lazy> leaves;
  for (const Lazy& n : differentiable(outputs)) {
    const auto& sources = sources_of(n);
    if (std::ranges::none_of(sources, [](const Lazy& s) { return s->requires_grad; }))
      leaves.push_back(n);
  }
  return leaves;
}

void release_history(std::span<const Lazy> outputs) {
  const std::lock_guard lock(graph_lock());
  std::vector<Lazy> interior;
  for (const Lazy& n : differentiable(outputs)) {
    const auto& sources = sources_of(n);
    if (std::ranges::any_of(sources, [](const Lazy& s) { return s->requires_grad; }))
      interior.push_back(n);
  }
  for (const Lazy& n : interior) {
    n->requires_grad = false;
    n->released = true;
    n->own_gradient.reset();
    if (n->is_realized()) n->realized_as(n->buffer);
  }
}

}  // namespace mote
