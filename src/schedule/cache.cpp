#include "schedule/cache.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "ir/printer.h"
#include "schedule/place.h"

namespace mote {
namespace {

constexpr std::size_t most_kept = 512;

// ---- the key

class Key {
 public:
  explicit Key(std::span<const Lazy> roots) {
    std::vector<Lazy> bases;
    for (const Lazy& r : roots)
      if (!base_of(r)->is_realized()) bases.push_back(base_of(r));
    const std::vector<Lazy> order = topological(bases);
    std::unordered_set<const LazyBuffer*> wanted;
    for (const Lazy& b : bases) wanted.insert(b.get());
    const auto survives = surviving(order, wanted);
    for (const Lazy& n : order) {
      numbers_.emplace(n.get(), static_cast<int>(nodes.size()));
      nodes.push_back(n);
      put(wanted.contains(n.get()), survives.contains(n.get()));
      describe(*n);
    }
  }

  std::string text;
  std::vector<Lazy> nodes;                       // by number
  std::vector<std::shared_ptr<Buffer>> buffers;  // of the realized ones, by first appearance

  // -1 for a node that the graph did not have when the key was made.
  int number_of(const Lazy& n) const {
    const auto at = numbers_.find(n.get());
    return at == numbers_.end() ? -1 : at->second;
  }

 private:
  void put(auto... values) { ((text += std::to_string(values), text += ' '), ...); }
  void put_name(std::string_view name) { (text += name) += ' '; }
  void put_size(const Int& size) {
    if (size.is_constant()) return put(size.value());
    put_name(to_text(size.expr()));
  }
  void put_sizes(const Shape& shape) {
    put(shape.size());
    for (const Int& size : shape) put_size(size);
  }

  void describe(const LazyBuffer& n) {
    put(static_cast<int>(n.dtype), n.requires_grad);
    put_name(n.device->name());
    put_sizes(n.shape);
    if (n.base) {
      put(number_of(n.base));
      if (number_of(n.base) < 0) describe(*n.base);  // realized: its view has let the sources go
    }
    if (n.is_realized()) {  // what it was computed by no longer counts
      const auto at = std::ranges::find(buffers, n.buffer) - buffers.begin();
      if (at == std::ssize(buffers)) buffers.push_back(n.buffer);
      put_name("buffer");
      put(at, n.buffer->bytes(), n.buffer->allocated());
    } else {
      put(static_cast<int>(n.op), static_cast<int>(n.reduce_op), n.src.size(), n.arg.index());
      for (const Lazy& s : n.src) put(numbers_.at(s.get()));
      std::visit([&](const auto& arg) { put_argument(arg); }, n.arg);
    }
    text += '\n';
  }

  void put_argument(const std::monostate&) {}
  void put_argument(const Scalar& s) { put(static_cast<int>(s.dtype), s.bits); }
  void put_argument(const Shape& shape) { put_sizes(shape); }
  void put_argument(const Axes& axes) {
    for (int a : axes) put(a);
  }
  void put_argument(const Padding& padding) {
    for (const auto& [before, after] : padding) put_sizes({before, after});
  }
  void put_argument(const Spans& spans) {
    for (const Span& s : spans) put_sizes({s.begin, s.end});
  }
  void put_argument(const Windows& windows) {
    for (const Window& w : windows) put_sizes({w.size, w.step, w.dilation});
  }
  void put_argument(const Region& region) {
    for (const Step& s : region) put_sizes({s.begin, s.step, s.count});
  }

  std::unordered_map<const LazyBuffer*, int> numbers_;
};

// ---- what is kept

// A buffer of a schedule: one of the graph's own, a fresh one, or a part of an earlier one.
struct Recipe {
  int own = -1;     // number in Key::buffers
  int parent = -1;  // number of a recipe
  std::int64_t offset = 0, bytes = 0;
  Device* device = nullptr;
  std::string name;
};

struct Kept {
  struct Item {
    ScheduleItem::Kind kind;
    Expr ast;
    std::vector<int> slots;  // numbers of recipes
    std::vector<std::string> made_by;
    Device* device;
  };
  std::vector<Recipe> recipes;
  std::vector<Item> items;
  std::vector<std::pair<int, int>> published;  // node, recipe
  std::int64_t planned_bytes = 0, unplanned_bytes = 0;
};

class Keeper {
 public:
  explicit Keeper(const Key& key) : key_(key) {}

  std::optional<Kept> kept(const Schedule& plan) {
    for (const ScheduleItem& item : plan.items) {
      Kept::Item k{item.kind, item.ast, {}, item.made_by, item.device};
      for (const auto& b : item.slots) k.slots.push_back(recipe_of(b));
      out_.items.push_back(std::move(k));
    }
    for (const auto& [node, b] : plan.published) {
      if (key_.number_of(node) < 0) return {};  // made by the scheduler itself
      out_.published.emplace_back(key_.number_of(node), recipe_of(b));
    }
    out_.planned_bytes = plan.planned_bytes;
    out_.unplanned_bytes = plan.unplanned_bytes;
    return std::move(out_);
  }

 private:
  int recipe_of(const std::shared_ptr<Buffer>& b) {
    if (const auto at = known_.find(b.get()); at != known_.end()) return at->second;
    Recipe r;
    const auto own = std::ranges::find(key_.buffers, b);
    if (own != key_.buffers.end()) {
      r.own = static_cast<int>(own - key_.buffers.begin());
    } else {
      if (b->parent()) r.parent = recipe_of(b->parent());
      r.offset = b->offset();
      r.bytes = b->bytes();
      r.device = &b->device();
      r.name = b->name();
    }
    out_.recipes.push_back(std::move(r));
    known_[b.get()] = static_cast<int>(out_.recipes.size()) - 1;
    return known_[b.get()];
  }

  const Key& key_;
  Kept out_;
  std::unordered_map<const Buffer*, int> known_;
};

Schedule replayed(const Kept& kept, const Key& key) {
  std::vector<std::shared_ptr<Buffer>> buffers;
  for (const Recipe& r : kept.recipes) {
    if (r.own >= 0) buffers.push_back(key.buffers[static_cast<std::size_t>(r.own)]);
    else if (r.parent >= 0)
      buffers.push_back(
          Buffer::part_of(buffers[static_cast<std::size_t>(r.parent)], r.offset, r.bytes));
    else buffers.push_back(Buffer::make(*r.device, r.bytes, r.name));
  }
  Schedule out;
  for (const Kept::Item& k : kept.items) {
    ScheduleItem item{k.kind, k.ast, {}, k.made_by, k.device};
    for (int slot : k.slots) item.slots.push_back(buffers[static_cast<std::size_t>(slot)]);
    out.items.push_back(std::move(item));
  }
  for (const auto& [node, buffer] : kept.published)
    out.published.emplace_back(key.nodes[static_cast<std::size_t>(node)],
                               buffers[static_cast<std::size_t>(buffer)]);
  out.planned_bytes = kept.planned_bytes;
  out.unplanned_bytes = kept.unplanned_bytes;
  return out;
}

// Guarded by graph_lock().
std::unordered_map<std::string, Kept>& cache() {
  static auto* const all = new std::unordered_map<std::string, Kept>;
  return *all;
}

}  // namespace

Schedule schedule_cached(std::span<const Lazy> roots, const ScheduleOptions& options, bool* hit) {
  Key key(roots);
  key.text += std::to_string(options.memory_plan) + std::to_string(options.horizontal);
  const auto at = cache().find(key.text);
  if (hit) *hit = at != cache().end();
  if (at != cache().end()) return replayed(at->second, key);
  const std::string text = std::move(key.text);
  key.nodes.clear();  // what is scheduled counts its owners
  Schedule plan = schedule(roots, options);
  if (cache().size() >= most_kept) cache().clear();
  if (auto kept = Keeper(key).kept(plan)) cache().emplace(text, std::move(*kept));
  return plan;
}

void clear_schedule_cache() {
  const std::lock_guard lock(graph_lock());
  cache().clear();
}

}  // namespace mote
