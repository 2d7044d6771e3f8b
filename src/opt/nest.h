// What opt asks of a nest.
#pragma once
#include <optional>

#include "kernel/kernel.h"

namespace mote {

inline std::int64_t extent(const Expr& r) { return r->src[0]->hi; }
inline bool depends(const Expr& e, const Expr& r) { return e->free.has(static_cast<int>(r->arg)); }

// The step of an index when r moves by one; nullopt where it is not the same everywhere.
std::optional<std::int64_t> stride(const Expr& index, const Expr& r);

// Every node of the values themselves, not of the tables that they read. Sources first, near
// enough.
std::vector<Expr> outside_of_tables(const std::vector<Expr>& roots);

double size_of_reduce(const Expr&);  // the values that it adds up, at most

// A part of n of at most `most`: one that divides it, if that is not small, else whole units.
std::int64_t part_of(std::int64_t n, int unit, double most);

// The filling of a table, as a nest that stores it.
Nest nest_of_table(const Expr& stage);

// The reduce outside of tables that takes the most steps over the loops it depends on; null if
// there is none.
Expr hottest_reduce(const Nest&);

}  // namespace mote
