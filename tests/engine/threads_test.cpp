// Eight threads build, realize and drop tensors that they share. Under thread sanitizer as well:
// `./dev build tsan test_engine`.
#include <gtest/gtest.h>

#include <mote/mote.h>

#include <thread>

namespace mote {
namespace {

class Threads : public ::testing::TestWithParam<const char*> {};

TEST_P(Threads, ShareTensors) {
  set_default_device(GetParam());
  constexpr int count = 8, rounds = 6;
  const Tensor base = Tensor::arange(64, {.dtype = DType::float32}).realize();
  const Tensor lazy = (base * 2.f + 1.f).sin();  // realized by whoever comes first
  std::vector<std::vector<float>> results(count);
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        Tensor mine = lazy + base * static_cast<float>(i % 3);
        const Tensor sum = (mine * base).sum();
        mine += sum / 1000.f;
        results[static_cast<std::size_t>(t)] = mine.to_vector<float>();
      }
    });
  for (std::thread& t : threads) t.join();
  for (const auto& r : results) EXPECT_EQ(r, results[0]);
}

TEST_P(Threads, TrainNetworksOfTheirOwn) {
  set_default_device(GetParam());
  std::vector<double> losses(8);
  std::vector<std::thread> threads;
  const Tensor x = Tensor::arange(24, {.dtype = DType::float32}).reshape({4, 6}).realize() / 24.f;
  for (std::size_t t = 0; t < losses.size(); ++t)
    threads.emplace_back([&, t] {
      Tensor w = Tensor::full({6, 3}, 0.1f);
      w.set_requires_grad(true);
      optim::SGD opt({w}, 0.1);
      for (int i = 0; i < 3; ++i) {
        opt.zero_grad();
        Tensor loss = matmul(x, w).square().mean();
        loss.backward();
        opt.step();
        losses[t] = loss.item<double>();
      }
    });
  for (std::thread& t : threads) t.join();
  for (double loss : losses) EXPECT_EQ(loss, losses[0]);
}

INSTANTIATE_TEST_SUITE_P(Devices, Threads, ::testing::Values("CPU", "CLANG"),
                         [](const auto& device) { return std::string(device.param); });

}  // namespace
}  // namespace mote
