// Random chains of movement ops against brute force on plain arrays.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "shape/view.h"

namespace mote {
namespace {

// What a chain does to elements: each holds the index of its base element, or -1 in the padding.
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> at;
};

std::int64_t count(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (auto s : shape) n *= s;
  return n;
}

template <class F>  // source index of each index, or nullopt for padding
Array mapped(const Array& a, std::vector<std::int64_t> shape, F from) {
  Array out{shape, {}};
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::int64_t n = 0; n < count(shape); ++n) {
    std::int64_t rest = n;
    for (std::size_t i = shape.size(); i-- > 0;) {
      index[i] = rest % shape[i];
      rest /= shape[i];
    }
    const auto source = from(index);
    std::int64_t flat = source ? 0 : -1;
    for (std::size_t i = 0; source && i < a.shape.size(); ++i)
      flat = flat * a.shape[i] + (*source)[i];
    out.at.push_back(flat < 0 ? -1 : a.at[static_cast<std::size_t>(flat)]);
  }
  return out;
}

using Indices = std::vector<std::int64_t>;
using Source = std::optional<Indices>;

class Chain {
 public:
  explicit Chain(std::uint64_t seed) : random_(seed) {
    const int rank = pick(0, 3);
    for (int i = 0; i < rank; ++i) array_.shape.push_back(pick(pick(0, 9) == 0 ? 0 : 1, 4));
    for (std::int64_t i = 0; i < count(array_.shape); ++i) array_.at.push_back(i);
    tracker_ = ShapeTracker(Shape(array_.shape.begin(), array_.shape.end()));
  }

  void step() {
    switch (pick(0, 6)) {
      case 0: return reshape();
      case 1: return permute();
      case 2: return expand();
      case 3: return shrink();
      case 4: return pad();
      case 5: return flip();
      default: return windows();
    }
  }

  void check(std::uint64_t seed) const {
    ASSERT_EQ(tracker_.shape(), Shape(array_.shape.begin(), array_.shape.end())) << "seed " << seed;
    std::vector<Int> axes;
    for (std::size_t i = 0; i < array_.shape.size(); ++i)
      axes.emplace_back(
          variable("i" + std::to_string(i), 0, std::max<std::int64_t>(array_.shape[i] - 1, 0)));
    const Place place = tracker_.at(axes);
    for (std::int64_t n = 0; n < count(array_.shape); ++n) {
      std::unordered_map<Expr, std::int64_t> values;
      std::int64_t rest = n;
      for (std::size_t i = axes.size(); i-- > 0;) {
        if (!axes[i].is_constant()) values[axes[i].expr()] = rest % array_.shape[i];
        rest /= array_.shape[i];
      }
      const std::int64_t want = array_.at[static_cast<std::size_t>(n)];
      const bool valid = value(place.valid, values);
      ASSERT_EQ(valid, want >= 0) << "seed " << seed << " element " << n << "\n" << tracker_.text();
      if (!valid) continue;
      ASSERT_EQ(value(place.index, values), want) << "seed " << seed << "\n" << tracker_.text();
    }
  }
  std::size_t views() const { return tracker_.views().size(); }

 private:
  static std::int64_t value(const Expr& e, const std::unordered_map<Expr, std::int64_t>& values) {
    std::unordered_map<Expr, Scalar> done;
    for (const Expr& n : topological(e)) {
      if (const auto at = values.find(n); at != values.end()) {
        done.emplace(n, Scalar(DType::index, at->second));
        continue;
      }
      if (is_constant(n)) {
        done.emplace(n, scalar_of(n));
        continue;
      }
      std::vector<Scalar> src;
      for (const Expr& s : n->src) src.push_back(done.at(s));
      done.emplace(n, evaluate(n->op, n->dtype, src));
    }
    return done.at(e).as_int();
  }

  std::int64_t pick(std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(random_);
  }
  std::size_t rank() const { return array_.shape.size(); }

  void reshape() {
    std::int64_t n = count(array_.shape);
    std::vector<std::int64_t> shape;
    if (n == 0) shape = {pick(0, 1) ? pick(0, 3) : 0, 0};
    for (int i = 0; n > 0 && i < 3; ++i) {
      std::int64_t d = pick(1, 4);
      while (n % d) --d;
      shape.push_back(d);
      n /= d;
    }
    if (n > 0) shape.insert(shape.begin() + pick(0, 3), n);
    array_.shape = shape;
    tracker_ = tracker_.reshape(Shape(shape.begin(), shape.end()));
  }

  void permute() {
    std::vector<int> axes;
    for (std::size_t i = 0; i < rank(); ++i) axes.push_back(static_cast<int>(i));
    std::shuffle(axes.begin(), axes.end(), random_);
    std::vector<std::int64_t> shape;
    for (int a : axes) shape.push_back(array_.shape[static_cast<std::size_t>(a)]);
    array_ = mapped(array_, shape, [&](const Indices& i) {
      Indices from(i.size());
      for (std::size_t k = 0; k < i.size(); ++k) from[static_cast<std::size_t>(axes[k])] = i[k];
      return Source(from);
    });
    tracker_ = tracker_.permute(axes);
  }

  void expand() {
    std::vector<std::int64_t> shape = array_.shape;
    for (auto& s : shape)
      if (s == 1 && pick(0, 1)) s = pick(0, 5) == 0 ? 0 : pick(1, 4);
    const auto old = array_.shape;
    array_ = mapped(array_, shape, [&](const Indices& i) {
      Indices from = i;
      for (std::size_t k = 0; k < i.size(); ++k)
        if (old[k] == 1) from[k] = 0;
      return Source(from);
    });
    tracker_ = tracker_.expand(Shape(shape.begin(), shape.end()));
  }

  void shrink() {
    std::vector<Span> spans;
    std::vector<std::int64_t> shape, begin;
    for (auto s : array_.shape) {
      const auto b = pick(0, s), e = pick(0, 7) ? std::max(b, pick(b, s)) : b;
      spans.push_back({b, e});
      begin.push_back(b);
      shape.push_back(e - b);
    }
    array_ = mapped(array_, shape, [&](Indices i) {
      for (std::size_t k = 0; k < i.size(); ++k) i[k] += begin[k];
      return Source(i);
    });
    tracker_ = tracker_.shrink(spans);
  }

  void pad() {
    std::vector<std::pair<Int, Int>> padding;
    std::vector<std::int64_t> shape, before;
    const auto old = array_.shape;
    for (auto s : old) {
      const auto b = pick(0, 2), a = pick(0, 2);
      padding.emplace_back(b, a);
      before.push_back(b);
      shape.push_back(s + b + a);
    }
    if (count(shape) > 400) return;
    array_ = mapped(array_, shape, [&](Indices i) {
      for (std::size_t k = 0; k < i.size(); ++k) {
        i[k] -= before[k];
        if (i[k] < 0 || i[k] >= old[k]) return Source();
      }
      return Source(i);
    });
    tracker_ = tracker_.pad(padding);
  }

  void flip() {
    std::vector<int> axes;
    for (std::size_t i = 0; i < rank(); ++i)
      if (pick(0, 1)) axes.push_back(static_cast<int>(i));
    const auto old = array_.shape;
    array_ = mapped(array_, old, [&](Indices i) {
      for (int a : axes)
        i[static_cast<std::size_t>(a)] =
            old[static_cast<std::size_t>(a)] - 1 - i[static_cast<std::size_t>(a)];
      return Source(i);
    });
    tracker_ = tracker_.flip(axes);
  }

  void windows() {
    if (rank() == 0 || rank() > 3) return;
    const std::size_t n = static_cast<std::size_t>(pick(1, static_cast<std::int64_t>(rank())));
    const std::size_t first = rank() - n;
    std::vector<Window> sizes;
    std::vector<std::int64_t> shape = array_.shape, tail, step, dilation;
    for (std::size_t k = 0; k < n; ++k) {
      const auto s = pick(1, 3), t = pick(1, 2), d = pick(1, 2);
      if (d * (s - 1) + 1 > array_.shape[first + k]) return;
      sizes.push_back({s, t, d});
      shape[first + k] = (array_.shape[first + k] - d * (s - 1) - 1) / t + 1;
      tail.push_back(s);
      step.push_back(t);
      dilation.push_back(d);
    }
    shape.insert(shape.end(), tail.begin(), tail.end());
    if (count(shape) > 400) return;
    const std::size_t old = rank();
    array_ = mapped(array_, shape, [&](const Indices& i) {
      Indices from(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(old));
      for (std::size_t k = 0; k < n; ++k)
        from[first + k] = i[first + k] * step[k] + i[old + k] * dilation[k];
      return Source(from);
    });
    tracker_ = tracker_.windows(sizes);
  }

  std::mt19937_64 random_;
  Array array_;
  ShapeTracker tracker_;
};

TEST(Chains, AgreeWithBruteForce) {
  const char* count_text = std::getenv("MOTE_TEST_CHAINS");
  const int chains = count_text ? std::atoi(count_text) : 20000;
  std::size_t single = 0;
  for (int seed = 0; seed < chains && !testing::Test::HasFatalFailure(); ++seed) {
    Chain chain(static_cast<std::uint64_t>(seed));
    for (int i = 0; i < 8; ++i) chain.step();
    chain.check(static_cast<std::uint64_t>(seed));
    single += chain.views() == 1;
  }
  std::printf("%d chains, %zu are one View\n", chains, single);
}

TEST(Chains, WhatOneViewCanSayIsOneView) {
  const Shape shape{4, 6};
  const auto one = [](const ShapeTracker& t) { return t.views().size(); };
  const ShapeTracker t(shape);
  const std::vector<int> swapped{1, 0};
  EXPECT_EQ(one(t.reshape({24}).reshape({2, 2, 6})), 1u);
  EXPECT_EQ(one(t.permute(swapped).reshape({3, 2, 4})), 1u);
  EXPECT_EQ(one(t.permute(swapped).reshape({24})), 2u);
  const std::vector<std::pair<Int, Int>> pads{{1, 1}, {0, 0}};
  EXPECT_EQ(one(t.pad(pads).reshape({36})), 1u);
  EXPECT_EQ(one(t.pad(pads).reshape({36}).reshape({6, 6})), 1u);
  EXPECT_EQ(one(t.reshape({4, 1, 6}).expand({4, 5, 6}).reshape({4, 30})), 2u);
  EXPECT_EQ(t.reshape({24}).reshape({4, 6}), t);
}

}  // namespace
}  // namespace mote
