// exp, log, sin, cos, tanh and erf of float32 on the devices that compile: at most 2 units in the
// last place from libm in long double, for values of every exponent and near the hard places.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numbers>

#include "mote/mote.h"
#include "tensor/devices.h"

namespace mote::testing {
namespace {

struct Function {
  const char* name;
  Tensor (Tensor::*run)(Where) const;
  long double (*right)(long double);
  float largest;  // magnitudes above are not promised
};
void PrintTo(const Function& f, std::ostream* out) { *out << f.name; }

const Function functions[] = {
    {"exp", &Tensor::exp, std::exp, INFINITY},    {"log", &Tensor::log, std::log, INFINITY},
    {"sin", &Tensor::sin, std::sin, 1e9f},        {"cos", &Tensor::cos, std::cos, 1e9f},
    {"tanh", &Tensor::tanh, std::tanh, INFINITY}, {"erf", &Tensor::erf, std::erf, INFINITY}};

// Every 4099th float of both signs; around 1; the floats next to multiples of pi / 2.
const std::vector<float>& sweep() {
  static const std::vector<float> all = [] {
    std::vector<float> x;
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4099)
      x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    for (int i = -100000; i < 100000; ++i) x.push_back(1 + static_cast<float>(i) * 0x1p-20f);
    for (int k = 1; k < 600000000; k += 1 + k / 1000) {
      const auto near = static_cast<float>(k * (std::numbers::pi / 2));
      x.insert(x.end(), {near, std::nextafter(near, 0.f), -near});
    }
    return x;
  }();
  return all;
}

// |got - want| in units of the last place of a float32 as large as want.
double ulps(float got, long double want) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : INFINITY;
  const auto rounded = static_cast<float>(want);
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : INFINITY;
  const int exponent = want == 0 ? -126 : std::max(std::ilogb(want), -126);
  return static_cast<double>(std::abs(got - want) / std::ldexp(1.0L, exponent - 23));
}

class Ulp : public ::testing::TestWithParam<std::tuple<const char*, Function>> {};

TEST_P(Ulp, AtMostTwo) {
  const auto& [device, f] = GetParam();
  set_default_device(device);
  const std::vector<float>& x = sweep();
  const Tensor in(x, {static_cast<std::int64_t>(x.size())});
  const auto got = (in.*f.run)(Where::here()).to_vector<float>();
  double worst = 0;
  float at = 0;
  int checked = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isfinite(x[i]) && std::abs(x[i]) > f.largest) continue;
    const double error = ulps(got[i], f.right(x[i]));
    ++checked;
    if (error <= worst) continue;
    worst = error;
    at = x[i];
  }
  EXPECT_LE(worst, 2) << "at " << at << " of " << checked << " values";
  EXPECT_GT(checked, 700000);
  RecordProperty("worst", std::to_string(worst));
}

// The same bits as libm rounded to float32.
TEST_P(Ulp, SpecialValues) {
  const auto& [device, f] = GetParam();
  set_default_device(device);
  const std::vector<float> x{0.f,  -0.f,   INFINITY, -INFINITY, NAN,     1.f,
                             -1.f, 1e-45f, -1e-45f,  1e-38f,    -1e-38f, 1.17549435e-38f};
  const Tensor in(x, {static_cast<std::int64_t>(x.size())});
  const auto got = (in.*f.run)(Where::here()).to_vector<float>();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto want = static_cast<float>(f.right(x[i]));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got[i])) << f.name << '(' << x[i] << ')';
      continue;
    }
    EXPECT_LE(ulps(got[i], want), 1) << f.name << '(' << x[i] << ") is " << got[i];
    EXPECT_EQ(std::signbit(got[i]), std::signbit(want)) << f.name << '(' << x[i] << ')';
    if (want == 0 || std::isinf(want)) {
      EXPECT_EQ(got[i], want) << f.name << '(' << x[i] << ')';
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Ulp,
                         ::testing::Combine(::testing::ValuesIn(compiling_devices),
                                            ::testing::ValuesIn(functions)),
                         [](const auto& chosen) {
                           return std::string(std::get<0>(chosen.param)) + "_" +
                                  std::get<1>(chosen.param).name;
                         });

}  // namespace
}  // namespace mote::testing
