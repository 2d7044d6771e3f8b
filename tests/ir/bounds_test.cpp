// Bounds are sound: random expressions over small variables, each value of each variable tried.
#include "ir/bounds.h"

#include <gtest/gtest.h>

#include "ir/printer.h"
#include "random_expr.h"
#include "testing.h"

namespace mote {
namespace {

using testing::Random;
using testing::Values;

struct Leaf {
  Expr e;
  std::vector<Scalar> values;
};

constexpr DType small_dtypes[] = {DType::index, DType::int8,  DType::uint8,
                                  DType::int32, DType::int64, DType::uint64};

Leaf make_leaf(Random& random, DType t, int number) {
  Leaf leaf;
  if (t == DType::index) {
    const std::int64_t lo = random.pick(-6, 6), hi = lo + random.pick(0, 5);
    leaf.e = number == 0 ? range(0, std::max<std::int64_t>(hi, 1))
                         : variable("v" + std::to_string(number), lo, hi);
    for (std::int64_t v = leaf.e->lo; v <= leaf.e->hi; ++v) leaf.values.emplace_back(t, v);
    return leaf;
  }
  leaf.e = load(slot(number, t, 1), index_constant(0));
  leaf.values = Random::extremes(t);
  return leaf;
}

Expr grow(Random& random, std::vector<Expr>& made, std::vector<Expr>& bools, DType t) {
  static const std::vector<Op> two{Op::add,  Op::mul, Op::idiv, Op::mod,  Op::tdiv,
                                   Op::tmod, Op::max, Op::min,  Op::and_, Op::or_,
                                   Op::xor_, Op::shl, Op::shr};
  const Expr a = random.of(made), b = random.of(made);
  switch (random.pick(0, 9)) {
    case 0: bools.push_back(lt(a, b)); return where(bools.back(), a, b);
    case 1: bools.push_back(eq(a, b)); return where(not_(bools.back()), b, a);
    case 2: return -a;
    case 3: return unary(Op::not_, a);
    case 4: return cast(cast(a, random.of(testing::all_dtypes())), t);
    case 5:
      if (bools.size() > 1) {
        bools.push_back(binary(random.of(std::vector<Op>{Op::and_, Op::or_, Op::xor_}),
                               random.of(bools), random.of(bools)));
        return cast(bools.back(), t);
      }
      return constant(random.scalar(t));
    default: return binary(random.of(two), a, b);
  }
}

TEST(Bounds, HoldForEveryValueOfRandomExpressions) {
  for (const std::uint64_t seed : testing::seeds(6000)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const DType t = small_dtypes[seed % 6];
    const Leaf x = make_leaf(random, t, 0), y = make_leaf(random, t, 1);
    std::vector<Expr> made{
        x.e, y.e, constant(t == DType::index ? Scalar(t, random.pick(-9, 9)) : random.scalar(t))};
    std::vector<Expr> bools;
    for (int k = 0; k < 6; ++k) made.push_back(grow(random, made, bools, t));
    made.insert(made.end(), bools.begin(), bools.end());
    for (const Scalar& a : x.values) {
      for (const Scalar& b : y.values) {
        const Values values{{x.e, a}, {y.e, b}};
        for (const Expr& e : made) {
          const std::int64_t v = testing::value_of(e, values).as_int();
          ASSERT_TRUE(e->lo <= v && v <= e->hi) << v << " is not in " << e->lo << ".." << e->hi
                                                << " at " << a.text() << ", " << b.text() << " of\n"
                                                << to_text(e);
        }
      }
    }
  }
}

TEST(Bounds, OfLeavesAndMemory) {
  EXPECT_EQ(range(0, 8)->hi, 7);
  EXPECT_EQ(range(0, 0)->hi, 0);
  EXPECT_EQ(range(0, index_constant(std::numeric_limits<std::int64_t>::min()))->hi, 0);
  EXPECT_EQ(range(1, variable("n", 1, 100))->hi, 99);
  const Expr bytes = load(slot(0, DType::uint8, 4), range(0, 4));
  EXPECT_EQ(bytes->lo, 0);
  EXPECT_EQ(bytes->hi, 255);
  EXPECT_EQ((bytes + bytes)->hi, 255);  // may have wrapped
  const Expr r = range(128, variable("n", 0, 9));
  EXPECT_EQ(reduce(Op::max, cast(r, DType::int32), {{r}})->lo,
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(stage(cast(r, DType::int32), {{r}})->hi, 8);
}

TEST(Bounds, AreTightWhereIndicesNeedThem) {
  const Expr v = variable("v", -5, 9), c = index_constant(4);
  EXPECT_EQ(binary(Op::mod, v, c)->hi, 3);
  EXPECT_EQ(binary(Op::mod, v, c)->lo, 0);
  EXPECT_EQ(binary(Op::idiv, v, c)->lo, -2);
  EXPECT_EQ(binary(Op::tdiv, v, c)->lo, -1);
  EXPECT_EQ(binary(Op::tmod, v, c)->lo, -3);
  EXPECT_EQ(lt(v, index_constant(10))->lo, 1);
  EXPECT_EQ(lt(v, index_constant(-5))->hi, 0);
  EXPECT_EQ(eq(v, index_constant(10))->hi, 0);
}

}  // namespace
}  // namespace mote
