#include "ir/rule.h"

#include "base/text.h"
#include "ir/printer.h"
#include "mote/error.h"

namespace mote {

const Expr& Match::operator[](const Expr& hole) const {
  for (const auto& [h, e] : bound_)
    if (h == hole.get()) return e;
  throw InternalError(cat("the hole '", std::string(hole->text), "' is not bound"));
}

bool Match::bind(const Expr& hole, const Expr& e) {
  if (hole->arg == 1 && !is_constant(e)) return false;  // a const_hole
  for (const auto& [h, bound] : bound_)
    if (h == hole.get()) return bound == e;
  bound_.emplace_back(hole.get(), e);
  return true;
}

RuleSet::RuleSet(std::initializer_list<Rule> rules) : RuleSet(std::vector<Rule>(rules)) {}

RuleSet::RuleSet(std::vector<Rule> rules) : rules_(std::move(rules)), by_op_(op_count) {
  for (const Rule& rule : rules_) by_op_[static_cast<std::size_t>(rule.from->op)].push_back(&rule);
}

RuleSet operator|(const RuleSet& a, const RuleSet& b) {
  std::vector<Rule> all = a.rules_;
  all.insert(all.end(), b.rules_.begin(), b.rules_.end());
  return RuleSet(std::move(all));
}

namespace {

bool same_value(const Expr& a, const Expr& b) {
  const double x = scalar_of(a).as_double(), y = scalar_of(b).as_double();
  return Scalar(DType::float64, x) == Scalar(DType::float64, y);
}

bool same_head(const Expr& pattern, const Expr& e) {
  if (pattern->op != e->op || pattern->src.size() != e->src.size()) return false;
  if (pattern->op == Op::constant) return same_value(pattern, e);
  return pattern->op == Op::cast || (pattern->arg == e->arg && pattern->arg2 == e->arg2);
}

bool match_pair(const Expr& p, const Expr& a, const Expr& b, Match& m) {
  return match(p->src[0], a, m) && match(p->src[1], b, m);
}

// The template with its holes filled, at the dtype of what was matched.
Expr instantiate(const Expr& t, const Match& m) {
  if (is_hole(t)) return m[t];
  if (t->op == Op::constant) return constant(cast(scalar_of(t), m.root()->dtype));
  std::vector<Expr> src;
  for (const Expr& s : t->src) src.push_back(instantiate(s, m));
  DType dtype = t->op == Op::where ? src[1]->dtype : src[0]->dtype;
  if (t->op == Op::lt || t->op == Op::eq) dtype = DType::boolean;
  if (t->op == Op::cast || t->op == Op::bitcast) dtype = m.root()->dtype;
  return intern(t->op, dtype, src, t->arg, t->arg2, t->text);
}

}  // namespace

bool match(const Expr& pattern, const Expr& e, Match& m) {
  if (is_hole(pattern)) return m.bind(pattern, e);
  if (pattern == e) return true;
  if (!same_head(pattern, e)) return false;
  if (pattern->src.size() == 2 && commutes(e->op)) {
    const Match before = m;
    if (match_pair(pattern, e->src[0], e->src[1], m)) return true;
    m = before;  // what a failed try has bound must not stay
    return match_pair(pattern, e->src[1], e->src[0], m);
  }
  for (std::size_t i = 0; i < e->src.size(); ++i)
    if (!match(pattern->src[i], e->src[i], m)) return false;
  return true;
}

Expr apply(const Rule& rule, const Expr& e) {
  Match m(e);
  if (!match(rule.from, e, m) || (rule.when && !rule.when(m))) return {};
  if (const auto* action = std::get_if<Action>(&rule.to)) return (*action)(m);
  return instantiate(std::get<Expr>(rule.to), m);
}

std::string to_text(const Rule& rule) {
  const auto* to = std::get_if<Expr>(&rule.to);
  return cat(std::string(rule.name), ": ", short_text(rule.from), " -> ",
             to ? short_text(*to) : std::string("(code)"), rule.when ? " if .." : "");
}

}  // namespace mote
