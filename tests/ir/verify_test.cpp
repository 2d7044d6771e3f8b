// What the verifier of the AST stage lets through and what it names.
#include "ir/verify.h"

#include <gtest/gtest.h>

#include "mote/error.h"

namespace mote {
namespace {

const Expr i = range(0, 4), r = range(128, 8), s = range(129, 8);
const Expr out = slot(0, float32, 4), in = slot(1, float32, 64);

Expr of(const Expr& value) { return sink({{store(out, i, value)}}); }

std::string fault(const Expr& e) {
  try {
    verify_ast(e);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(Verify, LetsAnAstThrough) {
  const Expr x = load(in, binary(Op::add, binary(Op::mul, i, index_constant(8)), r));
  EXPECT_EQ(fault(of(reduce(Op::add, x, {{r}}))), "");
  EXPECT_EQ(fault(of(reduce(Op::add, x, {{r}}) + reduce(Op::max, x, {{r}}))),
            "");  // siblings share ids
  EXPECT_EQ(fault(of(scan(Op::add, x, r, i))), "");
  EXPECT_EQ(fault(of(stage_at(stage(x, {{r}}), {{i}}))), "");
  EXPECT_EQ(fault(sink({{store(out, i, x, lt(i, index_constant(3)), Op::max)}}))
                    .find("bound range is free") != std::string::npos,
            true);
  const Expr hiding = reduce(Op::add, reduce(Op::max, load(in, r), {{r}}) + load(in, r), {{r}});
  EXPECT_EQ(fault(of(hiding)), "");
  const Expr inner = reduce(Op::add, load(in, binary(Op::add, r, s)), {{s}});
  EXPECT_EQ(fault(of(reduce(Op::max, inner, {{r}}))), "");
}

// A node of any dtype and sources, which the constructors would refuse.
Expr raw(Op op, DType t, std::initializer_list<Expr> src, Op arg = Op::hole) {
  return intern(op, t, src, static_cast<int>(arg));
}

TEST(Verify, NamesWhatIsIllegal) {
  const Expr x = load(in, i), n = constant(DType::int32, 1), yes = constant(DType::boolean, 1);
  const std::pair<Expr, const char*> cases[] = {
      {x, "an AST is a sink of stores"},
      {sink({}), "an AST is a sink of stores"},
      {sink({{x}}), "a sink holds stores only"},
      {of(raw(Op::add, float32, {x, n})), "the dtypes of the sources differ"},
      {of(raw(Op::add, float32, {x})), "wrong number of sources"},
      {of(raw(Op::where, float32, {x, x, x})), "dtypes of where"},
      {of(where(raw(Op::lt, DType::boolean, {x, n}), x, x)), "a comparison of two dtypes"},
      {of(hole("h")), "this is no node of an AST"},
      {of(raw(Op::bitcast, float32, {constant(float64, 1)})), "sizes of bitcast"},
      {of(raw(Op::exp, float32, {n})), "the dtypes of the sources differ"},
      {of(reduce(Op::add, x, {{range(1, 4)}})), "a bound range has an id of 128 or more"},
      {of(reduce(Op::add, x, {{r, r}})), "a range is bound twice"},
      {of(reduce(Op::sqrt, load(in, r), {{r}})), "a reduce is by add, mul, max, min, and, or, xor"},
      {of(scan(Op::add, load(in, r), r, x)), "the place of a scan is an index"},
      {of(load(in, n)), "an index has dtype index"},
      {of(load(in, i, x)), "a gate is a bool"},
      {of(raw(Op::load, DType::int32, {in, i})), "the dtype of a load is its slot's"},
      {of(raw(Op::load, float32, {in, i, yes, yes})), "wrong number of sources"},
      {of(raw(Op::load, float32, {x, i})), "memory is named by a slot"},
      {of(n), "the dtype of a stored value is its slot's"},
      {of(load(in, r)), "a bound range is free in a store"},
      {of(raw(Op::stage_at, float32, {x, i})), "stage_at reads a stage"},
      {of(stage_at(stage(x, {{r}}), {{i, i}})), "one index for each axis of the stage"},
      {sink({{store(out, i, x, Op::sqrt)}}), "a store is by store, add, mul, max, min"},
      {of(raw(Op::buffer, float32, {})), "this is no node of an AST"},
  };
  for (const auto& [e, part] : cases)
    EXPECT_NE(fault(e).find(part), std::string::npos) << part << " <> " << fault(e);
}

TEST(Verify, PrintsTheNode) {
  EXPECT_EQ(fault(of(load(in, constant(DType::int32, 1)))),
            "verify: an index has dtype index: load(slot1, 1)");
}

}  // namespace
}  // namespace mote
