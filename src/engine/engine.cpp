// realize: the whole path of a value, from the lazy graph to bytes.
//
// Scheduling holds the graph's lock; compiling does not; then the lock is taken again, and if the
// graph moved meanwhile (another thread published values) the schedule is made anew, which the
// caches make cheap. Kernels run, and values are published, under the lock: so a realized node's
// bytes are always there, and a compile that fails leaves the graph as it was.
#include "engine/engine.h"

#include <algorithm>

#include "base/flags.h"
#include "base/text.h"
#include "base/trace.h"
#include "engine/launch.h"
#include "ref/ref.h"
#include "schedule/cache.h"

namespace mote {
namespace {

std::uint64_t graph_epoch = 0;  // guarded by graph_lock(): counts publications

bool on_ref(const Lazy& n) { return n->device->name().starts_with("REF"); }

// Nodes that another engine must compute first: the source of a copy to or from REF.
std::vector<Lazy> foreign_sources(std::span<const Lazy> roots) {
  std::vector<Lazy> out;
  for (const Lazy& n : topological(roots)) {
    if (n->op != Op::copy || n->is_realized() || n->src.empty()) continue;
    if (on_ref(n) != on_ref(n->src[0])) out.push_back(n->src[0]);
  }
  return out;
}

std::unordered_map<Expr, std::int64_t> bound_variables(std::span<const Lazy> roots) {
  std::unordered_map<Expr, std::int64_t> values;
  for (const Lazy& n : topological(roots)) {
    for (const Int& size : n->shape) {
      if (size.is_constant()) continue;
      for (const Expr& e : topological(size.expr()))
        if (e->op == Op::variable) values.emplace(e, variable_value(e));
    }
  }
  return values;
}

struct Compiled {
  std::vector<std::shared_ptr<const CompiledKernel>> kernels;  // null where the item is a copy
};

Compiled compile_all(const Schedule& plan) {
  Compiled out;
  out.kernels.resize(plan.items.size());
  std::vector<Device*> devices;
  for (const ScheduleItem& item : plan.items) {
    if (item.kind == ScheduleItem::Kind::kernel &&
        std::ranges::find(devices, item.device) == devices.end())
      devices.push_back(item.device);
  }
  for (Device* device : devices) {
    std::vector<Expr> asts;
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < plan.items.size(); ++i) {
      const ScheduleItem& item = plan.items[i];
      if (item.kind != ScheduleItem::Kind::kernel || item.device != device) continue;
      asts.push_back(item.ast);
      which.push_back(i);
    }
    const auto compiled = compile(asts, *device);
    for (std::size_t i = 0; i < which.size(); ++i) out.kernels[which[i]] = compiled[i];
  }
  return out;
}

void run(const Schedule& plan, const Compiled& compiled) {
  for (const ScheduleItem& item : plan.items)  // memory first: what fails here has no effect
    for (const auto& buffer : item.slots) buffer->data();
  for (std::size_t i = 0; i < plan.items.size(); ++i) {
    const ScheduleItem& item = plan.items[i];
    const auto& kernel = compiled.kernels[i];
    if (kernel) launch(*kernel, *item.device, item.slots);
    else copy_bytes(*item.slots[0], *item.slots[1]);
    record({kernel, item.device, item.slots});
  }
}

void realize_scheduled(std::span<const Lazy> roots) {
  ScheduleOptions options;
  options.memory_plan = flag_on("MOTE_MEMORY_PLAN");
  for (;;) {
    std::unique_lock lock(graph_lock());
    bool hit = false;
    const Schedule plan = schedule_cached(roots, options, &hit);
    count_scheduled(hit);
    if (hit && tracing(3)) trace({3, "schedule", "", "schedule: taken from the cache"});
    if (plan.items.empty()) return publish(plan);
    const std::uint64_t epoch = graph_epoch;
    lock.unlock();
    const Compiled compiled = compile_all(plan);
    lock.lock();
    if (epoch != graph_epoch) continue;
    run(plan, compiled);
    publish(plan);
    ++graph_epoch;
    return;
  }
}

}  // namespace

void realize(std::span<const Lazy> roots) {
  std::vector<Lazy> scheduled, referenced;
  for (const Lazy& source : foreign_sources(roots)) realize(source);
  for (const Lazy& root : roots) (on_ref(root) ? referenced : scheduled).push_back(root);
  if (!referenced.empty()) {
    if (capturing()) {
      throw JitError(
          "jit: REF interprets and launches nothing that could be recorded; call the function "
          "itself, or use another device");
    }
    const std::lock_guard lock(graph_lock());
    realize_by_reference(referenced, {.variables = bound_variables(referenced)});
    ++graph_epoch;
  }
  if (!scheduled.empty()) realize_scheduled(scheduled);
}

}  // namespace mote
