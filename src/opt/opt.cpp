// The heuristic. For each nest: which range lies in vectors (the one that reads and writes best in
// steps of one), then how many copies of which ranges make a register tile (values that several
// copies share are loaded once). Elementwise nests first get their loops fused to long ones.
#include "opt/opt.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "base/text.h"
#include "base/trace.h"
#include "mote/error.h"
#include "opt/nest.h"
#include "opt/tiles.h"

namespace mote {
namespace {

constexpr int most_accumulators = 12;

struct NestView {
  const Nest* nest = nullptr;
  std::vector<Expr> reads;          // loads and table reads of the hottest body
  std::vector<Expr> reduce_ranges;  // of the largest reduce, innermost last
  double reduce_size = 1;
  RangeSet captured;  // ranges that a table depends on
  DType dtype = DType::float32;
};

NestView look_at(const Nest& nest) {
  NestView v{&nest, {}, {}, 1, {}, nest.stores[0]->dtype};
  for (const Expr& e : outside_of_tables(nest.stores))
    if (e->op == Op::stage) v.captured |= e->free;
  const Expr hottest = hottest_reduce(nest);
  const std::vector<Expr> roots = hottest ? std::vector<Expr>{hottest->src[0]} : nest.stores;
  if (hottest) {
    v.reduce_ranges.assign(hottest->src.begin() + 1, hottest->src.end());
    v.reduce_size = size_of_reduce(hottest);
    v.dtype = hottest->dtype;
  }
  for (const Expr& e : outside_of_tables(roots))
    if (e->op == Op::load || e->op == Op::stage_at) v.reads.push_back(e);
  return v;
}

// What one step of the body costs where r lies in vectors of `lanes`: reads in steps of one count
// one, the same element for all lanes little, anything else one for each lane.
double read_cost(const NestView& v, const Expr& r, int lanes) {
  double cost = 0;
  for (const Expr& e : v.reads) {
    if (e->op == Op::load && e->src.size() > 2 && depends(e->src[2], r)) {
      cost += stride(e->src[1], r) == 1 ? 2 : 2.0 * lanes;  // a flag for each lane
      continue;
    }
    bool regular = true;  // the same step everywhere; of a table, along its last axis
    std::int64_t step = 0;
    for (std::size_t i = 1; i < (e->op == Op::load ? 2 : e->src.size()); ++i) {
      const auto s = stride(e->src[i], r);
      const bool last = e->op == Op::load || i + 1 == e->src.size();
      regular &= s.has_value() && (last || *s == 0);
      step += s.value_or(0);
    }
    cost += !regular ? 2.0 * lanes : step == 0 ? 0.2 : step == 1 ? 1 : 1.5 * lanes;
  }
  return cost;
}

double write_cost(const NestView& v, const Expr& r, int lanes) {
  double cost = 0;
  for (const Expr& s : v.nest->stores) {
    const auto step = stride(s->src[1], r);
    cost += step && *step == 1 ? 1 : 1.5 * lanes;
  }
  return cost / v.reduce_size;
}

int lanes_for(std::int64_t n, int widest) { return n >= widest ? widest : n >= 4 ? 4 : 1; }

// The largest number of copies up to `most` that divides n, or the one with the least rest.
int copies_for(std::int64_t n, int most) {
  for (int u = std::min<int>(most, static_cast<int>(std::min<std::int64_t>(n, 64))); u > 1; --u)
    if (n % u == 0) return u;
  return n >= 4 * most && most > 1 ? most : 1;
}

double tasks_of(const Nest& nest) {
  double n = 1;
  for (const Expr& l : nest.loops) n *= static_cast<double>(std::max<std::int64_t>(extent(l), 1));
  return n;
}

// The loop along which the stores lie side by side; null where they do not agree.
Expr loop_of_stores(const Nest& nest) {
  for (const Expr& l : nest.loops)
    if (std::ranges::all_of(nest.stores, [&](const Expr& s) { return stride(s->src[1], l) == 1; }))
      return l;
  return {};
}

// A sum down the columns of a large matrix: several rows at a time are added to a part of the
// result that stays in the first cache, since a walk down one column would use little of each line.
//
//   for (part of the columns) for (rows, 8 at a time) for (columns of the part)
//     result[column] += the sum over 8 rows
Kernel with_passes(Kernel k, std::size_t i, const Target& target) {
  constexpr std::int64_t rows_at_once = 8, vectors = 4, least_rows = 64, parts = 4;
  const Nest& nest = k.nests[i];
  const Expr sum = hottest_reduce(nest), along = loop_of_stores(nest);
  if (!sum || !along || !nest.sums.empty() || size_of(sum->dtype) < 4 || nest.stores.size() != 1)
    return k;
  const Expr down = sum->src.back();
  const int lanes = target.vector_bytes / size_of(sum->dtype);
  const std::int64_t width = lanes * vectors;
  if (!is_constant(down->src[0]) || extent(down) < least_rows || extent(along) < width) return k;
  for (const Expr& l : nest.loops)
    if (!depends(sum, l)) return k;
  double bytes = 0;
  for (const Expr& e : outside_of_tables({sum->src[0]})) {
    if (e->op == Op::stage) return k;
    if (e->op != Op::load) continue;
    const auto by_column = stride(e->src[1], along), by_row = stride(e->src[1], down);
    if (!by_column || !by_row || (*by_column == 0 && *by_row == 0)) continue;
    if (*by_column > 1 || (*by_column == 0 && *by_row > 1)) return k;
    if (*by_column == 1 && *by_row >= width)
      bytes = std::max(bytes, static_cast<double>(e->src[0]->arg2 * size_of(e->dtype)));
  }
  if (bytes <= static_cast<double>(target.l2_bytes)) return k;
  const bool stored = nest.stores[0]->src[2] == sum && nest.stores[0]->src.size() == 3;
  if (!stored) {
    const std::vector<Expr> loops = nest.loops;
    k = stage(std::move(k), sum, loops);
    return with_passes(std::move(k), i, target);
  }
  std::pair<Expr, Expr> rows, columns;
  k = split(std::move(k), down, rows_at_once, &rows);
  const std::int64_t part = (extent(along) + parts * width - 1) / (parts * width) * width;
  k = split(std::move(k), along, part, &columns);
  std::vector<Expr> outer(k.nests[i].stores[0]->src[2]->src.begin() + 1,
                          k.nests[i].stores[0]->src[2]->src.end() - 1);
  std::vector<Expr> loops;
  for (const Expr& l : k.nests[i].loops)
    if (l != columns.second) loops.push_back(l);
  k = accumulate(std::move(k), i, outer);
  loops.insert(loops.end(), outer.begin(), outer.end());
  loops.push_back(columns.second);
  k = order(std::move(k), i, loops);
  k = vectorize(std::move(k), columns.second, lanes);
  k = unroll(std::move(k), columns.second, vectors);
  return unroll(std::move(k), rows.second, rows_at_once);
}

// What is read down columns and written along rows, in blocks of both: each line is read and
// written while it is in the cache, and vectors are turned in registers.
Kernel with_blocks(Kernel k, std::size_t i, const Target& target) {
  constexpr std::int64_t block = 32, least = 1 << 12;
  const Nest& nest = k.nests[i];
  const Expr along = loop_of_stores(nest);
  if (!along || hottest_reduce(nest)) return k;
  const int lanes = target.vector_bytes / std::max(size_of(nest.stores[0]->dtype), 4);
  Expr across;
  for (const Expr& e : outside_of_tables(nest.stores)) {
    if (e->op == Op::stage || e->op == Op::scan) return k;
    if (e->op != Op::load || e->src.size() > 2 || !depends(e->src[1], along)) continue;
    if (stride(e->src[1], along) == 1) continue;
    for (const Expr& l : nest.loops)
      if (l != along && stride(e->src[1], l) == 1 && extent(l) >= lanes) across = l;
  }
  if (!across || extent(along) < lanes || tasks_of(nest) < least) return k;
  std::pair<Expr, Expr> a{Expr(), across}, b{Expr(), along};
  std::vector<Expr> outer, inner;
  for (auto* pair : {&a, &b}) {
    if (extent(pair->second) > block) {
      k = split(std::move(k), Expr(pair->second), block, pair);
    }
  }
  for (const Expr& l : k.nests[i].loops)
    if (l != a.second && l != b.second) outer.push_back(l);
  outer.push_back(a.second);
  outer.push_back(b.second);
  k = order(std::move(k), i, outer);
  k = vectorize(std::move(k), b.second, lanes);
  return unroll(std::move(k), a.second, lanes);
}

class Chooser {
 public:
  Chooser(Kernel k, const Target& target, int tile)
      : k_(std::move(k)), target_(target), tile_(tile) {}

  Kernel run() {
    for (std::size_t i = 0; i < k_.nests.size(); ++i) {
      if (is_ordered(k_.nests[i])) continue;
      if (is_large(k_.nests[i]) && !is_chosen(k_.nests[i])) {
        k_ = with_rows(std::move(k_), i, target_);
        k_ = with_tiles(std::move(k_), i, target_,
                        tile_);  // may put nests before it, which are next
        for (const Expr& range : ranges_of_tables(k_.nests[i]))
          k_ = with_tiles(std::move(k_), range, target_, tile_);
        if (!is_chosen(k_.nests[i])) k_ = with_passes(std::move(k_), i, target_);
        if (!is_chosen(k_.nests[i])) k_ = with_blocks(std::move(k_), i, target_);
      }
      const Nest nest = k_.nests[i];
      for (const Expr& e : topological(nest.stores))
        if (e->op == Op::stage) {
          tables_.push_back(nest_of_table(e));
          if (!is_chosen(tables_.back())) choose(look_at(tables_.back()), true);
        }
      if (!is_chosen(nest)) choose(look_at(nest), false);
      for (const Expr& e : topological(nest.stores))
        if (e->op == Op::reduce) choose_sum(e);
    }
    return std::move(k_);
  }

 private:
  // Some loop or sum takes enough steps for more than lanes to pay.
  static bool is_large(const Nest& nest) {
    constexpr double large = 1 << 12;
    const auto all = topological(nest.stores);
    double steps = tasks_of(nest);
    for (const Expr& e : all) {
      if (e->op != Op::reduce) continue;
      double n = size_of_reduce(e);
      for (const Expr& r : all)
        if (r->op == Op::range && depends(e, r)) n *= static_cast<double>(extent(r));
      steps = std::max(steps, n);
    }
    return steps >= large;
  }

  bool is_chosen(const Nest& nest) const {
    return std::ranges::any_of(
        nest.loops, [&](const Expr& l) { return k_.choices.contains(static_cast<int>(l->arg)); });
  }

  static std::vector<Expr> ranges_of_tables(const Nest& nest) {
    std::vector<Expr> out;
    for (const Expr& e : topological(nest.stores))
      if (e->op == Op::stage) out.push_back(e->src[1]);
    return out;
  }

  void choose(const NestView& v, bool table) {
    const int widest = std::max(1, target_.vector_bytes / std::max(size_of(v.dtype), 4));
    Expr best;
    int best_lanes = 1;
    bool best_is_reduce = false;
    double least = static_cast<double>(v.reads.size()) + 1;  // of one scalar step, for each element
    for (const Expr& r : v.nest->loops) {
      const int lanes = lanes_for(extent(r), widest);
      if (lanes == 1 || v.captured.has(static_cast<int>(r->arg))) continue;
      if (table && r != v.nest->loops.back()) continue;  // rows of a table are filled by vectors
      const double cost = (read_cost(v, r, lanes) + write_cost(v, r, lanes) + 0.5) / lanes;
      if (cost >= least * 0.98) continue;
      least = cost;
      best = r;
      best_lanes = lanes;
      best_is_reduce = false;
    }
    if (!v.reduce_ranges.empty()) {
      const Expr& r = v.reduce_ranges.back();
      const int lanes = lanes_for(extent(r), widest);
      const double cost = (read_cost(v, r, lanes) + 0.5) / lanes +
                          1.0 / static_cast<double>(std::max<std::int64_t>(extent(r), 1));
      if (lanes > 1 && cost < least * 0.98) {
        best = r;
        best_lanes = lanes;
        best_is_reduce = true;
      }
    }
    if (best && (lanes() == 1 || lanes() == best_lanes)) {
      k_ = vectorize(std::move(k_), best, best_lanes);
    } else {
      best = {};
      best_lanes = 1;
    }
    tile(v, best, best_lanes, best_is_reduce);
  }

  // A loop along which something lies side by side that lies apart along the vectors.
  static Expr read_across(const NestView& v, const Expr& vector) {
    for (const Expr& e : v.reads) {
      if (e->op != Op::load || e->src.size() > 2 || stride(e->src[1], vector).value_or(0) < 2)
        continue;
      for (const Expr& l : v.nest->loops)
        if (l != vector && stride(e->src[1], l) == 1) return l;
    }
    return {};
  }

  // Lanes for a sum that lies in no vectors yet, where it reads side by side.
  void choose_sum(const Expr& sum) {
    const Expr& r = sum->src.back();
    if (k_.choices.contains(static_cast<int>(r->arg))) return;
    for (const auto& [id, c] : k_.choices)
      if (c.lanes > 1 && sum->src[0]->free.has(id)) return;
    NestView v;
    for (const Expr& e : outside_of_tables({sum->src[0]}))
      if (e->op == Op::load || e->op == Op::stage_at) v.reads.push_back(e);
    const int widest =
        lanes() > 1 ? lanes() : target_.vector_bytes / std::max(size_of(sum->dtype), 4);
    if (extent(r) < widest ||
        read_cost(v, r, widest) > static_cast<double>(v.reads.size()) * widest * 0.5)
      return;
    k_ = vectorize(std::move(k_), r, widest);
    if (extent(r) >= 8 * widest) k_ = unroll(std::move(k_), r, 4);
  }

  // Of the kernel's vectors, once chosen.
  int lanes() const {
    int most = 1;
    for (const auto& [id, c] : k_.choices) most = std::max(most, c.lanes);
    return most;
  }

  // Copies of the vector range, then of a range that some reads do not depend on.
  void tile(const NestView& v, const Expr& vector, int lanes, bool vector_is_reduce) {
    const bool reduces = !v.reduce_ranges.empty() && v.reduce_size >= 4;
    int used = 1;
    if (vector && !vector_is_reduce) {
      const std::int64_t vectors = extent(vector) / lanes;
      const int most = reduces ? (lanes < 8 ? 5 : 3) : 4;
      used = vectors <= most ? static_cast<int>(std::max<std::int64_t>(vectors, 1))
                             : copies_for(vectors, most);
      if (used > 1) k_ = unroll(std::move(k_), vector, used);
    }
    if (const Expr across = vector && !reduces ? read_across(v, vector) : Expr())
      k_ =
          unroll(std::move(k_), across, lanes);  // as many vectors as lanes are turned in registers
    if (!reduces) return;
    for (int round = 0; round < 2; ++round) {
      Expr best;
      int best_copies = 1;
      double best_gain = 0;
      for (const Expr& r : v.nest->loops) {
        // Copies of what a table captures would fill tables of their own.
        if (r == vector || k_.choices.contains(static_cast<int>(r->arg)) ||
            v.captured.has(static_cast<int>(r->arg)))
          continue;
        const int copies = copies_for(extent(r), most_accumulators / used);
        if (copies < 2) continue;
        int shared = 0;
        for (const Expr& e : v.reads) shared += !e->free.has(static_cast<int>(r->arg));
        const double gain = shared * (1 - 1.0 / copies);
        if (gain <= best_gain) continue;
        best = r;
        best_copies = copies;
        best_gain = gain;
      }
      if (!best) break;
      k_ = unroll(std::move(k_), best, best_copies);
      used *= best_copies;
    }
    if (used == 1 && !v.reduce_ranges.empty() && extent(v.reduce_ranges.back()) >= 16) {
      const Expr& r = v.reduce_ranges.back();  // several chains of additions
      k_ = unroll(std::move(k_), r, 4);
    }
  }

  Kernel k_;
  const Target& target_;
  const int tile_;
  std::deque<Nest> tables_;
};

// Neighbours a, b as one, where no index needs the parts; the kernel as it was where one does.
std::optional<Kernel> fused(const Kernel& k, const Expr& a, const Expr& b) {
  if (!is_constant(a->src[0]) || !is_constant(b->src[0])) return {};
  Expr p;
  Kernel out;
  try {
    out = fuse(k, a, b, &p);
  } catch (const InternalError&) {  // not neighbours everywhere
    return {};
  }
  std::vector<Expr> stores;
  for (const Nest& n : out.nests) stores.insert(stores.end(), n.stores.begin(), n.stores.end());
  for (const Expr& e : topological(stores))
    if ((e->op == Op::idiv || e->op == Op::mod) && e->dtype == DType::index && depends(e, p))
      return {};
  return out;
}

std::vector<std::vector<Expr>> lists_of_ranges(const Kernel& k) {
  std::vector<std::vector<Expr>> out;
  for (const Nest& n : k.nests) {
    const auto all = topological(n.stores);
    const bool holds_tables = std::ranges::any_of(
        all, [](const Expr& e) { return e->op == Op::stage || e->op == Op::scan; });
    if (!holds_tables && !is_ordered(n)) out.push_back(n.loops);
    for (const Expr& e : all)
      if (e->op == Op::reduce) out.emplace_back(e->src.begin() + 1, e->src.end());
  }
  return out;
}

// Loops, and sums, over several ranges become long ones.
Kernel with_fused_loops(Kernel k) {
  for (bool again = true; again;) {
    again = false;
    for (const std::vector<Expr>& list : lists_of_ranges(k))
      for (std::size_t i = 0; i + 1 < list.size() && !again; ++i)
        if (auto one = fused(k, list[i], list[i + 1])) {
          k = std::move(*one);
          again = true;
        }
  }
  return k;
}

// The largest sum of a nest that has too few loops for the threads; null where there is none.
Expr lonely_sum(const Nest& nest, const Target& target) {
  constexpr double large = 1 << 16;
  Expr found;
  if (is_ordered(nest) || tasks_of(nest) * 4 > target.parallel_width) return found;
  for (const Expr& e : topological(nest.stores)) {
    if (e->op != Op::reduce || size_of(e->dtype) < 4 || size_of_reduce(e) < large) continue;
    const auto is_loop = [&](int id) {
      return std::ranges::any_of(nest.loops, [&](const Expr& l) { return l->arg == id; });
    };
    if (extent(e->src[1]) > 1 && e->src[0]->free.has(static_cast<int>(e->src[1]->arg)) &&
        std::ranges::all_of(e->free.ids(), is_loop))
      found = e;
  }
  return found;
}

// A large sum with no loops around it: sums of parts are a nest of their own, dealt out to the
// threads, and the sum adds those up. How many parts there are is a matter of the target alone.
Kernel with_partial_sums(Kernel k, const Target& target) {
  for (std::size_t i = 0; i < k.nests.size(); ++i) {
    const Expr sum = lonely_sum(k.nests[i], target);
    if (!sum) continue;
    const std::int64_t parts = std::min<std::int64_t>(target.parallel_width, extent(sum->src[1]));
    std::pair<Expr, Expr> made;
    k = split(std::move(k), sum->src[1], (extent(sum->src[1]) + parts - 1) / parts, &made);
    for (const Expr& e : topological(k.nests[i].stores)) {
      if (e->op != Op::reduce || e->src[1] != made.first) continue;
      k = nest_reduce(std::move(k), e, e->src.subspan(2));
      break;
    }
    for (const Expr& e : topological(k.nests[i].stores)) {
      if (e->op != Op::reduce || e->src.size() != 2 || e->src[1] != made.first) continue;
      std::vector<Expr> dims{made.first};
      for (const Expr& l : k.nests[i].loops)
        if (e->src[0]->free.has(static_cast<int>(l->arg))) dims.push_back(l);
      k = stage(std::move(k), e->src[0], dims);
      break;
    }
  }
  return k;
}

}  // namespace

Kernel optimize(Kernel k, const Target& target, int tile) {
  k = with_partial_sums(with_fused_loops(std::move(k)), target);
  k = Chooser(std::move(k), target, tile).run();
  if (tracing(3)) trace({3, "moves", k.name, to_text(k)});
  return k;
}

}  // namespace mote
