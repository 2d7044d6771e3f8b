// Each node once, sources first, every element by `evaluate`. Movement ops walk indices by their
// own arguments, not by ShapeTracker, so that they check it.
#include "ref/ref.h"

#include <algorithm>

#include "base/text.h"

namespace mote {
namespace {

using Sizes = std::vector<std::int64_t>;
using Values = std::vector<Scalar>;

std::int64_t count(const Sizes& shape) {
  std::int64_t n = 1;
  for (std::int64_t s : shape) n *= s;
  return n;
}

// Calls f with every index of the shape in row-major order.
template <class F>
void for_each_index(const Sizes& shape, F f) {
  Sizes index(shape.size(), 0);
  for (std::int64_t n = count(shape); n > 0; --n) {
    f(index);
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (++index[i] < shape[i]) break;
      index[i] = 0;
    }
  }
}

std::size_t flat(const Sizes& index, const Sizes& shape) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) at = at * shape[i] + index[i];
  return static_cast<std::size_t>(at);
}

class Interpreter {
 public:
  explicit Interpreter(const RefOptions& options) : options_(options) {}

  const Values& run(const Lazy& n) {
    for (const Lazy& m : topological({&n, 1}))
      if (!done_.contains(m.get())) done_.emplace(m.get(), compute(*m));
    return done_.at(n.get());
  }

 private:
  std::int64_t size(const Int& s) const { return evaluate(s, options_.variables); }

  Sizes sizes(const Shape& shape) const {
    Sizes out;
    for (const Int& s : shape) out.push_back(size(s));
    return out;
  }

  // In float64 mode every float is computed as one.
  DType working(DType t) const { return options_.float64 && is_float(t) ? DType::float64 : t; }
  const Values& of(const Lazy& n) const { return done_.at(n.get()); }

  Values compute(LazyBuffer& n) {
    if (n.is_realized()) return stored(n);
    if (n.op == Op::constant)
      return Values(static_cast<std::size_t>(count(sizes(n.shape))),
                    cast(std::get<Scalar>(n.arg), working(n.dtype)));
    if (n.op == Op::iota) return iota_values(n);
    if (n.op == Op::reduce) return reduced(n);
    if (n.op == Op::scan) return scanned(n);
    if (is_movement(n.op)) return moved(n);
    if (is_elementwise(n.op)) return elementwise_values(n);
    if (n.op == Op::contiguous || n.op == Op::copy) return of(n.src[0]);
    if (n.op == Op::assign) return assigned(n);
    if (n.op == Op::scatter) return scattered(n);
    throw InternalError(cat("ref: ", std::string(name_of(n.op)), " is not known"));
  }

  Values stored(LazyBuffer& n) {
    const auto elements = static_cast<std::size_t>(count(sizes(n.shape)));
    const auto width = static_cast<std::size_t>(size_of(n.dtype));
    std::vector<std::byte> bytes(elements * width);
    if (!bytes.empty()) n.buffer->read(bytes.data(), 0, static_cast<std::int64_t>(bytes.size()));
    Values out;
    for (std::size_t i = 0; i < elements; ++i)
      out.push_back(cast(load_scalar(bytes.data() + i * width, n.dtype), working(n.dtype)));
    return out;
  }

  Values iota_values(const LazyBuffer& n) {
    Values out;
    for (std::int64_t i = 0; i < size(n.shape[0]); ++i) out.emplace_back(working(n.dtype), i);
    return out;
  }

  Values elementwise_values(const LazyBuffer& n) {
    Values out, in(n.src.size());
    const std::size_t elements = of(n.src[0]).size();
    for (std::size_t i = 0; i < elements; ++i) {
      for (std::size_t k = 0; k < in.size(); ++k) in[k] = of(n.src[k])[i];
      out.push_back(evaluate(n.op, working(n.dtype), in));
    }
    return out;
  }

  Values reduced(const LazyBuffer& n) {
    const Sizes from = sizes(n.src[0]->shape), to = sizes(n.shape);
    Values out(static_cast<std::size_t>(count(to)), identity_of(n.reduce_op, working(n.dtype)));
    const Values& x = of(n.src[0]);
    std::size_t i = 0;
    const Axes& axes = std::get<Axes>(n.arg);
    for_each_index(from, [&](Sizes index) {
      for (int a : axes) index[static_cast<std::size_t>(a)] = 0;
      Scalar& total = out[flat(index, to)];
      const Scalar both[] = {total, x[i++]};
      total = evaluate(n.reduce_op, total.dtype, both);
    });
    return out;
  }

  Values scanned(const LazyBuffer& n) {
    const Sizes shape = sizes(n.shape);
    const auto axis = static_cast<std::size_t>(std::get<Axes>(n.arg)[0]);
    Values out = of(n.src[0]);
    for_each_index(shape, [&](Sizes index) {
      if (index[axis] == 0) return;
      Scalar& here = out[flat(index, shape)];
      --index[axis];
      const Scalar both[] = {out[flat(index, shape)], here};
      here = evaluate(n.reduce_op, here.dtype, both);
    });
    return out;
  }

  Values moved(const LazyBuffer& n) {
    const Values& x = of(n.src[0]);
    if (n.op == Op::reshape) return x;
    const Sizes from = sizes(n.src[0]->shape), to = sizes(n.shape);
    Values out;
    for_each_index(to, [&](const Sizes& index) {
      const Sizes source = source_of(n, index, from);
      const bool inside =
          std::ranges::equal(source, from, [](auto i, auto s) { return i >= 0 && i < s; });
      out.push_back(inside ? x[flat(source, from)] : Scalar(working(n.dtype), 0));
    });
    return out;
  }

  Sizes source_of(const LazyBuffer& n, Sizes index, const Sizes& from) const {
    switch (n.op) {
      case Op::permute: {
        Sizes out(index.size());
        const Axes& axes = std::get<Axes>(n.arg);
        for (std::size_t i = 0; i < index.size(); ++i)
          out[static_cast<std::size_t>(axes[i])] = index[i];
        return out;
      }
      case Op::expand:
        for (std::size_t i = 0; i < index.size(); ++i) index[i] = from[i] == 1 ? 0 : index[i];
        return index;
      case Op::shrink:
        for (std::size_t i = 0; i < index.size(); ++i)
          index[i] += size(std::get<Spans>(n.arg)[i].begin);
        return index;
      case Op::pad:
        for (std::size_t i = 0; i < index.size(); ++i)
          index[i] -= size(std::get<Padding>(n.arg)[i].first);
        return index;
      case Op::flip:
        for (int a : std::get<Axes>(n.arg)) {
          auto& i = index[static_cast<std::size_t>(a)];
          i = from[static_cast<std::size_t>(a)] - 1 - i;
        }
        return index;
      default: {
        const Windows& w = std::get<Windows>(n.arg);
        Sizes out(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(from.size()));
        for (std::size_t k = 0; k < w.size(); ++k) {
          auto& i = out[from.size() - w.size() + k];
          i = i * size(w[k].step) + index[from.size() + k] * size(w[k].dilation);
        }
        return out;
      }
    }
  }

  Values assigned(const LazyBuffer& n) {
    const Region& region = std::get<Region>(n.arg);
    if (region.empty()) return of(n.src[1]);
    Values out = of(n.src[0]);
    const Sizes shape = sizes(n.shape), part = sizes(n.src[1]->shape);
    std::size_t i = 0;
    for_each_index(part, [&](Sizes index) {
      for (std::size_t k = 0; k < index.size(); ++k)
        index[k] = size(region[k].begin) + index[k] * size(region[k].step);
      out[flat(index, shape)] = of(n.src[1])[i++];
    });
    return out;
  }

  Values scattered(const LazyBuffer& n) {
    Values out = of(n.src[0]);
    const Sizes shape = sizes(n.shape), from = sizes(n.src[1]->shape);
    const auto axis = static_cast<std::size_t>(std::get<Axes>(n.arg)[0]);
    std::size_t i = 0;
    for_each_index(from, [&](Sizes index) {
      const std::int64_t place = of(n.src[1])[i].as_int();
      const Scalar value = of(n.src[2])[i++];
      if (place < 0 || place >= shape[axis]) return;
      index[axis] = place;
      Scalar& at = out[flat(index, shape)];
      const Scalar both[] = {at, value};
      at = n.reduce_op == Op::store ? value : evaluate(n.reduce_op, at.dtype, both);
    });
    return out;
  }

  const RefOptions& options_;
  std::unordered_map<const LazyBuffer*, Values> done_;
};

}  // namespace

std::vector<std::vector<Scalar>> reference(std::span<const Lazy> roots, const RefOptions& options) {
  Interpreter interpreter(options);
  std::vector<std::vector<Scalar>> out;
  for (const Lazy& n : roots) out.push_back(interpreter.run(n));
  return out;
}

void realize_by_reference(std::span<const Lazy> roots, const RefOptions& options) {
  Interpreter interpreter(options);
  std::vector<std::pair<Lazy, std::shared_ptr<Buffer>>> made;
  for (const Lazy& root : roots) {
    const Lazy n = root->is_view() ? root->base : root;
    if (n->is_realized() || n->op == Op::constant || n->op == Op::iota) continue;
    const Values& values = interpreter.run(n);
    const auto width = static_cast<std::size_t>(size_of(n->dtype));
    std::vector<std::byte> bytes(values.size() * width);
    for (std::size_t i = 0; i < values.size(); ++i)
      store_scalar(bytes.data() + i * width, values[i]);
    auto buffer = Buffer::make(*n->device, static_cast<std::int64_t>(bytes.size()), n->name);
    if (!bytes.empty()) buffer->write(bytes.data(), 0, static_cast<std::int64_t>(bytes.size()));
    made.emplace_back(n, std::move(buffer));
  }
  for (auto& [n, buffer] : made) n->realized_as(std::move(buffer));
}

}  // namespace mote
