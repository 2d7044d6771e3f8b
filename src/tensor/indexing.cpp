// Indexing as NumPy does it: basic (integers, slices, newaxis, ellipsis) by views, index tensors by a
// gather that the compiler turns into an indexed load, and writing through the base.
#include <algorithm>

#include "tensor/lift.h"

namespace mote {
namespace {

std::size_t idx(int i) { return static_cast<std::size_t>(i); }

// One axis of the base after the ellipsis and masks are worked out.
struct Chosen {
  Step step;             // what is taken of the axis
  bool dropped = false;  // an integer: the axis goes
  Tensor index;          // an index tensor instead
};

struct Plan {
  std::vector<Chosen> axes;  // one for each axis of the base
  std::vector<int> result;   // of the basic part: an axis of the base, or -1 for newaxis
};

std::int64_t length(std::int64_t begin, std::int64_t end, std::int64_t step) {
  const std::int64_t span = step > 0 ? end - begin : begin - end, size = step > 0 ? step : -step;
  return span > 0 ? (span + size - 1) / size : 0;
}

// Python's slice.indices.
Step resolved(const Slice& s, std::int64_t n, Where at) {
  if (s.step == 0) fail<ValueError>("index", "a slice has step 0", at, "use a step that is not 0");
  const auto bound = [&](std::int64_t v) {
    if (v < 0) v += n;
    return s.step > 0 ? std::clamp<std::int64_t>(v, 0, n) : std::clamp<std::int64_t>(v, -1, n - 1);
  };
  const std::int64_t begin = s.begin ? bound(*s.begin) : s.step > 0 ? 0 : n - 1;
  const std::int64_t end = s.end ? bound(*s.end) : s.step > 0 ? n : -1;
  return {begin, s.step, length(begin, end, s.step)};
}

// A mask of k axes stands for k index tensors: where it is true. It is read on the host.
std::vector<Tensor> places_of(const Tensor& mask, Where at) {
  const auto flags = mask.to_vector<int>(at);
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
    out.push_back(Tensor(p, {static_cast<std::int64_t>(p.size())}, {.device = mask.device()}, at));
  return out;
}

Plan planned(const Tensor& base, const std::vector<Index>& given, Where at) {
  const Dims shape = base.shape();
  int used = 0, ellipses = 0;
  for (const Index& i : given) {
    if (std::holds_alternative<Ellipsis>(i.value)) ++ellipses;
    else if (const auto* t = std::get_if<Tensor>(&i.value))
      used += t->dtype() == DType::boolean ? t->ndim() : 1;
    else if (!std::holds_alternative<NewAxis>(i.value)) ++used;
  }
  if (ellipses > 1) fail<IndexError>("index", "there are two ellipses", at, "use one");
  if (used > base.ndim())
    fail<IndexError>("index", cat(used, " indices for shape ", shape_text(base)), at,
                     cat("give at most ", base.ndim()));
  Plan plan;
  int axis = 0;
  const auto whole = [&] {
    plan.axes.push_back({{0, 1, shape[idx(axis)]}, false, {}});
    plan.result.push_back(axis++);
  };
  for (const Index& i : given) {
    if (std::holds_alternative<NewAxis>(i.value)) {
      plan.result.push_back(-1);
    } else if (std::holds_alternative<Ellipsis>(i.value)) {
      for (int left = base.ndim() - used; left > 0; --left) whole();
    } else if (const auto* s = std::get_if<Slice>(&i.value)) {
      plan.axes.push_back({resolved(*s, shape[idx(axis)], at), false, {}});
      plan.result.push_back(axis++);
    } else if (const auto* n = std::get_if<std::int64_t>(&i.value)) {
      const std::int64_t size = shape[idx(axis)];
      if (*n < -size || *n >= size) {
        fail<IndexError>(
            "index",
            cat("index ", *n, " is out of range for axis ", axis, " of shape ", shape_text(base)),
            at, size ? cat("use ", -size, "..", size - 1) : "the axis is empty");
      }
      plan.axes.push_back({{*n < 0 ? *n + size : *n, 1, 1}, true, {}});
      ++axis;
    } else {
      const Tensor& t = std::get<Tensor>(i.value);
      expect_defined("index", t, at);
      if (is_float(t.dtype()))
        fail<DTypeError>("index",
                         cat("an index tensor has dtype ", std::string(name_of(t.dtype()))), at,
                         "cast it to an integer");
      std::vector<Tensor> parts{t};
      if (t.dtype() == DType::boolean) {
        for (int k = 0; k < t.ndim(); ++k) {
          if (t.shape()[idx(k)] != shape[idx(axis + k)])
            fail<IndexError>(
                "index",
                cat("a mask of shape ", shape_text(t), " does not fit shape ", shape_text(base)),
                at, "a mask has the sizes of the axes it stands for");
        }
        parts = places_of(t, at);
      }
      for (const Tensor& p : parts) {
        plan.axes.push_back({{0, 1, shape[idx(axis)]}, false, p.cast(DType::int64, at)});
        plan.result.push_back(axis++);
      }
    }
  }
  while (axis < base.ndim()) whole();
  return plan;
}

// x[begin::step] of every axis: shrink, then every step-th by windows of one, then flip.
Tensor taken(const Tensor& x, const std::vector<Chosen>& axes, Where at) {
  const PlaceScope place(at);
  Spans spans;
  Windows every;
  Axes turned;
  Shape counts;
  bool strided = false;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const Step& s = axes[i].step;
    const std::int64_t step = s.step.value(), count = s.count.value(), size = std::abs(step);
    const std::int64_t low = step < 0 ? s.begin.value() + step * (count - 1) : s.begin.value();
    if (count == 0) spans.push_back({0, 0});
    else spans.push_back({low, low + size * (count - 1) + 1});
    every.push_back({1, count ? size : 1});
    strided |= size > 1 && count > 0;
    counts.push_back(count);
    if (step < 0) turned.push_back(static_cast<int>(i));
  }
  Lazy out = shrink(x.lazy(), spans);
  if (strided) out = reshape(windows(out, every), counts);
  return wrap(flip(out, turned));
}

// The indexed axes of x first, flattened to one; then the others.
struct Fancy {
  std::vector<int> indexed, others;
  Tensor place;  // flat places in the joined axis; -1 where out of range
  Dims places;   // the broadcast shape of the index tensors
  std::int64_t joined = 1;
};

Fancy fancy_of(const Tensor& x, const std::vector<Chosen>& axes, Where at) {
  Fancy f;
  Tensor valid;
  const Dims shape = x.shape();
  for (int i = 0; i < static_cast<int>(axes.size()); ++i) {
    if (!axes[idx(i)].index.is_defined()) {
      f.others.push_back(i);
      continue;
    }
    f.indexed.push_back(i);
    const std::int64_t n = shape[idx(i)];
    const Tensor raw = axes[idx(i)].index;
    const Tensor at_axis = where(raw < 0, raw + n, raw, at);
    const Tensor ok = (0 <= at_axis) & (at_axis < n);
    expect_same_device("index", x, raw, at);
    if (f.place.is_defined())
      common_shape("index: index tensors", f.place.lazy()->shape, raw.lazy()->shape, at);
    f.place = f.place.is_defined() ? f.place * n + at_axis : at_axis;
    valid = valid.is_defined() ? valid & ok : ok;
    f.joined *= n;
  }
  f.place = where(valid, f.place, -1, at);
  f.places = f.place.shape();
  return f;
}

std::vector<int> joined_order(const Fancy& f) {
  std::vector<int> order = f.indexed;
  order.insert(order.end(), f.others.begin(), f.others.end());
  return order;
}

// Where the places go among the other axes: where the index tensors stand if they stand together,
// else first (NumPy's rule). `plan.result` lists the axes in the user's order.
std::size_t position_of_places(const Plan& plan) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < plan.result.size(); ++i)
    if (plan.result[i] >= 0 && plan.axes[idx(plan.result[i])].index.is_defined()) at.push_back(i);
  for (std::size_t i = 1; i < at.size(); ++i)
    if (at[i] != at[i - 1] + 1) return 0;
  return at[0];
}

Tensor indexed(const Tensor& base, const std::vector<Index>& given, Where at) {
  expect_defined("index", base, at);
  const OuterPlace outer(at);
  const Plan plan = planned(base, given, at);
  Tensor x = taken(base, plan.axes, at);
  const bool fancy =
      std::ranges::any_of(plan.axes, [](const Chosen& c) { return c.index.is_defined(); });
  Dims sizes = x.shape();
  if (!fancy) {
    Dims to;
    for (int axis : plan.result) to.push_back(axis < 0 ? 1 : sizes[idx(axis)]);
    return x.reshape(to, at);
  }
  const Fancy f = fancy_of(x, plan.axes, at);
  Dims rows{f.joined};
  std::int64_t rest = 1;
  for (int o : f.others) rest *= sizes[idx(o)];
  rows.push_back(rest);
  const Tensor table = x.permute(joined_order(f), at).reshape(rows, at);
  const Tensor picked = table.index_select(0, f.place.flatten(0, -1, at), at);  // (places, rest)
  // (places.., others..) -> the user's order
  Dims full = f.places;
  for (int o : f.others) full.push_back(sizes[idx(o)]);
  const std::size_t where_places = position_of_places(plan);
  std::vector<int> order;
  Dims to;
  const auto put_places = [&] {
    for (std::size_t k = 0; k < f.places.size(); ++k) {
      order.push_back(static_cast<int>(k));
      to.push_back(f.places[k]);
    }
  };
  bool placed = false;
  std::size_t other = 0;
  if (where_places == 0) {
    put_places();
    placed = true;
  }
  for (std::size_t i = 0; i < plan.result.size(); ++i) {
    const int axis = plan.result[i];
    if (axis < 0) {
      to.push_back(1);
      continue;
    }
    if (plan.axes[idx(axis)].index.is_defined()) {
      if (!placed) put_places();
      placed = true;
      continue;
    }
    while (f.others[other] != axis)
      order.push_back(static_cast<int>(f.places.size() + other++));  // integers: size 1
    order.push_back(static_cast<int>(f.places.size() + other++));
    to.push_back(sizes[idx(axis)]);
  }
  while (other < f.others.size()) order.push_back(static_cast<int>(f.places.size() + other++));
  return picked.reshape(full, at).permute(order, at).reshape(to, at);
}

void write_part(Tensor& base, const std::vector<Index>& given, const Operand& value, Where at) {
  const OuterPlace outer(at);
  const PlaceScope place(at);
  const Lazy old = base.lazy();
  expect_writable("setitem", old, at);
  const Plan plan = planned(base, given, at);
  const Tensor shape_like = indexed(base, given, at);  // for the shape that the value must have
  Tensor v = wrap(lazy_of(value, old->dtype, *old->device));
  Dims want = shape_like.shape(), have = v.shape();
  while (have.size() > want.size() && have[0] == 1) {
    have.erase(have.begin());
    v = v.reshape(have, at);
  }
  try {
    if (have.size() > want.size()) throw ShapeError("too many axes");
    v = wrap(broadcast_to(v.lazy(), shape_of(want)));
  } catch (const ShapeError&) {
    fail<ShapeError>("setitem",
                     cat("a value of shape ", shape_text(v),
                         " does not broadcast to the part's shape ", to_text(shape_of(want))),
                     at, "give a value that does");
  }
  const bool fancy =
      std::ranges::any_of(plan.axes, [](const Chosen& c) { return c.index.is_defined(); });
  Region region;
  Dims part;
  for (const Chosen& c : plan.axes) {
    region.push_back(c.step);
    part.push_back(c.step.count.value());
  }
  if (!fancy) {
    return write_over(base, old, assign(old, v.reshape(part, at).lazy(), region), at);
  }
  // Scatter into the part, flattened to (joined, rest), then the part back to its place.
  const Tensor x = taken(base, plan.axes, at);
  const Fancy f = fancy_of(x, plan.axes, at);
  const Dims sizes = x.shape();
  std::int64_t rest = 1, count = 1;
  for (int o : f.others) rest *= sizes[idx(o)];
  for (std::int64_t s : f.places) count *= s;
  // The value's axes: places, then the others. It has newaxis and dropped axes as size 1 or not at all.
  const std::size_t where_places = position_of_places(plan);
  std::vector<int> order, front;
  int axis = 0;
  bool placed = false;
  const auto take_places = [&] {
    for (std::size_t k = 0; k < f.places.size(); ++k) front.push_back(axis++);
    placed = true;
  };
  if (where_places == 0) take_places();
  for (int r : plan.result) {
    if (r >= 0 && plan.axes[idx(r)].index.is_defined()) {
      if (!placed) take_places();
    } else {
      order.push_back(axis++);
    }
  }
  front.insert(front.end(), order.begin(), order.end());
  const Tensor rows = v.permute(front, at).reshape({count, rest}, at);
  const Tensor where_to = f.place.reshape({count, 1}, at).expand({count, rest}, at);
  const std::vector<int> joined = joined_order(f);
  Dims moved;
  for (int a : joined) moved.push_back(sizes[idx(a)]);
  const Tensor target = x.permute(joined, at).reshape({f.joined, rest}, at);
  const Tensor done =
      wrap(scatter(target.lazy(), where_to.lazy(), rows.lazy(), 0, Op::store)).reshape(moved, at);
  std::vector<int> back(joined.size());
  for (std::size_t i = 0; i < joined.size(); ++i) back[idx(joined[i])] = static_cast<int>(i);
  write_over(base, old, assign(old, done.permute(back, at).lazy(), region), at);
}

}  // namespace

Part::Part(Tensor base, std::vector<Index> indices, Where where)
    : Tensor(indexed(base, indices, where)),
      base_(std::move(base)),
      indices_(std::move(indices)),
      where_(where) {}

Part& Part::operator=(const Operand& value) {
  write_part(base_, indices_, value, where_);
  return *this;
}
Part& Part::operator+=(const Operand& v) {
  const OuterPlace outer(where_);
  return *this = Operand(static_cast<const Tensor&>(*this) + v, v.where());
}
Part& Part::operator-=(const Operand& v) {
  const OuterPlace outer(where_);
  return *this = Operand(static_cast<const Tensor&>(*this) - v, v.where());
}
Part& Part::operator*=(const Operand& v) {
  const OuterPlace outer(where_);
  return *this = Operand(static_cast<const Tensor&>(*this) * v, v.where());
}
Part& Part::operator/=(const Operand& v) {
  const OuterPlace outer(where_);
  return *this = Operand(static_cast<const Tensor&>(*this) / v, v.where());
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
  expect_defined("index", *this, where);
  return Part(*this, std::move(indices), where);
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
  const Operand v =
      value.number() == Operand::Number::none ? value : Operand(full_like(value, at), at);
  return mote::where(mask, v, *this, at);
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
