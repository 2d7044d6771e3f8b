// room: tensor
// Tensor: an n-dimensional array that is computed when it is needed. Names, argument order,
// defaults and broadcasting are those of PyTorch and NumPy; docs/semantics.md says what each
// operation means.
//
//   Tensor a{{1.f, 2.f}, {3.f, 4.f}}, b = Tensor::arange(2.0);
//   show((a * b).sum());                    // nothing runs before this line
//
// A Tensor is a shared handle: a copy of it sees in-place changes. A movement op or an index gives
// a value: later writes to its base do not change it. Writing a part goes through the base:
// a(0) = 5, a(Slice(), 1) += b. Tensors may be used from many threads.
// Every wrong call throws an Error with the user's place; `where` is filled in by itself.
#pragma once
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "mote/device.h"
#include "mote/dtype.h"
#include "mote/error.h"

namespace mote {

class LazyBuffer;
class Tensor;
class Part;
struct Index;

using Dims = std::vector<std::int64_t>;
using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;  // one for each axis
template <class N>
concept Arithmetic =
    std::is_arithmetic_v<N> && sizeof(N) <= 8 && !std::is_same_v<std::remove_cv_t<N>, long double>;

// The DType of a C++ type. A double literal beside a tensor is a number without one, see Operand.
template <Arithmetic T>
constexpr DType dtype_of() {
  constexpr DType signed_types[] = {DType::int8, DType::int16, DType::int32, DType::int64};
  constexpr DType unsigned_types[] = {DType::uint8, DType::uint16, DType::uint32, DType::uint64};
  constexpr int power = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  if (std::is_same_v<T, bool>) return DType::boolean;
  if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DType::float32 : DType::float64;
  return std::is_signed_v<T> ? signed_types[power] : unsigned_types[power];
}

// The dtype of floating literals and creation functions; of integers from untyped sources.
DType default_float();
DType default_int();
void set_default_float(DType, Where = Where::here());
void set_default_int(DType, Where = Where::here());

// What stands beside an operator: a Tensor or a number, with the place it was written at. A number
// takes the other side's dtype and never widens it within its kind.
class Operand {
 public:
  Operand(const Tensor& t, Where where = Where::here());  // NOLINT: converting on purpose
  template <Arithmetic N>
  Operand(N v, Where where = Where::here())
      : number_(std::is_same_v<N, bool>       ? Number::boolean
                : std::is_floating_point_v<N> ? Number::floating
                                              : Number::integer),
        real_(static_cast<double>(v)),
        integer_(integer_of(v)),
        where_(where) {}

  enum class Number : std::uint8_t { none, boolean, integer, floating };
  Number number() const { return number_; }
  double real() const { return real_; }
  std::int64_t integer() const { return integer_; }  // past 2^63 - 1: the bits of a uint64
  const std::shared_ptr<struct TensorState>& state() const { return state_; }
  Where where() const { return where_; }

 private:
  template <Arithmetic N>
  static std::int64_t integer_of(N v) {  // toward zero; 0 for what has no integer, such as infinity
    if constexpr (std::is_floating_point_v<N>) {
      if (!(v >= N(-0x1p63) && v < N(0x1p63))) return 0;
    }
    return static_cast<std::int64_t>(v);
  }

  std::shared_ptr<struct TensorState> state_;
  Number number_ = Number::none;
  double real_ = 0;
  std::int64_t integer_ = 0;
  Where where_;
};

// Axes of a reduction: none given means all. Negative ones count from the end.
struct AxisList {
  std::vector<int> axes;
  bool all = true;
  AxisList() = default;
  AxisList(int axis) : axes{axis}, all(false) {}
  AxisList(std::initializer_list<int> list) : axes(list), all(false) {}
  AxisList(std::vector<int> list) : axes(std::move(list)), all(false) {}
};

// begin:end:step as in Python; a missing bound is the end of the axis in the direction of step.
struct Slice {
  std::optional<std::int64_t> begin, end;
  std::int64_t step = 1;
  Slice() = default;
  Slice(std::optional<std::int64_t> b, std::optional<std::int64_t> e, std::int64_t s = 1)
      : begin(b), end(e), step(s) {}
};
struct NewAxis {};
struct Ellipsis {};
inline constexpr NewAxis newaxis{};
inline constexpr Ellipsis ellipsis{};

enum class Rounding : std::uint8_t { none, floor, trunc };
enum class Reduction : std::uint8_t { mean, sum, none };
enum class ScatterReduce : std::uint8_t { sum, prod, amax, amin, mean };

struct Options {  // of creation functions
  std::optional<DType> dtype = {};
  std::string device = {};  // empty: the default device
  bool requires_grad = false;
};

struct ConvOptions {
  Dims stride = {1}, padding = {0}, dilation = {1};
  std::int64_t groups = 1;
  // `padding`: one number, one an axis, or before and after each axis, first axis first.
};
struct PoolOptions {
  Dims stride = {};  // empty: the kernel
  Dims padding = {0}, dilation = {1};
  bool ceil_mode = false, count_include_pad = true;
};

class Tensor {
 public:
  Tensor() = default;         // holds nothing; is_defined() is false
  Tensor(const Tensor&);      // another handle of the same; of a Part: of its value
  Tensor(Tensor&&) noexcept;  // likewise
  Tensor& operator=(Tensor) noexcept;
  template <Arithmetic N>
  Tensor(N value, Where where = Where::here());  // a scalar; double literals: default_float
  template <Arithmetic N>
  Tensor(std::initializer_list<N> values, Where where = Where::here());
  template <Arithmetic N>
  Tensor(std::initializer_list<std::initializer_list<N>> rows, Where where = Where::here());
  template <Arithmetic N>
  Tensor(std::initializer_list<std::initializer_list<std::initializer_list<N>>> planes,
         Where where = Where::here());
  template <Arithmetic N>
  Tensor(const std::vector<N>& values, Dims shape, Options options = {},
         Where where = Where::here());
  // Copies `bytes` of row-major elements.
  static Tensor from_bytes(std::span<const std::byte> bytes, Dims shape, DType,
                           Options options = {}, Where where = Where::here());
  // Uses the memory without copying; it must outlive the tensor and all that is made of it
  // unrealized.
  static Tensor from_blob(void* data, Dims shape, DType, Where where = Where::here());

  // ---- creation
  static Tensor empty(Dims, Options = {}, Where = Where::here());
  static Tensor zeros(Dims, Options = {}, Where = Where::here());
  static Tensor ones(Dims, Options = {}, Where = Where::here());
  static Tensor full(Dims, const Operand& value, Options = {}, Where = Where::here());
  static Tensor arange(const Operand& end, Options = {}, Where = Where::here());
  static Tensor arange(const Operand& start, const Operand& end, const Operand& step = 1,
                       Options = {}, Where = Where::here());
  static Tensor linspace(double start, double end, std::int64_t steps, Options = {},
                         Where = Where::here());
  static Tensor eye(std::int64_t n, std::optional<std::int64_t> m = {}, Options = {},
                    Where = Where::here());
  Tensor empty_like(Where = Where::here()) const;
  Tensor zeros_like(Where = Where::here()) const;
  Tensor ones_like(Where = Where::here()) const;
  Tensor full_like(const Operand& value, Where = Where::here()) const;

  // ---- random: threefry counters, the same bits on every device (docs/semantics.md)
  static Tensor rand(Dims, Options = {}, Where = Where::here());  // uniform in [0, 1)
  static Tensor randn(Dims, Options = {}, Where = Where::here());
  static Tensor randint(std::int64_t low, std::int64_t high, Dims, Options = {},
                        Where = Where::here());
  static Tensor uniform(Dims, double low = 0, double high = 1, Options = {}, Where = Where::here());
  static Tensor normal(Dims, double mean = 0, double std = 1, Options = {}, Where = Where::here());
  static Tensor kaiming_uniform(Dims, double a = 0.01, Options = {}, Where = Where::here());
  static Tensor kaiming_normal(Dims, double a = 0.01, Options = {}, Where = Where::here());
  static Tensor glorot_uniform(Dims, Options = {}, Where = Where::here());
  static Tensor randperm(std::int64_t n, Options = {}, Where = Where::here());
  Tensor multinomial(std::int64_t samples = 1, bool replacement = false,
                     Where = Where::here()) const;
  Tensor bernoulli(Where = Where::here()) const;
  Tensor dropout(double p = 0.5, Where = Where::here()) const;  // training flag on only

  // ---- properties
  bool is_defined() const { return state_ != nullptr; }
  Dims shape() const;
  std::int64_t size(int axis, Where = Where::here()) const;
  int ndim() const;
  std::int64_t numel() const;
  DType dtype() const;
  std::string device() const;
  bool is_realized() const;
  bool same(const Tensor& other) const { return state_ == other.state_; }  // one handle
  const std::string& name() const;
  Tensor& set_name(std::string);

  // ---- running and reading
  Tensor& realize(Where = Where::here());
  template <Arithmetic T>
  T item(Where = Where::here()) const;  // of one element
  template <Arithmetic T>
  std::vector<T> to_vector(Where = Where::here()) const;         // row-major, converted to T
  std::vector<std::byte> to_bytes(Where = Where::here()) const;  // row-major elements as they are
  std::string text(Where = Where::here()) const;                 // as NumPy prints

  // ---- autograd
  bool requires_grad() const;
  Tensor& set_requires_grad(bool = true, Where = Where::here());  // floats only
  void backward(const Tensor& gradient = {}, bool retain_graph = false, Where = Where::here());
  Tensor grad() const;  // undefined before the first backward
  void set_grad(const Tensor&, Where = Where::here());
  Tensor detach(Where = Where::here()) const;

  // ---- in place: this handle and its copies see the new value
  Tensor& assign(const Operand& value, Where = Where::here());  // shape and dtype stay
  Tensor& operator+=(const Operand&);
  Tensor& operator-=(const Operand&);
  Tensor& operator*=(const Operand&);
  Tensor& operator/=(const Operand&);

  // ---- indexing as NumPy: integers, Slice, newaxis, ellipsis, index tensors, bool masks
  Part operator()(const Index&) const;
  Part operator()(const Index&, const Index&) const;
  Part operator()(const Index&, const Index&, const Index&) const;
  Part operator()(const Index&, const Index&, const Index&, const Index&) const;
  Part operator()(const Index&, const Index&, const Index&, const Index&, const Index&) const;
  Part at(std::vector<Index> indices, Where = Where::here()) const;
  Tensor gather(int axis, const Tensor& index, Where = Where::here()) const;
  Tensor scatter(int axis, const Tensor& index, const Operand& source, Where = Where::here()) const;
  Tensor scatter_reduce(int axis, const Tensor& index, const Tensor& source, ScatterReduce,
                        bool include_self = true, Where = Where::here()) const;
  Tensor index_select(int axis, const Tensor& index, Where = Where::here()) const;
  Tensor masked_fill(const Tensor& mask, const Operand& value, Where = Where::here()) const;
  Tensor one_hot(std::int64_t classes, Where = Where::here()) const;
  Tensor tril(std::int64_t diagonal = 0, Where = Where::here()) const;
  Tensor triu(std::int64_t diagonal = 0, Where = Where::here()) const;

  // ---- movement: values that share bytes, no copy
  Tensor reshape(Dims, Where = Where::here()) const;  // one -1 is worked out
  Tensor view(Dims d, Where where = Where::here()) const { return reshape(std::move(d), where); }
  Tensor permute(std::vector<int> axes, Where = Where::here()) const;
  Tensor transpose(int a = 0, int b = 1, Where = Where::here()) const;
  Tensor t(Where = Where::here()) const;
  Tensor expand(Dims, Where = Where::here()) const;  // -1 keeps a size
  Tensor shrink(Pairs, Where = Where::here()) const;
  // Before and after each axis, first axis first; negative crops. `value` fills.
  Tensor pad(Pairs, const Operand& value = 0, Where = Where::here()) const;
  Tensor flip(std::vector<int> axes, Where = Where::here()) const;
  Tensor squeeze(std::optional<int> axis = {}, Where = Where::here()) const;
  Tensor unsqueeze(int axis, Where = Where::here()) const;
  Tensor flatten(int start = 0, int end = -1, Where = Where::here()) const;
  Tensor unflatten(int axis, Dims sizes, Where = Where::here()) const;
  std::vector<Tensor> split(std::int64_t size, int axis = 0, Where = Where::here()) const;
  std::vector<Tensor> split(Dims sizes, int axis = 0, Where = Where::here()) const;
  std::vector<Tensor> chunk(std::int64_t chunks, int axis = 0, Where = Where::here()) const;
  Tensor repeat(Dims repeats, Where = Where::here()) const;
  Tensor repeat_interleave(std::int64_t repeats, std::optional<int> axis = {},
                           Where = Where::here()) const;
  Tensor roll(Dims shifts, std::vector<int> axes, Where = Where::here()) const;
  Tensor unfold(int axis, std::int64_t size, std::int64_t step, Where = Where::here()) const;
  Tensor diag(Where = Where::here()) const;      // vector <-> diagonal matrix
  Tensor diagonal(Where = Where::here()) const;  // of the last two axes
  Tensor contiguous(Where = Where::here()) const;

  // ---- dtype and device
  Tensor cast(DType, Where = Where::here()) const;
  Tensor bitcast(DType, Where = Where::here()) const;  // sizes must be equal
  Tensor to(std::string_view device, Where = Where::here()) const;
  Tensor to_float(Where where = Where::here()) const { return cast(DType::float32, where); }

  // ---- elementwise, one operand
  Tensor neg(Where = Where::here()) const;
  Tensor abs(Where = Where::here()) const;
  Tensor sign(Where = Where::here()) const;
  Tensor exp(Where = Where::here()) const;
  Tensor exp2(Where = Where::here()) const;
  Tensor log(Where = Where::here()) const;
  Tensor log2(Where = Where::here()) const;
  Tensor log10(Where = Where::here()) const;
  Tensor log1p(Where = Where::here()) const;
  Tensor expm1(Where = Where::here()) const;
  Tensor sqrt(Where = Where::here()) const;
  Tensor rsqrt(Where = Where::here()) const;
  Tensor reciprocal(Where = Where::here()) const;
  Tensor square(Where = Where::here()) const;
  Tensor sin(Where = Where::here()) const;
  Tensor cos(Where = Where::here()) const;
  Tensor tan(Where = Where::here()) const;
  Tensor asin(Where = Where::here()) const;
  Tensor acos(Where = Where::here()) const;
  Tensor atan(Where = Where::here()) const;
  Tensor sinh(Where = Where::here()) const;
  Tensor cosh(Where = Where::here()) const;
  Tensor tanh(Where = Where::here()) const;
  Tensor asinh(Where = Where::here()) const;
  Tensor acosh(Where = Where::here()) const;
  Tensor atanh(Where = Where::here()) const;
  Tensor erf(Where = Where::here()) const;
  Tensor trunc(Where = Where::here()) const;
  Tensor floor(Where = Where::here()) const;
  Tensor ceil(Where = Where::here()) const;
  Tensor round(Where = Where::here()) const;  // half to even
  Tensor logical_not(Where = Where::here()) const;
  Tensor bitwise_not(Where = Where::here()) const;
  Tensor isnan(Where = Where::here()) const;
  Tensor isinf(Where = Where::here()) const;
  Tensor isfinite(Where = Where::here()) const;
  Tensor clip(std::optional<double> low, std::optional<double> high, Where = Where::here()) const;
  Tensor clamp(std::optional<double> low, std::optional<double> high,
               Where where = Where::here()) const {
    return clip(low, high, where);
  }

  // ---- activations
  Tensor relu(Where = Where::here()) const;
  Tensor relu6(Where = Where::here()) const;
  Tensor sigmoid(Where = Where::here()) const;
  Tensor silu(Where = Where::here()) const;
  Tensor swish(Where where = Where::here()) const { return silu(where); }
  Tensor gelu(bool tanh = false, Where = Where::here()) const;
  Tensor quick_gelu(Where = Where::here()) const;
  Tensor leaky_relu(double slope = 0.01, Where = Where::here()) const;
  Tensor elu(double alpha = 1.0, Where = Where::here()) const;
  Tensor celu(double alpha = 1.0, Where = Where::here()) const;
  Tensor selu(Where = Where::here()) const;
  Tensor softplus(double beta = 1.0, Where = Where::here()) const;
  Tensor softsign(Where = Where::here()) const;
  Tensor mish(Where = Where::here()) const;
  Tensor hardswish(Where = Where::here()) const;
  Tensor hardsigmoid(Where = Where::here()) const;
  Tensor hardtanh(double low = -1, double high = 1, Where = Where::here()) const;
  Tensor logsigmoid(Where = Where::here()) const;

  // ---- elementwise, two operands (broadcasting); the operators are free functions below
  Tensor pow(const Operand&, Where = Where::here()) const;
  Tensor maximum(const Operand&, Where = Where::here()) const;
  Tensor minimum(const Operand&, Where = Where::here()) const;
  Tensor div(const Operand&, Rounding = Rounding::none, Where = Where::here()) const;
  Tensor floor_divide(const Operand&, Where = Where::here()) const;
  Tensor remainder(const Operand&, Where = Where::here()) const;  // sign of the divisor
  Tensor fmod(const Operand&, Where = Where::here()) const;       // sign of the dividend
  Tensor lerp(const Tensor& end, const Operand& weight, Where = Where::here()) const;
  Tensor copysign(const Operand&, Where = Where::here()) const;
  Tensor logaddexp(const Operand&, Where = Where::here()) const;
  Tensor isclose(const Tensor&, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false,
                 Where = Where::here()) const;

  // ---- reductions; no axis given: all of them
  Tensor sum(const AxisList& axis = {}, bool keepdim = false, std::optional<DType> = {},
             Where = Where::here()) const;
  Tensor prod(const AxisList& axis = {}, bool keepdim = false, std::optional<DType> = {},
              Where = Where::here()) const;
  Tensor mean(const AxisList& axis = {}, bool keepdim = false, Where = Where::here()) const;
  Tensor var(const AxisList& axis = {}, bool keepdim = false, double correction = 1,
             Where = Where::here()) const;
  Tensor std(const AxisList& axis = {}, bool keepdim = false, double correction = 1,
             Where = Where::here()) const;
  Tensor max(const AxisList& axis = {}, bool keepdim = false, Where = Where::here()) const;
  Tensor min(const AxisList& axis = {}, bool keepdim = false, Where = Where::here()) const;
  Tensor any(const AxisList& axis = {}, bool keepdim = false, Where = Where::here()) const;
  Tensor all(const AxisList& axis = {}, bool keepdim = false, Where = Where::here()) const;
  Tensor argmax(std::optional<int> axis = {}, bool keepdim = false, Where = Where::here()) const;
  Tensor argmin(std::optional<int> axis = {}, bool keepdim = false, Where = Where::here()) const;
  Tensor norm(double p = 2, const AxisList& axis = {}, bool keepdim = false,
              Where = Where::here()) const;
  Tensor logsumexp(const AxisList& axis = {}, bool keepdim = false, Where = Where::here()) const;
  Tensor softmax(int axis = -1, Where = Where::here()) const;
  Tensor log_softmax(int axis = -1, Where = Where::here()) const;
  Tensor softmin(int axis = -1, Where = Where::here()) const;
  Tensor normalize(double p = 2, int axis = 1, double eps = 1e-12, Where = Where::here()) const;
  Tensor layernorm(int axes = 1, double eps = 1e-5, Where = Where::here()) const;  // last axes

  // ---- scans
  Tensor cumsum(int axis = 0, Where = Where::here()) const;
  Tensor cumprod(int axis = 0, Where = Where::here()) const;
  Tensor cummax(int axis = 0, Where = Where::here()) const;
  Tensor cummin(int axis = 0, Where = Where::here()) const;
  Tensor logcumsumexp(int axis = 0, Where = Where::here()) const;

  // ---- products, convolution, pooling
  Tensor matmul(const Tensor&, std::optional<DType> dtype = {}, Where = Where::here()) const;
  Tensor dot(const Tensor&, Where = Where::here()) const;
  Tensor linear(const Tensor& weight, const Tensor& bias = {}, Where = Where::here()) const;
  Tensor conv(const Tensor& weight, const Tensor& bias = {}, const ConvOptions& = {},
              Where = Where::here()) const;  // 1-d to 3-d: (N, C, ..), (O, C/g, ..)
  Tensor conv2d(const Tensor& weight, const Tensor& bias = {}, std::int64_t stride = 1,
                std::int64_t padding = 0, std::int64_t dilation = 1, std::int64_t groups = 1,
                Where = Where::here()) const;
  Tensor conv_transpose(const Tensor& weight, const Tensor& bias = {}, const ConvOptions& = {},
                        Dims output_padding = {0}, Where = Where::here()) const;
  Tensor max_pool(Dims kernel, const PoolOptions& = {}, Where = Where::here()) const;
  Tensor avg_pool(Dims kernel, const PoolOptions& = {}, Where = Where::here()) const;
  Tensor max_pool2d(std::int64_t kernel, Where where = Where::here()) const {
    return max_pool({kernel, kernel}, {}, where);
  }
  Tensor avg_pool2d(std::int64_t kernel, Where where = Where::here()) const {
    return avg_pool({kernel, kernel}, {}, where);
  }
  Tensor scaled_dot_product_attention(const Tensor& key, const Tensor& value,
                                      const Tensor& mask = {}, bool causal = false,
                                      double dropout = 0, Where = Where::here()) const;

  // ---- for the rooms above and below: the graph behind the handle
  explicit Tensor(std::shared_ptr<LazyBuffer>);
  std::shared_ptr<LazyBuffer> lazy() const;    // InternalError when undefined
  void set_lazy(std::shared_ptr<LazyBuffer>);  // seen by every copy of the handle

 private:
  friend class Operand;
  friend class Part;
  static Tensor from_elements(const void* data, std::size_t count, DType, Dims, const Options&,
                              Where);
  std::vector<std::byte> converted(DType, Where) const;
  void read_item(void* value, DType, Where) const;
  template <class T>
  std::vector<T> to_vector(DType as, Where) const;
  std::shared_ptr<struct TensorState> state_;
};

// One place of an index expression.
struct Index {
  std::variant<std::int64_t, Slice, NewAxis, Ellipsis, Tensor> value;
  Where where;
  Index(int i, Where w = Where::here()) : value(std::int64_t{i}), where(w) {}
  Index(std::int64_t i, Where w = Where::here()) : value(i), where(w) {}
  Index(Slice s, Where w = Where::here()) : value(s), where(w) {}
  Index(NewAxis n, Where w = Where::here()) : value(n), where(w) {}
  Index(Ellipsis e, Where w = Where::here()) : value(e), where(w) {}
  Index(Tensor t, Where w = Where::here()) : value(std::move(t)), where(w) {}
};

// The part of a tensor that an index names. It reads as a Tensor and writes through its base, also
// through a reference to it; a Tensor made of it is a value of its own.
class Part : public Tensor {
 public:
  Part(const Tensor& base, const std::vector<Index>& indices, Where where);
  Part(const Part& same) : Tensor() { state_ = same.state_; }
  Part& operator=(const Operand& value);
  Part& operator=(const Part& value) { return *this = Operand(static_cast<const Tensor&>(value)); }
};

// ---- operators; a number takes the tensor's dtype. `/` on integers gives float32.
Tensor operator+(const Operand&, const Operand&);
Tensor operator-(const Operand&, const Operand&);
Tensor operator*(const Operand&, const Operand&);
Tensor operator/(const Operand&, const Operand&);
Tensor operator%(const Operand&, const Operand&);  // remainder: sign of the divisor
Tensor operator-(const Operand&);
Tensor operator~(const Operand&);  // bitwise_not
Tensor operator!(const Operand&);  // logical_not
Tensor operator&(const Operand&, const Operand&);
Tensor operator|(const Operand&, const Operand&);
Tensor operator^(const Operand&, const Operand&);
Tensor operator<<(const Operand&, const Operand&);
Tensor operator>>(const Operand&, const Operand&);
Tensor operator==(const Operand&, const Operand&);  // elementwise; same handle: a.same(b)
Tensor operator!=(const Operand&, const Operand&);
Tensor operator<(const Operand&, const Operand&);
Tensor operator<=(const Operand&, const Operand&);
Tensor operator>(const Operand&, const Operand&);
Tensor operator>=(const Operand&, const Operand&);

Tensor where(const Tensor& condition, const Operand& a, const Operand& b, Where = Where::here());
Tensor matmul(const Tensor&, const Tensor&, Where = Where::here());
Tensor cat(const std::vector<Tensor>&, int axis = 0, Where = Where::here());
Tensor stack(const std::vector<Tensor>&, int axis = 0, Where = Where::here());
std::vector<Tensor> meshgrid(const std::vector<Tensor>&, Where = Where::here());
Tensor maximum(const Operand&, const Operand&);
Tensor minimum(const Operand&, const Operand&);

// ---- losses; `input` first, as in PyTorch
struct LossOptions {
  Reduction reduction = Reduction::mean;
  std::int64_t ignore_index = -100;
  double label_smoothing = 0;
  Tensor weight = {};  // of classes
};
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const LossOptions& = {},
                     Where = Where::here());  // integer classes, or probabilities
Tensor nll_loss(const Tensor& log_probabilities, const Tensor& target, const LossOptions& = {},
                Where = Where::here());
Tensor binary_cross_entropy(const Tensor&, const Tensor& target, Reduction = Reduction::mean,
                            Where = Where::here());
Tensor binary_cross_entropy_with_logits(const Tensor&, const Tensor& target,
                                        Reduction = Reduction::mean, const Tensor& pos_weight = {},
                                        Where = Where::here());
Tensor mse_loss(const Tensor&, const Tensor& target, Reduction = Reduction::mean,
                Where = Where::here());
Tensor l1_loss(const Tensor&, const Tensor& target, Reduction = Reduction::mean,
               Where = Where::here());

// ---- autograd
// New tensors d(sum of outputs)/d(inputs); nothing is accumulated. `create` of gradients of
// gradients: the result is differentiable.
std::vector<Tensor> gradient(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& seeds = {}, Where = Where::here());

class NoGrad {  // no history is recorded while it lives, on this thread
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;

 private:
  bool before_;
};

// Dropout and batchnorm ask for it; a scope and a thread.
class Training {
 public:
  explicit Training(bool on = true);
  ~Training();
  Training(const Training&) = delete;
  static bool is_on();

 private:
  bool before_;
};

void manual_seed(std::uint64_t);
void realize(const std::vector<Tensor>&, Where = Where::here());  // together: they share kernels
std::ostream& operator<<(std::ostream&, const Tensor&);
void show(const Tensor&, Where = Where::here());  // prints it on stdout

template <Arithmetic N>
Tensor::Tensor(N value, Where where) {
  Options options;
  if (std::is_floating_point_v<N>) options.dtype = default_float();
  *this = from_elements(&value, 1, dtype_of<N>(), {}, options, where);
}
template <Arithmetic N>
Tensor::Tensor(const std::vector<N>& values, Dims shape, Options options, Where where) {
  if constexpr (std::is_same_v<N, bool>) {
    const std::vector<std::uint8_t> bytes(values.begin(), values.end());
    *this =
        from_elements(bytes.data(), bytes.size(), DType::boolean, std::move(shape), options, where);
  } else {
    *this = from_elements(values.data(), values.size(), dtype_of<N>(), std::move(shape), options,
                          where);
  }
}
template <Arithmetic N>
Tensor::Tensor(std::initializer_list<N> values, Where where)
    : Tensor(std::vector<N>(values), {static_cast<std::int64_t>(values.size())},
             std::is_same_v<N, double> ? Options{.dtype = default_float()} : Options{}, where) {}
[[noreturn]] void throw_ragged(std::size_t expected, std::size_t found, Where);
template <Arithmetic N>
Tensor::Tensor(std::initializer_list<std::initializer_list<N>> rows, Where where) {
  std::vector<N> all;
  const std::size_t columns = rows.size() ? rows.begin()->size() : 0;
  for (const auto& row : rows) {
    if (row.size() != columns) throw_ragged(columns, row.size(), where);
    all.insert(all.end(), row.begin(), row.end());
  }
  *this = Tensor(all, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)},
                 std::is_same_v<N, double> ? Options{.dtype = default_float()} : Options{}, where);
}
template <Arithmetic N>
Tensor::Tensor(std::initializer_list<std::initializer_list<std::initializer_list<N>>> planes,
               Where where) {
  std::vector<Tensor> parts;
  for (const auto& plane : planes) parts.push_back(Tensor(plane, where));
  *this = stack(parts, 0, where).realize();
}
template <Arithmetic T>
T Tensor::item(Where where) const {
  T value;
  read_item(&value, dtype_of<T>(), where);
  return value;
}
template <Arithmetic T>
std::vector<T> Tensor::to_vector(Where where) const {
  if constexpr (std::is_same_v<T, bool>) {
    const auto values = to_vector<std::uint8_t>(DType::boolean, where);
    return std::vector<bool>(values.begin(), values.end());
  } else {
    return to_vector<T>(dtype_of<T>(), where);
  }
}
template <class T>
std::vector<T> Tensor::to_vector(DType as, Where where) const {
  const auto bytes = converted(as, where);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace mote
