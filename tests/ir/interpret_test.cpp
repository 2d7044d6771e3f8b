// The naive runner, against loops written here.
#include "support/interpret.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "mote/error.h"

namespace mote {
namespace {

Expr plus(const Expr& a, const Expr& b) { return binary(Op::add, a, b); }
Expr times(const Expr& a, std::int64_t n) { return binary(Op::mul, a, index_constant(n)); }

class Interpret : public ::testing::Test {
 protected:
  Interpret() { std::iota(in_.begin(), in_.end(), 1.f); }

  void run(std::initializer_list<Expr> stores,
           const std::unordered_map<Expr, std::int64_t>& variables = {}) {
    void* const slots[] = {out_.data(), in_.data()};
    interpret(sink(std::span<const Expr>(stores.begin(), stores.size())), slots, variables);
  }

  std::vector<float> out_ = std::vector<float>(4, 0), in_ = std::vector<float>(12);
  const Expr i = range(0, 4), r = range(128, 3), out = slot(0, float32, 4),
             in = slot(1, float32, 12);
  const Expr x = load(in, plus(times(i, 3), r));
};

TEST_F(Interpret, Reduce) {
  run({store(out, i, reduce(Op::add, x, {{r}}))});
  EXPECT_EQ(out_, (std::vector<float>{6, 15, 24, 33}));
}

TEST_F(Interpret, AnEmptyReduceIsItsIdentity) {
  const Expr none = range(128, 0);
  run({store(out, i, reduce(Op::max, load(in, none), {{none}}))});
  EXPECT_EQ(out_[0], -INFINITY);
}

TEST_F(Interpret, Scan) {
  const Expr k = range(128, 4);
  run({store(out, i, scan(Op::mul, load(in, k), k, i))});
  EXPECT_EQ(out_, (std::vector<float>{1, 2, 6, 24}));
}

TEST_F(Interpret, AGatedLoadIsZeroAndReadsNothing) {
  run({store(out, i, load(in, times(i, 6), lt(i, index_constant(2))))});
  EXPECT_EQ(out_, (std::vector<float>{1, 7, 0, 0}));
}

TEST_F(Interpret, AGatedStoreLeavesWhatIsThere) {
  out_ = {9, 9, 9, 9};
  run({store(out, i, load(in, i), lt(i, index_constant(2)))});
  EXPECT_EQ(out_, (std::vector<float>{1, 2, 9, 9}));
}

TEST_F(Interpret, AStage) {
  const Expr k = range(129, 3);
  const Expr table = stage(-load(in, plus(times(i, 3), k)), {{k}});
  run({store(out, i, reduce(Op::add, stage_at(table, {{r}}), {{r}}))});
  EXPECT_EQ(out_, (std::vector<float>{-6, -15, -24, -33}));
}

// Every free range of the store is looped over, the last id fastest: the last write stays.
TEST_F(Interpret, StoresLikeAScatter) {
  const Expr j = range(1, 3);
  run({store(out, i, load(in, plus(times(i, 3), j)))});
  EXPECT_EQ(out_, (std::vector<float>{3, 6, 9, 12}));
  out_ = {1, 1, 1, 1};
  run({store(out, i, load(in, plus(times(i, 3), j)), Op::add)});
  EXPECT_EQ(out_, (std::vector<float>{7, 16, 25, 34}));
}

TEST_F(Interpret, StoresInOrder) {
  run({store(out, i, load(in, i)), store(out, i, load(out, i) * 2)});
  EXPECT_EQ(out_, (std::vector<float>{2, 4, 6, 8}));
}

TEST_F(Interpret, SymbolicExtents) {
  const Expr n = variable("n", 1, 4), k = range(0, n);
  run({store(out, k, load(in, k))}, {{n, 2}});
  EXPECT_EQ(out_, (std::vector<float>{1, 2, 0, 0}));
}

TEST_F(Interpret, ARaggedExtent) {
  const Expr k = range(128, plus(i, index_constant(1)));
  run({store(out, i, reduce(Op::add, load(in, k), {{k}}))});
  EXPECT_EQ(out_, (std::vector<float>{1, 3, 6, 10}));
}

// sum over r of (max over an r of its own) + in[r]
TEST_F(Interpret, AnInnerBinderHidesTheOuterRange) {
  const Expr hiding = reduce(Op::add, reduce(Op::max, load(in, r), {{r}}) + load(in, r), {{r}});
  run({store(out, i, hiding)});
  EXPECT_EQ(out_[0], 3 * 3 + 6.f);
}

TEST_F(Interpret, SharedValuesAreComputedOnce) {
  Expr e = load(in, i);
  for (int k = 0; k < 60; ++k)
    e = e * constant(float32, 0.5) + e * constant(float32, 0.5);  // 2^60 paths
  run({store(out, i, e)});
  EXPECT_EQ(out_, (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(Interpret, OutOfBoundsThrows) {
  EXPECT_THROW(run({store(out, plus(i, index_constant(1)), load(in, i))}), InternalError);
  EXPECT_THROW(run({store(out, i, load(in, plus(i, index_constant(-1))))}), InternalError);
}

}  // namespace
}  // namespace mote
