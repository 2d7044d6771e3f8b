// What a jit records: the launches of one thread, replayed by one loop with other buffers in the
// holes.
#include <algorithm>

#include "base/text.h"
#include "engine/launch.h"

namespace mote {
namespace {

class Recording final : public Captured {
 public:
  explicit Recording(std::vector<CaptureItem> items) : items_(std::move(items)) {}

  int kernels() const override {
    return static_cast<int>(
        std::ranges::count_if(items_, [](const CaptureItem& i) { return i.kernel != nullptr; }));
  }

  bool writes(const Buffer* buffer) const override {
    for (const CaptureItem& item : items_) {
      if (!item.kernel) {
        if (item.slots[0].get() == buffer) return true;
        continue;
      }
      for (int slot : item.kernel->written)
        if (item.slots[static_cast<std::size_t>(slot)].get() == buffer) return true;
    }
    return false;
  }

  void replay(std::span<const Hole> holes) override {
    const std::lock_guard lock(graph_lock());
    std::vector<std::shared_ptr<Buffer>> slots;
    for (const CaptureItem& item : items_) {
      slots = item.slots;
      for (auto& slot : slots) {
        // Once only: an input may be the result that was recorded.
        const auto hole = std::ranges::find(holes, slot.get(), &Hole::recorded);
        if (hole != holes.end()) slot = hole->now;
      }
      if (item.kernel) launch(*item.kernel, *item.device, slots);
      else copy_bytes(*slots[0], *slots[1]);
    }
  }

 private:
  std::vector<CaptureItem> items_;
};

struct Capture {
  bool on = false;
  Where begun;
  std::vector<CaptureItem> items;
};
thread_local Capture current;

}  // namespace

void begin_capture(Where where) {
  if (current.on) {
    throw JitError(
        cat("jit: a captured function was called while another one is recorded (begun at ",
            current.begun.text(), "); call the inner function itself, not its jit"));
  }
  current = {true, where, {}};
}

std::shared_ptr<Captured> end_capture() {
  auto out = std::make_shared<Recording>(std::move(current.items));
  current = {};
  return out;
}

void abandon_capture() { current = {}; }
bool capturing() { return current.on; }

void record(CaptureItem item) {
  if (current.on) current.items.push_back(std::move(item));
}

}  // namespace mote
