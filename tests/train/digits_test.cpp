// The whole on real data: the network of `mote train mnist` learns 2,000 digits to 90 %, with the
// same bits for any number of threads.
#include <gtest/gtest.h>

#include "mote/digits.h"
#include "testing.h"

namespace mote {
namespace {

class Digits : public ::testing::TestWithParam<const char*> {};

TEST_P(Digits, TwoThousandAreEnoughForNinetyPercent) {
  set_default_device(GetParam());
  const auto [train, test] = data::mnist();
  manual_seed(1);
  digits::Net net;
  digits::Settings settings;
  settings.batch = 50;
  settings.epochs = 2;
  settings.lr = 2e-3;
  digits::train(net, train.first(2000), settings, [](const digits::Progress&) {});
  const data::Dataset part = test.first(1000);
  EXPECT_GE(digits::accuracy(digits::predictions(net, part), part), 0.9);
}

std::vector<std::uint8_t> weights_after(int threads, int steps) {
  const int before = mote::threads();
  set_threads(threads);
  const auto [train, test] = data::mnist();
  manual_seed(2);
  digits::Net net;
  digits::Settings settings;
  settings.batch = 20;
  settings.epochs = 1;
  digits::train(net, train.first(20 * steps), settings, [](const digits::Progress&) {});
  std::vector<std::uint8_t> out;
  for (const auto& [name, t] : net.state_dict()) {
    const auto bytes = t.to_bytes();
    for (auto b : bytes) out.push_back(static_cast<std::uint8_t>(b));
  }
  set_threads(before);
  return out;
}

TEST_P(Digits, SameBitsForAnyThreads) {
  set_default_device(GetParam());
  const auto one = weights_after(1, 4);
  for (int n : {2, 3}) EXPECT_EQ(weights_after(n, 4), one) << n << " threads";
}

INSTANTIATE_TEST_SUITE_P(Devices, Digits, ::testing::Values("CPU", "CLANG"),
                         [](const auto& device) { return std::string(device.param); });

}  // namespace
}  // namespace mote
