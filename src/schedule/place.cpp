#include "schedule/place.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace mote {
namespace {

constexpr double flop = 0.2, slow_flop = 3, access = 0.5, heavy = 64;
constexpr std::int64_t scratch_elements = 16 << 10;
constexpr int most_nodes = 400, most_leaves = 24, few_nodes = 4;  // of one expression

double op_cost(Op op) {
  switch (op) {
    case Op::exp:
    case Op::log:
    case Op::sqrt:
    case Op::div: return slow_flop;
    case Op::sin:
    case Op::cos:
    case Op::tanh:
    case Op::erf: return 2 * slow_flop;
    case Op::idiv:
    case Op::mod:
    case Op::tdiv:
    case Op::tmod: return slow_flop;
    default: return flop;
  }
}

double extent(const Expr& range) {
  return static_cast<double>(std::max<std::int64_t>(range->src[0]->hi, 1));
}

// The number of iterations of a set of loops.
class Extents {
 public:
  void add(const Expr& range) { of_[static_cast<std::size_t>(range->arg)] = extent(range); }
  double product(const RangeSet& set) const {
    double n = 1;
    for (int id : set.ids()) n *= of_[static_cast<std::size_t>(id)];
    return n;
  }

 private:
  std::array<double, RangeSet::capacity> of_{};
};

bool chains(const std::vector<RangeSet>& sets, const RangeSet& set) {
  return std::ranges::all_of(sets,
                             [&](const RangeSet& s) { return s.contains(set) || set.contains(s); });
}

RangeSet outputs_of(const RangeSet& set) {
  RangeSet out = set;
  out.words[2] = out.words[3] = 0;
  return out;
}

bool bound_in(const Int& index) {  // does a reduce's or a table's range occur?
  return !index.is_constant() && index.expr()->free.highest() >= RangeSet::first_bound;
}

class Placer {
 public:
  Placer(std::span<const Lazy> roots, const std::unordered_set<const LazyBuffer*>& forced,
         const ScheduleOptions& options)
      : options_(options), forced_(forced) {
    out_.order = topological(roots);
    for (const Lazy& r : roots) roots_.insert(base_of(r).get());
  }

  Placement run() {
    for (const Lazy& n : out_.order) estimate(n);
    for (auto at = out_.order.rbegin(); at != out_.order.rend(); ++at)
      if (!(*at)->is_view()) decide(*at);
    return std::move(out_);
  }

 private:
  // ---- bottom up: costs, and what gets too large to be one expression

  void estimate(const Lazy& n) {
    if (n->is_view()) return;
    Value& v = out_.values[n.get()];
    v.node = n;
    if (n->is_realized() || n->src.empty()) {
      leaves_[n.get()] = n->is_realized() ? 1 : 0;
      v.cost = n->is_realized() ? access : 0;
      return;
    }
    note_sums(n);
    Weight weight = added_up(*n);
    if (weight.nodes > most_nodes || weight.leaves > most_leaves) {
      // What it is made of is stored, not itself: a product over broadcasts is larger than both
      // sides.
      for (const Lazy& s : n->src)
        if (nodes_[base_of(s).get()] > few_nodes) too_large_.insert(base_of(s).get());
      weight = added_up(*n);
    }
    for (const Lazy& s : n->src) ++readers_[base_of(s).get()];
    if (n->op == Op::reduce) {
      const double times = static_cast<double>(n->src[0]->elements()) /
                           std::max<double>(1, static_cast<double>(n->elements()));
      weight.cost = is_gather(n) ? 4 : (weight.cost + flop) * times;
    }
    nodes_[n.get()] = weight.nodes;
    leaves_[n.get()] = weight.leaves;
    v.cost = weight.cost;
  }

  struct Weight {
    int nodes = 1, leaves = 0;
    double cost = 0;
  };

  // Of one element of n, with the sources that are not stored written out.
  Weight added_up(const LazyBuffer& n) {
    Weight out;
    out.cost = is_elementwise(n.op) ? op_cost(n.op) : 0;
    std::vector<const LazyBuffer*> met;
    for (const Lazy& s : n.src) {
      const Lazy& b = base_of(s);
      const bool stored = must_store(b);
      out.nodes += stored ? 1 : nodes_[b.get()];
      out.leaves += stored ? 1 : leaves_[b.get()];
      // A heavy value with several readers counts as read, or costs explode.
      const double c = out_.values[b.get()].cost;
      const bool again = readers_[b.get()] > 0 || std::ranges::find(met, b.get()) != met.end();
      out.cost += stored || (c > heavy && again) ? access : c;
      met.push_back(b.get());
    }
    return out;
  }

  // A sum of floats that is computed twice may be rounded in two ways. Where equality counts (the
  // gradient of a maximum, argmax) what is compared is stored when there is such a sum in it.
  void note_sums(const Lazy& n) {
    bool sums = n->op == Op::reduce && is_float(n->dtype) && !is_gather(n) &&
                (n->reduce_op == Op::add || n->reduce_op == Op::mul);
    const bool compares = n->op == Op::eq && base_of(n->src[0])->op != Op::constant &&
                          base_of(n->src[1])->op != Op::constant;
    for (const Lazy& s : n->src) {
      const Lazy& b = base_of(s);
      const bool holds = holds_sum_.contains(b.get()) && !must_store(b);
      if (holds && compares) too_large_.insert(b.get());
      sums |= holds && n->op != Op::eq;
    }
    if (sums) holds_sum_.insert(n.get());
  }

  bool must_store(const Lazy& n) const {
    return is_stored_anyway(n) || roots_.contains(n.get()) || forced_.contains(n.get()) ||
           too_large_.contains(n.get());
  }

  // ---- top down: uses, and a decision once all of them are known

  void decide(const Lazy& n) {
    Value& v = out_.values[n.get()];
    if (n->is_realized() || (n->src.empty() && !roots_.contains(n.get()))) return;
    if (n->src.empty() || must_store(n)) return store(v);
    if (v.uses.empty()) return;  // below something that was not computed
    const double n_elements = static_cast<double>(n->elements());
    const double evaluations = inline_evaluations(v);
    const bool one_kernel =
        std::ranges::all_of(v.uses, [&](const Use& u) { return u.kernel == v.uses[0].kernel; });
    if (one_kernel && evaluations <= 1.3 * n_elements) return inline_it(v);
    const double stored = n_elements * v.cost +
                          options_.byte_cost * size_of(n->dtype) * n_elements + 1.5 * accesses(v) +
                          options_.launch_cost;
    const double inlined = evaluations * v.cost;
    const double staged = staged_cost(v);
    if (staged < inlined && staged < stored) return stage(v);
    if (inlined <= stored) return inline_it(v);
    store(v);
  }

  double accesses(const Value& v) const {
    double total = 0;
    for (const Use& u : v.uses) total += extents_.product(u.spot.free() & u.open);
    return total;
  }

  // How often the value is computed where it is inlined; infinity where that is not allowed. It is
  // computed in the innermost loop that it depends on: fine where its loops can be the outer ones.
  // Elsewhere an elementwise value is computed again (at most three times where it is packed).
  double inline_evaluations(const Value& v) const {
    double total = 0;
    std::vector<RangeSet> fresh;
    for (const Use& u : v.uses) {
      const RangeSet free = u.spot.free() & u.open, outer = outputs_of(free);
      const bool whole = free == u.open || outer == outputs_of(u.open);
      const bool prefix =
          whole || (chains(out_.kernels[static_cast<std::size_t>(u.kernel)].prefixes, outer) &&
                    chains(fresh, outer) && parallel_enough(u.kernel, outer, v.cost));
      if (free != u.open && outputs_of(free) != free) {  // in a sum's loop, and in others around it
        total += v.node->op == Op::reduce
                     ? extents_.product(u.open)
                     : std::min(extents_.product(u.open), 3 * extents_.product(free));
        continue;
      }
      if (v.node->op != Op::reduce && !prefix) {
        total += std::min(extents_.product(u.open), 3 * extents_.product(free));
        continue;
      }
      if (!prefix) return INFINITY;
      if (!whole) fresh.push_back(outer);
      total += extents_.product(free);
    }
    return total;
  }

  // Hoisting leaves only the loops of the prefix to run in parallel; `cost` is of one step of them.
  bool parallel_enough(int kernel, const RangeSet& outer, double cost) const {
    const double all =
        static_cast<double>(product(out_.kernels[static_cast<std::size_t>(kernel)].shape).hi());
    const double work = all * flop + cost * extents_.product(outer);
    return extents_.product(outer) >= 16 || work < 200'000;
  }

  // The axes that every use reads whole, with the same index on the others: a table of them, filled
  // once for each step of the other axes' loops.
  std::optional<std::vector<bool>> stageable(const Value& v) const {
    const Use& first = v.uses[0];
    if (v.node->op == Op::scan) return {};
    std::vector<bool> staged(v.node->shape.size(), false);
    RangeSet outer;
    for (std::size_t i = 0; i < staged.size(); ++i) {
      for (const Use& u : v.uses)
        if (u.kernel != first.kernel || !(u.spot.index[i] == first.spot.index[i]) ||
            bound_in(u.spot.index[i]))
          staged[i] = true;
      if (!staged[i]) outer |= first.spot.index[i].expr()->free;
    }
    std::int64_t size = 1;
    for (std::size_t i = 0; i < staged.size(); ++i) {
      if (!staged[i]) continue;
      if (!v.node->shape[i].is_constant()) return {};
      size *= v.node->shape[i].value();
      for (const Use& u : v.uses)
        if (u.spot.index[i].expr()->free.intersects(outer)) return {};
    }
    if (size > scratch_elements || size <= 1 || outer != outputs_of(outer)) return {};
    for (const Use& u : v.uses) {
      if (u.spot.valid != always()) return {};  // a table is read where it is real
      if (u.kernel != first.kernel) return {};
      for (std::size_t i = 0; i < staged.size(); ++i)
        if (u.spot.index[i].lo() < 0 ||
            !proves_lt(u.spot.index[i], v.node->shape[i]).value_or(false))
          return {};
    }
    if (!chains(out_.kernels[static_cast<std::size_t>(first.kernel)].prefixes, outer)) return {};
    if (!parallel_enough(first.kernel, outer, v.cost * static_cast<double>(size))) return {};
    return staged;
  }

  double staged_cost(const Value& v) const {
    const auto staged = stageable(v);
    if (!staged) return INFINITY;
    return static_cast<double>(v.node->elements()) * (v.cost + access) + access * accesses(v);
  }

  // ---- what each decision asks of the sources

  void add_use(const Lazy& source, Use u) {
    const Lazy& base = base_of(source);
    if (base->is_realized() || (base->src.empty() && !roots_.contains(base.get()))) return;
    u.spot = through(source, u.spot);
    auto& uses = out_.values[base_of(source).get()].uses;
    for (const Use& have : uses)
      if (have.kernel == u.kernel && have.spot == u.spot && have.open == u.open) return;
    uses.push_back(std::move(u));
  }

  void use_sources(const LazyBuffer& n, const Use& u) {
    if (n.op == Op::reduce) {
      Use inner = u;
      std::vector<Expr> ranges;
      inner.spot = under_reduce(n, u.spot, ranges);
      inner.in_binder = true;
      for (const Expr& r : ranges) {
        extents_.add(r);
        inner.open.add(static_cast<int>(r->arg));
      }
      // What the body does not depend on is computed further out.
      return add_use(n.src[0], std::move(inner));
    }
    if (n.op == Op::assign) {
      Use written = u;
      written.spot = in_region(n, u.spot);
      add_use(n.src[1], std::move(written));
      if (!std::get<Region>(n.arg).empty()) add_use(n.src[0], u);
      return;
    }
    for (const Lazy& s : n.src) add_use(s, u);
  }

  void inline_it(Value& v) {
    v.at = At::inlined;
    for (const Use& u : v.uses) {
      if (v.node->op == Op::reduce)
        note_prefix(u.kernel, outputs_of(u.spot.free() & u.open), outputs_of(u.open));
      Use scope = u;
      if (v.node->op == Op::reduce) scope.open = reduce_scope(u);
      use_sources(*v.node, scope);
    }
  }

  // A reduce's body runs inside of the loops that the reduce depends on, no others.
  static RangeSet reduce_scope(const Use& u) { return u.spot.free() & u.open; }

  void note_prefix(int kernel, const RangeSet& set, const RangeSet& all) {
    auto& prefixes = out_.kernels[static_cast<std::size_t>(kernel)].prefixes;
    if (set == all || std::ranges::find(prefixes, set) != prefixes.end()) return;
    prefixes.push_back(set);
  }

  void stage(Value& v) {
    v.at = At::staged;
    v.staged_axes = *stageable(v);
    v.kernel = v.uses[0].kernel;
    Use u = v.uses[0];
    u.spot.valid = always();
    u.in_binder = true;
    RangeSet outer;
    for (std::size_t i = 0; i < v.staged_axes.size(); ++i)
      if (!v.staged_axes[i]) outer |= u.spot.index[i].expr()->free;
    note_prefix(v.kernel, outer, outputs_of(u.open));
    int id = RangeSet::first_bound;
    u.open = outer;
    for (std::size_t i = 0; i < v.staged_axes.size(); ++i) {
      if (!v.staged_axes[i]) continue;
      const Expr r = range(id++, v.node->shape[i].expr());
      extents_.add(r);
      u.open.add(static_cast<int>(r->arg));
      u.spot.index[i] = Int(r);
    }
    use_sources(*v.node, u);
  }

  void store(Value& v) {
    v.at = At::stored;
    v.kernel = static_cast<int>(out_.kernels.size());
    const LazyBuffer& n = *v.node;
    Shape shape = n.shape;
    const Lazy target = n.op == Op::assign && roots_.contains(&n) ? in_place_target(n) : nullptr;
    // Only one of several writes to a value can have its bytes; the others are values of their own.
    const bool in_place = target && overwritten_.insert(target->buffer.get()).second;
    const bool part = in_place && writes_region(n);
    if (part) shape = n.src[1]->shape;
    if (n.op == Op::scatter) shape = n.src[1]->shape;
    out_.kernels.push_back({v.node, shape, in_place, {}});
    if (n.op == Op::copy) {
      Use whole{v.kernel, loops_of(n.shape, 0), {}, false};
      return add_use(n.src[0], whole);
    }
    Use u{v.kernel, loops_of(shape, 0), {}, false};
    for (const Int& i : u.spot.index) {
      if (i.is_constant()) continue;
      extents_.add(i.expr());
      u.open |= i.expr()->free;
    }
    if (part) return add_use(n.src[1], u);
    if (n.op == Op::scatter) return use_scatter(v, u);
    if (n.op == Op::scan) return use_scan(n, u);
    use_sources(n, u);
  }

  void use_scatter(const Value& v, const Use& u) {
    const LazyBuffer& n = *v.node;
    add_use(n.src[1], u);
    add_use(n.src[2], u);
    // The target is copied by a kernel of its own, before.
    Use copy{static_cast<int>(out_.kernels.size()), loops_of(n.shape, 0), {}, false};
    for (const Int& i : copy.spot.index) {
      if (i.is_constant()) continue;
      extents_.add(i.expr());
      copy.open |= i.expr()->free;
    }
    out_.kernels.push_back({n.src[0], n.shape, false, {}});
    add_use(n.src[0], copy);
  }

  void use_scan(const LazyBuffer& n, Use u) {
    const auto axis = static_cast<std::size_t>(std::get<Axes>(n.arg)[0]);
    const Expr r = range(next_bound(u.spot), n.shape[axis].expr());
    extents_.add(r);
    u.open -= u.spot.index[axis].expr()->free;
    u.open.add(static_cast<int>(r->arg));
    u.spot.index[axis] = Int(r);
    u.in_binder = true;
    add_use(n.src[0], u);
  }

  const ScheduleOptions& options_;
  const std::unordered_set<const LazyBuffer*>& forced_;
  std::unordered_set<const LazyBuffer*> roots_, too_large_, holds_sum_;
  std::unordered_set<const Buffer*> overwritten_;  // by an in-place write of this schedule
  std::unordered_map<const LazyBuffer*, int> nodes_, leaves_, readers_;
  Extents extents_;
  Placement out_;
};

}  // namespace

RangeSet Spot::free() const {
  RangeSet out = valid->free;
  for (const Int& i : index)
    if (!i.is_constant()) out |= i.expr()->free;
  return out;
}

const Lazy& base_of(const Lazy& n) { return n->is_view() ? n->base : n; }

// Where every index is inside by its own bounds, validity says nothing that the reader does not
// mask anyway: it is dropped, or it would drag loops in.
Spot through(const Lazy& n, const Spot& spot) {
  if (!n->is_view()) return spot;
  const Place place = n->tracker.at(spot.index);
  Spot out{unflatten_index(Int(place.index), n->base->shape), all_of(spot.valid, place.valid)};
  bool inside = true;
  for (std::size_t i = 0; i < out.index.size(); ++i)
    inside &= out.index[i].lo() >= 0 && proves_lt(out.index[i], n->base->shape[i]).value_or(false);
  if (inside) out.valid = always();
  return out;
}

Spot loops_of(const Shape& shape, int first_id) {
  Spot out{{}, always()};
  for (const Int& size : shape)
    out.index.push_back(size.is(1) ? Int(0) : Int(range(first_id++, size.expr())));
  return out;
}

int next_bound(const Spot& spot) {
  return std::max(RangeSet::first_bound - 1, spot.free().highest()) + 1;
}

Spot under_reduce(const LazyBuffer& n, const Spot& spot, std::vector<Expr>& ranges) {
  Spot inner = spot;
  int id = next_bound(spot);
  for (int axis : std::get<Axes>(n.arg)) {
    const auto i = static_cast<std::size_t>(axis);
    ranges.push_back(range(id++, n.src[0]->shape[i].expr()));
    inner.index[i] = Int(ranges.back());
  }
  return inner;
}

Lazy in_place_target(const LazyBuffer& assign) {
  Lazy n = assign.src[0];
  while (n->op == Op::assign && !n->is_realized()) n = n->src[0];
  return n->is_realized() && n->device == assign.device ? n : nullptr;
}

bool writes_region(const LazyBuffer& n) {
  return !std::get<Region>(n.arg).empty() && n.src[0]->is_realized() &&
         n.src[0]->device == n.device;
}

Spot in_region(const LazyBuffer& n, const Spot& spot) {
  const Region& region = std::get<Region>(n.arg);
  Spot out = spot;
  for (std::size_t i = 0; i < region.size(); ++i) {
    const Int from = (spot.index[i] - region[i].begin) * (region[i].step.lo() < 0 ? -1 : 1);
    const Int step = region[i].step.lo() < 0 ? -region[i].step : region[i].step;
    const Int at = from / step;
    const Expr on =
        all_of(equal(from % step, 0), all_of(at_least(at, 0), less(at, region[i].count)));
    out.index[i] = at;
    out.valid = all_of(out.valid, on);
  }
  return out;
}

bool is_stored_anyway(const Lazy& n) {
  if (n->is_realized()) return true;
  return n->op == Op::contiguous || n->op == Op::copy || n->op == Op::scan ||
         n->op == Op::scatter || n->op == Op::custom;
}

namespace {

bool from_iota(Lazy n) {
  for (;;) {
    if (n->is_realized()) return false;
    if (n->is_view()) n = n->base;
    else if (n->op == Op::cast) n = n->src[0];
    else return n->op == Op::iota;
  }
}

}  // namespace

bool is_gather(const Lazy& n) {
  if (n->op != Op::reduce || n->reduce_op != Op::add || n->is_realized() || n->src.empty())
    return false;
  const Lazy& body = base_of(n->src[0]);
  if (body->op != Op::where || body->is_realized() || body->src.size() != 3) return false;
  const Lazy& zero = base_of(body->src[2]);
  const Lazy& test = base_of(body->src[0]);
  if (zero->op != Op::constant || std::get<Scalar>(zero->arg).as_double() != 0) return false;
  return test->op == Op::eq && !test->is_realized() && test->src.size() == 2 &&
         (from_iota(test->src[0]) || from_iota(test->src[1]));
}

Placement place(std::span<const Lazy> roots, const std::unordered_set<const LazyBuffer*>& forced,
                const ScheduleOptions& options) {
  return Placer(roots, forced, options).run();
}

}  // namespace mote
