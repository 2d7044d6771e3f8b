// What a renderer made of one kernel, ready to be compiled: all that a disk cache needs is in it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace mote {

// A phase is one root loop nest: `tasks` units of its first loop, dealt out in chunks of `grain`;
// a barrier follows it. On a CPU it is a C function
//   void symbol(void* const* slots, void* shared, void* scratch, const int64_t* variables,
//               int64_t begin, int64_t end);
struct Phase {
  std::string symbol;
  std::int64_t tasks = 1;  // upper bound; a launch passes the real number
  std::int64_t grain = 1;
};

struct Source {
  std::string name;  // readable, for traces
  std::string text;
  std::vector<Phase> phases;       // in order, with a barrier after each
  int slots = 0;                   // number of buffer arguments
  int variables = 0;               // number of symbolic integers
  std::int64_t shared_bytes = 0;   // scratch that all tasks of a launch share
  std::int64_t scratch_bytes = 0;  // scratch of one thread
  bool fast_compile = false;       // favour compile time over speed (one-shot kernels, tests)
};

}  // namespace mote
