#include "mote/bench.h"

#include <mote/mote.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "mote/digits.h"

namespace bench {
namespace {

using namespace mote;

// What one run of a case is. `step` does one iteration and ends with its result realized. The rate
// is of `flop`, of `bytes` (the least that must cross memory) or of `items`, by the unit.
struct Case {
  std::function<Tensor()> step;
  std::string unit;
  double amount = 0;
  std::function<int()> kernels;  // launched by one replay
};

// jit replays the kernels of f from its third call on.
template <class F>
Case replayed(F f, std::string unit, double amount) {
  auto replay = std::make_shared<Jit<F>>(jit(std::move(f)));
  return {[replay] { return (*replay)().realize(); }, std::move(unit), amount,
          [replay] { return replay->kernels(); }};
}

Tensor random(std::initializer_list<std::int64_t> shape) { return Tensor::randn(shape).realize(); }

Case product(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb) {
  const auto operand = [&](std::int64_t rows, std::int64_t columns) {
    return batch > 1 ? random({batch, rows, columns}) : random({rows, columns});
  };
  const Tensor a = ta ? operand(k, m) : operand(m, k), b = tb ? operand(n, k) : operand(k, n);
  return replayed(
      [=] { return matmul(ta ? a.transpose(-1, -2) : a, tb ? b.transpose(-1, -2) : b); }, "GFLOP/s",
      2e-9 * static_cast<double>(batch * m * n * k));
}

struct Conv {
  std::int64_t n, c, h, w, k, r, stride, pad, groups;
  std::int64_t out(std::int64_t size) const { return (size + 2 * pad - r) / stride + 1; }
  double flop() const {
    return 2.0 * static_cast<double>(n * k * out(h) * out(w) * (c / groups) * r * r);
  }
  double bytes() const {
    return 4.0 *
           static_cast<double>(n * c * h * w + n * k * out(h) * out(w) + k * (c / groups) * r * r);
  }
};

constexpr Conv conv3x3{32, 64, 56, 56, 64, 3, 1, 1, 1}, conv7x7{1, 3, 224, 224, 64, 7, 2, 3, 1},
    conv1x1{8, 64, 56, 56, 256, 1, 1, 0, 1}, depthwise{32, 128, 56, 56, 128, 3, 1, 1, 128},
    depthwise_1{1, 128, 56, 56, 128, 3, 1, 1, 128};

Case convolution(const Conv& v) {
  const Tensor x = random({v.n, v.c, v.h, v.w}), w = random({v.k, v.c / v.groups, v.r, v.r});
  const auto f = [=] { return x.conv2d(w, {}, v.stride, v.pad, 1, v.groups); };
  return v.groups == 1 ? replayed(f, "GFLOP/s", v.flop() * 1e-9)
                       : replayed(f, "GB/s", v.bytes() * 1e-9);
}

// The gradient of the input or of the weight alone.
Case convolution_gradient(const Conv& v, bool of_weight) {
  const Tensor x = random({v.n, v.c, v.h, v.w}), w = random({v.k, v.c / v.groups, v.r, v.r});
  const Tensor dy = random({v.n, v.k, v.out(v.h), v.out(v.w)});
  return replayed(
      [=] {
        Tensor a = x.detach().set_requires_grad(!of_weight),
               b = w.detach().set_requires_grad(of_weight);
        const Tensor y = a.conv2d(b, {}, v.stride, v.pad, 1, v.groups);
        return gradient({(y * dy).sum()}, {of_weight ? b : a})[0];
      },
      "GFLOP/s", v.flop() * 1e-9);
}

Case matvec(DType t, bool transposed) {
  constexpr std::int64_t n = 4096;
  const Tensor a = random({n, n}).cast(t).realize(), x = random({n});
  const double bytes = static_cast<double>(n * n) * size_of(t) * 1e-9;
  if (transposed) return replayed([=] { return matmul(x, a); }, "GB/s", bytes);
  return replayed([=] { return matmul(a.cast(DType::float32), x); }, "GB/s", bytes);
}

Case digits_step(std::int64_t batch) {
  struct State {
    explicit State(std::int64_t n)
        : opt(net.parameters(), 1e-3),
          x(Tensor::rand({n, 1, 28, 28}).realize()),
          y(Tensor::randint(0, 10, {n}).realize()) {}
    digits::Net net;
    optim::Adam opt;
    Tensor x, y;
  };
  auto s = std::make_shared<State>(batch);
  return replayed(
      [s] {
        const Training on;
        s->opt.zero_grad();
        Tensor loss = cross_entropy(s->net(s->x), s->y);
        loss.backward();
        s->opt.step();
        return loss;
      },
      "steps/s", 1);
}

struct Mlp : nn::Module {
  nn::Linear a{784, 512}, b{512, 512}, c{512, 10};
  MOTE_MODULE(Mlp, a, b, c)
  Tensor forward(const Tensor& x) const { return c(b(a(x).relu()).relu()); }
};

Case mlp_step(std::int64_t batch) {
  struct State {
    explicit State(std::int64_t n)
        : opt(net.parameters(), 0.01),
          x(Tensor::rand({n, 784}).realize()),
          y(Tensor::randint(0, 10, {n}).realize()) {}
    Mlp net;
    optim::SGD opt;
    Tensor x, y;
  };
  auto s = std::make_shared<State>(batch);
  return replayed(
      [s] {
        s->opt.zero_grad();
        Tensor loss = cross_entropy(s->net(s->x), s->y);
        loss.backward();
        s->opt.step();
        return loss;
      },
      "steps/s", 1);
}

using Maker = std::function<Case(const Options&)>;

const std::map<std::string, Maker>& makers() {
  constexpr double mega = 1 << 20;
  static const std::map<std::string, Maker> all{
      {"matmul", [](const Options& o) { return product(1, o.n, o.n, o.n, false, false); }},
      {"matmul-odd", [](auto&) { return product(1, 1000, 1000, 1000, false, false); }},
      {"matmul-tn", [](auto&) { return product(1, 1024, 1024, 1024, true, false); }},
      {"matmul-nt", [](auto&) { return product(1, 1024, 1024, 1024, false, true); }},
      {"matmul-thin", [](auto&) { return product(1, 512, 10, 784, false, false); }},
      {"matmul-wide", [](auto&) { return product(1, 512, 784, 10, false, false); }},
      {"bmm", [](auto&) { return product(64, 64, 64, 64, false, false); }},
      {"matvec", [](auto&) { return matvec(DType::float32, false); }},
      {"matvec-t", [](auto&) { return matvec(DType::float32, true); }},
      {"matvec-f16", [](auto&) { return matvec(DType::float16, false); }},
      {"matvec-bf16", [](auto&) { return matvec(DType::bfloat16, false); }},
      {"conv3x3", [](auto&) { return convolution(conv3x3); }},
      {"conv7x7", [](auto&) { return convolution(conv7x7); }},
      {"conv1x1", [](auto&) { return convolution(conv1x1); }},
      {"dwconv3x3", [](auto&) { return convolution(depthwise); }},
      {"dwconv3x3-n1", [](auto&) { return convolution(depthwise_1); }},
      {"conv3x3-bwd-w", [](auto&) { return convolution_gradient(conv3x3, true); }},
      {"conv3x3-bwd-x", [](auto&) { return convolution_gradient(conv3x3, false); }},
      {"attention",
       [](auto&) {
         const Tensor q = random({1, 8, 1024, 64}), k = random({1, 8, 1024, 64}),
                      v = random({1, 8, 1024, 64});
         return replayed([=] { return q.scaled_dot_product_attention(k, v); }, "GFLOP/s",
                         4e-9 * 8 * 1024 * 1024 * 64);
       }},
      {"chain",
       [](auto&) {
         const Tensor a = random({4096, 4096}), b = random({4096, 4096}), c = random({4096, 4096});
         return replayed([=] { return (a * b + c).relu().exp().sum(-1); }, "GB/s",
                         4e-9 * (3.0 * 4096 * 4096 + 4096));
       }},
      {"softmax",
       [](auto&) {
         const Tensor a = random({4096, 4096});
         return replayed([=] { return a.softmax(-1); }, "GB/s", 8e-9 * 4096 * 4096);
       }},
      {"layernorm",
       [](auto&) {
         const nn::LayerNorm norm({1024});
         const Tensor a = random({4096, 1024});
         return replayed([=] { return norm(a).detach(); }, "GB/s", 8e-9 * 4096 * 1024);
       }},
      {"sum",
       [=](auto&) {
         const Tensor a = random({16 << 20});
         return replayed([=] { return a.sum(); }, "GB/s", 4e-9 * 16 * mega);
       }},
      {"transpose",
       [](auto&) {
         const Tensor a = random({4096, 4096});
         return replayed([=] { return a.transpose(0, 1).contiguous(); }, "GB/s",
                         8e-9 * 4096 * 4096);
       }},
      {"mnist", [](auto&) { return digits_step(512); }},
      {"mlp", [](auto&) { return mlp_step(128); }},
  };
  return all;
}

double seconds_of(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double milliseconds(double seconds) { return std::round(seconds * 1e7) / 1e4; }

double median(std::vector<double> all) {
  std::ranges::sort(all);
  const std::size_t half = all.size() / 2;
  return all.size() % 2 ? all[half] : (all[half - 1] + all[half]) / 2;
}

double peak_megabytes() {
  rusage r{};
  getrusage(RUSAGE_SELF, &r);
  return std::round(static_cast<double>(r.ru_maxrss) / 102.4) / 10;
}

}  // namespace

const std::vector<std::string>& cases() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& [name, maker] : makers()) out.push_back(name);
    return out;
  }();
  return names;
}

std::string run(const std::string& name, const Options& o) {
  const auto at = makers().find(name);
  if (at == makers().end())
    throw ValueError(cat("there is no case '", name, "'; known: ", join(cases())));
  if (!o.device.empty()) set_default_device(o.device);
  set_threads(o.threads);
  manual_seed(0);
  const Case c = at->second(o);
  std::vector<double> wall, cpu;
  std::array<double, 2> first{};
  double end = 0;
  for (int i = 0; i < 8 || (seconds_of(CLOCK_MONOTONIC) < end && i < 2003); ++i) {
    if (i == 3) end = seconds_of(CLOCK_MONOTONIC) + o.seconds;
    const double w = seconds_of(CLOCK_MONOTONIC), p = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    c.step();
    const double took = seconds_of(CLOCK_MONOTONIC) - w;
    if (i < 2) first[static_cast<std::size_t>(i)] = took;
    if (i < 3) continue;
    wall.push_back(took);
    cpu.push_back(seconds_of(CLOCK_PROCESS_CPUTIME_ID) - p);
  }
  const double best = *std::ranges::min_element(wall), middle = median(wall),
               middle_cpu = median(cpu), best_cpu = *std::ranges::min_element(cpu);
  const auto rate = [&](double seconds) { return std::round(c.amount / seconds * 100) / 100; };
  std::array<double, 1> load{};
  getloadavg(load.data(), 1);
  nlohmann::ordered_json line{
      {"peer", "mote"},
      {"case", name},
      {"threads", o.threads},
      {"device", default_device_name()},
      {"unit", c.unit},
      {"rate_median", rate(middle)},
      {"rate_best", rate(best)},
      {"rate_cpu", rate(middle_cpu)},
      {"first_ms", milliseconds(first[0])},
      {"second_ms", milliseconds(first[1])},
      {"iters", wall.size()},
      {"ms_median", milliseconds(middle)},
      {"ms_min", milliseconds(best)},
      {"cpu_ms_median", milliseconds(middle_cpu)},
      {"cpu_ms_min", milliseconds(best_cpu)},
      {"kernels", c.kernels()},
      {"rss_peak_mb", peak_megabytes()},
      {"load", std::round(load[0] * 10) / 10},
  };
  if (name == "matmul") line["n"] = o.n;
  if (o.json) return line.dump();
  return cat(name, ", ", o.threads, o.threads == 1 ? " thread: " : " threads: ", "best ",
             milliseconds(best), " ms (", rate(best), " ", c.unit, "), median ",
             milliseconds(middle), " ms; ", c.kernels(), " kernels; first ", milliseconds(first[0]),
             " ms");
}

}  // namespace bench
