#include "ir/rewrite.h"

#include <algorithm>
#include <deque>

#include "base/text.h"
#include "base/trace.h"
#include "ir/printer.h"
#include "mote/error.h"

namespace mote {
namespace {

class Rewriter {
 public:
  Rewriter(const RuleSet& rules, const RewriteOptions& options, bool traced)
      : rules_(rules), options_(options), traced_(traced) {}

  Expr run(const Expr& root) {
    stack_.push_back({root, root});
    while (!stack_.empty()) step();
    return done_.at(root);
  }

 private:
  struct Frame {
    Expr original, current;
  };

  void step() {
    const Frame frame = stack_.back();
    bool ready = true;
    for (const Expr& s : frame.current->src) {
      if (done_.contains(s)) continue;
      stack_.push_back({s, s});
      ready = false;
    }
    if (!ready) return;
    sources_.clear();
    for (const Expr& s : frame.current->src) sources_.push_back(done_.at(s));
    const bool moved = !std::ranges::equal(frame.current->src, sources_);
    const Expr rebuilt = moved ? options_.rebuild(frame.current, sources_) : frame.current;
    if (const auto at = done_.find(rebuilt); at != done_.end()) return finish(frame.original, Expr(at->second));
    if (moved && !rebuilt->src.empty() && !std::ranges::equal(rebuilt->src, sources_)) {
      stack_.back().current = rebuilt;  // rebuild made nodes of its own: look at them too
      return count("rebuild");
    }
    const Expr next = by_a_rule(rebuilt);
    if (!next) {
      done_.emplace(rebuilt, rebuilt);
      return finish(frame.original, rebuilt);
    }
    if (const auto at = done_.find(next); at != done_.end()) return finish(frame.original, Expr(at->second));
    stack_.back().current = next;
  }

  void finish(const Expr& original, const Expr& result) {
    done_.emplace(original, result);
    stack_.pop_back();
  }

  Expr by_a_rule(const Expr& e) {
    for (const Rule* rule : rules_.for_op(e->op)) {
      Expr next = apply(*rule, e);
      if (!next || next == e) continue;
      if (traced_) trace({6, "rewrite", rule->name, cat(std::string(rule->name), ": ", short_text(e), " -> ", short_text(next))});
      count(rule->name);
      return next;
    }
    return {};
  }

  void count(std::string_view rule) {
    last_.push_back(rule);
    if (last_.size() > 8) last_.pop_front();
    const auto most = options_.most_steps ? options_.most_steps
                                          : 100'000 + 64 * static_cast<std::int64_t>(done_.size());
    if (++steps_ <= most) return;
    std::string names;
    for (std::string_view name : last_) names += cat(names.empty() ? "" : ", ", std::string(name));
    throw InternalError(cat("rewrite: no end after ", steps_, " steps; the last rules applied are ", names));
  }

  const RuleSet& rules_;
  const RewriteOptions& options_;
  bool traced_;
  std::vector<Frame> stack_;
  std::vector<Expr> sources_;
  std::unordered_map<Expr, Expr> done_;
  std::deque<std::string_view> last_;
  std::int64_t steps_ = 0;
};

}  // namespace

Expr rewrite(const Expr& root, const RuleSet& rules, const RewriteOptions& options) {
  return Rewriter(rules, options, tracing(6)).run(root);
}

Expr replace(const Expr& root, const Replacements& replacements, const Rebuild& rebuild) {
  // A range that a binder binds is another one than the free range of the same id: where no key can
  // be free, nothing is replaced.
  RangeSet keys;
  bool only_ranges = true;
  for (const auto& [from, to] : replacements) {
    only_ranges &= from->op == Op::range;
    if (from->op == Op::range) keys.add(static_cast<int>(from->arg));
  }
  Replacements done = replacements;
  std::vector<Expr> stack{root};
  std::vector<Expr> sources;
  while (!stack.empty()) {
    const Expr e = stack.back();
    if (done.contains(e)) {
      stack.pop_back();
      continue;
    }
    if (only_ranges && !e->free.intersects(keys)) {
      done.emplace(e, e);
      stack.pop_back();
      continue;
    }
    const std::size_t before = stack.size();
    for (const Expr& s : e->src)
      if (!done.contains(s)) stack.push_back(s);
    if (stack.size() != before) continue;
    sources.clear();
    for (const Expr& s : e->src) sources.push_back(done.at(s));
    done.emplace(e, std::ranges::equal(e->src, sources) ? e : rebuild(e, sources));
    stack.pop_back();
  }
  return done.at(root);
}

}  // namespace mote
