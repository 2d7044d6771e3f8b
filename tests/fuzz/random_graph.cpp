#include "random_graph.h"

#include <algorithm>

#include "graph/gradient.h"

namespace mote::testing {
namespace {

constexpr std::int64_t most_elements = 600;

std::int64_t count_of(const Shape& s) { return product(s).value(); }
std::int64_t size_at(const Lazy& n, int axis) {
  return n->shape[static_cast<std::size_t>(axis)].value();
}
int rank_of(const Lazy& n) { return static_cast<int>(n->shape.size()); }

bool is_any_integer(DType t) { return is_integer(t); }

}  // namespace

RandomGraph::RandomGraph(std::uint64_t seed, int steps, Device& device)
    : random_(seed), device_(device) {
  for (int i = 0; i < 2; ++i) pool_.push_back(input(random_shape(), DType::float32));
  pool_.push_back(input(random_shape(), DType::int32));
  for (int i = 0; i < steps; ++i) step();
  choose_roots();
}

Shape RandomGraph::random_shape() {
  for (;;) {
    Shape shape;
    for (int i = 0, rank = below(6); i < rank; ++i)
      shape.push_back(below(40) == 0 ? 0 : below(4) == 0 ? 1 : 1 + below(7));
    if (count_of(shape) <= most_elements) return shape;
  }
}

RandomGraph::Value RandomGraph::input(Shape shape, DType t) {
  const std::int64_t n = count_of(shape);
  auto bytes = Buffer::make(device_, n * size_of(t));
  std::vector<char> host(static_cast<std::size_t>(n * size_of(t)));
  for (std::int64_t i = 0; i < n; ++i) {
    const int v = below(33) - 16;  // eighths in -2..2; integers in -16..16
    const Scalar s = t == DType::boolean ? Scalar(t, v > 0)
                     : is_float(t)       ? Scalar(t, v / 8.0)
                                         : Scalar(t, static_cast<std::int64_t>(v));
    store_scalar(host.data() + i * size_of(t), s);
  }
  if (n > 0) bytes->write(host.data(), 0, n * size_of(t));
  const Lazy node = from_buffer(bytes, std::move(shape), t);
  if (t == DType::float32) {
    node->requires_grad = true;
    inputs_.push_back(node);
  }
  return {node, true};
}

const RandomGraph::Value* RandomGraph::some(bool (*wanted)(DType)) {
  std::vector<const Value*> fit;
  for (const Value& v : pool_)
    if (wanted(v.node->dtype)) fit.push_back(&v);
  return fit.empty() ? nullptr : fit[static_cast<std::size_t>(below(static_cast<int>(fit.size())))];
}

RandomGraph::Value RandomGraph::like(const Value& v) {
  std::vector<Value> fit;
  for (const Value& x : pool_) {
    if (x.node->dtype != v.node->dtype) continue;
    if (x.node->shape == v.node->shape) {
      fit.push_back(x);
      continue;
    }
    try {  // broadcast where it can be
      if (broadcast_shape(x.node->shape, v.node->shape) == v.node->shape)
        fit.push_back({broadcast_to(x.node, v.node->shape), x.exact});
    } catch (const ShapeError&) {}
  }
  if (fit.size() < 2 || below(6) == 0) return input(v.node->shape, v.node->dtype);
  return fit[static_cast<std::size_t>(below(static_cast<int>(fit.size())))];
}

Lazy RandomGraph::number(const Lazy& like, double v) const {
  return constant_lazy(Scalar(like->dtype, v), like->shape, device_);
}

void RandomGraph::step() {
  const Value v = any();
  Value made = v;
  switch (below(16)) {
    case 0:
    case 1:
    case 2:
    case 3: made = elementwise_of(v); break;
    case 4:
    case 5:
    case 6:
    case 7:
    case 8: made = moved(v); break;
    case 9:
    case 10: made = reduced(v); break;
    case 11: made = scanned(v); break;
    case 12: made = casted(v); break;
    case 13: made = gathered(v); break;
    case 14: made = below(2) ? scattered(v) : assigned(v); break;
    default: made = {contiguous(v.node), v.exact}; break;
  }
  if (made.node->elements() <= most_elements) pool_.push_back(made);
}

RandomGraph::Value RandomGraph::elementwise_of(const Value& v) {
  if (v.node->dtype == DType::boolean) {
    const Op ops[] = {Op::and_, Op::or_, Op::xor_};
    if (below(4) == 0) return {elementwise(Op::not_, {v.node}), true};
    return {elementwise(ops[below(3)], {v.node, like(v).node}), true};
  }
  return is_float(v.node->dtype) ? float_op(v) : integer_op(v);
}

RandomGraph::Value RandomGraph::float_op(const Value& v) {
  const Lazy& x = v.node;
  const auto one = [&](Op op, const Lazy& a) { return Value{elementwise(op, {a}), false}; };
  const Lazy size = elementwise(Op::max, {x, elementwise(Op::neg, {x})});
  const Lazy small = elementwise(Op::min, {elementwise(Op::max, {x, number(x, -3)}), number(x, 3)});
  switch (below(15)) {
    case 0: return one(Op::exp, small);
    case 1: return one(Op::log, elementwise(Op::add, {size, number(x, 0.5)}));
    case 2: return one(Op::sqrt, elementwise(Op::add, {size, number(x, 0.25)}));
    case 3: return one(Op::sin, x);
    case 4: return one(Op::cos, x);
    case 5: return one(Op::tanh, x);
    case 6: return one(Op::erf, x);
    case 7: {
      const Lazy y = like(v).node;
      const Lazy safe = elementwise(
          Op::add, {elementwise(Op::max, {y, elementwise(Op::neg, {y})}), number(y, 0.5)});
      return {elementwise(Op::div, {x, safe}), false};
    }
    case 8:
      if (!v.exact) return {elementwise(Op::neg, {x}), false};
      return {elementwise(Op::trunc, {x}), true};
    case 9: {
      const Value a = like(v), b = like(v);
      if (!v.exact || !a.exact) return {elementwise(Op::add, {x, a.node}), false};
      const Lazy test = elementwise(below(2) ? Op::lt : Op::eq, {x, a.node});
      if (below(3) == 0) return {test, true};
      return {elementwise(Op::where, {test, a.node, b.node}), b.exact};
    }
    case 10: {
      const Value a = like(v);
      return {elementwise(below(2) ? Op::max : Op::min, {x, a.node}), v.exact && a.exact};
    }
    case 11: return {elementwise(Op::mul, {elementwise(Op::tanh, {x}), like(v).node}), false};
    default: {
      const Value a = like(v);
      return {elementwise(Op::add, {x, a.node}), false};
    }
  }
}

RandomGraph::Value RandomGraph::integer_op(const Value& v) {
  const Op ops[] = {Op::add,  Op::mul,  Op::max,  Op::min, Op::idiv, Op::mod,
                    Op::tdiv, Op::tmod, Op::and_, Op::or_, Op::xor_};
  switch (below(8)) {
    case 0: return {elementwise(Op::neg, {v.node}), true};
    case 1: return {elementwise(Op::not_, {v.node}), true};
    case 2:
      return {elementwise(below(2) ? Op::shl : Op::shr, {v.node, number(v.node, below(9))}), true};
    case 3: {
      const Value a = like(v);
      const Lazy test = elementwise(below(2) ? Op::lt : Op::eq, {v.node, a.node});
      if (below(3) == 0) return {test, true};
      return {elementwise(Op::where, {test, a.node, like(v).node}), true};
    }
    default: return {elementwise(ops[below(11)], {v.node, like(v).node}), true};
  }
}

RandomGraph::Value RandomGraph::moved(const Value& v) {
  const Lazy& x = v.node;
  const int rank = rank_of(x);
  const std::int64_t n = x->elements();
  switch (below(7)) {
    case 0: {  // reshape: factors in random order
      if (n == 0) break;
      Shape shape;
      std::int64_t left = n;
      while (left > 1 && shape.size() < 4) {
        std::vector<std::int64_t> divisors;
        for (std::int64_t d = 2; d <= left; ++d)
          if (left % d == 0) divisors.push_back(d);
        shape.push_back(
            divisors[static_cast<std::size_t>(below(static_cast<int>(divisors.size())))]);
        left /= shape.back().value();
      }
      if (left > 1) shape.push_back(left);
      if (below(3) == 0) shape.insert(shape.begin() + below(static_cast<int>(shape.size()) + 1), 1);
      return {reshape(x, shape), v.exact};
    }
    case 1: {
      Axes order;
      for (int i = 0; i < rank; ++i) order.push_back(i);
      std::ranges::shuffle(order, random_);
      return {permute(x, order), v.exact};
    }
    case 2: {
      Shape shape = x->shape;
      for (Int& s : shape)
        if (s.is(1) && below(2)) s = 1 + below(5);
      return {expand(x, shape), v.exact};
    }
    case 3: {
      Spans spans;
      for (int i = 0; i < rank; ++i) {
        const std::int64_t size = size_at(x, i),
                           begin = size > 0 && below(2) ? below(static_cast<int>(size)) : 0;
        const std::int64_t rest = size - begin;
        spans.push_back(
            {begin, begin + (rest > 0 && below(2) ? 1 + below(static_cast<int>(rest)) : rest)});
      }
      return {shrink(x, spans), v.exact};
    }
    case 4: {
      Padding padding;
      for (int i = 0; i < rank; ++i)
        padding.emplace_back(below(3) ? 0 : below(3), below(3) ? 0 : below(3));
      return {pad(x, padding), v.exact};
    }
    case 5: {
      Axes axes;
      for (int i = 0; i < rank; ++i)
        if (below(2)) axes.push_back(i);
      return {flip(x, axes), v.exact};
    }
    default: {
      if (rank == 0) break;
      const std::int64_t size = size_at(x, rank - 1);
      const int window = 1 + below(3), dilation = 1 + below(2), stride = 1 + below(2);
      if ((window - 1) * dilation + 1 > size) break;
      return {windows(x, {{window, stride, dilation}}), v.exact};
    }
  }
  return v;
}

RandomGraph::Value RandomGraph::reduced(const Value& v) {
  Axes axes;
  for (int i = 0; i < rank_of(v.node); ++i)
    if (below(2)) axes.push_back(i);
  if (v.node->dtype == DType::boolean)
    return {reduce_lazy(below(2) ? Op::or_ : Op::and_, v.node, axes), true};
  const Op ops[] = {Op::add, Op::max, Op::min, Op::add};
  if (is_integer(v.node->dtype) && below(4) == 0) return {reduce_lazy(Op::mul, v.node, axes), true};
  const Op op = ops[below(4)];
  return {reduce_lazy(op, v.node, axes), v.exact && op != Op::add && v.node->elements() > 0};
}

RandomGraph::Value RandomGraph::scanned(const Value& v) {
  const int rank = rank_of(v.node);
  if (rank == 0 || v.node->dtype == DType::boolean) return v;
  return {scan_lazy(below(2) ? Op::add : Op::max, v.node, below(rank)), false};
}

RandomGraph::Value RandomGraph::casted(const Value& v) {
  const DType to[] = {DType::float32, DType::float64, DType::int32,   DType::int64,
                      DType::uint8,   DType::float16, DType::boolean, DType::float32};
  const DType t = to[below(8)];
  if (is_float(v.node->dtype) && !v.exact && !is_float(t)) return v;
  if (t == DType::float16 && !v.exact) return v;
  return {cast_lazy(v.node, t),
          v.exact && is_float(t) == is_float(v.node->dtype) && t != DType::float16};
}

// sum over j of where(j == index, x[j], 0) along the first axis
RandomGraph::Value RandomGraph::gathered(const Value& v) {
  const Value* i = some(is_any_integer);
  if (!i || rank_of(v.node) == 0 || v.node->dtype == DType::boolean) return v;
  const Lazy index = cast_lazy(reshape(i->node, {Int(i->node->elements())}), DType::int64);
  const Int n = v.node->shape[0], m = index->shape[0];
  Shape wide{m};
  for (const Int& s : v.node->shape) wide.push_back(s);
  if (count_of(wide) > 4000) return v;
  Shape line(wide.size(), 1), column(wide.size(), 1), table = wide;
  line[1] = n;
  column[0] = m;
  table[0] = 1;
  const Lazy rows = expand(reshape(iota(n, DType::int64, device_), line), wide),
             at = expand(reshape(index, column), wide), x = expand(reshape(v.node, table), wide);
  const Lazy picked = elementwise(Op::where, {elementwise(Op::eq, {rows, at}), x,
                                              constant_lazy(Scalar(x->dtype, 0), wide, device_)});
  return {reduce_lazy(Op::add, picked, {1}), v.exact};
}

RandomGraph::Value RandomGraph::scattered(const Value& v) {
  if (rank_of(v.node) == 0 || v.node->dtype == DType::boolean || v.node->dtype == DType::float16)
    return v;
  Shape shape = v.node->shape;
  shape[0] = 1 + below(6);
  const Value index = input(shape, DType::int64), source = input(shape, v.node->dtype);
  const Op ops[] = {Op::store, Op::add, Op::max, Op::min};
  const Op op = ops[below(4)];
  return {scatter(v.node, index.node, source.node, 0, op), false};
}

RandomGraph::Value RandomGraph::assigned(const Value& v) {
  const Lazy& x = v.node;
  if (below(3) == 0) return {assign(x, like(v).node), false};
  Region region;
  Shape part;
  for (int i = 0; i < rank_of(x); ++i) {
    const std::int64_t size = size_at(x, i), step = 1 + below(2);
    const std::int64_t count = size == 0 ? 0 : 1 + below(static_cast<int>((size - 1) / step + 1));
    const std::int64_t begin = size == 0 ? 0 : below(static_cast<int>(size - (count - 1) * step));
    region.push_back({begin, step, count});
    part.push_back(count);
  }
  if (region.empty()) return {assign(x, like(v).node), false};
  return {assign(x, input(part, x->dtype).node, region), false};
}

void RandomGraph::choose_roots() {
  std::vector<Lazy> outputs;
  for (std::size_t i = 3; i < pool_.size(); ++i)
    if (i + 1 == pool_.size() || below(4) == 0) outputs.push_back(pool_[i].node);
  if (outputs.empty()) outputs.push_back(pool_.back().node);
  roots_ = outputs;
  if (below(2)) return;
  std::vector<Lazy> floats, seeds;  // gradients of the sum, weighted by eighths
  for (const Lazy& o : outputs)
    if (o->dtype == DType::float32 && o->requires_grad) floats.push_back(o);
  if (floats.empty()) return;
  for (const Lazy& o : floats) seeds.push_back(detach(input(o->shape, DType::float32).node));
  for (const Lazy& g :
       gradient(floats, seeds, std::vector<Lazy>(inputs_.begin(), inputs_.begin() + 2)))
    if (g) roots_.push_back(g);
}

}  // namespace mote::testing
