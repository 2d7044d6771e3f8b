// How much the kernels compute: comparing with a place never loops over the places, a scan adds once
// a step, and the gradient of a table touches each row once.
#include <gtest/gtest.h>

#include "graph/lazy_buffer.h"
#include "schedule/cases.h"
#include "schedule/schedule.h"

namespace mote::cases {
namespace {

struct Work {
  std::int64_t operations = 0;
  std::int64_t loops = 0;  // iterations of the longest reduction in any kernel; 1: there is none
};

Lazy counted_root(const Tensor& t) { return contiguous(t.lazy()); }

std::int64_t longest_reduction(const Lazy& root) {
  const std::lock_guard lock(graph_lock());
  std::int64_t longest = 1;
  for (const ScheduleItem& item : schedule({&root, 1}).items) {
    if (item.kind != ScheduleItem::Kind::kernel) continue;
    for (const Expr& e : topological(item.ast)) {
      if (e->op != Op::reduce) continue;
      std::int64_t n = 1;
      for (const Expr& r : e->src.subspan(1)) n *= r->src[0]->hi;
      longest = std::max(longest, n);
    }
  }
  return longest;
}

Work work_of(const std::function<Tensor(Inputs&)>& program) {
  set_default_device("NULL");
  Inputs in(true);
  const Tensor t(counted_root(program(in)));
  Work out;
  out.loops = longest_reduction(t.lazy());
  reset_counters();
  realize({t});
  out.operations = counters().operations;
  return out;
}

struct Row {
  const char* name;
  std::int64_t elements;  // of the result
  std::function<Tensor(Inputs&)> program;
};

TEST(Operations, NothingLoopsOverTheComparedAxis) {
  const auto table = [](Inputs& in) { return in.floats({5000, 64}); };
  // clang-format off
  const std::vector<Row> rows{
      {"eye",          1000 * 1000, [](Inputs&) { return Tensor::eye(1000); }},
      {"tril",         1000 * 1000, [](Inputs& in) { return in.floats({1000, 1000}).tril(); }},
      {"triu",         1000 * 1000, [](Inputs& in) { return in.floats({1000, 1000}).triu(1); }},
      {"one_hot",      128 * 5000,  [](Inputs& in) { return in.integers({128}, 5000).one_hot(5000); }},
      {"embedding",    128 * 64,    [&](Inputs& in) { return table(in)(in.integers({128}, 5000)); }},
      {"index_select", 128 * 64,    [&](Inputs& in) { return table(in).index_select(0, in.integers({128}, 5000)); }},
      {"gather",       128 * 64,    [&](Inputs& in) { return table(in).gather(0, in.integers({128, 64}, 5000)); }},
      {"arange",       100000,      [](Inputs&) { return Tensor::arange(100000) * 2; }},
  };
  // clang-format on
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Work work = work_of(row.program);
    EXPECT_EQ(work.loops, 1);
    EXPECT_LE(work.operations, 4 * row.elements);
  }
}

TEST(Operations, GradientOfATableIsLinear) {
  const std::int64_t target = 50257 * 768, source = 128 * 768;
  const Work work = work_of([](Inputs& in) {
    const Tensor table = in.weights({50257, 768});
    const Tensor rows = table(in.integers({128}, 50257));
    (rows * in.floats({128, 768})).sum().backward();
    return table.grad();
  });
  RecordProperty("operations", std::to_string(work.operations));
  EXPECT_GE(work.operations, source);
  EXPECT_LE(work.operations, 4 * (target + source));
  EXPECT_EQ(work.loops, 1);
}

TEST(Operations, ScanIsLinear) {
  const std::int64_t n = 1'000'000;
  const Work work = work_of([](Inputs& in) { return in.floats({n}).cumsum(); });
  RecordProperty("operations", std::to_string(work.operations));
  EXPECT_GE(work.operations, n - 1);
  EXPECT_LE(work.operations, 4 * n);
}

// What runs is linear too: a million squared would not end.
class RunOperations : public testing::TestWithParam<std::string> {};

TEST_P(RunOperations, ScanIsLinear) {
  set_default_device(GetParam());
  const std::int64_t n = 1'000'000;
  const auto sums = Tensor::ones({n}, {.dtype = DType::int64}).cumsum().to_vector<std::int64_t>();
  for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(sums[static_cast<std::size_t>(i)], i + 1);
}

INSTANTIATE_TEST_SUITE_P(Devices, RunOperations, testing::ValuesIn(devices_that_run()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace mote::cases
