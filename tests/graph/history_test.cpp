// History: what a later backward needs is kept until it has run, also of values that were realized
// before; a value that was overwritten in place is refused with both places, and only where a
// gradient reads it.
#include <gtest/gtest.h>
#include <mote/mote.h>

#include "base/text.h"
#include "graph/lazy_buffer.h"

namespace mote {
namespace {

using Floats = std::vector<float>;

class History : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { set_default_device(GetParam()); }
};

Tensor parameter(Floats v) {
  const auto n = static_cast<std::int64_t>(v.size());
  return Tensor(v, {n}, {.requires_grad = true});
}

TEST_P(History, BackwardAfterItem) {
  const Tensor w = parameter({1, 2, 3});
  Tensor loss = (w * w).sum();
  EXPECT_EQ(loss.item<float>(), 14);
  loss.backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{2, 4, 6}));
}

TEST_P(History, BackwardAfterEachValueWasRealized) {
  const Tensor w = parameter({1, 2, 3});
  const Tensor square = (w * w).realize(), shifted = (square.flip({0}) + 1).realize();
  Tensor loss = (shifted * w).sum().realize();
  loss.backward();
  // d/dw_i of sum_j (w_{2-j}^2 + 1) w_j = w_{2-i}^2 + 1 + 2 w_i w_{2-i}
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{16, 13, 8}));
}

TEST_P(History, IsLetGoByBackward) {
  const Tensor w = parameter({1, 2});
  Tensor loss = (w * w).sum();
  loss.backward();
  EXPECT_THROW(loss.backward(), GradientError);
  EXPECT_EQ(loss.item<float>(), 5);  // the value is still there
}

TEST_P(History, IsRetainedWhereAskedFor) {
  const Tensor w = parameter({1, 2});
  Tensor loss = (w * w).sum();
  loss.backward({}, true);
  loss.backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{4, 8}));  // twice
}

TEST_P(History, GradientOfAGradient) {
  const Tensor w = parameter({1, 2});
  const Tensor cubes = (w * w * w).sum();
  EXPECT_EQ(cubes.item<float>(), 9);
  const Tensor once = gradient({cubes}, {w})[0];
  EXPECT_EQ(once.to_vector<float>(), (Floats{3, 12}));
  EXPECT_EQ(gradient({once.sum()}, {w})[0].to_vector<float>(), (Floats{6, 12}));
}

TEST_P(History, NodesLeaveAfterBackward) {
  const Tensor w = parameter({1, 2});
  const Tensor x = Tensor({3.f, 4.f}).realize();
  const auto step = [&] {
    Tensor loss = (w * x).exp().sum();
    loss.realize();
    loss.backward();
    Tensor g = w.grad();
    g.realize();
    Tensor keep = w;
    keep.set_grad({});
  };
  step();
  const std::int64_t before = LazyBuffer::alive();
  for (int i = 0; i < 5; ++i) step();
  EXPECT_EQ(LazyBuffer::alive(), before);
}

// ---- writes in place

std::string backward_error(Tensor loss, int& line) {
  try {
    line = __LINE__ + 1;
    loss.backward();
  } catch (const GradientError& e) {
    return e.what();
  }
  return "no error";
}

TEST_P(History, AnOverwrittenValueIsRefusedWithBothPlaces) {
  const Tensor w = parameter({1, 2});
  Tensor x = w * 2;
  const Tensor loss = (x * x).sum();
  const int written = __LINE__ + 1;
  x += 1;
  int called = 0;
  const std::string message = backward_error(loss, called);
  EXPECT_EQ(message, cat("backward: it needs the value of a tensor of shape (2,) that was "
                         "overwritten in place at history_test.cpp:",
                         written, "; backward was called at history_test.cpp:", called,
                         "; call backward before writing, or write to a copy"));
}

TEST_P(History, AnOverwrittenParameterIsRefusedByName) {
  Tensor w = parameter({1, 2});
  w.set_name("layer.weight");
  const Tensor loss = (w * w).sum();
  EXPECT_EQ(loss.item<float>(), 5);
  int written = 0, called = 0;
  {
    const NoGrad off;
    written = __LINE__ + 1;
    w.assign(w * 3);
  }
  w.realize();
  const std::string message = backward_error(loss, called);
  EXPECT_NE(message.find("'layer.weight'"), std::string::npos) << message;
  EXPECT_NE(message.find(cat("overwritten in place at history_test.cpp:", written)),
            std::string::npos)
      << message;
  EXPECT_NE(message.find(cat("called at history_test.cpp:", called)), std::string::npos) << message;
}

TEST_P(History, AnOverwrittenValueIsRefusedThroughAView) {
  const Tensor w = parameter({1, 2, 3, 4});
  Tensor x = w * 2;
  const Tensor loss = x.reshape({2, 2}).t().exp().square().sum();
  const Tensor other = (x.reshape({2, 2}).flip({0}) * x.reshape({2, 2})).sum();
  x += 1;
  int called = 0;
  EXPECT_NE(backward_error(other, called).find("overwritten in place"), std::string::npos);
  Tensor fine = loss;  // reads the exponentials, which were computed before the write
  fine.backward();
  EXPECT_TRUE(w.grad().is_defined());
}

TEST_P(History, AnOverwrittenValueThatNoGradientReadsIsFine) {
  const Tensor w = parameter({1, 2});
  Tensor x = w * 2;
  Tensor loss = (x + 1).sum();
  x += 5;
  loss.backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{2, 2}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{7, 9}));
}

TEST_P(History, TheNewValueHasItsOwnGradient) {
  const Tensor w = parameter({1, 2});
  Tensor x = w * 2;
  x.assign(x.detach() + w * w);
  Tensor loss = (x * x).sum();  // (2w + w^2)^2, with 2w held fixed
  loss.backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{12, 64}));
}

TEST_P(History, AProductWrittenOverItsOwnFactorIsRefused) {
  const Tensor w = parameter({1, 2});
  Tensor x = w * 2;
  x *= x;
  int called = 0;
  EXPECT_NE(backward_error(x.sum(), called).find("overwritten in place"), std::string::npos);
}

// Data without a gradient: the old bytes are kept for whoever still reads them.
TEST_P(History, OverwrittenDataKeepsItsOldValueForTheGradient) {
  const Tensor w = parameter({1, 2});
  Tensor x = Tensor({10.f, 20.f}).realize();
  Tensor loss = (w * x).sum();
  x.assign(x * 0);
  x.realize();
  loss.backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{10, 20}));
  EXPECT_EQ(x.to_vector<float>(), (Floats{0, 0}));
}

INSTANTIATE_TEST_SUITE_P(Devices, History, testing::Values("REF", "CPU", "CLANG"));

}  // namespace
}  // namespace mote
