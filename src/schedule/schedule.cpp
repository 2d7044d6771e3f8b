// From placed values to kernels in order: buffers, hazards of in-place writes, groups, slots.
#include "schedule/schedule.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/flags.h"
#include "base/text.h"
#include "base/trace.h"
#include "schedule/group.h"
#include "schedule/lower.h"
#include "schedule/memory_plan.h"

namespace mote {
namespace {

class Scheduler {
 public:
  Scheduler(std::span<const Lazy> roots, const ScheduleOptions& options) : options_(options) {
    for (const Lazy& r : roots) {
      const Lazy& b = base_of(r);
      if (b->is_realized() || !wanted_.insert(b.get()).second) continue;
      roots_.push_back(b);
    }
  }

  Schedule run() {
    while (!roots_.empty() && !attempt()) {}
    return std::move(out_);
  }

 private:
  // One try; false where a hazard was found and its value forced to a temporary: then again.
  bool attempt() {
    out_ = {};
    buffers_.clear();
    kernels_.clear();
    placement_ = {};
    survive_ = surviving(topological(roots_), wanted_);  // before a plan owns the nodes as well
    placement_ = place(roots_, forced_, options_);
    for (std::size_t k = 0; k < placement_.kernels.size(); ++k) {
      if (is_copy(k)) {
        LoweredKernel copy;
        copy.writes = placement_.kernels[k].root.get();
        copy.slots = {copy.writes, base_of(placement_.kernels[k].root->src[0]).get()};
        kernels_.push_back(std::move(copy));
      } else {
        kernels_.push_back(lower_kernel(placement_, static_cast<int>(k)));
        if (rereads_too_much(kernels_.back())) return false;
      }
    }
    assign_buffers();
    for (std::size_t k = 0; k < kernels_.size(); ++k)
      if (clashes_with_itself(k)) return force(k);
    if (const auto clash = order_kernels()) return force(*clash);
    emit();
    return true;
  }

  bool is_copy(std::size_t k) const {
    const Lazy& n = placement_.kernels[k].root;
    return n->op == Op::copy && placement_.values.at(n.get()).kernel == static_cast<int>(k);
  }
  const LazyBuffer* root(std::size_t k) const { return placement_.kernels[k].root.get(); }
  bool is_in_place(std::size_t k) const { return placement_.kernels[k].in_place; }

  void assign_buffers() {
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      const LazyBuffer* n = kernels_[k].writes;
      if (buffers_.contains(n)) continue;
      if (is_in_place(k)) {
        const Lazy target = in_place_target(*n);
        buffers_[n] = target->buffer;
        if (survive_.contains(target.get())) keep_old(target);
      } else {
        buffers_[n] = Buffer::make(*n->device, bytes_of(*n), n->name);
      }
      if (wanted_.contains(n) || survive_.contains(n)) published_.insert(n);
    }
  }

  static std::int64_t bytes_of(const LazyBuffer& n) {
    std::int64_t bytes = size_of(n.dtype);
    for (const Int& size : n.shape) {
      if (__builtin_mul_overflow(bytes, size.hi(), &bytes))
        throw MemoryError(cat(
            n.device->name(), ": no memory for a tensor", n.name.empty() ? "" : " '" + n.name + "'",
            " of shape ", to_text(n.shape), ", more than 63 bits can count; use smaller sizes"));
    }
    return bytes;
  }

  // Somebody still needs the value that is about to be overwritten: its node gets a copy of the
  // bytes first, so that the assigned tensor keeps its buffer.
  void keep_old(const Lazy& target) {
    for (const auto& [n, b] : kept_)
      if (n == target) return;
    kept_.emplace_back(target,
                       Buffer::make(*target->device, target->buffer->bytes(), target->name));
  }

  std::shared_ptr<Buffer> buffer_of(const LazyBuffer* n) const {
    const auto at = buffers_.find(n);
    return at != buffers_.end() ? at->second : n->buffer;
  }

  std::vector<const Buffer*> reads(std::size_t k) const {
    std::vector<const Buffer*> out;
    for (std::size_t i = 1; i < kernels_[k].slots.size(); ++i)
      out.push_back(buffer_of(kernels_[k].slots[i]).get());
    return out;
  }

  // A kernel that reads what it overwrites, at another place than the one it writes.
  bool clashes_with_itself(std::size_t k) const {
    if (!is_in_place(k)) return false;
    const Buffer* written = buffer_of(kernels_[k].writes).get();
    for (const Expr& s : kernels_[k].stores) {
      for (const Expr& e : topological(s)) {
        if (e->op != Op::load) continue;
        const auto slot = static_cast<std::size_t>(e->src[0]->arg);
        if (buffer_of(kernels_[k].slots[slot]).get() != written) continue;
        if (e->src[1] != s->src[1] || !(e->free == s->free)) return true;
      }
    }
    return false;
  }

  // Tables are for what stays in half of the second cache while they are filled again and again:
  // past that the largest is stored.
  bool rereads_too_much(const LoweredKernel& kernel) {
    std::int64_t bytes = 0;
    std::pair<const LazyBuffer*, std::int64_t> largest{};
    for (const auto& table : kernel.rereads) {
      bytes += table.second;
      if (table.second > largest.second) largest = table;
    }
    return 2 * bytes > kernel.writes->device->target().l2_bytes &&
           forced_.insert(largest.first).second;
  }

  // Is all that an assign in place writes in a temporary already?
  static bool is_forced(const LazyBuffer& n) {
    const bool direct = std::get<Region>(n.arg).empty() || writes_region(n);
    return direct && n.src[1]->op == Op::contiguous && !n.src[1]->is_realized();
  }

  // The value goes to a temporary before it is written in place.
  bool force(std::size_t k) {
    const Lazy n = placement_.kernels[k].root;
    if (is_forced(*n))
      throw InternalError(
          cat("schedule: an in-place write cannot be ordered; made at ", n->made.text()));
    const Where none{};
    const PlaceScope place(none);
    Lazy value = n->src[1];
    if (Region& region = std::get<Region>(n->arg); !region.empty() && !writes_region(*n)) {
      // An assign of a part upon another assign writes all of its target: the old bytes are read
      // for the rest of it as well.
      value = make_lazy(Op::assign, n->src, n->shape, n->dtype, n->device, std::move(region));
      value->requires_grad = n->requires_grad;
      region.clear();
    }
    const bool differentiable = value->requires_grad;
    n->src[1] = make_lazy(Op::contiguous, {value}, value->shape, value->dtype, value->device);
    n->src[1]->requires_grad = differentiable;  // whether or not history is recorded here
    kept_.clear();
    published_.clear();
    return false;
  }

  // Edges, then Kahn's algorithm, lowest number first. Gives the in-place kernel to force where
  // there is a cycle.
  std::optional<std::size_t> order_kernels() {
    const std::size_t n = kernels_.size();
    std::map<const Buffer*, std::vector<std::size_t>> writers, readers;
    for (std::size_t k = 0; k < n; ++k) {
      writers[buffer_of(kernels_[k].writes).get()].push_back(k);
      for (std::size_t i = 1; i < kernels_[k].slots.size(); ++i)
        if (kernels_[k].slots[i]->is_realized())
          readers[buffer_of(kernels_[k].slots[i]).get()].push_back(k);
    }
    after_.assign(n, {});
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t i = 1; i < kernels_[k].slots.size(); ++i) {
        const LazyBuffer* s = kernels_[k].slots[i];
        if (s->is_realized()) continue;
        for (std::size_t w : writers[buffer_of(s).get()])
          if (w != k) after_[w].insert(k);
      }
      if (kernels_[k].accumulates)  // its target is copied by the plan that follows it
        for (std::size_t w : writers[buffer_of(kernels_[k].writes).get()])
          if (w != k) after_[w].insert(k);
      if (is_in_place(k))
        for (std::size_t r : readers[buffer_of(kernels_[k].writes).get()])
          if (r != k) after_[r].insert(k);
    }
    std::vector<int> before(n, 0);
    for (const auto& next : after_)
      for (std::size_t k : next) ++before[k];
    std::set<std::size_t> ready;
    // Plans are consumers first: high numbers are the producers.
    for (std::size_t k = 0; k < n; ++k)
      if (!before[k]) ready.insert(n - 1 - k);
    order_.clear();
    while (!ready.empty()) {
      const std::size_t k = n - 1 - *ready.begin();
      ready.erase(ready.begin());
      order_.push_back(k);
      for (std::size_t next : after_[k])
        if (--before[next] == 0) ready.insert(n - 1 - next);
    }
    if (order_.size() == n) return {};
    for (std::size_t k = 0; k < n; ++k)
      if (before[k] && is_in_place(k) && !is_forced(*root(k))) return k;
    throw InternalError("schedule: the kernels depend on each other in a circle");
  }

  void emit() {
    for (const auto& [target, fresh] : kept_)
      out_.items.push_back(
          {ScheduleItem::Kind::copy, {}, {fresh, target->buffer}, {}, target->device});
    // A value without elements has no bytes to write, and nobody reads any.
    std::erase_if(order_, [&](std::size_t k) { return kernels_[k].writes->elements() == 0; });
    std::vector<GroupInput> inputs;
    std::erase_if(order_,
                  [&](std::size_t k) { return product(placement_.kernels[k].shape).is(0); });
    std::vector<std::vector<std::size_t>> earlier(kernels_.size());  // places in order_
    for (std::size_t j = 0; j < order_.size(); ++j)
      for (std::size_t k : after_[order_[j]]) earlier[k].push_back(j);
    for (std::size_t k : order_) {
      GroupInput in;
      in.is_copy = kernels_[k].stores.empty();
      in.stores = kernels_[k].stores;
      in.device = kernels_[k].writes->device;
      in.accumulates = kernels_[k].accumulates;
      for (const LazyBuffer* s : kernels_[k].slots) in.slots.push_back(buffer_of(s));
      in.made_by = kernels_[k].writes->made.text();
      in.after = std::move(earlier[k]);
      inputs.push_back(std::move(in));
    }
    group(inputs, options_, out_.items);
    std::unordered_set<const Buffer*> stay;
    for (const auto& [target, fresh] : kept_) {
      out_.published.emplace_back(target, fresh);
      stay.insert(fresh.get());
    }
    for (const Lazy& n : placement_.order) {
      if (!published_.contains(n.get())) continue;
      out_.published.emplace_back(n, buffers_.at(n.get()));
      stay.insert(buffers_.at(n.get()).get());
    }
    for (const Lazy& n : placement_.order)
      if (n->is_realized()) stay.insert(n->buffer.get());
    plan_memory(out_, stay, options_.memory_plan);
    if (tracing(5))
      trace({5, "schedule", "", cat(out_.items.size(), " items for\n", to_text(roots_))});
  }

  const ScheduleOptions& options_;
  std::vector<Lazy> roots_;
  std::unordered_set<const LazyBuffer*> wanted_, published_, survive_;
  std::unordered_set<const LazyBuffer*> forced_;  // stored, whatever it costs
  Placement placement_;
  std::vector<LoweredKernel> kernels_;
  std::unordered_map<const LazyBuffer*, std::shared_ptr<Buffer>> buffers_;
  std::vector<std::pair<Lazy, std::shared_ptr<Buffer>>> kept_;  // old values and their new bytes
  std::vector<std::set<std::size_t>> after_;                    // kernels that must wait
  std::vector<std::size_t> order_;
  Schedule out_;
};

}  // namespace

std::unordered_set<const LazyBuffer*> surviving(
    const std::vector<Lazy>& order, const std::unordered_set<const LazyBuffer*>& wanted) {
  std::unordered_map<const LazyBuffer*, long> explained;
  for (const Lazy& n : order) {
    for (const Lazy& s : n->src) ++explained[s.get()];
    if (n->base) ++explained[n->base.get()];
    if (n->own_gradient)
      for (const Lazy& s : n->own_gradient->inputs) ++explained[s.get()];
  }
  std::unordered_set<const LazyBuffer*> out;
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const Lazy& n = *at;
    const bool owned = n.use_count() - 1 > explained[n.get()];
    const bool drops =
        wanted.contains(n.get()) && !n->requires_grad;  // realized: lets its sources go
    if (!owned && !out.contains(n.get())) continue;
    out.insert(n.get());
    if (drops || n->is_realized()) continue;
    for (const Lazy& s : n->src) out.insert(s.get());
    if (n->base) out.insert(n->base.get());
  }
  return out;
}

Schedule schedule(std::span<const Lazy> roots, const ScheduleOptions& options) {
  return Scheduler(roots, options).run();
}

void publish(const Schedule& plan) {
  for (const auto& [n, buffer] : plan.published) n->realized_as(buffer);
}

}  // namespace mote
