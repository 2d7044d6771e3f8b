// Writer: expressions become instructions, each in the block of the innermost open loop that it
// depends on. A block joins its parent when it is closed, so what an inner loop needs from further
// out comes before it: hoisting, and finding common values, need no analysis.
#pragma once
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernel/kernel.h"
#include "symbolic/int.h"

namespace mote {

// Ids of the loops that are opened, above those of any kernel: by depth; then two for blocks of a
// long sum, and the lane.
inline constexpr int first_counter = 192, block_id = 191, outer_block_id = 190,
                     lane_id = RangeSet::capacity - 1;

inline bool depends_on_lane(const Expr& e) { return e->free.has(lane_id); }

class Writer {
 protected:
  // Slots, tables and Variables of the kernel.
  void find_memories(const Expr& sink);
  int new_scratch(DType t, std::int64_t elements);
  int memory_of(const Expr& slot) const { return memory_of_slot_.at(slot->arg); }

  // ---- blocks
  struct Block {
    std::vector<std::pair<Value, Instruction>> body;  // values by a number of their own
    int serial;
    Expr counter;             // of its loop
    std::vector<Expr> known;  // memo entries that die with it
    std::vector<std::pair<Value, Instruction>> opening;
  };
  struct Known {
    Value value;  // of a stage: its memory
    int depth;
    int serial;
  };

  void start_phase();
  void finish_phase(CodePhase& out);  // values get the numbers of their instructions
  int depth() const { return static_cast<int>(blocks_.size()) - 1; }
  void open_loop(Instruction loop, const Expr& counter);
  void open_branch(const Expr& condition);
  void otherwise();
  void close_block();
  Value put(Instruction i, int at_depth);
  void remember(const Expr& e, Value v, int at_depth);
  const Known* recall(const Expr& e) const;
  int depth_of(const Expr& e) const;
  int depth_of_made(const Expr& e) const;
  template <class Extent>
  Expr counter_of(const Extent& extent) const {
    check_depth();
    return range(first_counter + depth() + 1, extent);
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

  // ---- instructions
  static Instruction instruction(Ins kind, DType t, int lanes, std::vector<Value> args);
  Value declare(Value start, DType t, int lanes, int at);
  Value get(Value variable, DType t, int lanes);
  void set(Value variable, Value v, DType t, int lanes);
  Value elementwise(Op op, DType t, std::vector<Value> args, int lanes, int at);
  Value broadcast(Value v, DType t, int lanes);
  Value extract(Value v, DType t, int lane, int at);
  Value horizontal(Op op, Value v, DType t, int from, int to);
  Value read(int memory, Value index, DType t, int lanes);
  void put_store(int memory, Value index, Value v, DType t, int lanes);

  // ---- values
  // Made where it is not known yet, its sources first.
  Value emit(const Expr& e);
  int lanes_of(const Expr& e) const { return depends_on_lane(e) ? lanes_ : 1; }
  DType concrete(DType t) const { return t == DType::index ? index_type_ : t; }
  // index = base + lane * stride, with the stride a number; nullopt where it is not.
  std::optional<std::pair<Expr, std::int64_t>> affine_in_lane(const Expr& index, int lanes) const;
  // Where the element of a table at `at` lies in its memory.
  Expr index_in_table(const Expr& stage, std::span<const Int> at) const;

  Code code_;
  DType index_type_ = DType::int64;
  int lanes_ = 1;  // of every vector of the kernel
  std::vector<Block> blocks_;
  bool has_tables_ = false;

 private:
  void check_depth() const;
  void make(const Expr& e);
  void make_sum(const Expr& e);
  Value widened(const Expr& s, int lanes, int at);
  void make_constant(const Expr& e);
  void make_variable(const Expr& e);
  Value emit_lanes(const Expr& lane);
  void make_load(const Expr& e);
  void make_table_load(const Expr& e);
  static bool holds_binder(const Expr& e);
  Value lane_of(const Expr& e, int lane);
  void load_from(const Expr& e, int memory, const Expr& index, const Expr& gate, int least);

  std::unordered_map<std::int64_t, int> memory_of_slot_;
  std::unordered_map<Expr, std::vector<Known>> memo_;
  Value next_value_ = 0;
  int next_serial_ = 0;
};

}  // namespace mote
