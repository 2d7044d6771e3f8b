// View: how the elements of a tensor lie in its base. Strides, an offset, and a mask: the part of
// each axis that is real; elsewhere the value is 0.
//
//   View::contiguous({2, 3})                     shape (2, 3), strides (3, 1), offset 0
//   .permute({1, 0})                             shape (3, 2), strides (1, 3)
//   .pad({{1, 0}, {0, 0}})                       shape (4, 2), offset -1, mask (1..4, 0..2)
//
// ShapeTracker: a stack of Views, the last one nearest to the user. Movement ops never touch data;
// whenever one View can say what a stack says, it becomes one View. Both are pure values. Sizes and
// strides may be symbolic.
#pragma once
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "symbolic/int.h"

namespace mote {

struct Span {  // begin included, end not
  Int begin, end;
  bool operator==(const Span&) const = default;
};

// Where an element lies: its flat index in the base, and whether it is real. Where `valid` is
// false the index means nothing and the value is 0.
struct Place {
  Expr index;  // dtype index
  Expr valid;  // bool
};

struct View {
  Shape shape;
  std::vector<Int> strides;  // 0 on axes of size 1
  Int offset = 0;
  std::optional<std::vector<Span>> mask;

  static View contiguous(Shape);
  bool is_contiguous() const;  // row-major, offset 0, no mask
  Place at(std::span<const Int> indices) const;
  bool operator==(const View&) const = default;
  std::string text() const;
};

// One axis of `windows`: `count` windows of `size` elements, `step` apart, elements `dilation`
// apart.
struct Window {
  Int size, step = 1, dilation = 1;
  bool operator==(const Window&) const = default;
};

class ShapeTracker {
 public:
  ShapeTracker() = default;  // of a scalar
  explicit ShapeTracker(Shape shape) : views_{View::contiguous(std::move(shape))} {}
  explicit ShapeTracker(std::vector<View> views) : views_(std::move(views)) {}

  const Shape& shape() const { return views_.back().shape; }
  std::span<const View> views() const { return views_; }
  bool is_contiguous() const;  // one contiguous View
  Int base_size() const;       // elements of the base that it expects

  // The movement ops. Arguments are checked by graph/ with the user's words; here wrong ones are
  // InternalError.
  ShapeTracker reshape(Shape) const;
  ShapeTracker permute(std::span<const int> axes) const;
  ShapeTracker expand(Shape) const;  // axes of size 1 (not rank) to any size
  ShapeTracker shrink(std::span<const Span>) const;
  ShapeTracker pad(std::span<const std::pair<Int, Int>> before_after) const;  // not negative
  ShapeTracker flip(std::span<const int> axes) const;
  // The last windows.size() axes (a, b, ..) become (a', b', .., wa, wb, ..): where the windows
  // start, then the places inside of one. a' = (a - dilation*(size - 1) - 1) / step + 1.
  ShapeTracker windows(std::span<const Window>) const;

  // This tracker seen through `outer`: outer's base is this one's elements in row-major order.
  ShapeTracker then(const ShapeTracker& outer) const;

  // The place in the base of the element at `indices`.
  Place at(std::span<const Int> indices) const;
  bool operator==(const ShapeTracker&) const = default;
  std::string text() const;

 private:
  std::vector<View> views_{View{}};
};

// The same element for a shape's row-major flat index and back.
Int flat_index(std::span<const Int> indices, const Shape&);
std::vector<Int> unflatten_index(const Int& flat, const Shape&);

}  // namespace mote
