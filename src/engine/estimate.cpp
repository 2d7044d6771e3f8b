// How many operations and bytes one AST costs, from the AST alone: what NULL counts and what
// MOTE_DEBUG=2 divides by the time.
//
// A value is computed once for each combination of the ranges that it depends on, so a matmul of n
// counts n^3 multiplications and n^3 additions. Index arithmetic is free. A slot is read at most
// once an element: what more is read comes from a cache.
#include <map>
#include <unordered_map>

#include "engine/engine.h"

namespace mote {
namespace {

using Ranges = std::map<int, std::int64_t>;  // id -> extent

std::int64_t size_of(const Ranges& ranges) {
  std::int64_t n = 1;
  for (const auto& [id, extent] : ranges) n *= extent;
  return n;
}

void add_range(Ranges& ranges, const Expr& range) {
  ranges[static_cast<int>(range->arg)] = range->src[0]->hi;
}

// The ranges that are open where each node is computed.
class Scopes {
 public:
  const Ranges& free(const Expr& e) { return free_.at(e); }
  Ranges computed(const Expr& e) {  // those of its own loops included
    Ranges all;
    for (const Expr& s : e->src) all.insert(free_.at(s).begin(), free_.at(s).end());
    return all;
  }
  void visit(const Expr& e) {
    Ranges all = computed(e);
    if (e->op == Op::range) add_range(all, e);
    if (e->op == Op::reduce || e->op == Op::stage)
      for (const Expr& r : e->src.subspan(1)) all.erase(static_cast<int>(r->arg));
    if (e->op == Op::scan) {
      all.erase(static_cast<int>(e->src[1]->arg));
      all.insert(free_.at(e->src[2]).begin(), free_.at(e->src[2]).end());
    }
    free_[e] = std::move(all);
  }

 private:
  std::unordered_map<Expr, Ranges> free_;
};

bool counts(const Expr& e) {
  if (e->dtype == DType::index || e->op == Op::cast || e->op == Op::bitcast) return false;
  const bool of_index = !e->src.empty() && e->src[0]->dtype == DType::index;
  return (is_elementwise(e->op) && e->op != Op::where && !of_index) || e->op == Op::reduce ||
         e->op == Op::scan;
}

}  // namespace

Estimate estimate(const Expr& ast) {
  Scopes scopes;
  Estimate out;
  std::unordered_map<int, std::int64_t> read, written, sizes;  // elements, by slot
  for (const Expr& e : topological(ast)) {
    scopes.visit(e);
    if (e->op == Op::slot) sizes[static_cast<int>(e->arg)] = e->arg2 * mote::size_of(e->dtype);
    if (counts(e))  // a scan adds one value at each step
      out.operations += size_of(e->op == Op::scan ? scopes.free(e) : scopes.computed(e));
    if (e->op != Op::load && e->op != Op::store) continue;
    const std::int64_t bytes = size_of(scopes.free(e)) * mote::size_of(e->src[0]->dtype);
    const int slot = static_cast<int>(e->src[0]->arg);
    (e->op == Op::load ? read : written)[slot] += bytes;
    if (e->op == Op::store && static_cast<Op>(e->arg) != Op::store)
      out.operations += size_of(scopes.free(e));
  }
  for (const auto* side : {&read, &written})
    for (const auto& [slot, bytes] : *side) out.bytes += std::min(bytes, sizes[slot]);
  return out;
}

}  // namespace mote
