// Gradients against central differences in float64, first and second ones, on every device (CLANG,
// whose compiler takes its time: every fourth row); the differences themselves are taken on REF.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tensor/devices.h"
#include "tensor/gradient_rows.h"
#include "testing.h"

namespace mote::testing {
namespace {

using Doubles = std::vector<double>;

std::int64_t count_of(const Dims& shape) {
  std::int64_t n = 1;
  for (std::int64_t s : shape) n *= s;
  return n;
}

// The same for every device: values spread over [low, high] in a random order, so that no two are
// near each other, with the seed in the name of the row.
std::vector<Doubles> values_of(const GradientRow& row, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::size_t total = 0;
  for (const Dims& s : row.shapes) total += static_cast<std::size_t>(count_of(s));
  Doubles spread(total);
  for (std::size_t i = 0; i < total; ++i) {
    const double at = (static_cast<double>(i) + 0.37) / static_cast<double>(total);
    spread[i] = row.low + (row.high - row.low) * at;
  }
  std::shuffle(spread.begin(), spread.end(), random);
  std::vector<Doubles> out;
  auto next = spread.begin();
  for (const Dims& s : row.shapes) {
    out.emplace_back(next, next + count_of(s));
    next += count_of(s);
  }
  return out;
}

Tensors tensors_of(const GradientRow& row, const std::vector<Doubles>& values, bool grad) {
  Tensors out;
  for (std::size_t i = 0; i < values.size(); ++i)
    out.push_back(Tensor(values[i], row.shapes[i], {.requires_grad = grad}));
  return out;
}

// A weighted sum: every element of the output counts differently.
Tensor weighed(const Tensor& y) {
  const Tensor w = (Tensor::arange(y.numel(), {.dtype = DType::float64}) * 1.3 + 0.4).sin() + 0.2;
  return (y * w.reshape(y.shape())).sum();
}

// What is differentiated: the loss, or a weighted sum of its gradient.
Tensor loss_of(const GradientRow& row, const Tensors& x, bool second) {
  const Tensor loss = weighed(row.run(x));
  if (!second) return loss;
  Tensor total;
  for (const Tensor& g : gradient({loss}, x)) {
    const Tensor part = weighed(g);
    total = total.is_defined() ? total + part : part;
  }
  return total;
}

// One slope for each element of each input, all evaluated together.
std::vector<Doubles> differences(const GradientRow& row, const std::vector<Doubles>& values,
                                 bool second) {
  constexpr double h = 1e-5;
  Tensors losses;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t k = 0; k < values[i].size(); ++k) {
      for (double step : {h, -h}) {
        std::vector<Doubles> moved = values;
        moved[i][k] += step;
        losses.push_back(loss_of(row, tensors_of(row, moved, second), second));
      }
    }
  }
  realize(losses);
  std::vector<Doubles> out;
  std::size_t at = 0;
  for (const Doubles& v : values) {
    out.emplace_back();
    for (std::size_t k = 0; k < v.size(); ++k, at += 2)
      out.back().push_back((losses[at].item<double>() - losses[at + 1].item<double>()) / (2 * h));
  }
  return out;
}

void expect_near(const Tensor& got, const Doubles& want, const std::string& what) {
  const Doubles g = got.to_vector<double>();
  ASSERT_EQ(g.size(), want.size()) << what;
  for (std::size_t k = 0; k < want.size(); ++k)
    EXPECT_NEAR(g[k], want[k], 1e-6 + 1e-6 * std::abs(want[k])) << what << ", element " << k;
}

void check_on(const char* device, const GradientRow& row, const std::vector<Doubles>& values,
              const std::vector<Doubles>& want, bool second) {
  SCOPED_TRACE(row.name + (second ? ", second derivative, on " : ", first derivative, on ") +
               device);
  set_default_device(device);
  try {
    const Tensors x = tensors_of(row, values, true);
    const Tensors got = gradient({loss_of(row, x, second)}, x);
    realize(got);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].shape(), x[i].shape());
      EXPECT_EQ(got[i].dtype(), x[i].dtype());
      expect_near(got[i], want[i], "by input " + std::to_string(i));
    }
  } catch (const Error& e) {
    ADD_FAILURE() << e.what();
  }
}

void check_rows(const std::vector<GradientRow>& rows, std::uint64_t seed) {
  int number = 0;
  for (const GradientRow& row : rows) {
    const bool compiled_by_clang = number++ % 4 == 0;
    const std::vector<Doubles> values = values_of(row, seed);
    for (bool second : {false, true}) {
      if (second && !row.twice) continue;
      set_default_device("REF");
      const auto want = differences(row, values, second);
      for (const char* device : computing_devices) {
        if (std::string_view(device) == "CLANG" && !compiled_by_clang) continue;
        check_on(device, row, values, want, second);
      }
    }
  }
}

TEST(Gradient, OfElementwise) {
  for (std::uint64_t seed : seeds(3)) check_rows(elementwise_gradients(), seed);
}
TEST(Gradient, OfReductionsMovementAndIndexing) {
  for (std::uint64_t seed : seeds(3)) check_rows(shape_gradients(), seed);
}
TEST(Gradient, OfProducts) {
  for (std::uint64_t seed : seeds(3)) check_rows(product_gradients(), seed);
}

}  // namespace
}  // namespace mote::testing
