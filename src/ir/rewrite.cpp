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
    root_ = root;
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
    if (const auto at = done_.find(rebuilt); at != done_.end())
      return finish(frame.original, Expr(at->second));
    if (moved && !rebuilt->src.empty() && !std::ranges::equal(rebuilt->src, sources_)) {
      stack_.back().current = rebuilt;  // rebuild made nodes of its own: look at them too
      return count("rebuild");
    }
    const Expr next = by_a_rule(rebuilt);
    if (!next) {
      done_.emplace(rebuilt, rebuilt);
      return finish(frame.original, rebuilt);
    }
    if (const auto at = done_.find(next); at != done_.end())
      return finish(frame.original, Expr(at->second));
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
      if (traced_)
        trace({6, "rewrite", rule->name,
               cat(std::string(rule->name), ": ", short_text(e), " -> ", short_text(next))});
      count(rule->name);
      return next;
    }
    return {};
  }

  // In proportion to the graph as it came: rules that grow it without end must meet the limit too.
  std::int64_t most_steps() {
    constexpr std::int64_t always = 100'000;
    if (options_.most_steps) return options_.most_steps;
    if (steps_ <= always) return always;  // the graph is measured only when it matters
    if (!size_) size_ = static_cast<std::int64_t>(topological(root_).size());
    return always + 64 * size_;
  }

  void count(std::string_view rule) {
    last_.push_back(rule);
    if (last_.size() > 8) last_.pop_front();
    ++steps_;
    if (steps_ <= most_steps()) return;
    std::string names;
    for (std::string_view name : last_) names += cat(names.empty() ? "" : ", ", std::string(name));
    throw InternalError(
        cat("rewrite: no end after ", steps_, " steps; the last rules applied are ", names));
  }

  const RuleSet& rules_;
  const RewriteOptions& options_;
  bool traced_;
  std::vector<Frame> stack_;
  std::vector<Expr> sources_;
  std::unordered_map<Expr, Expr> done_;
  std::deque<std::string_view> last_;
  Expr root_;
  std::int64_t steps_ = 0, size_ = 0;
};

// The ranges by which a key is known: under a binder of one of them it is another expression.
RangeSet names_of(const Expr& key) {
  if (key->op != Op::range) return key->free;
  RangeSet id;
  id.add(static_cast<int>(key->arg));
  return id;
}

class Replacer {
 public:
  Replacer(const Replacements& replacements, const Rebuild& rebuild)
      : replacements_(replacements), rebuild_(rebuild), done_(replacements) {
    for (const auto& [from, to] : replacements) {
      only_ranges_ &= from->op == Op::range;
      from_ |= names_of(from);
      to_ |= to->free;
    }
  }

  Expr run(const Expr& root) {
    stack_.push_back(root);
    while (!stack_.empty()) step(Expr(stack_.back()));
    return done_.at(root);
  }

 private:
  void step(const Expr& e) {
    const RangeSet bound = bound_by(e);
    if (done_.contains(e)) return stack_.pop_back();
    if (only_ranges_ && !e->free.intersects(from_)) return finish(e, e);
    if (bound.intersects(from_)) return finish(e, under_binder(e, bound));
    const std::size_t before = stack_.size();
    for (const Expr& s : e->src)
      if (!done_.contains(s)) stack_.push_back(s);
    if (stack_.size() != before) return;
    sources_.clear();
    for (const Expr& s : e->src) sources_.push_back(done_.at(s));
    finish(e, made(e, bound, sources_));
  }

  void finish(const Expr& e, const Expr& result) {
    done_.emplace(e, result);
    stack_.pop_back();
  }

  // The keys that the binder hides stay as they are below it.
  Expr under_binder(const Expr& e, const RangeSet& bound) {
    Replacements visible;
    for (const auto& [from, to] : replacements_)
      if (!names_of(from).intersects(bound)) visible.emplace(from, to);
    Replacer below(visible, rebuild_);
    std::vector<Expr> src;
    for (const Expr& s : e->src) src.push_back(below.run(s));
    if (e->op == Op::scan) src[2] = Replacer(replacements_, rebuild_).run(e->src[2]);
    return made(e, bound, src);
  }

  Expr made(const Expr& e, const RangeSet& bound, std::span<const Expr> src) {
    if (std::ranges::equal(e->src, src)) return e;
    if (bound.intersects(to_) && captures(e, bound, src[0]))
      throw InternalError(
          cat("replace: a free range of a replacement would be bound by ", short_text(e, 3)));
    return rebuild_(e, src);
  }

  bool captures(const Expr& e, const RangeSet& bound, const Expr& body) const {
    if ((body->free - e->src[0]->free).intersects(bound)) return true;
    return std::ranges::any_of(replacements_, [&](const auto& r) {
      return r.first->op == Op::range && e->free.intersects(names_of(r.first)) &&
             r.second->free.intersects(bound);
    });
  }

  const Replacements& replacements_;
  const Rebuild& rebuild_;
  Replacements done_;
  bool only_ranges_ = true;
  RangeSet from_, to_;
  std::vector<Expr> stack_, sources_;
};

}  // namespace

Expr rewrite(const Expr& root, const RuleSet& rules, const RewriteOptions& options) {
  return Rewriter(rules, options, tracing(6)).run(root);
}

Expr replace(const Expr& root, const Replacements& replacements, const Rebuild& rebuild) {
  return Replacer(replacements, rebuild).run(root);
}

}  // namespace mote
