#include "opt/nest.h"

#include <algorithm>
#include <unordered_set>

namespace mote {

std::optional<std::int64_t> stride(const Expr& index, const Expr& r) {
  if (!depends(index, r)) return 0;
  const Int at_0(substitute(index, {{r, index_constant(0)}})),
      at_1(substitute(index, {{r, index_constant(1)}}));
  const Int step = at_1 - at_0;
  if (!step.is_constant() || !(at_0 + step * Int(r) == Int(index))) return {};
  return step.value();
}

std::vector<Expr> outside_of_tables(const std::vector<Expr>& roots) {
  std::vector<Expr> out, stack = roots;
  std::unordered_set<Expr> seen(roots.begin(), roots.end());
  while (!stack.empty()) {
    const Expr e = std::move(stack.back());
    stack.pop_back();
    out.push_back(e);
    if (e->op == Op::stage) continue;
    for (const Expr& s : e->src)
      if (seen.insert(s).second) stack.push_back(s);
  }
  std::ranges::reverse(out);
  return out;
}

double size_of_reduce(const Expr& e) {
  double n = 1;
  for (const Expr& r : e->src.subspan(1))
    n *= static_cast<double>(std::max<std::int64_t>(extent(r), 1));
  return n;
}

std::int64_t part_of(std::int64_t n, int unit, double most) {
  const std::int64_t fits = std::max<std::int64_t>(1, static_cast<std::int64_t>(most));
  for (std::int64_t by = std::min(fits, n); by * 2 > fits; --by)
    if (n % by == 0) return by;
  return std::max<std::int64_t>(fits / unit * unit, unit);
}

Nest nest_of_table(const Expr& stage) {
  Nest nest;
  nest.loops.assign(stage->src.begin() + 1, stage->src.end());
  const std::vector<Int> own(nest.loops.begin(), nest.loops.end());
  nest.stores = {
      store(slot(first_table, stage->dtype, 1), flat_index(nest.loops, own).expr(), stage->src[0])};
  return nest;
}

Expr hottest_reduce(const Nest& nest) {
  Expr hottest;
  double most = 0;
  for (const Expr& e : outside_of_tables(nest.stores)) {
    if (e->op != Op::reduce) continue;
    double work = size_of_reduce(e);
    for (const Expr& l : nest.loops)
      if (depends(e, l)) work *= static_cast<double>(std::max<std::int64_t>(extent(l), 1));
    if (work <= most) continue;
    most = work;
    hottest = e;
  }
  return hottest;
}

}  // namespace mote
