// LazyBuffer: what to compute, or already computed. A node of the lazy graph: op, sources, shape,
// dtype, device, and its Buffer once it is realized. Building never runs anything.
//
//   auto a = from_buffer(buf, {2, 3}, float32);
//   auto s = reduce(Op::add, elementwise(Op::mul, {a, a}), {1});   // shape (2, 1): axes stay as 1
//
// A movement op is a view: it keeps its op and arguments (its adjoint is read from them) and,
// beside them, `base` and the tracker composed down to it. Nodes are shared handles; a graph a
// million nodes deep is freed by a loop.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ir/expr.h"
#include "mote/error.h"
#include "runtime/device.h"
#include "shape/view.h"

namespace mote {

class LazyBuffer;
using Lazy = std::shared_ptr<LazyBuffer>;

// The arguments of an op, by kind.
using Axes = std::vector<int>;                     // permute, flip; reduce; scan (one)
using Padding = std::vector<std::pair<Int, Int>>;  // pad: before and after each axis
using Spans = std::vector<Span>;                   // shrink
using Windows = std::vector<Window>;               // windows
struct Step {                                      // one axis of a region: begin + step * i
  Int begin, step = 1, count;                      // step may be negative
  bool operator==(const Step&) const = default;
};
using Region = std::vector<Step>;  // assign: the part written; empty = all
using LazyArg = std::variant<std::monostate, Scalar, Shape, Axes, Padding, Spans, Windows, Region>;

// A gradient that a composed op brings along: from (gradient of the value, the value) to one
// gradient for each input, null where there is none.
struct OwnGradient {
  std::vector<Lazy> inputs;
  std::function<std::vector<Lazy>(const Lazy& gradient, const Lazy& value)> rule;
};

class LazyBuffer : public std::enable_shared_from_this<LazyBuffer> {
 public:
  ~LazyBuffer();

  Op op;  // buffer, constant, iota, elementwise, reduce, scan, ..
  DType dtype;
  Device* device;
  Shape shape;
  std::vector<Lazy> src;  // empty once realized and not kept for a gradient
  LazyArg arg;
  Op reduce_op = Op::add;  // of reduce, scan and scatter (scatter: Op::store sets)

  Lazy base;             // of a view: the nearest node that is none; else null
  ShapeTracker tracker;  // of a view: down to base; else contiguous

  bool requires_grad = false;  // set on parameters, inherited
  bool released = false;       // a backward let its history go
  std::shared_ptr<OwnGradient> own_gradient;
  std::weak_ptr<struct TensorState> handle;  // of a leaf: whose gradient it is
  Where made;                                // the user's place, for messages
  Where overwritten;                         // where it was written in place since (line 0: never)
  std::string name;                          // of a parameter or input, for messages and dumps

  // The bytes, once realized. Guarded by graph_lock() while scheduling; a realized node keeps its
  // sources only if `keeps_sources`.
  std::shared_ptr<Buffer> buffer;
  bool is_realized() const { return buffer != nullptr; }
  bool is_view() const { return base != nullptr; }
  // Is the value stored or known without computing: realized, constant, or a view of that.
  void realized_as(std::shared_ptr<Buffer>);  // publishes bytes; drops the sources if it may
  std::int64_t elements() const;              // of a constant shape; else the upper bound

  static std::int64_t alive();  // nodes that exist, for leak tests

 private:
  friend Lazy make_lazy(Op, std::vector<Lazy>, Shape, DType, Device*, LazyArg);
  LazyBuffer() = default;
};

// One lock covers scheduling, up to the publishing of buffers.
std::recursive_mutex& graph_lock();

// ---- building. Shapes and dtypes are checked; what a user can get wrong throws ShapeError,
// DTypeError or IndexError with the place of `where()` below; the rest InternalError.
Lazy make_lazy(Op, std::vector<Lazy> src, Shape, DType, Device*, LazyArg = {});
Lazy from_buffer(std::shared_ptr<Buffer>, Shape, DType);
Lazy constant_lazy(Scalar, Shape, Device&);  // a broadcast scalar, no bytes
Lazy iota(Int size, DType, Device&);         // 0, 1, .. size-1
Lazy elementwise(Op, std::vector<Lazy>);     // equal shapes and dtypes (where: bool first)
Lazy cast_lazy(const Lazy&, DType);
Lazy bitcast_lazy(const Lazy&, DType);      // equal sizes
Lazy reduce_lazy(Op, const Lazy&, Axes);    // add, mul, max, min, and, or; axes become 1
Lazy scan_lazy(Op, const Lazy&, int axis);  // add, mul, max, min; inclusive
Lazy reshape(const Lazy&, Shape);
Lazy permute(const Lazy&, Axes);
Lazy expand(const Lazy&, Shape);  // axes of size 1 to any size
Lazy shrink(const Lazy&, Spans);
Lazy pad(const Lazy&, Padding);  // with 0
Lazy flip(const Lazy&, Axes);
Lazy windows(const Lazy&, Windows);  // see ShapeTracker::windows
Lazy contiguous(const Lazy&);        // stored in row-major order
Lazy copy_to(const Lazy&, Device&);
// The value of target with `region` replaced by value (empty region: all of it). When it is
// realized it takes over target's bytes, in place where nobody else needs the old ones.
Lazy assign(const Lazy& target, const Lazy& value, Region = {});
Lazy taken(const Lazy&, const Region&);  // a view of the region
// target with value[.., j, ..] written at index[.., j, ..] along `axis` (index and value have equal
// shapes, the other axes are target's): op store (last in row-major order wins), add, mul, max,
// min. An index outside of 0..n-1 writes nothing.
Lazy scatter(const Lazy& target, const Lazy& index, const Lazy& value, int axis, Op);
// The same value with another gradient.
Lazy with_gradient(const Lazy& value, std::vector<Lazy> inputs,
                   std::function<std::vector<Lazy>(const Lazy&, const Lazy&)> rule);
// The same value without history.
Lazy detach(const Lazy&);

// Broadcasting to the common shape (NumPy's rule), a view; ShapeError names both shapes.
Shape broadcast_shape(const Shape&, const Shape&);
Lazy broadcast_to(const Lazy&, const Shape&);

// The place that building now stands for in messages: set by the tensor layer for a scope.
class PlaceScope {
 public:
  explicit PlaceScope(Where);
  ~PlaceScope();
  PlaceScope(const PlaceScope&) = delete;

 private:
  Where before_;
};
Where current_place();

// Recording of history, for a scope and a thread.
bool grad_enabled();
void set_grad_enabled(bool);

// Every node below the roots once, sources first, by a loop. `through`: which sources to follow.
std::vector<Lazy> topological(std::span<const Lazy> roots);

std::string to_text(std::span<const Lazy> roots);  // one line a node, for dumps

}  // namespace mote
