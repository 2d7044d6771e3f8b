// Each optimizer against its formula written out in double, over twenty steps, plain and captured.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "engine/engine.h"
#include "mote/mote.h"
#include "tensor/devices.h"
#include "testing.h"

namespace mote::testing {
namespace {

using Doubles = std::vector<double>;
using optim::Optimizer;

constexpr int steps = 20;

// One parameter's formula: from (step from 1, value, gradient) to the next value.
using Formula = std::function<void(int t, Doubles& p, const Doubles& g)>;

struct Row {
  std::string name;
  std::function<std::unique_ptr<Optimizer>(std::vector<Tensor>)> make;
  std::function<Formula(std::size_t size)> formula;
};
void PrintTo(const Row& r, std::ostream* out) { *out << r.name; }

Row sgd(std::string name, optim::SGD::Options o) {
  return {"SGD_" + name,
          [o](std::vector<Tensor> p) { return std::make_unique<optim::SGD>(std::move(p), o); },
          [o](std::size_t size) {
            return [o, m = Doubles(size)](int t, Doubles& p, const Doubles& g) mutable {
              for (std::size_t i = 0; i < p.size(); ++i) {
                double d = g[i] + o.weight_decay * p[i];
                if (o.momentum != 0) {
                  m[i] = t == 1 ? d : o.momentum * m[i] + (1 - o.dampening) * d;
                  d = o.nesterov ? d + o.momentum * m[i] : m[i];
                }
                p[i] -= o.lr * d;
              }
            };
          }};
}

Row rmsprop(std::string name, optim::RMSprop::Options o) {
  return {"RMSprop_" + name,
          [o](std::vector<Tensor> p) { return std::make_unique<optim::RMSprop>(std::move(p), o); },
          [o](std::size_t size) {
            return [o, v = Doubles(size), mean = Doubles(size), m = Doubles(size)](
                       int, Doubles& p, const Doubles& g) mutable {
              for (std::size_t i = 0; i < p.size(); ++i) {
                const double d = g[i] + o.weight_decay * p[i];
                v[i] = o.alpha * v[i] + (1 - o.alpha) * d * d;
                mean[i] = o.alpha * mean[i] + (1 - o.alpha) * d;
                const double size_of_step = o.centered ? v[i] - mean[i] * mean[i] : v[i];
                double step = d / (std::sqrt(size_of_step) + o.eps);
                if (o.momentum != 0) step = m[i] = o.momentum * m[i] + step;
                p[i] -= o.lr * step;
              }
            };
          }};
}

template <class Kind>
Row adam(std::string name, optim::Adam::Options o, bool decoupled) {
  return {std::move(name),
          [o](std::vector<Tensor> p) { return std::make_unique<Kind>(std::move(p), o); },
          [o, decoupled](std::size_t size) {
            return [o, decoupled, m = Doubles(size), v = Doubles(size)](int t, Doubles& p,
                                                                        const Doubles& g) mutable {
              for (std::size_t i = 0; i < p.size(); ++i) {
                double d = g[i];
                if (decoupled) p[i] -= o.lr * o.weight_decay * p[i];
                else d += o.weight_decay * p[i];
                m[i] = o.beta1 * m[i] + (1 - o.beta1) * d;
                v[i] = o.beta2 * v[i] + (1 - o.beta2) * d * d;
                const double mean = m[i] / (1 - std::pow(o.beta1, t)),
                             square = v[i] / (1 - std::pow(o.beta2, t));
                p[i] -= o.lr * mean / (std::sqrt(square) + o.eps);
              }
            };
          }};
}

const Row rows[] = {
    sgd("plain", {.lr = 0.1}),
    sgd("decay", {.lr = 0.1, .weight_decay = 0.05}),
    sgd("momentum", {.lr = 0.05, .momentum = 0.9}),
    sgd("momentum_decay", {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1}),
    sgd("nesterov", {.lr = 0.05, .momentum = 0.8, .weight_decay = 0.01, .nesterov = true}),
    sgd("dampening", {.lr = 0.05, .momentum = 0.9, .dampening = 0.3}),
    rmsprop("plain", {.lr = 0.01}),
    rmsprop("alpha_eps", {.lr = 0.02, .alpha = 0.9, .eps = 1e-3}),
    rmsprop("centered", {.lr = 0.01, .alpha = 0.9, .eps = 1e-4, .centered = true}),
    rmsprop("momentum", {.lr = 0.01, .alpha = 0.95, .weight_decay = 0.02, .momentum = 0.7}),
    rmsprop("all", {.lr = 0.01, .alpha = 0.9, .eps = 1e-4, .momentum = 0.5, .centered = true}),
    adam<optim::Adam>("Adam", {.lr = 0.05}, false),
    adam<optim::Adam>("Adam_betas", {.lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-4}, false),
    adam<optim::Adam>("Adam_decay", {.lr = 0.02, .weight_decay = 0.1}, false),
    adam<optim::AdamW>("AdamW", {.lr = 0.02, .weight_decay = 0.1}, true),
    adam<optim::AdamW>("AdamW_betas",
                       {.lr = 0.05, .beta1 = 0.7, .beta2 = 0.9, .eps = 1e-6, .weight_decay = 0.3},
                       true),
};

const std::vector<Dims> shapes{{3, 4}, {5}, {}};

// loss = sum over parameters of sum(a * p^2 / 2 + sin(p) + x . p): gradient a p + cos(p) + x.
struct Problem {
  std::vector<Doubles> start, bend;
  std::vector<std::vector<Doubles>> push;  // by step and parameter
  explicit Problem(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> number(-1, 1);
    const auto draw = [&](std::vector<Doubles>& out) {
      for (const Dims& s : shapes) {
        Doubles v(static_cast<std::size_t>(s.empty() ? 1 : s.size() == 1 ? s[0] : s[0] * s[1]));
        for (double& x : v) x = static_cast<float>(number(random));
        out.push_back(v);
      }
    };
    draw(start);
    draw(bend);
    for (int t = 0; t < steps; ++t) draw(push.emplace_back());
  }
};

std::vector<Tensor> float_tensors(const std::vector<Doubles>& values, bool grad = false) {
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < values.size(); ++i)
    out.push_back(
        Tensor(values[i], shapes[i], {.dtype = DType::float32, .requires_grad = grad}).realize());
  return out;
}

std::vector<Doubles> wanted(const Row& row, const Problem& problem) {
  std::vector<Doubles> p = problem.start;
  std::vector<Formula> formulas;
  for (const Doubles& v : p) formulas.push_back(row.formula(v.size()));
  for (int t = 0; t < steps; ++t) {
    for (std::size_t k = 0; k < p.size(); ++k) {
      Doubles g(p[k].size());
      for (std::size_t i = 0; i < g.size(); ++i)
        g[i] = problem.bend[k][i] * p[k][i] + std::cos(p[k][i]) +
               problem.push[static_cast<std::size_t>(t)][k][i];
      formulas[k](t + 1, p[k], g);
    }
  }
  return p;
}

std::vector<Doubles> trained(const Row& row, const Problem& problem, bool captured) {
  const std::vector<Tensor> p = float_tensors(problem.start, true),
                            bend = float_tensors(problem.bend);
  const auto optimizer = row.make(p);
  const auto step = [&](const std::vector<Tensor>& push) {
    optimizer->zero_grad();
    Tensor loss;
    for (std::size_t k = 0; k < p.size(); ++k) {
      const Tensor mine = (bend[k] * p[k] * p[k] * 0.5 + p[k].sin() + push[k] * p[k]).sum();
      loss = loss.is_defined() ? loss + mine : mine;
    }
    loss.backward();
    optimizer->step();
    return loss;
  };
  auto recorded = jit(step);
  for (const auto& push : problem.push) {
    const auto inputs = float_tensors(push);
    const Tensor loss = captured ? recorded(inputs) : step(inputs);
    loss.item<float>();
  }
  std::vector<Doubles> out;
  for (const Tensor& t : p) out.push_back(t.to_vector<double>());
  return out;
}

class Optimizers : public ::testing::TestWithParam<std::tuple<const char*, Row>> {};

TEST_P(Optimizers, FollowTheirFormula) {
  const auto& [device, row] = GetParam();
  set_default_device(device);
  for (std::uint64_t seed : seeds(2)) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem(seed);
    const auto want = wanted(row, problem);
    for (bool captured : {false, true}) {
      if (captured && std::string(device) == "REF") continue;  // it launches nothing to record
      SCOPED_TRACE(captured ? "captured" : "plain");
      const auto got = trained(row, problem, captured);
      for (std::size_t k = 0; k < want.size(); ++k)
        for (std::size_t i = 0; i < want[k].size(); ++i)
          EXPECT_NEAR(got[k][i], want[k][i], 1e-5) << "parameter " << k << ", element " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Optimizers,
                         ::testing::Combine(::testing::ValuesIn(computing_devices),
                                            ::testing::ValuesIn(rows)),
                         [](const auto& chosen) {
                           return std::string(std::get<0>(chosen.param)) + "_" +
                                  std::get<1>(chosen.param).name;
                         });

// ---- what a step costs, and what it leaves

std::vector<Tensor> dozen() {
  std::vector<Tensor> p;
  for (std::int64_t i = 0; i < 12; ++i)
    p.push_back(Tensor::ones({8 + i, 16 + i}, {.requires_grad = true}));
  return p;
}

TEST(Step, OfAdamIsAtMostAKernelForEachParameter) {
  for (const char* device : {"NULL", "CLANG", "CPU"}) {
    set_default_device(device);
    std::vector<Tensor> p = dozen();
    optim::Adam adam(p, {.lr = 0.01, .weight_decay = 0.1});
    for (int t = 0; t < 3; ++t) {
      std::vector<Tensor> gradients;
      for (Tensor& x : p) {
        x.set_grad(Tensor::ones(x.shape()).contiguous().realize());
        gradients.push_back(x.grad());
      }
      reset_counters();
      adam.step();
      if (t == 0) continue;  // the state is born: zeros are written
      EXPECT_LE(counters().kernels, 12) << device << ", step " << t;
      EXPECT_GE(counters().kernels, 1);
    }
  }
}

TEST(Step, IsInPlace) {
  for (const char* device : compiling_devices) {
    set_default_device(device);
    const Tensor p = Tensor::ones({1000}, {.requires_grad = true}).realize();
    optim::Adam adam({p}, 0.01);
    const auto step = [&] {
      adam.zero_grad();
      (p * p).sum().backward();
      adam.step();
    };
    step();
    const Buffer* before = p.lazy()->buffer.get();
    step();
    step();
    EXPECT_EQ(p.lazy()->buffer.get(), before) << device;
  }
}

TEST(Step, LeavesParametersWithoutGradientAlone) {
  set_default_device("CPU");
  const Tensor a = Tensor::ones({2}, {.requires_grad = true}),
               b = Tensor::ones({2}, {.requires_grad = true});
  optim::Adam adam({a, b}, {.lr = 0.1, .weight_decay = 0.5});
  (a * 2).sum().backward();
  adam.step();
  EXPECT_NE(a.to_vector<float>()[0], 1);
  EXPECT_EQ(b.to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(a.grad().to_vector<float>(), (std::vector<float>{2, 2}));  // still readable
  EXPECT_TRUE(a.requires_grad());
}

TEST(Step, LearningRateMayChangeBetweenReplays) {
  for (const char* device : compiling_devices) {
    set_default_device(device);
    const Tensor p = Tensor::zeros({2}, {.requires_grad = true});
    optim::SGD sgd_({p}, 1.0);
    auto step = jit([&](const Tensor& x) {
      sgd_.zero_grad();
      Tensor loss = (p * x).sum();
      loss.backward();
      sgd_.step();
      return loss;
    });
    const Tensor x = Tensor({1.f, 2.f}).realize();
    for (int t = 0; t < 4; ++t) step(x);
    EXPECT_EQ(p.to_vector<float>(), (std::vector<float>{-4, -8})) << device;
    sgd_.set_lr(0.25);
    EXPECT_EQ(sgd_.lr(), 0.25);
    step(x);
    EXPECT_EQ(p.to_vector<float>(), (std::vector<float>{-4.25, -8.5})) << device;
  }
}

TEST(Step, OnAnotherDeviceThanTheDefault) {
  set_default_device("CPU");
  const Tensor p = Tensor::ones({3}, {.device = "CLANG", .requires_grad = true});
  optim::Adam adam({p}, 0.5);
  optim::SGD sgd_({p}, {.lr = 0.5, .momentum = 0.9, .dampening = 0.5});
  set_default_device("REF");
  (p * 2).sum().backward();
  adam.step();
  sgd_.step();
  for (float v : p.to_vector<float>()) EXPECT_NEAR(v, -0.5, 1e-5);
}

TEST(Step, OfFloat16AndFloat64Parameters) {
  for (const char* device : computing_devices) {
    set_default_device(device);
    for (DType t : {DType::float16, DType::bfloat16, DType::float64}) {
      const Tensor p = Tensor::ones({3}, {.dtype = t, .requires_grad = true});
      optim::AdamW adam({p}, {.lr = 0.5});
      (p * 2).sum().backward();
      adam.step();
      EXPECT_EQ(p.dtype(), t);
      for (double v : p.to_vector<double>()) EXPECT_NEAR(v, 0.5, 1e-2) << name_of(t);
    }
  }
}

}  // namespace
}  // namespace mote::testing
