// Substitution and simplification of whole expressions, index arithmetic in its normal form.
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

}  // namespace

// Each limited expression becomes a variable with the tighter bounds, the rest is rebuilt (which
// simplifies by bounds), then the variable becomes the expression again.
Expr assume(const Expr& e, const Expr& condition) {
  std::vector<Limit> limits;
  for (const Expr& c : conjuncts(condition)) {
    const auto limit = limit_of(c);
    if (!limit) continue;
    bool merged = false;
    for (Limit& l : limits) {
      if (l.of != limit->of) continue;
      l.lo = std::max(l.lo, limit->lo);
      l.hi = std::min(l.hi, limit->hi);
      merged = true;
    }
    if (!merged) limits.push_back(*limit);
  }
  Bindings forth, back;
  for (const Limit& l : limits) {
    if (l.lo > l.hi) return e;  // the condition never holds: anything is right
    const Expr v =
        l.lo == l.hi ? index_constant(l.lo) : variable(cat("~assumed", forth.size()), l.lo, l.hi);
    forth.emplace(l.of, v);
    if (l.lo != l.hi) back.emplace(v, l.of);
  }
  return substitute(substitute(e, forth), back);
}

// clang-format off
const RuleSet& index_algebra() {
  static const Expr x = hole("x", DType::index), s = hole("s"), g = const_hole("g", DType::boolean);
  static const RuleSet rules{
      {"load_never", intern(Op::load, DType::float32, {s, x, g}),
       [](const Match& m) { return m.value(g).as_bool() ? load(m[s], m[x]) : constant(m.root()->dtype, 0); }},
      {"cast_index", intern(Op::cast, DType::float32, {x}),
       [](const Match& m) {
         if (m[x]->dtype != DType::index || !is_constant(m[x])) return Expr();
         return constant(cast(Scalar(DType::int64, m[x]->arg), m.root()->dtype));
       }},
  };
  return rules;
}
// clang-format on

Expr simplify(const Expr& e) {
  static const RuleSet rules = float_algebra() | integer_algebra() | index_algebra();
  return rewrite(e, rules, {.rebuild = rebuild});
}

}  // namespace mote
