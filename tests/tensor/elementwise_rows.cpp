#include "tensor/golden.h"

namespace mote::testing {
namespace {

using In = const Tensors&;
using Unary = Tensor (Tensor::*)(Where) const;

Row unary(const char* op, Unary f, Bound bound = Bound::elementwise) {
  return {op, bound, [f](In x) { return Tensors{(x[0].*f)(Where::here())}; }};
}
template <class F>
Row one(const char* op, F f) {
  return {op, Bound::elementwise, [f](In x) { return Tensors{f(x[0])}; }};
}
template <class F>
Row two(const char* op, F f) {
  return {op, Bound::elementwise, [f](In x) { return Tensors{f(x[0], x[1])}; }};
}

using T = const Tensor&;

}  // namespace

// clang-format off
Rows elementwise_rows() {
  return {
    unary("neg", &Tensor::neg, Bound::bits),
    unary("abs", &Tensor::abs, Bound::bits),
    unary("sign", &Tensor::sign),
    unary("exp", &Tensor::exp),
    unary("exp2", &Tensor::exp2),
    unary("log", &Tensor::log),
    unary("log2", &Tensor::log2),
    unary("log10", &Tensor::log10),
    unary("log1p", &Tensor::log1p),
    unary("expm1", &Tensor::expm1),
    unary("sqrt", &Tensor::sqrt),
    unary("rsqrt", &Tensor::rsqrt),
    unary("reciprocal", &Tensor::reciprocal),
    unary("square", &Tensor::square),
    unary("sin", &Tensor::sin),
    unary("cos", &Tensor::cos),
    unary("tan", &Tensor::tan),
    unary("asin", &Tensor::asin),
    unary("acos", &Tensor::acos),
    unary("atan", &Tensor::atan),
    unary("sinh", &Tensor::sinh),
    unary("cosh", &Tensor::cosh),
    unary("tanh", &Tensor::tanh),
    unary("asinh", &Tensor::asinh),
    unary("acosh", &Tensor::acosh),
    unary("atanh", &Tensor::atanh),
    unary("erf", &Tensor::erf),
    unary("trunc", &Tensor::trunc, Bound::bits),
    unary("floor", &Tensor::floor, Bound::bits),
    unary("ceil", &Tensor::ceil, Bound::bits),
    unary("round", &Tensor::round, Bound::bits),
    unary("logical_not", &Tensor::logical_not),
    unary("bitwise_not", &Tensor::bitwise_not),
    unary("isnan", &Tensor::isnan),
    unary("isinf", &Tensor::isinf),
    unary("isfinite", &Tensor::isfinite),
    unary("relu", &Tensor::relu),
    unary("relu6", &Tensor::relu6),
    unary("sigmoid", &Tensor::sigmoid),
    unary("silu", &Tensor::silu),
    unary("quick_gelu", &Tensor::quick_gelu),
    unary("selu", &Tensor::selu),
    unary("softsign", &Tensor::softsign),
    unary("mish", &Tensor::mish),
    unary("hardswish", &Tensor::hardswish),
    unary("hardsigmoid", &Tensor::hardsigmoid),
    unary("logsigmoid", &Tensor::logsigmoid),
    one("clip", [](T x) { return x.clip(-1.5, 2.0); }),
    one("clip_low", [](T x) { return x.clip(-0.5, {}); }),
    one("hardtanh", [](T x) { return x.hardtanh(); }),
    one("gelu", [](T x) { return x.gelu(); }),
    one("gelu_tanh", [](T x) { return x.gelu(true); }),
    one("leaky_relu", [](T x) { return x.leaky_relu(); }),
    one("elu", [](T x) { return x.elu(1.5); }),
    one("celu", [](T x) { return x.celu(1.5); }),
    one("softplus", [](T x) { return x.softplus(); }),
    one("softplus_beta", [](T x) { return x.softplus(2.0); }),

    two("add", [](T a, T b) { return a + b; }),
    two("sub", [](T a, T b) { return a - b; }),
    two("mul", [](T a, T b) { return a * b; }),
    two("div", [](T a, T b) { return a / b; }),
    two("maximum", [](T a, T b) { return maximum(a, b); }),
    two("minimum", [](T a, T b) { return a.minimum(b); }),
    two("fmod", [](T a, T b) { return a.fmod(b); }),
    two("remainder", [](T a, T b) { return a % b; }),
    two("floor_divide", [](T a, T b) { return a.floor_divide(b); }),
    two("trunc_divide", [](T a, T b) { return a.div(b, Rounding::trunc); }),
    two("copysign", [](T a, T b) { return a.copysign(b); }),
    two("logaddexp", [](T a, T b) { return a.logaddexp(b); }),
    two("pow", [](T a, T b) { return a.pow(b); }),
    two("lt", [](T a, T b) { return a < b; }),
    two("le", [](T a, T b) { return a <= b; }),
    two("gt", [](T a, T b) { return a > b; }),
    two("ge", [](T a, T b) { return a >= b; }),
    two("eq", [](T a, T b) { return a == b; }),
    two("ne", [](T a, T b) { return a != b; }),
    two("and", [](T a, T b) { return a & b; }),
    two("or", [](T a, T b) { return a | b; }),
    two("xor", [](T a, T b) { return a ^ b; }),
    two("shl", [](T a, T b) { return a << b; }),
    two("shr", [](T a, T b) { return a >> b; }),
    {"where", Bound::bits, [](In x) { return Tensors{where(x[0], x[1], x[2])}; }},
    {"lerp", Bound::elementwise, [](In x) { return Tensors{x[0].lerp(x[1], x[2])}; }},
    {"isclose", Bound::bits, [](In x) {
       return Tensors{x[0].isclose(x[1]), x[0].isclose(x[1], 1e-5, 1e-8, true)};
     }},
  };
}
// clang-format on

Rows cast_rows() {
  Rows rows;
  for (int i = 0; i < dtype_count - 1; ++i) {  // all but index
    const auto to = static_cast<DType>(i);
    rows.push_back({"to_" + std::string(name_of(to)), Bound::bits,
                    [to](In x) { return Tensors{x[0].cast(to)}; }});
  }
  for (DType to : {DType::int32, DType::float32, DType::uint64, DType::bfloat16})
    rows.push_back({"bitcast_" + std::string(name_of(to)), Bound::bits,
                    [to](In x) { return Tensors{x[0].bitcast(to)}; }});
  return rows;
}

}  // namespace mote::testing
