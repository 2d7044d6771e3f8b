// An equal graph takes its schedule from the cache: the values are its own, the work is not.
#include <gtest/gtest.h>

#include <mote/mote.h>

#include <chrono>

namespace mote {
namespace {

class ScheduleCache : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { set_default_device(GetParam()); }
};

Tensor program(const Tensor& x, int layers) {
  Tensor y = x;
  for (int i = 0; i < layers; ++i) y = (y * 1.5f + x).tanh().contiguous();
  return y.sum(0);
}

TEST_P(ScheduleCache, EqualGraphsGiveTheirOwnValues) {
  const Tensor
      a = Tensor::arange(12, {.dtype = DType::float32}).reshape({3, 4}).contiguous().realize(),
      b = (a + 1.f).realize();
  const auto first = program(a, 5).to_vector<float>();
  reset_counters();
  const auto second = program(b, 5).to_vector<float>(), again = program(a, 5).to_vector<float>();
  EXPECT_EQ(counters().schedule_hits, 2);
  EXPECT_EQ(counters().scheduled, 0);
  EXPECT_EQ(again, first);
  EXPECT_NE(second, first);
}

TEST_P(ScheduleCache, AnotherGraphMisses) {
  const Tensor a = Tensor::ones({3, 4}).contiguous().realize();
  program(a, 3).realize();
  reset_counters();
  program(a, 4).realize();  // one more operation
  (a * 2.f).realize();      // another constant than the next
  (a * 3.f).realize();
  (a + a.flip({0})).realize();  // another argument than the next
  (a + a.flip({1})).realize();
  const Tensor kept = a * 2.f;
  Tensor used = kept + 1.f;  // what outlives it counts
  used.realize();
  EXPECT_EQ(counters().schedule_hits, 0);
}

TEST_P(ScheduleCache, WritesInPlaceHitWithOtherBuffers) {
  for (int round = 0; round < 3; ++round) {
    Tensor x = Tensor::full({8}, static_cast<float>(round)).contiguous().realize();
    const Tensor old = round == 2 ? x.detach() : Tensor();
    reset_counters();
    x += 1.f;
    x.realize();
    EXPECT_EQ(x.to_vector<float>(), std::vector<float>(8, static_cast<float>(round + 1)));
    if (!old.is_defined()) continue;
    EXPECT_EQ(old.to_vector<float>(), std::vector<float>(8, static_cast<float>(round)));
  }
}

TEST(ScheduleCacheTime, IsFiveTimesFaster) {
  using clock = std::chrono::steady_clock;
  set_default_device("NULL");
  const Tensor x = Tensor::rand({3, 4}).realize();
  const auto took = [&](int layers) {
    Tensor y = program(x, layers);
    const auto begin = clock::now();
    y.realize();
    return std::chrono::duration<double>(clock::now() - begin).count();
  };
  const double first = took(150);
  double best = first;
  for (int i = 0; i < 5; ++i) best = std::min(best, took(150));
  EXPECT_LT(best * 5, first);
}

INSTANTIATE_TEST_SUITE_P(Devices, ScheduleCache, ::testing::Values("CPU", "CLANG"),
                         [](const auto& device) { return std::string(device.param); });

}  // namespace
}  // namespace mote
