// What semantics.md says of gradients at the doubtful points, and how histories live.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "mote/mote.h"
#include "tensor/devices.h"

namespace mote::testing {
namespace {

using Doubles = std::vector<double>;
const double inf = INFINITY;

Tensor leaf(Doubles v) {
  const auto n = static_cast<std::int64_t>(v.size());
  return Tensor(v, {n}, {.requires_grad = true});
}

struct Row {
  const char* what;
  Doubles at;
  std::function<Tensor(const Tensor&)> f;
  Doubles want;  // of the sum
};

Tensor doubles(Doubles v) { return leaf(std::move(v)).detach(); }

// clang-format off
const Row rows[] = {
    {"max shares equally", {3, 1, 3}, [](const Tensor& x) { return x.max(); }, {0.5, 0, 0.5}},
    {"min shares equally", {1, 1, 1}, [](const Tensor& x) { return x.min(); }, {1. / 3, 1. / 3, 1. / 3}},
    {"maximum shares equally", {2, 5}, [](const Tensor& x) { return maximum(x, 2.0); }, {0.5, 1}},
    {"abs at 0", {-2, -0., 0, 3}, [](const Tensor& x) { return x.abs(); }, {-1, 0, 0, 1}},
    {"sign", {-2, 0, 3}, [](const Tensor& x) { return x.sign(); }, {0, 0, 0}},
    {"sqrt at 0", {0, 4}, [](const Tensor& x) { return x.sqrt(); }, {inf, 0.25}},
    {"relu at 0", {-1, 0, 2}, [](const Tensor& x) { return x.relu(); }, {0, 0, 1}},
    {"relu of infinities", {-inf, inf}, [](const Tensor& x) { return x.relu(); }, {0, 1}},
    {"clip on its bounds", {-1, -2, 1, 2}, [](const Tensor& x) { return x.clip(-1, 1); }, {1, 0, 1, 0}},
    {"prod with a zero", {2, 0, 3}, [](const Tensor& x) { return x.prod(); }, {0, 6, 0}},
    {"prod with two zeros", {0, 0, 3}, [](const Tensor& x) { return x.prod(); }, {0, 0, 0}},
    {"cumprod with a zero", {2, 0, 3}, [](const Tensor& x) { return x.cumprod(); }, {1, 8, 0}},
    {"pow(x, 0)", {0, 2, -1}, [](const Tensor& x) { return x.pow(0); }, {0, 0, 0}},
    {"pow(x, 0.0 tensor)", {0, 2}, [](const Tensor& x) { return x.pow(doubles({0, 0})); }, {0, 0}},
    {"pow(0, y) by y", {0, 2}, [](const Tensor& y) { return doubles({0, 0}).pow(y); }, {0, 0}},
    {"floor", {1.5, -1.5}, [](const Tensor& x) { return x.floor(); }, {0, 0}},
    {"where over sqrt", {0, 4, 9}, [](const Tensor& x) { return where(x == 0, 0.0, x * x.sqrt()); }, {0, 3, 4.5}},
    {"where over log", {0, 2}, [](const Tensor& x) { return where(0 < x, x.log(), 0.0); }, {0, 0.5}},
    {"where over 1 / x", {0, 2}, [](const Tensor& x) { return where(x == 0, 1.0, 1 / x); }, {0, -0.25}},
    {"where over rsqrt", {0, 4}, [](const Tensor& x) { return where(0 < x, x.rsqrt(), 0.0); }, {0, -1. / 16}},
    {"where over pow", {0, 4}, [](const Tensor& x) { return where(0 < x, x.pow(0.3), 0.0); }, {0, 0.3 * std::pow(4, -0.7)}},
    {"where over log1p", {-1, 1}, [](const Tensor& x) { return where(-1 < x, x.log1p(), 0.0); }, {0, 0.5}},
    {"where over asin", {1, 0}, [](const Tensor& x) { return where(x < 1, x.asin(), 0.0); }, {0, 1}},
    {"where over acosh", {1, 2}, [](const Tensor& x) { return where(1 < x, x.acosh(), 0.0); }, {0, 1 / std::sqrt(3)}},
    {"where over atanh", {1, 0}, [](const Tensor& x) { return where(x < 1, x.atanh(), 0.0); }, {0, 1}},
    {"where over exp", {1000, 0}, [](const Tensor& x) { return where(x < 100, x.exp(), 0.0); }, {0, 1}},
    {"where over expm1", {1000, 0}, [](const Tensor& x) { return where(x < 100, x.expm1(), 0.0); }, {0, 1}},
    {"where over sinh", {1000, 0}, [](const Tensor& x) { return where(x < 100, x.sinh(), 0.0); }, {0, 1}},
    {"where over tan of nan", {inf, 0}, [](const Tensor& x) { return where(x < 100, x.tan(), 0.0); }, {0, 1}},
    {"where over sqrt, reshaped", {0, 4}, [](const Tensor& x) { return where(x.reshape({2, 1}) == 0, 0.0, x.sqrt().reshape({2, 1})); }, {0, 0.25}},
    {"where over sqrt, flipped", {0, 4}, [](const Tensor& x) { return where(x.flip({0}) == 0, 0.0, x.sqrt().flip({0})); }, {0, 0.25}},
    {"where over sqrt, permuted", {0, 4}, [](const Tensor& x) {
       const Tensor y = x.sqrt().reshape({2, 1}).t();
       return where(y.detach() == 0, 0.0, y); }, {0, 0.25}},
    {"where over sqrt, padded", {0, 4}, [](const Tensor& x) {
       const Tensor y = x.sqrt().pad({{1, 1}});
       return where(y.detach() == 0, 0.0, y); }, {0, 0.25}},
    {"where over sqrt, cut", {0, 4, 0}, [](const Tensor& x) {
       const Tensor y = x.sqrt()(Slice(0, 2));
       return where(y.detach() == 0, 0.0, y); }, {0, 0.25, 0}},
    {"where over sqrt, scaled", {0, 4}, [](const Tensor& x) { return where(x == 0, 0.0, x.sqrt() * 3 + 1); }, {0, 0.75}},
    {"where over sqrt in float32", {0, 4}, [](const Tensor& x) {
       const Tensor y = x.cast(DType::float32).sqrt();
       return where(x == 0, 0.0, y).cast(DType::float64); }, {0, 0.25}},
    {"nested where", {0, 4}, [](const Tensor& x) { return where(x < 9, where(x == 0, 0.0, x.sqrt()), 0.0) * 2; }, {0, 0.5}},
    {"masked_fill", {0, 4}, [](const Tensor& x) { return x.log().masked_fill(x == 0, 0.0); }, {0, 0.25}},
    {"min(exp(x), 1)", {-1, 0.5, 900}, [](const Tensor& x) { return x.exp().minimum(1.0); }, {std::exp(-1), 0, 0}},
    {"huber by abs", {-2, -0., 0, 0.25, 3}, [](const Tensor& x) {
       const Tensor a = x.abs();
       return where(a <= 1, 0.5 * x * x, a - 0.5); }, {-1, 0, 0, 0.25, 1}},
    {"softmax of a masked row", {1, 2}, [](const Tensor& x) {
       const Tensor q = x.reshape({1, 1, 2}), mask = Tensor({{false}});
       return q.scaled_dot_product_attention(q, q, mask); }, {0, 0}},
    {"gather of one place twice", {1, 2}, [](const Tensor& x) { return x(Tensor({1, 1})); }, {0, 2}},
    {"logsumexp with -inf", {-inf, 0}, [](const Tensor& x) { return x.logsumexp(); }, {0, 1}},
};
// clang-format on

class Points : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { set_default_device(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, Points, ::testing::ValuesIn(computing_devices),
                         [](const auto& chosen) { return std::string(chosen.param); });

TEST_P(Points, DoubtfulGradients) {
  std::vector<Tensor> grads;
  for (const Row& r : rows) {
    const Tensor x = leaf(r.at);
    grads.push_back(gradient({r.f(x).sum()}, {x})[0]);
  }
  realize(grads);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Doubles got = grads[i].to_vector<double>();
    ASSERT_EQ(got.size(), rows[i].want.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
      const double want = rows[i].want[k];
      if (std::isinf(want)) {
        EXPECT_EQ(got[k], want) << rows[i].what << ", element " << k;
        continue;
      }
      EXPECT_NEAR(got[k], want, 1e-6) << rows[i].what << ", element " << k;
    }
  }
}

TEST_P(Points, GradientsAdd) {
  Tensor x = leaf({1, 2});
  EXPECT_FALSE(x.grad().is_defined());
  (x * x).sum().backward();
  (x * 3).sum().backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{5, 7}));
  x.set_grad({});
  EXPECT_FALSE(x.grad().is_defined());
}

TEST_P(Points, ALossMayBeReadFirst) {
  const Tensor x = leaf({1, 2});
  Tensor loss = (x * x).sum();
  EXPECT_EQ(loss.item<double>(), 5);
  loss.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{2, 4}));
}

TEST_P(Points, AGivenSeed) {
  const Tensor x = leaf({1, 2, 3});
  Tensor y = x * x;
  y.backward(Tensor({1.0, 0.0, -1.0}));
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{2, 0, -6}));
}

TEST_P(Points, RetainedGraphsRunAgain) {
  const Tensor x = leaf({1, 2});
  Tensor y = (x * x).sum();
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{4, 8}));
  EXPECT_THROW(y.backward(), GradientError);
}

TEST_P(Points, NoHistoryUnderNoGradAndAfterDetach) {
  const Tensor x = leaf({1, 2});
  const Tensor cut = (x * x).detach();
  EXPECT_FALSE(cut.requires_grad());
  Tensor y = (cut * x).sum();
  y.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{1, 4}));
  {
    const NoGrad off;
    EXPECT_FALSE((x * 2).requires_grad());
  }
  EXPECT_TRUE((x * 2).requires_grad());
}

// The graph was built on the value of before: the gradient is that one's, for the same handle.
TEST_P(Points, AParameterWrittenSince) {
  Tensor x = leaf({1, 2});
  Tensor y = (x * 3).sum();
  {
    const NoGrad off;
    x.assign(7);
  }
  y.backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{3, 3}));
  (x * x).sum().backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{17, 17}));
}

TEST_P(Points, WhatIsNotReachedHasZeroGradient) {
  const Tensor x = leaf({1}), y = leaf({2, 3});
  const auto g = gradient({(x * 2).sum()}, {x, y});
  EXPECT_EQ(g[0].to_vector<double>(), (Doubles{2}));
  EXPECT_EQ(g[1].to_vector<double>(), (Doubles{0, 0}));
}

TEST_P(Points, ThirdDerivative) {
  const Tensor x = leaf({2, 3});
  const Tensor y = (x * x * x * x).sum();
  const Tensor first = gradient({y}, {x})[0], second = gradient({first.sum()}, {x})[0],
               third = gradient({second.sum()}, {x})[0];
  EXPECT_EQ(third.to_vector<double>(), (Doubles{48, 72}));
}

TEST_P(Points, IntegersAndBoolsOnTheWay) {
  const Tensor x = leaf({1.5, -2});
  const Tensor y = x * (0 < x).cast(DType::float64) + x.cast(DType::int32).cast(DType::float64);
  EXPECT_EQ(gradient({y.sum()}, {x})[0].to_vector<double>(), (Doubles{1, 0}));
}

TEST_P(Points, WritingOverWhatIsNeededThrows) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 3;
  Tensor loss = (y * y).sum();
  const int wrote = __LINE__ + 1;
  y += 1;
  int called = 0;
  try {
    called = __LINE__ + 1;
    loss.backward();
    FAIL() << "the old value is gone";
  } catch (const GradientError& e) {
    EXPECT_EQ(e.what(),
              "backward: it needs the value of a tensor of shape (2,) that was "
              "overwritten in place at autograd_test.cpp:" +
                  std::to_string(wrote) + "; backward was called at autograd_test.cpp:" +
                  std::to_string(called) + "; call backward before writing, or write to a copy");
  }
}

TEST_P(Points, WritingOverWhatIsNotNeededIsFine) {
  const Tensor x = leaf({1, 2});
  Tensor y = x * 3;
  Tensor loss = (y + 1).sum();
  y *= 5;
  loss.backward({}, true);
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{3, 3}));
  Tensor after = y.sum();
  EXPECT_EQ(gradient({after}, {x})[0].to_vector<double>(), (Doubles{15, 15}));
}

TEST_P(Points, AParameterIsWrittenUnderNoGrad) {
  Tensor x = leaf({1, 2});
  EXPECT_THROW(x += 1, GradientError);
  EXPECT_THROW(x(0) = 1, GradientError);
  {
    const NoGrad off;
    x -= 0.5;
    x(1) = 7;
  }
  EXPECT_TRUE(x.requires_grad());
  (x * x).sum().backward();
  EXPECT_EQ(x.grad().to_vector<double>(), (Doubles{1, 14}));
}

}  // namespace
}  // namespace mote::testing
