// What each move refuses, and with which words; how kernels and code print.
#include <gtest/gtest.h>

#include "base/text.h"
#include "code_interpreter.h"
#include "graphs.h"
#include "kernel/kernel.h"
#include "mote/error.h"

namespace mote {
namespace {

using namespace testing;

template <class F>
std::string refusal(F move) {
  try {
    move();
  } catch (const InternalError& e) {
    return e.what();
  }
  return "";
}

// C[m, n] = sum over k of A[m, k] B[k, n]
struct Product : ::testing::Test {
  Kernel k = open(asts_of({matmul(input({4, 6}), input({6, 8}))}).at(0));
  Expr m = k.nests[0].loops[0], n = k.nests[0].loops[1], sum = k.nests[0].stores[0]->src[2],
       r = sum->src[1];
};

TEST_F(Product, PrintsItsTreeAndItsMoves) {
  std::pair<Expr, Expr> rows;
  Kernel moved = split(k, m, 3, &rows);
  moved = vectorize(std::move(moved), n, 8);
  moved = accumulate(std::move(moved), 0, {{r}});
  EXPECT_EQ(to_text(moved),
            "r_4_8_mul\n"
            "  r2 = 0..2\n"
            "    r3 = 0..min(3, ((r2*-3) + 4))\n"
            "      r1 = 0..8 lanes 8\n"
            "        r128 = 0..6 sums\n"
            "          store(slot0, (r1 + (r2*24) + (r3*8)), "
            "(load(slot1, ((r2*18) + (r3*6) + r128))*load(slot2, (r1 + (r128*8)))))\n"
            "  move: split r0 3 -> r2 r3\n"
            "  move: vectorize r1 8\n"
            "  move: accumulate r128\n");
}

TEST_F(Product, Refuses) {
  EXPECT_EQ(refusal([&] { unroll(k, m, 0); }), "unroll: 0 is not in 1..64");
  EXPECT_EQ(refusal([&] { unroll(k, sum, 2); }).substr(0, 19), "unroll: reduce_add(");
  EXPECT_EQ(refusal([&] { vectorize(k, m, 6); }), "vectorize: 6 is no power of two up to 64");
  EXPECT_EQ(refusal([&] { vectorize(vectorize(k, m, 4), n, 8); }),
            "vectorize: another range has 4 lanes; all have the same");
  EXPECT_EQ(refusal([&] { vectorize(accumulate(k, 0, {{r}}), r, 4); }),
            "vectorize: sums in memory are added one by one");
  EXPECT_EQ(refusal([&] { order(k, 0, {{m}}); }), "order: the ranges are not those of the nest");
  EXPECT_EQ(refusal([&] { split(k, m, 0); }), "split: by 0, which is not positive");
  EXPECT_EQ(refusal([&] { fuse(k, n, m); }), "fuse: not neighbours in one order everywhere: r1 r0");
  EXPECT_EQ(refusal([&] { stage(k, sum, {{r}}); }), "stage: r128 is not free in the value");
  EXPECT_EQ(refusal([&] { stage(k, constant(DType::float32, 7), {}); }),
            "stage: 7.0 is not in the kernel");
  EXPECT_EQ(refusal([&] { nest_reduce(k, sum, {{m}}); }),
            "nest_reduce: not ranges of the reduce: r0");
  EXPECT_EQ(refusal([&] { accumulate(k, 0, {{n}}); }), "accumulate: not ranges of the sum: r1");
  EXPECT_EQ(refusal([&] { accumulate(accumulate(k, 0, {{r}}), 0, {{r}}); }),
            "accumulate: the nest stores no sum alone");
  EXPECT_EQ(refusal([&] { cut(k, m, 4); }), "cut: 4 is not inside 1..3");
  const Int both[] = {Int(m) + Int(n)};
  EXPECT_EQ(refusal([&] { window(k, sum, both); }),
            "stage: the value does not depend on (r0 + r1) alone");
  EXPECT_EQ(refusal([&] { home(k, 0); }), "home: the nest makes no table");
}

// An inner loop whose extent needs an outer one stays inside of it.
TEST_F(Product, KeepsRaggedLoopsInOrder) {
  std::pair<Expr, Expr> rows;
  const Kernel moved = split(k, m, 3, &rows);
  EXPECT_EQ(refusal([&] { order(moved, 0, {{rows.second, rows.first, n}}); }),
            "order: the extent of r3 needs r2, which is further in");
}

// Packing, blocks of k and a tile, as a product on a CPU runs: the moves of docs/design.md.
TEST_F(Product, RunsInBlocksWithAPackedPanel) {
  std::pair<Expr, Expr> steps;
  Kernel moved = split(k, r, 4, &steps);
  const Expr total = moved.nests[0].stores[0]->src[2];
  moved = nest_reduce(std::move(moved), total, {{steps.second}});
  moved = accumulate(std::move(moved), 0, {{steps.first}});
  moved = order(std::move(moved), 0, {{steps.first, m, n}});
  Expr b;
  for (const Expr& e : topological(moved.nests[0].stores[0]))
    if (e->op == Op::load && e->src[0]->arg == 2) b = e;
  moved = stage(std::move(moved), b, {{steps.second, n}});
  moved = vectorize(unroll(std::move(moved), m, 2), n, 4);
  const Target target;
  const Expr ast = asts_of({matmul(input({4, 6}), input({6, 8}))}).at(0);
  Slots want(ast), got(ast);
  interpret(linearize(k, target), want.pointers());
  interpret(linearize(moved, target), got.pointers());
  EXPECT_EQ(got.difference(want), "");
}

}  // namespace
}  // namespace mote
