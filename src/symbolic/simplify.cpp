// Substitution and simplification of whole expressions, index arithmetic in its normal form.
#include <algorithm>
#include <mutex>

#include "base/text.h"
#include "ir/rewrite.h"
#include "ir/rules.h"
#include "symbolic/int.h"

namespace mote {

Expr substitute(const Expr& e, const Bindings& bindings) {
  return bindings.empty() ? e : replace(e, bindings, rebuild);
}

Int substitute(const Int& size, const Bindings& bindings) {
  return size.is_constant() || bindings.empty() ? size : Int(substitute(size.expr(), bindings));
}

namespace {

struct Limit {
  Expr of;
  std::int64_t lo, hi;
};

// x < c, not (x < c), x == c: what a condition says of one expression.
std::optional<Limit> limit_of(const Expr& condition) {
  const bool negated = condition->op == Op::not_;
  const Expr c = negated ? condition->src[0] : condition;
  if ((c->op != Op::lt && c->op != Op::eq) || !is_constant(c->src[1])) return {};
  const Expr& x = c->src[0];
  if (x->dtype != DType::index) return {};
  const std::int64_t v = c->src[1]->arg;
  if (c->op == Op::eq) {
    if (negated) return {};
    return Limit{x, v, v};
  }
  if (negated) return Limit{x, std::max(x->lo, v), x->hi};
  return Limit{x, x->lo, std::min(x->hi, v - 1)};
}

// Each limited expression as a variable with the tighter bounds (or a constant); nullopt when the
// condition never holds.
std::optional<std::vector<std::pair<Expr, Expr>>> limited(const Expr& condition) {
  std::vector<Limit> limits;
  for (const Expr& c : conjuncts(condition)) {
    const auto limit = limit_of(c);
    if (!limit) continue;
    const auto same = std::ranges::find(limits, limit->of, &Limit::of);
    if (same == limits.end()) {
      limits.push_back(*limit);
    } else {
      same->lo = std::max(same->lo, limit->lo);
      same->hi = std::min(same->hi, limit->hi);
    }
  }
  std::vector<std::pair<Expr, Expr>> out;
  for (Limit& l : limits) {
    Bindings others;  // what they say of this one's parts
    for (const Limit& other : limits)
      if (other.of != l.of && other.lo < other.hi)
        others.emplace(other.of, variable(cat("~part", others.size()), other.lo, other.hi));
    const Expr narrowed = substitute(l.of, others);
    l.lo = std::max(l.lo, narrowed->lo);
    l.hi = std::min(l.hi, narrowed->hi);
    if (l.lo > l.hi) return {};
    out.emplace_back(l.of, l.lo == l.hi ? index_constant(l.lo)
                                        : variable(cat("~assumed", out.size()), l.lo, l.hi));
  }
  return out;
}

}  // namespace

// A limit on a sum, v = r + rest, is also one on r: r = v - rest cancels the rest where the sum is
// spread over other terms ((r + s) < 8 bounds r*7 + s*7). Of all the ways the tightest is kept.
Expr bounded_by(const Expr& e, const Expr& condition) {
  const auto limits = limited(condition);
  if (!limits) return index_constant(0);
  const auto width = [](const Expr& x) {
    return static_cast<double>(x->hi) - static_cast<double>(x->lo);
  };
  const auto by_sums = [&](Expr best) {
    for (const auto& [of, v] : *limits) {
      const Expr before = best;
      if (of->op != Op::add) continue;
      for (const Expr& r : of->src) {
        if (r->op == Op::mul || r->op == Op::constant) continue;
        const Expr tried = substitute(before, {{r, (Int(v) - (Int(of) - Int(r))).expr()}});
        if (width(tried) < width(best)) best = tried;
      }
    }
    return best;
  };
  const Expr apart = by_sums(e),
             at_once = by_sums(substitute(e, Bindings(limits->begin(), limits->end())));
  return width(at_once) <= width(apart) ? at_once : apart;
}

namespace {

// clang-format off
const RuleSet& index_algebra() {
  static const Expr x = hole("x", DType::index), s = hole("s"), g = const_hole("g", DType::boolean);
  static const RuleSet rules{
      {"load_never", intern(Op::load, DType::float32, {s, x, g}),
       [](const Match& m) {
         return m.value(g).as_bool() ? load(m[s], m[x]) : constant(m.root()->dtype, 0);
       }},
      {"cast_index", intern(Op::cast, DType::float32, {x}),
       [](const Match& m) {
         if (m[x]->dtype != DType::index || !is_constant(m[x])) return Expr();
         return constant(cast(Scalar(DType::int64, m[x]->arg), m.root()->dtype));
       }},
  };
  return rules;
}
// clang-format on

}  // namespace

Expr simplify(const Expr& e) {
  static const RuleSet rules = float_algebra() | integer_algebra() | index_algebra();
  return rewrite(e, rules, {.rebuild = rebuild});
}

}  // namespace mote
