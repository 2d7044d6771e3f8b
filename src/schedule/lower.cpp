#include "schedule/lower.h"

#include <algorithm>

#include "base/text.h"
#include "ir/rewrite.h"

namespace mote {
namespace {

struct SpotHash {
  std::size_t operator()(const std::pair<const LazyBuffer*, std::vector<Expr>>& key) const {
    std::size_t h = std::hash<const void*>()(key.first);
    for (const Expr& e : key.second) h = h * 1000003 + std::hash<Expr>()(e);
    return h;
  }
};

bool is_true(const Expr& e) { return e == always(); }

// The range stands for one of its values: x = r + offset solved for r.
std::optional<Int> solve(const Expr& affine, const Expr& r, const Int& x) {
  const Int rest = Int(affine) - Int(r);
  if (!rest.is_constant() && rest.expr()->free.has(static_cast<int>(r->arg))) {
    const Int other = Int(affine) + Int(r);  // offset - r
    if (!other.is_constant() && other.expr()->free.has(static_cast<int>(r->arg))) return {};
    return other - x;
  }
  return x - rest;
}

// The index expression inside of casts to an integer dtype that holds every value of it.
std::optional<Expr> as_index(const Expr& e) {
  if (e->op != Op::cast || !is_integer(e->dtype)) return {};
  const Expr& x = e->src[0];
  if (x->dtype == DType::index) {
    const Scalar lo(e->dtype, x->lo), hi(e->dtype, x->hi);
    if (lo.as_int() == x->lo && hi.as_int() == x->hi) return x;
    return {};
  }
  return {};
}

// X with r replaced: loads are gated and places in tables are clamped, for they are read where data
// says. What comes of it outside of the gate is masked by the caller.
Expr gathered(const Expr& body, const Expr& r, const Int& at, const Expr& gate) {
  const int id = static_cast<int>(r->arg);
  const Bindings binding{{r, at.expr()}};
  const auto gated = [&](const Expr& e, std::span<const Expr> src) {
    if (e->op == Op::stage_at) {
      std::vector<Expr> inside(src.begin(), src.end());
      for (std::size_t i = 1; i < inside.size(); ++i)
        if (e->src[i]->free.has(id))
          inside[i] = max(min(Int(inside[i]), Int(src[0]->src[i]->src[0]) - 1), 0).expr();
      return rebuild(e, inside);
    }
    if (e->op != Op::load || !e->src[1]->free.has(id)) return rebuild(e, src);
    const Expr have = src.size() > 2 ? src[2] : always();
    return load(src[0], src[1], all_of(have, gate));
  };
  return replace(body, binding, gated);
}

// sum_r where(r == e, X(r), 0) is X(e) where e is in range. Null where the body is not of that
// form.
Expr without_loop(const Expr& body, const std::vector<Expr>& ranges, std::vector<Expr>& left) {
  if (body->op != Op::where || !is_constant(body->src[2]) ||
      scalar_of(body->src[2]).as_double() != 0)
    return {};
  const auto tests = conjuncts(body->src[0]);
  for (const Expr& r : ranges) {
    for (const Expr& test : tests) {
      if (test->op != Op::eq) continue;
      for (int side = 0; side < 2; ++side) {
        const Expr& mine = test->src[static_cast<std::size_t>(side)];
        const Expr& other = test->src[static_cast<std::size_t>(1 - side)];
        const int id = static_cast<int>(r->arg);
        if (!mine->free.has(id) || other->free.has(id)) continue;
        const bool plain = mine->dtype == DType::index;
        const auto index = plain ? std::optional<Expr>(mine) : as_index(mine);
        if (!index) continue;
        const auto inner = as_index(other);
        const Int target = plain   ? Int(other)
                           : inner ? Int(*inner)
                                   : Int(cast(other, DType::index));
        const auto at = solve(*index, r, target);
        if (!at) continue;
        const Expr gate = all_of(at_least(*at, 0), less(*at, Int(r->src[0])));
        Expr condition = gate;
        for (const Expr& t : tests)
          if (t != test) condition = all_of(condition, gathered(t, r, *at, gate));
        std::ranges::copy_if(ranges, std::back_inserter(left),
                             [&](const Expr& x) { return x != r; });
        const Expr value = gathered(body->src[1], r, *at, gate);
        if (is_true(condition)) return value;
        return where(condition, value, body->src[2]);
      }
    }
  }
  return {};
}

class Lowerer {
 public:
  Lowerer(const Placement& placement, int k) : placement_(placement), kernel_(k) {}

  LoweredKernel run() {
    const KernelPlan& plan = placement_.kernels[static_cast<std::size_t>(kernel_)];
    const Lazy& n = plan.root;
    const bool copies_target = is_scatter_copy(plan);
    out_.writes = copies_target ? owner_of_copy() : n.get();
    const Expr to = slot_of(out_.writes);
    Spot spot = loops_of(plan.shape, 0);
    if (copies_target) {
      out_.stores = {store(to, flat_index(spot.index, plan.shape).expr(), value_at(n, spot))};
    } else if (n->op == Op::scatter) {
      lower_scatter(*n, to, spot);
    } else if (n->op == Op::scan) {
      lower_scan(*n, to, spot);
    } else if (plan.in_place && writes_region(*n)) {
      lower_assign(*n, to, spot);
    } else {
      out_.stores = {store(to, flat_index(spot.index, plan.shape).expr(), compute(n, spot))};
    }
    for (Expr& s : out_.stores) s = reorder_loops(simplify(s), plan);
    return std::move(out_);
  }

 private:
  bool is_scatter_copy(const KernelPlan& plan) const {
    return kernel_ > 0 &&
           placement_.kernels[static_cast<std::size_t>(kernel_ - 1)].root->op == Op::scatter &&
           placement_.kernels[static_cast<std::size_t>(kernel_ - 1)].root->src[0] == plan.root &&
           stored_kernel(base_of(plan.root).get()) != kernel_;
  }
  int stored_kernel(const LazyBuffer* n) const {
    const auto at = placement_.values.find(n);
    return at == placement_.values.end() ? -1 : at->second.kernel;
  }
  const LazyBuffer* owner_of_copy() const {
    return placement_.kernels[static_cast<std::size_t>(kernel_ - 1)].root.get();
  }

  Expr slot_of(const LazyBuffer* n) {
    const auto at = std::ranges::find(out_.slots, n);
    const auto number = at - out_.slots.begin();
    if (at == out_.slots.end()) out_.slots.push_back(n);
    return slot(static_cast<int>(number), n->dtype, std::max<std::int64_t>(n->elements(), 1));
  }

  void lower_scatter(const LazyBuffer& n, const Expr& to, const Spot& spot) {
    const auto axis = static_cast<std::size_t>(std::get<Axes>(n.arg)[0]);
    const Expr place = cast(value_at(n.src[1], spot), DType::index);
    std::vector<Int> index = spot.index;
    index[axis] = Int(place);
    const Expr gate = all_of(at_least(Int(place), 0), less(Int(place), n.shape[axis]));
    out_.accumulates = true;
    out_.stores = {
        store(to, flat_index(index, n.shape).expr(), value_at(n.src[2], spot), gate, n.reduce_op)};
  }

  void lower_scan(const LazyBuffer& n, const Expr& to, const Spot& spot) {
    const auto axis = static_cast<std::size_t>(std::get<Axes>(n.arg)[0]);
    const Expr r = range(next_bound(spot), n.shape[axis].expr());
    Spot inner = spot;
    inner.index[axis] = Int(r);
    const Expr body = value_at(n.src[0], inner);
    out_.stores = {store(to, flat_index(spot.index, n.shape).expr(),
                         scan(n.reduce_op, body, r, spot.index[axis].expr()))};
  }

  void lower_assign(const LazyBuffer& n, const Expr& to, const Spot& spot) {
    std::vector<Int> index = spot.index;
    const Region& region = std::get<Region>(n.arg);
    for (std::size_t i = 0; i < region.size(); ++i)
      index[i] = region[i].begin + region[i].step * spot.index[i];
    out_.stores = {store(to, flat_index(index, n.shape).expr(), value_at(n.src[1], spot))};
  }

  // The value of a node (a view or not) at a spot.
  Expr value_at(const Lazy& n, const Spot& spot) {
    if (!n->is_view()) return value_of(n, spot);
    const Place place = n->tracker.at(spot.index);
    if (n->base->is_realized() || is_read(n->base))  // a gated load is 0 where it is not valid
      return read(n->base, Int(place.index), all_of(spot.valid, place.valid));
    const Expr v = value_of(n->base, through(n, spot));
    if (is_true(place.valid)) return v;
    return where(place.valid, v, constant(Scalar(v->dtype, 0)));
  }

  bool is_read(const Lazy& n) const {
    const auto at = placement_.values.find(n.get());
    return at != placement_.values.end() && at->second.at == At::stored;
  }

  Expr read(const Lazy& n, const Int& flat, const Expr& valid) {
    const Expr s = slot_of(n.get());
    const bool inside = flat.lo() >= 0 && flat.hi() < s->arg2;
    if (n->elements() == 0) return constant(Scalar(n->dtype, 0));
    // Where the index is inside by itself the mask is the reader's business, unless it is 0 that
    // counts.
    if (is_true(valid) || (inside && is_true(valid))) return load(s, flat.expr());
    return load(s, flat.expr(), valid);
  }

  Expr value_of(const Lazy& n, const Spot& spot) {
    if (n->is_realized() || is_read(n))
      return read(n, flat_index(spot.index, n->shape), spot.valid);
    std::pair<const LazyBuffer*, std::vector<Expr>> key{n.get(), {spot.valid}};
    for (const Int& i : spot.index) key.second.push_back(i.expr());
    if (const auto at = memo_.find(key); at != memo_.end()) return at->second;
    const Value& v = placement_.values.at(n.get());
    const Expr e = v.at == At::staged && v.kernel == kernel_ ? table(v, spot) : compute(n, spot);
    memo_.emplace(std::move(key), e);
    return e;
  }

  Expr table(const Value& v, const Spot& spot) {
    Spot inner{spot.index, always()};
    std::vector<Expr> ranges;
    std::vector<Expr> indices;
    int id = RangeSet::first_bound;
    for (std::size_t i = 0; i < v.staged_axes.size(); ++i) {
      if (!v.staged_axes[i]) continue;
      ranges.push_back(range(id++, v.node->shape[i].expr()));
      indices.push_back(spot.index[i].expr());
      inner.index[i] = Int(ranges.back());
    }
    const Expr body = compute(v.node, inner);
    out_.rereads.emplace_back(v.node.get(), bytes_reread(body));
    return stage_at(stage(body, ranges), indices);
  }

  // What is read whatever the loops around the table are at.
  static std::int64_t bytes_reread(const Expr& body) {
    std::int64_t bytes = 0;
    for (const Expr& e : topological(body)) {
      if (e->op != Op::load || e->src[1]->free != bound_ids(e->src[1]->free)) continue;
      std::int64_t elements = 1;
      for (const Expr& r : topological(e->src[1]))
        if (r->op == Op::range)
          elements = std::min(elements * std::max<std::int64_t>(r->src[0]->hi, 1), e->src[0]->arg2);
      bytes += elements * size_of(e->dtype);
    }
    return bytes;
  }

  static RangeSet bound_ids(RangeSet set) {
    set.words[0] = set.words[1] = 0;
    return set;
  }

  Expr compute(const Lazy& n, const Spot& spot) {
    switch (n->op) {
      case Op::constant: return constant(std::get<Scalar>(n->arg));
      case Op::iota: return cast(spot.index[0].expr(), n->dtype);
      case Op::cast: return cast(value_at(n->src[0], spot), n->dtype);
      case Op::bitcast: return bitcast(value_at(n->src[0], spot), n->dtype);
      case Op::contiguous: return value_at(n->src[0], spot);
      case Op::reduce: return reduced(*n, spot);
      case Op::assign: {
        const Spot inner = in_region(*n, spot);
        if (std::get<Region>(n->arg).empty()) return value_at(n->src[1], spot);
        Spot written = inner;
        written.valid = all_of(spot.valid, inner.valid);
        return where(inner.valid, value_at(n->src[1], written), value_at(n->src[0], spot));
      }
      default: break;
    }
    if (!is_elementwise(n->op))
      throw InternalError(cat("schedule: ", std::string(name_of(n->op)), " cannot be inlined"));
    std::vector<Expr> src;
    for (const Lazy& s : n->src) src.push_back(value_at(s, spot));
    return intern(n->op, n->dtype, src);
  }

  Expr reduced(const LazyBuffer& n, const Spot& spot) {
    std::vector<Expr> ranges;
    const Spot inner = under_reduce(n, spot, ranges);
    Expr body = simplify(value_at(n.src[0], inner));
    if (n.reduce_op == Op::add) {
      std::vector<Expr> left;
      while (const Expr direct = without_loop(body, ranges, left)) {
        body = direct;
        ranges = std::move(left);
        left.clear();
        if (ranges.empty()) return body;
      }
    }
    // A sum of a sum over loops that the inner one depends on is one sum over both.
    if (body->op == Op::reduce && body->arg == static_cast<int>(n.reduce_op) &&
        n.reduce_op == Op::add) {
      const bool depends = std::ranges::all_of(
          ranges, [&](const Expr& r) { return body->free.has(static_cast<int>(r->arg)); });
      if (depends) {
        ranges.insert(ranges.end(), body->src.begin() + 1, body->src.end());
        body = body->src[0];
      }
    }
    return reduce(n.reduce_op, body, ranges);
  }

  // The loops that something is hoisted to come first; the ids of output ranges follow the order.
  Expr reorder_loops(const Expr& s, const KernelPlan& plan) const {
    if (plan.prefixes.empty()) return s;
    std::vector<RangeSet> prefixes = plan.prefixes;
    std::ranges::sort(prefixes, [](auto& a, auto& b) { return a.count() < b.count(); });
    std::vector<int> order;
    for (const RangeSet& p : prefixes)
      for (int id : p.ids())
        if (std::ranges::find(order, id) == order.end()) order.push_back(id);
    Bindings renamed;
    std::unordered_map<int, Expr> ranges;
    for (const Expr& e : topological(s))
      if (e->op == Op::range && e->arg < RangeSet::first_bound)
        ranges[static_cast<int>(e->arg)] = e;
    for (const Int& i : loops_of(plan.shape, 0).index) {
      if (i.is_constant()) continue;
      const int id = static_cast<int>(i.expr()->arg);
      ranges.emplace(id, i.expr());
      if (std::ranges::find(order, id) == order.end()) order.push_back(id);
    }
    for (std::size_t i = 0; i < order.size(); ++i)
      if (const auto at = ranges.find(order[i]); at != ranges.end())
        renamed.emplace(at->second, range(static_cast<int>(i), at->second->src[0]));
    return substitute(s, renamed);
  }

  const Placement& placement_;
  int kernel_;
  LoweredKernel out_;
  std::unordered_map<std::pair<const LazyBuffer*, std::vector<Expr>>, Expr, SpotHash> memo_;
};

}  // namespace

LoweredKernel lower_kernel(const Placement& placement, int k) {
  return Lowerer(placement, k).run();
}

}  // namespace mote
