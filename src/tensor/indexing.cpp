// Indexing as NumPy does it: basic (integers, slices, newaxis, ellipsis) by views, index tensors by
// a gather that the compiler turns into an indexed load, and writing through the base.
#include <algorithm>

#include "tensor/lift.h"

namespace mote {

// What an index takes of a base, and how it lies there. Reading goes down this list, writing up:
//   the base, (2, 3, 4, 5) in x(1, all, i, j)
//   `region` of it: a step for each axis                                     (1, 3, 4, 5)
//   `table`, the indexed axes first, joined, then the others: `rows`         (20, 3)
//   rows of it at `place`, as the index tensors and the others: `picked`     (places.., 3)
//   `order` puts the places where the user expects them                      (3, places..)
//   `shape`: with new axes
struct Plan {
  Region region;
  std::vector<int> table;
  Dims rows;
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

// An index, once the ellipsis and masks are worked out.
struct Choice {
  Region region;               // what is taken of each axis of the base
  std::vector<Tensor> tensor;  // the index tensor of each axis, if it has one
  std::vector<int> result;     // axes of the base, -1 for newaxis
  bool places_first = false;   // NumPy's rule: where index tensors and integers stand apart
};

// Python's slice.indices.
Step resolved(const Slice& s, std::int64_t n) {
  if (s.step == 0) refuse<ValueError>("a slice has step 0; use a step that is not 0");
  const auto bound = [&](std::int64_t v) {
    if (v < 0) v += n;
    return s.step > 0 ? std::clamp<std::int64_t>(v, 0, n) : std::clamp<std::int64_t>(v, -1, n - 1);
  };
  const std::int64_t begin = s.begin ? bound(*s.begin) : s.step > 0 ? 0 : n - 1;
  const std::int64_t end = s.end ? bound(*s.end) : s.step > 0 ? n : -1;
  return {begin, s.step, steps_between(begin, end, s.step)};
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
  const auto take = [&](const Step& step, const Tensor& tensor, bool stays) {
    if (stays) out.result.push_back(static_cast<int>(out.region.size()));
    out.region.push_back(step);
    out.tensor.push_back(tensor);
  };
  const auto take_whole = [&](const Tensor& tensor) {
    take({0, 1, base.size(static_cast<int>(out.region.size()))}, tensor, true);
  };
  bool begun = false, ended = false;  // the run of index tensors and integers
  for (const Index& i : given) {
    const int axis = static_cast<int>(out.region.size());
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
  while (static_cast<int>(out.region.size()) < base.ndim()) take_whole({});
  return out;
}

// The flat place in the joined axis that the index tensors name together.
Tensor joined_place(const Tensor& base, const std::vector<Tensor>& tensors) {
  Tensor place, valid;
  for (int i = 0; i < base.ndim(); ++i) {
    const Tensor& raw = tensors[idx(i)];
    if (!raw.is_defined()) continue;
    expect_same_device(base, raw);
    const std::int64_t n = base.size(i);
    const Tensor at_axis = where(raw < 0, raw + n, raw), ok = (0 <= at_axis) & (at_axis < n);
    place = place.is_defined() ? place * n + at_axis : at_axis;
    valid = valid.is_defined() ? valid & ok : ok;
  }
  return place.is_defined() ? where(valid, place, -1) : place;
}

Plan planned(const Tensor& base, const std::vector<Index>& given) {
  const Choice choice = chosen(base, given);
  Plan plan;
  plan.region = choice.region;
  plan.place = joined_place(base, choice.tensor);
  const Dims places = plan.place.is_defined() ? plan.place.shape() : Dims{};
  plan.rows = {1, 1};
  for (bool indexed : {true, false}) {
    for (int i = 0; i < base.ndim(); ++i) {
      if (choice.tensor[idx(i)].is_defined() != indexed) continue;
      plan.table.push_back(i);
      plan.rows[indexed ? 0 : 1] *= plan.region[idx(i)].count.value();
    }
  }
  plan.picked = places;
  bool placed = false;
  const auto put_places = [&] {
    for (std::size_t k = 0; k < places.size() && !placed; ++k) {
      plan.order.push_back(static_cast<int>(k));
      plan.shape.push_back(places[k]);
    }
    placed = true;
  };
  if (choice.places_first) put_places();
  for (int axis : choice.result) {
    if (axis >= 0 && choice.tensor[idx(axis)].is_defined()) {
      put_places();
      continue;
    }
    plan.shape.push_back(axis < 0 ? 1 : plan.region[idx(axis)].count.value());
    if (axis < 0) continue;
    plan.order.push_back(static_cast<int>(plan.picked.size()));
    plan.picked.push_back(plan.shape.back());
  }
  return plan;
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

Tensor table_of(const Tensor& part, const Plan& plan) {
  return part.permute(plan.table).reshape(plan.rows);
}

Tensor read_part(const Tensor& base, const Plan& plan) {
  const Tensor part = wrap(taken(base.lazy(), plan.region));
  if (!plan.place.is_defined()) return part.reshape(plan.shape);
  const Tensor rows = table_of(part, plan).index_select(0, plan.place.flatten());
  return rows.reshape(plan.picked).permute(plan.order).reshape(plan.shape);
}

// The value that the region gets: of a part by index tensors, the old one with rows written over.
Tensor region_value(const Tensor& base, const Plan& plan, const Tensor& value) {
  const Tensor part = wrap(taken(base.lazy(), plan.region));
  if (!plan.place.is_defined()) return value.reshape(part.shape());
  const Dims written{plan.place.numel(), plan.rows[1]};
  const Tensor ordered = value.reshape(permuted(plan.picked, plan.order));
  const Tensor rows = ordered.permute(inverse(plan.order)).reshape(written);
  const Tensor to = plan.place.reshape({written[0], 1}).expand(written);
  const Tensor done =
      wrap(scatter(table_of(part, plan).lazy(), to.lazy(), rows.lazy(), 0, Op::store));
  return done.reshape(permuted(part.shape(), plan.table)).permute(inverse(plan.table));
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
  Lazy v = lazy_of(value, old.dtype(), *old.lazy()->device);
  Shape have = v->shape;
  while (have.size() > plan.shape.size() && have[0].is(1)) have.erase(have.begin());
  v = broadcast_into(reshape(v, have), shape_of(plan.shape), "part's", "give a value that does");
  const Lazy whole = assign(old.lazy(), region_value(old, plan, wrap(v)).lazy(), plan.region);
  if (base->part) write_part(base, wrap(whole));
  else write_over(base, whole);
  current(part);
}

Part::Part(const Tensor& base, const std::vector<Index>& indices, Where where) {
  const Within op("index", where);
  Plan plan = planned(base, indices);
  *static_cast<Tensor*>(this) = read_part(base, plan);
  state_->part = std::make_shared<PartOf>(PartOf{Operand(base).state(), std::move(plan), where});
}

Part& Part::operator=(const Operand& value) {
  assign(value, state_ && state_->part ? state_->part->where : value.where());
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

// A negative index counts from the end.
Tensor from_front(const Tensor& index, std::int64_t n) {
  const Tensor raw = index.cast(DType::int64);
  return where(raw < 0, raw + n, raw);
}

// x with values written, or combined by op, at places along an axis; the index may be smaller than
// both in its other axes.
Tensor scattered(const Tensor& x, int axis, const Tensor& index, const Tensor& source, Op op) {
  const int a = checked_axis(axis, x);
  if (index.ndim() != x.ndim() || source.ndim() != x.ndim())
    refuse<ShapeError>(
        "index {} and source {} for a tensor of shape {}; they need the same number "
        "of axes",
        index, source, x);
  expect_integers("the index", index);
  expect_same_device(x, index);
  expect_same_device(x, source);
  Pairs spans;
  std::vector<Index> part;
  bool fits = true;
  for (int i = 0; i < x.ndim(); ++i) {
    const std::int64_t n = index.size(i);
    fits &= n <= source.size(i) && (i == a || n <= x.size(i));
    spans.emplace_back(0, n);
    part.emplace_back(i == a ? Slice() : Slice(0, n));
  }
  if (!fits)
    refuse<ShapeError>("index {} is larger than source {} or tensor {}; make the index smaller",
                       index, source, x);
  const Tensor place = from_front(index, x.size(a)), values = source.shrink(spans).cast(x.dtype());
  const auto written = [&](const Tensor& target) {
    return wrap(scatter(target.lazy(), place.lazy(), values.lazy(), a, op));
  };
  Dims whole = x.shape();
  whole[idx(a)] = index.size(a);
  if (index.shape() == whole) return written(x);
  const Tensor out = wrap(x.lazy());
  out.at(part) = written(x.at(part));
  return out;
}

}  // namespace

// Every place compared with the index, and summed: the compiler reads the one place instead. The
// gradient of that compares each element of the table with each index; past a few indices it is a
// scatter.
Tensor Tensor::gather(int axis, const Tensor& index, Where at) const {
  const Within within("gather", at);
  const int a = checked_axis(axis, *this);
  if (index.ndim() != ndim())
    refuse<ShapeError>("the index has shape {}, the tensor {}; they need the same number of axes",
                       index, *this);
  expect_integers("the index", index);
  expect_same_device(*this, index);
  const std::int64_t n = size(a);
  Pairs spans;
  for (int i = 0; i < ndim(); ++i) {
    if (i != a && index.size(i) > size(i))
      refuse<ShapeError>(
          "the index has shape {}, the tensor {}; other axes may not be longer than "
          "the tensor's",
          index, *this);
    spans.emplace_back(0, i == a ? n : index.size(i));
  }
  const Tensor place = from_front(index, n).unsqueeze(a + 1);  // (.., i, 1, ..)
  const Tensor table = shrink(spans).unsqueeze(a);             // (.., 1, n, ..)
  const Tensor hit = places_along(a + 1, n, ndim() + 1, device()) == place;
  const Tensor zero = wrap(constant_lazy(Scalar(dtype(), 0), {}, *lazy()->device));
  const Tensor each = mote::where(hit, table, zero);
  const Lazy sum = reduce_lazy(dtype() == DType::boolean ? Op::or_ : Op::add, each.lazy(), {a + 1});
  const Tensor out = wrap(sum).squeeze(a + 1);
  if (index.size(a) <= 8 || !is_float(dtype())) return out;
  const Dims full = shape();
  return with_own_gradient(out, {*this}, [=](const Tensor& g, const Tensor&) {
    const Tensor none = zeros(full, {g.dtype(), g.device(), false});
    return std::vector<Tensor>{scattered(none, a, index, g, Op::add)};
  });
}

Tensor Tensor::index_select(int axis, const Tensor& index, Where at) const {
  const Within within("index_select", at);
  const int a = checked_axis(axis, *this);
  expect_integers("the index", index);
  Dims wide = shape();
  wide[idx(a)] = index.numel();
  return gather(a, along(index, a, ndim()).expand(wide));
}

Tensor Tensor::scatter(int axis, const Tensor& index, const Operand& source, Where at) const {
  const Within within("scatter", at);
  if (!is_number(source)) return scattered(*this, axis, index, tensor_of(source), Op::store);
  const Lazy value = lazy_of(source, dtype(), *lazy()->device);
  return scattered(*this, axis, index, wrap(broadcast_to(value, index.lazy()->shape)), Op::store);
}

Tensor Tensor::scatter_reduce(int axis, const Tensor& index, const Tensor& source,
                              ScatterReduce how, bool include_self, Where at) const {
  const Within within("scatter_reduce", at);
  const Op op = how == ScatterReduce::prod   ? Op::mul
                : how == ScatterReduce::amax ? Op::max
                : how == ScatterReduce::amin ? Op::min
                                             : Op::add;
  const Tensor ones = source.ones_like().cast(dtype());
  Tensor start = *this;
  if (!include_self) {  // places that are written start from the op's identity
    const Tensor hit = scattered(zeros_like(), axis, index, ones, Op::store);
    const Tensor none = wrap(constant_lazy(identity_of(op, dtype()), {}, *lazy()->device));
    start = mote::where(hit != 0, none, *this);
  }
  const Tensor total = scattered(start, axis, index, source, op);
  if (how != ScatterReduce::mean) return total;
  const Tensor begun = include_self ? ones_like() : zeros_like();
  const Tensor count = scattered(begun, axis, index, ones, Op::add);
  const Tensor safe = mote::where(count == 0, 1, count);
  return is_float(dtype()) ? total / safe : total.floor_divide(safe);
}

Tensor Tensor::masked_fill(const Tensor& mask, const Operand& value, Where at) const {
  const Within within("masked_fill", at);
  return mote::where(mask, is_number(value) ? Operand(full_like(value)) : value, *this);
}

Tensor Tensor::one_hot(std::int64_t classes, Where at) const {
  const Within within("one_hot", at);
  if (classes < 0) refuse<ValueError>("the number of classes is {}; give 0 or more", classes);
  expect_integers("the index", *this);
  const Tensor place = arange(classes, {DType::int64, device(), false});
  return (from_front(*this, classes).unsqueeze(-1) == place).cast(default_int());
}

namespace {

// x up to a diagonal, or past it.
Tensor triangle(const Tensor& x, std::int64_t diagonal, bool below) {
  if (x.ndim() < 2) refuse<ShapeError>("shape {}; give a matrix", x);
  const Tensor i = places_along(0, x.size(-2), 2, x.device()),
               j = places_along(1, x.size(-1), 2, x.device());
  const Tensor lower = j <= i + diagonal, none = x.zeros_like();
  return below ? where(lower, x, none) : where(lower, none, x);
}

}  // namespace

Tensor Tensor::tril(std::int64_t diagonal, Where at) const {
  return Within("tril", at)(triangle(*this, diagonal, true));
}
Tensor Tensor::triu(std::int64_t diagonal, Where at) const {
  return Within("triu", at)(triangle(*this, diagonal - 1, false));
}

}  // namespace mote
