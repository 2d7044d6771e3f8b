#include "kernel/writer.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "ir/printer.h"
#include "kernel/kernel.h"
#include "mote/error.h"

namespace mote {

Int flat_index(std::span<const Expr> dims, std::span<const Int> indices) {
  Int flat = 0;
  for (std::size_t i = 0; i < dims.size(); ++i) flat = flat * dims[i]->src[0]->hi + indices[i];
  return flat;
}

void Writer::find_memories(const Expr& sink) {
  std::map<std::int64_t, Memory> slots;
  for (const Expr& e : topological(sink)) {
    if (e->op == Op::slot)
      slots[e->arg] = {Space::slot, e->dtype, e->arg, e->arg2, false, cat("x", e->arg)};
    if (e->op == Op::variable) code_.variables.push_back(e);
  }
  for (const Expr& s : sink->src) slots[s->src[0]->arg].written = true;
  for (auto& [number, m] : slots) {
    if (number >= first_table) {
      m.space = Space::shared;
      m.number = code_.shared_bytes;
      m.name = cat("s", number - first_table);
      code_.shared_bytes += (m.elements * size_of(m.dtype) + 63) / 64 * 64;
    } else {
      code_.slots = static_cast<int>(number) + 1;
    }
    memory_of_slot_[number] = static_cast<int>(code_.memories.size());
    code_.memories.push_back(std::move(m));
  }
}

int Writer::new_scratch(DType t, std::int64_t elements) {
  const std::int64_t bytes = (elements * size_of(t) + 63) / 64 * 64;
  code_.memories.push_back(
      {Space::scratch, t, code_.scratch_bytes, elements, true, cat("t", code_.memories.size())});
  code_.scratch_bytes += bytes;
  return static_cast<int>(code_.memories.size()) - 1;
}

// ---- blocks

void Writer::start_phase() {
  blocks_.clear();
  memo_.clear();
  next_value_ = 0;
  blocks_.push_back({{}, next_serial_++, {}, {}, {}});
}

void Writer::finish_phase(CodePhase& out) {
  while (depth() > 0) close_block();
  std::unordered_map<Value, Value> number;
  for (auto& [v, i] : blocks_[0].body) {
    if (v != no_value) number[v] = static_cast<Value>(out.body.size());
    for (Value& a : i.args) a = number.at(a);
    out.body.push_back(std::move(i));
  }
  code_.phases.push_back(std::move(out));
  out = {};
}

void Writer::check_depth() const {
  if (first_counter + depth() + 1 >= lane_id)
    throw InternalError("linearize: loops are nested too deeply");
}

void Writer::open_loop(Instruction loop, const Expr& counter) {
  const Value v = next_value_++;
  blocks_.push_back({{}, next_serial_++, counter, {}, {{v, std::move(loop)}}});
  remember(counter, v, depth());
}

void Writer::open_branch(const Expr& condition) {
  Instruction branch = instruction(Ins::branch, DType::boolean, 1, {emit(condition)});
  blocks_.push_back({{}, next_serial_++, {}, {}, {{no_value, std::move(branch)}}});
}

// What was made in the first part is not known in the second.
void Writer::otherwise() {
  Block& b = blocks_.back();
  for (const Expr& e : b.known)
    std::erase_if(memo_.at(e), [&](const Known& k) { return k.serial == b.serial; });
  b.known.clear();
  b.body.emplace_back(no_value, instruction(Ins::otherwise, DType::boolean, 1, {}));
}

void Writer::close_block() {
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
  to.emplace_back(no_value, instruction(Ins::end, DType::boolean, 1, {}));
}

Value Writer::put(Instruction i, int at_depth) {
  const Value v = next_value_++;
  blocks_[static_cast<std::size_t>(at_depth)].body.emplace_back(v, std::move(i));
  return v;
}

void Writer::remember(const Expr& e, Value v, int at_depth) {
  Block& b = blocks_[static_cast<std::size_t>(at_depth)];
  memo_[e].push_back({v, at_depth, b.serial});
  b.known.push_back(e);
}

// Loops side by side share the ids of their counters, so an expression may be known in several
// blocks: the one that is open counts.
const Writer::Known* Writer::recall(const Expr& e) const {
  const auto at = memo_.find(e);
  if (at == memo_.end()) return nullptr;
  for (const Known& k : at->second)
    if (k.depth <= depth() && blocks_[static_cast<std::size_t>(k.depth)].serial == k.serial)
      return &k;
  return nullptr;
}

// The deepest open loop that a reduce or a table depends on, by its ranges and what it reads.
int Writer::depth_of(const Expr& e) const {
  int deepest = 0;
  for (int d = depth(); d > 0 && !deepest; --d) {
    const Expr& c = blocks_[static_cast<std::size_t>(d)].counter;
    if (c && e->free.has(static_cast<int>(c->arg))) deepest = d;
  }
  if (!has_tables_) return deepest;
  for (const Expr& n : topological(e->src[0]))
    if (n->op == Op::stage)
      if (const Known* k = recall(n)) deepest = std::max(deepest, k->depth);
  return deepest;
}

int Writer::depth_of_made(const Expr& e) const {
  const Known* k = recall(e);
  if (!k) throw InternalError(cat("linearize: ", short_text(e, 3), " is not made yet"));
  return k->depth;
}

// ---- instructions

Instruction Writer::instruction(Ins kind, DType t, int lanes, std::vector<Value> args) {
  Instruction i;
  i.kind = kind;
  i.dtype = t;
  i.lanes = static_cast<std::uint16_t>(lanes);
  i.args = std::move(args);
  return i;
}

Value Writer::declare(Value start, DType t, int lanes, int at) {
  return put(instruction(Ins::declare, t, lanes, {start}), at);
}

Value Writer::get(Value variable, DType t, int lanes) {
  return put(instruction(Ins::get, t, lanes, {variable}), depth());
}

void Writer::set(Value variable, Value v, DType t, int lanes) {
  blocks_.back().body.emplace_back(no_value, instruction(Ins::set, t, lanes, {variable, v}));
}

Value Writer::elementwise(Op op, DType t, std::vector<Value> args, int lanes, int at) {
  Instruction i = instruction(Ins::elementwise, t, lanes, std::move(args));
  i.op = op;
  return put(std::move(i), at);
}

Value Writer::broadcast(Value v, DType t, int lanes) {
  return put(instruction(Ins::broadcast, t, lanes, {v}), depth());
}

Value Writer::extract(Value v, DType t, int lane, int at) {
  Instruction i = instruction(Ins::extract, t, 1, {v});
  i.imm_int = lane;
  return put(std::move(i), at);
}

// Over the lanes of the reduce's own vector; what a spatial vector needs stays a vector.
Value Writer::horizontal(Op op, Value v, DType t, int from, int to) {
  if (from == to) return v;
  Instruction i = instruction(Ins::horizontal, t, 1, {v});
  i.op = op;
  return put(std::move(i), depth());
}

Value Writer::read(int memory, Value index, DType t, int lanes) {
  Instruction i = instruction(Ins::load, t, lanes, {index});
  i.memory = memory;
  return put(std::move(i), depth());
}

void Writer::put_store(int memory, Value index, Value v, DType t, int lanes) {
  Instruction i = instruction(Ins::store, t, lanes, {index, v});
  i.memory = memory;
  blocks_.back().body.emplace_back(no_value, std::move(i));
}

// ---- values

std::optional<std::pair<Expr, std::int64_t>> Writer::affine_in_lane(const Expr& index,
                                                                    int lanes) const {
  const Expr lane = range(lane_id, lanes);
  const Int base = Int(substitute(index, {{lane, index_constant(0)}}));
  const Int stride = Int(substitute(index, {{lane, index_constant(1)}})) - base;
  if (!stride.is_constant()) return {};
  if (!(base + stride * Int(lane) == Int(index))) return {};
  return std::pair{base.expr(), stride.value()};
}

Expr Writer::index_in_table(const Expr& stage, std::span<const Int> at) const {
  const Int flat = flat_index(stage->src.subspan(1), at);
  return (depends_on_lane(stage) ? flat * lanes_ + Int(range(lane_id, lanes_)) : flat).expr();
}

Value Writer::emit(const Expr& e) {
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

void Writer::make(const Expr& e) {
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
  if (!is_elementwise(e->op)) throw InternalError(cat("linearize: unexpected ", short_text(e, 3)));
  if (e->op == Op::add && e->dtype == DType::index) return make_sum(e);
  const int lanes = lanes_of(e);
  int at = 0;
  for (const Expr& s : e->src) at = std::max(at, depth_of_made(s));
  std::vector<Value> args;
  for (const Expr& s : e->src) args.push_back(widened(s, lanes, at));
  // Index algebra divides by floor; where nothing is negative that is what the machine does.
  const bool divides = e->dtype == DType::index && e->src[0]->lo >= 0 && e->src.back()->lo > 0;
  const Op op = divides && e->op == Op::idiv  ? Op::tdiv
                : divides && e->op == Op::mod ? Op::tmod
                                              : e->op;
  remember(e, elementwise(op, concrete(e->dtype), std::move(args), lanes, at), at);
}

// An index sum: what is known further out first, so that it is added up there; what varies by lane
// late; the constant last, where an address has room for it.
void Writer::make_sum(const Expr& e) {
  std::vector<std::pair<std::tuple<bool, bool, int, std::size_t>, Expr>> order;
  for (const Expr& t : e->src)
    order.emplace_back(
        std::tuple(is_constant(t), depends_on_lane(t), depth_of_made(t), order.size()), t);
  std::ranges::sort(order, {}, [](const auto& o) { return o.first; });
  std::vector<Expr> terms;
  for (const auto& [key, t] : order) terms.push_back(t);
  Value sum = emit(terms[0]);
  int at = depth_of_made(terms[0]), lanes = lanes_of(terms[0]);
  for (std::size_t i = 1; i < terms.size(); ++i) {
    at = std::max(at, depth_of_made(terms[i]));
    if (lanes_of(terms[i]) > lanes) {
      lanes = lanes_;
      sum = put(instruction(Ins::broadcast, index_type_, lanes, {sum}), at);
    }
    sum = elementwise(Op::add, index_type_, {sum, widened(terms[i], lanes, at)}, lanes, at);
  }
  remember(e, sum, at);
}

// The value of a source, in each of `lanes`.
Value Writer::widened(const Expr& s, int lanes, int at) {
  const Value v = emit(s);
  if (lanes == 1 || depends_on_lane(s)) return v;
  return put(instruction(Ins::broadcast, concrete(s->dtype), lanes, {v}), at);
}

void Writer::make_constant(const Expr& e) {
  Instruction i;
  i.kind = Ins::constant;
  i.dtype = concrete(e->dtype);
  i.imm = e->dtype == DType::index ? Scalar(index_type_, e->arg) : scalar_of(e);
  remember(e, put(std::move(i), 0), 0);
}

void Writer::make_variable(const Expr& e) {
  Instruction i;
  i.kind = Ins::variable;
  i.dtype = index_type_;
  i.imm_int = std::ranges::find(code_.variables, e) - code_.variables.begin();
  remember(e, put(std::move(i), 0), 0);
}

Value Writer::emit_lanes(const Expr& lane) {
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

void Writer::make_load(const Expr& e) {
  load_from(e, memory_of_slot_.at(e->src[0]->arg), e->src[1],
            e->src.size() > 2 ? e->src[2] : always(), 0);
}

void Writer::make_table_load(const Expr& e) {
  const Expr& stage = e->src[0];
  const std::vector<Int> at(e->src.begin() + 1, e->src.end());
  const Known* made = recall(stage);
  if (!made) throw InternalError(cat("linearize: ", short_text(stage, 3), " is not made yet"));
  load_from(e, made->value, index_in_table(stage, at), always(), made->depth);
}

// A table or a sum that captures the lane is made for all lanes at once: no lane of it can be asked
// for by substitution.
bool Writer::holds_binder(const Expr& e) {
  return std::ranges::any_of(topological(e), [](const Expr& x) {
    return kind_of(x->op) == Kind::binder && depends_on_lane(x);
  });
}

Value Writer::lane_of(const Expr& e, int lane) {
  if (!depends_on_lane(e)) return emit(e);
  if (!holds_binder(e))
    return emit(substitute(e, {{range(lane_id, lanes_), index_constant(lane)}}));
  return extract(emit(e), concrete(e->dtype), lane, depth());
}

// `least`: the depth of what must have happened before.
void Writer::load_from(const Expr& e, int memory, const Expr& index, const Expr& gate, int least) {
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
  if (parts && parts->second == 1 && (!depends_on_lane(gate) || !holds_binder(gate))) {
    i.lanes = static_cast<std::uint16_t>(lanes);
    return finish(parts->first);
  }
  int at = least;
  Instruction build;
  build.kind = Ins::build;
  build.dtype = i.dtype;
  build.lanes = static_cast<std::uint16_t>(lanes);
  const bool through_table = e->op == Op::stage_at || holds_binder(index) || holds_binder(gate);
  for (int l = 0; l < lanes; ++l) {
    if (!through_table) {
      const Expr one = substitute(e, {{range(lane_id, lanes), index_constant(l)}});
      build.args.push_back(emit(one));  // a gate that never holds makes it a zero
      at = std::max(at, depth_of_made(one));
      continue;
    }
    Instruction one = instruction(Ins::load, i.dtype, 1, {lane_of(index, l)});
    one.memory = memory;
    if (gate != always()) one.args.push_back(lane_of(gate, l));
    at = depth();
    build.args.push_back(put(std::move(one), at));
  }
  remember(e, put(std::move(build), at), at);
}

}  // namespace mote
