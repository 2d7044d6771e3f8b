// What code for a device may assume. The Device fills it, the engine hands it to schedule, opt,
// kernel and render. It never holds the number of threads in use: results must not depend on it.
#pragma once
#include <cstdint>
#include <string>

namespace mote {

struct Target {
  std::string renderer = "C";   // "C", "LLVM", later "CL", "CUDA", "METAL"
  std::string arch = "x86-64";  // what the renderer or compiler wants to know of the chip
  int vector_bytes = 32;        // one vector register
  int vector_registers = 16;
  std::int64_t l1_bytes = 32 << 10;
  std::int64_t l2_bytes = 512 << 10;
  int parallel_width = 64;  // tasks that keep any device of this kind busy
  int max_buffers = 64;     // arguments of one kernel
};

}  // namespace mote
