// The moves: rewrites of a kernel's expressions that keep every value.
#include <algorithm>
#include <functional>
#include <optional>

#include "base/text.h"
#include "ir/printer.h"
#include "kernel/kernel.h"
#include "kernel/writer.h"
#include "mote/error.h"

namespace mote {
namespace {

[[noreturn]] void refuse(const std::string& move, const std::string& why) {
  throw InternalError(cat(move, ": ", why));
}

void expect_range(const char* move, const Expr& range, bool constant = true) {
  if (range->op != Op::range) refuse(move, cat(short_text(range), " is no range"));
  if (constant && !is_constant(range->src[0]))
    refuse(move, cat("the extent of ", short_text(range), " is symbolic"));
}

std::vector<Expr> all_stores(const Kernel& k) {
  std::vector<Expr> out;
  for (const Nest& n : k.nests) out.insert(out.end(), n.stores.begin(), n.stores.end());
  return out;
}

// An id that no range of the kernel has, and none of `used`.
int fresh_id(const Kernel& k, RangeSet used = {}) {
  for (const Expr& e : topological(all_stores(k)))
    if (e->op == Op::range) used.add(static_cast<int>(e->arg));
  for (const Nest& n : k.nests)
    for (const Expr& l : n.loops) used.add(static_cast<int>(l->arg));
  for (int id = 0; id < most_ranges; ++id)
    if (!used.has(id)) return id;
  refuse("move", "the kernel has too many ranges");
}

bool depends(const Expr& e, const Expr& r) { return e->free.has(static_cast<int>(r->arg)); }

bool needs(const Expr& range, const Expr& other) {  // its extent depends on the other
  return depends(range->src[0], other);
}

// Loops are opened in this order: what an extent depends on comes before it.
void expect_order(const char* move, std::span<const Expr> loops) {
  for (std::size_t i = 0; i < loops.size(); ++i)
    for (const Expr& later : loops.subspan(i + 1))
      if (needs(loops[i], later))
        refuse(move, cat("the extent of ", short_text(loops[i]), " needs ", short_text(later),
                         ", which is further in"));
}

bool has(std::span<const Expr> list, const Expr& e) {
  return std::ranges::find(list, e) != list.end();
}

std::string names_of(std::span<const Expr> list) {
  std::string out;
  for (const Expr& e : list) out += " " + short_text(e);
  return out;
}

// Every store and loop through `make(node, sources)`, sources first. Extents are rewritten
// too, so a range may become another one with the same id.
using Make = std::function<Expr(const Expr&, std::span<const Expr>)>;

class Mapping {
 public:
  explicit Mapping(Make make) : make_(std::move(make)) {}

  Expr operator()(const Expr& root) {
    for (const Expr& e : topological(root)) {
      if (done_.contains(e)) continue;
      std::vector<Expr> sources;
      for (const Expr& s : e->src) sources.push_back(done_.at(s));
      done_.emplace(e, make_(e, sources));
    }
    return done_.at(root);
  }

  void over(Kernel& k) {
    for (Nest& n : k.nests)
      for (std::vector<Expr>* list : {&n.stores, &n.loops, &n.sums})
        for (Expr& e : *list) e = (*this)(e);
  }

 private:
  Make make_;
  std::unordered_map<Expr, Expr> done_;
};

// In the lists that hold ranges (loops, binders) `from` gives way to `to`; elsewhere the values do.
struct Renaming {
  std::vector<Expr> from, to;
  std::vector<Int> values;  // of each of `from`
  // What the indices of a table's axes `from` become.
  std::function<std::vector<Int>(std::span<const Int>)> indices;
};

// The place of `from` in the list; nullopt where there is none of it. Refused where only a part is.
std::optional<std::size_t> place_of(const char* move, std::span<const Expr> list,
                                    const std::vector<Expr>& from) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!has(from, list[i])) continue;
    if (i + from.size() > list.size() || !std::ranges::equal(list.subspan(i, from.size()), from))
      refuse(move, cat("not neighbours in one order everywhere:", names_of(from)));
    return i;
  }
  return {};
}

void rename(const char* move, Kernel& k, const Renaming& r) {
  const auto spliced = [&](std::span<const Expr> list, std::size_t at) {
    std::vector<Expr> out(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(at));
    out.insert(out.end(), r.to.begin(), r.to.end());
    out.insert(out.end(), list.begin() + static_cast<std::ptrdiff_t>(at + r.from.size()),
               list.end());
    return out;
  };
  Mapping map([&](const Expr& e, std::span<const Expr> sources) -> Expr {
    if (const auto f = std::ranges::find(r.from, e); f != r.from.end())
      return r.values[static_cast<std::size_t>(f - r.from.begin())].expr();
    if (e->op == Op::scan && e->src[1]->op == Op::range && has(r.from, e->src[1]))
      refuse(move, "the range of a scan runs in its order");
    if (e->op == Op::reduce || e->op == Op::stage) {
      const auto at = place_of(move, e->src.subspan(1), r.from);
      if (at) {
        std::vector<Expr> mapped(sources.begin(), sources.end());
        std::copy(r.from.begin(), r.from.end(),
                  mapped.begin() + static_cast<std::ptrdiff_t>(*at + 1));
        return intern(e->op, e->dtype, spliced(mapped, *at + 1), e->arg, e->arg2);
      }
    }
    if (e->op == Op::stage_at) {
      const auto at = place_of(move, e->src[0]->src.subspan(1), r.from);
      if (at) {
        std::vector<Int> old;
        for (std::size_t i = 0; i < r.from.size(); ++i) old.push_back(Int(sources[*at + 1 + i]));
        std::vector<Expr> src(sources.begin(),
                              sources.begin() + static_cast<std::ptrdiff_t>(*at + 1));
        for (const Int& i : r.indices(old)) src.push_back(i.expr());
        src.insert(src.end(),
                   sources.begin() + static_cast<std::ptrdiff_t>(*at + 1 + r.from.size()),
                   sources.end());
        return intern(e->op, e->dtype, src);
      }
    }
    return rebuild(e, sources);
  });
  for (Nest& n : k.nests) {
    for (std::vector<Expr>* list : {&n.loops, &n.sums})
      if (const auto at = place_of(move, *list, r.from)) {
        if (list == &n.loops && is_ordered(n))
          refuse(move, "the loops of a scatter or a scan run in their order");
        *list = spliced(*list, *at);
      }
  }
  for (const Expr& f : r.from) k.choices.erase(static_cast<int>(f->arg));
  map.over(k);
}

// The value in place of every `e`, in the stores of all nests.
void put_in_place(Kernel& k, const Expr& e, const Expr& value) {
  Mapping map([&](const Expr& x, std::span<const Expr> sources) {
    return x == e ? value : std::ranges::equal(x->src, sources) ? x : rebuild(x, sources);
  });
  for (Nest& n : k.nests)
    for (Expr& s : n.stores) s = map(s);
}

bool occurs(const Kernel& k, const Expr& e) { return has(topological(all_stores(k)), e); }

// A table of this value over `dims` can be made: refused where it cannot.
void expect_table(const Kernel& k, const Expr& value, std::span<const Expr> dims) {
  if (!occurs(k, value)) refuse("stage", cat(short_text(value, 3), " is not in the kernel"));
  if (value->dtype == DType::index || value->op == Op::scan || value->op == Op::stage ||
      value->op == Op::store || value->op == Op::slot || value->op == Op::sink)
    refuse("stage", cat(short_text(value, 3), " is no value that a table can hold"));
  for (const Expr& e : topological(all_stores(k)))
    if (e->op == Op::load && e->src.size() > 2 && value->dtype == DType::boolean &&
        has(topological(e->src[2]), value))
      refuse("stage", "a condition that guards a load has to be seen there");
  for (const Expr& d : dims)
    if (d->op != Op::range || !value->free.has(static_cast<int>(d->arg)))
      refuse("stage", cat(short_text(d), " is not free in the value"));
  expect_order("stage", dims);
  for (const Expr& e : topological(value))
    if (e->op == Op::range && value->free.has(static_cast<int>(e->arg)) && !has(dims, e))
      for (const Expr& d : dims)
        if (needs(e, d))
          refuse("stage", cat("the table would capture ", short_text(e),
                              ", whose extent depends on ", short_text(d)));
}

// The range of an axis that gives way to the table's own: one that is counted once, and is no other
// axis' already.
Expr pivot_of(const Int& axis, const Bindings& taken) {
  if (axis.expr()->op == Op::range) return axis.expr();
  for (const Expr& r : topological(axis.expr()))
    if (r->op == Op::range && !taken.contains(r) &&
        !(axis - Int(r)).expr()->free.has(static_cast<int>(r->arg)))
      return r;
  refuse("stage", cat("no range of ", short_text(axis.expr()), " is counted once"));
}

// The value as a table over fresh ranges in place of the axes, read at the axes: of an axis h*2 +
// r, the table's own range y takes r's place by r := y - h*2, and h must be gone then.
Expr as_table(const Kernel& k, const Expr& value, std::span<const Int> axes) {
  Bindings fresh;
  std::vector<Expr> ranges, indices;
  RangeSet taken;
  for (const Int& axis : axes) {
    const Expr e = axis.expr(), pivot = pivot_of(axis, fresh);
    if (e->lo != 0) refuse("stage", cat(short_text(e), " does not begin at 0"));
    const Expr extent = e == pivot ? substitute(pivot->src[0], fresh) : index_constant(e->hi + 1);
    ranges.push_back(range(fresh_id(k, taken), extent));
    taken.add(static_cast<int>(ranges.back()->arg));
    fresh.emplace(pivot, (Int(ranges.back()) - (axis - Int(pivot))).expr());
    indices.push_back(e);
  }
  const Expr body = substitute(value, fresh);
  for (const Int& axis : axes)
    for (const Expr& r : topological(axis.expr()))
      if (r->op == Op::range && axis.expr()->op != Op::range &&
          body->free.has(static_cast<int>(r->arg)))
        refuse("stage", cat("the value does not depend on ", short_text(axis.expr()), " alone"));
  return stage_at(stage(body, ranges), indices);
}

// Reads of the table wherever the value stands, over other ranges of the same extent too.
Kernel with_table(Kernel k, const Expr& value, const Expr& table, std::span<const Expr> dims) {
  put_in_place(k, value, table);
  const auto inside = topological(value);
  const auto own = table->src[0]->src.subspan(1);
  for (const Expr& d : dims)
    for (const Expr& r : topological(all_stores(k))) {
      if (r->op != Op::range || r->src[0] != d->src[0] || has(inside, r) || has(own, r)) continue;
      const Expr other = substitute(value, {{d, r}});
      if (occurs(k, other)) put_in_place(k, other, substitute(table, {{d, r}}));
    }
  return table->src[0]->free.empty() ? stage_alone(std::move(k), table->src[0]) : k;
}

// Every read of the table becomes what `read` makes of the table's new form and its indices.
Kernel with_reads(Kernel k, const Expr& table,
                  const std::function<Expr(std::span<const Expr> indices)>& read) {
  Mapping map([&](const Expr& e, std::span<const Expr> sources) {
    return e->op == Op::stage_at && e->src[0] == table ? read(sources.subspan(1))
                                                       : rebuild(e, sources);
  });
  map.over(k);
  return k;
}

void expect_is_table(const char* move, const Kernel& k, const Expr& table) {
  if (table->op != Op::stage || !occurs(k, table))
    refuse(move, cat(short_text(table, 3), " is no table of the kernel"));
}

}  // namespace

Kernel stage_alone(Kernel k, const Expr& table) {
  if (!table->free.empty()) refuse("stage_alone", "the table captures a range");
  const std::vector<Expr> ranges(table->src.begin() + 1, table->src.end());
  std::int64_t elements = 1;
  for (const Expr& r : ranges) elements *= r->src[0]->hi;
  const Expr memory = slot(first_table + k.tables++, table->dtype, elements);
  std::size_t reader = 0;  // the first nest that reads it
  while (!has(topological(k.nests[reader].stores), table)) ++reader;
  Mapping map([&](const Expr& e, std::span<const Expr> sources) {
    if (e->op != Op::stage_at || e->src[0] != table) return rebuild(e, sources);
    const std::vector<Int> at(sources.begin() + 1, sources.end());
    return load(memory, flat_index(ranges, at).expr());
  });
  for (Nest& n : k.nests)
    for (Expr& s : n.stores) s = map(s);
  Nest nest;
  nest.loops = ranges;
  const std::vector<Int> own(ranges.begin(), ranges.end());
  nest.stores = {store(memory, flat_index(ranges, own).expr(), table->src[0])};
  k.nests.insert(k.nests.begin() + static_cast<std::ptrdiff_t>(reader), std::move(nest));
  return k;
}

Kernel unroll(Kernel k, const Expr& range, int times) {
  expect_range("unroll", range, false);
  if (times < 1 || times > 64) refuse("unroll", cat(times, " is not in 1..64"));
  k.choices[static_cast<int>(range->arg)].unroll = times;
  k.words.push_back(cat("unroll ", short_text(range), " ", times));
  return k;
}

Kernel vectorize(Kernel k, const Expr& range, int lanes) {
  expect_range("vectorize", range, false);
  if (lanes < 1 || lanes > 64 || (lanes & (lanes - 1)) != 0)
    refuse("vectorize", cat(lanes, " is no power of two up to 64"));
  for (const Nest& n : k.nests)
    if (has(n.sums, range)) refuse("vectorize", "sums in memory are added one by one");
  for (const auto& [id, c] : k.choices)
    if (id != range->arg && c.lanes > 1 && lanes > 1 && c.lanes != lanes)
      refuse("vectorize", cat("another range has ", c.lanes, " lanes; all have the same"));
  k.choices[static_cast<int>(range->arg)].lanes = lanes;
  k.words.push_back(cat("vectorize ", short_text(range), " ", lanes));
  return k;
}

Kernel order(Kernel k, std::size_t nest, std::span<const Expr> loops) {
  std::vector<Expr> want(loops.begin(), loops.end());
  Nest& n = k.nests.at(nest);
  if (!std::ranges::is_permutation(want, n.loops))
    refuse("order", "the ranges are not those of the nest");
  if (want != n.loops && is_ordered(n))
    refuse("order", "the loops of a scatter or a scan run in their order");
  expect_order("order", want);
  n.loops = std::move(want);
  k.words.push_back(cat("order", names_of(n.loops)));
  return k;
}

Kernel split(Kernel k, const Expr& r, std::int64_t by, std::pair<Expr, Expr>* made) {
  expect_range("split", r, false);
  if (by < 1) refuse("split", cat("by ", by, ", which is not positive"));
  const Int extent(r->src[0]);
  const Expr outer = range(fresh_id(k), ceil_div(extent, by).expr());
  RangeSet taken;
  taken.add(static_cast<int>(outer->arg));
  const Expr inner = range(fresh_id(k, taken), min(Int(by), extent - Int(outer) * by).expr());
  rename("split", k,
         {{r}, {outer, inner}, {Int(outer) * by + Int(inner)}, [&](std::span<const Int> i) {
            return std::vector<Int>{i[0] / by, i[0] % by};
          }});
  if (made) *made = {outer, inner};
  k.words.push_back(cat("split ", short_text(r), " ", by, " ->", names_of({{outer, inner}})));
  return k;
}

Kernel fuse(Kernel k, const Expr& a, const Expr& b, Expr* made) {
  expect_range("fuse", a);
  expect_range("fuse", b);
  for (const Nest& n : k.nests)
    if (has(n.loops, a) && has(n.sums, a) != has(n.sums, b))
      refuse("fuse", "a range that is summed over and one that is not");
  const std::int64_t extent = b->src[0]->arg;
  const Expr both = range(fresh_id(k), a->src[0]->arg * extent);
  rename("fuse", k,
         {{a, b}, {both}, {Int(both) / extent, Int(both) % extent}, [&](std::span<const Int> i) {
            return std::vector<Int>{i[0] * extent + i[1]};
          }});
  if (made) *made = both;
  k.words.push_back(cat("fuse ", short_text(a), " ", short_text(b), " -> ", short_text(both)));
  return k;
}

Kernel stage(Kernel k, const Expr& value, std::span<const Expr> dims) {
  return window(std::move(k), value, std::vector<Int>(dims.begin(), dims.end()));
}

Kernel window(Kernel k, const Expr& value, std::span<const Int> axes) {
  std::vector<Expr> dims, names;
  for (const Int& axis : axes) {
    names.push_back(axis.expr());
    for (const Expr& r : topological(axis.expr()))
      if (r->op == Op::range) {
        if (r != axis.expr()) expect_range("stage", r);
        dims.push_back(r);
      }
  }
  expect_table(k, value, dims);
  const Expr table = as_table(k, value, axes);
  k = with_table(std::move(k), value, table, dims);
  k.words.push_back(cat("stage ", short_text(value, 2), " over", names_of(names)));
  return k;
}

Kernel inline_table(Kernel k, const Expr& table) {
  expect_is_table("inline", k, table);
  k = with_reads(std::move(k), table, [&](std::span<const Expr> indices) {
    Bindings at;
    for (std::size_t i = 0; i < indices.size(); ++i) at.emplace(table->src[i + 1], indices[i]);
    return substitute(table->src[0], at);
  });
  k.words.push_back(cat("inline ", short_text(table, 2)));
  return k;
}

Kernel widen(Kernel k, const Expr& table, const Expr& r, Expr* made) {
  expect_is_table("widen", k, table);
  expect_range("widen", r);
  if (!depends(table, r)) refuse("widen", cat("the table does not capture ", short_text(r)));
  const Expr own = range(fresh_id(k), r->src[0]);
  std::vector<Expr> dims{own};
  for (const Expr& d : table->src.subspan(1)) dims.push_back(substitute(d, {{r, own}}));
  Bindings to{{r, own}};
  for (std::size_t i = 1; i < dims.size(); ++i) to.emplace(table->src[i], dims[i]);
  const Expr wide = stage(substitute(table->src[0], to), dims);
  k = with_reads(std::move(k), table, [&](std::span<const Expr> indices) {
    std::vector<Expr> all{r};
    all.insert(all.end(), indices.begin(), indices.end());
    return stage_at(wide, all);
  });
  if (made) *made = own;
  k.words.push_back(cat("widen ", short_text(table, 2), " by ", short_text(r)));
  return wide->free.empty() ? stage_alone(std::move(k), wide) : k;
}

Kernel order_table(Kernel k, const Expr& table, std::span<const Expr> dims) {
  expect_is_table("order", k, table);
  const std::vector<Expr> have(table->src.begin() + 1, table->src.end()),
      want(dims.begin(), dims.end());
  if (!std::ranges::is_permutation(want, have))
    refuse("order", "the ranges are not those of the table");
  expect_order("order", want);
  const Expr ordered = stage(table->src[0], want);
  k = with_reads(std::move(k), table, [&](std::span<const Expr> indices) {
    std::vector<Expr> at;
    for (const Expr& d : want)
      at.push_back(indices[static_cast<std::size_t>(std::ranges::find(have, d) - have.begin())]);
    return stage_at(ordered, at);
  });
  k.words.push_back(cat("order", names_of(want)));
  return k;
}

Kernel nest_reduce(Kernel k, const Expr& e, std::span<const Expr> inner) {
  if (e->op != Op::reduce || !occurs(k, e))
    refuse("nest_reduce", cat(short_text(e, 3), " is no reduce of the kernel"));
  if (e->dtype == DType::float16 || e->dtype == DType::bfloat16 || size_of(e->dtype) == 1)
    refuse("nest_reduce", "partial sums of a small dtype would be rounded");
  std::vector<Expr> outer;
  for (const Expr& r : e->src.subspan(1))
    if (!has(inner, r)) outer.push_back(r);
  if (inner.empty() || outer.size() + inner.size() + 1 != e->src.size())
    refuse("nest_reduce", cat("not ranges of the reduce:", names_of(inner)));
  std::vector<Expr> within, all = outer;
  for (const Expr& r : e->src.subspan(1))
    if (has(inner, r)) within.push_back(r);
  all.insert(all.end(), within.begin(), within.end());
  expect_order("nest_reduce", all);
  if (outer.empty()) return k;
  const Op op = static_cast<Op>(e->arg);
  put_in_place(k, e, reduce(op, reduce(op, e->src[0], within), outer));
  k.words.push_back(cat("nest_reduce", names_of(inner)));
  return k;
}

Kernel accumulate(Kernel k, std::size_t nest, std::span<const Expr> ranges) {
  Nest& n = k.nests.at(nest);
  const Expr& s = n.stores[0];
  const Expr total = s->src[2];
  if (n.stores.size() != 1 || is_ordered(n) || total->op != Op::reduce || !n.sums.empty() ||
      s->src.size() > 3)
    refuse("accumulate", "the nest stores no sum alone");
  if (size_of(total->dtype) < 4) refuse("accumulate", "sums of a small dtype would be rounded");
  std::vector<Expr> rest;
  for (const Expr& r : total->src.subspan(1))
    if (!has(ranges, r)) rest.push_back(r);
  if (ranges.empty() || rest.size() + ranges.size() + 1 != total->src.size())
    refuse("accumulate", cat("not ranges of the sum:", names_of(ranges)));
  for (const Expr& r : ranges) {
    if (const auto c = k.choices.find(static_cast<int>(r->arg));
        c != k.choices.end() && c->second.lanes > 1)
      refuse("accumulate", "sums in memory are added one by one");
    if (r->src[0]->hi < 1 || !is_constant(r->src[0]))
      refuse("accumulate", cat("nothing may be left of ", short_text(r), ", or it is not known"));
  }
  std::vector<Expr> loops = n.loops;
  for (const Expr& r : total->src.subspan(1))
    if (has(ranges, r)) loops.push_back(r);
  std::vector<Expr> all = loops;
  all.insert(all.end(), rest.begin(), rest.end());
  expect_order("accumulate", all);
  n.op = static_cast<Op>(total->arg);
  const Expr value = rest.empty() ? total->src[0] : reduce(n.op, total->src[0], rest);
  n.stores = {store(s->src[0], s->src[1], value)};
  n.sums.assign(ranges.begin(), ranges.end());
  n.loops = std::move(loops);
  k.words.push_back(cat("accumulate", names_of(ranges)));
  return k;
}

Kernel cut(Kernel k, const Expr& r, std::int64_t at) {
  expect_range("cut", r);
  const std::int64_t extent = r->src[0]->arg;
  if (at < 1 || at >= extent) refuse("cut", cat(at, " is not inside 1..", extent - 1));
  for (const Nest& n : k.nests)
    if (has(n.sums, r) || (has(n.loops, r) && is_ordered(n)))
      refuse("cut", "a loop of sums in memory, of a scatter or a scan");
  for (const Expr& e : topological(all_stores(k))) {
    if ((e->op == Op::stage || e->op == Op::scan) && has(e->src.subspan(1), r))
      refuse("cut", "a table or a scan is made in one piece");
    if (e->op == Op::range && needs(e, r))
      refuse("cut", cat("the extent of ", short_text(e), " depends on it"));
  }
  const Expr low = range(static_cast<int>(r->arg), at), high = range(fresh_id(k), extent - at);
  const Bindings first{{r, low}}, second{{r, (Int(high) + at).expr()}};
  Mapping sums([&](const Expr& e, std::span<const Expr> sources) {
    if (e->op != Op::reduce || !has(e->src.subspan(1), r)) return rebuild(e, sources);
    const auto half = [&](const Expr& part, const Bindings& b) {
      std::vector<Expr> ranges(sources.begin() + 1, sources.end());
      std::ranges::replace(ranges, r, part);
      return reduce(static_cast<Op>(e->arg), substitute(sources[0], b), ranges);
    };
    return binary(static_cast<Op>(e->arg), half(low, first), half(high, second));
  });
  sums.over(k);
  std::vector<Nest> nests;
  for (const Nest& n : k.nests) {
    if (!has(n.loops, r)) {
      nests.push_back(n);
      continue;
    }
    for (const auto& [part, b] : {std::pair(low, first), std::pair(high, second)}) {
      Nest half = n;
      std::ranges::replace(half.loops, r, part);
      for (Expr& s : half.stores) s = substitute(s, b);
      nests.push_back(std::move(half));
    }
  }
  k.nests = std::move(nests);
  if (const auto c = k.choices.find(static_cast<int>(r->arg)); c != k.choices.end())
    k.choices[static_cast<int>(high->arg)] = LoopChoice(c->second);
  k.words.push_back(cat("cut ", short_text(r), " ", at));
  return k;
}

// The reader stores f(T[i..]) at index(i..): T's own stores go to index(its own i..), and the
// reader reads what it is about to overwrite.
Kernel home(Kernel k, std::size_t nest) {
  const Nest& own = k.nests.at(nest);
  const Expr memory = own.stores[0]->src[0];
  if (own.stores.size() != 1 || memory->arg < first_table)
    refuse("home", "the nest makes no table");
  std::optional<std::size_t> reader;
  for (std::size_t i = 0; i < k.nests.size(); ++i)
    if (i != nest && has(topological(k.nests[i].stores), memory)) {
      if (reader) refuse("home", "the table has several readers");
      reader = i;
    }
  if (!reader || k.nests[*reader].stores.size() != 1 || !k.nests[*reader].sums.empty() ||
      is_ordered(k.nests[*reader]))
    refuse("home", "the reader does not store one value alone");
  const Nest& user = k.nests[*reader];
  const Expr out = user.stores[0], target = out->src[0];
  std::vector<Expr> dims;
  for (const Expr& l : own.loops)
    if (!has(own.sums, l)) dims.push_back(l);
  std::ranges::sort(dims, {}, [](const Expr& r) { return r->arg; });
  std::vector<Expr> users = user.loops;
  std::ranges::sort(users, {}, [](const Expr& r) { return r->arg; });
  if (target->dtype != memory->dtype || out->src.size() > 3 || dims.size() != users.size())
    refuse("home", "the table and the reader's store differ in dtype, gate or loops");
  Bindings to_user;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i]->src[0] != users[i]->src[0])
      refuse("home", "the table and the reader differ in extents");
    to_user.emplace(dims[i], users[i]);
  }
  const Expr read = load(memory, substitute(own.stores[0]->src[1], to_user));
  for (const Expr& e : topological(all_stores(k)))
    if (e->op == Op::load && ((e->src[0] == memory && e != read) || e->src[0]->arg == target->arg))
      refuse("home", "the table is read elsewhere, or the reader's memory is read");
  Bindings to_own;
  for (const auto& [mine, theirs] : to_user) to_own.emplace(theirs, mine);
  k.nests[nest].stores = {store(target, substitute(out->src[1], to_own), own.stores[0]->src[2])};
  const Expr again = load(target, out->src[1]);
  put_in_place(k, read, again);
  if (k.nests[*reader].stores[0]->src[2] == again)  // it would copy the slot to itself
    k.nests.erase(k.nests.begin() + static_cast<std::ptrdiff_t>(*reader));
  k.words.push_back(cat("home of table ", memory->arg, " in ", short_text(target)));
  return k;
}

}  // namespace mote
