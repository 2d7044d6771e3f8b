#include "symbolic/int.h"

#include <gtest/gtest.h>

#include <random>

namespace mote {
namespace {

const Expr i = range(0, 8), j = range(1, 4), v = variable("v", -5, 9);

TEST(Int, NormalForm) {
  const Int a(i), b(j);
  EXPECT_EQ((a * 4 + b + a * 4).text(), "((r0*8) + r1)");
  EXPECT_EQ((a * 4 + b) / 4, a);
  EXPECT_EQ((a * 4 + b) % 4, b);
  EXPECT_EQ((a * 4 + b) / 8, a / 2);
  EXPECT_EQ(a / 3 * 3 + a % 3, a);
  EXPECT_EQ((a / 2) / 3, a / 6);
  EXPECT_EQ((a % 6) % 3, a % 3);
  EXPECT_EQ(b / 4, Int(0));
  EXPECT_EQ((a * 6 + b) % 3, b % 3);
  EXPECT_EQ((a + b) - b, a);
  EXPECT_EQ(less(a * 4 + b, 8), less(a, 2));
  EXPECT_EQ(less(a / 2, 2), less(a, 4));
  EXPECT_EQ(less(a, 8), always());
  EXPECT_EQ(less(a, 0), never());
  const Int n(variable("n", 1, 10));
  EXPECT_EQ((a * n) / n, a);
}

TEST(Int, OverflowThrows) { EXPECT_ANY_THROW(Int(INT64_MAX) + 1); }

// Random expressions: the normal form keeps the value, and the bounds hold.
TEST(Int, RandomExpressionsKeepTheirValue) {
  std::mt19937_64 random(7);
  const auto pick = [&](int lo, int hi) {
    return std::uniform_int_distribution<int>(lo, hi)(random);
  };
  for (int n = 0; n < 10000; ++n) {
    std::vector<Int> made{Int(i), Int(j), Int(v), Int(pick(-9, 9))};
    std::vector<Expr> plain{i, j, v, index_constant(made[3].value())};
    for (int k = 0; k < 6; ++k) {
      const auto x = static_cast<std::size_t>(pick(0, static_cast<int>(made.size()) - 1));
      const auto y = static_cast<std::size_t>(pick(0, static_cast<int>(made.size()) - 1));
      const int c = pick(-6, 12);
      const Expr ce = index_constant(c);
      const auto raw = [&](Op op, const Expr& a, const Expr& b) {
        return intern(op, DType::index, {a, b});
      };
      switch (pick(0, 6)) {
        case 0:
          made.push_back(made[x] + made[y]);
          plain.push_back(raw(Op::add, plain[x], plain[y]));
          break;
        case 1:
          made.push_back(made[x] * c);
          plain.push_back(raw(Op::mul, plain[x], ce));
          break;
        case 2:
          made.push_back(made[x] / c);
          plain.push_back(raw(Op::idiv, plain[x], ce));
          break;
        case 3:
          made.push_back(made[x] % c);
          plain.push_back(raw(Op::mod, plain[x], ce));
          break;
        case 4:
          made.push_back(min(made[x], made[y]));
          plain.push_back(raw(Op::min, plain[x], plain[y]));
          break;
        case 5:
          made.push_back(made[x] - made[y]);
          plain.push_back(raw(Op::add, plain[x], raw(Op::mul, plain[y], index_constant(-1))));
          break;
        default:
          made.push_back(select(less(made[x], made[y]), made[x], made[y] + 1));
          plain.push_back(
              where(lt(plain[x], plain[y]), plain[x], raw(Op::add, plain[y], index_constant(1))));
          break;
      }
    }
    for (int s = 0; s < 12; ++s) {
      const std::unordered_map<Expr, std::int64_t> at{
          {i, pick(0, 7)}, {j, pick(0, 3)}, {v, pick(-5, 9)}};
      const std::int64_t want = evaluate(Int(plain.back()), at);
      ASSERT_EQ(evaluate(made.back(), at), want) << made.back().text();
      ASSERT_LE(made.back().lo(), want);
      ASSERT_GE(made.back().hi(), want);
    }
  }
}

}  // namespace
}  // namespace mote
