// Random sequences of moves keep what a kernel computes, which is what the interpreter of the AST says:
// 1,000 through the interpreter of Code, and 50 on each device, compiled in one call.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "code_interpreter.h"
#include "engine/launch.h"
#include "graphs.h"
#include "kernel/kernel.h"
#include "mote/error.h"
#include "support/interpret.h"
#include "testing.h"

namespace mote {
namespace {

using namespace testing;

std::vector<Expr> all_stores(const Kernel& k) {
  std::vector<Expr> out;
  for (const Nest& n : k.nests) out.insert(out.end(), n.stores.begin(), n.stores.end());
  return out;
}

template <class T>
const T& pick(const std::vector<T>& from, std::mt19937_64& random) {
  return from[random() % from.size()];
}

std::vector<Expr> some_of(std::vector<Expr> from, std::mt19937_64& random) {
  std::ranges::shuffle(from, random);
  from.resize(1 + random() % from.size());
  return from;
}

// One random move; it may be refused.
Kernel moved(const Kernel& k, std::mt19937_64& random) {
  std::vector<Expr> ranges, values, reduces, tables;
  for (const Expr& e : topological(all_stores(k))) {
    if (e->op == Op::range) ranges.push_back(e);
    if (e->op == Op::reduce) reduces.push_back(e);
    if (e->op == Op::stage) tables.push_back(e);
    if (e->dtype != DType::index && e->op != Op::slot && e->op != Op::sink && !e->free.empty())
      values.push_back(e);
  }
  if (ranges.empty()) throw InternalError("nothing: the kernel has no ranges");
  const std::size_t nest = random() % k.nests.size();
  const Expr r = pick(ranges, random);
  switch (random() % 14) {
    case 0: return unroll(k, r, static_cast<int>(1 + random() % 4));
    case 1: return vectorize(k, r, 4);
    case 2:
    case 3: return split(k, r, static_cast<std::int64_t>(1 + random() % 5));
    case 4: {
      std::vector<Expr> loops = k.nests[nest].loops;
      std::ranges::shuffle(loops, random);
      return order(k, nest, loops);
    }
    case 5: {
      const auto& loops = k.nests[nest].loops;
      if (loops.size() < 2) throw InternalError("nothing: one loop");
      const std::size_t i = random() % (loops.size() - 1);
      return fuse(k, loops[i], loops[i + 1]);
    }
    case 6:
    case 7:
    case 8: {
      if (values.empty()) throw InternalError("nothing: no values");
      const Expr v = pick(values, random);
      std::vector<Expr> dims;
      for (const Expr& x : ranges)
        if (v->free.has(static_cast<int>(x->arg))) dims.push_back(x);
      return stage(k, v, some_of(dims, random));
    }
    case 9: {
      if (tables.empty()) throw InternalError("nothing: no tables");
      const Expr table = pick(tables, random);
      if (random() % 3 == 0) return inline_table(k, table);
      if (random() % 2) return widen(k, table, r);
      std::vector<Expr> dims(table->src.begin() + 1, table->src.end());
      std::ranges::shuffle(dims, random);
      return order_table(k, table, dims);
    }
    case 10: {
      if (reduces.empty()) throw InternalError("nothing: no sums");
      const Expr e = pick(reduces, random);
      return nest_reduce(k, e, some_of({e->src.begin() + 1, e->src.end()}, random));
    }
    case 11: {
      const Expr& v = k.nests[nest].stores[0]->src[2];
      if (v->op != Op::reduce) throw InternalError("nothing: no sum is stored");
      return accumulate(k, nest, some_of({v->src.begin() + 1, v->src.end()}, random));
    }
    case 12:
      if (random() % 2) return home(k, nest);
      return cut(k, r, static_cast<std::int64_t>(1 + random() % 4));
    default: {  // a load whose index or gate adds the two
      std::vector<std::array<Expr, 3>> windows;
      for (const Expr& v : values)
        if (v->op == Op::load)
          for (const Expr& e : topological(v))
            if (e->op == Op::add && e->src.size() == 2 && e->src[0]->op == Op::range &&
                e->src[1]->op == Op::range)
              windows.push_back({v, e->src[0], e->src[1]});
      if (windows.empty()) throw InternalError("nothing: no index adds two ranges");
      const auto& [v, a, b] = pick(windows, random);
      const Int axes[] = {Int(a) + Int(b)};
      return window(k, v, axes);
    }
  }
}

struct Case {
  Expr ast;
  Kernel kernel;
};

// A refusal names its move.
bool is_refusal(const std::string& text) {
  for (const char* move : {"nothing", "unroll", "vectorize", "order", "split", "fuse", "stage",
                           "inline", "widen", "nest_reduce", "accumulate", "cut", "home", "move"})
    if (text.starts_with(std::string(move) + ": ")) return true;
  return false;
}

Case random_case(std::mt19937_64& random, std::map<std::string, int>* taken = nullptr) {
  std::vector<Expr> asts;
  while (asts.empty()) asts = asts_of(random_graph(random));  // some need no kernel
  Case c{pick(asts, random), {}};
  c.kernel = open(c.ast);
  for (std::uint64_t i = 0, n = 1 + random() % 10; i < n; ++i) {
    try {
      Kernel next = moved(c.kernel, random);
      if (taken && next.words.size() > c.kernel.words.size())
        ++(*taken)[next.words.back().substr(0, next.words.back().find(' '))];
      c.kernel = std::move(next);
    } catch (const InternalError& e) {
      if (!is_refusal(e.what())) throw;
    }
  }
  return c;
}

// A gate that lies in a table is a value like others there: verify cannot see what it says of an index.
bool keeps_a_condition(const Code& code) {
  return std::ranges::any_of(code.memories, [](const Memory& m) {
    return m.space != Space::slot && m.dtype == DType::boolean;
  });
}

TEST(Moves, KeepResults) {
  std::map<std::string, int> taken;
  for (std::uint64_t seed : seeds(1000)) {
    SCOPED_TRACE(cat("MOTE_SEED=", seed));
    std::mt19937_64 random(seed);
    Case c;
    ASSERT_NO_THROW(c = random_case(random, &taken));
    SCOPED_TRACE(to_text(c.kernel));
    const Target target;
    Slots want(c.ast), unmoved(c.ast), got(c.ast);
    Code plain, code;
    ASSERT_NO_THROW(interpret(c.ast, want.pointers()));
    ASSERT_NO_THROW(plain = linearize(open(c.ast), target));
    ASSERT_NO_THROW(verify(plain));
    ASSERT_NO_THROW(interpret(plain, unmoved.pointers()));
    ASSERT_EQ(unmoved.difference(want), "") << to_text(plain);
    ASSERT_NO_THROW(code = linearize(c.kernel, target));
    try {
      verify(code);
    } catch (const InternalError& e) {  // not proven, but not wrong
      ASSERT_TRUE(keeps_a_condition(code)) << e.what() << "\n" << to_text(code);
      ASSERT_EQ(std::string(e.what()).find("goes to"), std::string::npos) << e.what() << "\n"
                                                                          << to_text(code);
    }
    // What adds to memory, or overwrites what it reads, is not run twice.
    const bool in_place =
        std::ranges::any_of(c.kernel.words,
                            [](const std::string& w) { return w.starts_with("home"); }) ||
        std::ranges::any_of(c.ast->src,
                            [](const Expr& s) { return static_cast<Op>(s->arg) != Op::store; });
    RunOptions chunks;
    chunks.chunk = static_cast<std::int64_t>(1 + random() % 3);
    chunks.shuffled = true;
    chunks.repeated = !in_place;
    chunks.seed = seed;
    try {
      interpret(code, got.pointers(), chunks);
    } catch (const InternalError& e) {
      FAIL() << e.what() << "\n" << to_text(code);
    }
    ASSERT_EQ(got.difference(want), "") << to_text(code);
  }
  if (seeds(1000).size() < 1000) return;
  for (const char* move : {"unroll", "vectorize", "order", "split", "fuse", "stage", "inline",
                           "widen", "nest_reduce", "accumulate", "cut", "home"})
    EXPECT_GT(taken[move], 0) << move;
}

class OnDevices : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Devices, OnDevices, ::testing::Values("CPU", "CLANG"),
                         [](const auto& chosen) { return std::string(chosen.param); });

TEST_P(OnDevices, MovesKeepResults) {
  Device& device = device_named(GetParam());
  std::vector<Case> cases;
  std::vector<Source> sources;
  std::vector<std::uint64_t> numbers = seeds(50);
  for (std::uint64_t seed : numbers) {
    std::mt19937_64 random(seed + 5000);
    cases.push_back(random_case(random));
    Code code = linearize(cases.back().kernel, device.target());
    code.name = cat("moved_", seed);
    sources.push_back(renderer_of(device).render(code, device.target()));
    sources.back().fast_compile = true;
  }
  const auto programs = device.compile_all(sources);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cat("MOTE_SEED=", numbers[i], "\n", to_text(cases[i].kernel)));
    Slots want(cases[i].ast), got(cases[i].ast);
    interpret(cases[i].ast, want.pointers());
    std::vector<std::int64_t> tasks;
    for (const Phase& p : sources[i].phases) tasks.push_back(p.tasks);
    programs[i]->run(got.pointers(), {}, tasks);
    ASSERT_EQ(got.difference(want), "") << sources[i].text;
  }
}

}  // namespace
}  // namespace mote
