// Indexing as NumPy does it: basic (integers, slices, newaxis, ellipsis) by views, index tensors by
// a gather that the compiler turns into an indexed load, and writing through the base.
#include <algorithm>

#include "tensor/lift.h"

namespace mote {

// What an index takes of a base, and how it lies there. Reading goes down this list, writing up:
//   the base, (2, 3, 4, 5) in x(1, all, i, j)
//   `region` of it: a step for each axis                                     (1, 3, 4, 5)
//   the indexed axes first, joined, then the others joined: a table          (20, 3)
//   rows of it at `place`, in the shapes of the index tensors and the others (places.., 1, 3)
//   `order` puts the places where the user expects them                      (1, 3, places..)
//   `shape`: without the axes that integers took, with new ones              (3, places..)
struct Plan {
  Region region;
  std::vector<int> table;
  Dims picked;
  std::vector<int> order;
  Dims shape;
  Tensor place;  // flat, -1 where out of range; undefined without index tensors: then a view
};

struct PartOf {
  State base;
  Plan plan;
  Where where;
};

namespace {

// One axis of the base after the ellipsis and masks are worked out.
struct Chosen {
  Step step;     // what is taken of the axis
  Tensor index;  // an index tensor instead
};

// The axes of the base, and of the result: an axis of the base, or -1 for newaxis.
struct Choice {
  std::vector<Chosen> axes;
  std::vector<int> result;
  bool places_first = false;  // NumPy's rule: where index tensors and integers stand apart
};

std::int64_t length(std::int64_t begin, std::int64_t end, std::int64_t step) {
  const std::int64_t span = step > 0 ? end - begin : begin - end, size = step > 0 ? step : -step;
  return span > 0 ? (span - 1) / size + 1 : 0;
}

// Python's slice.indices.
Step resolved(const Slice& s, std::int64_t n) {
  if (s.step == 0) refuse<ValueError>("a slice has step 0; use a step that is not 0");
  const auto bound = [&](std::int64_t v) {
    if (v < 0) v += n;
    return s.step > 0 ? std::clamp<std::int64_t>(v, 0, n) : std::clamp<std::int64_t>(v, -1, n - 1);
  };
  const std::int64_t begin = s.begin ? bound(*s.begin) : s.step > 0 ? 0 : n - 1;
  const std::int64_t end = s.end ? bound(*s.end) : s.step > 0 ? n : -1;
  return {begin, s.step, length(begin, end, s.step)};
}

// A mask of k axes stands for k index tensors: where it is true. It is read on the host.
std::vector<Tensor> places_of(const Tensor& mask) {
  const auto flags = mask.to_vector<bool>();
  const Dims shape = mask.shape();
  std::vector<std::vector<std::int64_t>> places(shape.size());
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (!flags[i]) continue;
    auto rest = static_cast<std::int64_t>(i);
    for (std::size_t a = shape.size(); a-- > 0;) {
      places[a].push_back(rest % shape[a]);
      rest /= shape[a];
    }
  }
  std::vector<Tensor> out;
  for (const auto& p : places)
    out.push_back(Tensor(p, {static_cast<std::int64_t>(p.size())}, {.device = mask.device()}));
  return out;
}

// How many axes of the base an index takes.
int axes_taken(const Index& index) {
  if (std::holds_alternative<Ellipsis>(index.value)) return 0;
  if (std::holds_alternative<NewAxis>(index.value)) return 0;
  const auto* t = std::get_if<Tensor>(&index.value);
  if (t && !t->is_defined()) refuse<ValueError>("the tensor is not defined; give it a value first");
  return t && t->dtype() == DType::boolean ? t->ndim() : 1;
}

Step step_of(std::int64_t index, int axis, const Tensor& base) {
  const std::int64_t n = base.size(axis);
  if (index < -n || index >= n) {
    refuse<IndexError>("index {} is out of range for axis {} of shape {}; {}", index, axis, base,
                       n ? cat("use ", -n, "..", n - 1) : "the axis is empty");
  }
  return {index < 0 ? index + n : index, 1, 1};
}

// The index tensors, one for each axis, that a tensor stands for.
std::vector<Tensor> index_tensors(const Tensor& t, int axis, const Tensor& base) {
  if (t.dtype() != DType::boolean) {
    expect_integers("an index tensor", t);
    return {t.cast(DType::int64)};
  }
  for (int k = 0; k < t.ndim(); ++k) {
    if (t.size(k) != base.size(axis + k))
      refuse<IndexError>(
          "a mask of shape {} does not fit shape {}; a mask has the sizes of the axes it stands "
          "for",
          t, base);
  }
  return places_of(t);
}

Choice chosen(const Tensor& base, const std::vector<Index>& given) {
  int used = 0, ellipses = 0;
  for (const Index& i : given) {
    used += axes_taken(i);
    ellipses += std::holds_alternative<Ellipsis>(i.value);
  }
  if (ellipses > 1) refuse<IndexError>("there are two ellipses; use one");
  if (used > base.ndim())
    refuse<IndexError>("{} indices for shape {}; give at most {}", used, base, base.ndim());
  Choice out;
  const auto take = [&](const Step& step, const Tensor& index, bool stays) {
    if (stays) out.result.push_back(static_cast<int>(out.axes.size()));
    out.axes.push_back({step, index});
  };
  const auto take_whole = [&](const Tensor& index) {
    take({0, 1, base.size(static_cast<int>(out.axes.size()))}, index, true);
  };
  bool begun = false, ended = false;  // the run of index tensors and integers
  for (const Index& i : given) {
    const int axis = static_cast<int>(out.axes.size());
    const auto* number = std::get_if<std::int64_t>(&i.value);
    const auto* tensor = std::get_if<Tensor>(&i.value);
    out.places_first |= ended && (number || tensor);
    ended |= begun && !number && !tensor;
    begun |= number || tensor;
    if (number) take(step_of(*number, axis, base), {}, false);
    else if (tensor)
      for (const Tensor& t : index_tensors(*tensor, axis, base)) take_whole(t);
    else if (const auto* slice = std::get_if<Slice>(&i.value))
      take(resolved(*slice, base.size(axis)), {}, true);
    else if (std::holds_alternative<NewAxis>(i.value)) out.result.push_back(-1);
    else
      for (int left = base.ndim() - used; left > 0; --left) take_whole({});
  }
  while (static_cast<int>(out.axes.size()) < base.ndim()) take_whole({});
  return out;
}

// The flat place in the joined axis that the index tensors name together.
Tensor joined_place(const Tensor& base, const std::vector<Chosen>& axes) {
  Tensor place, valid;
  for (int i = 0; i < base.ndim(); ++i) {
    const Tensor& raw = axes[idx(i)].index;
    if (!raw.is_defined()) continue;
    expect_same_device("index", base, raw, {});
    const std::int64_t n = base.size(i);
    const Tensor at_axis = where(raw < 0, raw + n, raw), ok = (0 <= at_axis) & (at_axis < n);
    if (place.is_defined())
      common_shape("index: index tensors", place.lazy()->shape, raw.lazy()->shape, {});
    place = place.is_defined() ? place * n + at_axis : at_axis;
    valid = valid.is_defined() ? valid & ok : ok;
  }
  return place.is_defined() ? where(valid, place, -1) : place;
}

Plan planned(const Tensor& base, const std::vector<Index>& given) {
  const Choice choice = chosen(base, given);
  const auto is_indexed = [&](int axis) { return choice.axes[idx(axis)].index.is_defined(); };
  Plan plan;
  plan.place = joined_place(base, choice.axes);
  std::vector<int> others;
  for (int i = 0; i < base.ndim(); ++i) {
    plan.region.push_back(choice.axes[idx(i)].step);
    (is_indexed(i) ? plan.table : others).push_back(i);
  }
  plan.table.insert(plan.table.end(), others.begin(), others.end());
  const Dims places = plan.place.is_defined() ? plan.place.shape() : Dims{};
  plan.picked = places;
  for (int i : others) plan.picked.push_back(plan.region[idx(i)].count.value());

  bool placed = false;
  const auto put_places = [&] {
    for (std::size_t k = 0; k < places.size() && !placed; ++k)
      plan.order.push_back(static_cast<int>(k));
    placed = true;
  };
  if (choice.places_first) put_places();
  int other = static_cast<int>(places.size());
  for (int i = 0; i < base.ndim(); ++i) {
    if (is_indexed(i)) put_places();
    else plan.order.push_back(other++);
  }
  placed = false;
  const auto show_places = [&] {
    if (!placed) plan.shape.insert(plan.shape.end(), places.begin(), places.end());
    placed = true;
  };
  if (choice.places_first) show_places();
  for (int axis : choice.result) {
    if (axis < 0) plan.shape.push_back(1);
    else if (is_indexed(axis)) show_places();
    else plan.shape.push_back(plan.region[idx(axis)].count.value());
  }
  return plan;
}

Dims sizes_of(const Plan& plan) {
  Dims sizes;
  for (const Step& s : plan.region) sizes.push_back(s.count.value());
  return sizes;
}

Dims permuted(const Dims& sizes, const std::vector<int>& order) {
  Dims out;
  for (int axis : order) out.push_back(sizes[idx(axis)]);
  return out;
}

std::vector<int> inverse(const std::vector<int>& order) {
  std::vector<int> back(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) back[idx(order[i])] = static_cast<int>(i);
  return back;
}

// x[begin::step] of every axis: shrink, then every step-th by windows of one, then flip.
Tensor taken(const Tensor& x, const Plan& plan) {
  Spans spans;
  Windows every;
  Axes turned;
  bool strided = false;
  for (std::size_t i = 0; i < plan.region.size(); ++i) {
    const Step& s = plan.region[i];
    const std::int64_t step = s.step.value(), count = s.count.value(), size = std::abs(step);
    const std::int64_t low = step < 0 ? s.begin.value() + step * (count - 1) : s.begin.value();
    if (count == 0) spans.push_back({0, 0});
    else spans.push_back({low, low + size * (count - 1) + 1});
    every.push_back({1, count ? size : 1});
    strided |= size > 1 && count > 0;
    if (step < 0) turned.push_back(static_cast<int>(i));
  }
  Lazy out = shrink(x.lazy(), spans);
  if (strided) out = reshape(windows(out, every), shape_of(sizes_of(plan)));
  return wrap(flip(out, turned));
}

// The taken part as (places to choose from, the rest).
Tensor table_of(const Tensor& part, const Plan& plan) {
  std::int64_t rest = 1;
  for (std::size_t k = idx(plan.place.ndim()); k < plan.picked.size(); ++k) rest *= plan.picked[k];
  std::int64_t joined = 1;
  const std::size_t others = plan.picked.size() - idx(plan.place.ndim());
  for (std::size_t k = 0; k + others < plan.table.size(); ++k) joined *= part.size(plan.table[k]);
  return part.permute(plan.table).reshape({joined, rest});
}

Tensor read_part(const Tensor& base, const Plan& plan) {
  const Tensor part = taken(base, plan);
  if (!plan.place.is_defined()) return part.reshape(plan.shape);
  const Tensor rows = table_of(part, plan).index_select(0, plan.place.flatten());
  return rows.reshape(plan.picked).permute(plan.order).reshape(plan.shape);
}

// The value that the region gets: of a part by index tensors, the old one with rows written over.
Tensor region_value(const Tensor& base, const Plan& plan, const Tensor& value) {
  const Dims sizes = sizes_of(plan);
  if (!plan.place.is_defined()) return value.reshape(sizes);
  const Tensor table = table_of(taken(base, plan), plan);
  const Dims written{plan.place.numel(), table.size(1)};
  const Tensor rows = value.reshape(permuted(plan.picked, plan.order))
                          .permute(inverse(plan.order))
                          .reshape(written);
  const Tensor to = plan.place.reshape({written[0], 1}).expand(written);
  const Tensor done = wrap(scatter(table.lazy(), to.lazy(), rows.lazy(), 0, Op::store));
  return done.reshape(permuted(sizes, plan.table)).permute(inverse(plan.table));
}

}  // namespace

Lazy current(const State& state) {
  if (state->part) {
    const Lazy now = read_part(wrap(current(state->part->base)), state->part->plan).lazy();
    const std::lock_guard lock(state->mutex);
    state->lazy = now;
  }
  const std::lock_guard lock(state->mutex);
  return state->lazy;
}

void write_part(const State& part, const Operand& value) {
  const State& base = part->part->base;
  const Plan& plan = part->part->plan;
  const Tensor old = wrap(current(base));
  expect_writable(old.lazy());
  Tensor v = wrap(lazy_of(value, old.dtype(), *old.lazy()->device));
  Dims have = v.shape();
  while (have.size() > plan.shape.size() && have[0] == 1) have.erase(have.begin());
  try {
    if (have.size() > plan.shape.size()) throw ShapeError("too many axes");
    v = wrap(broadcast_to(reshape(v.lazy(), shape_of(have)), shape_of(plan.shape)));
  } catch (const ShapeError&) {
    refuse<ShapeError>(
        "a value of shape {} does not broadcast to the part's shape {}; give a "
        "value that does",
        v, plan.shape);
  }
  const Lazy whole = assign(old.lazy(), region_value(old, plan, v).lazy(), plan.region);
  if (base->part) write_part(base, Operand(wrap(whole)));
  else write_over(base, whole);
  current(part);
}

Part::Part(const Tensor& base, const std::vector<Index>& indices, Where where) {
  const Within op("index", where);
  expect_defined("index", base, where);
  Plan plan = planned(base, indices);
  *static_cast<Tensor*>(this) = read_part(base, plan);
  state_->part = std::make_shared<PartOf>(PartOf{Operand(base).state(), std::move(plan), where});
}

Part& Part::operator=(const Operand& value) {
  assign(value, state_->part->where);
  return *this;
}

Part Tensor::operator()(const Index& a) const { return at({a}, a.where); }
Part Tensor::operator()(const Index& a, const Index& b) const { return at({a, b}, a.where); }
Part Tensor::operator()(const Index& a, const Index& b, const Index& c) const {
  return at({a, b, c}, a.where);
}
Part Tensor::operator()(const Index& a, const Index& b, const Index& c, const Index& d) const {
  return at({a, b, c, d}, a.where);
}
Part Tensor::operator()(const Index& a, const Index& b, const Index& c, const Index& d,
                        const Index& e) const {
  return at({a, b, c, d, e}, a.where);
}
Part Tensor::at(std::vector<Index> indices, Where where) const {
  return Part(*this, indices, where);
}

namespace {

Tensor scattered(std::string_view name, const Tensor& x, int axis, const Tensor& index,
                 const Tensor& source, Op op, Where at);

}  // namespace

// Every place compared with the index, and summed: the compiler reads the one place instead. The
// gradient of that compares each element of the table with each index; past a few indices it is a
// scatter.
Tensor Tensor::gather(int axis, const Tensor& index, Where at) const {
  const int a = checked_axis("gather", axis, ndim(), *this, at);
  if (index.ndim() != ndim())
    fail<ShapeError>(
        "gather",
        cat("the index has shape ", shape_text(index), ", the tensor ", shape_text(*this)), at,
        "they need the same number of axes");
  if (!is_integer(index.dtype()))
    fail<DTypeError>("gather", cat("the index has dtype ", std::string(name_of(index.dtype()))), at,
                     "cast it to an integer");
  expect_same_device("gather", *this, index, at);
  const std::int64_t n = shape()[idx(a)];
  Dims cut = index.shape();
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (int i = 0; i < ndim(); ++i) {
    if (i != a && cut[idx(i)] > shape()[idx(i)])
      fail<ShapeError>(
          "gather",
          cat("the index has shape ", shape_text(index), ", the tensor ", shape_text(*this)), at,
          "other axes may not be longer than the tensor's");
    spans.emplace_back(0, i == a ? n : cut[idx(i)]);
  }
  const Tensor raw = index.cast(DType::int64, at);
  const Tensor place =
      mote::where(raw < 0, raw + n, raw, at).unsqueeze(a + 1, at);  // (.., i, 1, ..)
  const Tensor table = shrink(spans, at).unsqueeze(a, at);          // (.., 1, n, ..)
  Dims line(idx(ndim()) + 1, 1);
  line[idx(a) + 1] = n;
  const Tensor rows = arange(n, {DType::int64, device(), false}, at).reshape(line, at);
  const Tensor hit = rows == place;
  const Tensor zero = wrap(constant_lazy(Scalar(dtype(), 0), {}, *lazy()->device));
  const Tensor each = mote::where(hit, table, zero, at);
  const Lazy sum = reduce_lazy(dtype() == DType::boolean ? Op::or_ : Op::add, each.lazy(), {a + 1});
  const Tensor out = wrap(sum).squeeze(a + 1, at);
  if (cut[idx(a)] <= 8 || !is_float(dtype())) return out;
  const Dims full = shape();
  return with_own_gradient(out, {*this}, [=](const Tensor& g, const Tensor&) {
    const Tensor none = zeros(full, {g.dtype(), g.device(), false}, at);
    return std::vector<Tensor>{scattered("gather", none, a, index, g, Op::add, at)};
  });
}

Tensor Tensor::index_select(int axis, const Tensor& index, Where at) const {
  const int a = checked_axis("index_select", axis, ndim(), *this, at);
  if (!is_integer(index.dtype()))
    fail<DTypeError>("index_select",
                     cat("the index has dtype ", std::string(name_of(index.dtype()))), at,
                     "cast it to an integer");
  Dims line(idx(ndim()), 1), wide = shape();
  line[idx(a)] = wide[idx(a)] = index.numel();
  return gather(a, index.reshape(line, at).expand(wide, at), at);
}

namespace {

Tensor scattered(std::string_view name, const Tensor& x, int axis, const Tensor& index,
                 const Tensor& source, Op op, Where at) {
  const int a = checked_axis(name, axis, x.ndim(), x, at);
  if (index.ndim() != x.ndim() || source.ndim() != x.ndim())
    fail<ShapeError>(name,
                     cat("index ", shape_text(index), " and source ", shape_text(source),
                         " for a tensor of shape ", shape_text(x)),
                     at, "they need the same number of axes");
  if (!is_integer(index.dtype()))
    fail<DTypeError>(name, cat("the index has dtype ", std::string(name_of(index.dtype()))), at,
                     "cast it to an integer");
  expect_same_device(name, x, index, at);
  expect_same_device(name, x, source, at);
  const Dims cut = index.shape(), full = x.shape(), given = source.shape();
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  bool fits = true, equal = true;
  for (int i = 0; i < x.ndim(); ++i) {
    fits &= cut[idx(i)] <= given[idx(i)] && (i == a || cut[idx(i)] <= full[idx(i)]);
    equal &= i == a || cut[idx(i)] == full[idx(i)];
    spans.emplace_back(0, cut[idx(i)]);
  }
  if (!fits)
    fail<ShapeError>(name,
                     cat("index ", shape_text(index), " is larger than source ", shape_text(source),
                         " or tensor ", shape_text(x)),
                     at, "make the index smaller");
  const std::int64_t n = full[idx(a)];
  const Tensor raw = index.cast(DType::int64, at), place = where(raw < 0, raw + n, raw, at);
  const Tensor values = source.shrink(spans, at).cast(x.dtype(), at);
  if (equal) return wrap(scatter(x.lazy(), place.lazy(), values.lazy(), a, op));
  std::vector<Index> part;
  for (int i = 0; i < x.ndim(); ++i)
    part.emplace_back(i == a ? Slice() : Slice(0, cut[idx(i)]), at);
  Tensor out = wrap(x.lazy());
  const Tensor inner = x.at(part, at);
  out.at(part, at) = Operand(wrap(scatter(inner.lazy(), place.lazy(), values.lazy(), a, op)), at);
  return out;
}

}  // namespace

Tensor Tensor::scatter(int axis, const Tensor& index, const Operand& source, Where at) const {
  const Within op("scatter", at);
  const Tensor values =
      source.number() == Operand::Number::none
          ? tensor_of(source)
          : wrap(broadcast_to(lazy_of(source, dtype(), *lazy()->device), index.lazy()->shape));
  return scattered("scatter", *this, axis, index, values, Op::store, at);
}

Tensor Tensor::scatter_reduce(int axis, const Tensor& index, const Tensor& source,
                              ScatterReduce how, bool include_self, Where at) const {
  const Op op = how == ScatterReduce::prod   ? Op::mul
                : how == ScatterReduce::amax ? Op::max
                : how == ScatterReduce::amin ? Op::min
                                             : Op::add;
  Tensor start = *this;
  if (!include_self) {  // places that are written start from the op's identity
    const Tensor hit = scattered("scatter_reduce", zeros_like(at), axis, index,
                                 source.ones_like(at), Op::store, at);
    const Tensor none = wrap(
        broadcast_to(constant_lazy(identity_of(op, dtype()), {}, *lazy()->device), lazy()->shape));
    start = mote::where(hit != 0, none, *this, at);
  }
  const Tensor total = scattered("scatter_reduce", start, axis, index, source, op, at);
  if (how != ScatterReduce::mean) return total;
  const Tensor ones = source.ones_like(at).cast(dtype(), at);
  const Tensor count = scattered("scatter_reduce", include_self ? ones_like(at) : zeros_like(at),
                                 axis, index, ones, Op::add, at);
  const Tensor safe = mote::where(count == 0, 1, count, at);
  return is_float(dtype()) ? total / safe : total.floor_divide(safe, at);
}

Tensor Tensor::masked_fill(const Tensor& mask, const Operand& value, Where at) const {
  const Within op("masked_fill", at);
  if (value.number() == Operand::Number::none) return mote::where(mask, value, *this);
  return mote::where(mask, full_like(value), *this);
}

Tensor Tensor::one_hot(std::int64_t classes, Where at) const {
  if (classes < 0)
    fail<ValueError>("one_hot", cat("the number of classes is ", classes), at, "give 0 or more");
  if (is_float(dtype()))
    fail<DTypeError>("one_hot", cat("the dtype is ", std::string(name_of(dtype()))), at,
                     "cast it to an integer");
  const Tensor place = arange(classes, {DType::int64, device(), false}, at);
  const Tensor raw = unsqueeze(-1, at).cast(DType::int64, at);
  return (mote::where(raw < 0, raw + classes, raw, at) == place).cast(default_int(), at);
}

namespace {
Tensor below_diagonal(const Tensor& x, std::int64_t diagonal, Where at) {
  const Tensor i = Tensor::arange(x.size(-2), {DType::int64, x.device(), false}, at)
                       .reshape({x.size(-2), 1}, at);
  const Tensor j = Tensor::arange(x.size(-1), {DType::int64, x.device(), false}, at)
                       .reshape({1, x.size(-1)}, at);
  return j <= i + diagonal;
}
}  // namespace

Tensor Tensor::tril(std::int64_t diagonal, Where at) const {
  if (ndim() < 2) fail<ShapeError>("tril", cat("shape ", shape_text(*this)), at, "give a matrix");
  return mote::where(below_diagonal(*this, diagonal, at), *this, zeros_like(at), at);
}
Tensor Tensor::triu(std::int64_t diagonal, Where at) const {
  if (ndim() < 2) fail<ShapeError>("triu", cat("shape ", shape_text(*this)), at, "give a matrix");
  return mote::where(below_diagonal(*this, diagonal - 1, at), zeros_like(at), *this, at);
}

}  // namespace mote
