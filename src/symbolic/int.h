// Int: an integer, or an integer expression of Variables and ranges (dtype index). Shapes, strides,
// offsets and extents are made of it. Its operators build the normal form of index arithmetic:
//
//   Int i = range(0, 8), j = range(1, 4);
//   i * 4 + j + i * 4          (i*8 + j): one n-ary sum, sorted, coefficients merged
//   (i * 4 + j) / 4 == i       true: j is below 4       (floor division)
//   (i * 4 + j) % 4 == j
//
// A sum is one n-ary `add`: terms sorted by a structural order, each `x` or `mul(x, constant)`, no
// term a sum or a constant, then at most one constant, last. Division and remainder by constants
// take out what the bounds decide. Only this file's functions make index nodes; every stage that
// rebuilds an index by substitution goes through `rebuild`.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"

namespace mote {

class Int {
 public:
  Int() = default;
  Int(std::int64_t v) : value_(v) {}
  Int(int v) : value_(v) {}
  Int(Expr e);  // index dtype; a constant becomes a plain integer

  bool is_constant() const { return !expr_; }
  std::int64_t value() const;  // of a constant; ShapeError names the symbol otherwise
  bool is(std::int64_t v) const { return !expr_ && value_ == v; }
  Expr expr() const;  // always an expression
  std::int64_t lo() const;
  std::int64_t hi() const;
  std::string text() const;  // "3", "i", "i*4 + 1"
  bool operator==(const Int& o) const { return value_ == o.value_ && expr_ == o.expr_; }

 private:
  std::int64_t value_ = 0;
  Expr expr_;  // null for a constant
};

// Overflow of constants throws ShapeError ("sizes do not fit in 63 bits").
Int operator+(const Int&, const Int&);
Int operator-(const Int&, const Int&);
Int operator-(const Int&);
Int operator*(const Int&, const Int&);
Int operator/(const Int&, const Int&);  // floor
Int operator%(const Int&, const Int&);  // sign of the divisor
Int min(const Int&, const Int&);
Int max(const Int&, const Int&);
Int ceil_div(const Int&, const Int&);
inline Int& operator+=(Int& a, const Int& b) { return a = a + b; }
inline Int& operator*=(Int& a, const Int& b) { return a = a * b; }

// What the bounds decide: nullopt when they do not.
std::optional<bool> proves_lt(const Int& a, const Int& b);
std::optional<bool> proves_eq(const Int& a, const Int& b);

// Conditions on indices (bool Exprs), with what bounds decide folded to constants.
Expr less(const Int& a, const Int& b);
Expr at_least(const Int& a, const Int& b);
Expr equal(const Int& a, const Int& b);
Expr all_of(const Expr& a, const Expr& b);  // and, with true and false folded, duplicates merged
Expr any_of(const Expr& a, const Expr& b);
Expr negate(const Expr& condition);
Expr always();  // the constants true and false
Expr never();
Int select(const Expr& condition, const Int& a, const Int& b);
std::vector<Expr> conjuncts(const Expr& condition);

// The node with other sources, in normal form where it is index arithmetic or a condition on
// indices. What rewriter and substitution use.
Expr rebuild(const Expr& e, std::span<const Expr> sources);

// e with the keys replaced, rebuilt in normal form. Memo in the object: one per substitution.
using Bindings = std::unordered_map<Expr, Expr>;
Expr substitute(const Expr& e, const Bindings&);
Int substitute(const Int&, const Bindings&);

// For its bounds alone: what they are where the condition is true (i < 4 makes i % 4 to i). 0 where
// it never is.
Expr bounded_by(const Expr& e, const Expr& condition);

// The value with variables and ranges bound to integers.
std::int64_t evaluate(const Int&, const std::unordered_map<Expr, std::int64_t>&);
// 32 when every intermediate value provably fits in int32, else 64.
int index_bits(const Expr&);

// The simplifier of every stage: float_algebra | integer rules | index_algebra, rebuilding by
// `rebuild`.
Expr simplify(const Expr&);

using Shape = std::vector<Int>;
std::string to_text(const Shape&);  // "(2, 3)", "(4,)", "()"
Int product(std::span<const Int>);

}  // namespace mote
