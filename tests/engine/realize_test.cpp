// Small graphs through the whole compiler, against REF.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/engine.h"
#include "ref/ref.h"

namespace mote {
namespace {

Lazy floats(std::vector<float> v, Shape shape, Device& d) {
  auto b = Buffer::make(d, static_cast<std::int64_t>(v.size()) * 4);
  b->write(v.data(), 0, static_cast<std::int64_t>(v.size()) * 4);
  return from_buffer(b, std::move(shape), DType::float32);
}

Lazy ramp(Shape shape, Device& d) {
  std::vector<float> v;
  const auto n = product(shape).value();
  for (std::int64_t i = 0; i < n; ++i) v.push_back(static_cast<float>((i * 37) % 101) / 50.f - 1.f);
  return floats(v, std::move(shape), d);
}

int check(std::vector<Lazy> roots, double tolerance = 1e-5) {
  for (Lazy& r : roots) r = contiguous(r);
  const auto want = reference(roots);
  reset_counters();
  realize(roots);
  const int kernels = static_cast<int>(counters().kernels);
  for (std::size_t i = 0; i < roots.size(); ++i) {
    const auto got = reference({&roots[i], 1})[0];
    for (std::size_t k = 0; k < got.size(); ++k) {
      const double a = got[k].as_double(), b = want[i][k].as_double();
      if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
      EXPECT_LE(std::abs(a - b), tolerance * (1 + std::abs(b)))
          << "root " << i << " element " << k << " " << a << " " << b;
      if (testing::Test::HasFailure()) return kernels;
    }
  }
  return kernels;
}

Lazy mul(const Lazy& a, const Lazy& b) { return elementwise(Op::mul, {a, b}); }
Lazy add(const Lazy& a, const Lazy& b) { return elementwise(Op::add, {a, b}); }

Lazy matmul(const Lazy& a, const Lazy& b) {
  const Int m = a->shape[0], k = a->shape[1], n = b->shape[1];
  const Lazy x = expand(reshape(a, {m, 1, k}), {m, n, k}),
             y = expand(reshape(permute(b, {1, 0}), {1, n, k}), {m, n, k});
  return reshape(reduce_lazy(Op::add, mul(x, y), {2}), {m, n});
}

Lazy softmax(const Lazy& x, int axis) {
  const Lazy m = expand(reduce_lazy(Op::max, x, {axis}), x->shape);
  const Lazy e = elementwise(Op::exp, {add(x, elementwise(Op::neg, {m}))});
  return elementwise(Op::div, {e, expand(reduce_lazy(Op::add, e, {axis}), x->shape)});
}

class Engine : public testing::TestWithParam<const char*> {
 protected:
  Device& device() { return device_named(GetParam()); }
};

TEST_P(Engine, Dot) {
  const Lazy a = ramp({100}, device()), b = ramp({100}, device());
  EXPECT_EQ(check({reduce_lazy(Op::add, mul(a, b), {0})}), 1);
}

TEST_P(Engine, ElementwiseChain) {
  Lazy x = ramp({7, 33}, device());
  for (int i = 0; i < 5; ++i) x = add(mul(x, x), x);
  EXPECT_EQ(check({x}), 1);
}

TEST_P(Engine, Views) {
  const Lazy x = ramp({6, 10}, device());
  check({permute(x, {1, 0})});
  check({flip(x, {0, 1})});
  check({elementwise(Op::exp, {pad(x, {{1, 2}, {0, 3}})})});
  check({pad(elementwise(Op::exp, {x}), {{1, 2}, {0, 3}})});
  check({reshape(permute(x, {1, 0}), {5, 12})});
}

TEST_P(Engine, Matmul) {
  for (int n : {1, 5, 8, 16, 33})
    check({matmul(ramp({7, n}, device()), ramp({n, n + 2}, device()))});
}

TEST_P(Engine, Softmax) {
  EXPECT_EQ(check({softmax(ramp({32, 40}, device()), 1)}), 1);
  check({softmax(ramp({32, 40}, device()), 0)});
}

TEST_P(Engine, Reduces) {
  const Lazy x = ramp({4, 5, 6}, device());
  for (Axes axes : {Axes{0}, Axes{1}, Axes{2}, Axes{0, 2}, Axes{0, 1, 2}})
    for (Op op : {Op::add, Op::max, Op::min, Op::mul}) check({reduce_lazy(op, x, axes)});
  check({reduce_lazy(Op::add, ramp({3000}, device()), {0})});
}

TEST_P(Engine, Windows) {
  const Lazy x = ramp({2, 9, 8}, device());
  const Lazy w = windows(x, {{3, 2, 1}, {2, 1, 2}});
  check({w});
  check({reduce_lazy(Op::max, w, {3, 4})});
}

TEST_P(Engine, ScanAndScatter) {
  const Lazy x = ramp({5, 7}, device());
  for (int axis : {0, 1})
    for (Op op : {Op::add, Op::max, Op::mul}) check({scan_lazy(op, x, axis)});
  const Lazy index = cast_lazy(elementwise(Op::mul, {floats({0, 1, 1, 2, 5, 4}, {6}, device()),
                                                     floats({1, 1, 1, 1, 1, 1}, {6}, device())}),
                               DType::int64);
  const Lazy wide = expand(reshape(index, {6, 1}), {6, 7});
  for (Op op : {Op::add, Op::store, Op::max})
    check({scatter(x, wide, ramp({6, 7}, device()), 0, op)});
}

TEST_P(Engine, ValuesOfAScan) {  // a scan is never computed inside of another kernel's store
  const Lazy x = ramp({5, 7}, device());
  for (int axis : {0, 1})
    check({elementwise(Op::exp, {add(scan_lazy(Op::add, mul(x, x), axis), x)})});
}

TEST_P(Engine, GatherWithoutLoop) {
  const Lazy table = ramp({50, 4}, device());
  const Lazy index = cast_lazy(floats({3, 49, 0}, {3}, device()), DType::int64);
  const Lazy at = expand(reshape(index, {3, 1, 1}), {3, 50, 4});
  const Lazy place = expand(reshape(iota(50, DType::int64, device()), {1, 50, 1}), {3, 50, 4});
  const Lazy rows = expand(reshape(table, {1, 50, 4}), {3, 50, 4});
  const Lazy zero = constant_lazy(Scalar(DType::float32, 0), {3, 50, 4}, device());
  const Lazy out = reduce_lazy(
      Op::add, elementwise(Op::where, {elementwise(Op::eq, {place, at}), rows, zero}), {1});
  EXPECT_EQ(check({out}), 1);
  EXPECT_LT(counters().operations, 100);
}

TEST_P(Engine, AssignInPlace) {
  const Lazy x = ramp({6, 6}, device());
  const Buffer* bytes = x->buffer.get();
  const Lazy doubled = assign(x, add(x, x));
  check({doubled});
  const Lazy turned = assign(doubled, add(doubled, permute(doubled, {1, 0})));
  const auto want = reference({&turned, 1})[0];
  realize(turned);
  EXPECT_EQ(turned->buffer.get(), bytes);
  const auto got = reference({&turned, 1})[0];
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], want[i]);
}

TEST_P(Engine, OldValueIsKept) {
  Lazy x = ramp({10}, device());
  const Lazy later = add(x, x);
  const auto want = reference({&later, 1})[0];
  const Lazy y = assign(x, mul(x, x));
  realize(y);
  x.reset();
  realize(later);
  const auto got = reference({&later, 1})[0];
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], want[i]);
}

// What keeps an old value is no temporary: the planner must leave its bytes alone.
TEST_P(Engine, OldValueIsKeptBesideTemporaries) {
  const Lazy x = ramp({64}, device());
  const Lazy later = add(x, x);
  const auto want = reference({&later, 1})[0];
  const Lazy y = assign(x, flip(mul(x, x), {0}));  // read at another place: through a temporary
  const Lazy z = contiguous(mul(contiguous(flip(y, {0})), contiguous(add(y, y))));
  const std::vector<Lazy> roots{y, z};
  const auto wanted = reference(roots);
  realize(roots);
  realize(later);
  EXPECT_EQ(reference({&later, 1})[0], want);
  EXPECT_EQ(reference(roots), wanted);
}

// An assign that is only part of a later one is a value: it must not write the bytes they share.
TEST_P(Engine, AssignBelowAnAssign) {
  const Lazy x = ramp({32, 32}, device());
  const Lazy first =
      assign(x, matmul(elementwise(Op::exp, {x}), x));  // heavy, with two readers: stored
  const Lazy second = assign(first, add(first, permute(first, {1, 0})));
  const Lazy turned = contiguous(add(permute(first, {1, 0}), x));
  const std::vector<Lazy> roots{second, turned};
  const auto want = reference(roots);
  realize(roots);
  const auto got = reference(roots);
  for (std::size_t r = 0; r < roots.size(); ++r)
    for (std::size_t i = 0; i < got[r].size(); ++i)
      ASSERT_NEAR(got[r][i].as_double(), want[r][i].as_double(),
                  1e-4 * (1 + std::abs(want[r][i].as_double())))
          << r;
}

TEST_P(Engine, DTypes) {
  const Lazy x = ramp({40}, device());
  const Lazy scaled = mul(x, constant_lazy(Scalar(DType::float32, 37), x->shape, device()));
  for (DType t :
       {DType::boolean, DType::int8, DType::uint8, DType::int16, DType::int32, DType::int64,
        DType::float16, DType::bfloat16, DType::float8_e4m3, DType::float8_e5m2, DType::float64}) {
    const Lazy y = cast_lazy(scaled, t);
    check({cast_lazy(t == DType::boolean ? y : add(y, y), DType::float32)}, 0);
  }
  for (Op op : {Op::idiv, Op::mod, Op::tdiv, Op::tmod, Op::shl, Op::shr}) {
    const Lazy a = cast_lazy(scaled, DType::int32), b = cast_lazy(flip(x, {0}), DType::int32);
    const Lazy c = add(b, cast_lazy(mul(scaled, scaled), DType::int32));
    check({cast_lazy(
              elementwise(op, {a, elementwise(Op::mod, {c, constant_lazy(Scalar(DType::int32, 7),
                                                                         c->shape, device())})}),
              DType::float32)},
          0);
  }
}

TEST_P(Engine, MathFunctions) {
  std::vector<float> v{0.f,  -0.f, 1e-30f, 0.5f, 1.f,     -1.f,     3.f,       -7.5f, 20.f,
                       88.f, 89.f, -104.f, 1e9f, -3.3e5f, INFINITY, -INFINITY, NAN,   1e-40f};
  const Lazy x = floats(v, {static_cast<std::int64_t>(v.size())}, device());
  for (Op op : {Op::exp, Op::log, Op::sin, Op::cos, Op::tanh, Op::erf, Op::sqrt, Op::trunc})
    check({elementwise(op, {x})}, 3e-7);
}

INSTANTIATE_TEST_SUITE_P(Devices, Engine, testing::Values("CPU", "CLANG"));

}  // namespace
}  // namespace mote
