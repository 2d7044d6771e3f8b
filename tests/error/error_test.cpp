// Wrong programs, the exception of each and its exact text. HERE stands for this file and a line.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <regex>
#include <typeinfo>

#include "engine/engine.h"
#include "mote/mote.h"

namespace mote::testing {
namespace {

struct Row {
  const std::type_info& kind;
  std::function<void()> wrong;
  std::string text;
};

// The text with its place replaced by HERE, and the line that it named.
std::string placeless(std::string text, int* line = nullptr) {
  static const std::regex place("error_test\\.cpp:([0-9]+)");
  std::smatch found;
  if (line && std::regex_search(text, found, place)) *line = std::stoi(found[1]);
  return std::regex_replace(text, place, "HERE");
}

void expect_errors(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    try {
      row.wrong();
      ADD_FAILURE() << "nothing was thrown, expected: " << row.text;
    } catch (const Error& e) {
      EXPECT_EQ(placeless(e.what()), row.text);
      EXPECT_TRUE(typeid(e) == row.kind) << typeid(e).name() << " of: " << row.text;
    } catch (const std::exception& e) {
      ADD_FAILURE() << "not an Error: " << e.what() << ", expected: " << row.text;
    }
  }
}

const std::type_info &shape_error = typeid(ShapeError), &dtype_error = typeid(DTypeError),
                     &index_error = typeid(IndexError), &device_error = typeid(DeviceError),
                     &value_error = typeid(ValueError), &jit_error = typeid(JitError),
                     &gradient_error = typeid(GradientError), &memory_error = typeid(MemoryError);

using Sizes = std::vector<std::int64_t>;

class Errors : public ::testing::Test {
 protected:
  void SetUp() override { set_default_device("CPU"); }

  const Tensor a = Tensor::ones({2, 3}), b = Tensor::ones({3, 4}), v = Tensor::ones({3}),
               s = Tensor(1.0f), i = Tensor({1, 2, 3}), e = Tensor::zeros({0, 3}),
               mask = Tensor({true, false, true}),
               bytes = Tensor::ones({3}, {.dtype = DType::uint8}), cube = Tensor::ones({2, 3, 4}),
               none;
};

// clang-format off
TEST_F(Errors, ShapesOfOperands) {
  const std::string rest = " the shapes (2, 3) and (3, 4) do not broadcast at HERE; sizes must be equal or 1, counted from the last axis";
  expect_errors({
      {shape_error, [&] { a + b; }, "add:" + rest},
      {shape_error, [&] { a - b; }, "sub:" + rest},
      {shape_error, [&] { a / b; }, "div:" + rest},
      {shape_error, [&] { a % b; }, "remainder:" + rest},
      {shape_error, [&] { (void)(a < b); }, "lt:" + rest},
      {shape_error, [&] { maximum(a, b); }, "maximum:" + rest},
      {shape_error, [&] { a.pow(b); }, "pow:" + rest},
      {shape_error, [&] { a.fmod(b); }, "fmod:" + rest},
      {shape_error, [&] { a.logaddexp(b); }, "logaddexp:" + rest},
      {shape_error, [&] { a.isclose(b); }, "isclose:" + rest},
      {shape_error, [&] { where(a < 1, b, 2); }, "where:" + rest},
      {shape_error, [&] { Tensor c = a + 0; c += b; }, "add:" + rest},
      {shape_error, [&] { mse_loss(a, b); }, "mse_loss:" + rest},
      {shape_error, [&] { l1_loss(a, b); }, "l1_loss:" + rest},
      {shape_error, [&] { binary_cross_entropy(a, b); }, "binary_cross_entropy:" + rest},
      {shape_error, [&] { a.matmul(a); }, "matmul: inner sizes differ, 3 and 2 (lhs (2, 3), rhs (2, 3)) at HERE; transpose one side or check in_features"},
      {shape_error, [&] { a.linear(b); }, "linear: inner sizes differ, 3 and 4 (lhs (2, 3), rhs (4, 3)) at HERE; transpose one side or check in_features"},
      {shape_error, [&] { a.matmul(s); }, "matmul: an operand is a scalar at HERE; multiply by * instead"},
      {shape_error, [&] { cube.matmul(Tensor::ones({3, 4, 5})); }, "matmul: batch sizes differ, 2 and 3 (lhs (2, 3, 4), rhs (3, 4, 5)) at HERE; sizes before the last two must be equal or 1"},
  });
}

TEST_F(Errors, Movement) {
  expect_errors({
      {shape_error, [&] { a.reshape({4, 2}); }, "reshape: shape (2, 3) has 6 elements, (4, 2) does not at HERE; the number of elements must stay"},
      {shape_error, [&] { a.reshape({-1, -1}); }, "reshape: size -1 in (-1, -1) at HERE; one size may be -1, the others are 0 or more"},
      {shape_error, [&] { a.permute({0}); }, "permute: axes are 1 for shape (2, 3) at HERE; name each axis once"},
      {index_error, [&] { a.permute({0, 0}); }, "permute: axis 0 is given twice at HERE; name each axis once"},
      {index_error, [&] { a.transpose(0, 2); }, "transpose: axis 2 is out of range for shape (2, 3) at HERE; use -2..1"},
      {shape_error, [&] { cube.t(); }, "t: the tensor has shape (2, 3, 4) at HERE; t takes up to 2 axes; use transpose"},
      {shape_error, [&] { a.expand({3}); }, "expand: shape (2, 3) has more axes than (3,) at HERE; give at least as many axes"},
      {shape_error, [&] { a.expand({4, 3}); }, "expand: shape (2, 3) does not expand to (4, 3) at HERE; only axes of size 1 expand"},
      {shape_error, [&] { a.expand({-1, 2, 3}); }, "expand: -1 for new axis 0 of (-1, 2, 3) at HERE; -1 keeps a size; give new axes one"},
      {shape_error, [&] { a.shrink({{0, 1}}); }, "shrink: 1 spans for shape (2, 3) at HERE; give one for each axis"},
      {index_error, [&] { a.shrink({{0, 3}, {0, 1}}); }, "shrink: span 0..3 of axis 0 of (2, 3) at HERE; it must lie in 0..2"},
      {shape_error, [&] { a.pad({{1, 1}}); }, "pad: 1 pairs for shape (2, 3) at HERE; give one for each axis"},
      {shape_error, [&] { a.pad({{-3, 0}, {0, 0}}); }, "pad: axis 0 of (2, 3) is cropped to less than nothing at HERE; crop less"},
      {index_error, [&] { a.flip({2}); }, "flip: axis 2 is out of range for shape (2, 3) at HERE; use -2..1"},
      {index_error, [&] { a.squeeze(2); }, "squeeze: axis 2 is out of range for shape (2, 3) at HERE; use -2..1"},
      {index_error, [&] { a.unsqueeze(3); }, "unsqueeze: axis 3 is out of range for shape (2, 3) at HERE; use -3..2"},
      {index_error, [&] { a.flatten(1, 0); }, "flatten: axis 1 comes after axis 0 at HERE; give the first axis first"},
      {shape_error, [&] { a.unflatten(1, {2, 2}); }, "unflatten: the sizes (2, 2) do not make 3, the size of axis 1 at HERE; their product must be the axis; one may be -1"},
      {value_error, [&] { a.split(0); }, "split: the size is 0 at HERE; give a positive size"},
      {shape_error, [&] { a.split(Sizes{1, 2}, 0); }, "split: the sizes add up to 3, axis 0 has 2 at HERE; they must add up to the axis"},
      {value_error, [&] { a.split(Sizes{-1, 3}, 0); }, "split: a size is negative at HERE; sizes are 0 or more"},
      {value_error, [&] { a.chunk(0); }, "chunk: the number of chunks is 0 at HERE; give a positive number"},
      {value_error, [&] { cat({}); }, "cat: no tensor is given at HERE; give at least one"},
      {shape_error, [&] { cat({a, b}); }, "cat: shapes (2, 3) and (3, 4) at HERE; all axes but the joined one must agree"},
      {index_error, [&] { cat({s, s}); }, "cat: axis 0 is out of range for shape () at HERE; a scalar has no axes"},
      {shape_error, [&] { stack({a, b}); }, "stack: shapes (2, 3) and (3, 4) at HERE; all shapes must be equal"},
      {shape_error, [&] { a.repeat({2}); }, "repeat: 1 repeats for shape (2, 3) at HERE; give at least one for each axis"},
      {value_error, [&] { a.repeat({-1, 1}); }, "repeat: the repeats (-1, 1) hold a negative one at HERE; give 0 or more"},
      {value_error, [&] { a.repeat_interleave(-1); }, "repeat_interleave: the number of repeats is -1 at HERE; give 0 or more"},
      {value_error, [&] { a.roll({1}, {0, 1}); }, "roll: 1 shifts for 2 axes at HERE; give one shift for each axis"},
      {shape_error, [&] { a.unfold(1, 4, 1); }, "unfold: windows of 4 every 1 in axis 1 of (2, 3) at HERE; a window must fit, steps are 1 or more"},
      {shape_error, [&] { a.diagonal(); }, "diagonal: shape (2, 3) at HERE; the last two axes must be equal"},
      {shape_error, [&] { cube.diag(); }, "diag: shape (2, 3, 4) at HERE; give a vector or a square matrix"},
      {shape_error, [&] { v.tril(); }, "tril: shape (3,) at HERE; give a matrix"},
  });
}

TEST_F(Errors, Axes) {
  expect_errors({
      {index_error, [&] { a.sum(2); }, "sum: axis 2 is out of range for shape (2, 3) at HERE; use -2..1"},
      {index_error, [&] { a.mean(-3); }, "mean: axis -3 is out of range for shape (2, 3) at HERE; use -2..1"},
      {index_error, [&] { a.max({0, -2}); }, "max: axis -2 is given twice at HERE; name each axis once"},
      {index_error, [&] { s.sum(0); }, "sum: axis 0 is out of range for shape () at HERE; a scalar has no axes"},
      {index_error, [&] { a.softmax(2); }, "softmax: axis 2 is out of range for shape (2, 3) at HERE; use -2..1"},
      {index_error, [&] { a.cumsum(2); }, "cumsum: axis 2 is out of range for shape (2, 3) at HERE; use -2..1"},
      {index_error, [&] { a.normalize(2, 4); }, "normalize: axis 4 is out of range for shape (2, 3) at HERE; use -2..1"},
      {index_error, [&] { a.layernorm(3); }, "layernorm: 3 axes of shape (2, 3) at HERE; give 1..2, counted from the last"},
      {shape_error, [&] { e.max(); }, "max: there is no element to choose from in shape (0, 3) at HERE; reduce an axis that is not empty"},
      {shape_error, [&] { e.argmin(); }, "argmin: there is no element to choose from in shape (0, 3) at HERE; reduce an axis that is not empty"},
      {shape_error, [&] { e.norm(INFINITY, 0); }, "norm: there is no element to choose from in shape (0, 3) at HERE; reduce an axis that is not empty"},
  });
}

TEST_F(Errors, Indices) {
  expect_errors({
      {index_error, [&] { a(2); }, "index: index 2 is out of range for axis 0 of shape (2, 3) at HERE; use -2..1"},
      {index_error, [&] { a(0, -4); }, "index: index -4 is out of range for axis 1 of shape (2, 3) at HERE; use -3..2"},
      {index_error, [&] { a(0, 0, 0); }, "index: 3 indices for shape (2, 3) at HERE; give at most 2"},
      {index_error, [&] { e(0); }, "index: index 0 is out of range for axis 0 of shape (0, 3) at HERE; the axis is empty"},
      {value_error, [&] { a(Slice(0, 1, 0)); }, "index: a slice has step 0 at HERE; use a step that is not 0"},
      {index_error, [&] { a(ellipsis, ellipsis); }, "index: there are two ellipses at HERE; use one"},
      {dtype_error, [&] { a(v); }, "index: an index tensor has dtype float32 at HERE; cast it to an integer"},
      {index_error, [&] { a(mask); }, "index: a mask of shape (3,) does not fit shape (2, 3) at HERE; a mask has the sizes of the axes it stands for"},
      {shape_error, [&] { a(Tensor({0, 1}), Tensor({0, 1, 2})); }, "index: the shapes (2,) and (3,) do not broadcast at HERE; sizes must be equal or 1, counted from the last axis"},
      {shape_error, [&] { a.gather(1, i); }, "gather: the index has shape (3,), the tensor (2, 3) at HERE; they need the same number of axes"},
      {dtype_error, [&] { a.gather(1, a); }, "gather: the index has dtype float32 at HERE; cast it to an integer"},
      {shape_error, [&] { a.gather(1, Tensor({{0}, {0}, {0}})); }, "gather: the index has shape (3, 1), the tensor (2, 3) at HERE; other axes may not be longer than the tensor's"},
      {dtype_error, [&] { a.index_select(0, v); }, "index_select: the index has dtype float32 at HERE; cast it to an integer"},
      {shape_error, [&] { a.scatter(0, i, 1); }, "scatter: index (3,) and source (3,) for a tensor of shape (2, 3) at HERE; they need the same number of axes"},
      {shape_error, [&] { a.scatter(1, Tensor({{1, 2, 0, 1}}), Tensor::ones({1, 2})); }, "scatter: index (1, 4) is larger than source (1, 2) or tensor (2, 3) at HERE; make the index smaller"},
      {dtype_error, [&] { a.scatter(0, a, a); }, "scatter: the index has dtype float32 at HERE; cast it to an integer"},
      {value_error, [&] { i.one_hot(-1); }, "one_hot: the number of classes is -1 at HERE; give 0 or more"},
      {dtype_error, [&] { a.one_hot(3); }, "one_hot: the index has dtype float32 at HERE; cast it to an integer"},
      {dtype_error, [&] { a.masked_fill(a, 1); }, "masked_fill: the condition has dtype float32 at HERE; compare it with something, or cast it to bool"},
      {shape_error, [&] { a(0) = Tensor::ones({2}); }, "setitem: a value of shape (2,) does not broadcast to the part's shape (3,) at HERE; give a value that does"},
      {shape_error, [&] { a(0) = b; }, "setitem: a value of shape (3, 4) does not broadcast to the part's shape (3,) at HERE; give a value that does"},
      {index_error, [&] { a(5) = 1; }, "index: index 5 is out of range for axis 0 of shape (2, 3) at HERE; use -2..1"},
      {shape_error, [&] { a(0) += Tensor::ones({4}); }, "add: the shapes (3,) and (4,) do not broadcast at HERE; sizes must be equal or 1, counted from the last axis"},
      {shape_error, [&] { Tensor(a).assign(b); }, "assign: a value of shape (3, 4) does not broadcast to the tensor's shape (2, 3) at HERE; assign keeps the shape"},
  });
}

TEST_F(Errors, DTypes) {
  expect_errors({
      {value_error, [&] { bytes + 256; }, "add: the number 256 does not fit in uint8 at HERE; cast the tensor to a wider dtype first"},
      {value_error, [&] { -1 * bytes; }, "mul: the number -1 does not fit in uint8 at HERE; cast the tensor to a wider dtype first"},
      {dtype_error, [&] { mask - mask; }, "sub: both operands are bool at HERE; use ^ or cast to an integer"},
      {dtype_error, [&] { -mask; }, "neg: the dtype is bool at HERE; use ! or cast to an integer"},
      {dtype_error, [&] { a & a; }, "and: the dtype is float32 at HERE; bit operations take integers and bools; cast first"},
      {dtype_error, [&] { a << 1; }, "shl: the dtype is float32 at HERE; bit operations take integers and bools; cast first"},
      {dtype_error, [&] { ~a; }, "bitwise_not: the dtype is float32 at HERE; bit operations take integers and bools; cast first"},
      {dtype_error, [&] { where(a, 1, 2); }, "where: the condition has dtype float32 at HERE; compare it with something, or cast it to bool"},
      {value_error, [&] { i.clip({}, {}); }, "clip: no bound is given at HERE; give low, high or both"},
      {dtype_error, [&] { i.clip(0.5, {}); }, "clip: a bound of an integer tensor is no whole number at HERE; cast the tensor"},
      {dtype_error, [&] { a.bitcast(DType::float64); }, "bitcast: float32 and float64 have different sizes at HERE; use cast to convert values"},
      {dtype_error, [&] { set_default_float(DType::int8); }, "set_default_float: int8 is no float at HERE; give float32 or another"},
      {dtype_error, [&] { set_default_int(DType::float32); }, "set_default_int: float32 is no integer at HERE; give int64 or another"},
      {dtype_error, [&] { Tensor q = i; q += 1.5; }, "add: the result is float32, the tensor int32 at HERE; cast the tensor, or the result by assign"},
      {dtype_error, [&] { Tensor q = i; q /= 2; }, "div: the result is float32, the tensor int32 at HERE; cast the tensor, or the result by assign"},
      {dtype_error, [&] { i(0) -= a(0, 0); }, "sub: the result is float32, the tensor int32 at HERE; cast the tensor, or the result by assign"},
      {dtype_error, [&] { Tensor q = mask; q *= 2; }, "mul: the result is int64, the tensor bool at HERE; cast the tensor, or the result by assign"},
      {dtype_error, [&] { dtype_named("flaot32"); }, "no dtype is called 'flaot32'; did you mean 'float32'?"},
  });
}

TEST_F(Errors, NumbersThatDoNotFit) {
  const std::string wider = " at HERE; cast the tensor to a wider dtype first";
  const Tensor whole = Tensor::zeros({2}, {.dtype = DType::uint64}), small = Tensor::zeros({2}, {.dtype = DType::int8});
  expect_errors({
      {value_error, [&] { Tensor(small).assign(300); }, "assign: the number 300 does not fit in int8" + wider},
      {value_error, [&] { Tensor(i).assign(1.5); }, "assign: the number 1.5 does not fit in int32" + wider},
      {value_error, [&] { Tensor(i).assign(NAN); }, "assign: the number nan does not fit in int32" + wider},
      {value_error, [&] { small(0) = -129; }, "setitem: the number -129 does not fit in int8" + wider},
      {value_error, [&] { i(Tensor({0, 1})) = 1.5; }, "setitem: the number 1.5 does not fit in int32" + wider},
      {value_error, [&] { i.masked_fill(i > 1, 0.5); }, "masked_fill: the number 0.5 does not fit in int32" + wider},
      {value_error, [&] { small.masked_fill(small > 1, 128); }, "masked_fill: the number 128 does not fit in int8" + wider},
      {value_error, [&] { Tensor::full({2}, 300, {.dtype = DType::int8}); }, "full: the number 300 does not fit in int8" + wider},
      {value_error, [&] { Tensor::full({2}, 1e30, {.dtype = DType::int64}); }, "full: the number 1e+30 does not fit in int64" + wider},
      {value_error, [&] { i.full_like(2147483648); }, "full_like: the number 2147483648 does not fit in int32" + wider},
      {value_error, [&] { whole + -1; }, "add: the number -1 does not fit in uint64" + wider},
      {value_error, [&] { i + 18446744073709551615u; }, "add: the number 18446744073709551615 does not fit in int32" + wider},
      {value_error, [&] { small.scatter(0, Tensor({0, 1}), 300); }, "scatter: the number 300 does not fit in int8" + wider},
  });
}

TEST_F(Errors, MakingAndReading) {
  expect_errors({
      {shape_error, [&] { a.item<float>(); }, "item: the tensor has shape (2, 3), not one element at HERE; index or reduce it first"},
      {shape_error, [&] { e.item<int>(); }, "item: the tensor has shape (0, 3), not one element at HERE; index or reduce it first"},
      {shape_error, [&] { Tensor::zeros({-1}); }, "zeros: size -1 is negative at HERE; sizes are 0 or more"},
      {shape_error, [&] { Tensor::zeros({std::int64_t{1} << 40, std::int64_t{1} << 40}); }, "zeros: the sizes do not fit in 63 bits at HERE; use smaller sizes"},
      {shape_error, [&] { Tensor(std::vector<float>{1, 2}, {3}); }, "tensor: 2 values were given for shape (3,) at HERE; give 3 values, or another shape"},
      {shape_error, [&] { Tensor({{1, 2}, {3}}); }, "tensor: a row of 1 values stands beside rows of 2 at HERE; all rows need the same length"},
      {shape_error, [&] { Tensor::from_bytes({}, {2}, DType::int8); }, "tensor: 0 bytes were given for (2,) of int8 at HERE; the size of the data must be the product of the shape times the size of the dtype"},
      {value_error, [&] { Tensor::from_blob(nullptr, {2}, DType::int8); }, "from_blob: the address is null at HERE; give memory that outlives it"},
      {value_error, [&] { Tensor::arange(0, 5, 0); }, "arange: the step is 0 at HERE; give a step that is not 0"},
      {value_error, [&] { Tensor::arange(a); }, "arange: a bound or the step is a tensor at HERE; give numbers; item() reads one"},
      {shape_error, [&] { Tensor::linspace(0, 1, -1); }, "linspace: the number of steps is -1 at HERE; give 0 or more"},
      {value_error, [&] { Tensor::randint(5, 2, {3}); }, "randint: there is no integer in 5..1 at HERE; give low < high"},
      {shape_error, [&] { Tensor::arange(0, INFINITY); }, "arange: 0 to inf by 1 is no number of elements at HERE; give finite bounds and a step that reaches them"},
      {shape_error, [&] { Tensor::arange(0, 1e30); }, "arange: 0 to 1e+30 by 1 is no number of elements at HERE; give finite bounds and a step that reaches them"},
      {shape_error, [&] { Tensor::arange(NAN); }, "arange: 0 to nan by 1 is no number of elements at HERE; give finite bounds and a step that reaches them"},
      {shape_error, [&] { Tensor::arange(0, 5, NAN); }, "arange: 0 to 5 by nan is no number of elements at HERE; give finite bounds and a step that reaches them"},
      {shape_error, [&] { s.expand({std::int64_t{1} << 40, std::int64_t{1} << 40}); }, "expand: the sizes do not fit in 63 bits at HERE; use smaller sizes"},
      {shape_error, [&] { s.reshape({std::int64_t{1} << 40, std::int64_t{1} << 40}); }, "reshape: the sizes (1099511627776, 1099511627776) do not fit in 63 bits at HERE; use smaller sizes"},
      {dtype_error, [&] { Tensor::zeros({2}, {.dtype = static_cast<DType>(99)}); }, "zeros: no tensor has the dtype of number 99 at HERE; use one of boolean .. float64"},
      {dtype_error, [&] { a.cast(DType::index); }, "cast: no tensor has the dtype of number 15 at HERE; use one of boolean .. float64"},
      {dtype_error, [&] { a.sum({}, false, static_cast<DType>(77)); }, "sum: no tensor has the dtype of number 77 at HERE; use one of boolean .. float64"},
      {dtype_error, [&] { Tensor::rand({2}, {.dtype = DType::int32}); }, "rand: the dtype is int32 at HERE; draw floats, or call randint"},
      {dtype_error, [&] { Tensor::normal({2}, 0, 1, {.dtype = DType::boolean}); }, "normal: the dtype is bool at HERE; draw floats, or call randint"},
      {value_error, [&] { Tensor::normal({2}, 0, -1); }, "normal: the standard deviation is -1 at HERE; give 0 or more"},
      {value_error, [&] { Tensor::uniform({2}, 1, 0); }, "uniform: the bounds are 1 and 0 at HERE; give low <= high"},
      {value_error, [&] { Tensor::randint(0, 300, {2}, {.dtype = DType::int8}); }, "randint: the number 299 does not fit in int8 at HERE; cast the tensor to a wider dtype first"},
      {value_error, [&] { v.multinomial(4); }, "multinomial: 4 samples of 3 classes at HERE; draw at most as many as there are, or with replacement"},
      {value_error, [&] { a.dropout(1.5); }, "dropout: the probability is 1.5 at HERE; give one in 0..1"},
      {value_error, [&] { none + 1; }, "add: the tensor is not defined at HERE; give it a value first"},
      {value_error, [&] { a + none; }, "add: the tensor is not defined at HERE; give it a value first"},
      {value_error, [&] { none.exp(); }, "exp: the tensor is not defined at HERE; give it a value first"},
      {value_error, [&] { none.sum(); }, "sum: the tensor is not defined at HERE; give it a value first"},
      {value_error, [&] { none(0); }, "index: the tensor is not defined at HERE; give it a value first"},
      {value_error, [&] { Tensor().realize(); }, "realize: the tensor is not defined at HERE; give it a value first"},
      {value_error, [&] { none.shape(); }, "the tensor is not defined; give it a value first"},
  });
}

TEST_F(Errors, ConvolutionsPoolsAndLosses) {
  const Tensor x = Tensor::ones({1, 4, 5, 5}), w = Tensor::ones({6, 4, 3, 3}), t = Tensor::ones({4, 2, 3, 3});
  const std::string groups = " groups for 6 outputs at HERE; channels must be groups times the weight's second size, and groups divide the outputs";
  LossOptions weighted;
  weighted.weight = Tensor::ones({2});
  expect_errors({
      {shape_error, [&] { x.conv(Tensor::ones({6, 3, 3, 3})); }, "conv: the input has 4 channels, the weight takes 3 in each of 1" + groups},
      {shape_error, [&] { x.conv(w, {}, {.groups = 3}); }, "conv: the input has 4 channels, the weight takes 4 in each of 3" + groups},
      {shape_error, [&] { x.conv(v); }, "conv: input (1, 4, 5, 5) and weight (3,) at HERE; give (N, C, ..) and (O, C/groups, ..)"},
      {shape_error, [&] { x.conv(w, {}, {.stride = {1, 2, 3}}); }, "conv: 3 numbers for stride of 2 axes at HERE; give one, or one for each axis"},
      {value_error, [&] { x.conv(w, {}, {.stride = {0}}); }, "conv: a kernel, stride or dilation is less than 1 at HERE; use 1 or more"},
      {shape_error, [&] { x.conv(Tensor::ones({6, 4, 7, 7})); }, "conv: the kernel reaches over 7 elements, the padded input has 5 at HERE; use a smaller kernel or more padding"},
      {shape_error, [&] { x.conv(w, v); }, "conv: the bias has shape (3,) for 6 outputs at HERE; give one number for each output"},
      {shape_error, [&] { x.conv_transpose(w); }, "conv_transpose: input (1, 4, 5, 5) and weight (6, 4, 3, 3) at HERE; give (N, C, ..) and (C, O/groups, ..)"},
      {shape_error, [&] { x.conv_transpose(t, v); }, "conv_transpose: the bias has shape (3,) for 2 outputs at HERE; give one number for each output"},
      {shape_error, [&] { x.conv_transpose(t, {}, {.groups = 3}); }, "conv_transpose: 3 groups do not divide the 4 channels at HERE; give groups that do"},
      {shape_error, [&] { x.max_pool({6, 6}); }, "max_pool: the kernel reaches over 6 elements, the padded input has 5 at HERE; use a smaller kernel or more padding"},
      {shape_error, [&] { x.max_pool({2, 2, 2, 2, 2}); }, "max_pool: shape (1, 4, 5, 5) has fewer axes than the kernel at HERE; pool over the last axes"},
      {value_error, [&] { x.avg_pool({2, 2}, {.stride = {0}}); }, "avg_pool: a kernel, stride or dilation is less than 1 at HERE; use 1 or more"},
      {shape_error, [&] { cross_entropy(a, i); }, "cross_entropy: input (2, 3) and target (3,) at HERE; the target has the input's shape without the classes"},
      {shape_error, [&] { cross_entropy(s, i); }, "cross_entropy: the input is a scalar at HERE; give (N, C) or (C,)"},
      {shape_error, [&] { cross_entropy(a, b); }, "cross_entropy: logits (2, 3) and probabilities (3, 4) at HERE; their shapes must be equal"},
      {shape_error, [&] { cross_entropy(a, Tensor({0, 1}), weighted); }, "cross_entropy: the weight has shape (2,) for 3 classes at HERE; give one number for each class"},
      {value_error, [&] { LossOptions o; o.label_smoothing = 3; cross_entropy(a, Tensor({0, 1}), o); }, "cross_entropy: label_smoothing is 3 at HERE; give one in 0..1"},
      {dtype_error, [&] { cross_entropy(a, Tensor({true, false})); }, "cross_entropy: the target has dtype bool at HERE; cast it to an integer"},
      {shape_error, [&] { v.dot(Tensor::ones({4})); }, "dot: inner sizes differ, 3 and 4 (lhs (3,), rhs (4,)) at HERE; transpose one side or check in_features"},
      {shape_error, [&] { a.diag(); }, "diag: shape (2, 3) at HERE; the last two axes must be equal"},
      {value_error, [&] { x.conv_transpose(t, {}, {.stride = {0}}); }, "conv_transpose: a stride is less than 1, or an output padding less than 0 at HERE; use 1 or more, and 0 or more"},
      {shape_error, [&] { a.scaled_dot_product_attention(b, b); }, "scaled_dot_product_attention: inner sizes differ, 3 and 4 (lhs (2, 3), rhs (4, 3)) at HERE; transpose one side or check in_features"},
  });
}

TEST_F(Errors, LayersNameThePlaceOfTheirCall) {
  const Tensor x = Tensor::ones({1, 4, 5, 5});
  const nn::Linear linear(4, 2);
  const nn::Conv2d conv(3, 2, 3);
  const nn::LayerNorm norm(Dims{4});
  const nn::LayerNorm plain(Dims{2, 4}, 1e-5, false);
  const nn::RMSNorm rms(4);
  const nn::BatchNorm batch(3);
  const nn::GroupNorm group(2, 6);
  const nn::Embedding rows(10, 2);
  expect_errors({
      {shape_error, [&] { linear(a); }, "linear: inner sizes differ, 3 and 4 (lhs (2, 3), rhs (4, 2)) at HERE; transpose one side or check in_features"},
      {shape_error, [&] { linear.forward(a); }, "linear: inner sizes differ, 3 and 4 (lhs (2, 3), rhs (4, 2)) at HERE; transpose one side or check in_features"},
      {shape_error, [&] { conv(x); }, "conv2d: the input has 4 channels, the weight takes 3 in each of 1 groups for 2 outputs at HERE; channels must be groups times the weight's second size, and groups divide the outputs"},
      {shape_error, [&] { norm(a); }, "layernorm: the input has shape (2, 3), the layer normalizes (4,) at HERE; the last axes must be equal"},
      {shape_error, [&] { norm(Tensor::ones({2, 1})); }, "layernorm: the input has shape (2, 1), the layer normalizes (4,) at HERE; the last axes must be equal"},
      {shape_error, [&] { plain(Tensor::ones({3, 4})); }, "layernorm: the input has shape (3, 4), the layer normalizes (2, 4) at HERE; the last axes must be equal"},
      {shape_error, [&] { rms(Tensor::ones({2, 1})); }, "rmsnorm: the input has shape (2, 1), the layer normalizes (4,) at HERE; the last axes must be equal"},
      {shape_error, [&] { batch(x); }, "batchnorm: the layer has 3 channels, the input the shape (1, 4, 5, 5) at HERE; give (N, channels, ..)"},
      {shape_error, [&] { group(x); }, "groupnorm: the layer has 6 channels, the input the shape (1, 4, 5, 5) at HERE; give (N, channels, ..)"},
      {dtype_error, [&] { rows(a); }, "embedding: the index has dtype float32 at HERE; cast it to an integer"},
      {value_error, [&] { nn::Linear(0, 2); }, "linear: a size of 0 is given at HERE; give 1 or more"},
      {value_error, [&] { nn::Conv2d(4, 2, 3, {.stride = 0}); }, "conv2d: a kernel, stride, dilation or number of groups of 0 is given at HERE; give 1 or more"},
      {value_error, [&] { nn::Conv2d(4, 2, 3, {.groups = 3}); }, "conv2d: 3 groups do not divide 4 and 2 channels at HERE; give groups that divide both"},
      {value_error, [&] { nn::GroupNorm(4, 6); }, "groupnorm: 4 groups do not divide 6 channels at HERE; give groups that do"},
      {index_error, [&] { nn::Embedding(10, 2, 10); }, "embedding: the padding index 10 is out of range at HERE; use -10..9"},
      {value_error, [&] { const nn::Dropout d(2); }, "dropout: the probability is 2 at HERE; give one in 0..1"},
      {value_error, [&] { nn::Linear(4, 2).load_state_dict({}); }, "load_state_dict: 'bias' is missing at HERE; given are no tensors"},
      {shape_error, [&] { nn::Linear(4, 2, false).load_state_dict({{"weight", a}}); }, "load_state_dict: 'weight' has shape (2, 4), the value (2, 3) at HERE; build the module with the same sizes"},
  });
}

TEST_F(Errors, Gradients) {
  Tensor p = Tensor::ones({2, 2}, {.requires_grad = true});
  const std::string let_go = "backward: the history of a tensor of shape (2, 2) was let go by an earlier backward at HERE; give that one retain_graph = true, or detach the tensor";
  const std::string history = "backward: the tensor does not depend on one that requires a gradient at HERE; call set_requires_grad on a parameter, and keep the history (no NoGrad, no earlier backward)";
  expect_errors({
      {gradient_error, [&] { a.sum().backward(); }, history},
      {gradient_error, [&] { Tensor l = (p * p).sum(); l.backward(); l.backward(); }, history},
      {gradient_error, [&] { const NoGrad off; (p * p).sum().backward(); }, history},
      {gradient_error, [&] { Tensor h = p.exp(), l = (h * h).sum(); h.sum().backward(); l.backward(); }, let_go},
      {gradient_error, [&] { Tensor h = p.exp(), l = (h * h).sum(); h.sum().backward(); gradient({l}, {p}); }, let_go},
      {gradient_error, [&] { Tensor h = p.exp(); h.sum().backward(); (h * p).sum().backward(); }, let_go},
      {gradient_error, [&] { (p * p).backward(); }, "backward: the tensor has shape (2, 2), not one element at HERE; reduce it first, or give the gradient of the output"},
      {shape_error, [&] { (p * p).backward(v); }, "backward: the gradient has shape (3,), the tensor (2, 2) at HERE; their shapes must be equal"},
      {gradient_error, [&] { Tensor(i).set_requires_grad(); }, "set_requires_grad: the dtype is int32 at HERE; only floats have gradients"},
      {gradient_error, [&] { Tensor::zeros({2}, {.dtype = DType::int32, .requires_grad = true}); }, "zeros: the dtype is int32 at HERE; only floats have gradients"},
      {gradient_error, [&] { gradient({p.sum()}, {a}); }, "gradient: an input does not require a gradient at HERE; call set_requires_grad on it first"},
      {gradient_error, [&] { gradient({p > 0}, {p}); }, "gradient: an output has dtype bool at HERE; only floats have gradients"},
      {gradient_error, [&] { p += 1; }, "add: a leaf that requires a gradient is written in place at HERE; do it under NoGrad, or write to a copy"},
      {gradient_error, [&] { p(0) = 1; }, "setitem: a leaf that requires a gradient is written in place at HERE; do it under NoGrad, or write to a copy"},
      {gradient_error, [&] { Tensor q = Tensor::ones({2}, {.requires_grad = true}); q.set_name("w"); q.assign(0); }, "assign: a leaf that requires a gradient is written in place: 'w' at HERE; do it under NoGrad, or write to a copy"},
      {gradient_error, [&] { Tensor y = (p * 2).set_name("y"), l = y.exp().sum() + (y * y).sum(); y += 1; l.backward(); }, "backward: it needs the value of 'y' of shape (2, 2) that was overwritten in place at HERE; backward was called at HERE; call backward before writing, or write to a copy"},
      {value_error, [&] { optim::SGD({}, 0.1); }, "SGD: no parameter is given at HERE; pass module.parameters()"},
      {gradient_error, [&] { optim::SGD({a}, 0.1); }, "SGD: a parameter does not require a gradient at HERE; call set_requires_grad on it first"},
      {value_error, [&] { optim::SGD({p}, -1.0); }, "SGD: the learning rate is -1 at HERE; give a finite number of 0 or more"},
      {value_error, [&] { optim::SGD({p}, {.lr = 0.1, .nesterov = true}); }, "SGD: nesterov takes a momentum and no dampening at HERE; set momentum above 0"},
      {value_error, [&] { optim::Adam({p}, {.beta1 = 1}); }, "Adam: beta1 is 1 at HERE; give 0 or more and less than 1"},
      {gradient_error, [&] { const Tensor q = Tensor::ones({2}, {.requires_grad = true}); optim::Adam({q}, 0.1).step(); }, "step: no parameter has a gradient at HERE; call backward before step"},
      {value_error, [&] { const Tensor q = Tensor::ones({2}, {.requires_grad = true}); optim::SGD({p, q, p}, 0.1); }, "SGD: parameters 0 and 2 are the same tensor at HERE; give each once"},
      {value_error, [&] { optim::AdamW({p}, {.eps = -1}); }, "AdamW: eps is -1 at HERE; give 0 or more"},
      {value_error, [&] { optim::RMSprop({p}, {.alpha = 1.5}); }, "RMSprop: alpha is 1.5 at HERE; give 0 or more and less than 1"},
      {value_error, [&] { optim::SGD o({p}, 0.1); o.set_lr(NAN); }, "set_lr: the learning rate is nan at HERE; give a finite number of 0 or more"},
      {shape_error, [&] { p.set_grad(v); }, "set_grad: the gradient has shape (3,), the tensor (2, 2) at HERE; their shapes must be equal"},
      {dtype_error, [&] { p.set_grad(Tensor::ones({2, 2}, {.dtype = DType::float64})); }, "set_grad: the gradient has dtype float64, the tensor float32 at HERE; cast the gradient"},
      {device_error, [&] { p.set_grad(Tensor::ones({2, 2}, {.device = "REF"})); }, "set_grad: the operands are on REF and CPU at HERE; move one with .to(device)"},
      {shape_error, [&] { gradient({p * 2}, {p}, {v}); }, "gradient: the gradient has shape (3,), the tensor (2, 2) at HERE; their shapes must be equal"},
      {value_error, [&] { gradient({p * 2}, {p}, {p, p}); }, "gradient: 2 seeds for 1 outputs at HERE; give one for each, or none"},
  });
}

TEST_F(Errors, Devices) {
  const std::string known = " (known: CPU, CLANG, REF, NULL; see `mote devices`)";
  const Tensor far = Tensor::ones({2, 3}, {.device = "REF"});
  expect_errors({
      {device_error, [&] { a.to("CUDA"); }, "to: there is no device 'CUDA'" + known + " at HERE"},
      {device_error, [&] { a.to("CLANGG"); }, "to: there is no device 'CLANGG'; did you mean 'CLANG'?" + known + " at HERE"},
      {device_error, [&] { Tensor::ones({2}, {.device = "REFF"}); }, "ones: there is no device 'REFF'; did you mean 'REF'?" + known + " at HERE"},
      {device_error, [&] { set_default_device("GPU"); }, "there is no device 'GPU'; did you mean 'CPU'?" + known},
      {device_error, [&] { a.to("CPU:7"); }, "to: CPU: '7' is not known; write CPU alone at HERE"},
      {device_error, [&] { a + far; }, "add: the operands are on CPU and REF at HERE; move one with .to(device)"},
      {device_error, [&] { where(a < 1, a, far); }, "where: the operands are on CPU and REF at HERE; move one with .to(device)"},
      {device_error, [&] { a.matmul(far.t()); }, "matmul: the operands are on CPU and REF at HERE; move one with .to(device)"},
      {device_error, [&] { cat({a, far}); }, "cat: the operands are on CPU and REF at HERE; move one with .to(device)"},
      {device_error, [&] { a(i.to("REF")); }, "index: the operands are on CPU and REF at HERE; move one with .to(device)"},
      {device_error, [&] { Tensor(a).assign(far); }, "assign: the value is on REF, the tensor on CPU at HERE; move it with .to(device)"},
  });
}

TEST_F(Errors, Jit) {
  auto twice = jit([](const Tensor& q) { return q * 2; });
  auto reads = jit([](const Tensor& q) { return q * q.sum().item<float>(); });
  auto nests = jit([&](const Tensor& q) { return twice(q) + 1; });
  auto undefined = jit([](const Tensor&) { return Tensor(); });
  auto sum = jit([](const Tensor& q, const Tensor& r) { return q + r; });
  auto shows = jit([](const Tensor& q) { show(q); return q * 2; });
  const Tensor q = Tensor::ones({3}).realize();
  shows(q);
  reads(q);  // the first call is plain
  nests(q);
  expect_errors({
      {jit_error, [&] { reads(q); }, "item: a value is read on the host while a function is recorded at HERE; return the tensor and read it after the call"},
      {jit_error, [&] { shows(q); }, "show: a value is read on the host while a function is recorded at HERE; return the tensor and read it after the call"},
      {jit_error, [&] { nests(q); }, "jit: a captured function was called while another one is recorded (begun at HERE); call the inner function itself, not its jit"},
      {jit_error, [&] { undefined(q); }, "jit: a result is not defined at HERE; return tensors that hold something"},
      {jit_error, [&] { sum(q, q); }, "jit: inputs 0 and 1 are the same tensor at HERE; give it once, and use it twice inside"},
      {value_error, [&] { twice(none); }, "jit: the tensor is not defined at HERE; give it a value first"},
  });
}
// clang-format on

// After a failed recording the function, and others, go on.
TEST_F(Errors, JitGoesOnAfterAFault) {
  bool read = true;
  auto f = jit([&](const Tensor& q) {
    if (read) q.sum().item<float>();
    return q * 2;
  });
  const Tensor q = Tensor({1.f, 2.f}).realize();
  f(q);
  EXPECT_THROW(f(q), JitError);
  EXPECT_FALSE(capturing());
  read = false;
  for (int n = 0; n < 3; ++n)
    EXPECT_EQ(f(Tensor({3.f, 4.f}).realize()).to_vector<float>(), (std::vector<float>{6, 8}));
  EXPECT_GT(f.kernels(), 0);
}

TEST_F(Errors, JitRecordsAnewForAnotherShape) {
  int runs = 0;
  auto f = jit([&](const Tensor& q) {
    ++runs;
    return q * 2;
  });
  for (std::int64_t n : {2, 3, 2, 3, 2, 3})
    EXPECT_EQ(f(Tensor::ones({n}).contiguous().realize()).shape(), (Dims{n}));
  EXPECT_EQ(runs, 4);  // each shape: once plain, once recorded
  f(Tensor::ones({2}, {.dtype = DType::int32}).contiguous().realize());
  EXPECT_EQ(runs, 5);
}

struct Net : nn::Module {
  nn::Linear inner{3, 2};
  MOTE_MODULE(Net, inner)
  Tensor forward(const Tensor& x) const { return inner(x.t()); }
  static int line_of_forward() { return __LINE__ - 1; }
};

TEST_F(Errors, PlacesAreTheUsersLines) {
  const auto line_of = [](const std::function<void()>& wrong) {
    int line = 0;
    try {
      wrong();
    } catch (const Error& error) {
      placeless(error.what(), &line);
    }
    return line;
  };
  const Tensor x = Tensor::ones({2, 3});
  EXPECT_EQ(line_of([&] { x + b; }), __LINE__);
  EXPECT_EQ(line_of([&] { x(7); }), __LINE__);
  EXPECT_EQ(line_of([&] { x(0, 7) = 1; }), __LINE__);
  EXPECT_EQ(line_of([&] { mse_loss(x, b); }), __LINE__);
  EXPECT_EQ(line_of([&] { x.softmax(5); }), __LINE__);
  EXPECT_EQ(line_of([&] { x.conv(b); }), __LINE__);
  EXPECT_EQ(line_of([&] { x.isclose(b); }), __LINE__);
  EXPECT_EQ(line_of([&] { Net()(x); }), Net::line_of_forward());
}

// Run by the test below, in a process whose default device nothing has set.
TEST(Child, DISABLED_UsesTheDefaultDevice) {
  try {
    (Tensor({1, 2}) + 1).realize();
    std::puts("it ran");
  } catch (const DeviceError& error) {
    std::puts(error.what());
  }
}

TEST(Environment, AnUnknownDevice) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = "MOTE_DEVICE=CLNAG '" + self +
                              "' --gtest_also_run_disabled_tests "
                              "--gtest_filter=Child.DISABLED_UsesTheDefaultDevice";
  FILE* out = popen(command.c_str(), "r");
  ASSERT_NE(out, nullptr);
  std::string text;
  for (int c; (c = std::fgetc(out)) != EOF;) text += static_cast<char>(c);
  EXPECT_EQ(pclose(out), 0);
  EXPECT_NE(text.find("there is no device 'CLNAG'; did you mean 'CLANG'? (known: CPU, CLANG, REF, "
                      "NULL; see `mote devices`)"),
            std::string::npos)
      << text;
}

TEST_F(Errors, MemoryThatIsNotThere) {
  for (const char* device : {"CPU", "CLANG"}) {
    set_default_device(device);
    const std::int64_t huge = std::int64_t{1} << 45;
    Tensor x = Tensor::ones({huge}).contiguous();
    x.set_name("huge");
    try {
      x.realize();
      FAIL() << "2^47 bytes were found";
    } catch (const MemoryError& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.substr(0, text.find(" (")),
                std::string(device) + ": no memory for 140737488355328 bytes of 'huge'");
      EXPECT_NE(text.find(" in use); use smaller batches or free tensors"), std::string::npos);
    }
    // What a product of sizes cannot count is refused too, and the process goes on.
    for (std::int64_t n : {std::int64_t{1} << 61, std::int64_t{1} << 62}) {
      try {
        Tensor::ones({n}).contiguous().realize();
        FAIL();
      } catch (const MemoryError& error) {
        EXPECT_EQ(error.what(), std::string(device) + ": no memory for a tensor of shape (" +
                                    std::to_string(n) +
                                    ",), more than 63 bits can count; use smaller sizes");
      }
    }
    EXPECT_EQ((Tensor({1, 2}) + 1).to_vector<int>(), (std::vector<int>{2, 3}));
    EXPECT_EQ(x.sum().dtype(), DType::float32);
  }
  EXPECT_TRUE(typeid(MemoryError) == memory_error);
}

}  // namespace
}  // namespace mote::testing
