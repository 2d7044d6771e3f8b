// The memory planner: temporaries whose lifetimes do not overlap share bytes, and no value changes.
#include <gtest/gtest.h>

#include "base/flags.h"
#include "engine/engine.h"
#include "schedule/cases.h"
#include "schedule/schedule.h"

namespace mote::cases {
namespace {

constexpr int layers = 20;

// Each layer is stored: contiguous, so that the plan has 19 temporaries of equal size.
Tensor network(Inputs& in, std::int64_t size) {
  Tensor x = in.floats({size, size});
  for (int i = 0; i < layers; ++i)
    x = (x.matmul(in.floats({size, size})) / static_cast<double>(size)).relu().contiguous();
  return x;
}

// Reads the last layer, the first one and one in between: their bytes must last.
Tensor skipping(Inputs& in, std::int64_t size) {
  Tensor x = in.floats({size, size});
  Tensors kept;
  for (int i = 0; i < layers; ++i) {
    x = (x.matmul(in.floats({size, size})) / 4).contiguous();
    if (i == 0 || i == 9) kept.push_back(x);
  }
  return x + kept[0].t() * kept[1];
}

class PlanScope {
 public:
  explicit PlanScope(bool on) { set_flag("MOTE_MEMORY_PLAN", on ? "1" : "0"); }
  ~PlanScope() { unset_flag("MOTE_MEMORY_PLAN"); }
  PlanScope(const PlanScope&) = delete;
};

TEST(MemoryPlan, HalvesTheTemporariesOfANetwork) {
  set_default_device("NULL");
  Inputs in(true);
  const Lazy root = contiguous(network(in, 256).lazy());
  const std::lock_guard lock(graph_lock());
  const Schedule plan = schedule({&root, 1});
  const std::int64_t one = 256 * 256 * 4;
  EXPECT_EQ(plan.unplanned_bytes, (layers - 1) * one);
  EXPECT_EQ(plan.planned_bytes, 2 * one);  // what is read, and what is written
  EXPECT_EQ(schedule({&root, 1}, {.memory_plan = false}).planned_bytes, plan.unplanned_bytes);
}

std::int64_t peak_bytes(bool planned) {  // what a realize needs beside its inputs
  const PlanScope scope(planned);
  Inputs in(true);
  const Tensor x = network(in, 256);
  Device& device = default_device();
  const std::int64_t before = device.memory().used, peak = device.memory().peak;
  realize({x});
  EXPECT_GT(device.memory().peak, peak);  // or the peak was another test's
  return device.memory().peak - before;
}

TEST(MemoryPlan, HalvesThePeakOfADevice) {
  // Devices of their own, so that a peak is this test's.
  set_default_device("NULL:C:planned");
  const std::int64_t with = peak_bytes(true);
  set_default_device("NULL:C:unplanned");
  const std::int64_t without = peak_bytes(false);
  RecordProperty("bytes", std::to_string(with) + " of " + std::to_string(without));
  EXPECT_LT(2 * with, without);
}

class MemoryPlanOn : public testing::TestWithParam<std::string> {};

TEST_P(MemoryPlanOn, ChangesNoValue) {
  for (const auto& program : {network, skipping}) {
    const auto run = [&](const std::string& device, bool planned) {
      const PlanScope scope(planned);
      set_default_device(device);
      Inputs in(false);
      return program(in, 6).to_vector<float>();
    };
    const auto with = run(GetParam(), true);
    EXPECT_EQ(with, run(GetParam(), false));
    const auto want = run("REF", true);
    ASSERT_EQ(with.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(with[i], want[i], 1e-5 * (1 + std::abs(want[i])));
  }
}

TEST_P(MemoryPlanOn, ChangesNoValueOfAnyCase) {
  set_default_device(GetParam());
  for (const Case& c : all()) {
    SCOPED_TRACE(c.name);
    const auto run = [&](bool planned) {
      const PlanScope scope(planned);
      manual_seed(1);
      Inputs in(false);
      const Tensors roots = c.build(in);
      realize(roots);
      std::vector<std::vector<double>> out;
      for (const Tensor& t : roots) out.push_back(t.to_vector<double>());
      return out;
    };
    EXPECT_EQ(run(true), run(false));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryPlanOn, testing::ValuesIn(devices_that_run()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace mote::cases
