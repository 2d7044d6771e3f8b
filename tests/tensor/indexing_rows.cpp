// Each row makes the values of the case of its name in golden.py, in the same order.
#include <cmath>

#include "tensor/golden.h"

namespace mote::testing {
namespace {

using In = const Tensors&;
const Slice all, back({}, {}, -1), even({}, {}, 2);

Row bits(const char* op, std::function<Tensors(In)> f) { return {op, Bound::bits, std::move(f)}; }
Row read(const char* op, std::function<Tensors(In)> f) { return {op, Bound::values, std::move(f)}; }
Row near(const char* op, std::function<Tensors(In)> f) { return {op, Bound::reduce, std::move(f)}; }

Rows reading_rows() {
  return {
      read("fancy",
           [](In in) {
             const Tensor &x = in[0], &i = in[1], &j = in[2];
             return Tensors{x(i),
                            x(all, i),
                            x(ellipsis, i),
                            x(i, i),
                            x(all, j, i % 3),
                            x(j, all, 1),
                            x(i, all, i % 3),
                            x(1, i),
                            x(i, 1),
                            x(all, newaxis, i),
                            x(j),
                            x(Slice(1, 3), i, back)};
           }),
      read("mask",
           [](In in) {
             const Tensor &x = in[0], &m = in[1];
             return Tensors{x(m), x(m(all, 0)), x(all, m(0)),
                            x(Tensor::zeros({4}, {.dtype = DType::boolean}))};
           }),
      read("gather", [](In in) { return Tensors{in[0].gather(2, in[1])}; }),
      read("gather0", [](In in) { return Tensors{in[0].gather(0, in[1])}; }),
      read("gather_out", [](In in) { return Tensors{in[0].gather(1, in[1])}; }),
      read("gather_short", [](In in) { return Tensors{in[0].gather(-1, in[1])}; }),
      read("index_select",
           [](In in) {
             return Tensors{in[0].index_select(0, in[1]), in[0].index_select(1, in[1])};
           }),
      read("one_hot", [](In in) { return Tensors{in[0].one_hot(5)}; }),
      read("masked_fill", [](In in) { return Tensors{in[0].masked_fill(in[1], -INFINITY)}; }),
  };
}

Tensors reduced(In in, bool include_self) {
  Tensors out;
  for (ScatterReduce how : {ScatterReduce::sum, ScatterReduce::prod, ScatterReduce::amax,
                            ScatterReduce::amin, ScatterReduce::mean})
    out.push_back(in[0].scatter_reduce(0, in[1], in[2], how, include_self));
  return out;
}

Rows scatter_rows() {
  return {
      bits("scatter", [](In in) { return Tensors{in[0].scatter(0, in[1], in[2])}; }),
      bits("scatter_axis1",
           [](In in) {
             return Tensors{in[0].scatter(1, in[1], in[2]), in[0].scatter(1, in[1], 7)};
           }),
      near("scatter_reduce", [](In in) { return reduced(in, true); }),
      near("scatter_reduce_alone", [](In in) { return reduced(in, false); }),
  };
}

// A fresh copy of x for each write.
template <class... F>
Tensors written(const Tensor& x, F... writes) {
  Tensors out;
  const auto run = [&](auto write) {
    const Tensor y = x + 0;
    write(y);
    out.push_back(y);
  };
  (run(writes), ...);
  return out;
}

Tensors setitem(In in) {
  const Tensor &x = in[0], &v = in[1];
  using T = const Tensor&;
  return written(
      x,                                //
      [](T y) { y(0) = 5; },            //
      [](T y) { y(all, 1) = 7; },       //
      [&](T y) { y(1) = v; },           //
      [&](T y) { y(even, back) = v; },  //
      [&](T y) { y(Slice(1, 3), Slice(4, 1, -2)) = Tensor({{1}, {2}}).cast(y.dtype()); },
      [&](T y) { y(Tensor({0, 0, -1}), Tensor({1, 1, 2})) = Tensor({50, 51, 52}).cast(y.dtype()); },
      [&](T y) { y(Tensor({3, 1})) = v; },  //
      [&](T y) { y(all, Tensor({5, 0})) = Tensor({{8, 9}}).cast(y.dtype()); },
      [](T y) { y(y > 8) = 0; },        //
      [](T y) { y(Slice(1, 1)) = 3; },  //
      [](T y) { y(ellipsis, 2) += y(ellipsis, 3); },
      [](T y) { y(Slice(1, {})) = y(Slice({}, -1)); }, [](T y) { y(all, back) = y; });
}

}  // namespace

Rows indexing_rows() {
  Rows rows = reading_rows();
  for (const Row& r : scatter_rows()) rows.push_back(r);
  rows.push_back(bits("setitem", setitem));
  return rows;
}

}  // namespace mote::testing
