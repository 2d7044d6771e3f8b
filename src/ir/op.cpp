#include "ir/op.h"

#include <array>

namespace mote {
namespace {

struct OpRow {
  std::string_view name;
  Kind kind;
  int arity;
  bool commutes;
};

constexpr std::array<OpRow, op_count> rows{{
#define row(name, kind, arity, commutes) {#name, Kind::kind, arity, commutes},
    MOTE_OPS(row)
#undef row
}};

const OpRow& row_of(Op op) { return rows[static_cast<std::size_t>(op)]; }

}  // namespace

std::string_view name_of(Op op) {
  std::string_view name = row_of(op).name;
  if (name.ends_with('_')) name.remove_suffix(1);
  return name;
}

Kind kind_of(Op op) { return row_of(op).kind; }
int arity_of(Op op) { return row_of(op).arity; }
bool commutes(Op op) { return row_of(op).commutes; }

}  // namespace mote
