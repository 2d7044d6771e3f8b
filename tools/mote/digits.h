// The convolutional network for the digits, and its training: what `mote train mnist` and the tests
// of the whole run.
#pragma once
#include <mote/mote.h>

#include <algorithm>
#include <functional>

namespace digits {

// 5x5 32, 5x5 32, batch norm, pool, 3x3 64, 3x3 64, batch norm, pool, linear 10.
struct Net : mote::nn::Module {
  mote::nn::Conv2d c1{1, 32, 5}, c2{32, 32, 5}, c3{32, 64, 3}, c4{64, 64, 3};
  mote::nn::BatchNorm b1{32}, b2{64};
  mote::nn::Linear l{576, 10};
  MOTE_MODULE(Net, c1, c2, b1, c3, c4, b2, l)
  mote::Tensor forward(const mote::Tensor& x) const {
    const mote::Tensor y = b1(c2(c1(x).relu()).relu()).max_pool2d(2);
    return l(b2(c4(c3(y).relu()).relu()).max_pool2d(2).flatten(1));
  }
};

struct Settings {
  int epochs = 2;
  std::int64_t batch = 512;
  double lr = 1e-3;
  std::uint64_t seed = 0;
};

struct Progress {
  int epoch;
  std::int64_t step, steps;  // of all epochs
  float loss;
};

inline mote::data::Dataset::Batches batches(const mote::data::Dataset& set, const Settings& s) {
  return set.batches(s.batch, {.epochs = s.epochs, .shuffle = true, .seed = s.seed});
}

// Trains and calls `each` after every step.
inline void train(Net& net, const mote::data::Dataset& set, const Settings& s,
                  const std::function<void(const Progress&)>& each) {
  mote::optim::Adam opt(net.parameters(), s.lr);
  const mote::Training on;
  auto step = mote::jit([&](mote::Tensor x, mote::Tensor y) {
    opt.zero_grad();
    mote::Tensor loss = mote::cross_entropy(net(x), y);
    loss.backward();
    opt.step();
    return loss;
  });
  const auto all = batches(set, s);
  const std::int64_t steps = all.count();
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto [x, y] = all.at(i);
    const float loss = step(x, y).item<float>();
    each({static_cast<int>(i * s.epochs / steps), i + 1, steps, loss});
  }
}

// The digit that the network sees in each picture.
inline std::vector<int> predictions(const Net& net, const mote::data::Dataset& set,
                                    std::int64_t batch = 500) {
  const mote::NoGrad off;
  auto answer = mote::jit([&](mote::Tensor x) { return net(x).argmax(1); });
  std::vector<int> out;
  for (std::int64_t begin = 0; begin < set.size(); begin += batch) {
    std::vector<std::int64_t> which;
    for (std::int64_t i = begin; i < std::min(begin + batch, set.size()); ++i) which.push_back(i);
    for (int digit : answer(set.pick(which).first).to_vector<int>()) out.push_back(digit);
  }
  return out;
}

inline double accuracy(const std::vector<int>& seen, const mote::data::Dataset& set) {
  std::int64_t right = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) right += seen[i] == set.labels()[i];
  return static_cast<double>(right) / static_cast<double>(std::max<std::size_t>(seen.size(), 1));
}

}  // namespace digits
