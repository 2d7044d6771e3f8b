// Rules: rewrites as plain data. A pattern is an ordinary expression with holes, so a rule prints
// itself, is indexed by its root op, shows in traces by name and is tested alone.
//
//   {"mul_one", x * 1.0f, x}
//
// A hole matches any expression; a repeated one must meet the same node. Patterns leave dtypes
// open: one of float32 holes matches every dtype, a constant matches by its value (0 and -0
// differ), and the constants and operations of a template take the dtype of what was matched.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/expr.h"

namespace mote {

// The bindings of one match.
class Match {
 public:
  explicit Match(Expr root) : root_(std::move(root)) {}
  const Expr& root() const { return root_; }  // the matched node
  const Expr& operator[](const Expr& hole) const;
  Scalar value(const Expr& hole) const { return scalar_of((*this)[hole]); }
  bool bind(const Expr& hole, const Expr& e);  // false: bound to another node already

 private:
  Expr root_;
  std::vector<std::pair<const Node*, Expr>> bound_;
};

using Action = std::function<Expr(const Match&)>;  // null: the rule does not apply after all
using Guard = std::function<bool(const Match&)>;

struct Rule {
  std::string_view name;          // shown in traces and errors
  Expr from;                      // left side, may hold holes
  std::variant<Expr, Action> to;  // right side: a template with the same holes, or code
  Guard when = {};                // a condition on the match
};

class RuleSet {
 public:
  RuleSet(std::initializer_list<Rule> rules);
  explicit RuleSet(std::vector<Rule> rules);
  RuleSet(const RuleSet& o) : RuleSet(o.rules_) {}  // by_op_ points into its own rules
  RuleSet(RuleSet&&) = default;
  RuleSet& operator=(const RuleSet&) = delete;
  const std::vector<Rule>& rules() const { return rules_; }
  const std::vector<const Rule*>& for_op(Op op) const {
    return by_op_[static_cast<std::size_t>(op)];
  }
  friend RuleSet operator|(const RuleSet& a, const RuleSet& b);

 private:
  std::vector<Rule> rules_;
  std::vector<std::vector<const Rule*>> by_op_;  // in the order they were written
};

bool match(const Expr& pattern, const Expr& e, Match& m);
// The right side for a match; null where the rule does not apply.
Expr apply(const Rule&, const Expr& e);
std::string to_text(const Rule&);  // "mul_one: (x * 1.0) -> x"

}  // namespace mote
