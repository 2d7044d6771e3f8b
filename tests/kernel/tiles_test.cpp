// Random products through the heuristic, for targets of any size, against the plain kernel: the
// interpreter of Code runs both, and each access is proven.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "code_interpreter.h"
#include "graphs.h"
#include "opt/opt.h"
#include "testing.h"

namespace mote {
namespace {

using testing::add;
using testing::asts_of;
using testing::input;
using testing::interpret;
using testing::mul;
using testing::relu;
using testing::RunOptions;
using testing::seeds;
using testing::Slots;

std::int64_t size(std::mt19937_64& random, int least, int most) {
  return least + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
}

// (n, c, h, w), padded, by (o, c, r, s) in steps of `stride`: (n, o, .., ..).
Lazy convolution(const Lazy& x, const Lazy& w, std::int64_t stride, std::int64_t padding) {
  const Lazy p = pad(x, {{0, 0}, {0, 0}, {padding, padding}, {padding, padding}});
  const Int n = x->shape[0], c = x->shape[1], o = w->shape[0], r = w->shape[2], s = w->shape[3];
  const Lazy win = windows(p, {{1, 1, 1}, {1, 1, 1}, {r, stride, 1}, {s, stride, 1}});
  const Int h = win->shape[2], v = win->shape[3];
  const Shape all{n, o, h, v, c, r, s};
  const Lazy a = expand(reshape(permute(reshape(win, {n, c, h, v, r, s}), {0, 2, 3, 1, 4, 5}),
                                {n, 1, h, v, c, r, s}),
                        all),
             b = expand(reshape(w, {1, o, 1, 1, c, r, s}), all);
  return reshape(reduce_lazy(Op::add, mul(a, b), {4, 5, 6}), {n, o, h, v});
}

// Batches of (m, k) by (k, n), each stored in either order.
Lazy products(std::mt19937_64& random, DType t) {
  const bool is_long = random() % 8 == 0;
  const std::int64_t m = size(random, 1, is_long ? 9 : 50), n = size(random, 1, is_long ? 20 : 50),
                     k = is_long ? size(random, 1000, 2500) : size(random, 1, 60),
                     batch = is_long ? 1 : size(random, 1, 3);
  const auto operand = [&](std::int64_t rows, std::int64_t columns) {
    Lazy x = random() % 2 ? input({batch, rows, columns}, t)
                          : permute(input({batch, columns, rows}, t), {0, 2, 1});
    return random() % 3 ? x : relu(x);
  };
  const Shape all{batch, m, n, k};
  const Lazy a = expand(reshape(operand(m, k), {batch, m, 1, k}), all),
             b = expand(reshape(permute(operand(k, n), {0, 2, 1}), {batch, 1, n, k}), all);
  return reshape(reduce_lazy(Op::add, mul(a, b), {3}), {batch, m, n});
}

std::vector<Lazy> random_product(std::mt19937_64& random) {
  const DType t = random() % 4 ? DType::float32 : DType::float64;
  Lazy out;
  if (random() % 2) {
    out = products(random, t);
  } else {
    const std::int64_t r = size(random, 1, 3), c = size(random, 1, 9);
    out = convolution(input({size(random, 1, 9), c, size(random, 4, 14), size(random, 4, 20)}, t),
                      input({size(random, 1, 40), c, r, size(random, 1, 3)}, t), size(random, 1, 2),
                      size(random, 0, r - 1));
  }
  switch (random() % 4) {
    case 0: return {relu(out)};
    case 1: return {add(out, input(out->shape, t))};
    case 2: return {out, relu(add(out, input(out->shape, t)))};
    default: return {out};
  }
}

TEST(Tiles, KeepResults) {
  int tiled = 0;
  for (std::uint64_t seed : seeds(40)) {
    SCOPED_TRACE(cat("MOTE_SEED=", seed));
    std::mt19937_64 random(seed);
    Target target;
    target.vector_bytes = 16 << random() % 3;
    target.l2_bytes = std::int64_t{1} << size(random, 9, 20);
    for (const Expr& ast : asts_of(random_product(random))) {
      const Kernel kernel = optimize(open(ast), target);
      SCOPED_TRACE(to_text(kernel));
      tiled += std::ranges::any_of(kernel.words,
                                   [](const std::string& w) { return w.starts_with("order"); });
      for (const std::string& w : kernel.words) ASSERT_FALSE(w.starts_with("no ")) << w;
      const Code plain = linearize(open(ast), target), code = linearize(kernel, target);
      ASSERT_NO_THROW(verify(code));
      Slots want(ast), got(ast);
      interpret(plain, want.pointers());
      RunOptions chunks;
      chunks.chunk = size(random, 1, 3);
      chunks.shuffled = true;
      chunks.seed = seed;
      interpret(code, got.pointers(), chunks);
      ASSERT_EQ(got.difference(want), "");
    }
  }
  if (seeds(40).size() < 40) return;
  EXPECT_GT(tiled, 15);
}

}  // namespace
}  // namespace mote
