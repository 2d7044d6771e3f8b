// The CPU's threads: the caller and MOTE_THREADS - 1 workers, which spin briefly and then sleep.
#pragma once
#include <cstdint>

namespace mote {

using PhaseFunction = void (*)(void* const* slots, void* shared, void* scratch,
                               const std::int64_t* variables, std::int64_t begin, std::int64_t end);

// Runs tasks 0..tasks-1 in chunks of `grain`, claimed in order by whoever is free; returns when all
// are done. Whoever runs alone gets all tasks in one call: a kernel may not count on a chunk's
// size. Each thread has `scratch_bytes` of its own, aligned to 64, with anything in it (MemoryError
// when there is none). One launch at a time uses the workers; a second caller runs alone. Functions
// do not throw.
void run_phase(PhaseFunction, void* const* slots, void* shared, std::int64_t scratch_bytes,
               const std::int64_t* variables, std::int64_t tasks, std::int64_t grain);
int thread_count();          // MOTE_THREADS, else the cores this process may use
void set_thread_count(int);  // 1..256, ValueError otherwise

}  // namespace mote
