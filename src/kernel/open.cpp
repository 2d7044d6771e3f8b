#include "kernel/kernel.h"

#include <algorithm>

#include "base/text.h"
#include "ir/printer.h"
#include "mote/error.h"

namespace mote {
namespace {

std::vector<Expr> loops_of_store(const Expr& store) {
  std::unordered_map<int, Expr> by_id;
  for (const Expr& e : topological(store))
    if (e->op == Op::range && store->free.has(static_cast<int>(e->arg)))
      by_id[static_cast<int>(e->arg)] = e;
  std::vector<Expr> loops;
  for (int id : store->free.ids()) loops.push_back(by_id.at(id));
  return loops;
}

// "r_1024_64_add": what it does, and over how much.
std::string name_of_kernel(const Expr& sink, const std::vector<Expr>& loops) {
  std::string name = "e";
  std::string last;
  for (const Expr& e : topological(sink)) {
    if (e->op == Op::reduce || e->op == Op::scan) name = e->op == Op::reduce ? "r" : "s";
    if (is_elementwise(e->op) && e->dtype != DType::index && e->op != Op::cast &&
        e->op != Op::where)
      last = name_of(e->op);
  }
  for (const Expr& l : loops) name += cat("_", l->src[0]->hi);
  return last.empty() ? name : cat(name, "_", last);
}

[[noreturn]] void refuse(const std::string& move, const std::string& why) {
  throw InternalError(cat(move, ": ", why));
}

void expect_constant(const char* move, const Expr& range) {
  if (range->op != Op::range) refuse(move, cat(short_text(range), " is no range"));
  if (!is_constant(range->src[0]))
    refuse(move, cat("the extent of ", short_text(range), " is symbolic"));
}

}  // namespace

Kernel open(const Expr& sink) {
  Kernel k;
  k.sink = sink;
  for (const Expr& store : sink->src) {
    const auto loops = loops_of_store(store);
    // A scatter's stores and a scan's keep their loops to themselves: their order counts.
    const bool alone = static_cast<Op>(store->arg) != Op::store || store->src[2]->op == Op::scan;
    if (!alone && !k.nests.empty() && k.nests.back().loops == loops &&
        static_cast<Op>(k.nests.back().stores[0]->arg) == Op::store &&
        k.nests.back().stores[0]->src[2]->op != Op::scan) {
      k.nests.back().stores.push_back(store);
    } else {
      k.nests.push_back({loops, {store}});
    }
  }
  k.name = name_of_kernel(sink, k.nests[0].loops);
  return k;
}

Kernel unroll(Kernel k, const Expr& range, int times) {
  expect_constant("unroll", range);
  if (times < 1 || times > 64) refuse("unroll", cat(times, " is not in 1..64"));
  k.choices[range].unroll = times;
  k.words.push_back(cat("unroll ", short_text(range), " ", times));
  return k;
}

Kernel vectorize(Kernel k, const Expr& range, int lanes) {
  expect_constant("vectorize", range);
  if (lanes < 1 || lanes > 64 || (lanes & (lanes - 1)) != 0)
    refuse("vectorize", cat(lanes, " is no power of two up to 64"));
  k.choices[range].lanes = lanes;
  k.words.push_back(cat("vectorize ", short_text(range), " ", lanes));
  return k;
}

Kernel order(Kernel k, std::size_t nest, std::span<const Expr> loops) {
  std::vector<Expr> want(loops.begin(), loops.end());
  Nest& n = k.nests.at(nest);
  if (!std::ranges::is_permutation(want, n.loops))
    refuse("order", "the ranges are not those of the nest");
  const Expr& s = n.stores[0];
  if (want != n.loops && (static_cast<Op>(s->arg) != Op::store || s->src[2]->op == Op::scan))
    refuse("order", "the loops of a scatter or a scan run in their order");
  n.loops = std::move(want);
  std::string word = "order";
  for (const Expr& l : n.loops) word += " " + short_text(l);
  k.words.push_back(word);
  return k;
}

std::string to_text(const Kernel& k) {
  std::string out = k.name + "\n";
  for (const Nest& n : k.nests) {
    std::string indent = "  ";
    for (const Expr& l : n.loops) {
      const auto at = k.choices.find(l);
      out += cat(indent, short_text(l), " = 0..", short_text(l->src[0]));
      if (at != k.choices.end() && at->second.unroll > 1) out += cat(" unroll ", at->second.unroll);
      if (at != k.choices.end() && at->second.lanes > 1) out += cat(" lanes ", at->second.lanes);
      out += "\n";
      indent += "  ";
    }
    for (const Expr& s : n.stores) out += cat(indent, short_text(s, 5), "\n");
  }
  for (const std::string& w : k.words) out += cat("  move: ", w, "\n");
  return out;
}

}  // namespace mote
