// Who owns what: a graph dies with its last owner, by a loop however deep it is, and leaves no node,
// buffer or expression behind.
#include <gtest/gtest.h>
#include <mote/mote.h>
#include <pthread.h>

#include "engine/engine.h"
#include "engine/launch.h"
#include "graph/gradient.h"
#include "graph/lazy_buffer.h"

namespace mote {
namespace {

Lazy zeros(std::int64_t n) {
  Device& device = device_named("REF");
  const auto buffer = Buffer::make(device, n * 4);
  const std::vector<float> values(static_cast<std::size_t>(n), 0.f);
  buffer->write(values.data(), 0, n * 4);
  return from_buffer(buffer, {n}, DType::float32);
}

// What exists now. Kernels that are kept for later own expressions; they are let go first.
struct Alive {
  std::int64_t nodes, buffers, expressions;
  bool operator==(const Alive&) const = default;
};

Alive alive() {
  clear_kernel_cache();
  return {LazyBuffer::alive(), Buffer::alive(), live_nodes()};
}

std::ostream& operator<<(std::ostream& out, const Alive& a) {
  return out << a.nodes << " nodes, " << a.buffers << " buffers, " << a.expressions
             << " expressions";
}

constexpr int depth = 1'000'000;

TEST(Lifetime, ADeepChainIsDroppedByALoop) {
  const std::int64_t before = LazyBuffer::alive();
  Lazy x = zeros(4);
  for (int i = 0; i < depth; ++i) x = elementwise(Op::exp, {x});
  EXPECT_GE(LazyBuffer::alive(), before + depth);
  x.reset();
  EXPECT_EQ(LazyBuffer::alive(), before);
}

TEST(Lifetime, ADeepChainOfDiamondsAndViews) {
  const std::int64_t before = LazyBuffer::alive();
  Lazy x = zeros(4);
  for (int i = 0; i < depth / 4; ++i)
    x = elementwise(Op::add, {flip(x, {0}), reshape(reshape(x, {2, 2}), {4})});
  x.reset();
  EXPECT_EQ(LazyBuffer::alive(), before);
}

TEST(Lifetime, ADeepChainOfWrites) {
  const std::int64_t before = LazyBuffer::alive();
  Lazy x = zeros(4);
  const Lazy one = constant_lazy(Scalar(DType::float32, 1), {4}, *x->device);
  for (int i = 0; i < depth / 4; ++i) x = assign(x, elementwise(Op::add, {x, one}));
  x.reset();
  EXPECT_EQ(LazyBuffer::alive(), before + 1);
}

// The gradient rules that composed ops bring along own their inputs as well.
TEST(Lifetime, ADeepChainOfOwnGradients) {
  const std::int64_t before = LazyBuffer::alive();
  {
    Lazy x = zeros(4);
    x->requires_grad = true;
    for (int i = 0; i < depth / 4; ++i) {
      const Lazy input = x;
      x = with_gradient(elementwise(Op::exp, {x}), {input},
                        [input](const Lazy& g, const Lazy&) { return std::vector<Lazy>{g}; });
    }
    EXPECT_GT(LazyBuffer::alive(), before + depth / 4);
  }
  EXPECT_EQ(LazyBuffer::alive(), before);
}

TEST(Lifetime, ADeepChainIsWalkedAndDifferentiatedByALoop) {
  const std::int64_t before = LazyBuffer::alive();
  {
    const Lazy start = zeros(4);
    start->requires_grad = true;
    Lazy x = start;
    for (int i = 0; i < depth / 10; ++i) x = elementwise(Op::neg, {x});
    EXPECT_EQ(topological({&x, 1}).size(), static_cast<std::size_t>(depth / 10 + 1));
    const auto grads = gradient({&x, 1}, {}, {&start, 1});
    ASSERT_EQ(grads.size(), 1u);
    EXPECT_TRUE(grads[0] != nullptr);
    EXPECT_EQ(gradient_leaves({&x, 1}), std::vector<Lazy>{start});
    release_history({&x, 1});
  }
  EXPECT_EQ(LazyBuffer::alive(), before);
}

// Threads start with a small stack: 256 KiB here, which a recursion of 1,000 would not fit in.
TEST(Lifetime, ASmallStackIsEnough) {
  const std::int64_t before = LazyBuffer::alive();
  Lazy x = zeros(4);
  for (int i = 0; i < depth / 10; ++i) x = elementwise(Op::exp, {x});
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 << 10);
  pthread_t thread;
  const auto drop = [](void* owner) -> void* {
    static_cast<Lazy*>(owner)->reset();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, drop, &x), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(LazyBuffer::alive(), before);
}

void compute_something() {
  const Tensor x = Tensor({1.f, 2.f, 3.f, 4.f}).reshape({2, 2});
  Tensor y = (x.matmul(x) + x.t()).softmax(1);
  EXPECT_EQ(y.to_vector<float>().size(), 4u);
  y += x.cumsum(1);
  EXPECT_EQ(y.sum().to_vector<float>().size(), 1u);
}

void train_something() {
  manual_seed(3);
  nn::Linear layer(3, 2);
  optim::Adam opt(layer.parameters());
  const Tensor x = Tensor({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}).reshape({2, 3});
  for (int i = 0; i < 3; ++i) {
    opt.zero_grad();
    Tensor loss = cross_entropy(layer(x), Tensor({0, 1}));
    loss.backward();
    opt.step();
    EXPECT_GT(loss.item<float>(), 0);
  }
}

void fail_on_purpose() {
  const Tensor x = Tensor({1.f, 2.f}), y = Tensor({1.f, 2.f, 3.f});
  EXPECT_THROW(x.exp() + y.exp(), ShapeError);
  Tensor w = Tensor({1.f, 2.f}).set_requires_grad();
  EXPECT_THROW((w * 2).backward(), GradientError);  // not one element
}

class Leaks : public testing::TestWithParam<const char*> {};

TEST_P(Leaks, NothingIsAliveAfterTheLastOwner) {
  set_default_device(GetParam());
  struct Row {
    const char* name;
    void (*run)();
  };
  for (const Row& row : {Row{"compute", compute_something}, Row{"train", train_something}}) {
    SCOPED_TRACE(row.name);
    row.run();  // tables, caches and counters are made
    const Alive before = alive();
    row.run();
    EXPECT_EQ(alive(), before);
  }
}

TEST_P(Leaks, NothingIsAliveAfterAnError) {
  set_default_device(GetParam());
  try {
    fail_on_purpose();
  } catch (const Error&) {}
  const Alive before = alive();
  try {
    fail_on_purpose();
  } catch (const Error&) {}
  EXPECT_EQ(alive(), before);
}

TEST_P(Leaks, RealizedSourcesAreDropped) {
  set_default_device(GetParam());
  const std::int64_t before = LazyBuffer::alive();
  Tensor x = Tensor({1.f, 2.f});
  for (int i = 0; i < 50; ++i) x = (x + 1).realize();
  EXPECT_LE(LazyBuffer::alive(), before + 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, Leaks, testing::Values("REF", "CPU", "CLANG"));

}  // namespace
}  // namespace mote
