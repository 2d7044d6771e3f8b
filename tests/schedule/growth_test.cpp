// Graphs that are long, or whose written-out expression would be exponential: scheduling takes time
// linear in the ops, kernels keep their bounds, and the values are REF's.
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>

#include "base/text.h"
#include "graph/lazy_buffer.h"
#include "schedule/cases.h"
#include "schedule/schedule.h"

namespace mote::cases {
namespace {

using Program = std::function<Tensors(int n)>;

Tensor numbers(std::int64_t n) {
  std::vector<float> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(static_cast<float>(i % 7) - 3);
  return Tensor(v, {n});
}

Tensors chain(int n) {
  Tensor x = numbers(64);
  const Tensor y = numbers(64);
  for (int i = 0; i < n; ++i) x = x + y;
  return {x};
}

Tensors doubling(int n) {  // 2^n reads of x's elements, if all of it were written out
  Tensor x = numbers(64);
  for (int i = 0; i < n; ++i) x = (x + x.flip({0})) * 0.5;
  return {x};
}

Tensors doubling_sums(int n) {  // the same through reductions
  Tensor x = numbers(64).reshape({8, 8});
  for (int i = 0; i < n; ++i) x = (x + x.sum(0) - x.t().sum(1, true)) * 0.0625;
  return {x};
}

Tensors parts_written(int n) {
  Tensor x = numbers(64);
  for (int i = 0; i < n; ++i) x(Slice(i % 64, i % 64 + 1)) += x((i * 7) % 64);
  return {x};
}

// Steps that nothing realizes in between: the new weights are lazy values of the old ones.
Tensors training(int steps) {
  Tensor w1 = numbers(12).reshape({3, 4}) / 8, w2 = numbers(4).reshape({4, 1}) / 8;
  const Tensor x = numbers(15).reshape({5, 3}) / 4, y = numbers(5).reshape({5, 1}) / 4;
  for (int i = 0; i < steps; ++i) {
    w1.set_requires_grad();
    w2.set_requires_grad();
    mse_loss(x.matmul(w1).relu().matmul(w2), y).backward();
    const NoGrad off;
    w1 = w1.detach() - w1.grad() * 0.01;
    w2 = w2.detach() - w2.grad() * 0.01;
  }
  return {w1, w2};
}

// The same with writes in place, as an optimizer makes them.
Tensors training_in_place(int steps) {
  Tensor w = numbers(12).reshape({3, 4}) / 8;
  w.set_requires_grad();
  const Tensor x = numbers(15).reshape({5, 3}) / 4, y = numbers(20).reshape({5, 4}) / 4;
  for (int i = 0; i < steps; ++i) {
    w.set_grad({});
    mse_loss(x.matmul(w).sigmoid(), y).backward();
    const NoGrad off;
    w -= w.grad() * 0.1;
  }
  return {w};
}

struct Row {
  const char* name;
  Program program;
  int ops;       // whose time is measured, and of twice as many
  int compared;  // whose values are compared
};

// clang-format off
const std::vector<Row> rows{
    {"chain",             chain,             10000, 10000},
    {"doubling",          doubling,          1000,  40},
    {"doubling_sums",     doubling_sums,     600,   40},
    {"parts_written",     parts_written,     4000, 100},
    {"training",          training,          200,   200},
    {"training_in_place", training_in_place, 200,   200},
};
// clang-format on

std::vector<Lazy> roots_of(const Tensors& tensors) {
  std::vector<Lazy> out;
  for (const Tensor& t : tensors) out.push_back(contiguous(t.lazy()));
  return out;
}

void expect_bounds(const Schedule& plan) {
  for (const ScheduleItem& item : plan.items) {
    if (item.kind != ScheduleItem::Kind::kernel) continue;
    EXPECT_LE(static_cast<int>(item.slots.size()), item.device->target().max_buffers);
    EXPECT_LE(topological(item.ast).size(), 2000u);
  }
}

struct Measured {
  double seconds = INFINITY;  // the fastest of three, each on a new graph
  std::size_t kernels = 0;
};

Measured measured(const Row& row, int ops) {
  Measured best;
  for (int i = 0; i < 3; ++i) {
    const std::vector<Lazy> roots = roots_of(row.program(ops));
    const std::lock_guard lock(graph_lock());
    const std::clock_t begin = std::clock();  // of this process: others may run beside it
    const Schedule plan = schedule(roots);
    const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    best.seconds = std::min(best.seconds, took);
    best.kernels = plan.items.size();
    expect_bounds(plan);
  }
  return best;
}

TEST(Growth, TimeIsLinear) {
  set_default_device("NULL");
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Measured once = measured(row, row.ops), twice = measured(row, 2 * row.ops);
    RecordProperty(row.name, cat(once.seconds * 1e3, " ms, ", twice.seconds * 1e3, " ms"));
    EXPECT_LT(twice.seconds, 3 * once.seconds + 1e-3);
    EXPECT_LE(twice.kernels, 2 * once.kernels + 2);
  }
}

class GrowthOn : public testing::TestWithParam<std::string> {};

TEST_P(GrowthOn, EqualsReference) {
  const auto run = [](const Row& row, const std::string& device) {
    set_default_device(device);
    const Tensors roots = row.program(row.compared);
    realize(roots);
    std::vector<double> out;
    for (const Tensor& t : roots)
      for (const double v : t.to_vector<double>()) out.push_back(v);
    return out;
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const auto want = run(row, "REF"), got = run(row, GetParam());
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 1e-4 * (1 + std::abs(want[i]))) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GrowthOn, testing::ValuesIn(devices_that_run()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace mote::cases
