#include "ir/verify.h"

#include "base/text.h"
#include "ir/printer.h"
#include "mote/error.h"

namespace mote {
namespace {

[[noreturn]] void illegal(const Expr& e, const std::string& why) {
  throw InternalError(cat("verify: ", why, ": ", short_text(e, 3)));
}

void expect(bool ok, const Expr& e, const char* why) {
  if (!ok) illegal(e, why);
}

bool is_index(const Expr& e) { return e->dtype == DType::index; }

void check_elementwise(const Expr& e) {
  const auto same = [&](std::size_t a, std::size_t b) {
    return e->src[a]->dtype == e->src[b]->dtype;
  };
  const bool sum = e->op == Op::add && is_index(e);  // of any number of terms
  const std::size_t arity = e->op == Op::add ? 2 : static_cast<std::size_t>(arity_of(e->op));
  expect(sum ? e->src.size() >= 2 : e->src.size() == arity, e, "wrong number of sources");
  switch (e->op) {
    case Op::lt:
    case Op::eq:
      return expect(e->dtype == DType::boolean && same(0, 1), e, "a comparison of two dtypes");
    case Op::where:
      return expect(
          e->src[0]->dtype == DType::boolean && same(1, 2) && e->src[1]->dtype == e->dtype, e,
          "dtypes of where");
    case Op::cast: return;
    case Op::bitcast:
      return expect(size_of(e->dtype) == size_of(e->src[0]->dtype), e, "sizes of bitcast");
    default: break;
  }
  for (const Expr& s : e->src) expect(s->dtype == e->dtype, e, "the dtypes of the sources differ");
}

void check_binder(const Expr& e) {
  const bool by_op = e->op == Op::reduce || e->op == Op::scan;
  expect(!by_op || accumulates(static_cast<Op>(e->arg)), e,
         "a reduce is by add, mul, max, min, and, or, xor");
  const std::size_t end = e->op == Op::scan ? 2 : e->src.size();
  for (std::size_t i = 1; i < end; ++i) {
    const Expr& r = e->src[i];
    expect(r->op == Op::range, e, "a binder binds ranges only");
    expect(r->arg >= RangeSet::first_bound, e, "a bound range has an id of 128 or more");
    for (std::size_t j = 1; j < i; ++j)
      expect(e->src[j]->arg != r->arg, e, "a range is bound twice");
  }
  if (e->op == Op::scan) expect(is_index(e->src[2]), e, "the place of a scan is an index");
}

void check_memory(const Expr& e) {
  if (e->op == Op::stage_at) {
    expect(e->src[0]->op == Op::stage, e, "stage_at reads a stage");
    expect(e->src.size() == e->src[0]->src.size(), e, "one index for each axis of the stage");
    for (const Expr& s : e->src.subspan(1)) expect(is_index(s), e, "an index has dtype index");
    return;
  }
  expect(e->src[0]->op == Op::slot, e, "memory is named by a slot");
  expect(is_index(e->src[1]), e, "an index has dtype index");
  const std::size_t gate = e->op == Op::load ? 2 : 3;
  expect(e->src.size() == gate || e->src.size() == gate + 1, e, "wrong number of sources");
  if (e->src.size() > gate) expect(e->src[gate]->dtype == DType::boolean, e, "a gate is a bool");
  if (e->op == Op::load)
    return expect(e->dtype == e->src[0]->dtype, e, "the dtype of a load is its slot's");
  const Op op = static_cast<Op>(e->arg);
  const bool legal =
      op == Op::store || op == Op::add || op == Op::mul || op == Op::max || op == Op::min;
  expect(legal, e, "a store is by store, add, mul, max, min");
  expect(e->src[2]->dtype == e->src[0]->dtype, e, "the dtype of a stored value is its slot's");
  for (int id : e->free.ids())
    expect(id < RangeSet::first_bound, e, "a bound range is free in a store");
}

}  // namespace

void verify_ast(const Expr& sink) {
  expect(sink->op == Op::sink && !sink->src.empty(), sink, "an AST is a sink of stores");
  for (const Expr& s : sink->src) expect(s->op == Op::store, s, "a sink holds stores only");
  for (const Expr& e : topological(sink)) {
    if (is_elementwise(e->op)) check_elementwise(e);
    else if (kind_of(e->op) == Kind::binder) check_binder(e);
    else if (e->op == Op::load || e->op == Op::store || e->op == Op::stage_at) check_memory(e);
    else
      expect(kind_of(e->op) == Kind::leaf ? e->op != Op::hole : e->op == Op::sink, e,
             "this is no node of an AST");
  }
}

}  // namespace mote
