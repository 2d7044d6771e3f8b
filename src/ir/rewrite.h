// The one rewriter: rules applied bottom-up to a fixpoint, each node once, by an explicit stack.
#pragma once
#include <functional>
#include <unordered_map>

#include "ir/rule.h"

namespace mote {

using Rebuild = std::function<Expr(const Expr&, std::span<const Expr> sources)>;

struct RewriteOptions {
  Rebuild rebuild = with_sources;  // how a node with new sources is made
  std::int64_t most_steps = 0;     // 0: in proportion to the size of the graph
};

// Where no rule applies any more. Cyclic or endless rules throw InternalError that names the last
// ones applied.
Expr rewrite(const Expr&, const RuleSet&, const RewriteOptions& = {});

// Every node that is a key replaced, sources first; what a replacement holds is not looked at
// again. Under a binder of a range that a key names, the key is another expression and stays.
// Throws InternalError where a binder would capture a free range of a replacement.
using Replacements = std::unordered_map<Expr, Expr>;
Expr replace(const Expr&, const Replacements&, const Rebuild& rebuild = with_sources);

}  // namespace mote
