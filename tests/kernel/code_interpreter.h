// Runs Code, one instruction after the other: the oracle of moves and renderers. Accesses outside of
// a memory throw InternalError that names the instruction.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernel/code.h"

namespace mote::testing {

struct RunOptions {
  std::vector<std::int64_t> variables;
  std::int64_t chunk = 0;  // tasks a chunk; 0: all in one
  bool shuffled = false;   // chunks out of order, scratch filled with rubbish before each
  bool repeated = false;   // some chunks run twice
  std::uint64_t seed = 0;
};

void interpret(const Code&, std::span<void* const> slots, const RunOptions& = {});

}  // namespace mote::testing
