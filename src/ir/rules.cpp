#include "ir/rules.h"

#include <cmath>

namespace mote {
namespace {

const Expr x = hole("x"), y = hole("y"), c = hole("c", DType::boolean),
           d = hole("d", DType::boolean);
const Expr a = const_hole("a"), b = const_hole("b"), k = const_hole("k", DType::boolean);

bool folds(DType t) { return t != DType::index; }  // index arithmetic has its own normal form

// All sources constant: the value itself.
Expr fold(const Match& m) {
  std::vector<Scalar> values;
  for (const Expr& s : m.root()->src) {
    if (!is_constant(s) || s->dtype == DType::index) return {};
    values.push_back(scalar_of(s));
  }
  if (!folds(m.root()->dtype)) return {};
  return constant(evaluate(m.root()->op, m.root()->dtype, values));
}

std::vector<Rule> folding() {
  std::vector<Rule> rules;
  for (int i = 0; i < op_count; ++i) {
    const Op op = static_cast<Op>(i);
    if (!is_elementwise(op)) continue;
    const int arity = arity_of(op) < 0 ? 2 : arity_of(op);
    const Expr holes[] = {hole("p"), hole("q"), hole("r")};
    rules.push_back(
        {"fold_constants",
         intern(op, DType::float32, std::span<const Expr>(holes, static_cast<std::size_t>(arity))),
         fold});
  }
  return rules;
}

bool is_power_of_two(const Match& m) {
  int exponent;
  const double v = m.value(a).as_double();
  return std::frexp(std::abs(v), &exponent) == 0.5 && std::abs(exponent) < 100 &&
         bits_of(m.root()->dtype) >= 32;
}

bool integral(const Match& m) {
  return (is_integer(m.root()->dtype) || m.root()->dtype == DType::boolean) &&
         folds(m.root()->dtype);
}
bool boolean_root(const Match& m) { return m.root()->dtype == DType::boolean; }

// The bits of the significand, the first one included.
int precision(DType t) {
  switch (t) {
    case DType::float64: return 53;
    case DType::float32: return 24;
    case DType::float16: return 11;
    case DType::bfloat16: return 8;
    case DType::float8_e4m3: return 4;
    default: return 3;
  }
}

// Does every value of `from` survive in `to`?
bool widens(DType from, DType to) {
  if (from == DType::boolean || from == to) return true;
  if (is_float(from)) return is_float(to) && bits_of(to) > bits_of(from);
  if (is_float(to)) return bits_of(from) - is_signed(from) <= precision(to);
  if (is_signed(from)) return is_signed(to) && bits_of(to) >= bits_of(from);
  return bits_of(to) > bits_of(from);
}

// (to)(middle)x is (to)x where the middle loses nothing.
Expr cast_of_cast(const Match& m) {
  const Expr& inner = m.root()->src[0];
  if (inner->op != Op::cast || inner->dtype == DType::index) return {};
  const Expr& from = inner->src[0];
  if (from->dtype == DType::index || !widens(from->dtype, inner->dtype)) return {};
  if (m.root()->dtype == DType::boolean && is_float(from->dtype)) return {};
  // An integer wraps where a float that does not fit becomes 0.
  const bool through_float =
      is_float(inner->dtype) && is_integer(from->dtype) && is_integer(m.root()->dtype);
  if (through_float && !widens(from->dtype, m.root()->dtype)) return {};
  return cast(from, m.root()->dtype);
}

Expr decided(const Match& m) {  // a comparison that the bounds decide
  if (m.root()->lo != m.root()->hi) return {};
  return constant(Scalar(DType::boolean, m.root()->lo));
}

}  // namespace

// clang-format off
const RuleSet& float_algebra() {
  static const RuleSet rules = RuleSet(folding()) | RuleSet{
      {"mul_one",      x * 1.0f,                       x},
      {"add_negzero",  x + -0.0f,                      x},
      {"div_one",      intern(Op::div, float32, {x, constant(float32, 1)}), x},
      {"neg_neg",      -(-x),                          x},
      {"div_to_mul",   intern(Op::div, float32, {x, a}),
                       [](const Match& m) { return m[x] * (1.0 / m.value(a).as_double()); },
                       is_power_of_two},
      {"where_same",   where(c, x, x),                 x},
      {"where_not",    where(not_(c), x, y),           where(c, y, x)},
      {"where_const",  where(k, x, y),
                       [](const Match& m) { return m.value(k).as_bool() ? m[x] : m[y]; }},
      {"where_nested", where(c, where(c, x, y), y),    where(c, x, y)},
      {"cast_same",    intern(Op::cast, float32, {x}),
                       [](const Match& m) {
                         return m[x]->dtype == m.root()->dtype ? m[x] : Expr();
                       }},
      {"cast_cast",    intern(Op::cast, float32, {x}), cast_of_cast},
  };
  return rules;
}

const RuleSet& integer_algebra() {
  static const RuleSet rules{
      {"add_zero",   x + 0.0f,                               x, integral},
      {"mul_zero",   x * 0.0f,                               constant(float32, 0), integral},
      {"idiv_one",   intern(Op::idiv, float32, {x, constant(float32, 1)}), x, integral},
      {"tdiv_one",   intern(Op::tdiv, float32, {x, constant(float32, 1)}), x, integral},
      {"and_same",   and_(x, x),                             x},
      {"or_same",    or_(x, x),                              x},
      {"and_true",   and_(c, constant(DType::boolean, 1)),   c, boolean_root},
      {"and_false",  and_(c, constant(DType::boolean, 0)),   constant(DType::boolean, 0),
                     boolean_root},
      {"or_false",   or_(c, constant(DType::boolean, 0)),    c, boolean_root},
      {"or_true",    or_(c, constant(DType::boolean, 1)),    constant(DType::boolean, 1),
                     boolean_root},
      {"not_not",    not_(not_(x)),                          x},
      {"lt_bounds",  lt(x, y),                               decided},
      {"eq_bounds",  eq(x, y),                               decided},
      {"eq_true",    eq(c, constant(DType::boolean, 1)),     c,
                     [](const Match& m) { return m[c]->dtype == DType::boolean; }},
      {"eq_false",   eq(d, constant(DType::boolean, 0)),     not_(d),
                     [](const Match& m) { return m[d]->dtype == DType::boolean; }},
  };
  return rules;
}
// clang-format on

}  // namespace mote
