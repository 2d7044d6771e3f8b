#include "schedule/group.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "ir/rewrite.h"
#include "symbolic/int.h"

namespace mote {
namespace {

struct Group {
  std::vector<std::size_t> members;
  std::vector<Expr> stores;  // slots numbered in `slots`
  std::vector<std::shared_ptr<Buffer>> slots;
  std::set<std::size_t> before;  // groups that must come before
  Device* device = nullptr;
  bool fixed = false;  // stays alone
  std::vector<std::string> made_by;
};

int slot_number(Group& g, const std::shared_ptr<Buffer>& b) {
  const auto number = std::ranges::find(g.slots, b) - g.slots.begin();
  if (number == std::ssize(g.slots)) g.slots.push_back(b);
  return static_cast<int>(number);
}

// The stores with slots renumbered for the group.
std::vector<Expr> adopted(Group& g, const GroupInput& in) {
  std::vector<Expr> out;
  for (const Expr& s : in.stores) {
    Replacements slots;
    for (const Expr& e : topological(s))
      if (e->op == Op::slot)
        slots.emplace(
            e, slot(slot_number(g, in.slots[static_cast<std::size_t>(e->arg)]), e->dtype, e->arg2));
    out.push_back(replace(s, slots));
  }
  return out;
}

// Loads of what the group stores, at the place where it is stored, become the stored value. False
// where one is at another place.
bool forwarded(const Group& g, Expr& store) {
  for (const Expr& mine : g.stores) {
    for (const Expr& e : topological(store)) {
      if (e->op != Op::load || e->src[0]->arg != mine->src[0]->arg) continue;
      if (e->src.size() > 2 || e->src[1] != mine->src[1] || !(e->free == mine->free)) return false;
    }
  }
  Replacements values;
  for (const Expr& mine : g.stores)
    for (const Expr& e : topological(store))
      if (e->op == Op::load && e->src[0] == mine->src[0]) values.emplace(e, mine->src[2]);
  if (!values.empty()) store = simplify(replace(store, values));
  return true;
}

// A copy, a scatter and a scan keep their loops to themselves: the order of their steps counts, and
// a scan is no value that another store could compute at its own place.
bool stands_alone(const GroupInput& in) {
  const auto scans = [](const Expr& s) { return s->src[2]->op == Op::scan; };
  return in.is_copy || in.accumulates || std::ranges::any_of(in.stores, scans);
}

// What the group reads, this store must not overwrite at another place.
bool overwrites(const Group& g, const Expr& store) {
  for (const Expr& mine : g.stores) {
    if (mine->src[0]->arg == store->src[0]->arg) return true;
    for (const Expr& e : topological(mine))
      if (e->op == Op::load && e->src[0]->arg == store->src[0]->arg &&
          (e->src[1] != store->src[1] || !(e->free == store->free)))
        return true;
  }
  return false;
}

bool shares_a_read(const Group& g, const GroupInput& in) {
  for (std::size_t i = 0; i < in.slots.size(); ++i)
    if (std::ranges::find(g.slots, in.slots[i]) != g.slots.end()) return true;
  return false;
}

bool same_loops(const Expr& a, const Expr& b) {
  if (!(a->free == b->free)) return false;
  std::unordered_map<int, Expr> extents;
  for (const Expr& e : topological(a))
    if (e->op == Op::range && a->free.has(static_cast<int>(e->arg)))
      extents[static_cast<int>(e->arg)] = e;
  for (const Expr& e : topological(b))
    if (e->op == Op::range && b->free.has(static_cast<int>(e->arg)) &&
        extents[static_cast<int>(e->arg)] != e)
      return false;
  return true;
}

// A launch costs more than such a store does: a few elements, nothing added up.
bool is_tiny(const Expr& store) {
  constexpr std::int64_t most = 1 << 14;
  if (store->src[0]->arg2 > most) return false;
  return std::ranges::none_of(topological(store),
                              [](const Expr& e) { return kind_of(e->op) == Kind::binder; });
}

class Grouper {
 public:
  explicit Grouper(std::span<const GroupInput> inputs, const ScheduleOptions& options)
      : inputs_(inputs), options_(options) {}

  void run(std::vector<ScheduleItem>& items) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) place(i);
    for (const std::size_t g : sorted()) items.push_back(item(groups_[g]));
  }

 private:
  void place(std::size_t i) {
    const GroupInput& in = inputs_[i];
    std::set<std::size_t> before;
    for (std::size_t j : in.after) before.insert(group_of_[j]);
    for (std::size_t g = groups_.size(); options_.horizontal && g-- > first_open();) {
      if (joins(g, in, before)) {
        group_of_.push_back(g);
        return;
      }
    }
    Group fresh;
    fresh.device = in.device;
    fresh.before = before;
    fresh.fixed = stands_alone(in);
    fresh.stores = adopted(fresh, in);
    if (in.is_copy) fresh.slots = in.slots;
    fresh.made_by.push_back(in.made_by);
    group_of_.push_back(groups_.size());
    groups_.push_back(std::move(fresh));
    settle();
  }

  // Inputs join one of the newest groups; the older ones stay as they are.
  std::size_t first_open() const { return groups_.size() > 24 ? groups_.size() - 24 : 0; }

  // A group is settled once it and all that must come before it stay as they are: no walk that
  // looks for an open group passes through it.
  void settle() {
    settled_.resize(groups_.size(), 0);
    for (; aged_ < first_open(); ++aged_) unsettled_.push_back(aged_);
    std::erase_if(unsettled_, [&](std::size_t g) {
      settled_[g] =
          std::ranges::all_of(groups_[g].before, [&](std::size_t b) { return settled_[b]; });
      return settled_[g];
    });
  }

  bool joins(std::size_t g, const GroupInput& in, const std::set<std::size_t>& before) {
    if (groups_[g].fixed || stands_alone(in) || groups_[g].device != in.device) return false;
    const bool together =
        same_loops(groups_[g].stores[0], in.stores[0]) && shares_a_read(groups_[g], in);
    if (!together && !are_tiny(g, in)) return false;
    for (std::size_t b : before)
      if (b != g && reaches(g, b)) return false;  // a path through another group
    Group trial = groups_[g];
    std::vector<Expr> stores = adopted(trial, in);
    if (static_cast<int>(trial.slots.size()) > std::min(28, in.device->target().max_buffers))
      return false;
    for (Expr& s : stores) {
      if (!forwarded(trial, s) || overwrites(trial, s)) return false;
      trial.stores.push_back(s);
    }
    if (topological(sink(trial.stores)).size() > 2000) return false;
    for (std::size_t b : before)
      if (b != g) trial.before.insert(b);
    trial.made_by.push_back(in.made_by);
    groups_[g] = std::move(trial);
    return true;
  }

  // Small ones need not have loops in common; a few of them, and near each other.
  bool are_tiny(std::size_t g, const GroupInput& in) const {
    constexpr std::size_t most_stores = 12, near = 4;
    return g + near >= groups_.size() &&
           groups_[g].stores.size() + in.stores.size() <= most_stores &&
           std::ranges::all_of(groups_[g].stores, is_tiny) &&
           std::ranges::all_of(in.stores, is_tiny);
  }

  // Does group `to` need the open group `from`, directly or not?
  bool reaches(std::size_t from, std::size_t to) const {
    std::vector<std::size_t> stack{to};
    std::set<std::size_t> seen;
    while (!stack.empty()) {
      const std::size_t g = stack.back();
      stack.pop_back();
      if (g == from) return true;
      for (std::size_t b : groups_[g].before)
        if (!settled_[b] && seen.insert(b).second) stack.push_back(b);
    }
    return false;
  }

  // Joining can put a later group before an earlier one.
  std::vector<std::size_t> sorted() const {
    std::vector<std::size_t> out;
    std::vector<int> state(groups_.size(), 0);
    for (std::size_t root = 0; root < groups_.size(); ++root) {
      std::vector<std::size_t> stack{root};
      while (!stack.empty()) {
        const std::size_t g = stack.back();
        if (state[g] == 2) {
          stack.pop_back();
          continue;
        }
        const std::size_t size = stack.size();
        if (state[g] == 0)
          for (std::size_t b : groups_[g].before)
            if (state[b] == 0) stack.push_back(b);
        state[g] = 1;
        if (stack.size() != size) continue;
        state[g] = 2;
        out.push_back(g);
        stack.pop_back();
      }
    }
    return out;
  }

  static ScheduleItem item(const Group& g) {
    ScheduleItem out;
    out.device = g.device;
    out.made_by = g.made_by;
    if (g.stores.empty()) {
      out.kind = ScheduleItem::Kind::copy;
      out.slots = g.slots;
      return out;
    }
    // Slots by first use: those that are written, then the others as the walk meets them.
    Replacements canonical;
    const auto number = [&](const Expr& s) {
      if (canonical.contains(s)) return;
      canonical.emplace(s, slot(static_cast<int>(out.slots.size()), s->dtype, s->arg2));
      out.slots.push_back(g.slots[static_cast<std::size_t>(s->arg)]);
    };
    for (const Expr& s : g.stores) number(s->src[0]);
    for (const Expr& e : topological(sink(g.stores)))
      if (e->op == Op::slot) number(e);
    out.ast = replace(sink(g.stores), canonical);
    return out;
  }

  std::span<const GroupInput> inputs_;
  const ScheduleOptions& options_;
  std::vector<Group> groups_;
  std::vector<std::size_t> group_of_;   // by input
  std::vector<char> settled_;           // by group
  std::vector<std::size_t> unsettled_;  // groups that are not open and not settled
  std::size_t aged_ = 0;                // groups before it are not open
};

}  // namespace

void group(std::span<const GroupInput> inputs, const ScheduleOptions& options,
           std::vector<ScheduleItem>& items) {
  Grouper(inputs, options).run(items);
}

}  // namespace mote
