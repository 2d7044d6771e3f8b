// Lowering: a placed value becomes an expression over ranges, and a kernel a Sink of Stores.
#pragma once
#include <unordered_map>
#include <vector>

#include "schedule/place.h"

namespace mote {

// A kernel as it is found: its slots name values, not yet Buffers.
struct LoweredKernel {
  std::vector<Expr> stores;
  std::vector<const LazyBuffer*> slots;  // by slot number; the written value is slot 0
  const LazyBuffer* writes = nullptr;
  bool accumulates = false;  // a scatter onto what slot 0 holds already
  // The values that are tables, with the bytes that filling one reads each time anew.
  std::vector<std::pair<const LazyBuffer*, std::int64_t>> rereads;
};

// The kernel of plan number `k`.
LoweredKernel lower_kernel(const Placement&, int k);

}  // namespace mote
