#include "opt/tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "mote/error.h"
#include "opt/nest.h"

namespace mote {
namespace {

constexpr double least_work = 1 << 14;  // multiplications that are worth a tile
constexpr double latency = 5;           // cycles until a sum can be added to again, and some slack
constexpr double far = 1.6;  // a load from a cache line of its own, of one from a shared line
constexpr double scattering = 1.5;     // cycles to store one lane by itself
constexpr double sharing_lines = 0.4;  // or to a line that is stored to again, later
constexpr int line_bytes = 64;
constexpr double most_packed = 1 << 28;       // bytes of a packed factor
constexpr double copying = 0.5;               // cycles to copy one element
constexpr double packing = 2.5;               // cycles to copy one element to another order
constexpr std::int64_t tasks = 8;             // at least, for the threads
constexpr std::int64_t longest_panel = 1024;  // steps of the sum over one panel of B

std::int64_t product_of_extents(std::span<const Expr> ranges) {
  std::int64_t n = 1;
  for (const Expr& r : ranges) n *= std::max<std::int64_t>(extent(r), 1);
  return n;
}

std::vector<Expr> those_of(std::span<const Expr> ranges, const Expr& value, bool free = true) {
  std::vector<Expr> out;
  for (const Expr& r : ranges)
    if (depends(value, r) == free) out.push_back(r);
  return out;
}

// The parts of the product that depend on less than all of it, and read memory.
void collect_factors(const Expr& e, std::vector<Expr>& out) {
  if (e->free.empty()) return;
  const bool apart = is_elementwise(e->op) && std::ranges::any_of(e->src, [&](const Expr& s) {
                       return !s->free.empty() && s->free != e->free;
                     });
  if (apart) {
    for (const Expr& s : e->src) collect_factors(s, out);
    return;
  }
  const auto reads = [](const Expr& x) { return x->op == Op::load || x->op == Op::stage_at; };
  const bool reads_any = std::ranges::any_of(outside_of_tables({e}), reads);
  if (reads_any && std::ranges::find(out, e) == out.end()) out.push_back(e);
}

struct Factor {
  Expr value;
  bool is_computed;  // more than one read
  bool is_gated;

  explicit Factor(const Expr& v) : value(v) {
    is_computed = v->op != Op::load && v->op != Op::stage_at;
    is_gated = std::ranges::any_of(outside_of_tables({v}), [](const Expr& e) {
      return e->op == Op::load && e->src.size() > 2;
    });
  }

  // Whether the elements along r lie side by side wherever it reads.
  bool is_contiguous(const Expr& r) const {
    return std::ranges::all_of(outside_of_tables({value}), [&](const Expr& e) {
      if (e->op != Op::load && e->op != Op::stage_at) return true;
      const Expr& last = e->op == Op::load ? e->src[1] : e->src.back();
      for (std::size_t i = 1; e->op == Op::stage_at && i + 1 < e->src.size(); ++i)
        if (depends(e->src[i], r)) return false;
      const auto s = stride(last, r);
      return s && (*s == 0 || *s == 1);
    });
  }
};

// What is kept in the second cache.
double block_bytes(const Target& target) { return static_cast<double>(target.l2_bytes) * 0.375; }

struct Tile {
  Expr vector;             // lanes
  std::int64_t width = 0;  // its extent, before it is split
  int vectors = 1;         // side by side
  std::vector<std::pair<Expr, int>> copies;
  double cycles = 0;  // of the whole nest
};

class Tiler {
 public:
  Tiler(Kernel k, std::size_t nest, const Target& target)
      : k_(std::move(k)), nest_(nest), target_(target), host_(k_.nests[nest]) {}
  Tiler(Kernel k, const Expr& range_of_table, const Target& target)
      : k_(std::move(k)),
        target_(target),
        table_(static_cast<int>(range_of_table->arg)),
        host_(nest_of_table(table())) {}

  Kernel run(int rank) {
    if (!find_product()) return std::move(k_);
    const std::vector<Tile> tiles = best_tiles(static_cast<std::size_t>(rank) + 1);
    if (tiles.empty()) return std::move(k_);
    const Tile& tile = tiles.back();
    Kernel before = k_;
    try {
      apply(tile);
    } catch (const InternalError& e) {  // a move was refused: the nest runs without tiles
      before.words.push_back(cat("no tiles: ", e.what()));
      return before;
    }
    return std::move(k_);
  }

 private:
  // The nest, or the filling of the table.
  const Nest& nest() const { return host_; }

  bool is_table() const { return table_ >= 0; }

  // Found again by a range that it binds, for moves make it another expression.
  Expr table() const {
    std::vector<Expr> stores;
    for (const Nest& n : k_.nests) stores.insert(stores.end(), n.stores.begin(), n.stores.end());
    for (const Expr& e : topological(stores))
      if (e->op == Op::stage)
        for (const Expr& r : e->src.subspan(1))
          if (r->arg == table_) return e;
    throw InternalError("the table is gone");
  }

  bool find_product() {
    if (!nest().sums.empty()) return false;
    sum_ = hottest_reduce(nest());
    if (!sum_ || static_cast<Op>(sum_->arg) != Op::add || size_of(sum_->dtype) < 4 ||
        !is_float(sum_->dtype))
      return false;
    spatial_ = those_of(nest().loops, sum_);
    over_.assign(sum_->src.begin() + 1, sum_->src.end());
    double work = 1;
    for (const auto* ranges : {&spatial_, &over_})
      for (const Expr& r : *ranges) {
        if (!is_constant(r->src[0])) return false;
        work *= static_cast<double>(extent(r));
      }
    const auto inside = outside_of_tables({sum_});
    for (const Expr& e : inside)
      if (e->op == Op::stage) captured_ |= e->free;
    for (const Expr& e : outside_of_tables(nest().stores))
      beside_tables_ |=
          e->op == Op::stage && !e->free.empty() && std::ranges::find(inside, e) == inside.end();
    if (is_table() && (beside_tables_ || !those_of(nest().loops, sum_, false).empty()))
      return false;
    std::vector<Expr> values;
    collect_factors(sum_->src[0], values);
    set_factors(values);
    work_ = work;
    const auto is_apart = [&](const Factor& f) { return f.value->free != sum_->src[0]->free; };
    return work >= least_work && factors_.size() >= 2 && std::ranges::all_of(factors_, is_apart);
  }

  // A table that is read inside of the sum depends on it: copies would need tables of their own.
  bool is_captured(const Expr& r) const { return captured_.has(static_cast<int>(r->arg)); }

  bool in_blocks(const Expr& r) const { return std::ranges::find(blocks_, r) != blocks_.end(); }

  // Of a factor, over these loops and one block of the sum; those that a window reads again count
  // once.
  double elements(const Factor& f, std::vector<Expr> loops) const {
    double n = 1;
    for (const Expr& r : those_of(over_, f.value)) {
      if (in_blocks(r)) continue;
      const auto pair =
          std::ranges::find_if(loops, [&](const Expr& l) { return step_of(f, l, r) > 0; });
      double size = static_cast<double>(extent(r));
      if (pair != loops.end()) {
        size += static_cast<double>((extent(*pair) - 1) * step_of(f, *pair, r));
        loops.erase(pair);
      }
      n *= size;
    }
    return n * static_cast<double>(product_of_extents(loops));
  }

  double elements(const Factor& f) const { return elements(f, those_of(spatial_, f.value)); }

  // How often the table is filled while the factor stays the same, and so its packed form.
  double fills_of_one(const Factor& f) const {
    double n = 1;
    for (const Expr& r : topological(nest().stores[0]))
      if (r->op == Op::range && is_table() && depends(nest().stores[0]->src[2], r) &&
          !depends(f.value, r) && std::ranges::find(nest().loops, r) == nest().loops.end())
        n *= static_cast<double>(extent(r));
    return n;
  }

  double elements_of_panels(const Factor& f) const {
    return static_cast<double>(product_of_extents(those_of(spatial_, f.value)) *
                               product_of_extents(those_of(over_, f.value)));
  }

  // ---- which tile

  bool packs(const Factor& f, const Tile& t) const {
    if (work_ / elements(f) < 16) return false;
    if (!depends(f.value, t.vector)) return f.is_computed || f.is_gated || jumps(f);
    return !f.is_contiguous(t.vector) || f.is_gated || f.is_computed || is_scattered(f, t);
  }

  // Its rows are far apart and many, so that those of one panel share few pages and cache sets.
  bool is_scattered(const Factor& f, const Tile& t) const {
    if (t.width <= 64 ||
        elements(f) * size_of(sum_->dtype) <= static_cast<double>(target_.l2_bytes) / 2)
      return false;
    if (product_of_extents(over_) > 256) return true;
    const auto row = stride(f.value->src[1], over_.back());
    return !row || *row * size_of(sum_->dtype) % 2048 == 0;
  }

  // Its elements along the sum do not lie side by side, and there are many.
  bool jumps(const Factor& f) const {
    return !f.is_contiguous(over_.back()) &&
           elements(f) * size_of(sum_->dtype) > static_cast<double>(target_.l2_bytes);
  }

  // Copies along r, or steps of the sum, read the same cache lines.
  bool is_near(const Factor& f, const Expr& r) const {
    return f.is_contiguous(r) || (extent(over_.back()) >= 16 && f.is_contiguous(over_.back()));
  }

  // Of one step of the sum with so many vectors and copies: two multiplications and two loads a
  // cycle.
  double step_cycles(const Tile& t, double vectors, std::span<const double> copies) const {
    double products = vectors, loads = 0;
    for (double c : copies) products *= c;
    for (const Factor& f : factors_) {
      double n = 1;
      for (std::size_t i = 0; i < copies.size(); ++i)
        if (depends(f.value, t.copies[i].first))
          n *= copies[i] * (is_near(f, t.copies[i].first) ? 1 : far);
      if (depends(f.value, t.vector)) {
        n *= vectors;
        if (!packs(f, t) && !f.is_contiguous(t.vector)) n *= lanes();
      }
      loads += n;
    }
    return std::max({products / 2, loads / 2, latency}) + loads * 0.1;
  }

  // The whole nest: full tiles, and what is left at the end of each range.
  double total_cycles(const Tile& t) const {
    double cycles = 0;
    const double n = static_cast<double>(extent(t.vector)) / lanes(), whole = std::floor(n),
                 full = std::floor(whole / t.vectors), left = whole - full * t.vectors,
                 scalars = static_cast<double>(extent(t.vector) % lanes());
    cycles += full * copies_cycles(t, t.vectors, 0, {});
    if (left > 0) cycles += copies_cycles(t, left, 0, {});
    cycles += scalars * copies_cycles(t, 1, 0, {});
    for (const Expr& r : spatial_)
      if (r != t.vector &&
          std::ranges::find(t.copies, r, &std::pair<Expr, int>::first) == t.copies.end())
        cycles *= static_cast<double>(extent(r));
    cycles *= static_cast<double>(product_of_extents(over_));
    // Stored lane by lane; or by readers of a table, which expect its order of axes.
    const bool scattered = is_table() ? t.vector != nest().loops.back()
                                      : stride(nest().stores[0]->src[1], t.vector) != 1,
               in_lines = t.vectors * target_.vector_bytes % line_bytes == 0;
    cycles += (scattered  ? scattering
               : in_lines ? 0
                          : sharing_lines) *
              static_cast<double>(product_of_extents(spatial_));
    for (const Factor& f : factors_) {
      if (!packs(f, t)) continue;
      const bool panels = depends(f.value, t.vector);
      const double packed = panels ? elements_of_panels(f) : elements(f);
      if (panels && packed * size_of(sum_->dtype) > most_packed)
        return std::numeric_limits<double>::infinity();
      cycles += packed * (f.is_contiguous(t.vector) ? copying : packing) / fills_of_one(f);
    }
    return cycles;
  }

  double copies_cycles(const Tile& t, double vectors, std::size_t i,
                       std::vector<double> copies) const {
    if (i == t.copies.size()) return step_cycles(t, vectors, copies);
    const auto& [r, n] = t.copies[i];
    const double full = static_cast<double>(extent(r) / n),
                 left = static_cast<double>(extent(r) % n);
    copies.push_back(n);
    double cycles = full * copies_cycles(t, vectors, i + 1, copies);
    copies.back() = left;
    return left > 0 ? cycles + copies_cycles(t, vectors, i + 1, copies) : cycles;
  }

  int lanes() const { return target_.vector_bytes / size_of(sum_->dtype); }

  // The best so far, fastest first; the earlier of two that are as good as equal.
  struct Ranking {
    std::size_t most;
    std::vector<Tile> tiles;
  };

  void consider(Tile t, Ranking& best) const {
    t.cycles = total_cycles(t);
    if (!std::isfinite(t.cycles)) return;
    const auto at = std::ranges::find_if(
        best.tiles, [&](const Tile& other) { return t.cycles < other.cycles * 0.999; });
    best.tiles.insert(at, std::move(t));
    if (best.tiles.size() > best.most) best.tiles.pop_back();
  }

  std::vector<Tile> best_tiles(std::size_t most) const {
    Ranking best{most, {}};
    for (const Expr& v : spatial_) {
      if (extent(v) < lanes() || is_captured(v)) continue;
      const std::int64_t most_vectors = std::min<std::int64_t>(4, extent(v) / lanes());
      for (int vectors = 1; vectors <= most_vectors; ++vectors) {
        Tile t{v, extent(v), vectors, {}, 0};
        consider(t, best);
        add_copies(t, 1, best);
      }
    }
    return best.tiles;
  }

  // Copies of one range that the vectors' factor does not depend on, or all of one and some of
  // another.
  void add_copies(const Tile& t, int used, Ranking& best) const {
    for (const Expr& r : spatial_) {
      if (r == t.vector || is_captured(r) ||
          std::ranges::find(t.copies, r, &std::pair<Expr, int>::first) != t.copies.end())
        continue;
      for (int n = 2; n <= 12; ++n) {
        const int all = used * n;
        if (n > extent(r) || all * t.vectors + t.vectors + 1 > target_.vector_registers) break;
        Tile more = t;
        more.copies.emplace_back(r, n);
        consider(more, best);
        if (n == extent(r) && more.copies.size() < 2) add_copies(more, all, best);
      }
    }
  }

  // ---- the moves

  // The ranges and the sum after a move that changed them.
  void look_again() {
    host_ = is_table() ? nest_of_table(table()) : k_.nests[nest_];
    sum_ = hottest_reduce(nest());
    spatial_ = those_of(nest().loops, sum_);
    over_.assign(sum_->src.begin() + 1, sum_->src.end());
    std::vector<Expr> values;
    collect_factors(sum_->src[0], values);
    set_factors(values);
  }

  void set_factors(const std::vector<Expr>& values) {
    factors_.clear();
    for (const Expr& v : values) factors_.emplace_back(v);
  }

  void apply(Tile t) {
    const int width = t.vectors * lanes();
    if (!is_table()) alone(t);
    Expr panel, vector = t.vector;
    if (extent(vector) > width) {
      std::pair<Expr, Expr> made;
      k_ = split(std::move(k_), vector, width, &made);
      std::tie(panel, vector) = made;
      if (is_table()) table_ = static_cast<int>(vector->arg);
      look_again();
    }
    Tile now = t;
    now.vector = vector;
    std::vector<Expr> to_pack;
    for (const Factor& f : factors_) to_pack.push_back(packs(f, now) ? f.value : Expr());
    if (!is_table()) block_sum();
    std::vector<Expr> outer, inner;
    block(t, vector, outer, inner);
    const std::vector<Factor> factors = factors_;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      const Factor& f = factors[i];
      if (!to_pack[i]) continue;
      const std::size_t nests = k_.nests.size();
      if (depends(f.value, vector)) pack_panels(f, panel, vector);
      else pack_block(f, inner);
      nest_ += k_.nests.size() - nests;
    }
    look_again();
    if (!blocks_.empty()) k_ = accumulate(std::move(k_), nest_, blocks_);
    std::vector<Expr> loops = outer;
    loops.insert(loops.end(), blocks_.begin(), blocks_.end());
    const auto placed = [&](const Expr& l) {
      return l == panel || l == vector || std::ranges::find(loops, l) != loops.end() ||
             std::ranges::find(inner, l) != inner.end();
    };
    for (const Expr& l : nest().loops)
      if (!placed(l)) loops.push_back(l);
    if (panel) loops.push_back(panel);
    loops.insert(loops.end(), inner.begin(), inner.end());
    loops.push_back(vector);
    if (is_table()) {
      const Expr filled = table();
      k_ = order_table(std::move(k_), filled, loops);
    } else {
      k_ = order(std::move(k_), nest_, loops);
    }
    k_ = vectorize(std::move(k_), vector, lanes());
    if (t.vectors > 1) k_ = unroll(std::move(k_), vector, t.vectors);
    int products = t.vectors;
    for (const auto& [r, n] : t.copies) {
      k_ = unroll(std::move(k_), last_part(r), n);
      products *= n;
    }
    unroll_sum(products);
  }

  // The sum becomes a table of its own where other tables or loops around it use it again; and, if
  // it has to be added up in memory, where it is stored with more done to it or its vectors would
  // be scattered.
  void alone(Tile& t) {
    const Expr& s = nest().stores[0];
    const bool stored = nest().stores.size() == 1 && s->src[2] == sum_ && s->src.size() == 3 &&
                        stride(s->src[1], t.vector) == 1;
    const bool again =
        beside_tables_ || product_of_extents(those_of(nest().loops, sum_, false)) > 1;
    if (!again && (stored || product_of_extents(over_) <= longest_panel)) return;
    std::vector<Expr> dims;
    for (const Expr& l : spatial_)
      if (l != t.vector) dims.push_back(l);
    dims.push_back(t.vector);
    k_ = stage(std::move(k_), sum_, dims);  // its nest comes before its reader, at the same place
    look_again();
    const auto now = [&](const Expr& l) {
      return nest().loops[static_cast<std::size_t>(std::ranges::find(dims, l) - dims.begin())];
    };
    t.vector = now(t.vector);
    for (auto& [r, n] : t.copies) r = now(r);
  }

  // The range that a range of the tile has become: the inner one, where it was split.
  Expr last_part(const Expr& r) const {
    const auto at = parts_.find(static_cast<int>(r->arg));
    return at == parts_.end() ? r : at->second;
  }

  // The loops of A, the factor that does not vary along the vectors: those that stay inside of a
  // panel, and those around.
  void block(const Tile& t, const Expr& vector, std::vector<Expr>& outer,
             std::vector<Expr>& inner) {
    const Factor* a = nullptr;
    for (const Factor& f : factors_)
      if (!depends(f.value, vector) && (!a || elements(f) > elements(*a))) a = &f;
    if (!a) return;
    const Expr value = a->value;
    std::vector<Expr> ranges, batches;  // the tile's copies innermost; both factors have batches
    const auto is_batch = [&](const Expr& r) {
      return std::ranges::all_of(factors_, [&](const Factor& f) { return depends(f.value, r); });
    };
    for (const Expr& r : those_of(spatial_, value))
      if (is_batch(r) || is_captured(r)) batches.push_back(r);
      else if (std::ranges::find(t.copies, r, &std::pair<Expr, int>::first) == t.copies.end())
        ranges.push_back(r);
    for (auto c = t.copies.rbegin(); c != t.copies.rend(); ++c)
      if (depends(value, c->first)) ranges.push_back(c->first);
    const auto bytes_of = [&](const std::vector<Expr>& loops) {
      return elements(*a, loops) * size_of(sum_->dtype);
    };
    const double budget =
        is_table() ? std::numeric_limits<double>::infinity() : block_bytes(target_);
    while (!ranges.empty()) {
      inner.insert(inner.begin(), ranges.back());
      if (bytes_of(inner) > budget) break;
      ranges.pop_back();
    }
    if (!ranges.empty()) {  // the last of them in parts, whole copies each
      const Expr r = inner[0];
      int unit = 1;
      for (const auto& [c, n] : t.copies)
        if (c == r) unit = n;
      inner.erase(inner.begin());
      const double rest = bytes_of(inner);
      const std::int64_t by = part_of(extent(r), unit, budget / rest);
      if (by > 1 && by < extent(r)) {
        std::pair<Expr, Expr> made;
        k_ = split(std::move(k_), r, by, &made);
        parts_[static_cast<int>(r->arg)] = made.second;
        ranges.back() = made.first;
        inner.insert(inner.begin(), made.second);
        look_again();
      }
    }
    outer = batches;
    outer.insert(outer.end(), ranges.begin(), ranges.end());
    if (!blocks_.empty() && product_of_extents(outer) < tasks) deal_out(t, outer, inner);
  }

  // Around the blocks of the sum there have to be loops for the threads: the longest inner one in
  // parts.
  void deal_out(const Tile& t, std::vector<Expr>& outer, std::vector<Expr>& inner) {
    const auto longest = std::ranges::max_element(inner, {}, extent);
    if (longest == inner.end()) return;
    const Expr r = *longest;
    int unit = 1;
    for (const auto& [c, n] : t.copies)
      if (last_part(c) == r) unit = n;
    const std::int64_t by = part_of(
        extent(r), unit, static_cast<double>(extent(r) * product_of_extents(outer) / tasks));
    if (by >= extent(r)) return;
    std::pair<Expr, Expr> made;
    k_ = split(std::move(k_), r, by, &made);
    for (const auto& [c, n] : t.copies)
      if (last_part(c) == r) parts_[static_cast<int>(c->arg)] = made.second;
    *longest = made.second;
    outer.push_back(made.first);
    look_again();
  }

  // The outer ranges of the sum are added up in memory, so that a panel stays short.
  void block_sum() {
    std::vector<Expr> rest = over_;
    while (product_of_extents(rest) > longest_panel) {
      Expr r = rest[0];
      rest.erase(rest.begin());
      const std::int64_t within = product_of_extents(rest);
      if (within * 2 <= longest_panel) {
        const std::int64_t by = part_of(extent(r), 1, static_cast<double>(longest_panel / within));
        std::pair<Expr, Expr> made;
        k_ = split(std::move(k_), r, by, &made);
        r = made.first;
        rest.insert(rest.begin(), made.second);
      }
      blocks_.push_back(r);
    }
    look_again();
  }

  // [other loops][blocks of the sum][panel][the sum][vector], as a nest of its own.
  void pack_panels(const Factor& f, const Expr& panel, const Expr& vector) {
    std::vector<Expr> dims;
    for (const Expr& r : those_of(spatial_, f.value))
      if (r != panel && r != vector) dims.push_back(r);
    for (const Expr& r : those_of(blocks_, f.value)) dims.push_back(r);
    if (panel && depends(f.value, panel)) dims.push_back(panel);
    for (const Expr& r : those_of(over_, f.value))
      if (!in_blocks(r)) dims.push_back(r);
    dims.push_back(vector);
    k_ = stage(std::move(k_), f.value, dims);
  }

  // The part that one block of A reads: over its inner loops and the sum, where h*2 + r is one
  // axis.
  void pack_block(const Factor& f, const std::vector<Expr>& inner) {
    std::vector<Expr> loops = those_of(inner, f.value), sums;
    for (const Expr& r : those_of(over_, f.value))
      if (!in_blocks(r)) sums.push_back(r);
    std::vector<Int> axes;
    std::vector<Int> windows;
    for (const Expr& r : sums) {
      const auto pair =
          std::ranges::find_if(loops, [&](const Expr& l) { return step_of(f, l, r) > 0; });
      if (pair == loops.end()) {
        axes.push_back(Int(r));
        continue;
      }
      windows.push_back(Int(*pair) * step_of(f, *pair, r) + Int(r));
      loops.erase(pair);
    }
    std::vector<Int> all(loops.begin(), loops.end());
    all.insert(all.end(), axes.begin(), axes.end());
    all.insert(all.end(), windows.begin(), windows.end());
    k_ = window(std::move(k_), f.value, all);
  }

  // a, if the factor depends on the loop l and the summed range r by l*a + r alone; else 0.
  static std::int64_t step_of(const Factor& f, const Expr& l, const Expr& r) {
    for (const Expr& e : outside_of_tables({f.value})) {
      if (e->op != Op::load) continue;
      const auto by_l = stride(e->src[1], l), by_r = stride(e->src[1], r);
      if (!by_l || !by_r || *by_r == 0 || *by_l % *by_r != 0 || *by_l / *by_r < 1) return 0;
      const std::int64_t a = *by_l / *by_r;
      if (a >= extent(r)) return 0;  // nothing is read twice
      const Int moved = Int(r) - Int(l) * a;
      return depends(substitute(f.value, {{r, moved.expr()}}), l) ? 0 : a;
    }
    return 0;
  }

  // Short inner sums are written out; of a long one, some steps.
  void unroll_sum(int products) {
    look_again();
    const int most_written = target_.vector_registers * 8;
    int body = products;
    for (auto r = over_.rbegin(); r != over_.rend(); ++r) {
      if (!is_constant((*r)->src[0])) return;
      const std::int64_t n = extent(*r);
      const bool last = r == over_.rbegin();
      if (n <= 8 && body * n <= most_written) {
        k_ = unroll(std::move(k_), *r, static_cast<int>(n));
        body *= static_cast<int>(n);
        continue;
      }
      if (last && body <= 16) k_ = unroll(std::move(k_), *r, 4);
      return;
    }
  }

  Kernel k_;
  std::size_t nest_ = 0;
  const Target& target_;
  int table_ = -1;  // a range of the table, if it is one
  Nest host_;
  RangeSet captured_;
  Expr sum_;
  std::vector<Expr> spatial_, over_;
  std::vector<Expr> blocks_;  // the outer ranges of the sum, once chosen
  std::vector<Factor> factors_;
  double work_ = 0;
  bool beside_tables_ = false;
  std::unordered_map<int, Expr> parts_;  // the inner one of a range that was split, by its id
};

}  // namespace

Kernel with_tiles(Kernel k, std::size_t nest, const Target& target, int rank) {
  return Tiler(std::move(k), nest, target).run(rank);
}

Kernel with_tiles(Kernel k, const Expr& range_of_table, const Target& target, int rank) {
  return Tiler(std::move(k), range_of_table, target).run(rank);
}

namespace {

bool is_slow(Op op) {
  return op == Op::exp || op == Op::log || op == Op::sin || op == Op::cos || op == Op::tanh ||
         op == Op::erf;
}

// A sum of products of which one factor varies with the loop and another does not.
bool is_product_over(const Expr& e, const Expr& loop) {
  if (e->op != Op::reduce || !depends(e, loop)) return false;
  std::vector<Expr> factors;
  collect_factors(e->src[0], factors);
  return factors.size() >= 2 &&
         std::ranges::any_of(factors, [&](const Expr& f) { return !depends(f, loop); });
}

// The values of a table's rows, sources first, each of them once.
template <class Wanted>
std::vector<Expr> values_in(const Expr& table, Wanted wanted) {
  std::vector<Expr> out;
  for (const Expr& e : topological(table->src[0]))
    if (wanted(e)) out.push_back(e);
  return out;
}

}  // namespace

Kernel with_rows(Kernel k, std::size_t i, const Target& target) {
  constexpr std::int64_t least_rows = 4;
  Kernel before = k;
  const auto nest_has = [&](const Expr& l) {
    return std::ranges::find(k.nests[i].loops, l) != k.nests[i].loops.end();
  };
  Expr table, loop;
  for (const Expr& e : topological(k.nests[i].stores)) {
    if (e->op != Op::stage || e->src.size() != 2 || !is_float(e->dtype)) continue;
    for (const Expr& l : k.nests[i].loops)
      if (depends(e, l) && std::ranges::any_of(topological(e->src[0]), [&](const Expr& x) {
            return is_product_over(x, l) && depends(x, e->src[1]);
          })) {
        table = e;
        loop = l;
      }
  }
  if (!table || !nest_has(loop) || !is_constant(loop->src[0]) ||
      !is_constant(table->src[1]->src[0]))
    return k;
  const Expr along = table->src[1];
  const double row = static_cast<double>(extent(along) * size_of(table->dtype));
  const std::int64_t by = part_of(extent(loop), least_rows, block_bytes(target) / (row * 4));
  if (by < least_rows || by > extent(loop)) return k;
  const auto now = [&] {  // the table, found again by its range
    for (const Expr& e : topological(k.nests[i].stores))
      if (e->op == Op::stage && e->src.back()->arg == along->arg) return e;
    throw InternalError("the table is gone");
  };
  try {
    std::pair<Expr, Expr> made{Expr(), loop};
    if (by < extent(loop)) k = split(std::move(k), loop, by, &made);
    Expr q;
    const Expr rows_of = now();
    k = widen(std::move(k), rows_of, made.second, &q);
    const auto stage_all = [&](auto wanted, std::span<const Expr> dims) {
      for (bool again = true; again;) {
        again = false;
        for (const Expr& e : values_in(now(), wanted)) {
          k = stage(std::move(k), e, dims);
          again = true;
          break;
        }
      }
    };
    const Expr both[] = {q, now()->src.back()}, rows[] = {q};
    const auto varies = [&](const Expr& e) { return depends(e, both[0]) && depends(e, both[1]); };
    stage_all([&](const Expr& e) { return e->op == Op::reduce && varies(e); }, both);
    stage_all([&](const Expr& e) { return is_slow(e->op) && varies(e); }, both);
    stage_all(
        [&](const Expr& e) { return e->op == Op::reduce && depends(e, q) && !depends(e, both[1]); },
        rows);
  } catch (const InternalError& e) {
    before.words.push_back(cat("no rows: ", e.what()));
    return before;
  }
  return k;
}

}  // namespace mote
