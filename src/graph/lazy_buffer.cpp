#include "graph/lazy_buffer.h"

#include <algorithm>
#include <unordered_set>

#include "base/text.h"

namespace mote {
namespace {

std::atomic<std::int64_t> nodes_alive{0};
thread_local bool recording = true;
thread_local Where place_now;

using Owned = std::vector<std::shared_ptr<void>>;

// A chain of owners dies by a loop: what a dying node alone owns is put on a list, not destroyed
// inside of its destructor.
void bury(Owned&& owned) {
  thread_local Owned* list = nullptr;
  if (list) {
    for (auto& n : owned) list->push_back(std::move(n));
    return;
  }
  Owned mine = std::move(owned);
  list = &mine;
  while (!mine.empty()) {
    const auto last = std::move(mine.back());
    mine.pop_back();
  }
  list = nullptr;
}

bool needs_gradient(Op op, DType t, const std::vector<Lazy>& src) {
  if (!recording || !is_float(t) || op == Op::lt || op == Op::eq || op == Op::bitcast) return false;
  return std::ranges::any_of(src, [](const Lazy& s) { return s && s->requires_grad; });
}

[[noreturn]] void internal(const std::string& what) { throw InternalError(cat("graph: ", what)); }

std::string at_place() {
  const std::string text = place_now.text();
  return text.empty() ? "" : " at " + text;
}

bool is_constant_scalar(const Lazy& n, Scalar& value) {
  const Lazy& source = n->is_view() ? n->base : n;
  if (source->op != Op::constant) return false;
  for (const View& v : n->tracker.views())
    if (v.mask) return false;
  value = std::get<Scalar>(source->arg);
  return true;
}

// A view of `x` with this op and arguments; the same node when it changes nothing.
Lazy view_of(Op op, const Lazy& x, LazyArg arg, ShapeTracker tracker) {
  Scalar value;
  if (op != Op::pad && is_constant_scalar(x, value) && !x->requires_grad)
    return constant_lazy(value, tracker.shape(), *x->device);
  Lazy n = make_lazy(op, {x}, tracker.shape(), x->dtype, x->device, std::move(arg));
  n->base = x->is_view() ? x->base : x;
  n->tracker = std::move(tracker);
  return n;
}

}  // namespace

LazyBuffer::~LazyBuffer() {
  Owned owned(std::make_move_iterator(src.begin()), std::make_move_iterator(src.end()));
  owned.push_back(std::move(base));
  owned.push_back(std::move(own_gradient));  // its rule holds nodes too
  bury(std::move(owned));
  --nodes_alive;
}

std::int64_t LazyBuffer::alive() { return nodes_alive; }

std::recursive_mutex& graph_lock() {
  static auto* const lock = new std::recursive_mutex;
  return *lock;
}

std::int64_t LazyBuffer::elements() const { return product(shape).hi(); }

namespace {
bool is_leaf(const LazyBuffer& n) { return n.own_gradient && n.own_gradient->inputs.empty(); }
}  // namespace

void LazyBuffer::realized_as(std::shared_ptr<Buffer> bytes) {
  buffer = std::move(bytes);
  if (requires_grad && !is_leaf(*this)) return;  // a gradient may still walk through it
  bury({std::make_move_iterator(src.begin()), std::make_move_iterator(src.end())});
  src.clear();
}

Lazy make_lazy(Op op, std::vector<Lazy> src, Shape shape, DType dtype, Device* device,
               LazyArg arg) {
  Lazy n(new LazyBuffer);
  ++nodes_alive;
  n->op = op;
  n->dtype = dtype;
  n->device = device;
  n->tracker = ShapeTracker(shape);
  n->shape = std::move(shape);
  n->requires_grad = needs_gradient(op, dtype, src);
  n->src = std::move(src);
  n->arg = std::move(arg);
  n->made = place_now;
  return n;
}

Lazy from_buffer(std::shared_ptr<Buffer> buffer, Shape shape, DType dtype) {
  Device* device = &buffer->device();
  Lazy n = make_lazy(Op::buffer, {}, std::move(shape), dtype, device, {});
  n->buffer = std::move(buffer);
  return n;
}

Lazy constant_lazy(Scalar value, Shape shape, Device& device) {
  return make_lazy(Op::constant, {}, std::move(shape), value.dtype, &device, value);
}

Lazy iota(Int size, DType dtype, Device& device) {
  return make_lazy(Op::iota, {}, {size}, dtype, &device, {});
}

Lazy elementwise(Op op, std::vector<Lazy> src) {
  std::vector<Scalar> values;
  for (const Lazy& s : src) {
    if (s->shape != src[0]->shape)
      internal(cat(std::string(name_of(op)), ": shapes ", to_text(src[0]->shape), " and ",
                   to_text(s->shape)));
    if (s->device != src[0]->device) internal(cat(std::string(name_of(op)), ": two devices"));
    Scalar value;
    if (is_constant_scalar(s, value) && !s->requires_grad) values.push_back(value);
  }
  const bool shift = op == Op::shl || op == Op::shr;
  const std::size_t first = op == Op::where ? 1 : 0;
  for (std::size_t i = first; i < src.size() && !shift; ++i)
    if (src[i]->dtype != src[first]->dtype)
      internal(cat(std::string(name_of(op)), ": dtypes ", std::string(name_of(src[first]->dtype)),
                   " and ", std::string(name_of(src[i]->dtype))));
  const DType dtype = op == Op::lt || op == Op::eq ? DType::boolean : src[first]->dtype;
  if (values.size() == src.size())
    return constant_lazy(evaluate(op, dtype, values), src[0]->shape, *src[0]->device);
  Device* device = src[0]->device;
  Shape shape = src[0]->shape;
  return make_lazy(op, std::move(src), std::move(shape), dtype, device);
}

Lazy cast_lazy(const Lazy& x, DType dtype) {
  if (x->dtype == dtype) return x;
  Scalar value;
  if (is_constant_scalar(x, value) && !x->requires_grad)
    return constant_lazy(cast(value, dtype), x->shape, *x->device);
  return make_lazy(Op::cast, {x}, x->shape, dtype, x->device);
}

Lazy bitcast_lazy(const Lazy& x, DType dtype) {
  if (size_of(x->dtype) != size_of(dtype)) internal("bitcast: the sizes differ");
  return x->dtype == dtype ? x : make_lazy(Op::bitcast, {x}, x->shape, dtype, x->device);
}

Lazy reduce_lazy(Op op, const Lazy& x, Axes axes) {
  std::erase_if(axes, [&](int a) { return x->shape[static_cast<std::size_t>(a)].is(1); });
  if (axes.empty()) return x;
  std::ranges::sort(axes);
  Shape shape = x->shape;
  for (int a : axes) shape[static_cast<std::size_t>(a)] = 1;
  Lazy n = make_lazy(Op::reduce, {x}, std::move(shape), x->dtype, x->device, std::move(axes));
  n->reduce_op = op;
  return n;
}

Lazy scan_lazy(Op op, const Lazy& x, int axis) {
  if (x->shape[static_cast<std::size_t>(axis)].is(1)) return x;
  Lazy n = make_lazy(Op::scan, {x}, x->shape, x->dtype, x->device, Axes{axis});
  n->reduce_op = op;
  return n;
}

// ---- views

Lazy reshape(const Lazy& x, Shape shape) {
  if (shape == x->shape) return x;
  if (!(product(shape) == product(x->shape))) {
    throw ShapeError(cat("reshape: ", to_text(x->shape), " has ", product(x->shape).text(),
                         " elements, ", to_text(shape), " has ", product(shape).text(), at_place(),
                         "; the counts must agree"));
  }
  return view_of(Op::reshape, x, shape, x->tracker.reshape(shape));
}

Lazy permute(const Lazy& x, Axes axes) {
  if (std::ranges::is_sorted(axes)) return x;
  return view_of(Op::permute, x, axes, x->tracker.permute(axes));
}

Lazy expand(const Lazy& x, Shape shape) {
  if (shape == x->shape) return x;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == x->shape[i] || x->shape[i].is(1)) continue;
    throw ShapeError(cat("expand: axis ", i, " of ", to_text(x->shape), " has size ",
                         x->shape[i].text(), ", not 1 or ", shape[i].text(), at_place(),
                         "; only axes of size 1 expand"));
  }
  return view_of(Op::expand, x, shape, x->tracker.expand(shape));
}

Lazy shrink(const Lazy& x, Spans spans) {
  bool whole = true;
  for (std::size_t i = 0; i < spans.size(); ++i) whole &= spans[i] == Span{0, x->shape[i]};
  if (whole) return x;
  return view_of(Op::shrink, x, spans, x->tracker.shrink(spans));
}

Lazy pad(const Lazy& x, Padding padding) {
  if (std::ranges::all_of(padding, [](auto& p) { return p.first.is(0) && p.second.is(0); }))
    return x;
  return view_of(Op::pad, x, padding, x->tracker.pad(padding));
}

Lazy flip(const Lazy& x, Axes axes) {
  std::erase_if(axes, [&](int a) { return x->shape[static_cast<std::size_t>(a)].is(1); });
  if (axes.empty()) return x;
  return view_of(Op::flip, x, axes, x->tracker.flip(axes));
}

Lazy windows(const Lazy& x, Windows sizes) {
  return view_of(Op::windows, x, sizes, x->tracker.windows(sizes));
}

// ---- placing

Lazy contiguous(const Lazy& x) {
  if (x->is_realized() || x->op == Op::contiguous) return x;
  if (x->is_view() && x->base->is_realized() && x->tracker.is_contiguous() &&
      x->tracker.base_size() == product(x->base->shape)) {
    return x;
  }
  return make_lazy(Op::contiguous, {x}, x->shape, x->dtype, x->device);
}

// Shrink, then every step-th by windows of one, then flip.
Lazy taken(const Lazy& x, const Region& region) {
  Spans spans;
  Windows every;
  Axes turned;
  Shape counts;
  bool strided = false;
  for (const Step& s : region) {
    const bool back = s.step.lo() < 0, none = s.count.is(0);
    const Int size = back ? -s.step : s.step, reach = s.step * (s.count - 1);
    const Int low = none ? Int(0) : back ? s.begin + reach : s.begin;
    if (back) turned.push_back(static_cast<int>(spans.size()));
    spans.push_back({low, none ? low : low + size * (s.count - 1) + 1});
    every.push_back({1, none ? Int(1) : size});
    strided |= !size.is(1) && !none;
    counts.push_back(s.count);
  }
  Lazy out = shrink(x, spans);
  if (strided) out = reshape(windows(out, every), counts);
  return flip(out, turned);
}

Lazy copy_to(const Lazy& x, Device& device) {
  if (x->device == &device) return x;
  Scalar value;
  if (is_constant_scalar(x, value) && !x->requires_grad)
    return constant_lazy(value, x->shape, device);
  return make_lazy(Op::copy, {contiguous(x)}, x->shape, x->dtype, &device);
}

Lazy assign(const Lazy& target, const Lazy& value, Region region) {
  bool whole = true;
  for (std::size_t i = 0; i < region.size(); ++i)
    whole &= region[i].begin.is(0) && region[i].step.is(1) && region[i].count == target->shape[i];
  if (whole) region.clear();
  return make_lazy(Op::assign, {target, value}, target->shape, target->dtype, target->device,
                   std::move(region));
}

Lazy scatter(const Lazy& target, const Lazy& index, const Lazy& value, int axis, Op op) {
  if (index->shape != value->shape) internal("scatter: the shapes of index and value differ");
  Lazy n = make_lazy(Op::scatter, {target, index, value}, target->shape, target->dtype,
                     target->device, Axes{axis});
  n->reduce_op = op;
  return n;
}

namespace {

// The same value in a node of its own, so that what hangs on it is seen by its users alone.
Lazy renamed(const Lazy& x) {
  Lazy n = make_lazy(Op::reshape, {x}, x->shape, x->dtype, x->device, x->shape);
  n->base = x->is_view() ? x->base : x;
  n->tracker = x->tracker;
  return n;
}

}  // namespace

Lazy with_gradient(const Lazy& value, std::vector<Lazy> inputs,
                   std::function<std::vector<Lazy>(const Lazy&, const Lazy&)> rule) {
  const bool wanted = recording && is_float(value->dtype) &&
                      std::ranges::any_of(inputs, [](const Lazy& s) { return s->requires_grad; });
  if (!wanted) return value;
  Lazy n = renamed(value);
  n->requires_grad = true;
  n->own_gradient = std::make_shared<OwnGradient>(OwnGradient{std::move(inputs), std::move(rule)});
  return n;
}

Lazy detach(const Lazy& x) {
  if (!x->requires_grad && !x->released) return x;
  Lazy n = renamed(x);
  n->requires_grad = false;
  return n;
}

// ---- broadcasting

Shape broadcast_shape(const Shape& a, const Shape& b) {
  Shape out(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Int x = i < a.size() ? a[a.size() - 1 - i] : Int(1),
              y = i < b.size() ? b[b.size() - 1 - i] : Int(1);
    if (!(x == y) && !x.is(1) && !y.is(1)) {
      throw ShapeError(cat("broadcast: the shapes ", to_text(a), " and ", to_text(b),
                           " do not agree", at_place(),
                           "; sizes must be equal or 1, counted from the last axis"));
    }
    out[out.size() - 1 - i] = x.is(1) ? y : x;
  }
  return out;
}

Lazy broadcast_to(const Lazy& x, const Shape& shape) {
  if (x->shape == shape) return x;
  Shape aligned(shape.size() - x->shape.size(), 1);
  aligned.insert(aligned.end(), x->shape.begin(), x->shape.end());
  return expand(reshape(x, aligned), shape);
}

// ---- scopes

PlaceScope::PlaceScope(Where where) : before_(place_now) {
  if (place_now.line == 0) place_now = where;  // the outermost call is the user's
}
PlaceScope::~PlaceScope() { place_now = before_; }
Where current_place() { return place_now; }
bool grad_enabled() { return recording; }
void set_grad_enabled(bool on) { recording = on; }

// ---- walking

std::vector<Lazy> topological(std::span<const Lazy> roots) {
  std::vector<Lazy> order;
  std::unordered_set<const LazyBuffer*> seen;
  std::vector<std::pair<Lazy, std::size_t>> stack;
  for (const Lazy& root : roots) {
    if (!root || !seen.insert(root.get()).second) continue;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      if (n->is_realized() || next == n->src.size()) {
        order.push_back(std::move(n));
        stack.pop_back();
        continue;
      }
      const Lazy s = n->src[next++];
      if (seen.insert(s.get()).second) stack.emplace_back(s, 0);
    }
  }
  return order;
}

std::string to_text(std::span<const Lazy> roots) {
  std::string out;
  std::unordered_map<const LazyBuffer*, std::size_t> number;
  for (const Lazy& n : topological(roots)) {
    const std::size_t me = number.size();
    number.emplace(n.get(), me);
    out += cat("%", me, " = ", n->is_realized() ? "buffer" : std::string(name_of(n->op)));
    if (n->op == Op::reduce || n->op == Op::scan || n->op == Op::scatter)
      out += cat("_", std::string(name_of(n->reduce_op)));
    out += cat(" ", std::string(name_of(n->dtype)), " ", to_text(n->shape));
    if (n->op == Op::constant) out += " " + std::get<Scalar>(n->arg).text();
    if (!n->is_realized())
      for (const Lazy& s : n->src) out += cat(" %", number.at(s.get()));
    if (const std::string at = n->made.text(); !at.empty()) out += "  at " + at;
    out += '\n';
  }
  return out;
}

}  // namespace mote
