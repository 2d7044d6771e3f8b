#include "ir/expr.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_set>

#include "base/hash.h"
#include "base/text.h"
#include "ir/bounds.h"
#include "mote/error.h"

namespace mote {

// ---- RangeSet

int RangeSet::count() const {
  int n = 0;
  for (auto w : words) n += std::popcount(w);
  return n;
}

int RangeSet::highest() const {
  for (int i = 3; i >= 0; --i)
    if (words[i]) return i * 64 + 63 - std::countl_zero(words[i]);
  return -1;
}

std::vector<int> RangeSet::ids() const {
  std::vector<int> out;
  for (int i = 0; i < 4; ++i)
    for (auto w = words[i]; w; w &= w - 1) out.push_back(i * 64 + std::countr_zero(w));
  return out;
}

bool RangeSet::contains(const RangeSet& o) const { return (o - *this).empty(); }
bool RangeSet::intersects(const RangeSet& o) const { return !(o & *this).empty(); }

RangeSet& RangeSet::operator|=(const RangeSet& o) {
  for (int i = 0; i < 4; ++i) words[i] |= o.words[i];
  return *this;
}

RangeSet& RangeSet::operator-=(const RangeSet& o) {
  for (int i = 0; i < 4; ++i) words[i] &= ~o.words[i];
  return *this;
}

RangeSet& RangeSet::operator&=(const RangeSet& o) {
  for (int i = 0; i < 4; ++i) words[i] &= o.words[i];
  return *this;
}

// ---- the intern table: shards, each a chained hash table under its own lock
//
// A count goes from 1 to 0 only under the lock of the node's shard, so a node found in the table is
// always alive.

namespace {

struct Shard {
  std::mutex mutex;
  std::vector<const Node*> buckets = std::vector<const Node*>(1024, nullptr);
  std::size_t size = 0;

  void grow() {
    std::vector<const Node*> bigger(buckets.size() * 2, nullptr);
    for (const Node* n : buckets) {
      while (n) {
        const Node* next = n->next;
        const Node*& head = bigger[(n->hash >> 6) & (bigger.size() - 1)];
        n->next = head;
        head = n;
        n = next;
      }
    }
    buckets.swap(bigger);
  }
};

constexpr std::size_t shard_count = 64;
std::atomic<std::int64_t> live{0};

Shard& shard_of(std::uint64_t hash) {
  static Shard* const shards = new Shard[shard_count];  // never destroyed: rules are static
  return shards[hash & (shard_count - 1)];
}

std::string_view permanent(std::string_view text) {
  if (text.empty()) return {};
  static std::mutex mutex;
  static auto* const names = new std::unordered_set<std::string>();
  const std::lock_guard lock(mutex);
  return *names->emplace(text).first;
}

bool same(const Node& n, Op op, DType t, std::span<const Expr> src, std::int64_t arg,
          std::int64_t arg2, std::string_view text) {
  return n.op == op && n.dtype == t && n.arg == arg && n.arg2 == arg2 && n.text == text &&
         std::ranges::equal(n.src, src);
}

std::uint64_t hash_of(Op op, DType t, std::span<const Expr> src, std::int64_t arg,
                      std::int64_t arg2, std::string_view text) {
  std::uint64_t h = mix(static_cast<std::uint64_t>(op) << 8 | static_cast<std::uint64_t>(t));
  h = combine(h, static_cast<std::uint64_t>(arg));
  if (arg2) h = combine(h, static_cast<std::uint64_t>(arg2));
  if (!text.empty()) h = hash_text(text, h);
  for (const Expr& s : src) h = combine(h, s->hash);
  return h;
}

// The ranges that a node with these sources binds in its first one.
RangeSet bound_in(Op op, std::span<const Expr> src) {
  RangeSet bound;
  if (kind_of(op) != Kind::binder) return bound;
  for (const Expr& r : src.subspan(1, op == Op::scan ? 1 : src.size() - 1))
    bound.add(static_cast<int>(r->arg));
  return bound;
}

// The ranges a node leaves free: those of its sources, less those it binds. An extent may depend on
// another range of the list; the place of a scan lies outside of it.
RangeSet free_of(Op op, std::span<const Expr> src, std::int64_t arg) {
  RangeSet free;
  for (const Expr& s : src) free |= s->free;
  if (op == Op::range) free.add(static_cast<int>(arg));
  free -= bound_in(op, src);
  return op == Op::scan ? free | src[2]->free : free;
}

// Drops one reference. A node that dies leaves the table and goes on the list, which is chained
// through `next`: it needs no memory, and no destructor at the end of a thread.
void drop(const Node* n, const Node*& dead) {
  std::uint32_t refs = n->refs.load(std::memory_order_relaxed);
  while (refs > 1)
    if (n->refs.compare_exchange_weak(refs, refs - 1, std::memory_order_acq_rel)) return;
  Shard& shard = shard_of(n->hash);
  const std::lock_guard lock(shard.mutex);
  if (n->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const Node** at = &shard.buckets[(n->hash >> 6) & (shard.buckets.size() - 1)];
  while (*at != n) at = &(*at)->next;
  *at = n->next;
  --shard.size;
  n->next = dead;
  dead = n;
}

void release(const Node* n) {
  thread_local const Node* dead = nullptr;
  thread_local bool freeing = false;
  drop(n, dead);
  if (freeing) return;  // an outer call of this thread goes on with the list
  freeing = true;
  while (dead) {
    const Node* d = dead;
    dead = d->next;
    for (const Expr& s : d->src) s.~Expr();  // may add to the list
    d->~Node();
    ::operator delete(const_cast<Node*>(d));
    live.fetch_sub(1, std::memory_order_relaxed);
  }
  freeing = false;
}

}  // namespace

Expr::Expr(const Expr& o) noexcept : node_(o.node_) {
  if (node_) node_->refs.fetch_add(1, std::memory_order_relaxed);
}

Expr& Expr::operator=(const Expr& o) noexcept {
  Expr copy(o);
  std::swap(node_, copy.node_);
  return *this;
}

Expr& Expr::operator=(Expr&& o) noexcept {
  std::swap(node_, o.node_);
  return *this;
}

Expr::~Expr() {
  if (node_) release(node_);
}

Expr intern(Op op, DType dtype, std::span<const Expr> src, std::int64_t arg, std::int64_t arg2,
            std::string_view text) {
  const std::uint64_t hash = hash_of(op, dtype, src, arg, arg2, text);
  Shard& shard = shard_of(hash);
  const std::lock_guard lock(shard.mutex);
  for (const Node* n = shard.buckets[(hash >> 6) & (shard.buckets.size() - 1)]; n; n = n->next) {
    if (n->hash != hash || !same(*n, op, dtype, src, arg, arg2, text)) continue;
    n->refs.fetch_add(1, std::memory_order_relaxed);
    return Expr(n);
  }
  // One allocation: the node, then its sources.
  void* memory = ::operator new(sizeof(Node) + src.size() * sizeof(Expr));
  Expr* sources = reinterpret_cast<Expr*>(static_cast<char*>(memory) + sizeof(Node));
  std::uint32_t depth = 0;
  for (std::size_t i = 0; i < src.size(); ++i) {
    new (sources + i) Expr(src[i]);
    depth = std::max(depth, src[i]->depth);
  }
  const Bounds bounds = bounds_of(op, dtype, src, arg, arg2);
  Node* n = new (memory) Node{op,
                              dtype,
                              depth + 1,
                              arg,
                              arg2,
                              permanent(text),
                              {sources, src.size()},
                              hash,
                              bounds.lo,
                              bounds.hi,
                              free_of(op, src, arg),
                              {1},
                              nullptr};
  if (++shard.size > shard.buckets.size()) shard.grow();
  const Node*& head = shard.buckets[(hash >> 6) & (shard.buckets.size() - 1)];
  n->next = head;
  head = n;
  live.fetch_add(1, std::memory_order_relaxed);
  return Expr(n);
}

Expr with_sources(const Expr& e, std::span<const Expr> src) {
  if (std::ranges::equal(e->src, src)) return e;
  return intern(e->op, e->dtype, src, e->arg, e->arg2, e->text);
}

std::int64_t live_nodes() { return live.load(std::memory_order_relaxed); }

// ---- leaves

Expr constant(Scalar s) {
  return intern(Op::constant, s.dtype, {}, static_cast<std::int64_t>(s.bits));
}

Expr index_constant(std::int64_t v) { return constant(Scalar(DType::index, v)); }

Expr variable(std::string_view name, std::int64_t lo, std::int64_t hi) {
  return intern(Op::variable, DType::index, {}, lo, hi, name);
}

Expr range(int id, Expr extent) {
  if (id < 0 || id >= RangeSet::capacity)
    throw InternalError(cat("range id ", id, " is not in 0..255"));
  return intern(Op::range, DType::index, {extent}, id);
}

Expr range(int id, std::int64_t extent) { return range(id, index_constant(extent)); }

Expr hole(std::string_view name, DType t) { return intern(Op::hole, t, {}, 0, 0, name); }
Expr const_hole(std::string_view name, DType t) { return intern(Op::hole, t, {}, 1, 0, name); }
bool is_hole(const Expr& e) { return e->op == Op::hole; }

bool is_constant(const Expr& e) { return e->op == Op::constant; }
bool is_constant(const Expr& e, double v) {
  return e->op == Op::constant && scalar_of(e) == Scalar(e->dtype, v);
}

Scalar scalar_of(const Expr& e) {
  Scalar s;
  s.dtype = e->dtype;
  s.bits = static_cast<std::uint64_t>(e->arg);
  return s;
}

// ---- elementwise

namespace {

void expect_same(Op op, const Expr& a, const Expr& b) {
  if (a->dtype == b->dtype) return;
  throw InternalError(cat(name_of(op), ": the operands have dtypes ", name_of(a->dtype), " and ",
                          name_of(b->dtype)));
}

}  // namespace

Expr unary(Op op, const Expr& a) { return intern(op, a->dtype, {a}); }

Expr binary(Op op, const Expr& a, const Expr& b) {
  if (op != Op::shl && op != Op::shr) expect_same(op, a, b);
  const bool compares = op == Op::lt || op == Op::eq;
  return intern(op, compares ? DType::boolean : a->dtype, {a, b});
}

Expr where(const Expr& c, const Expr& a, const Expr& b) {
  expect_same(Op::where, a, b);
  return intern(Op::where, a->dtype, {c, a, b});
}

Expr cast(const Expr& e, DType t) { return e->dtype == t ? e : intern(Op::cast, t, {e}); }
Expr bitcast(const Expr& e, DType t) { return e->dtype == t ? e : intern(Op::bitcast, t, {e}); }
Expr lt(const Expr& a, const Expr& b) { return binary(Op::lt, a, b); }
Expr eq(const Expr& a, const Expr& b) { return binary(Op::eq, a, b); }
Expr not_(const Expr& a) { return unary(Op::not_, a); }
Expr and_(const Expr& a, const Expr& b) { return binary(Op::and_, a, b); }
Expr or_(const Expr& a, const Expr& b) { return binary(Op::or_, a, b); }
Expr max(const Expr& a, const Expr& b) { return binary(Op::max, a, b); }
Expr min(const Expr& a, const Expr& b) { return binary(Op::min, a, b); }
Expr operator-(const Expr& a) { return unary(Op::neg, a); }
Expr operator+(const Expr& a, const Expr& b) { return binary(Op::add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return a + -b; }
Expr operator*(const Expr& a, const Expr& b) { return binary(Op::mul, a, b); }
Expr operator/(const Expr& a, const Expr& b) {
  return binary(is_float(a->dtype) ? Op::div : Op::idiv, a, b);
}

// ---- binders and memory

namespace {

std::vector<Expr> joined(const Expr& first, std::span<const Expr> rest) {
  std::vector<Expr> all{first};
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

}  // namespace

Expr reduce(Op op, const Expr& body, std::span<const Expr> ranges) {
  return intern(Op::reduce, body->dtype, joined(body, ranges), static_cast<int>(op));
}

Expr scan(Op op, const Expr& body, const Expr& range, const Expr& at) {
  return intern(Op::scan, body->dtype, {body, range, at}, static_cast<int>(op));
}

Expr stage(const Expr& body, std::span<const Expr> ranges) {
  return intern(Op::stage, body->dtype, joined(body, ranges));
}

Expr stage_at(const Expr& stage, std::span<const Expr> indices) {
  return intern(Op::stage_at, stage->dtype, joined(stage, indices));
}

Expr slot(int number, DType t, std::int64_t elements) {
  return intern(Op::slot, t, {}, number, elements);
}

Expr load(const Expr& slot, const Expr& index, const Expr& gate) {
  const Expr src[] = {slot, index, gate};
  return intern(Op::load, slot->dtype, std::span(src, gate ? 3 : 2));
}

Expr store(const Expr& slot, const Expr& index, const Expr& value, Op op) {
  return intern(Op::store, value->dtype, {slot, index, value}, static_cast<int>(op));
}

Expr store(const Expr& slot, const Expr& index, const Expr& value, const Expr& gate, Op op) {
  return intern(Op::store, value->dtype, {slot, index, value, gate}, static_cast<int>(op));
}

Expr sink(std::span<const Expr> stores) { return intern(Op::sink, DType::boolean, stores); }

RangeSet bound_by(const Expr& e) { return bound_in(e->op, e->src); }

// ---- walking

std::vector<Expr> topological(std::span<const Expr> roots) {
  std::vector<Expr> order;
  std::unordered_set<const Node*> seen;
  std::vector<std::pair<Expr, std::size_t>> stack;
  for (const Expr& root : roots) {
    if (!root || !seen.insert(root.get()).second) continue;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [e, next] = stack.back();
      if (next == e->src.size()) {
        order.push_back(std::move(e));
        stack.pop_back();
        continue;
      }
      const Expr& s = e->src[next++];
      if (seen.insert(s.get()).second) stack.emplace_back(s, 0);
    }
  }
  return order;
}

}  // namespace mote
