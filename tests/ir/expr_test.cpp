// Interning, counting, depth and threads.
#include "ir/expr.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>

#include "mote/error.h"
#include "random_expr.h"
#include "testing.h"

namespace mote {
namespace {

constexpr int deep = 1'000'000;

Expr element(int n) { return load(slot(n, float32, 8), range(0, 8)); }

Expr chain(int length) {
  Expr e = element(0);
  for (int i = 0; i < length; ++i) e = -e;
  return e;
}

TEST(Expr, EqualNodesAreOne) {
  const Expr x = element(0), y = element(1);
  EXPECT_EQ(x + y, x + y);
  EXPECT_FALSE(x + y == y + x);
  EXPECT_FALSE(x + 0 == x);  // constructors only intern
  EXPECT_FALSE(constant(float32, 0.0) == constant(float32, -0.0));
  EXPECT_EQ(with_sources(x + y, (x + y)->src), x + y);
  EXPECT_EQ(cast(x, float32), x);
}

TEST(Expr, NodesLeaveWithTheirLastOwner) {
  const std::int64_t before = live_nodes();
  {
    const Expr x = element(7);
    const Expr sum = x * 3 + x;
    EXPECT_GT(live_nodes(), before);
    Expr again = sum;
    Expr moved = std::move(again);
    moved = x;
    again = moved;
  }
  EXPECT_EQ(live_nodes(), before);
}

TEST(Expr, AMillionDeepIsFreedAndWalkedByALoop) {
  const std::int64_t before = live_nodes();
  {
    const Expr e = chain(deep);
    EXPECT_EQ(e->depth, deep + 3u);
    EXPECT_EQ(topological(e).size(), deep + 4u);
  }
  EXPECT_EQ(live_nodes(), before);
}

TEST(Expr, TopologicalHasSourcesFirst) {
  const Expr x = element(0), e = (x + 1) * (x + 1) + x;
  std::set<const Node*> seen;
  for (const Expr& n : topological(e)) {
    for (const Expr& s : n->src) EXPECT_TRUE(seen.contains(s.get()));
    EXPECT_TRUE(seen.insert(n.get()).second);
  }
}

TEST(Expr, FreeRanges) {
  const Expr i = range(0, 4), r = range(128, 8);
  const Expr body = load(slot(0, float32, 32), i + r);
  EXPECT_EQ(body->free.ids(), (std::vector<int>{0, 128}));
  EXPECT_EQ(reduce(Op::add, body, {{r}})->free.ids(), std::vector<int>{0});
  EXPECT_EQ(scan(Op::add, body, r, i)->free.ids(), std::vector<int>{0});
  EXPECT_EQ(stage(body, {{r}})->free.ids(), std::vector<int>{0});
  const Expr ragged = range(129, i);  // an extent may hold outer ranges
  EXPECT_TRUE(reduce(Op::add, cast(ragged, float32), {{ragged}})->free.has(0));
  EXPECT_ANY_THROW(range(256, 4));
  EXPECT_ANY_THROW(range(-1, 4));
}

TEST(Expr, RangeSets) {
  RangeSet a, b;
  for (int id : {0, 63, 64, 200}) a.add(id);
  b.add(64);
  EXPECT_EQ(a.count(), 4);
  EXPECT_EQ(a.highest(), 200);
  EXPECT_EQ(RangeSet().highest(), -1);
  EXPECT_TRUE(a.contains(b) && a.intersects(b) && !b.contains(a));
  EXPECT_EQ((a - b).ids(), (std::vector<int>{0, 63, 200}));
  EXPECT_EQ((a & b), b);
}

TEST(Expr, TheHashIsOfTheStructure) {
  const std::uint64_t first = chain(10)->hash;  // freed, then made again
  EXPECT_EQ(chain(10)->hash, first);
  EXPECT_NE(chain(11)->hash, first);
}

TEST(Expr, DtypesAreChecked) {
  EXPECT_THROW(element(0) + constant(DType::int32, 1), InternalError);
  EXPECT_THROW(where(constant(DType::boolean, 1), element(0), constant(float64, 1)), InternalError);
}

// Threads that build, share and drop the same nodes.
TEST(Expr, ManyThreads) {
  const std::int64_t before = live_nodes();
  {
    const Expr shared = chain(100);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&shared, t] {
        for (int n = 0; n < testing::rounds(300); ++n) {
          Expr e = shared;
          for (int k = 0; k < 40; ++k) e = k % 3 ? e + shared : e * constant(float32, k + (t & 1));
          const Expr again = chain(100);
          EXPECT_EQ(again, shared);
        }
      });
    }
    for (std::thread& t : threads) t.join();
  }
  EXPECT_EQ(live_nodes(), before);
}

// A node may outlive the thread that made it, and a static one the thread_locals of main.
TEST(Expr, OutlivesItsThread) {
  static Expr kept;
  std::thread([] { kept = chain(1000); }).join();
  EXPECT_EQ(kept, chain(1000));
}

}  // namespace
}  // namespace mote
