// Code: a kernel as a flat list of instructions, what linearize makes and a renderer prints.
//
// Values are numbered; an instruction defines at most one. Types are concrete: dtype index has
// become int32 or int64. Vectors have `lanes` > 1; both operands of an instruction have the same
// lanes unless it says otherwise. The sum of two arrays of 1000 floats, 8 lanes wide:
//
//   phase "add_0" tasks 125
//     %0 = loop 0..125 chunk
//     %1 = constant 8
//     %2 = mul %0 %1
//     %3 = load m0[%2] x8
//     %4 = load m1[%2] x8
//     %5 = add %3 %4
//          store m2[%2] %5 x8
//     end
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/scalar.h"
#include "ir/expr.h"

namespace mote {

using Value = std::int32_t;  // the number of a value: the index of its instruction
inline constexpr Value no_value = -1;

enum class Ins : std::uint8_t {
  constant,  // imm
  variable,  // imm_int = number of the Variable; int64
  loop,      // args: begin, end. The value is the counter. Ends at its `end`.
  chunk,     // a loop over the tasks begin..end that the phase function was given; first in it
  branch,    // args: condition (bool, 1 lane). Runs to its `otherwise` or `end`.
  otherwise,
  end,
  elementwise,  // op, args. See the table below.
  broadcast,    // args: scalar; lanes copies
  extract,      // args: vector; imm_int = lane
  build,        // args: `lanes` scalars
  horizontal,   // op (add, mul, max, min, and, or) over the lanes of args[0], in a fixed order:
                // halves (0 with n/2, 1 with n/2 + 1, ..) until one is left
  shuffle,      // args: a, b (same lanes n); picks: one entry a lane, 0..2n-1
  load,         // memory[args[0]], lanes elements from there on [args[1]: gate, of 1 lane or one
                // for each: zeros and no access where it is false]
  store,        // memory[args[0]] = args[1], all lanes from there on
  declare,      // a register variable that starts with args[0]
  get,          // args: declare
  set,          // args: declare, value
  prefetch,     // memory, args[0]
};

// What an elementwise instruction means where docs/semantics.md leaves work to decompose.cpp, which
// runs before linearize. After it only these are left, with the machine's meaning:
//   neg add mul         integers wrap; a float mul and the add of it are rounded once (fma) where
//                       only
//                       one side of the add is a mul
//   div sqrt trunc      floats, exactly rounded
//   tdiv tmod           integers; the divisor is never 0, nor smallest // -1
//   max min             a > b or a is NaN ? a : b (float and integer)
//   lt eq               -> bool; false with NaN
//   and or xor not      bitwise; not of bool is logical
//   shl shr             the amount is in 0..bits-1, same dtype as the value; shr by signedness
//   where               condition bool of 1 or the same lanes
//   cast                int <-> int by wrapping or extending; int -> float rounds; float -> float
//                       (float16 <-> float32 <-> float64) rounds; float -> int only in range;
//                       bool -> 0 or 1. Never to bool (that is an eq), never bfloat16 or float8
//                       (done with integers)
//   bitcast

enum class Space : std::uint8_t {
  slot,     // an argument
  shared,   // scratch that every task of the launch sees
  scratch,  // scratch of one thread
};

struct Memory {
  Space space = Space::slot;
  DType dtype = DType::float32;
  std::int64_t number = 0;    // slot number, or the byte offset in its scratch (64-aligned)
  std::int64_t elements = 0;  // upper bound of its size, for checks
  bool written = false;
  std::string name;  // readable: "x0", "acc"
};

struct Instruction {
  Ins kind;
  Op op = Op::constant;          // of elementwise and horizontal
  DType dtype = DType::float32;  // of the value (of store: of the stored value)
  std::uint16_t lanes = 1;
  std::vector<Value> args;
  std::vector<std::uint8_t> picks;  // of shuffle
  Scalar imm;                       // of constant
  std::int64_t imm_int = 0;
  int memory = -1;  // of load, store, prefetch: into Code::memories
};

struct CodePhase {
  std::vector<Instruction> body;  // values are numbered within a phase
  Expr tasks;                     // iterations of its chunk loop, of Variables; 1 when it has none
  std::int64_t grain = 1;         // chunks of at least so many tasks
};

struct Code {
  std::string name;  // readable, from the ops and sizes: "r_1024_1024_add"
  std::vector<Memory> memories;
  std::vector<Expr> variables;  // in the order of `Ins::variable` numbers
  std::vector<CodePhase> phases;
  int slots = 0;
  std::int64_t shared_bytes = 0;
  std::int64_t scratch_bytes = 0;
};

std::string to_text(const Code&);                                          // as above
std::string to_text(const Code&, const Instruction&, std::size_t number);  // one line of it
// Types, lanes, order of definition, nesting; and a proof that each access lies inside its memory,
// by bounds and by its gate and the branches around it. Throws InternalError that names the
// instruction and, where there is one, counters at which it goes wrong.
void verify(const Code&);

}  // namespace mote
