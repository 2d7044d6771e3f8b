#include <cmath>

#include "tensor/golden.h"

namespace mote::testing {
namespace {

using In = const Tensors&;
using T = const Tensor&;

// All axes, each axis, the first and the last; kept and dropped: the order of `ways` in golden.py.
template <class F>
Row axes_of(const char* op, Bound bound, F f) {
  return {op, bound, [f](In in) {
            const Tensor& x = in[0];
            const int n = x.ndim();
            Tensors out{f(x, AxisList(), false), f(x, AxisList(), true)};
            for (int a = 0; a < n; ++a) {
              out.push_back(f(x, AxisList(a), false));
              out.push_back(f(x, AxisList(a - n), true));
            }
            if (n >= 2) {
              out.push_back(f(x, AxisList{0, n - 1}, false));
              out.push_back(f(x, AxisList{0, -1}, true));
            }
            return out;
          }};
}

template <class F>
Row each_axis(const char* op, Bound bound, F f) {
  return {op, bound, [f](In in) {
            Tensors out;
            for (int a = 0; a < in[0].ndim(); ++a) out.push_back(f(in[0], a));
            return out;
          }};
}

template <class F>
Row arg_row(const char* op, F f) {
  return {op, Bound::bits, [f](In in) {
            const Tensor& x = in[0];
            Tensors out{f(x, std::nullopt, false), f(x, std::nullopt, true)};
            for (int a = 0; a < x.ndim(); ++a) {
              out.push_back(f(x, a, false));
              out.push_back(f(x, a, true));
            }
            return out;
          }};
}

using Axis = std::optional<int>;
using List = const AxisList&;

}  // namespace

// clang-format off
Rows reduce_rows() {
  return {
    axes_of("sum", Bound::reduce, [](T x, List a, bool k) { return x.sum(a, k); }),
    axes_of("prod", Bound::reduce, [](T x, List a, bool k) { return x.prod(a, k); }),
    axes_of("mean", Bound::reduce, [](T x, List a, bool k) { return x.mean(a, k); }),
    axes_of("max", Bound::elementwise, [](T x, List a, bool k) { return x.max(a, k); }),
    axes_of("min", Bound::elementwise, [](T x, List a, bool k) { return x.min(a, k); }),
    axes_of("any", Bound::bits, [](T x, List a, bool k) { return x.any(a, k); }),
    axes_of("all", Bound::bits, [](T x, List a, bool k) { return x.all(a, k); }),
    axes_of("var0", Bound::reduce, [](T x, List a, bool k) { return x.var(a, k, 0); }),
    axes_of("var1", Bound::reduce, [](T x, List a, bool k) { return x.var(a, k); }),
    axes_of("std1", Bound::reduce, [](T x, List a, bool k) { return x.std(a, k); }),
    axes_of("norm", Bound::reduce, [](T x, List a, bool k) { return x.norm(2, a, k); }),
    axes_of("norm1", Bound::reduce, [](T x, List a, bool k) { return x.norm(1, a, k); }),
    axes_of("norm3", Bound::reduce, [](T x, List a, bool k) { return x.norm(3, a, k); }),
    axes_of("norm_inf", Bound::reduce, [](T x, List a, bool k) { return x.norm(INFINITY, a, k); }),
    axes_of("logsumexp", Bound::reduce, [](T x, List a, bool k) { return x.logsumexp(a, k); }),
    {"max_last", Bound::bits, [](In x) { return Tensors{x[0].max(-1)}; }},
    {"max_first", Bound::bits, [](In x) { return Tensors{x[0].max(0)}; }},
    {"sum_of_ones", Bound::bits, [](In x) { return Tensors{x[0].expand({1 << 25}).sum()}; }},
    {"mean_of_halves", Bound::bits, [](In x) { return Tensors{x[0].expand({90000}).mean()}; }},
    {"row_sum", Bound::reduce, [](In x) { return Tensors{x[0].sum()}; }},
    arg_row("argmax", [](T x, Axis a, bool k) { return x.argmax(a, k); }),
    arg_row("argmin", [](T x, Axis a, bool k) { return x.argmin(a, k); }),
    each_axis("softmax", Bound::reduce, [](T x, int a) { return x.softmax(a); }),
    each_axis("log_softmax", Bound::reduce, [](T x, int a) { return x.log_softmax(a); }),
    each_axis("softmin", Bound::reduce, [](T x, int a) { return x.softmin(a); }),
    each_axis("cumsum", Bound::reduce, [](T x, int a) { return x.cumsum(a); }),
    each_axis("cumprod", Bound::reduce, [](T x, int a) { return x.cumprod(a); }),
    each_axis("cummax", Bound::bits, [](T x, int a) { return x.cummax(a); }),
    each_axis("cummin", Bound::bits, [](T x, int a) { return x.cummin(a); }),
    each_axis("logcumsumexp", Bound::reduce, [](T x, int a) { return x.logcumsumexp(a); }),
    {"layernorm", Bound::reduce, [](In x) {
       return Tensors{x[0].layernorm(), x[0].layernorm(2)};
     }},
    {"normalize", Bound::reduce, [](In x) {
       return Tensors{x[0].normalize(), x[0].normalize(1, 2)};
     }},
  };
}
// clang-format on

}  // namespace mote::testing
