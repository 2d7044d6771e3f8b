// Training steps of a small network against REF: every room at once, the running statistics
// and the optimizer's writes in place among them.
#include <gtest/gtest.h>

#include <mote/mote.h>

#include "base/flags.h"

namespace mote {
namespace {

struct Net : nn::Module {
  nn::Conv2d c1{1, 4, 3}, c2{4, 4, 3};
  nn::BatchNorm b1{4}, b2{4};
  nn::Linear l{4, 3};
  MOTE_MODULE(Net, c1, c2, b1, b2, l)
  Tensor forward(const Tensor& x) const {
    const Tensor y = b1(c1(x).relu()).max_pool2d(2);
    return l(b2(c2(y).relu()).max_pool2d(2).flatten(1));
  }
};

struct Result {
  std::vector<double> losses;
  std::vector<double> values;  // of every parameter and buffer at the end
};

Result trained(const char* device, bool captured, int steps) {
  set_default_device(device);
  manual_seed(7);
  Net net;
  optim::Adam opt(net.parameters(), {.lr = 1e-2});
  const Training on;
  const auto step = [&](const Tensor& x, const Tensor& y) {
    opt.zero_grad();
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    opt.step();
    return loss;
  };
  auto recorded = jit(step);
  Result out;
  for (int i = 0; i < steps; ++i) {
    const Tensor x = Tensor::rand({4, 1, 10, 10}).realize(),
                 y = Tensor::randint(0, 3, {4}).realize();
    const Tensor loss = captured ? recorded(x, y) : step(x, y);
    out.losses.push_back(loss.item<double>());
  }
  for (const auto& [name, t] : net.state_dict())
    for (double v : t.to_vector<double>()) out.values.push_back(v);
  return out;
}

void expect_near(const Result& got, const Result& want, double tolerance) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (std::size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], tolerance) << "step " << i;
  ASSERT_EQ(got.values.size(), want.values.size());
  for (std::size_t i = 0; i < want.values.size(); ++i)
    ASSERT_NEAR(got.values[i], want.values[i], tolerance) << "value " << i;
}

class Train : public testing::TestWithParam<const char*> {};

TEST_P(Train, EqualsReference) {
  const Result want = trained("REF", false, 4);
  for (bool captured : {false, true}) {
    for (const char* plan : {"1", "0"}) {
      SCOPED_TRACE(std::string(captured ? "jit" : "plain") + ", memory plan " + plan);
      set_flag("MOTE_MEMORY_PLAN", plan);
      expect_near(trained(GetParam(), captured, 4), want, 2e-3);
    }
  }
  unset_flag("MOTE_MEMORY_PLAN");
}

TEST(Jit, OnReferenceIsAnError) {
  set_default_device("REF");
  auto twice = jit([](const Tensor& x) { return x + x; });
  const Tensor x = Tensor({1.f, 2.f});
  EXPECT_EQ(twice(x).to_vector<float>(), (std::vector<float>{2, 4}));  // the first call is plain
  try {
    twice(x);
    FAIL() << "a recording of nothing";
  } catch (const JitError& e) {
    EXPECT_STREQ(e.what(),
                 "jit: REF interprets and launches nothing that could be recorded; call the "
                 "function itself, or use another device");
  }
}

TEST_P(Train, SameBitsForAnyThreads) {
  set_threads(1);
  const Result one = trained(GetParam(), true, 4);
  for (int n : {2, 3}) {
    set_threads(n);
    const Result many = trained(GetParam(), true, 4);
    EXPECT_EQ(many.losses, one.losses);
    EXPECT_EQ(many.values, one.values);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Train, testing::Values("CPU", "CLANG"));

}  // namespace
}  // namespace mote
