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

// Siblings may bind one id with two extents: from the second on it is another id. What each range
// became is in `renamed`.
Expr with_unique_ranges(const Expr& sink, std::unordered_map<Expr, Expr>& renamed) {
  std::unordered_map<int, Expr> owner;
  const auto all = topological(sink);
  for (const Expr& e : all)
    if (e->op == Op::range) owner.try_emplace(static_cast<int>(e->arg), e);
  int fresh = 0;
  for (const Expr& e : all) {
    std::vector<Expr> sources;
    for (const Expr& s : e->src) sources.push_back(renamed.at(s));
    Expr now = rebuild(e, sources);
    if (e->op == Op::range && owner.at(static_cast<int>(e->arg)) != e) {
      while (owner.contains(fresh)) ++fresh;
      owner.emplace(fresh, e);
      now = range(fresh, now->src[0]);
    }
    renamed.emplace(e, now);
  }
  return renamed.at(sink);
}

}  // namespace

bool is_ordered(const Nest& nest) {
  const Expr& s = nest.stores[0];
  return static_cast<Op>(s->arg) != Op::store || s->src[2]->op == Op::scan;
}

Kernel open(const Expr& sink) {
  Kernel k;
  std::unordered_map<Expr, Expr> renamed;
  const Expr unique = with_unique_ranges(sink, renamed);
  for (std::size_t i = 0; i < sink->src.size(); ++i) {
    Nest nest;
    for (const Expr& l : loops_of_store(sink->src[i])) nest.loops.push_back(renamed.at(l));
    nest.stores = {unique->src[i]};
    const bool joins = !k.nests.empty() && k.nests.back().loops == nest.loops &&
                       !is_ordered(nest) && !is_ordered(k.nests.back());
    if (joins) k.nests.back().stores.push_back(unique->src[i]);
    else k.nests.push_back(std::move(nest));
  }
  k.name = name_of_kernel(sink, k.nests[0].loops);
  // A table that captures nothing is a nest of its own.
  const auto is_root = [](const Expr& e) {
    return e->op == Op::stage_at && e->src[0]->free.empty();
  };
  for (std::size_t n = 0; n < k.nests.size();) {
    const auto all = topological(k.nests[n].stores);
    const auto at = std::ranges::find_if(all, is_root);
    if (at == all.end()) ++n;
    else k = stage_alone(std::move(k), (*at)->src[0]);
  }
  return k;
}

std::string to_text(const Kernel& k) {
  std::string out = k.name + "\n";
  for (const Nest& n : k.nests) {
    std::string indent = "  ";
    for (const Expr& l : n.loops) {
      const auto at = k.choices.find(static_cast<int>(l->arg));
      out += cat(indent, short_text(l), " = 0..", short_text(l->src[0]));
      if (at != k.choices.end() && at->second.unroll > 1) out += cat(" unroll ", at->second.unroll);
      if (at != k.choices.end() && at->second.lanes > 1) out += cat(" lanes ", at->second.lanes);
      out += std::ranges::find(n.sums, l) != n.sums.end() ? " sums\n" : "\n";
      indent += "  ";
    }
    for (const Expr& s : n.stores) out += cat(indent, short_text(s, 5), "\n");
  }
  for (const std::string& w : k.words) out += cat("  move: ", w, "\n");
  return out;
}

}  // namespace mote
