// Writes in place: whatever order the kernels run in, the result is that of running each call when
// it is made. Every program runs on REF too, call by call.
#include <gtest/gtest.h>

#include "schedule/cases.h"

namespace mote::cases {
namespace {

using Values = std::vector<std::vector<float>>;
using Program = std::function<Tensors(const std::function<void(const Tensor&)>& eager)>;

// On REF each tensor that is handed to `eager` is realized at once, elsewhere at the end together.
Values run(const std::string& device, const Program& program) {
  set_default_device(device);
  const bool reference = device == "REF";
  const Tensors roots = program([&](const Tensor& t) {
    if (reference) realize({t});
  });
  realize(roots);
  Values out;
  for (const Tensor& t : roots) out.push_back(t.to_vector<float>());
  return out;
}

class Hazards : public testing::TestWithParam<std::string> {
 protected:
  void expect_eager(const Program& program) {
    const Values want = run("REF", program), got = run(GetParam(), program);
    EXPECT_EQ(got, want);
  }
};

Tensor numbers(std::int64_t n, float start = 0) {
  std::vector<float> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(start + static_cast<float>(i));
  return Tensor(v, {n});
}

TEST_P(Hazards, SwapOfTwoHalves) {
  expect_eager([](auto eager) {
    Tensor x = numbers(8);
    const Tensor low = x(Slice(0, 4)), high = x(Slice(4, {}));
    x(Slice(0, 4)) = high;
    eager(x);
    x(Slice(4, {})) = low;
    eager(x);
    return Tensors{x};
  });
}

TEST_P(Hazards, SwapOfTwoTensors) {
  expect_eager([](auto) {
    Tensor a = numbers(8), b = (numbers(8, 50) * 1).contiguous().realize();
    const Tensor old_a = a + 0, old_b = b.detach();
    a.assign(old_b);
    b.assign(old_a);
    return Tensors{a, b};
  });
}

TEST_P(Hazards, SwapOfThreeTensors) {
  expect_eager([](auto) {
    Tensor a = numbers(6), b = numbers(6, 10), c = numbers(6, 20);
    const Tensor old_a = a + 0, old_b = b + 0, old_c = c + 0;
    a.assign(old_b);
    b.assign(old_c);
    c.assign(old_a);
    return Tensors{a, b, c};
  });
}

TEST_P(Hazards, OverlappingParts) {
  expect_eager([](auto eager) {
    Tensor x = numbers(9);
    x(Slice(1, {})) = x(Slice(0, 8));  // one to the right
    eager(x);
    Tensor y = numbers(9);
    y(Slice(0, 8)) = y(Slice(1, {}));  // one to the left
    eager(y);
    Tensor z = numbers(9);
    z(Slice({}, {}, 2)) = z(Slice(0, 5)) * 10;
    eager(z);
    Tensor w = numbers(9);
    w(Slice(2, 7)) += w(Slice(0, 5)).flip({0});
    eager(w);
    return Tensors{x, y, z, w};
  });
}

TEST_P(Hazards, ReadBeforeAndAfter) {
  expect_eager([](auto eager) {
    Tensor x = numbers(6);
    const Tensor before = x * 2;
    eager(before);
    x += 100;
    eager(x);
    const Tensor between = x.flip({0}) * 3;
    eager(between);
    x(Slice(0, 3)) = before(Slice(3, {}));
    eager(x);
    const Tensor after = x.sum();
    return Tensors{before, between, after, x};
  });
}

TEST_P(Hazards, Diamond) {  // two readers of the old value, both feed the new one
  expect_eager([](auto) {
    Tensor x = numbers(6, 1);
    const Tensor left = x.flip({0}) + 1, right = x.cumsum() * 2;
    x.assign(left * right + x);
    return Tensors{x, left, right, x.max()};
  });
}

TEST_P(Hazards, DiamondOfWrites) {  // both writes read what the other overwrites
  expect_eager([](auto) {
    Tensor a = numbers(6, 1), b = numbers(6, 7);
    const Tensor total = a.flip({0}) + b, difference = a - b.flip({0});
    a.assign(total);
    b.assign(difference + total.sum());
    return Tensors{a, b, total};
  });
}

TEST_P(Hazards, ManyPartsOfOneTensor) {
  expect_eager([](auto eager) {
    Tensor x = numbers(12);
    for (int i = 0; i < 6; ++i) {
      x(Slice(i, i + 6)) = x(Slice(5 - i, 11 - i)) + i;
      eager(x);
    }
    return Tensors{x};
  });
}

TEST_P(Hazards, RowsAndColumns) {
  expect_eager([](auto eager) {
    Tensor x = numbers(16).reshape({4, 4}).contiguous();
    x(1) = x(Slice(), 2);
    eager(x);
    x(Slice(), 0) += x(3);
    eager(x);
    x.assign(x.t());
    eager(x);
    x += x.t().flip({0});
    eager(x);
    return Tensors{x};
  });
}

TEST_P(Hazards, ScatterOntoItsOwnIndex) {
  expect_eager([](auto eager) {
    const Tensor at = Tensor({2, 0, 1, 3}).cast(DType::int64);
    Tensor x = numbers(4);
    x(at) = x.flip({0});
    eager(x);
    x(at) += x;
    eager(x);
    return Tensors{x, x(at)};
  });
}

TEST_P(Hazards, SizesZeroAndOne) {
  expect_eager([](auto eager) {
    Tensor x = numbers(1);
    x += x.flip({0});
    eager(x);
    Tensor none = numbers(4);
    none(Slice(2, 2)) = none(Slice(0, 0));
    eager(none);
    return Tensors{x, none};
  });
}

// An optimizer's step: the new weight is read by nobody, the old one by the gradient alone.
TEST_P(Hazards, StepsThatAreNotRealized) {
  expect_eager([](auto eager) {
    Tensor w = numbers(6, 1), m = Tensor::zeros({6}).contiguous().realize();
    for (int i = 0; i < 4; ++i) {
      const Tensor g = w * w.flip({0}) / 100;
      m.assign(m * 0.5 + g);
      eager(m);
      w.assign(w - m * 0.25);
      eager(w);
    }
    return Tensors{w, m};
  });
}

// History survives a write that goes through a temporary, also where it is realized under NoGrad.
TEST_P(Hazards, GradientThroughATemporary) {
  expect_eager([](auto) {
    const Tensor w = numbers(4, 1).set_requires_grad();
    Tensor x = numbers(4) * 1;
    x.realize();
    x.assign(w * x.flip({0}));
    {
      const NoGrad off;
      x.realize();
    }
    (x * numbers(4, 2)).sum().backward();
    return Tensors{w.grad(), x};
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, Hazards, testing::ValuesIn(devices_that_run()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace mote::cases
