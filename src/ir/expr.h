// Expr: a handle of pointer size on an immutable, interned node. Building the same node twice gives
// the same node, so == is one pointer compare and memo tables are keyed by the pointer.
//
//   Expr i = range(0, 4), x = load(slot(0, float32, 4), i);
//   x + x == x + x                        true: one node
//   to_text(x + x)                        prints all of it, a line a node
//
// Constructors only intern, they never simplify: x + 0 is a node. Index arithmetic (dtype index) is
// made by Int in symbolic/int.h, which keeps sums canonical.
// Nodes are counted, leave the table with their last owner, and are freed by a loop: a chain of a
// million nodes is no danger. Building and dropping is safe from many threads.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/scalar.h"
#include "ir/op.h"
#include "mote/dtype.h"

namespace mote {

// The ids of ranges that occur free in an expression. Ids 0..127 are output ranges, from 128 up
// they are bound by a reduce, scan or stage of an AST; a Kernel numbers its ranges as it likes.
struct RangeSet {
  static constexpr int capacity = 256;
  static constexpr int first_bound = 128;
  std::array<std::uint64_t, 4> words{};

  bool has(int id) const { return (words[id >> 6] >> (id & 63)) & 1; }
  void add(int id) { words[id >> 6] |= std::uint64_t{1} << (id & 63); }
  void remove(int id) { words[id >> 6] &= ~(std::uint64_t{1} << (id & 63)); }
  bool empty() const { return !(words[0] | words[1] | words[2] | words[3]); }
  int count() const;
  int highest() const;           // the greatest id, -1 when empty
  std::vector<int> ids() const;  // ascending
  bool contains(const RangeSet& other) const;
  bool intersects(const RangeSet& other) const;
  RangeSet& operator|=(const RangeSet& o);
  RangeSet& operator-=(const RangeSet& o);
  RangeSet& operator&=(const RangeSet& o);
  friend RangeSet operator|(RangeSet a, const RangeSet& b) { return a |= b; }
  friend RangeSet operator-(RangeSet a, const RangeSet& b) { return a -= b; }
  friend RangeSet operator&(RangeSet a, const RangeSet& b) { return a &= b; }
  bool operator==(const RangeSet&) const = default;
};

struct Node;

class Expr {
 public:
  Expr() = default;
  Expr(const Expr& o) noexcept;
  Expr(Expr&& o) noexcept : node_(o.node_) { o.node_ = nullptr; }
  Expr& operator=(const Expr& o) noexcept;
  Expr& operator=(Expr&& o) noexcept;
  ~Expr();

  const Node* operator->() const { return node_; }
  const Node* get() const { return node_; }
  explicit operator bool() const { return node_ != nullptr; }
  bool operator==(const Expr& o) const { return node_ == o.node_; }  // identity

 private:
  friend Expr intern(Op, DType, std::span<const Expr>, std::int64_t, std::int64_t,
                     std::string_view);
  explicit Expr(const Node* owned) : node_(owned) {}
  const Node* node_ = nullptr;
};

// An immutable node. `lo` and `hi` bound the value of an integer, bool or index node (inclusive);
// for floats they are 0 and say nothing. `depth` is 1 + that of the deepest source.
struct Node {
  Op op;
  DType dtype;
  std::uint32_t depth;
  std::int64_t arg, arg2;
  std::string_view text;  // names; lives as long as the process
  std::span<const Expr> src;
  std::uint64_t hash;  // structural: the same in every process
  std::int64_t lo, hi;
  RangeSet free;

  mutable std::atomic<std::uint32_t> refs;
  mutable const Node* next;  // in the intern table
};

// The only way to make a node.
Expr intern(Op, DType, std::span<const Expr> src, std::int64_t arg = 0, std::int64_t arg2 = 0,
            std::string_view text = {});
inline Expr intern(Op op, DType t, std::initializer_list<Expr> src, std::int64_t arg = 0,
                   std::int64_t arg2 = 0, std::string_view text = {}) {
  return intern(op, t, std::span<const Expr>(src.begin(), src.size()), arg, arg2, text);
}
// The same node with other sources; the node itself when they are the same.
Expr with_sources(const Expr&, std::span<const Expr> src);
std::int64_t live_nodes();  // nodes that exist, for leak tests

// ---- leaves
Expr constant(Scalar);
inline Expr constant(DType t, double v) { return constant(Scalar(t, v)); }
Expr index_constant(std::int64_t);
Expr variable(std::string_view name, std::int64_t lo, std::int64_t hi);  // dtype index
Expr range(int id, Expr extent);                                         // dtype index
Expr range(int id, std::int64_t extent);
Expr hole(std::string_view name, DType = float32);        // in a rule: matches any expression
Expr const_hole(std::string_view name, DType = float32);  // matches only a constant
bool is_hole(const Expr&);

bool is_constant(const Expr&);
bool is_constant(const Expr&, double value);
Scalar scalar_of(const Expr& constant);

// ---- elementwise; dtypes are checked (DTypeError is a fault of the caller: InternalError)
Expr unary(Op, const Expr&);
Expr binary(Op, const Expr&, const Expr&);  // equal dtypes; lt and eq give bool
Expr where(const Expr& condition, const Expr& a, const Expr& b);
Expr cast(const Expr&, DType);  // itself when the dtype is the same
Expr bitcast(const Expr&, DType);
Expr lt(const Expr&, const Expr&);
Expr eq(const Expr&, const Expr&);
Expr not_(const Expr&);
Expr and_(const Expr&, const Expr&);
Expr or_(const Expr&, const Expr&);
Expr max(const Expr&, const Expr&);
Expr min(const Expr&, const Expr&);
Expr operator-(const Expr&);
Expr operator+(const Expr&, const Expr&);
Expr operator-(const Expr&, const Expr&);  // a + -b
Expr operator*(const Expr&, const Expr&);
Expr operator/(const Expr&, const Expr&);  // floats: div; integers: idiv
// With a C++ number: the other side's dtype.
template <class N>
concept Number = std::is_arithmetic_v<N>;
inline Expr like(const Expr& e, double v) { return constant(e->dtype, v); }
inline Expr operator+(const Expr& a, Number auto v) { return a + like(a, static_cast<double>(v)); }
inline Expr operator-(const Expr& a, Number auto v) { return a - like(a, static_cast<double>(v)); }
inline Expr operator*(const Expr& a, Number auto v) { return a * like(a, static_cast<double>(v)); }
inline Expr operator/(const Expr& a, Number auto v) { return a / like(a, static_cast<double>(v)); }
inline Expr operator+(Number auto v, const Expr& a) { return like(a, static_cast<double>(v)) + a; }
inline Expr operator-(Number auto v, const Expr& a) { return like(a, static_cast<double>(v)) - a; }
inline Expr operator*(Number auto v, const Expr& a) { return like(a, static_cast<double>(v)) * a; }
inline Expr operator/(Number auto v, const Expr& a) { return like(a, static_cast<double>(v)) / a; }

// ---- binders and memory: the AST of a kernel
// The op over all values of the ranges; the identity of the op when there is none.
Expr reduce(Op, const Expr& body, std::span<const Expr> ranges);
// The op over body at range = 0..at, both included; `at` is an index expression below the extent.
Expr scan(Op, const Expr& body, const Expr& range, const Expr& at);
// A table of the body over the ranges, computed once where its free ranges are bound.
Expr stage(const Expr& body, std::span<const Expr> ranges);
Expr stage_at(const Expr& stage, std::span<const Expr> indices);
RangeSet bound_by(const Expr&);  // the ranges that a node binds in its first source
// The number of an argument, its dtype, and how many elements it has (the greatest number, where
// that is symbolic): what the proofs of bounds start from.
Expr slot(int number, DType, std::int64_t elements);
Expr load(const Expr& slot, const Expr& index, const Expr& gate = {});  // 0 where not the gate
// op store: slot[index] = value; add, mul, max, min: slot[index] op= value. Loops over every range
// that is free in index, value and gate, in ascending order of ids. Nothing happens where the gate
// is false.
Expr store(const Expr& slot, const Expr& index, const Expr& value, Op = Op::store);
Expr store(const Expr& slot, const Expr& index, const Expr& value, const Expr& gate,
           Op = Op::store);
Expr sink(std::span<const Expr> stores);

// ---- walking
// Every node below the roots once, sources first; by a loop, so depth is no danger.
std::vector<Expr> topological(std::span<const Expr> roots);
inline std::vector<Expr> topological(const Expr& root) { return topological({&root, 1}); }

// What an op starts from: 0 for add, 1 for mul, the least value for max, ..
Scalar identity_of(Op, DType);
bool accumulates(Op);  // add, mul, max, min, and, or, xor: what reduces and scans
std::int64_t floor_div(std::int64_t, std::int64_t);  // idiv of int64
// One elementwise op on values, exactly as docs/semantics.md says. `to` is the result's dtype.
Scalar evaluate(Op, DType to, std::span<const Scalar>);

}  // namespace mote

template <>
struct std::hash<mote::Expr> {
  std::size_t operator()(const mote::Expr& e) const noexcept {
    return reinterpret_cast<std::size_t>(e.get()) >> 4;
  }
};
