// Every rule of float_algebra and integer_algebra, by name, on random expressions of every dtype:
// both sides have the same value, NaN, infinities, -0.0 and the extremes of integers included.
#include "ir/rules.h"

#include <gtest/gtest.h>

#include <optional>

#include "ir/printer.h"
#include "random_expr.h"
#include "testing.h"

namespace mote {
namespace {

using testing::Random;
using testing::Values;

bool takes(Op op, DType t) {
  switch (op) {
    case Op::sqrt:
    case Op::exp:
    case Op::log:
    case Op::sin:
    case Op::cos:
    case Op::tanh:
    case Op::erf:
    case Op::trunc:
    case Op::div: return is_float(t);
    case Op::not_:
    case Op::and_:
    case Op::or_:
    case Op::xor_: return !is_float(t);
    case Op::idiv:
    case Op::mod:
    case Op::tdiv:
    case Op::tmod:
    case Op::shl:
    case Op::shr: return is_integer(t);
    default: return true;
  }
}

// Expressions that a pattern may match: its holes filled by loads, casts of loads and constants.
class Instance {
 public:
  explicit Instance(Random& random) : random_(random), constants_(random.chance(30)) {}

  std::optional<Expr> of(const Expr& pattern, DType t) {
    if (is_hole(pattern)) return filled(pattern, t);
    if (is_constant(pattern)) return constant(cast(scalar_of(pattern), t));
    const bool compares = pattern->op == Op::lt || pattern->op == Op::eq;
    if (compares && t != DType::boolean) return {};
    DType below = compares || pattern->op == Op::cast || pattern->op == Op::bitcast
                      ? random_.of(testing::all_dtypes())
                      : t;
    if (pattern->op == Op::bitcast && size_of(below) != size_of(t)) below = t;
    if (!takes(pattern->op, below)) return {};
    std::vector<Expr> src;
    for (const Expr& s : pattern->src) {
      const bool condition = pattern->op == Op::where && src.empty();
      const auto made = of(s, condition ? DType::boolean : below);
      if (!made) return {};
      src.push_back(*made);
    }
    return intern(pattern->op, t, src, pattern->arg, pattern->arg2);
  }

  const std::vector<Expr>& leaves() const { return leaves_; }

 private:
  std::optional<Expr> filled(const Expr& hole, DType t) {
    const auto at = holes_.find(hole);
    if (at == holes_.end())
      return holes_[hole] = hole->arg == 1 ? constant(random_.scalar(t)) : leaf(t);
    if (at->second->dtype != t) return {};
    return at->second;
  }

  Expr leaf(DType t) {
    if (constants_ || random_.chance(20)) return constant(random_.scalar(t));
    if (random_.chance(40)) return cast(read(random_.of(testing::all_dtypes())), t);
    return read(t);
  }

  Expr read(DType t) {
    leaves_.push_back(load(slot(static_cast<int>(leaves_.size()), t, 1), index_constant(0)));
    return leaves_.back();
  }

  Random& random_;
  bool constants_;
  std::unordered_map<Expr, Expr> holes_;
  std::vector<Expr> leaves_;
};

// The number of instances on which the rule applied.
int check(const Rule& rule, std::uint64_t seed, int tries) {
  Random random(seed);
  int applied = 0;
  for (int n = 0; n < tries; ++n) {
    Instance instance(random);
    const auto from = instance.of(rule.from, random.of(testing::all_dtypes()));
    if (!from) continue;
    const Expr to = apply(rule, *from);
    if (!to || to == *from) continue;
    ++applied;
    EXPECT_EQ(to->dtype, (*from)->dtype) << to_text(rule) << '\n' << to_text(*from);
    for (int k = 0; k < 20; ++k) {
      Values values;
      std::string at;
      for (const Expr& e : instance.leaves()) {
        values.emplace(e, random.scalar(e->dtype));
        at += std::string(name_of(e->dtype)) + " " + values.at(e).text() + "  ";
      }
      const Scalar a = testing::value_of(*from, values), b = testing::value_of(to, values);
      if (testing::same(a, b)) continue;
      ADD_FAILURE() << to_text(rule) << "\nof\n"
                    << to_text(*from) << "at " << at << "\n"
                    << a.text() << " became " << b.text();
      return applied;
    }
  }
  return applied;
}

void check_all(const RuleSet& rules) {
  for (const std::uint64_t seed : testing::seeds(1)) {
    SCOPED_TRACE(seed);
    for (const Rule& rule : rules.rules()) {
      EXPECT_GT(check(rule, seed, testing::rounds(20'000)), 0)
          << to_text(rule) << " was never tried";
    }
  }
}

TEST(Rules, FloatAlgebraKeepsEveryValue) { check_all(float_algebra()); }
TEST(Rules, IntegerAlgebraKeepsEveryValue) { check_all(integer_algebra()); }

TEST(Rules, NamesAreUniqueButForFolding) {
  std::unordered_map<std::string_view, int> count;
  for (const RuleSet* set : {&float_algebra(), &integer_algebra()})
    for (const Rule& rule : set->rules()) ++count[rule.name];
  for (const auto& [name, n] : count) EXPECT_TRUE(n == 1 || name == "fold_constants") << name;
}

}  // namespace
}  // namespace mote
