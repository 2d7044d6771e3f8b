#include "shape/view.h"

#include <algorithm>

#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

bool is_zero(const Int& v) { return v.is(0); }

std::vector<Int> row_major(const Shape& shape) {
  std::vector<Int> strides(shape.size(), 0);
  Int step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step = step * shape[i];
  }
  return strides;
}

bool covers(const Span& span, const Int& size) { return span.begin.is(0) && span.end == size; }

// One form for each meaning: stride 0 on axes of size 1, no mask that covers all, one form of a
// view with no element and of one with no real element.
View canonical(View v) {
  const auto is_nothing = [](const Span& s) { return !proves_lt(s.begin, s.end).value_or(true); };
  const std::vector<Int> zeros(v.shape.size(), 0);
  if (std::ranges::any_of(v.shape, is_zero)) return {v.shape, zeros, 0, {}};
  if (v.mask && std::ranges::any_of(*v.mask, is_nothing))
    return {v.shape, zeros, 0, std::vector<Span>(v.shape.size(), {0, 0})};
  if (v.mask && std::ranges::equal(*v.mask, v.shape, covers)) v.mask.reset();
  for (std::size_t i = 0; i < v.shape.size(); ++i) {
    if (v.shape[i].is(1)) {
      v.strides[i] = 0;
    } else if (v.mask && ((*v.mask)[i].end - (*v.mask)[i].begin).is(1)) {  // one real place only
      v.offset = v.offset + v.strides[i] * (*v.mask)[i].begin;
      v.strides[i] = 0;
    }
  }
  return v;
}

std::vector<Span> full_mask(const Shape& shape) {
  std::vector<Span> mask;
  for (const Int& s : shape) mask.push_back({0, s});
  return mask;
}

std::vector<Span> mask_of(const View& v) { return v.mask ? *v.mask : full_mask(v.shape); }

// ---- merging two views, by the algebra of indices

// Stands for axis i of a view in templates, bounded by the real part of the axis.
Expr axis_variable(std::size_t i, const Int& lo, const Int& hi) {
  return variable(cat("~axis", i), lo.lo(), std::max(lo.lo(), hi.hi()));
}

std::vector<Expr> axis_variables(const View& v) {
  std::vector<Expr> axes;
  const auto mask = mask_of(v);
  for (std::size_t i = 0; i < v.shape.size(); ++i)
    axes.push_back(axis_variable(i, mask[i].begin, mask[i].end - 1));
  return axes;
}

// The coefficient of each axis; nullopt when the index is no sum of multiples of single axes.
std::optional<std::vector<Int>> affine(const Int& index, const std::vector<Expr>& axes,
                                       Int& offset) {
  std::vector<Int> factors(axes.size(), 0);
  offset = 0;
  if (index.is_constant()) {
    offset = index;
    return factors;
  }
  const Expr e = index.expr();
  std::vector<Expr> terms(e->op == Op::add ? std::vector<Expr>(e->src.begin(), e->src.end())
                                           : std::vector<Expr>{e});
  for (const Expr& t : terms) {
    if (t->op == Op::constant) {
      offset = offset + t->arg;
      continue;
    }
    const bool scaled = t->op == Op::mul;
    const auto at = std::ranges::find(axes, scaled ? t->src[0] : t);
    if (at == axes.end()) {
      for (const Expr& n : topological(t))
        if (std::ranges::find(axes, n) != axes.end()) return {};
      offset = offset + Int(t);  // of user Variables only
      continue;
    }
    if (scaled && !is_constant(t->src[1])) return {};
    factors[static_cast<std::size_t>(at - axes.begin())] = scaled ? Int(t->src[1]) : Int(1);
  }
  return factors;
}

// x < c or not (x < c) on one axis narrows its span; anything else is no box.
bool narrow(std::vector<Span>& mask, const std::vector<Expr>& axes, const Expr& condition) {
  const bool negated = condition->op == Op::not_;
  const Expr c = negated ? condition->src[0] : condition;
  if (c->op != Op::lt || !is_constant(c->src[1])) return false;
  const auto at = std::ranges::find(axes, c->src[0]);
  if (at == axes.end()) return false;
  Span& span = mask[static_cast<std::size_t>(at - axes.begin())];
  if (negated) span.begin = max(span.begin, Int(c->src[1]));
  else span.end = min(span.end, Int(c->src[1]));
  return true;
}

// The one view that `above` over `below` is, where there is one.
std::optional<View> merged(const View& below, const View& above) {
  if (below.is_contiguous()) return above;
  if (std::ranges::any_of(above.shape, is_zero)) return canonical(above);
  const std::vector<Expr> axes = axis_variables(above);
  Int flat = above.offset;
  for (std::size_t i = 0; i < axes.size(); ++i) flat = flat + above.strides[i] * Int(axes[i]);
  const auto coordinates = unflatten_index(flat, below.shape);
  Int index = below.offset;
  for (std::size_t i = 0; i < coordinates.size(); ++i)
    index = index + below.strides[i] * coordinates[i];
  View out{above.shape, {}, 0, above.mask};
  const auto strides = affine(index, axes, out.offset);
  if (!strides) return {};
  out.strides = *strides;
  if (below.mask) {
    std::vector<Span> mask = mask_of(above);
    for (std::size_t i = 0; i < coordinates.size(); ++i) {
      const Span& span = (*below.mask)[i];
      if (covers(span, below.shape[i])) continue;
      for (const Expr& side :
           {at_least(coordinates[i], span.begin), less(coordinates[i], span.end)}) {
        if (side == never()) {
          mask.assign(mask.size(), {0, 0});
          if (mask.empty()) return {};  // a scalar that is not real: stays a stack
        } else if (side != always() && !narrow(mask, axes, side)) {
          return {};
        }
      }
    }
    out.mask = mask;
  }
  return canonical(std::move(out));
}

}  // namespace

// ---- View

View View::contiguous(Shape shape) {
  View v{std::move(shape), {}, 0, {}};
  v.strides = row_major(v.shape);
  return canonical(std::move(v));
}

bool View::is_contiguous() const {
  return !mask && offset.is(0) && strides == contiguous(shape).strides;
}

Place View::at(std::span<const Int> indices) const {
  Int index = offset;
  Expr valid = always();
  for (std::size_t i = 0; i < shape.size(); ++i) {
    index = index + strides[i] * indices[i];
    if (!mask || covers((*mask)[i], shape[i])) continue;
    valid = all_of(
        valid, all_of(at_least(indices[i], (*mask)[i].begin), less(indices[i], (*mask)[i].end)));
  }
  return {index.expr(), valid};
}

std::string View::text() const {
  std::string out =
      cat("View(", to_text(shape), " strides ", to_text(strides), " offset ", offset.text());
  if (mask) {
    out += " mask";
    for (const Span& s : *mask) out += cat(" ", s.begin.text(), "..", s.end.text());
  }
  return out + ")";
}

// ---- ShapeTracker

namespace {

// The stack with its last views merged as far as one View can say it.
std::vector<View> settled(std::vector<View> views) {
  while (views.size() > 1) {
    auto one = merged(views[views.size() - 2], views.back());
    if (!one) break;
    views.pop_back();
    views.back() = std::move(*one);
  }
  return views;
}

ShapeTracker with_last(std::span<const View> views, View last) {
  std::vector<View> all(views.begin(), views.end());
  all.back() = canonical(std::move(last));
  return ShapeTracker(settled(std::move(all)));
}

}  // namespace

bool ShapeTracker::is_contiguous() const { return views_.size() == 1 && views_[0].is_contiguous(); }

Int ShapeTracker::base_size() const {
  const View& v = views_.front();
  Int last = v.offset;
  const auto mask = mask_of(v);
  for (std::size_t i = 0; i < v.shape.size(); ++i) {
    const bool backward = v.strides[i].hi() < 0;
    last = last + v.strides[i] * (backward ? mask[i].begin : mask[i].end - 1);
  }
  return last + 1;
}

ShapeTracker ShapeTracker::reshape(Shape to) const {
  if (to == shape()) return *this;
  std::vector<View> all(views_);
  all.push_back(View::contiguous(std::move(to)));
  return ShapeTracker(settled(std::move(all)));
}

ShapeTracker ShapeTracker::permute(std::span<const int> axes) const {
  const View& v = views_.back();
  View out{{}, {}, v.offset, {}};
  if (v.mask) out.mask.emplace();
  for (int a : axes) {
    const auto i = static_cast<std::size_t>(a);
    out.shape.push_back(v.shape[i]);
    out.strides.push_back(v.strides[i]);
    if (v.mask) out.mask->push_back((*v.mask)[i]);
  }
  return with_last(views_, std::move(out));
}

ShapeTracker ShapeTracker::expand(Shape to) const {
  View v = views_.back();
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (v.shape[i] == to[i]) continue;
    v.strides[i] = 0;  // a size-1 axis; its mask is all or nothing
    if (v.mask && covers((*v.mask)[i], v.shape[i])) (*v.mask)[i].end = to[i];
    v.shape[i] = to[i];
  }
  return with_last(views_, std::move(v));
}

ShapeTracker ShapeTracker::shrink(std::span<const Span> spans) const {
  View v = views_.back();
  for (std::size_t i = 0; i < spans.size(); ++i) {
    v.offset = v.offset + v.strides[i] * spans[i].begin;
    v.shape[i] = spans[i].end - spans[i].begin;
    if (!v.mask) continue;
    Span& m = (*v.mask)[i];
    m.begin = min(max(m.begin - spans[i].begin, 0), v.shape[i]);
    m.end = max(min(m.end - spans[i].begin, v.shape[i]), m.begin);
  }
  return with_last(views_, std::move(v));
}

ShapeTracker ShapeTracker::pad(std::span<const std::pair<Int, Int>> before_after) const {
  View v = views_.back();
  std::vector<Span> mask = mask_of(v);
  for (std::size_t i = 0; i < before_after.size(); ++i) {
    const auto& [before, after] = before_after[i];
    v.offset = v.offset - v.strides[i] * before;
    mask[i] = {mask[i].begin + before, mask[i].end + before};
    v.shape[i] = v.shape[i] + before + after;
  }
  v.mask = std::move(mask);
  return with_last(views_, std::move(v));
}

ShapeTracker ShapeTracker::flip(std::span<const int> axes) const {
  View v = views_.back();
  for (int a : axes) {
    const auto i = static_cast<std::size_t>(a);
    v.offset = v.offset + v.strides[i] * (v.shape[i] - 1);
    v.strides[i] = -v.strides[i];
    if (v.mask) (*v.mask)[i] = {v.shape[i] - (*v.mask)[i].end, v.shape[i] - (*v.mask)[i].begin};
  }
  return with_last(views_, std::move(v));
}

ShapeTracker ShapeTracker::windows(std::span<const Window> sizes) const {
  const View& last = views_.back();
  const std::size_t first = last.shape.size() - sizes.size();
  std::vector<View> all(views_);
  bool masked = false;
  for (std::size_t i = first; i < last.shape.size(); ++i)
    masked |= last.mask && !covers((*last.mask)[i], last.shape[i]);
  if (masked) all.push_back(View::contiguous(last.shape));  // a window may reach across the mask
  const View v = all.back();
  View out{{}, {}, v.offset, {}};
  const auto mask = mask_of(v);
  std::vector<Span> spans;
  for (std::size_t i = 0; i < v.shape.size(); ++i) {
    const bool windowed = i >= first;
    const Window w = windowed ? sizes[i - first] : Window{1};
    out.shape.push_back(windowed ? (v.shape[i] - w.dilation * (w.size - 1) - 1) / w.step + 1
                                 : v.shape[i]);
    out.strides.push_back(windowed ? v.strides[i] * w.step : v.strides[i]);
    spans.push_back(windowed ? Span{0, out.shape.back()} : mask[i]);
  }
  for (std::size_t i = first; i < v.shape.size(); ++i) {
    out.shape.push_back(sizes[i - first].size);
    out.strides.push_back(v.strides[i] * sizes[i - first].dilation);
    spans.push_back({0, sizes[i - first].size});
  }
  if (v.mask) out.mask = std::move(spans);
  all.back() = canonical(std::move(out));
  return ShapeTracker(settled(std::move(all)));
}

ShapeTracker ShapeTracker::then(const ShapeTracker& outer) const {
  ShapeTracker out = *this;
  for (const View& v : outer.views_) {
    out.views_.push_back(v);
    out.views_ = settled(std::move(out.views_));
  }
  return out;
}

Place ShapeTracker::at(std::span<const Int> indices) const {
  if (views_.size() == 1) return views_[0].at(indices);
  // The way down is worked out for variables that are bounded by the last view's mask, so that
  // division and remainder simplify; the indices come in afterwards.
  const std::vector<Expr> axes = axis_variables(views_.back());
  std::vector<Int> here(axes.begin(), axes.end());
  Int flat = Int(views_.back().at(here).index);
  Expr valid = always();
  for (std::size_t i = views_.size() - 1; i-- > 0;) {
    here = unflatten_index(flat, views_[i].shape);
    const Place place = views_[i].at(here);
    valid = all_of(valid, place.valid);
    flat = Int(place.index);
  }
  Bindings bindings;
  for (std::size_t i = 0; i < axes.size(); ++i) bindings.emplace(axes[i], indices[i].expr());
  return {substitute(flat, bindings).expr(),
          all_of(views_.back().at(indices).valid, substitute(valid, bindings))};
}

std::string ShapeTracker::text() const {
  std::string out;
  for (const View& v : views_) out += cat(out.empty() ? "" : " | ", v.text());
  return out;
}

Int flat_index(std::span<const Int> indices, const Shape& shape) {
  Int flat = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + indices[i];
  return flat;
}

std::vector<Int> unflatten_index(const Int& flat, const Shape& shape) {
  std::vector<Int> indices(shape.size(), 0);
  Int step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const Int place = step.is(1) ? flat : flat / step;
    indices[i] = shape[i].is(1) ? Int(0) : place % shape[i];
    step = step * shape[i];
  }
  return indices;
}

}  // namespace mote
