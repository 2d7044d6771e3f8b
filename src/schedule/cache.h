// Equal graphs are scheduled once. The key of a graph is what a schedule depends on, written down
// node by node, with realized buffers numbered by first appearance; what is kept holds no node and
// no buffer, only their numbers.
#pragma once
#include "schedule/schedule.h"

namespace mote {

// schedule(), from the cache where an equal graph was scheduled before. Hold graph_lock().
Schedule schedule_cached(std::span<const Lazy> roots, const ScheduleOptions&, bool* hit = nullptr);
void clear_schedule_cache();

}  // namespace mote
