// linearize: a Kernel becomes Code. Opening a loop substitutes its range by
// (counter * step + lane), once for each unrolled copy; before a body is written, the sums and
// tables below it are: each at the depth that it depends on, sums over equal ranges in one loop.
// What a value is, and where it is put, is the Writer's.
#include <algorithm>
#include <functional>
#include <map>

#include "base/text.h"
#include "kernel/decompose.h"
#include "kernel/kernel.h"
#include "kernel/writer.h"
#include "mote/error.h"

namespace mote {
namespace {

constexpr std::size_t enough_accumulators = 8;  // to keep the units for additions busy

std::vector<Expr> substituted(std::span<const Expr> all, const Expr& r,
                              const std::vector<Expr>& values) {
  std::vector<Expr> out;
  for (const Expr& e : all)
    for (const Expr& v : values) out.push_back(substitute(e, {{r, v}}));
  return out;
}

class Linearizer : Writer {
 public:
  Linearizer(const Kernel& kernel, const Target& target) : kernel_(kernel), target_(target) {}

  Code run() {
    code_.name = kernel_.name;
    std::vector<Expr> all;
    for (const Nest& n : kernel_.nests) all.insert(all.end(), n.stores.begin(), n.stores.end());
    const Expr decomposed = decompose(sink(all), target_);  // keeps the number and the order
    for (const auto& [id, c] : kernel_.choices) lanes_ = std::max(lanes_, c.lanes);
    for (const Expr& e : topological(decomposed))
      any_ragged_ |= e->op == Op::range && !e->src[0]->free.empty();
    index_type_ = index_bits(decomposed) == 32 ? DType::int32 : DType::int64;
    find_memories(decomposed);
    auto next = decomposed->src.begin();
    for (Nest n : kernel_.nests) {
      const bool in_order = is_ordered(n);
      for (std::vector<Expr>* ranges : {&n.loops, &n.sums})
        for (Expr& r : *ranges) r = decompose(r, target_);  // extents are index arithmetic too
      n.stores.assign(next, next + static_cast<std::ptrdiff_t>(n.stores.size()));
      next += static_cast<std::ptrdiff_t>(n.stores.size());
      phase(n, in_order);
    }
    return std::move(code_);
  }

 private:
  // ---- loops

  LoopChoice choice_of(const Expr& range) const {
    if (range->arg == block_id) return block_choice_;
    const auto at = kernel_.choices.find(static_cast<int>(range->arg));
    return at == kernel_.choices.end() ? LoopChoice{} : at->second;
  }

  // One vector range at a time: a second one is run step by step.
  LoopChoice choice_below(const Expr& range, std::span<const Expr> bodies) const {
    LoopChoice c = choice_of(range);
    if (std::ranges::any_of(bodies, depends_on_lane)) c.lanes = 1;
    return c;
  }

  // Some extent below depends on r: its values are then run one by one, the last one apart, so that
  // the others' extents become numbers.
  bool is_ragged(const Expr& r, std::span<const Expr> rest, std::span<const Expr> bodies) const {
    const auto depends = [&](const Expr& e) {
      return e->op == Op::range && e->src[0]->free.has(static_cast<int>(r->arg));
    };
    return any_ragged_ && (std::ranges::any_of(topological(rest), depends) ||
                           std::ranges::any_of(topological(bodies), depends));
  }

  using Body = std::function<void(const std::vector<Expr>& values)>;

  Value constant_index(std::int64_t v) { return emit(index_constant(v)); }

  // base, base + lanes, ..: the value of a range in each copy; a vector where there are lanes.
  static std::vector<Expr> copies(const Int& base, const LoopChoice& c) {
    std::vector<Expr> values;
    for (int u = 0; u < c.unroll; ++u)
      values.push_back(
          (base + u * c.lanes + (c.lanes > 1 ? Int(range(lane_id, c.lanes)) : Int(0))).expr());
    return values;
  }

  // Runs `body` for begin + step * (0..trips-1).
  void run_loop(std::int64_t begin, std::int64_t trips, const LoopChoice& c, const Body& body) {
    if (trips <= 0) return;
    if (trips == 1) return body(copies(begin, c));
    const Expr counter = counter_of(trips);
    open_loop(instruction(Ins::loop, index_type_, 1, {constant_index(0), constant_index(trips)}),
              counter);
    body(copies(Int(counter) * (std::int64_t{c.unroll} * c.lanes) + begin, c));
    close_block();
  }

  // begin..end: full steps, then the vectors that are left, then what fills no vector.
  void run_rounds(std::int64_t begin, std::int64_t end, const LoopChoice& c, const Body& body) {
    for (const int lanes : {c.lanes, 1}) {
      const std::int64_t step = std::int64_t{c.unroll} * lanes, trips = (end - begin) / step;
      run_loop(begin, trips, {c.unroll, lanes}, body);
      begin += trips * step;
      const int left = static_cast<int>((end - begin) / lanes);
      if (left > 0) run_loop(begin, 1, {left, lanes}, body);
      begin += left * lanes;
    }
  }

  void for_range(const Expr& extent, LoopChoice c, bool ragged, const Body& body) {
    if (!is_constant(extent)) {
      const Value end = emit(extent);
      const Expr counter = counter_of(extent);
      open_loop(instruction(Ins::loop, index_type_, 1, {constant_index(0), end}), counter);
      body({counter});
      return close_block();
    }
    if (!ragged) return run_rounds(0, extent->arg, c, body);
    run_loop(0, extent->arg - 1, {}, body);
    run_loop(extent->arg - 1, 1, {}, body);
  }

  // ---- a phase

  void phase(Nest& nest, bool in_order) {
    auto& stores = nest.stores;
    summing_ = !nest.sums.empty();
    op_ = nest.op;
    if (summing_) {  // "all sums are at 0" goes along as the gate, so that substitution sees it
      Expr first = always();
      for (const Expr& r : nest.sums) first = all_of(first, equal(Int(r), 0));
      for (Expr& s : stores) s = store(s->src[0], s->src[1], s->src[2], first);
    }
    start_phase();
    CodePhase out;
    out.tasks = index_constant(1);
    if (in_order) ordered(nest, stores[0], out);
    else if (nest.loops.empty() || std::ranges::count(nest.sums, nest.loops[0]))
      loops(nest.loops, stores);
    else chunked(nest.loops, stores, out);
    finish_phase(out);
  }

  // The outermost loop is dealt out to the threads, in whole steps of its choice; what is left is a
  // phase of one task.
  void chunked(std::vector<Expr> rest, const std::vector<Expr>& stores, CodePhase& out) {
    const Expr r = rest[0];
    rest.erase(rest.begin());
    const Expr& extent = r->src[0];
    const bool ragged = is_ragged(r, rest, stores);
    const LoopChoice c = ragged || !is_constant(extent) ? LoopChoice{} : choice_of(r);
    const Body body = [&](const std::vector<Expr>& values) {
      loops(ragged ? substituted(rest, r, values) : rest, substituted(stores, r, values));
    };
    if (!is_constant(extent)) {
      open_chunk(extent, out);
      body({blocks_.back().counter});
      return close_block();
    }
    const std::int64_t n = extent->arg, step = std::int64_t{c.unroll} * c.lanes,
                       whole = (n - (ragged ? 1 : 0)) / step;
    if (whole > 0) {
      open_chunk(index_constant(whole), out);
      out.grain = grain_for(rest, stores, step);
      body(copies(Int(blocks_.back().counter) * step, c));
      close_block();
    }
    if (whole * step == n) return;
    if (whole > 0) {
      finish_phase(out);
      out.tasks = index_constant(1);
      start_phase();
    }
    run_rounds(whole * step, n, c, body);
  }

  // Tasks that are worth a claim: some ten thousand operations.
  static std::int64_t grain_for(const std::vector<Expr>& rest, const std::vector<Expr>& stores,
                                std::int64_t step) {
    double work = static_cast<double>(step), reduced = 1;
    for (const Expr& l : rest) work *= static_cast<double>(l->src[0]->hi);
    for (const Expr& e : topological(stores)) {
      if (e->op != Op::reduce) continue;
      double n = 1;
      for (const Expr& r : e->src.subspan(1)) n *= static_cast<double>(r->src[0]->hi);
      reduced = std::max(reduced, n);
    }
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(16384 / (work * reduced)));
  }

  void open_chunk(const Expr& tasks, CodePhase& out) {
    out.tasks = tasks;
    open_loop(instruction(Ins::chunk, index_type_, 1, {}), counter_of(tasks));
  }

  void loops(std::vector<Expr> rest, const std::vector<Expr>& stores) {
    if (rest.empty()) return leaf(stores);
    const Expr r = rest[0];
    rest.erase(rest.begin());
    const bool ragged = is_ragged(r, rest, stores);
    for_range(r->src[0], choice_below(r, stores), ragged, [&](const std::vector<Expr>& values) {
      loops(ragged ? substituted(rest, r, values) : rest, substituted(stores, r, values));
    });
  }

  // All values first, then all stores: a store may overwrite what another value reads.
  void leaf(const std::vector<Expr>& stores) {
    std::vector<Expr> values;
    for (const Expr& s : stores)
      for (const Expr& v : s->src.subspan(1)) values.push_back(v);
    prepare(values);
    load_transposed(values);
    std::vector<Value> made;
    for (const Expr& s : stores) made.push_back(emit(s->src[2]));
    for (std::size_t i = 0; i < stores.size(); ++i) write(stores[i], made[i]);
  }

  // Vectors whose lanes lie apart, as many side by side as each has lanes, are loaded the other way
  // and turned: x[i*100 + lane*7 + 0], .. + 1, .., .. + 7 are the columns of rows that lie
  // together.
  void load_transposed(const std::vector<Expr>& values) {
    if (lanes_ == 1) return;
    struct Columns {
      Expr memory;
      Int base;  // of the lane 0, less the number of the column
      std::int64_t stride;
      std::map<std::int64_t, Expr> loads;
    };
    std::vector<Columns> all;
    for (const Expr& e : topological(values)) {
      if (e->op != Op::load || e->src.size() > 2 || !depends_on_lane(e) || size_of(e->dtype) < 4 ||
          !ready(e) || recall(e))
        continue;
      const auto parts = affine_in_lane(e->src[1], lanes_);
      if (!parts || parts->second == 0 || parts->second == 1) continue;
      const std::int64_t column = constant_term(parts->first);
      const Int base = Int(parts->first) - column;
      const auto at = std::ranges::find_if(all, [&](const Columns& c) {
        return c.memory == e->src[0] && c.stride == parts->second && c.base == base;
      });
      if (at != all.end()) at->loads.emplace(column, e);
      else all.push_back({e->src[0], base, parts->second, {{column, e}}});
    }
    for (const Columns& c : all)
      for (auto at = c.loads.begin(); at != c.loads.end();) {
        std::vector<Expr> run;
        const std::int64_t first = at->first;
        for (; at != c.loads.end() && at->first == first + std::ssize(run) &&
               std::ssize(run) < lanes_;
             ++at)
          run.push_back(at->second);
        if (std::ssize(run) == lanes_) turn(c.memory, c.base + first, c.stride, run);
      }
  }

  static std::int64_t constant_term(const Expr& index) {
    if (is_constant(index)) return index->arg;
    if (index->op == Op::add)
      for (const Expr& s : index->src)
        if (is_constant(s)) return s->arg;
    return 0;
  }

  void turn(const Expr& slot, const Int& base, std::int64_t stride, const std::vector<Expr>& run) {
    const auto n = static_cast<std::size_t>(lanes_);
    std::vector<Value> rows;
    for (std::size_t l = 0; l < n; ++l)
      rows.push_back(read(memory_of(slot),
                          emit((base + static_cast<std::int64_t>(l) * stride).expr()), slot->dtype,
                          lanes_));
    // Blocks of 1, 2, 4, .. elements change places across the diagonal.
    for (std::size_t block = 1; block < n; block *= 2)
      for (std::size_t row = 0; row < n; ++row) {
        if (row & block) continue;
        Instruction low =
            instruction(Ins::shuffle, slot->dtype, lanes_, {rows[row], rows[row + block]});
        Instruction high = low;
        for (std::size_t l = 0; l < n; ++l) {
          low.picks.push_back(static_cast<std::uint8_t>(l & block ? n + l - block : l));
          high.picks.push_back(static_cast<std::uint8_t>(l & block ? n + l : l + block));
        }
        rows[row] = put(std::move(low), depth());
        rows[row + block] = put(std::move(high), depth());
      }
    for (std::size_t column = 0; column < n; ++column) remember(run[column], rows[column], depth());
  }

  void write(const Expr& s, Value v) {
    const Expr gate = s->src.size() > 3 ? s->src[3] : always();
    const Expr plain = store(s->src[0], s->src[1], s->src[2]);
    if (summing_) {
      if (gate == always()) return write_plain(plain, v);
      if (gate == never()) return add_plain(plain, v);
      open_branch(gate);
      write_plain(plain, v);
      otherwise();
      add_plain(plain, v);
      return close_block();
    }
    if (gate == always()) return write_plain(plain, v);
    if (depends_on_lane(gate)) return each_lane(s, v, &Linearizer::write_one);
    open_branch(gate);
    write_plain(plain, v);
    close_block();
  }

  // Whether lane l goes to index + l.
  bool is_contiguous(const Expr& s) const {
    const auto parts = affine_in_lane(s->src[1], lanes_of(s));
    return parts && parts->second == 1;
  }

  using One = void (Linearizer::*)(int memory, Value index, Value v, DType t, int lanes);

  void write_one(int memory, Value index, Value v, DType t, int lanes) {
    put_store(memory, index, v, t, lanes);
  }

  // slot op= value
  void add_one(int memory, Value index, Value v, DType t, int lanes) {
    const Value old = read(memory, index, t, lanes);
    put_store(memory, index, elementwise(op_, t, {old, v}, lanes, depth()), t, lanes);
  }

  void write_plain(const Expr& s, Value v) { whole_or_lanes(s, v, &Linearizer::write_one); }
  void add_plain(const Expr& s, Value v) { whole_or_lanes(s, v, &Linearizer::add_one); }

  void whole_or_lanes(const Expr& s, Value v, One one) {
    const int memory = memory_of(s->src[0]), lanes = lanes_of(s);
    const DType t = s->src[0]->dtype;
    if (lanes == 1) return (this->*one)(memory, emit(s->src[1]), v, t, 1);
    if (!is_contiguous(s)) return each_lane(s, v, one);
    const Value all = depends_on_lane(s->src[2]) ? v : broadcast(v, t, lanes);
    (this->*one)(memory, emit(affine_in_lane(s->src[1], lanes)->first), all, t, lanes);
  }

  void each_lane(const Expr& s, Value v, One one) {
    const int lanes = lanes_of(s), memory = memory_of(s->src[0]);
    for (int l = 0; l < lanes; ++l) {
      const Bindings lane{{range(lane_id, lanes), index_constant(l)}};
      const Value scalar =
          depends_on_lane(s->src[2]) ? extract(v, s->src[2]->dtype, l, depth()) : v;
      const Expr gate = s->src.size() > 3 ? substitute(s->src[3], lane) : always();
      if (gate == never()) continue;
      if (gate != always()) open_branch(gate);
      (this->*one)(memory, emit(substitute(s->src[1], lane)), scalar, s->src[0]->dtype, 1);
      if (gate != always()) close_block();
    }
  }

  // ---- scatter and scan: their order counts

  // Loops in order, one thread for each step of the loops that the stored index names directly (not
  // through a load): those come first and are dealt out.
  void ordered(const Nest& nest, const Expr& s, CodePhase& out) {
    std::vector<Expr> parallel, serial;
    RangeSet data;  // ranges that decide through a load
    for (const Expr& e : topological(s->src[1]))
      if (e->op == Op::load) data |= e->free;
    const Expr scan = scan_in(s), scanned = scan ? scan->src[2] : Expr();
    for (const Expr& l : nest.loops) {
      const bool free = s->src[1]->free.has(static_cast<int>(l->arg)) &&
                        !data.has(static_cast<int>(l->arg)) && l != scanned;
      (free ? parallel : serial).push_back(l);
    }
    const bool dealt = !parallel.empty();
    std::vector<Expr> order = parallel;
    order.insert(order.end(), serial.begin(), serial.end());
    op_ = static_cast<Op>(s->arg);
    ordered_loops(order, 0, s, dealt, out);
  }

  void ordered_loops(const std::vector<Expr>& order, std::size_t level, const Expr& s, bool dealt,
                     CodePhase& out) {
    if (level == order.size()) return accumulate_leaf(s);
    const Expr& r = order[level];
    if (dealt) {
      open_chunk(r->src[0], out);
      const Expr counter = blocks_.back().counter;
      ordered_loops(order, level + 1, substitute(s, {{r, counter}}), false, out);
      return close_block();
    }
    if (const Expr scan = scan_in(s); scan && r == scan->src[2]) return scan_loop(r, s, scan);
    for_range(r->src[0], {}, false, [&](const std::vector<Expr>& v) {
      ordered_loops(order, level + 1, substitute(s, {{r, v[0]}}), false, out);
    });
  }

  void accumulate_leaf(const Expr& s) {
    if (op_ == Op::store) return leaf({s});
    std::vector<Expr> values(s->src.begin() + 1, s->src.end());
    prepare(values);
    const Value v = emit(s->src[2]);
    const bool gated = s->src.size() > 3;
    if (gated) open_branch(s->src[3]);
    add_one(memory_of(s->src[0]), emit(s->src[1]), v, s->src[0]->dtype, 1);
    if (gated) close_block();
  }

  // The scan that is stored: itself, or rounded to a small float. Null where there is none.
  static Expr scan_in(const Expr& s) {
    for (const Expr& e : topological(s->src[2]))
      if (e->op == Op::scan) return e;
    return {};
  }

  // acc op= body; slot[index] = acc, along the range.
  void scan_loop(const Expr& r, const Expr& s, const Expr& scan) {
    const Op op = static_cast<Op>(scan->arg);
    const Value acc =
        declare(emit(constant(identity_of(op, scan->dtype))), scan->dtype, 1, depth());
    for_range(r->src[0], {}, false, [&](const std::vector<Expr>& v) {
      const Expr body = substitute(scan->src[0], {{scan->src[1], v[0]}});
      prepare({body});
      const Value next =
          elementwise(op, scan->dtype, {get(acc, scan->dtype, 1), emit(body)}, 1, depth());
      set(acc, next, scan->dtype, 1);
      remember(substitute(scan, {{r, v[0]}}), next, depth());
      put_store(memory_of(s->src[0]), emit(substitute(s->src[1], {{r, v[0]}})),
                emit(substitute(s->src[2], {{r, v[0]}})), s->src[0]->dtype, 1);
    });
  }

  // ---- reduces and tables

  // Every reduce and table that the values need, sources first.
  void prepare(const std::vector<Expr>& values) {
    std::unordered_map<Expr, int> level;
    std::map<int, std::vector<Expr>> waiting;
    for (const Expr& e : topological(values)) {
      int deepest = 0;
      for (const Expr& s : e->src) deepest = std::max(deepest, level[s]);
      const bool binder = e->op == Op::reduce || e->op == Op::stage;
      level[e] = deepest + (binder ? 1 : 0);
      if (binder && ready(e) && !recall(e)) waiting[level[e]].push_back(e);
    }
    for (auto& [l, binders] : waiting) {
      for (const auto& group : grouped(binders)) {
        if (group[0]->op == Op::stage) fill(group[0]);
        else if (!recall(group[0])) reduce_group(group);
      }
    }
  }

  // Not inside of another binder: all of its free ranges are open.
  bool ready(const Expr& e) const {
    RangeSet open;
    open.add(lane_id);
    for (const Block& b : blocks_)
      if (b.counter) open.add(static_cast<int>(b.counter->arg));
    return open.contains(e->free);
  }

  std::vector<std::vector<Expr>> grouped(const std::vector<Expr>& binders) const {
    std::vector<std::vector<Expr>> groups;
    for (const Expr& e : binders) {
      const auto joins = [&](const std::vector<Expr>& g) {
        return e->op == Op::reduce && g[0]->op == Op::reduce && depth_of(g[0]) == depth_of(e) &&
               std::ranges::equal(e->src.subspan(1), g[0]->src.subspan(1));
      };
      const auto at = std::ranges::find_if(groups, joins);
      if (at != groups.end()) at->push_back(e);
      else groups.push_back({e});
    }
    return groups;
  }

  struct Accumulator {
    Expr reduce;
    Op op;
    Value variable;
    int lanes;
  };

  void reduce_group(const std::vector<Expr>& group) {
    const int at = depth_of(group[0]);
    outside(at, [&] {
      const std::vector<Expr> ranges(group[0]->src.begin() + 1, group[0]->src.end());
      std::vector<Expr> bodies;
      for (const Expr& e : group) bodies.push_back(e->src[0]);
      const std::vector<Value> totals = reduce_loops(group, ranges, bodies);
      for (std::size_t i = 0; i < group.size(); ++i) remember(group[i], totals[i], depth());
    });
  }

  // The totals over the ranges. Long sums have levels: what the inner ranges add up to, in
  // accumulators of their own, is added to those of the outer ones, so that no chain of additions
  // is long.
  std::vector<Value> reduce_loops(const std::vector<Expr>& group, std::span<const Expr> ranges,
                                  const std::vector<Expr>& bodies) {
    const std::size_t inner = next_level(group[0], ranges);
    if (inner == ranges.size()) return innermost_level(group, ranges, bodies);
    const auto total = declare_all(group, bodies, 1);
    over(ranges, inner, bodies, [&](std::span<const Expr> rest, const std::vector<Expr>& inside) {
      combine(total, reduce_loops(group, rest, inside));
    });
    return results(total);
  }

  // The first of the ranges that belong to a level further in; their number if there is none.
  static std::size_t next_level(const Expr& reduce, std::span<const Expr> ranges) {
    std::size_t level = ranges.size();
    std::int64_t chain = 1;
    for (std::size_t i = ranges.size(); i-- > 0 && is_float(reduce->dtype);) {
      const std::int64_t n = std::max<std::int64_t>(ranges[i]->src[0]->hi, 1);
      if (chain > 1 && chain * n > longest_chain(reduce)) {
        level = i + 1;
        chain = 1;
      }
      chain *= n;
    }
    return level;
  }

  // Products have a rounding of their own, which hides that of a longer chain.
  static std::int64_t longest_chain(const Expr& reduce) {
    return reduce->src[0]->op == Op::mul ? 512 : 128;
  }

  using Inside = std::function<void(std::span<const Expr>, const std::vector<Expr>&)>;

  // Loops over the first `count` ranges around `f`, which gets the others and the bodies.
  void over(std::span<const Expr> ranges, std::size_t count, const std::vector<Expr>& bodies,
            const Inside& f) {
    if (count == 0) return f(ranges, bodies);
    const Expr& r = ranges[0];
    const auto rest = ranges.subspan(1);
    const bool ragged = is_ragged(r, rest, bodies);
    for_range(r->src[0], {choice_of(r).unroll, 1}, ragged, [&](const std::vector<Expr>& values) {
      for (const Expr& v : values)
        over(substituted(rest, r, {v}), count - 1, substituted(bodies, r, {v}), f);
    });
  }

  // All additions in one chain, or in one for each copy of the last range. That range has lanes or
  // copies with accumulators of their own where there are few; and it runs in blocks, each summed
  // by itself, where it is long.
  std::vector<Value> innermost_level(const std::vector<Expr>& group, std::span<const Expr> ranges,
                                     const std::vector<Expr>& bodies) {
    const Expr& r = ranges.back();
    LoopChoice c = is_constant(r->src[0]) ? choice_below(r, bodies) : LoopChoice{};
    const bool alike = c.lanes == 1 && group.size() >= enough_accumulators;
    const std::int64_t step = alike ? 1 : std::int64_t{c.unroll} * c.lanes,
                       n = is_constant(r->src[0]) ? r->src[0]->arg : 0;
    if (ranges.size() == 1 && is_float(group[0]->dtype) && n / step > longest_chain(group[0]))
      return split_reduce(group, r, step * longest_chain(group[0]), bodies);
    const auto total = declare_all(group, bodies, 1);
    std::vector<std::vector<Accumulator>> copies;
    if (step > 1 && n >= step)
      for (int u = 0; u < c.unroll; ++u) copies.push_back(declare_all(group, bodies, c.lanes));
    over(ranges, ranges.size() - 1, bodies,
         [&](std::span<const Expr> last, const std::vector<Expr>& inside) {
           const Expr& l = last[0];
           const Body add = [&](const std::vector<Expr>& values) {
             for (const Expr& v : values) combine(total, values_at(inside, l, v));
           };
           if (copies.empty())
             return for_range(l->src[0], c.lanes == 1 ? c : LoopChoice{}, is_ragged(l, {}, inside),
                              add);
           const std::int64_t trips = n / step;
           run_loop(0, trips, c, [&](const std::vector<Expr>& values) {
             for (std::size_t u = 0; u < values.size(); ++u)
               combine(copies[u], values_at(inside, l, values[u]));
           });
           run_loop(trips * step, n - trips * step, {}, add);
         });
    if (copies.empty()) return results(total);
    for (std::size_t u = 1; u < copies.size(); ++u) combine(copies[0], results(copies[u]));
    std::vector<Value> sums = results(copies[0]);
    if (c.lanes > 1)
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] = horizontal(copies[0][i].op, sums[i], group[i]->dtype, copies[0][i].lanes,
                             total[i].lanes);
    combine(total, sums);
    return results(total);
  }

  std::vector<Value> split_reduce(const std::vector<Expr>& group, const Expr& r, std::int64_t block,
                                  const std::vector<Expr>& bodies) {
    const std::int64_t n = r->src[0]->arg, blocks = n / block;
    const auto total = declare_all(group, bodies, 1);
    const auto add_block = [&](const Int& begin, std::int64_t size) {
      const Expr inner[] = {range(block_id, size)};
      block_choice_ = choice_of(r);
      combine(total, innermost_level(group, inner,
                                     substituted(bodies, r, {(begin + Int(inner[0])).expr()})));
    };
    run_loop(0, blocks, {},
             [&](const std::vector<Expr>& v) { add_block(Int(v[0]) * block, block); });
    if (blocks * block < n) add_block(blocks * block, n - blocks * block);
    return results(total);
  }

  std::vector<Accumulator> declare_all(const std::vector<Expr>& group,
                                       const std::vector<Expr>& bodies, int lanes) {
    std::vector<Accumulator> out;
    for (std::size_t i = 0; i < group.size(); ++i) {
      const Op op = static_cast<Op>(group[i]->arg);
      const int wide = depends_on_lane(bodies[i]) ? lanes_of(bodies[i]) : lanes;
      const Value zero = emit(constant(identity_of(op, group[i]->dtype)));
      out.push_back({group[i], op,
                     declare(wide > 1 ? broadcast(zero, group[i]->dtype, wide) : zero,
                             group[i]->dtype, wide, depth()),
                     wide});
    }
    return out;
  }

  void combine(const std::vector<Accumulator>& accumulators, const std::vector<Value>& values) {
    for (std::size_t i = 0; i < accumulators.size(); ++i) {
      const Accumulator& a = accumulators[i];
      const DType t = a.reduce->dtype;
      set(a.variable,
          elementwise(a.op, t, {get(a.variable, t, a.lanes), values[i]}, a.lanes, depth()), t,
          a.lanes);
    }
  }

  std::vector<Value> results(const std::vector<Accumulator>& accumulators) {
    std::vector<Value> out;
    for (const Accumulator& a : accumulators)
      out.push_back(get(a.variable, a.reduce->dtype, a.lanes));
    return out;
  }

  std::vector<Value> values_at(const std::vector<Expr>& bodies, const Expr& r, const Expr& v) {
    const std::vector<Expr> inside = substituted(bodies, r, {v});
    prepare(inside);
    std::vector<Value> values;
    for (const Expr& e : inside) values.push_back(emit(e));
    // A value that does not vary by lane counts once a lane.
    for (std::size_t i = 0; i < inside.size(); ++i)
      if (lanes_of(v) > 1 && !depends_on_lane(inside[i]))
        values[i] = broadcast(values[i], inside[i]->dtype, lanes_of(v));
    return values;
  }

  // A table in scratch, filled where it is first needed.
  void fill(const Expr& stage) {
    outside(depth_of(stage), [&] {
      std::int64_t elements = 1;
      for (const Expr& r : stage->src.subspan(1)) elements *= r->src[0]->hi;
      elements *= lanes_of(stage);  // one that captures a vector has an element for each lane
      const int memory = new_scratch(stage->dtype, elements);
      has_tables_ = true;
      fill_copies(stage, stage->src.subspan(1), {{stage->src[0], {}}}, memory);
      remember(stage, memory, depth());
    });
  }

  struct Element {
    Expr body;
    std::vector<Int> at;
  };

  void fill_copies(const Expr& stage, std::span<const Expr> dims, const std::vector<Element>& all,
                   int memory) {
    if (dims.empty()) return fill_leaf(stage, all, memory);
    const Expr r = dims[0];
    std::vector<Expr> bodies;
    for (const Element& e : all) bodies.push_back(e.body);
    const bool ragged = is_ragged(r, dims.subspan(1), bodies);
    LoopChoice c = choice_below(r, bodies);
    if (dims.size() > 1) c.lanes = 1;
    for_range(r->src[0], c, ragged, [&](const std::vector<Expr>& values) {
      std::vector<Element> inside;
      for (const Element& e : all)
        for (const Expr& v : values) {
          inside.push_back({substitute(e.body, {{r, v}}), e.at});
          inside.back().at.push_back(Int(v));
        }
      const std::vector<Expr> rest = ragged ? substituted(dims.subspan(1), r, values)
                                            : std::vector<Expr>(dims.begin() + 1, dims.end());
      fill_copies(stage, rest, inside, memory);
    });
  }

  void fill_leaf(const Expr& stage, const std::vector<Element>& all, int memory) {
    std::vector<Expr> bodies;
    for (const Element& e : all) bodies.push_back(e.body);
    prepare(bodies);
    load_transposed(bodies);
    std::vector<Value> values;
    for (const Expr& b : bodies) values.push_back(emit(b));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Expr index = index_in_table(stage, all[i].at);
      const int lanes = lanes_of(index);
      if (lanes == 1) {
        put_store(memory, emit(index), values[i], stage->dtype, 1);
      } else {
        const Value v =
            depends_on_lane(bodies[i]) ? values[i] : broadcast(values[i], stage->dtype, lanes);
        put_store(memory, emit(affine_in_lane(index, lanes)->first), v, stage->dtype, lanes);
      }
    }
  }

  const Kernel& kernel_;
  const Target& target_;
  bool any_ragged_ = false;  // some extent depends on a range
  bool summing_ = false;     // the nest adds up in memory
  Op op_ = Op::add;          // by this
  LoopChoice block_choice_;  // of the range that runs in blocks
};

}  // namespace

Code linearize(const Kernel& kernel, const Target& target) {
  return Linearizer(kernel, target).run();
}

}  // namespace mote
