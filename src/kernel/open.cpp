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

// One id is one range, and no binder hides another: a second extent of an id, and a range that is
// bound again further in, get ids of their own. Siblings go on sharing theirs, for they share
// loops.
class UniqueRanges {
 public:
  explicit UniqueRanges(const Expr& sink) {
    const auto all = topological(sink);
    for (const Expr& e : all)
      if (e->op == Op::range) owner_.try_emplace(static_cast<int>(e->arg), e);
    for (const Expr& e : all) now_.emplace(e, made(e));
  }

  Expr operator()(const Expr& e) const { return now_.at(e); }

 private:
  Expr made(const Expr& e) {
    std::vector<Expr> sources;
    RangeSet bound;
    for (const Expr& s : e->src) {
      sources.push_back(now_.at(s));
      bound |= bound_[s];
    }
    if (e->op == Op::range && owner_.at(static_cast<int>(e->arg)) != e)
      return range(next_id(e), sources[0]);
    if (e->op == Op::reduce || e->op == Op::stage)
      for (Expr& r : std::span(sources).subspan(1)) {
        const Expr before = r;
        while (bound.has(static_cast<int>(r->arg))) r = after(r);
        if (r != before) sources[0] = substitute(sources[0], {{before, r}});
        bound_[e].add(static_cast<int>(r->arg));
      }
    bound_[e] |= bound;
    return rebuild(e, sources);
  }

  int next_id(const Expr& owner) {
    while (owner_.contains(fresh_)) ++fresh_;
    owner_.emplace(fresh_, owner);
    return fresh_;
  }

  Expr after(const Expr& r) {
    Expr& next = after_[r];
    if (!next) next = range(next_id(r), r->src[0]);
    return next;
  }

  std::unordered_map<int, Expr> owner_;
  std::unordered_map<Expr, Expr> now_, after_;
  std::unordered_map<Expr, RangeSet> bound_;  // ids that are bound at or below a node
  int fresh_ = 0;
};

}  // namespace

bool is_ordered(const Nest& nest) {
  const Expr& s = nest.stores[0];
  return static_cast<Op>(s->arg) != Op::store || s->src[2]->op == Op::scan;
}

Kernel open(const Expr& sink) {
  Kernel k;
  const UniqueRanges unique(sink);
  for (std::size_t i = 0; i < sink->src.size(); ++i) {
    Nest nest;
    for (const Expr& l : loops_of_store(sink->src[i])) nest.loops.push_back(unique(l));
    nest.stores = {unique(sink->src[i])};
    const bool joins = !k.nests.empty() && k.nests.back().loops == nest.loops &&
                       !is_ordered(nest) && !is_ordered(k.nests.back());
    if (joins) k.nests.back().stores.push_back(unique(sink->src[i]));
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
