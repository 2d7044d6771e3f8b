// linearize: a Kernel becomes Code. A small abstract machine over expressions:
//
// - Opening a loop substitutes its range by (counter * step + lane), once for each unrolled copy.
// - A value is written into the block of the innermost open loop that it depends on. A block is not
//   joined to its parent before it is closed, so what an inner loop needs from further out comes
//   before it: hoisting, and finding common values, need no analysis.
// - Before a body is written, the reduces and tables below it are: each at the depth that it depends
//   on, reduces over equal ranges in one loop.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/text.h"
#include "ir/printer.h"
#include "kernel/decompose.h"
#include "kernel/kernel.h"
#include "mote/error.h"

namespace mote {
namespace {

// Ids of the loops that are opened, above those of any AST: by depth; then one for a block of a long
// sum, and the lane.
constexpr int first_counter = 192, block_id = 191, lane_id = RangeSet::capacity - 1;
constexpr std::int64_t longest_chain = 128;  // additions of floats into one accumulator

bool depends_on_lane(const Expr& e) { return e->free.has(lane_id); }

class Linearizer {
 public:
  Linearizer(const Kernel& kernel, const Target& target) : kernel_(kernel), target_(target) {}

  Code run() {
    code_.name = kernel_.name;
    const Expr sink = decompose(kernel_.sink, target_);
    for (const auto& [r, c] : kernel_.choices) lanes_ = std::max(lanes_, c.lanes);
    index_type_ = index_bits(sink) == 32 ? DType::int32 : DType::int64;
    find_slots(sink);
    std::size_t next = 0;  // decompose keeps the number and order of the stores
    std::unordered_map<Expr, Expr> decomposed;
    for (const Expr& s : kernel_.sink->src) decomposed[s] = sink->src[next++];
    for (const Nest& nest : kernel_.nests) {
      std::vector<Expr> stores;
      for (const Expr& s : nest.stores) stores.push_back(decomposed.at(s));
      phase(nest, stores);
    }
    return std::move(code_);
  }

 private:
  // ---- memories and variables

  void find_slots(const Expr& sink) {
    std::map<std::int64_t, Memory> slots;
    for (const Expr& e : topological(sink)) {
      if (e->op == Op::slot)
        slots[e->arg] = {Space::slot, e->dtype, e->arg, e->arg2, false, cat("x", e->arg)};
      if (e->op == Op::variable) code_.variables.push_back(e);
    }
    for (const Expr& s : sink->src) slots[s->src[0]->arg].written = true;
    code_.slots = slots.empty() ? 0 : static_cast<int>(slots.rbegin()->first) + 1;
    for (auto& [number, m] : slots) {
      memory_of_slot_[number] = static_cast<int>(code_.memories.size());
      code_.memories.push_back(std::move(m));
    }
  }

  int new_scratch(DType t, std::int64_t elements) {
    const std::int64_t bytes = (elements * size_of(t) + 63) / 64 * 64;
    code_.memories.push_back(
        {Space::scratch, t, code_.scratch_bytes, elements, true, cat("t", code_.memories.size())});
    code_.scratch_bytes += bytes;
    return static_cast<int>(code_.memories.size()) - 1;
  }

  // ---- blocks

  struct Block {
    std::vector<std::pair<Value, Instruction>> body;  // values by a number of their own
    int serial;
    Expr counter;             // of its loop
    std::vector<Expr> known;  // memo entries that die with it
    std::vector<std::pair<Value, Instruction>> opening;
  };
  struct Known {
    Value value;
    int depth;
    int serial;
  };

  int depth() const { return static_cast<int>(blocks_.size()) - 1; }

  void open_block(std::vector<std::pair<Value, Instruction>> opening, Expr counter) {
    blocks_.push_back({{}, next_serial_++, std::move(counter), {}, std::move(opening)});
  }

  void close_block() {
    Block done = std::move(blocks_.back());
    blocks_.pop_back();
    for (const Expr& e : done.known) {
      auto& all = memo_.at(e);
      std::erase_if(all, [&](const Known& k) { return k.serial == done.serial; });
      if (all.empty()) memo_.erase(e);
    }
    auto& to = blocks_.back().body;
    for (auto& i : done.opening) to.push_back(std::move(i));
    for (auto& i : done.body) to.push_back(std::move(i));
    Instruction end;
    end.kind = Ins::end;
    to.emplace_back(no_value, std::move(end));
  }

  Value put(Instruction i, int at_depth) {
    const Value v = next_value_++;
    blocks_[static_cast<std::size_t>(at_depth)].body.emplace_back(v, std::move(i));
    return v;
  }

  void remember(const Expr& e, Value v, int at_depth) {
    Block& b = blocks_[static_cast<std::size_t>(at_depth)];
    memo_[e].push_back({v, at_depth, b.serial});
    b.known.push_back(e);
  }

  // Loops side by side share the ids of their counters, so an expression may be known in several
  // blocks: the one that is open counts.
  const Known* recall(const Expr& e) const {
    const auto at = memo_.find(e);
    if (at == memo_.end()) return nullptr;
    for (const Known& k : at->second)
      if (k.depth <= depth() && blocks_[static_cast<std::size_t>(k.depth)].serial == k.serial)
        return &k;
    return nullptr;
  }

  // The deepest open loop that a reduce or a table depends on, by its ranges and what it reads.
  int depth_of(const Expr& e) const {
    int deepest = 0;
    for (int d = depth(); d > 0 && !deepest; --d) {
      const Expr& c = blocks_[static_cast<std::size_t>(d)].counter;
      if (c && e->free.has(static_cast<int>(c->arg))) deepest = d;
    }
    if (tables_.empty()) return deepest;
    for (const Expr& n : topological(e->src[0]))
      if (n->op == Op::stage)
        if (const Known* k = recall(n)) deepest = std::max(deepest, k->depth);
    return deepest;
  }

  int depth_of_made(const Expr& e) const {
    const Known* k = recall(e);
    if (!k) throw InternalError(cat("linearize: ", short_text(e, 3), " is not made yet"));
    return k->depth;
  }

  // Runs f as if only the blocks down to `at_depth` were open.
  template <class F>
  void outside(int at_depth, F f) {
    std::vector<Block> parked(std::make_move_iterator(blocks_.begin() + at_depth + 1),
                              std::make_move_iterator(blocks_.end()));
    blocks_.resize(static_cast<std::size_t>(at_depth) + 1);
    f();
    for (Block& b : parked) blocks_.push_back(std::move(b));
  }

  // ---- loops

  template <class Extent>
  Expr counter_of(const Extent& extent) const {
    if (first_counter + depth() + 1 >= lane_id)
      throw InternalError("linearize: loops are nested too deeply");
    return range(first_counter + depth() + 1, extent);
  }

  LoopChoice choice_of(const Expr& range) const {
    const auto at = kernel_.choices.find(range);
    return at == kernel_.choices.end() ? LoopChoice{} : at->second;
  }

  using Body = std::function<void(const std::vector<Expr>& values, int lanes)>;

  Value constant_index(std::int64_t v) { return emit(index_constant(v)); }

  // Runs `body` for begin + step * (0..trips-1); `values` are the range's values in each copy.
  void run_loop(std::int64_t begin, std::int64_t trips, int unroll, int lanes, const Body& body) {
    const std::int64_t step = std::int64_t{unroll} * lanes;
    const Expr lane = range(lane_id, lanes);
    const auto copies = [&](const Int& base) {
      std::vector<Expr> values;
      for (int u = 0; u < unroll; ++u)
        values.push_back((base + u * lanes + (lanes > 1 ? Int(lane) : Int(0))).expr());
      return values;
    };
    if (trips <= 0) return;
    if (trips == 1) return body(copies(begin), lanes);
    const Expr counter = counter_of(trips);
    Instruction loop;
    loop.kind = Ins::loop;
    loop.dtype = index_type_;
    loop.args = {constant_index(0), constant_index(trips)};
    const Value v = next_value_++;
    open_block({{v, loop}}, counter);
    remember(counter, v, depth());
    body(copies(Int(counter) * step + begin), lanes);
    close_block();
  }

  // The whole range: full steps, then vectors, then single ones.
  void for_range(const Expr& extent, LoopChoice c, const Body& body) {
    if (!is_constant(extent)) {
      const Value end = emit(extent);
      const Expr counter = counter_of(extent);
      Instruction loop;
      loop.kind = Ins::loop;
      loop.dtype = index_type_;
      loop.args = {constant_index(0), end};
      const Value v = next_value_++;
      open_block({{v, loop}}, counter);
      remember(counter, v, depth());
      body({counter}, 1);
      close_block();
      return;
    }
    const std::int64_t n = extent->arg;
    std::int64_t done = 0;
    std::vector<LoopChoice> rounds{c};
    if (c.unroll > 1) rounds.push_back({1, c.lanes});
    if (c.lanes > 1) rounds.push_back({1, 1});
    for (const LoopChoice& round : rounds) {
      const std::int64_t step = std::int64_t{round.unroll} * round.lanes, trips = (n - done) / step;
      run_loop(done, trips, round.unroll, round.lanes, body);
      done += trips * step;
    }
  }

  // ---- a phase

  void phase(const Nest& nest, const std::vector<Expr>& stores) {
    blocks_.clear();
    memo_.clear();
    tables_.clear();
    next_value_ = 0;
    open_block({}, {});
    CodePhase out;
    out.tasks = index_constant(1);
    if (static_cast<Op>(stores[0]->arg) == Op::store && stores[0]->src[2]->op != Op::scan) {
      chunked(nest, stores, out);
    } else {
      ordered(nest, stores[0], out);
    }
    flatten(out);
    code_.phases.push_back(std::move(out));
  }

  // The outermost loop is dealt out to the threads, in whole steps of its choice.
  void chunked(const Nest& nest, const std::vector<Expr>& stores, CodePhase& out) {
    if (nest.loops.empty()) return loops(nest, 0, stores);
    const Expr& outer = nest.loops[0];
    const Expr& extent = outer->src[0];
    LoopChoice c = choice_of(outer);
    const std::int64_t step = std::int64_t{c.unroll} * c.lanes;
    if (!is_constant(extent)) {
      c = {};
      open_chunk(extent, out);
      const Expr counter = blocks_.back().counter;
      loops(nest, 1, substituted(stores, outer, {counter}));
      close_block();
      return;
    }
    const std::int64_t n = extent->arg, whole = n / step;
    if (whole > 0) {
      open_chunk(index_constant(whole), out);
      out.grain = grain_for(nest, stores, step);
      const Int counter(blocks_.back().counter);
      std::vector<Expr> values;
      for (int u = 0; u < c.unroll; ++u)
        values.push_back(
            (counter * step + u * c.lanes + (c.lanes > 1 ? Int(range(lane_id, c.lanes)) : Int(0)))
                .expr());
      loops(nest, 1, substituted(stores, outer, values));
      close_block();
    }
    if (whole * step == n) return;
    if (whole > 0) {  // the rest is a phase of one task
      flatten(out);
      code_.phases.push_back(std::move(out));
      out = {};
      out.tasks = index_constant(1);
      blocks_.clear();
      memo_.clear();
      tables_.clear();
      next_value_ = 0;
      open_block({}, {});
    }
    const Body body = [&](const std::vector<Expr>& values, int) {
      loops(nest, 1, substituted(stores, outer, values));
    };
    std::int64_t done = whole * step;
    if (c.lanes > 1) {
      run_loop(done, (n - done) / c.lanes, 1, c.lanes, body);
      done += (n - done) / c.lanes * c.lanes;
      run_loop(done, n - done, 1, 1, body);
    } else {
      run_loop(done, 1, static_cast<int>(n - done), 1, body);
    }
  }

  // Tasks that are worth a claim: some ten thousand operations.
  static std::int64_t grain_for(const Nest& nest, const std::vector<Expr>& stores,
                                std::int64_t step) {
    double work = static_cast<double>(step), reduced = 1;
    for (std::size_t i = 1; i < nest.loops.size(); ++i)
      work *= static_cast<double>(nest.loops[i]->src[0]->hi);
    for (const Expr& e : topological(stores)) {
      if (e->op != Op::reduce) continue;
      double n = 1;
      for (const Expr& r : e->src.subspan(1)) n *= static_cast<double>(r->src[0]->hi);
      reduced = std::max(reduced, n);
    }
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(16384 / (work * reduced)));
  }

  void open_chunk(const Expr& tasks, CodePhase& out) {
    Instruction chunk;
    chunk.kind = Ins::chunk;
    chunk.dtype = index_type_;
    out.tasks = tasks;
    const Expr counter = counter_of(tasks);
    const Value v = next_value_++;
    open_block({{v, chunk}}, counter);
    remember(counter, v, depth());
  }

  static std::vector<Expr> substituted(const std::vector<Expr>& stores, const Expr& r,
                                       const std::vector<Expr>& values) {
    std::vector<Expr> out;
    for (const Expr& s : stores)
      for (const Expr& v : values) out.push_back(substitute(s, {{r, v}}));
    return out;
  }

  void loops(const Nest& nest, std::size_t level, const std::vector<Expr>& stores) {
    if (level == nest.loops.size()) return leaf(stores);
    const Expr& r = nest.loops[level];
    for_range(r->src[0], choice_of(r), [&](const std::vector<Expr>& values, int) {
      loops(nest, level + 1, substituted(stores, r, values));
    });
  }

  // All values first, then all stores: a store may overwrite what another value reads.
  void leaf(const std::vector<Expr>& stores) {
    std::vector<Expr> values;
    for (const Expr& s : stores)
      for (const Expr& v : s->src.subspan(2)) values.push_back(v);
    prepare(values);
    std::vector<Value> made;
    for (const Expr& s : stores) made.push_back(emit(s->src[2]));
    for (std::size_t i = 0; i < stores.size(); ++i) write(stores[i], made[i]);
  }

  void write(const Expr& s, Value v) {
    const Expr gate = s->src.size() > 3 ? s->src[3] : always();
    if (gate != always()) {
      if (depends_on_lane(gate)) return write_lanes(s, v);
      Instruction branch;
      branch.kind = Ins::branch;
      branch.args = {emit(gate)};
      open_block({{no_value, branch}}, {});
      write_plain(s, v);
      close_block();
      return;
    }
    write_plain(s, v);
  }

  void write_plain(const Expr& s, Value v) {
    const int memory = memory_of_slot_.at(s->src[0]->arg);
    const int lanes = lanes_of(s);
    if (lanes == 1) return put_store(memory, emit(s->src[1]), v, s->src[0]->dtype, 1);
    const auto parts = affine_in_lane(s->src[1], lanes);
    if (parts && parts->second == 1) {
      return put_store(memory, emit(parts->first),
                       depends_on_lane(s->src[2]) ? v : broadcast(v, s->src[0]->dtype, lanes),
                       s->src[0]->dtype, lanes);
    }
    write_lanes(s, v);
  }

  void write_lanes(const Expr& s, Value v) {
    const int lanes = lanes_of(s);
    for (int l = 0; l < lanes; ++l) {
      const Bindings lane{{range(lane_id, lanes), index_constant(l)}};
      const Expr one = store(s->src[0], substitute(s->src[1], lane), s->src[2]);
      const Value scalar =
          depends_on_lane(s->src[2]) ? extract(v, s->src[2]->dtype, l, depth()) : v;
      const Expr gate = s->src.size() > 3 ? substitute(s->src[3], lane) : always();
      if (gate == never()) continue;
      if (gate != always()) {
        Instruction branch;
        branch.kind = Ins::branch;
        branch.args = {emit(gate)};
        open_block({{no_value, branch}}, {});
      }
      put_store(memory_of_slot_.at(s->src[0]->arg), emit(one->src[1]), scalar, s->src[0]->dtype, 1);
      if (gate != always()) close_block();
    }
  }

  void put_store(int memory, Value index, Value v, DType t, int lanes) {
    Instruction i;
    i.kind = Ins::store;
    i.memory = memory;
    i.dtype = t;
    i.lanes = static_cast<std::uint16_t>(lanes);
    i.args = {index, v};
    blocks_.back().body.emplace_back(no_value, std::move(i));
  }

  // ---- scatter and scan: their order counts

  // Loops in order, one thread for each step of the loops that the stored index names directly (not
  // through a load): those come first and are dealt out.
  void ordered(const Nest& nest, const Expr& s, CodePhase& out) {
    std::vector<Expr> parallel, serial;
    RangeSet data;  // ranges that decide through a load
    for (const Expr& e : topological(s->src[1]))
      if (e->op == Op::load) data |= e->free;
    const Expr scanned = s->src[2]->op == Op::scan ? s->src[2]->src[2] : Expr();
    for (const Expr& l : nest.loops) {
      const bool free = s->src[1]->free.has(static_cast<int>(l->arg)) &&
                        !data.has(static_cast<int>(l->arg)) && l != scanned;
      (free ? parallel : serial).push_back(l);
    }
    const bool dealt = !parallel.empty();
    std::vector<Expr> order = parallel;
    order.insert(order.end(), serial.begin(), serial.end());
    ordered_loops(order, 0, s, dealt, out);
  }

  void ordered_loops(const std::vector<Expr>& order, std::size_t level, const Expr& s, bool dealt,
                     CodePhase& out) {
    if (level == order.size()) return accumulate_leaf(s);
    const Expr& r = order[level];
    if (dealt) open_chunk(r->src[0], out);
    if (s->src[2]->op == Op::scan && r == s->src[2]->src[2]) return scan_loop(r, s);
    if (dealt) {
      const Expr counter = blocks_.back().counter;
      ordered_loops(order, level + 1, substitute(s, {{r, counter}}), false, out);
      close_block();
      return;
    }
    for_range(r->src[0], {}, [&](const std::vector<Expr>& v, int) {
      ordered_loops(order, level + 1, substitute(s, {{r, v[0]}}), false, out);
    });
  }

  void accumulate_leaf(const Expr& s) {
    const Op op = static_cast<Op>(s->arg);
    if (op == Op::store) return leaf({s});
    std::vector<Expr> values{s->src[2]};
    if (s->src.size() > 3) values.push_back(s->src[3]);
    prepare(values);
    const Value v = emit(s->src[2]);
    const bool gated = s->src.size() > 3;
    if (gated) {
      Instruction branch;
      branch.kind = Ins::branch;
      branch.args = {emit(s->src[3])};
      open_block({{no_value, branch}}, {});
    }
    const int memory = memory_of_slot_.at(s->src[0]->arg);
    const Value index = emit(s->src[1]);
    Instruction load;
    load.kind = Ins::load;
    load.memory = memory;
    load.dtype = s->src[0]->dtype;
    load.args = {index};
    const Value old = put(std::move(load), depth());
    put_store(memory, index, elementwise(op, s->src[0]->dtype, {old, v}, 1, depth()),
              s->src[0]->dtype, 1);
    if (gated) close_block();
  }

  // acc op= body; slot[index] = acc, along the range.
  void scan_loop(const Expr& r, const Expr& s) {
    const Expr& scan = s->src[2];
    const Op op = static_cast<Op>(scan->arg);
    const Value acc =
        declare(emit(constant(identity_of(op, scan->dtype))), scan->dtype, 1, depth());
    for_range(r->src[0], {}, [&](const std::vector<Expr>& v, int) {
      const Expr body = substitute(scan->src[0], {{scan->src[1], v[0]}});
      prepare({body});
      const Value next =
          elementwise(op, scan->dtype, {get(acc, scan->dtype, 1), emit(body)}, 1, depth());
      set(acc, next, scan->dtype, 1);
      put_store(memory_of_slot_.at(s->src[0]->arg), emit(substitute(s->src[1], {{r, v[0]}})), next,
                s->src[0]->dtype, 1);
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
      bool joined = false;
      for (auto& g : groups) {
        if (e->op != Op::reduce || g[0]->op != Op::reduce || depth_of(g[0]) != depth_of(e))
          continue;
        if (!std::ranges::equal(e->src.subspan(1), g[0]->src.subspan(1))) continue;
        g.push_back(e);
        joined = true;
        break;
      }
      if (!joined) groups.push_back({e});
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
      const std::vector<Value> totals = reduce_loops(group, ranges, 0, bodies);
      for (std::size_t i = 0; i < group.size(); ++i) remember(group[i], totals[i], depth());
    });
  }

  int lanes_of(const Expr& e) const { return depends_on_lane(e) ? lanes_ : 1; }

  // The totals over ranges[level..]. Long sums get an accumulator for each level, so no chain of
  // additions is long.
  std::vector<Value> reduce_loops(const std::vector<Expr>& group, const std::vector<Expr>& ranges,
                                  std::size_t level, const std::vector<Expr>& bodies) {
    const Expr& r = ranges[level];
    LoopChoice c = choice_of(r);
    const bool vectors = std::ranges::any_of(bodies, depends_on_lane);
    if (vectors) c.lanes = 1;  // one vector range at a time
    if (!is_constant(r->src[0])) c = {};
    const bool innermost = level + 1 == ranges.size();
    if (!innermost) c = {};
    const std::int64_t n = is_constant(r->src[0]) ? r->src[0]->arg : r->src[0]->hi;
    const bool split = innermost && is_float(group[0]->dtype) && is_constant(r->src[0]) &&
                       n / (std::int64_t{c.unroll} * c.lanes) > longest_chain;
    if (split) return split_reduce(group, r, c, bodies);
    return plain_reduce(group, ranges, level, bodies, c, r->src[0]);
  }

  // Blocks of at most `longest_chain` steps, each summed by itself.
  std::vector<Value> split_reduce(const std::vector<Expr>& group, const Expr& r, LoopChoice c,
                                  const std::vector<Expr>& bodies) {
    const std::int64_t block = longest_chain * c.unroll * c.lanes, n = r->src[0]->arg,
                       blocks = n / block;
    auto accumulators = declare_all(group, bodies, 1);
    const Expr inner = range(block_id, block);
    run_loop(0, blocks, 1, 1, [&](const std::vector<Expr>& v, int) {
      std::vector<Expr> inside;
      for (const Expr& b : bodies)
        inside.push_back(substitute(b, {{r, (Int(v[0]) * block + Int(inner)).expr()}}));
      combine(accumulators, plain_reduce(group, {inner}, 0, inside, c, inner->src[0]));
    });
    if (blocks * block < n) {
      const Expr rest = range(block_id, n - blocks * block);
      std::vector<Expr> inside;
      for (const Expr& b : bodies)
        inside.push_back(substitute(b, {{r, (Int(rest) + blocks * block).expr()}}));
      combine(accumulators, plain_reduce(group, {rest}, 0, inside, c, rest->src[0]));
    }
    return results(accumulators);
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

  std::vector<Value> plain_reduce(const std::vector<Expr>& group, const std::vector<Expr>& ranges,
                                  std::size_t level, const std::vector<Expr>& bodies, LoopChoice c,
                                  const Expr& extent) {
    const Expr r = ranges[level];
    const bool innermost = level + 1 == ranges.size();
    const auto scalar = declare_all(group, bodies, 1);
    const bool lanes = c.lanes > 1;
    // Several accumulators: one for each unrolled copy, of vectors where the range has lanes.
    std::vector<std::vector<Accumulator>> copies;
    const std::int64_t n = is_constant(extent) ? extent->arg : 0;
    const std::int64_t step = std::int64_t{c.unroll} * c.lanes, trips = n / step;
    const bool many = innermost && step > 1 && trips > 0;
    if (many) {
      for (int u = 0; u < c.unroll; ++u) copies.push_back(declare_all(group, bodies, c.lanes));
      run_loop(0, trips, c.unroll, c.lanes, [&](const std::vector<Expr>& v, int) {
        for (std::size_t u = 0; u < v.size(); ++u)
          combine(copies[u], inner_values(group, ranges, level, bodies, r, v[u]));
      });
      for (std::size_t u = 1; u < copies.size(); ++u) combine(copies[0], results(copies[u]));
      std::vector<Value> sums = results(copies[0]);
      if (lanes)
        for (std::size_t i = 0; i < sums.size(); ++i)
          sums[i] = horizontal(copies[0][i].op, sums[i], group[i]->dtype, copies[0][i].lanes,
                               scalar[i].lanes);
      combine(scalar, sums);
    }
    if (!is_constant(extent)) {
      for_range(extent, {}, [&](const std::vector<Expr>& v, int) {
        combine(scalar, inner_values(group, ranges, level, bodies, r, v[0]));
      });
      return results(scalar);
    }
    const std::int64_t begin = many ? trips * step : 0;
    run_loop(begin, n - begin, 1, 1, [&](const std::vector<Expr>& v, int) {
      combine(scalar, inner_values(group, ranges, level, bodies, r, v[0]));
    });
    return results(scalar);
  }

  std::vector<Value> inner_values(const std::vector<Expr>& group, const std::vector<Expr>& ranges,
                                  std::size_t level, const std::vector<Expr>& bodies, const Expr& r,
                                  const Expr& v) {
    std::vector<Expr> inside;
    for (const Expr& b : bodies) inside.push_back(substitute(b, {{r, v}}));
    if (level + 1 < ranges.size()) {
      std::vector<Expr> rest;
      for (const Expr& x : ranges) rest.push_back(x);
      return reduce_loops(group, rest, level + 1, inside);
    }
    prepare(inside);
    std::vector<Value> values;
    for (std::size_t i = 0; i < inside.size(); ++i) {
      Value x = emit(inside[i]);
      values.push_back(x);
    }
    // A value that does not vary by lane counts once a lane.
    for (std::size_t i = 0; i < inside.size(); ++i) {
      const int want = lanes_of(v);
      if (want > 1 && !depends_on_lane(inside[i]))
        values[i] = broadcast(values[i], inside[i]->dtype, want);
    }
    return values;
  }

  // A table in scratch, filled where it is first needed.
  void fill(const Expr& stage) {
    const int at = depth_of(stage);
    outside(at, [&] {
      std::int64_t elements = 1;
      for (const Expr& r : stage->src.subspan(1)) elements *= r->src[0]->hi;
      const int memory = new_scratch(stage->dtype, elements);
      tables_[stage] = memory;
      fill_copies(stage, 1, {stage->src[0]}, {Int(0)}, memory);
      remember(stage, 0, depth());
    });
  }

  void fill_copies(const Expr& stage, std::size_t axis, const std::vector<Expr>& bodies,
                   const std::vector<Int>& flats, int memory) {
    if (axis == stage->src.size()) {
      prepare(bodies);
      std::vector<Value> values;
      for (const Expr& b : bodies) values.push_back(emit(b));
      for (std::size_t i = 0; i < bodies.size(); ++i) {
        const Expr index = flats[i].expr();
        const int lanes = lanes_of(index);
        if (lanes == 1) {
          put_store(memory, emit(index), values[i], stage->dtype, 1);
        } else {
          const auto parts = affine_in_lane(index, lanes);
          put_store(
              memory, emit(parts->first),
              depends_on_lane(bodies[i]) ? values[i] : broadcast(values[i], stage->dtype, lanes),
              stage->dtype, lanes);
        }
      }
      return;
    }
    const Expr& r = stage->src[axis];
    LoopChoice c = choice_of(r);
    if (axis + 1 != stage->src.size()) c.lanes = 1;
    for_range(r->src[0], c, [&](const std::vector<Expr>& values, int) {
      std::vector<Expr> inside;
      std::vector<Int> places;
      for (std::size_t i = 0; i < bodies.size(); ++i) {
        for (const Expr& v : values) {
          inside.push_back(substitute(bodies[i], {{r, v}}));
          places.push_back(flats[i] * Int(r->src[0]) + Int(v));
        }
      }
      fill_copies(stage, axis + 1, inside, places, memory);
    });
  }

  // ---- values

  static Instruction instruction(Ins kind, DType t, int lanes, std::vector<Value> args) {
    Instruction i;
    i.kind = kind;
    i.dtype = t;
    i.lanes = static_cast<std::uint16_t>(lanes);
    i.args = std::move(args);
    return i;
  }

  Value declare(Value start, DType t, int lanes, int at) {
    return put(instruction(Ins::declare, t, lanes, {start}), at);
  }

  Value get(Value variable, DType t, int lanes) {
    return put(instruction(Ins::get, t, lanes, {variable}), depth());
  }

  void set(Value variable, Value v, DType t, int lanes) {
    blocks_.back().body.emplace_back(no_value, instruction(Ins::set, t, lanes, {variable, v}));
  }

  Value elementwise(Op op, DType t, std::vector<Value> args, int lanes, int at) {
    Instruction i = instruction(Ins::elementwise, t, lanes, std::move(args));
    i.op = op;
    return put(std::move(i), at);
  }

  Value broadcast(Value v, DType t, int lanes) {
    return put(instruction(Ins::broadcast, t, lanes, {v}), depth());
  }

  Value extract(Value v, DType t, int lane, int at) {
    Instruction i = instruction(Ins::extract, t, 1, {v});
    i.imm_int = lane;
    return put(std::move(i), at);
  }

  // Over the lanes of the reduce's own vector; what a spatial vector needs stays a vector.
  Value horizontal(Op op, Value v, DType t, int from, int to) {
    if (from == to) return v;
    Instruction i = instruction(Ins::horizontal, t, 1, {v});
    i.op = op;
    return put(std::move(i), depth());
  }

  DType concrete(DType t) const { return t == DType::index ? index_type_ : t; }

  // index = base + lane * stride, with the stride a number; nullopt where it is not.
  std::optional<std::pair<Expr, std::int64_t>> affine_in_lane(const Expr& index, int lanes) const {
    const Expr lane = range(lane_id, lanes);
    const Int base = Int(substitute(index, {{lane, index_constant(0)}}));
    const Int stride = Int(substitute(index, {{lane, index_constant(1)}})) - base;
    if (!stride.is_constant()) return {};
    if (!(base + stride * Int(lane) == Int(index))) return {};
    return std::pair{base.expr(), stride.value()};
  }

  Value emit(const Expr& e) {
    if (const Known* k = recall(e)) return k->value;
    if (e->op == Op::range && e->arg == lane_id) return emit_lanes(e);
    // Chains can be long: sources first, by a loop.
    std::vector<Expr> stack{e};
    while (!stack.empty()) {
      const Expr top = stack.back();
      if (recall(top)) {
        stack.pop_back();
        continue;
      }
      bool waits = false;
      if (is_elementwise(top->op)) {
        for (const Expr& s : top->src) {
          if (recall(s)) continue;
          stack.push_back(s);
          waits = true;
        }
      }
      if (waits) continue;
      stack.pop_back();
      make(top);
    }
    const Known* k = recall(e);
    if (!k) throw InternalError(cat("linearize: ", short_text(e), " was not made"));
    return k->value;
  }

  void make(const Expr& e) {
    switch (e->op) {
      case Op::constant: return make_constant(e);
      case Op::variable: return make_variable(e);
      case Op::range:
        if (e->arg == lane_id) {
          emit_lanes(e);
          return;
        }
        throw InternalError(cat("linearize: ", short_text(e), " is not open"));
      case Op::load: return make_load(e);
      case Op::stage_at: return make_table_load(e);
      default: break;
    }
    if (!is_elementwise(e->op))
      throw InternalError(cat("linearize: unexpected ", short_text(e, 3)));
    const int lanes = lanes_of(e);
    int at = 0;
    for (const Expr& s : e->src) at = std::max(at, depth_of_made(s));
    std::vector<Value> args;
    for (const Expr& s : e->src) args.push_back(widened(s, lanes, at));
    if (e->op == Op::add && args.size() > 2) {  // an index sum
      Value sum = args[0];
      for (std::size_t i = 1; i < args.size(); ++i)
        sum = elementwise(Op::add, concrete(e->dtype), {sum, args[i]}, lanes, at);
      return remember(e, sum, at);
    }
    remember(e, elementwise(e->op, concrete(e->dtype), std::move(args), lanes, at), at);
  }

  // The value of a source, in each of `lanes`.
  Value widened(const Expr& s, int lanes, int at) {
    const Value v = emit(s);
    if (lanes == 1 || depends_on_lane(s)) return v;
    return put(instruction(Ins::broadcast, concrete(s->dtype), lanes, {v}), at);
  }

  void make_constant(const Expr& e) {
    Instruction i;
    i.kind = Ins::constant;
    i.dtype = concrete(e->dtype);
    i.imm = e->dtype == DType::index ? Scalar(index_type_, e->arg) : scalar_of(e);
    remember(e, put(std::move(i), 0), 0);
  }

  void make_variable(const Expr& e) {
    Instruction i;
    i.kind = Ins::variable;
    i.dtype = index_type_;
    i.imm_int = std::ranges::find(code_.variables, e) - code_.variables.begin();
    remember(e, put(std::move(i), 0), 0);
  }

  Value emit_lanes(const Expr& lane) {
    const int lanes = static_cast<int>(lane->src[0]->arg);
    Instruction i;
    i.kind = Ins::build;
    i.dtype = index_type_;
    i.lanes = static_cast<std::uint16_t>(lanes);
    for (int l = 0; l < lanes; ++l) i.args.push_back(emit(index_constant(l)));
    const Value v = put(std::move(i), 0);
    remember(lane, v, 0);
    return v;
  }

  void make_load(const Expr& e) {
    load_from(e, memory_of_slot_.at(e->src[0]->arg), e->src[1],
              e->src.size() > 2 ? e->src[2] : always(), 0);
  }

  void make_table_load(const Expr& e) {
    const Expr& stage = e->src[0];
    Int flat = 0;
    for (std::size_t i = 1; i < e->src.size(); ++i)
      flat = flat * Int(stage->src[i]->src[0]) + Int(e->src[i]);
    load_from(e, tables_.at(stage), flat.expr(), always(), depth_of_made(stage));
  }

  // `least`: the depth of what must have happened before.
  void load_from(const Expr& e, int memory, const Expr& index, const Expr& gate, int least) {
    Instruction i;
    i.kind = Ins::load;
    i.memory = memory;
    i.dtype = concrete(e->dtype);
    const int lanes = lanes_of(e);
    const auto finish = [&](const Expr& place) {
      i.args = {emit(place)};
      int at = std::max(least, depth_of_made(place));
      if (gate != always()) {
        i.args.push_back(emit(gate));
        at = std::max(at, depth_of_made(gate));
      }
      remember(e, put(std::move(i), at), at);
    };
    if (lanes == 1) return finish(index);
    const auto parts = affine_in_lane(index, lanes);
    if (parts && parts->second == 1 && !depends_on_lane(gate)) {
      i.lanes = static_cast<std::uint16_t>(lanes);
      return finish(parts->first);
    }
    int at = least;
    Instruction build;
    build.kind = Ins::build;
    build.dtype = i.dtype;
    build.lanes = static_cast<std::uint16_t>(lanes);
    for (int l = 0; l < lanes; ++l) {
      const Bindings lane{{range(lane_id, lanes), index_constant(l)}};
      const Expr one = substitute(e, lane);  // a gate that never holds makes it a zero
      build.args.push_back(emit(one));
      at = std::max(at, depth_of_made(one));
    }
    remember(e, put(std::move(build), at), at);
  }

  // ---- numbering

  // Values get the numbers of their instructions.
  void flatten(CodePhase& out) {
    while (depth() > 0) close_block();
    std::unordered_map<Value, Value> number;
    for (auto& [v, i] : blocks_[0].body) {
      if (v != no_value) number[v] = static_cast<Value>(out.body.size());
      for (Value& a : i.args) a = number.at(a);
      out.body.push_back(std::move(i));
    }
  }

  const Kernel& kernel_;
  const Target& target_;
  Code code_;
  DType index_type_ = DType::int64;
  int lanes_ = 1;  // of every vector of the kernel
  std::unordered_map<std::int64_t, int> memory_of_slot_;
  std::vector<Block> blocks_;
  std::unordered_map<Expr, std::vector<Known>> memo_;
  std::unordered_map<Expr, int> tables_;  // stage -> memory
  Value next_value_ = 0;
  int next_serial_ = 0;
};

}  // namespace

Code linearize(const Kernel& kernel, const Target& target) {
  return Linearizer(kernel, target).run();
}

}  // namespace mote
