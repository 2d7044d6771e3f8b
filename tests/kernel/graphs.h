// Small kernels of every kind, as the scheduler makes them, and host memory for their slots.
#pragma once
#include <map>
#include <random>
#include <vector>

#include "engine/engine.h"
#include "graph/lazy_buffer.h"
#include "schedule/schedule.h"

namespace mote::testing {

inline Lazy input(Shape shape, DType t = DType::float32) {
  const std::int64_t n = product(shape).value();
  return from_buffer(Buffer::make(device_named("NULL"), n * size_of(t)), std::move(shape), t);
}

inline Lazy mul(const Lazy& a, const Lazy& b) { return elementwise(Op::mul, {a, b}); }
inline Lazy add(const Lazy& a, const Lazy& b) { return elementwise(Op::add, {a, b}); }
inline Lazy sum(const Lazy& x, Axes axes, Op op = Op::add) {
  return expand(reduce_lazy(op, x, std::move(axes)), x->shape);
}

inline Lazy matmul(const Lazy& a, const Lazy& b) {
  const Int m = a->shape[0], k = a->shape[1], n = b->shape[1];
  const Lazy x = expand(reshape(a, {m, 1, k}), {m, n, k}),
             y = expand(reshape(permute(b, {1, 0}), {1, n, k}), {m, n, k});
  return reshape(reduce_lazy(Op::add, mul(x, y), {2}), {m, n});
}

inline Lazy relu(const Lazy& x) {
  return elementwise(Op::max, {x, constant_lazy(Scalar(x->dtype, 0), x->shape, *x->device)});
}

// (1, h, w) padded by one and convolved with (co, 3, 3): a gated, windowed read.
inline Lazy convolution(const Lazy& x, const Lazy& w) {
  const Lazy p = pad(x, {{0, 0}, {1, 1}, {1, 1}}), win = windows(p, {{3, 1, 1}, {3, 1, 1}});
  const Int co = w->shape[0], h = x->shape[1], v = x->shape[2];
  const Lazy a = expand(reshape(win, {1, h, v, 3, 3}), {co, h, v, 3, 3}),
             b = expand(reshape(w, {co, 1, 1, 3, 3}), {co, h, v, 3, 3});
  return reshape(reduce_lazy(Op::add, mul(a, b), {3, 4}), {co, h, v});
}

inline Lazy softmax(const Lazy& x, int axis) {
  const Lazy e = elementwise(Op::exp, {add(x, elementwise(Op::neg, {sum(x, {axis}, Op::max)}))});
  return elementwise(Op::div, {e, sum(e, {axis})});
}

inline Lazy layernorm(const Lazy& x) {
  const auto number = [&](double v) {
    return constant_lazy(Scalar(x->dtype, v), x->shape, *x->device);
  };
  const Lazy part = number(1.0 / static_cast<double>(x->shape[1].value()));
  const Lazy apart = add(x, elementwise(Op::neg, {mul(sum(x, {1}), part)}));
  const Lazy variance = mul(sum(mul(apart, apart), {1}), part);
  return elementwise(Op::div, {apart, elementwise(Op::sqrt, {add(variance, number(0.5))})});
}

// x[index[j], k], and 0 where there is no such row: a load at what was loaded, without a loop.
inline Lazy gather(const Lazy& x, const Lazy& index) {
  const Int rows = x->shape[0], width = x->shape[1], n = index->shape[0];
  const Shape all{n, rows, width};
  const Lazy row = expand(reshape(iota(rows, index->dtype, *x->device), {1, rows, 1}), all),
             asked = expand(reshape(index, {n, 1, 1}), all),
             value = expand(reshape(x, {1, rows, width}), all),
             zero = constant_lazy(Scalar(x->dtype, 0), all, *x->device);
  const Lazy chosen = elementwise(Op::where, {elementwise(Op::eq, {row, asked}), value, zero});
  return reshape(reduce_lazy(Op::add, chosen, {1}), {n, width});
}

// One random graph; sizes from 1 to 9, so that every remainder occurs, and 0 now and then.
inline std::vector<Lazy> random_graph(std::mt19937_64& random) {
  const auto size = [&](int most = 9) {
    return static_cast<std::int64_t>(1 + random() % static_cast<std::uint64_t>(most));
  };
  const auto one_of = [&]<std::size_t n>(const DType(&types)[n]) { return types[random() % n]; };
  const DType any = one_of({DType::float32, DType::float32, DType::float64, DType::int32,
                            DType::int64, DType::uint8}),
              real = one_of({DType::float32, DType::float64}),
              whole = one_of({DType::int32, DType::int64});
  const std::int64_t m = size(), n = size(), k = random() % 16 ? size(11) : 0;
  const auto product_of_two = [&] { return matmul(input({m, k}, any), input({k, n}, any)); };
  switch (random() % 13) {
    case 0: return {product_of_two()};
    case 1: return {relu(product_of_two())};
    case 2: return {convolution(input({1, m, n}, any), input({size(4), 3, 3}, any))};
    case 3: return {softmax(input({m, n}, real), static_cast<int>(random() % 2))};
    case 4: {
      const Lazy x = input({m, n}, any);
      return {reduce_lazy(Op::add, x, {1}), reduce_lazy(Op::max, x, {1})};
    }
    case 5: {
      const Lazy x = input({m, n}, any);
      return {add(mul(x, x), flip(x, {0})), permute(x, {1, 0})};
    }
    case 6: {
      const Lazy x = product_of_two();
      return {mul(x, sum(x, {1}))};
    }
    case 7:
      return {scan_lazy(random() % 2 ? Op::add : Op::max, input({m, n}, any),
                        static_cast<int>(random() % 2))};
    case 8: return {layernorm(input({m, n}, real))};
    case 9: return {gather(input({m, n}, any), input({size()}, whole))};
    case 10: {
      const Lazy x = input({m, n}, any), y = input({m, n}, any);
      const Lazy below = elementwise(Op::lt, {x, y});
      return {elementwise(Op::where, {below, x, y}), reduce_lazy(Op::or_, below, {0}),
              reduce_lazy(Op::and_, below, {0})};
    }
    case 11: {
      constexpr Op ops[] = {Op::store, Op::add, Op::max};
      return {scatter(input({m, n}, any), input({k, n}, whole), input({k, n}, any), 0,
                      ops[random() % 3])};
    }
    default: {
      const Lazy x = input({m, n}, whole);
      return {reduce_lazy(Op::mul, x, {0}), add(x, sum(x, {0, 1}))};
    }
  }
}

// The kernels' ASTs.
inline std::vector<Expr> asts_of(std::vector<Lazy> roots) {
  for (Lazy& r : roots) r = contiguous(r);
  const std::lock_guard lock(graph_lock());
  std::vector<Expr> out;
  for (const ScheduleItem& item : schedule(roots).items)
    if (item.kind == ScheduleItem::Kind::kernel) out.push_back(item.ast);
  return out;
}

// Memory for each slot of an AST, filled with small integers: sums of their products are exact in
// any order.
class Slots {
 public:
  explicit Slots(const Expr& ast) {
    for (const Expr& e : topological(ast)) {
      if (e->op != Op::slot) continue;
      const auto number = static_cast<std::size_t>(e->arg);
      if (bytes_.size() <= number) bytes_.resize(number + 1);
      bytes_[number].resize(static_cast<std::size_t>(e->arg2 * size_of(e->dtype)));
      for (std::int64_t i = 0; i < e->arg2; ++i)
        store_scalar(bytes_[number].data() + i * size_of(e->dtype),
                     Scalar(e->dtype, static_cast<std::int64_t>((i * 7 + e->arg * 3) % 5) - 2));
      dtypes_[number] = e->dtype;
    }
  }
  std::vector<void*> pointers() {
    std::vector<void*> out;
    for (auto& b : bytes_) out.push_back(b.data());
    return out;
  }
  // "" where every element is near enough.
  std::string difference(const Slots& want) const {
    for (const auto& [number, t] : dtypes_) {
      const auto size = static_cast<std::size_t>(size_of(t));
      for (std::size_t at = 0; at < bytes_[number].size(); at += size) {
        const Scalar a = load_scalar(bytes_[number].data() + at, t),
                     b = load_scalar(want.bytes_[number].data() + at, t);
        const double x = a.as_double(), y = b.as_double();
        if (a.bits == b.bits || (is_float(t) && std::abs(x - y) <= 1e-5 * (1 + std::abs(y))))
          continue;
        return "slot " + std::to_string(number) + " element " + std::to_string(at / size) + ": " +
               a.text() + ", not " + b.text();
      }
    }
    return "";
  }

 private:
  std::vector<std::vector<char>> bytes_;
  std::map<std::size_t, DType> dtypes_;
};

}  // namespace mote::testing
