// Each row makes the values of the function of its name in golden.py, for x of shape (2, 3, 4).
#include "tensor/golden.h"

namespace mote::testing {
namespace {

using T = const Tensor&;
const Slice all;

template <class F>
Row moves(const char* op, F f) {
  return {op, Bound::bits, [f](const Tensors& in) { return f(in[0]); }};
}
template <class F>
Row made(const char* op, Bound bound, F f) {
  return {op, bound, [f](const Tensors&) { return f(); }};
}

Tensors halves(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  Tensors out = a;
  out.insert(out.end(), b.begin(), b.end());
  return out;
}

Rows view_rows() {
  return {
      moves("reshape",
            [](T x) {
              return Tensors{x.reshape({4, 6}), x.reshape({24}), x.reshape({2, 1, 3, 4}),
                             x.view({-1, 8})};
            }),
      moves("permute",
            [](T x) {
              return Tensors{x.permute({2, 0, 1}), x.permute({1, 0, 2}), x.permute({0, -1, 1})};
            }),
      moves("transpose", [](T x) { return Tensors{x.transpose(0, 1), x.transpose(-1, 0)}; }),
      moves("permute_reshape",
            [](T x) {
              return Tensors{x.permute({2, 0, 1}).reshape({3, 8}),
                             x.permute({2, 1, 0}).reshape({-1})};
            }),
      moves("expand",
            [](T x) {
              return Tensors{x.expand({5, 2, -1, 4}), x(all, Slice(0, 1)).expand({2, 6, 4})};
            }),
      moves("shrink",
            [](T x) {
              return Tensors{x.shrink({{0, 1}, {1, 3}, {2, 4}}), x.shrink({{0, 2}, {1, 1}, {0, 4}}),
                             x.shrink({{1, 2}, {0, 3}, {0, 4}})};
            }),
      moves("pad",
            [](T x) {
              return Tensors{x.pad({{1, 0}, {0, 2}, {1, 1}}), x.pad({{0, 0}, {1, 1}, {2, 0}}, 7),
                             x.pad({{0, 0}, {0, 0}, {1, 2}})(all, Slice(1, {}))};
            }),
      moves("pad_crop", [](T x) { return Tensors{x.pad({{0, 1}, {-1, 1}, {2, -2}}, 3)}; }),
      moves("pad_slice",
            [](T x) {
              return Tensors{x.pad({{0, 0}, {0, 0}, {0, 3}}, 5)(all, all, Slice(4, {})).flip({2})};
            }),
      moves("flip", [](T x) { return Tensors{x.flip({0}), x.flip({1, -1}), x.flip({0, 1, 2})}; }),
      moves("squeeze",
            [](T x) {
              return Tensors{x.unsqueeze(1), x.unsqueeze(-1), x.unsqueeze(0),
                             x(Slice(0, 1)).squeeze(), x(Slice(0, 1), all, Slice(0, 1)).squeeze(2)};
            }),
      moves("flatten", [](T x) { return Tensors{x.flatten(), x.flatten(0, 1), x.flatten(1)}; }),
      moves("unflatten",
            [](T x) { return Tensors{x.unflatten(2, {2, -1}), x.unflatten(0, {1, 2})}; }),
      moves(
          "split",
          [](T x) { return halves(x.split(3, -1), x.split(std::vector<std::int64_t>{1, 2}, 1)); }),
      moves("chunk", [](T x) { return halves(x.chunk(2, 2), x.chunk(5)); }),
      moves("unfold",
            [](T x) { return Tensors{x.unfold(2, 2, 1), x.unfold(-1, 2, 2), x.unfold(1, 2, 1)}; }),
      moves("diagonal",
            [](T x) {
              const Tensor square = x(all, all, Slice(0, 3));
              return Tensors{square.diagonal(), square(0).diag(), x(0, 0).diag()};
            }),
      moves("slices",
            [](T x) {
              return Tensors{x(all, 1),
                             x(-1, all, 2),
                             x(all, Slice({}, {}, 2)),
                             x(all, Slice({}, {}, -1), Slice({}, {}, -2)),
                             x(ellipsis, Slice(3, 0, -1)),
                             x(ellipsis, Slice(-3, -1)),
                             x(Slice(1, 0)),
                             x(all, Slice(5, {})),
                             x(newaxis, all, newaxis, 1),
                             x(ellipsis, 0),
                             x(0, ellipsis, 1),
                             x(1, 2, 3),
                             x(ellipsis, Slice({}, {}, 3), Slice({}, {}, 3))};
            }),
      moves("slice_chain",
            [](T x) {
              const Slice even({}, {}, 2), back({}, {}, -1);
              return Tensors{x(all, even)(all, back)(ellipsis, Slice(1, {}))(ellipsis, even),
                             x.permute({2, 0, 1})(Slice(1, 3), back, even).reshape({-1})};
            }),
      moves("contiguous", [](T x) { return Tensors{x.permute({2, 1, 0}).contiguous()}; }),
  };
}

Rows joining_rows() {
  return {
      moves("cat",
            [](T x) {
              return Tensors{cat({x, x(Slice(0, 1)), x.flip({2})}),
                             cat({x, x(all, Slice(0, 1))}, 1),
                             cat({x, x(ellipsis, Slice(0, 0)), x(ellipsis, Slice(1, {}))}, -1)};
            }),
      moves("stack",
            [](T x) {
              return Tensors{stack({x, x.flip({0})}), stack({x, x.flip({0})}, -1),
                             stack({x(0), x(1), x(0)}, 1)};
            }),
      moves("repeat", [](T x) { return Tensors{x.repeat({2, 1, 3}), x.repeat({2, 1, 1, 1})}; }),
      moves("repeat_interleave",
            [](T x) { return Tensors{x.repeat_interleave(2, 1), x.repeat_interleave(3)}; }),
      moves(
          "roll",
          [](T x) { return Tensors{x.roll({1}, {2}), x.roll({1, -2}, {0, 1}), x.roll({9}, {1})}; }),
      moves("tril", [](T x) { return Tensors{x.tril(), x.tril(1), x.tril(-1), x.tril(-9)}; }),
      moves("triu", [](T x) { return Tensors{x.triu(), x.triu(2), x.triu(-1), x.triu(9)}; }),
      moves("empty_moves",
            [](T x) {
              return Tensors{x.reshape({3, 0}),
                             x.t(),
                             x.pad({{1, 1}, {0, 0}}),
                             x.flip({0}),
                             cat({x, Tensor::ones({2, 3})}),
                             x.repeat({2, 2}),
                             x(all, 1)};
            }),
      moves("scalar_moves",
            [](T x) { return Tensors{x.reshape({1, 1}), x.expand({2, 3}), x.flatten()}; }),
      {"cat_mixed", Bound::bits, [](const Tensors& in) { return Tensors{cat(in)}; }},
      {"meshgrid", Bound::bits, [](const Tensors& in) { return meshgrid(in); }},
  };
}

Rows creation_rows() {
  return {
      made("arange", Bound::bits,
           [] {
             return Tensors{Tensor::arange(5), Tensor::arange(2, 9, 3), Tensor::arange(5, -2, -2),
                            Tensor::arange(0), Tensor::arange(3, 3)};
           }),
      made("arange_float", Bound::bits,
           [] { return Tensors{Tensor::arange(0.0, 1.0, 0.25), Tensor::arange(5.0)}; }),
      made("linspace", Bound::elementwise,
           [] {
             return Tensors{Tensor::linspace(-1, 2, 7), Tensor::linspace(3, 9, 1),
                            Tensor::linspace(0, 1, 0)};
           }),
      made("eye", Bound::bits,
           [] { return Tensors{Tensor::eye(3), Tensor::eye(2, 4), Tensor::eye(0)}; }),
  };
}

}  // namespace

Rows movement_rows() {
  Rows rows = view_rows();
  for (const Rows& more : {joining_rows(), creation_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace mote::testing
