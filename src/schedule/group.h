// Grouping: kernels over equal loops become one, where nothing forbids it and it pays; then slots
// get canonical numbers, so that equal kernels are one pointer.
#pragma once
#include "schedule/schedule.h"

namespace mote {

struct GroupInput {
  bool is_copy = false;
  bool accumulates = false;
  std::vector<Expr> stores;
  std::vector<std::shared_ptr<Buffer>> slots;  // by the slot numbers in `stores`
  std::vector<std::size_t> after;              // inputs that come before
  Device* device = nullptr;
  std::string made_by;
};

// Inputs are in a legal order; items are appended in one.
void group(std::span<const GroupInput>, const ScheduleOptions&, std::vector<ScheduleItem>& items);

}  // namespace mote
