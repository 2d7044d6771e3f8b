#include "schedule/memory_plan.h"

#include <algorithm>
#include <map>

namespace mote {
namespace {

constexpr std::int64_t alignment = 64;

struct Lifetime {
  std::shared_ptr<Buffer> buffer;
  std::size_t first, last;  // items that use it
  std::int64_t offset = 0;
  std::int64_t bytes() const { return (buffer->bytes() + alignment - 1) / alignment * alignment; }
};

// First fit, largest first: the lowest offset where no buffer of an overlapping lifetime lies.
std::int64_t lay_out(std::vector<Lifetime*>& all) {
  // Equal sizes stay in order: all lie in one list.
  std::ranges::sort(all, [](auto* a, auto* b) {
    return a->bytes() != b->bytes() ? a->bytes() > b->bytes() : a < b;
  });
  std::vector<Lifetime*> placed;
  std::int64_t total = 0;
  for (Lifetime* mine : all) {
    std::vector<Lifetime*> others;
    for (Lifetime* p : placed)
      if (p->first <= mine->last && mine->first <= p->last) others.push_back(p);
    std::ranges::sort(others, [](auto* a, auto* b) { return a->offset < b->offset; });
    std::int64_t at = 0;
    for (const Lifetime* o : others) {
      if (at + mine->bytes() <= o->offset) break;
      at = std::max(at, o->offset + o->bytes());
    }
    mine->offset = at;
    total = std::max(total, at + mine->bytes());
    placed.push_back(mine);
  }
  return total;
}

}  // namespace

void plan_memory(Schedule& plan, const std::unordered_set<const Buffer*>& stay, bool share) {
  std::map<Device*, std::vector<Lifetime>> by_device;
  std::unordered_map<const Buffer*, std::pair<Device*, std::size_t>> known;
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    for (const auto& b : plan.items[i].slots) {
      if (stay.contains(b.get()) || b->allocated()) continue;
      auto& list = by_device[&b->device()];
      const auto [at, fresh] = known.try_emplace(b.get(), &b->device(), list.size());
      if (fresh) list.push_back({b, i, i});
      else list[at->second.second].last = i;
    }
  }
  std::unordered_map<const Buffer*, std::shared_ptr<Buffer>> moved;
  for (auto& [device, list] : by_device) {
    std::vector<Lifetime*> all;
    for (Lifetime& l : list) {
      plan.unplanned_bytes += l.bytes();
      all.push_back(&l);
    }
    const std::int64_t total = lay_out(all);
    plan.planned_bytes += share ? total : plan.unplanned_bytes;
    if (!share || list.size() < 2) continue;
    const auto arena = Buffer::make(*device, total, "temporaries");
    for (const Lifetime& l : list)
      moved.emplace(l.buffer.get(), Buffer::part_of(arena, l.offset, l.buffer->bytes()));
  }
  if (moved.empty()) return;
  for (ScheduleItem& item : plan.items)
    for (auto& b : item.slots)
      if (const auto at = moved.find(b.get()); at != moved.end()) b = at->second;
}

}  // namespace mote
