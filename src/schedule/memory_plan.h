// The memory planner: temporaries with disjoint lifetimes get the same bytes.
#pragma once
#include <unordered_set>

#include "schedule/schedule.h"

namespace mote {

// `stay`: buffers that live on after the schedule. Counts planned and unplanned bytes either way.
void plan_memory(Schedule&, const std::unordered_set<const Buffer*>& stay, bool share);

}  // namespace mote
