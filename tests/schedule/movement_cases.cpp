// Programs that move, index, scan and write in place.
#include "schedule/cases.h"

namespace mote::cases {
namespace {

Tensor square(Inputs& in) {
  const std::int64_t n = in.size(1024, 6);
  return in.floats({n, n});
}

Tensors padded_exp(Inputs& in) {
  return {square(in).pad({{1, 2}, {0, 3}}).exp(), square(in).exp().pad({{1, 2}, {0, 3}})};
}

Tensors concatenated(Inputs& in) {
  const Tensor x = square(in), y = square(in), z = square(in);
  return {cat({x, y * 2, z}, 1)};
}

Tensors embedding(Inputs& in) {
  const nn::Embedding table(in.size(50257, 11), in.size(768, 4));
  const Tensor tokens = in.integers({in.size(128, 5)}, in.size(50257, 11));
  in.begin(table);
  return {table(tokens)};
}

Tensors gathered(Inputs& in) {
  const Tensor x = square(in);
  return {x.gather(1, in.integers({x.size(0), in.size(8, 3)}, x.size(1)))};
}

Tensors selected(Inputs& in) {
  const Tensor x = square(in);
  return {x.index_select(0, in.integers({in.size(64, 3)}, x.size(0)))};
}

Tensors scattered(Inputs& in) {
  const Tensor x = square(in);
  const Tensor at = in.integers({in.size(64, 3), x.size(1)}, x.size(0));
  return {x.scatter_reduce(0, at, in.floats(at.shape()), ScatterReduce::sum)};
}

Tensors one_hot(Inputs& in) {
  return {in.integers({in.size(128, 5)}, in.size(1000, 7)).one_hot(in.size(1000, 7))};
}

Tensors slice_written(Inputs& in) {
  Tensor x = square(in);
  const std::int64_t half = x.size(0) / 2;
  x(Slice(0, half)) = in.floats({half, x.size(1)}) * 2;
  return {x};
}

Tensors added_in_place(Inputs& in) {
  Tensor x = square(in);
  x += square(in);
  return {x};
}

Tensors added_transposed(Inputs& in) {
  Tensor x = square(in);
  x += x.t();
  return {x};
}

Tensors halves_swapped(Inputs& in) {
  Tensor x = square(in);
  const std::int64_t half = x.size(0) / 2;
  const Tensor low = x(Slice(0, half)), high = x(Slice(half, {}));
  x(Slice(0, half)) = high;
  x(Slice(half, {})) = low;
  return {x};
}

Tensors windows_summed(Inputs& in) {
  return {in.floats({in.size(10000, 20)}).unfold(0, 5, 2).sum(1)};
}

}  // namespace

const std::vector<Case>& movement() {
  // clang-format off
  static const std::vector<Case> list{
      {"transposed",         [](Inputs& in) { return Tensors{square(in).t().contiguous()}; }},
      {"pad_and_exp",        padded_exp},
      {"flip",               [](Inputs& in) { return Tensors{square(in).flip({0, 1}) + 1}; }},
      {"roll",               [](Inputs& in) { return Tensors{square(in).roll({2}, {1}) + 1}; }},
      {"every_other",        [](Inputs& in) { return Tensors{square(in)(Slice(), Slice(1, {}, 2)) * 3}; }},
      {"cat",                concatenated},
      {"stack",              [](Inputs& in) { return Tensors{stack({square(in), square(in)}, 1)}; }},
      {"repeat_interleave",  [](Inputs& in) { return Tensors{square(in).repeat_interleave(3, 0) + 1}; }},
      {"windows_summed",     windows_summed},
      {"eye",                [](Inputs& in) { return Tensors{Tensor::eye(in.size(1000, 6)).contiguous()}; }},
      {"tril",               [](Inputs& in) { return Tensors{square(in).tril()}; }},
      {"one_hot",            one_hot},
      {"embedding",          embedding},
      {"gather",             gathered},
      {"index_select",       selected},
      {"scatter_add",        scattered},
      {"cumsum",             [](Inputs& in) { return Tensors{in.floats({in.size(1000000, 50)}).cumsum()}; }},
      {"cummax_of_rows",     [](Inputs& in) { return Tensors{square(in).cummax(1)}; }},
      {"logcumsumexp",       [](Inputs& in) { return Tensors{square(in).logcumsumexp(1)}; }},
      {"add_in_place",       added_in_place},
      {"add_own_transposed", added_transposed},
      {"write_a_slice",      slice_written},
      {"swap_halves",        halves_swapped},
      {"uniform_numbers",    [](Inputs& in) { return Tensors{Tensor::rand({in.size(100000, 30)})}; }},
      {"normal_numbers",     [](Inputs& in) { return Tensors{Tensor::randn({in.size(100000, 30)})}; }},
  };
  // clang-format on
  return list;
}

}  // namespace mote::cases
