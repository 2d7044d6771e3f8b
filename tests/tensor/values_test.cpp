// A view is a value, a Tensor is a handle, writing a part goes through the base.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "mote/mote.h"
#include "tensor/devices.h"

namespace mote::testing {
namespace {

using Floats = std::vector<float>;
const Slice all;

class Values : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { set_default_device(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, Values, ::testing::ValuesIn(computing_devices),
                         [](const auto& chosen) { return std::string(chosen.param); });

Floats of(const Tensor& t) { return t.to_vector<float>(); }

TEST_P(Values, ACopyOfAHandleSeesWrites) {
  Tensor a({1.f, 2.f}), b = a;
  a += 10;
  b(0) = 5;
  EXPECT_EQ(of(a), (Floats{5, 12}));
  EXPECT_EQ(of(b), of(a));
  EXPECT_TRUE(a.same(b));
}

TEST_P(Values, AViewIsAValue) {
  for (bool realized : {false, true}) {
    Tensor a{{1.f, 2.f}, {3.f, 4.f}};
    Tensor row = a(0), turned = a.t(), sum = a.sum();
    if (realized) realize({row, turned, sum});
    a(0) = 9;
    row += 100;
    EXPECT_EQ(of(row), (Floats{101, 102}));
    EXPECT_EQ(of(turned), (Floats{1, 3, 2, 4}));
    EXPECT_EQ(of(sum), (Floats{10}));
    EXPECT_EQ(of(a), (Floats{9, 9, 3, 4}));
  }
}

TEST_P(Values, APartThatIsKeptWritesThrough) {
  const Tensor a = Tensor::zeros({2, 3});
  auto p = a(0);
  p += 1;
  p += 1;
  EXPECT_EQ(of(p), (Floats{2, 2, 2}));
  EXPECT_EQ(of(a), (Floats{2, 2, 2, 0, 0, 0}));
  p = 5;
  EXPECT_EQ(of(p * 2), (Floats{10, 10, 10}));
  a(0, 1) = 7;  // p still reads its value of before, and adds to what is there now
  EXPECT_EQ(of(p), (Floats{5, 5, 5}));
  p -= 1;
  EXPECT_EQ(of(p), (Floats{4, 6, 4}));
  auto q = p;
  q = 1;
  EXPECT_EQ(of(a), (Floats{1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(of(p), of(q));
}

TEST_P(Values, EveryWayToWriteAPartReachesTheBase) {
  const Tensor a = Tensor::zeros({2, 3});
  a(1).assign(77);
  EXPECT_EQ(of(a), (Floats{0, 0, 0, 77, 77, 77}));
  a(0)(1) = 9;
  a(1)(Tensor({0, 2}))(1) += 1;
  EXPECT_EQ(of(a), (Floats{0, 9, 0, 77, 77, 78}));
  auto part = a(all, 0);
  Tensor& reference = part;
  reference += 1;
  reference.assign(reference * 2);
  EXPECT_EQ(of(a), (Floats{2, 9, 0, 156, 77, 78}));
  EXPECT_EQ(of(part), (Floats{2, 156}));
}

TEST_P(Values, ATensorMadeOfAPartIsAValue) {
  const Tensor a = Tensor::zeros({2, 2});
  std::vector<Tensor> rows;
  for (int i : {0, 1}) rows.push_back(a(i));
  auto part = a(0);
  const Tensor& reference = part;
  Tensor made = a(0), assigned, copied = reference;
  assigned = part;
  for (Tensor* t : {&rows[0], &rows[1], &made, &assigned, &copied}) *t += 1;
  EXPECT_EQ(of(a), (Floats{0, 0, 0, 0}));
  EXPECT_EQ(of(made), (Floats{1, 1}));
}

// NumPy: an integer stands among index tensors; where a slice parts them, the places come first.
TEST_P(Values, AnIntegerAndAnIndexTensorApart) {
  const Tensor x = Tensor::arange(24.0).reshape({2, 3, 4});
  const Tensor apart = x(1, all, Tensor({3, 0}));
  EXPECT_EQ(apart.shape(), (Dims{2, 3}));
  EXPECT_EQ(of(apart), (Floats{15, 19, 23, 12, 16, 20}));
  EXPECT_EQ(x(all, 1, Tensor({3, 0})).shape(), (Dims{2, 2}));
  x(1, all, Tensor({3, 0})) = Tensor{{1, 2, 3}, {4, 5, 6}};
  EXPECT_EQ(of(x(1)), (Floats{4, 13, 14, 1, 5, 17, 18, 2, 6, 21, 22, 3}));
}

TEST_P(Values, AResultKeepsTheValueOfBefore) {
  Tensor x({0.5f, 2.f, 8.f});
  const Tensor y = x * 2.0;
  x *= 3;
  x.realize();
  EXPECT_EQ(of(y), (Floats{1, 4, 16}));
  EXPECT_EQ(of(x), (Floats{1.5, 6, 24}));
}

// Two handles of one value, each written: realized together they may not share bytes.
TEST_P(Values, TwoWritesToOneValueAreTwoValues) {
  const Tensor x({1.f, 2.f, 3.f});
  const Tensor y = x.detach(), z = x.detach();
  y(0) = 10;
  z(1) = 20;
  realize({y, z});
  EXPECT_EQ(of(x), (Floats{1, 2, 3}));
  EXPECT_EQ(of(y), (Floats{10, 2, 3}));
  EXPECT_EQ(of(z), (Floats{1, 20, 3}));
}

TEST_P(Values, ScattersOfOneTarget) {
  const Tensor t = Tensor::zeros({3, 4}).contiguous().realize(), index({{0, 1}, {2, 3}});
  const Tensor ones = t.scatter(1, index, 1), twos = t.scatter(1, index, 2);
  realize({ones, twos});
  EXPECT_EQ(of(ones.sum()), (Floats{4}));
  EXPECT_EQ(of(twos.sum()), (Floats{8}));
  EXPECT_EQ(of(t.sum()), (Floats{0}));
}

TEST_P(Values, AnOverlappingSourceIsReadFirst) {
  const Tensor a = Tensor::arange(6.0).realize();
  a(Slice(1, {})) = a(Slice({}, -1));
  EXPECT_EQ(of(a), (Floats{0, 0, 1, 2, 3, 4}));
  a(Slice({}, {}, -1)) = a;
  EXPECT_EQ(of(a), (Floats{4, 3, 2, 1, 0, 0}));
  a(all) += a.flip({0});
  EXPECT_EQ(of(a), (Floats{4, 3, 3, 3, 3, 4}));
}

TEST_P(Values, ChainsOfWrites) {
  const Tensor a = Tensor::zeros({4}).contiguous().realize();
  std::vector<Tensor> seen;
  for (int i = 0; i < 4; ++i) {
    a(i) = i + 1;
    seen.push_back(a.sum());
  }
  realize(seen);
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(seen[static_cast<std::size_t>(i)].item<int>(), (i + 1) * (i + 2) / 2);
  EXPECT_EQ(of(a), (Floats{1, 2, 3, 4}));
}

TEST_P(Values, AssignKeepsShapeAndDtype) {
  Tensor a = Tensor::zeros({2, 3}, {.dtype = DType::int16}).contiguous();
  a.assign(Tensor({1.9f, -2.9f, 3.f}));
  EXPECT_EQ(a.dtype(), DType::int16);
  EXPECT_EQ(of(a), (Floats{1, -2, 3, 1, -2, 3}));
  a.assign(7);
  EXPECT_EQ(of(a), (Floats{7, 7, 7, 7, 7, 7}));
}

TEST_P(Values, BlobsAreShared) {
  float data[] = {1, 2, 3};
  const Tensor a = Tensor::from_blob(data, {3}, DType::float32);
  EXPECT_EQ(of(a + 1), (Floats{2, 3, 4}));
  data[1] = 20;
  EXPECT_EQ(of(a * 1.0), (Floats{1, 20, 3}));
}

TEST_P(Values, BytesAreThoseOfTheValue) {
  const Tensor m = Tensor::arange(6, {.dtype = DType::int16}).reshape({2, 3});
  const auto bytes = m.t().to_bytes();
  const std::vector<int> want{0, 0, 3, 0, 1, 0, 4, 0, 2, 0, 5, 0};
  ASSERT_EQ(bytes.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_EQ(std::to_integer<int>(bytes[i]), want[i]);
}

// What the host reads is what cast() gives.
TEST_P(Values, ReadingConvertsAsCastDoes) {
  EXPECT_TRUE(Tensor(0.5f).item<bool>());
  EXPECT_EQ(Tensor({0.f, 0.25f, NAN}).to_vector<bool>(), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(Tensor(std::int64_t{1} << 32).item<bool>(), true);
  const Tensor x({3e9f, -3e9f, 300.f, -1.5f, 1e30f, NAN, INFINITY, 255.f});
  EXPECT_EQ(x.to_vector<int>(), x.cast(DType::int32).to_vector<int>());
  EXPECT_EQ(x.to_vector<int>(), (std::vector<int>{0, 0, 300, -1, 0, 0, 0, 255}));
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(x.to_vector<std::uint8_t>(), (Bytes{0, 0, 44, 255, 0, 0, 0, 255}));
  EXPECT_EQ(x.to_vector<std::uint64_t>()[0], 3000000000u);
  EXPECT_EQ(Tensor(300).item<std::int8_t>(), 44);
}

TEST_P(Values, NumbersPast63Bits) {
  constexpr std::uint64_t high = std::uint64_t{1} << 63;
  const Tensor x({std::uint64_t{1}, std::uint64_t{2}});
  EXPECT_EQ((x + high).to_vector<std::uint64_t>(), (std::vector{high + 1, high + 2}));
  EXPECT_EQ((x * 0xffffffffffffffffu).to_vector<std::uint64_t>()[0], 0xffffffffffffffffu);
  EXPECT_EQ(Tensor::full({1}, high).dtype(), DType::uint64);
  EXPECT_EQ((Tensor({0.5f}) + high).item<float>(), 0x1p63f);
}

TEST_P(Values, IntegersOfAWideRange) {
  const std::int64_t low = -(std::int64_t{1} << 62), high = std::int64_t{1} << 62;
  int below = 0, far = 0;
  for (std::int64_t v : Tensor::randint(low, high, {64}).to_vector<std::int64_t>()) {
    EXPECT_TRUE(v >= low && v < high) << v;
    below += v < 0;
    far += std::abs(v) > high / 2;
  }
  EXPECT_TRUE(below > 8 && below < 56) << below;
  EXPECT_TRUE(far > 8 && far < 56) << far;
  for (int v : Tensor::randint(-128, 128, {64}, {.dtype = DType::int8}).to_vector<int>())
    EXPECT_TRUE(v >= -128 && v < 128) << v;
}

TEST_P(Values, AWeightBelowZeroIsNeverDrawn) {
  const Tensor w({-1.f, 0.f, 2.f, NAN, -INFINITY});
  EXPECT_EQ(w.multinomial(5, true).to_vector<int>(), (std::vector<int>{2, 2, 2, 2, 2}));
  EXPECT_EQ(w.multinomial(1).item<int>(), 2);
  for (int i : (w * 0 - 1).multinomial(4, true).to_vector<int>()) EXPECT_TRUE(i >= 0 && i < 5);
}

template <class T>
concept TensorsData = std::is_constructible_v<Tensor, const std::vector<T>&, Dims>;
static_assert(TensorsData<double> && !TensorsData<long double>);
static_assert(!std::is_constructible_v<Operand, long double>);

// A handle moves between devices as a value.
TEST(Copies, BetweenDevices) {
  for (const char* from : computing_devices) {
    for (const char* to : computing_devices) {
      set_default_device(from);
      const Tensor x = Tensor({1.f, 2.f, 3.f}) * 2;
      const Tensor there = x.to(to) + 1;
      EXPECT_EQ(there.device(), to);
      EXPECT_EQ(of(there), (Floats{3, 5, 7})) << from << " to " << to;
      EXPECT_EQ(of(there.to(from) * x), (Floats{6, 20, 42}));
    }
  }
}

}  // namespace
}  // namespace mote::testing
