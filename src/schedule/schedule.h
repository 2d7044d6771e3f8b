// schedule: a lazy graph -> kernels in order, and a memory plan. It decides what is stored and what
// shares a kernel; values are pure, so every choice is legal and a written cost rule decides.
//
//   (a*b).sum()  ->  1 kernel: slot0[0] = reduce(add, load(slot1, r) * load(slot2, r), r)
//
// The algorithm and its traps: docs/schedule.md.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/target.h"
#include "graph/lazy_buffer.h"

namespace mote {

struct ScheduleItem {
  enum class Kind : std::uint8_t { kernel, copy } kind = Kind::kernel;
  Expr ast;                                    // of a kernel: a Sink, canonical
  std::vector<std::shared_ptr<Buffer>> slots;  // by slot number; a copy: to, from
  std::vector<std::string> made_by;            // the user's calls that it computes
  Device* device = nullptr;
};

struct Schedule {
  std::vector<ScheduleItem> items;
  std::vector<std::pair<Lazy, std::shared_ptr<Buffer>>> published;  // done once all items have run
  std::int64_t planned_bytes = 0;    // of temporaries after the memory plan
  std::int64_t unplanned_bytes = 0;  // and without it
};

struct ScheduleOptions {
  bool memory_plan = true;
  bool horizontal = true;  // groups of values over equal ranges
  double byte_cost = 1.0;  // of one byte of memory traffic, in 0.1 ns; tests vary them
  double launch_cost = 20000;
};

// All that the roots need and that is not realized yet. Hold graph_lock() from here to publish().
Schedule schedule(std::span<const Lazy> roots, const ScheduleOptions& = {});
// What outlives a schedule of these nodes (sources first): those that somebody outside of the graph
// owns, and what they need, given which are wanted.
std::unordered_set<const LazyBuffer*> surviving(
    const std::vector<Lazy>& order, const std::unordered_set<const LazyBuffer*>& wanted);
void publish(const Schedule&);

}  // namespace mote
