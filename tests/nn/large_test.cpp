// Kernels that are large enough for tiles, packed panels, row blocks and turned matrices, on each
// device against REF: odd sizes, so that every remainder occurs. Small whole numbers keep sums of
// products exact in any order.
#include <gtest/gtest.h>

#include <mote/mote.h>

#include <cmath>
#include <functional>
#include <span>

#include "../tensor/devices.h"

namespace mote {
namespace {

using testing::compiling_devices;

// Whole numbers in -2..2, the same on every device.
Tensor whole(std::vector<std::int64_t> shape, DType t = DType::float32) {
  std::int64_t n = 1;
  for (std::int64_t s : shape) n *= s;
  std::vector<float> values;
  std::uint64_t state = 12345 + static_cast<std::uint64_t>(n);
  for (std::int64_t i = 0; i < n; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back(static_cast<float>(static_cast<int>((state >> 33) % 5) - 2));
  }
  return Tensor::from_bytes(std::as_bytes(std::span(values)), shape, DType::float32)
      .cast(t)
      .realize();
}

struct Case {
  const char* name;
  std::function<Tensor()> result;
  double tolerance = 0;  // of the largest value
};

Tensor gradient_of_convolution(bool of_weight, std::int64_t stride) {
  const Tensor x = whole({3, 6, 19, 23}).set_requires_grad(!of_weight),
               w = whole({17, 6, 3, 3}).set_requires_grad(of_weight);
  const Tensor y = x.conv2d(w, {}, stride, 1);
  return gradient({(y * whole(y.shape())).sum()}, {of_weight ? w : x})[0];
}

Tensor attention(bool causal) {
  const auto part = [](std::int64_t n) { return whole({2, 3, n, 24}) * 0.25; };
  return part(70).scaled_dot_product_attention(part(causal ? 70 : 90), part(causal ? 70 : 90), {},
                                               causal);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"matmul", [] { return matmul(whole({70, 130}), whole({130, 65})); }},
      {"matmul_of_long_rows", [] { return matmul(whole({9, 2100}), whole({2100, 37})).relu(); }},
      {"matmul_of_columns",
       [] { return matmul(whole({130, 70}).transpose(0, 1), whole({130, 65})); }},
      {"matmul_of_rows", [] { return matmul(whole({70, 130}), whole({65, 130}).transpose(0, 1)); }},
      {"matmul_float64",
       [] { return matmul(whole({50, 90}, DType::float64), whole({90, 41}, DType::float64)); }},
      {"matmul_of_computed",
       [] { return matmul(whole({64, 100}).relu(), whole({100, 48}).abs()); }},
      {"matmul_with_more",
       [] { return (matmul(whole({70, 130}), whole({130, 65})) + whole({65})).relu() * 2.0; }},
      {"batches", [] { return matmul(whole({5, 33, 40}), whole({5, 40, 29})); }},
      {"convolution",
       [] { return whole({3, 6, 19, 23}).conv2d(whole({17, 6, 3, 3}), whole({17}), 1, 1); }},
      {"convolution_by_two",
       [] { return whole({3, 6, 19, 23}).conv2d(whole({17, 6, 3, 3}), {}, 2, 1); }},
      {"convolution_of_groups",
       [] { return whole({3, 8, 19, 23}).conv2d(whole({16, 2, 3, 3}), {}, 1, 1, 1, 4); }},
      {"depthwise",
       [] { return whole({3, 8, 19, 23}).conv2d(whole({8, 1, 3, 3}), {}, 1, 1, 1, 8); }},
      {"convolution_of_points",
       [] { return whole({3, 24, 13, 11}).conv2d(whole({40, 24, 1, 1})); }},
      {"gradient_of_input", [] { return gradient_of_convolution(false, 1); }},
      {"gradient_of_weight", [] { return gradient_of_convolution(true, 1); }},
      {"gradient_of_input_by_two", [] { return gradient_of_convolution(false, 2); }},
      {"gradient_of_weight_by_two", [] { return gradient_of_convolution(true, 2); }},
      {"attention", [] { return attention(false); }, 1e-5},
      {"attention_causal", [] { return attention(true); }, 1e-5},
      {"softmax", [] { return whole({33, 1000}).softmax(-1); }, 1e-5},
      {"rows_and_columns", [] { return whole({700, 800}).sum(0) + whole({700, 800}).max(0); }},
      {"columns_with_more",
       [] { return (whole({700, 800}) * whole({700, 1})).sum(0).relu() + 1.0; }},
      {"turned", [] { return whole({130, 100}).transpose(0, 1).contiguous() * 2.0; }},
      {"turned_inside", [] { return whole({9, 70, 45}).permute({2, 0, 1}).contiguous() + 1.0; }},
      {"padded", [] { return whole({7, 30, 45}).pad({{0, 0}, {2, 3}, {1, 4}}) + 1.0; }},
      {"padded_float16",
       [] { return whole({7, 30, 45}, DType::float16).pad({{0, 0}, {2, 3}, {1, 4}}) + 1.0; }},
      {"padded_int8",
       [] { return whole({7, 30, 45}, DType::int8).pad({{0, 0}, {2, 3}, {1, 4}}) + 1; }},
      {"padded_bool", [] { return (whole({7, 30, 45}) > 0.0).pad({{0, 0}, {2, 3}, {1, 4}}); }},
      {"padded_float64",
       [] { return whole({7, 30, 45}, DType::float64).pad({{0, 0}, {2, 3}, {1, 4}}) + 1.0; }},
  };
  return all;
}

class Large : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Kernels, Large, ::testing::ValuesIn(cases()),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

TEST_P(Large, EqualsReference) {
  set_default_device("REF");
  const std::vector<double> want = GetParam().result().to_vector<double>();
  double largest = 0;
  for (double v : want) largest = std::max(largest, std::abs(v));
  EXPECT_GT(largest, 0);
  for (const char* device : compiling_devices) {
    set_default_device(device);
    const std::vector<double> got = GetParam().result().to_vector<double>();
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(got[i], want[i], GetParam().tolerance * largest) << device << ", element " << i;
  }
}

}  // namespace
}  // namespace mote
