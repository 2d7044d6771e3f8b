// The normal form of index arithmetic: see int.h. Everything that makes an index node is here.
#include "symbolic/int.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "ir/bounds.h"
#include "ir/printer.h"
#include "mote/error.h"

namespace mote {
namespace {

__extension__ typedef __int128 Wide;

std::int64_t checked(Wide v) {
  if (v < INT64_MIN || v > INT64_MAX)
    throw ShapeError("index arithmetic: sizes do not fit in 63 bits");
  return static_cast<std::int64_t>(v);
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  return b == 0 ? 0 : a - floor_div(a, b) * b;
}

// ---- sums

struct Term {
  Expr e;
  std::int64_t factor;
};

struct Sum {
  std::vector<Term> terms;
  std::int64_t constant = 0;
};

// A structural order that reads well: ranges by id, then variables by name, then the rest.
int compare(const Expr& a, const Expr& b) {
  if (a == b) return 0;
  const auto rank = [](const Expr& e) {
    return e->op == Op::range ? 0 : e->op == Op::variable ? 1 : 2;
  };
  if (rank(a) != rank(b)) return rank(a) - rank(b);
  if (a->op != b->op) return a->op < b->op ? -1 : 1;
  if (a->arg != b->arg) return a->arg < b->arg ? -1 : 1;
  if (a->text != b->text) return a->text < b->text ? -1 : 1;
  if (a->src.size() != b->src.size()) return a->src.size() < b->src.size() ? -1 : 1;
  if (a->depth > 24 || b->depth > 24)
    return a->hash < b->hash ? -1 : 1;  // deep: by structural hash
  for (std::size_t i = 0; i < a->src.size(); ++i)
    if (const int c = compare(a->src[i], b->src[i])) return c;
  return a->hash < b->hash ? -1 : 1;
}

void add_term(Sum& sum, const Expr& e, std::int64_t factor) {
  if (factor == 0) return;
  if (e->op == Op::constant) {
    sum.constant = checked(sum.constant + Wide(e->arg) * factor);
  } else if (e->op == Op::add) {
    for (const Expr& s : e->src) add_term(sum, s, factor);
  } else if (e->op == Op::mul && is_constant(e->src[1])) {
    add_term(sum, e->src[0], checked(Wide(factor) * e->src[1]->arg));
  } else {
    for (Term& t : sum.terms) {
      if (t.e != e) continue;
      t.factor = checked(Wide(t.factor) + factor);
      return;
    }
    sum.terms.push_back({e, factor});
  }
}

// (x // c) * c*f + (x % c) * f  ->  x * f
bool merge_quotient(Sum& sum) {
  for (std::size_t i = 0; i < sum.terms.size(); ++i) {
    const Term q = sum.terms[i];
    if (q.e->op != Op::idiv || !is_constant(q.e->src[1])) continue;
    const std::int64_t c = q.e->src[1]->arg;
    for (std::size_t j = 0; j < sum.terms.size(); ++j) {
      const Term r = sum.terms[j];
      if (r.e->op != Op::mod || r.e->src[1] != q.e->src[1] || r.e->src[0] != q.e->src[0]) continue;
      if (Wide(r.factor) * c != q.factor) continue;
      sum.terms.erase(sum.terms.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
      sum.terms.erase(sum.terms.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
      add_term(sum, q.e->src[0], r.factor);
      return true;
    }
  }
  return false;
}

// A node of an op that commutes: one for both orders.
Expr commuted(Op op, const Expr& a, const Expr& b) {
  const bool ordered = compare(a, b) <= 0;
  return intern(op, DType::index, {ordered ? a : b, ordered ? b : a});
}

Expr times(const Expr& e, std::int64_t factor) {
  return factor == 1 ? e : intern(Op::mul, DType::index, {e, index_constant(factor)});
}

Expr made(Sum sum) {
  std::erase_if(sum.terms, [](const Term& t) { return t.factor == 0; });
  while (merge_quotient(sum)) std::erase_if(sum.terms, [](const Term& t) { return t.factor == 0; });
  std::ranges::sort(sum.terms, [](const Term& a, const Term& b) { return compare(a.e, b.e) < 0; });
  std::vector<Expr> src;
  for (const Term& t : sum.terms) src.push_back(times(t.e, t.factor));
  if (sum.constant != 0 || src.empty()) src.push_back(index_constant(sum.constant));
  return src.size() == 1 ? src[0] : intern(Op::add, DType::index, src);
}

Sum sum_of(const Expr& e, std::int64_t factor = 1) {
  Sum sum;
  add_term(sum, e, factor);
  return sum;
}

Expr decided(const Expr& e) {
  return e->lo == e->hi && e->op != Op::constant ? index_constant(e->lo) : e;
}

// ---- division and remainder

std::int64_t common_factor(const Sum& sum, std::int64_t with) {
  std::int64_t g = std::abs(with);
  for (const Term& t : sum.terms) g = std::gcd(g, std::abs(t.factor));
  return g;
}

struct Split {
  Sum whole;  // divided by c already
  Sum rest;
};

// The terms that c divides, and the others; the constant is split by floor.
Split split_by(const Sum& sum, std::int64_t c) {
  Split out;
  for (const Term& t : sum.terms) {
    if (t.factor % c == 0) out.whole.terms.push_back({t.e, t.factor / c});
    else out.rest.terms.push_back(t);
  }
  out.whole.constant = floor_div(sum.constant, c);
  out.rest.constant = floor_mod(sum.constant, c);
  return out;
}

// A sum as size*whole + rest with 0 <= rest < size, where the size divides c and is not 1.
struct Blocks {
  std::int64_t size;
  Expr whole, rest;
};

std::optional<Blocks> blocks_of(const Sum& sum, std::int64_t c) {
  for (const Term& t : sum.terms) {
    const std::int64_t size = std::gcd(t.factor, c);
    if (size == 1) continue;
    const Split parts = split_by(sum, size);
    const Expr rest = made(parts.rest);
    if (rest->lo >= 0 && rest->hi < size) return Blocks{size, made(parts.whole), rest};
  }
  return {};
}

// The least multiple of c that makes a not negative: there floor division is what machines do. 0
// where a is not negative, or nothing is known of it.
std::int64_t lift_of(const Expr& a, std::int64_t c) {
  if (a->lo >= 0 || a->lo < -(std::int64_t{1} << 52) || c > INT32_MAX) return 0;
  return -floor_div(a->lo, c) * c;
}

Expr lifted(const Expr& a, std::int64_t by) {
  Sum sum = sum_of(a);
  sum.constant = checked(Wide(sum.constant) + by);
  return by == 0 ? a : made(std::move(sum));
}

Expr divide(const Expr& a, std::int64_t c) {
  if (c == 0) return index_constant(0);
  if (c == 1) return a;
  if (c == -1) return made(sum_of(a, -1));
  if (floor_div(a->lo, c) == floor_div(a->hi, c)) return index_constant(floor_div(a->lo, c));
  if (c < 0) return divide(made(sum_of(a, -1)), -c);  // floor(a / -c) = floor(-a / c)
  Sum sum = sum_of(a);
  Split parts = split_by(sum, c);
  if (!parts.whole.terms.empty() || parts.whole.constant != 0) {
    add_term(parts.whole, divide(made(parts.rest), c), 1);
    return made(parts.whole);
  }
  // (k*x + r) // c with k | c and the rest r in 0..k-1 is x // (c/k).
  if (const auto blocks = blocks_of(sum, c)) return divide(blocks->whole, c / blocks->size);
  if (a->op == Op::idiv && is_constant(a->src[1]) && a->src[1]->arg > 0)
    return divide(a->src[0], checked(Wide(a->src[1]->arg) * c));
  const std::int64_t by = lift_of(a, c);
  return lifted(decided(intern(Op::idiv, DType::index, {lifted(a, by), index_constant(c)})),
                -by / c);
}

Expr remainder(const Expr& a, std::int64_t c) {
  if (c == 0 || c == 1 || c == -1) return index_constant(0);
  if (c < 0) return made(sum_of(remainder(made(sum_of(a, -1)), -c), -1));
  if (floor_div(a->lo, c) == floor_div(a->hi, c)) {  // a - c * quotient
    Sum sum = sum_of(a);
    sum.constant = checked(sum.constant - Wide(c) * floor_div(a->lo, c));
    return made(sum);
  }
  Sum sum = sum_of(a);
  // Factors modulo c; then a common factor comes out: (k*x) % (k*n) is k * (x % n).
  bool reduced = false;
  for (Term& t : sum.terms) {
    const std::int64_t f = floor_mod(t.factor, c);
    reduced |= f != t.factor;
    t.factor = f;
  }
  reduced |= floor_mod(sum.constant, c) != sum.constant;
  sum.constant = floor_mod(sum.constant, c);
  if (reduced) return remainder(made(sum), c);
  if (const auto blocks = blocks_of(sum, c)) {
    Sum out = sum_of(remainder(blocks->whole, c / blocks->size), blocks->size);
    add_term(out, blocks->rest, 1);
    return made(out);
  }
  if (a->op == Op::mod && is_constant(a->src[1]) && a->src[1]->arg > 0 && a->src[1]->arg % c == 0)
    return remainder(a->src[0], c);
  return decided(intern(Op::mod, DType::index, {lifted(a, lift_of(a, c)), index_constant(c)}));
}

// A symbolic divisor: (q*n + r) // n with 0 <= r < n is q.
std::optional<std::pair<Expr, Expr>> split_symbolic(const Expr& a, const Expr& n) {
  Sum high, low;
  const Sum all = sum_of(a);
  low.constant = all.constant;
  for (const Term& t : all.terms) {
    if (t.e == n) high.constant += t.factor;
    else if (t.e->op == Op::mul && (t.e->src[0] == n || t.e->src[1] == n))
      add_term(high, t.e->src[0] == n ? t.e->src[1] : t.e->src[0], t.factor);
    else low.terms.push_back(t);
  }
  const Expr rest = made(low);
  if (rest->lo < 0 || n->lo <= 0) return {};
  const auto below = proves_lt(Int(rest), Int(n));
  if (!below || !*below) return {};
  return std::pair{made(high), rest};
}

Expr multiply(const Expr& a, const Expr& b) {
  if (is_constant(b)) return made(sum_of(a, b->arg));
  if (is_constant(a)) return made(sum_of(b, a->arg));
  if (b->op == Op::add || (b->op == Op::mul && is_constant(b->src[1]))) {
    Sum out;
    const Sum right = sum_of(b);
    for (const Term& t : right.terms) add_term(out, multiply(a, t.e), t.factor);
    add_term(out, a, right.constant);
    return made(out);
  }
  if (a->op == Op::add || (a->op == Op::mul && is_constant(a->src[1]))) return multiply(b, a);
  return decided(commuted(Op::mul, a, b));
}

}  // namespace

// ---- Int

Int::Int(Expr e) {
  if (e->op == Op::constant) value_ = e->arg;
  else if (e->lo == e->hi) value_ = e->lo;
  else expr_ = std::move(e);
}

std::int64_t Int::value() const {
  if (!expr_) return value_;
  throw ShapeError(
      cat("the size '", text(), "' is symbolic; a number is needed here, so bind it first"));
}

Expr Int::expr() const { return expr_ ? expr_ : index_constant(value_); }
std::int64_t Int::lo() const { return expr_ ? expr_->lo : value_; }
std::int64_t Int::hi() const { return expr_ ? expr_->hi : value_; }
std::string Int::text() const { return expr_ ? short_text(expr_) : std::to_string(value_); }

Int operator+(const Int& a, const Int& b) {
  if (a.is_constant() && b.is_constant()) return checked(Wide(a.value()) + b.value());
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  Sum sum = sum_of(a.expr());
  add_term(sum, b.expr(), 1);
  return Int(made(std::move(sum)));
}

Int operator-(const Int& a) { return a * Int(-1); }
Int operator-(const Int& a, const Int& b) { return a + -b; }

Int operator*(const Int& a, const Int& b) {
  if (a.is_constant() && b.is_constant()) return checked(Wide(a.value()) * b.value());
  return Int(multiply(a.expr(), b.expr()));
}

Int operator/(const Int& a, const Int& b) {
  if (a.is_constant() && b.is_constant())
    return b.is(-1) ? -a : Int(floor_div(a.value(), b.value()));
  if (b.is_constant()) return Int(divide(a.expr(), b.value()));
  if (a == b && b.lo() > 0) return 1;
  if (const auto parts = split_symbolic(a.expr(), b.expr())) return Int(parts->first);
  return Int(decided(intern(Op::idiv, DType::index, {a.expr(), b.expr()})));
}

Int operator%(const Int& a, const Int& b) {
  if (a.is_constant() && b.is_constant()) return floor_mod(a.value(), b.value());
  if (b.is_constant()) return Int(remainder(a.expr(), b.value()));
  if (a == b) return 0;
  if (const auto parts = split_symbolic(a.expr(), b.expr())) return Int(parts->second);
  return Int(decided(intern(Op::mod, DType::index, {a.expr(), b.expr()})));
}

Int min(const Int& a, const Int& b) {
  if (a == b || a.hi() <= b.lo()) return a;
  if (b.hi() <= a.lo()) return b;
  return Int(commuted(Op::min, a.expr(), b.expr()));
}

Int max(const Int& a, const Int& b) {
  if (a == b || a.lo() >= b.hi()) return a;
  if (b.lo() >= a.hi()) return b;
  return Int(commuted(Op::max, a.expr(), b.expr()));
}

Int ceil_div(const Int& a, const Int& b) { return (a + b - 1) / b; }

std::optional<bool> proves_lt(const Int& a, const Int& b) {
  if (a.is_constant() && b.is_constant()) return a.value() < b.value();
  const Int d = b - a;  // a < b iff d > 0: what they share cancels
  if (d.lo() > 0) return true;
  if (d.hi() <= 0) return false;
  return {};
}

std::optional<bool> proves_eq(const Int& a, const Int& b) {
  const Int d = a - b;
  if (d.is(0)) return true;
  if (d.lo() > 0 || d.hi() < 0) return false;
  return {};
}

// ---- conditions

Expr always() { return constant(Scalar(DType::boolean, 1)); }
Expr never() { return constant(Scalar(DType::boolean, 0)); }

namespace {
bool is_true(const Expr& e) { return e->lo == 1 && e->dtype == DType::boolean; }
bool is_false(const Expr& e) { return e->hi == 0 && e->dtype == DType::boolean; }

// x // c < k is x < k*c; and k*x + r < k*q with 0 <= r < k is x < q. Null where neither holds.
Expr less_in_blocks(const Sum& sum, std::int64_t limit) {
  if (sum.terms.size() == 1) {
    const Term& t = sum.terms[0];
    if (t.e->op != Op::idiv || !is_constant(t.e->src[1]) || t.e->src[1]->arg <= 0) return {};
    const Int x(t.e->src[0]);
    if (t.factor == 1) return less(x, checked(Wide(limit) * t.e->src[1]->arg));
    return {};
  }
  if (const auto blocks = blocks_of(sum, limit))
    return less(Int(blocks->whole), limit / blocks->size);
  return {};
}

}  // namespace

// a < b with everything symbolic on the left and the constant on the right; a common factor of the
// left side is divided out: 4*i < 10 is i < 3.
Expr less(const Int& a, const Int& b) {
  if (const auto known = proves_lt(a, b)) return *known ? always() : never();
  Sum sum = sum_of((a - b).expr());  // sum < 0
  std::int64_t limit = checked(-Wide(sum.constant));
  sum.constant = 0;
  const std::int64_t g = common_factor(sum, 0);
  if (g > 1) {
    for (Term& t : sum.terms) t.factor /= g;
    limit = -floor_div(-limit, g);  // x*g < limit iff x < ceil(limit / g)
  }
  if (const Expr blocks = less_in_blocks(sum, limit)) return blocks;
  const bool negative = std::ranges::all_of(sum.terms, [](const Term& t) { return t.factor < 0; });
  if (negative) {  // -x < limit iff not (x < 1 - limit)
    for (Term& t : sum.terms) t.factor = -t.factor;
    return negate(lt(made(sum), index_constant(checked(1 - Wide(limit)))));
  }
  return lt(made(sum), index_constant(limit));
}

Expr at_least(const Int& a, const Int& b) { return negate(less(a, b)); }

Expr equal(const Int& a, const Int& b) {
  if (const auto known = proves_eq(a, b)) return *known ? always() : never();
  Sum sum = sum_of((a - b).expr());
  std::int64_t value = checked(-Wide(sum.constant));
  sum.constant = 0;
  const std::int64_t g = common_factor(sum, 0);
  if (value % g != 0) return never();
  std::ranges::sort(sum.terms, [](const Term& p, const Term& q) { return compare(p.e, q.e) < 0; });
  const std::int64_t sign = sum.terms[0].factor < 0 ? -1 : 1;
  for (Term& t : sum.terms) t.factor = t.factor / g * sign;
  return eq(made(sum), index_constant(value / g * sign));
}

std::vector<Expr> conjuncts(const Expr& condition) {
  std::vector<Expr> out, stack{condition};
  while (!stack.empty()) {
    const Expr e = stack.back();
    stack.pop_back();
    if (e->op == Op::and_ && e->dtype == DType::boolean) {
      stack.push_back(e->src[1]);
      stack.push_back(e->src[0]);
    } else if (!is_true(e) && std::ranges::find(out, e) == out.end()) {
      out.push_back(e);
    }
  }
  return out;
}

Expr all_of(const Expr& a, const Expr& b) {
  if (is_false(a) || is_false(b)) return never();
  if (is_true(a) || a == b) return b;
  if (is_true(b)) return a;
  Expr out = a;
  const auto have = conjuncts(a);
  for (const Expr& c : conjuncts(b)) {
    if (std::ranges::find(have, negate(c)) != have.end()) return never();
    if (std::ranges::find(have, c) == have.end()) out = and_(out, c);
  }
  return out;
}

Expr any_of(const Expr& a, const Expr& b) {
  if (is_true(a) || is_true(b)) return always();
  if (is_false(a) || a == b) return b;
  return is_false(b) ? a : or_(a, b);
}

Expr negate(const Expr& c) {
  if (is_true(c)) return never();
  if (is_false(c)) return always();
  return c->op == Op::not_ ? c->src[0] : not_(c);
}

Int select(const Expr& condition, const Int& a, const Int& b) {
  if (is_true(condition) || a == b) return a;
  if (is_false(condition)) return b;
  return Int(where(condition, a.expr(), b.expr()));
}

// ---- rebuilding

namespace {

bool on_indices(const Expr& e, std::span<const Expr> src) {
  return e->dtype == DType::index || (!src.empty() && src[0]->dtype == DType::index);
}

}  // namespace

Expr rebuild(const Expr& e, std::span<const Expr> src) {
  if (e->op == Op::and_ && e->dtype == DType::boolean) return all_of(src[0], src[1]);
  if (e->op == Op::not_ && e->dtype == DType::boolean) return negate(src[0]);
  if (e->op == Op::or_ && e->dtype == DType::boolean) return any_of(src[0], src[1]);
  if (e->op == Op::load && src.size() == 3 && is_true(src[2])) return load(src[0], src[1]);
  if (!is_elementwise(e->op) || !on_indices(e, src)) return with_sources(e, src);
  switch (e->op) {
    case Op::add: {
      Sum sum;
      for (const Expr& s : src) add_term(sum, s, 1);
      return made(std::move(sum));
    }
    case Op::neg: return made(sum_of(src[0], -1));
    case Op::mul: return multiply(src[0], src[1]);
    case Op::idiv: return (Int(src[0]) / Int(src[1])).expr();
    case Op::mod: return (Int(src[0]) % Int(src[1])).expr();
    case Op::tdiv:
    case Op::tmod:  // as floor division where nothing is negative
      if (src[0]->lo < 0 || src[1]->lo <= 0) return with_sources(e, src);
      return (e->op == Op::tdiv ? Int(src[0]) / Int(src[1]) : Int(src[0]) % Int(src[1])).expr();
    case Op::min: return min(Int(src[0]), Int(src[1])).expr();
    case Op::max: return max(Int(src[0]), Int(src[1])).expr();
    case Op::lt: return less(Int(src[0]), Int(src[1]));
    case Op::eq: return equal(Int(src[0]), Int(src[1]));
    case Op::where: return select(src[0], Int(src[1]), Int(src[2])).expr();
    default: return with_sources(e, src);
  }
}

std::int64_t evaluate(const Int& size, const std::unordered_map<Expr, std::int64_t>& values) {
  if (size.is_constant()) return size.value();
  std::unordered_map<Expr, Scalar> done;
  for (const Expr& e : topological(size.expr())) {
    if (const auto at = values.find(e); at != values.end()) {
      done.emplace(e, Scalar(DType::index, at->second));
      continue;
    }
    if (e->op == Op::constant) {
      done.emplace(e, scalar_of(e));
      continue;
    }
    if (!is_elementwise(e->op))
      throw InternalError(cat("evaluate: '", short_text(e), "' has no value"));
    std::vector<Scalar> src;
    for (const Expr& s : e->src) src.push_back(done.at(s));
    done.emplace(e, mote::evaluate(e->op, e->dtype, src));
  }
  return done.at(size.expr()).as_int();
}

int index_bits(const Expr& root) {
  for (const Expr& e : topological(root)) {
    if (e->dtype == DType::index && (e->lo < INT32_MIN || e->hi > INT32_MAX)) return 64;
    if (e->op == Op::add && e->dtype == DType::index) {  // partial sums, in any order
      Wide low = 0, high = 0;
      for (const Expr& s : e->src) {
        low += std::min<std::int64_t>(s->lo, 0);
        high += std::max<std::int64_t>(s->hi, 0);
      }
      if (low < INT32_MIN || high > INT32_MAX) return 64;
    }
  }
  return 32;
}

std::string to_text(const Shape& shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) out += cat(i ? ", " : "", shape[i].text());
  return out + (shape.size() == 1 ? ",)" : ")");
}

Int product(std::span<const Int> sizes) {
  Int out = 1;
  for (const Int& s : sizes) out = out * s;
  return out;
}

}  // namespace mote
