// What the tests of this room share: the value of an expression by plain recursion, and random
// values that take in the extremes.
#pragma once
#include <cmath>
#include <limits>
#include <random>
#include <unordered_map>
#include <vector>

#include "ir/expr.h"

namespace mote::testing {

using Values = std::unordered_map<Expr, Scalar>;

// Loads, variables and ranges by the table, the rest by evaluate().
inline Scalar value_of(const Expr& e, const Values& leaves) {
  if (const auto at = leaves.find(e); at != leaves.end()) return at->second;
  if (is_constant(e)) return scalar_of(e);
  std::vector<Scalar> values;
  for (const Expr& s : e->src) values.push_back(value_of(s, leaves));
  return evaluate(e->op, e->dtype, values);
}

// NaN equals NaN, -0.0 is not 0.0.
inline bool same(const Scalar& a, const Scalar& b) {
  return a == b || (a.dtype == b.dtype && a.is_nan() && b.is_nan());
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  std::int64_t pick(std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(engine_);
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  template <class T>
  const T& of(const std::vector<T>& all) {
    return all[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(all.size()) - 1))];
  }

  Scalar scalar(DType t) {
    if (!is_float(t)) {
      if (chance(50)) return Scalar(t, pick(-3, 3));
      if (chance(40)) return of(extremes(t));
      return Scalar(t, static_cast<std::int64_t>(engine_()));
    }
    if (chance(40)) return of(extremes(t));
    if (chance(30)) return Scalar(t, std::ldexp(1.0, static_cast<int>(pick(-8, 8))));
    return Scalar(
        t, std::ldexp(static_cast<double>(pick(-4000, 4000)), static_cast<int>(pick(-12, 30))));
  }

  static std::vector<Scalar> extremes(DType t) {
    if (!is_float(t)) {
      const std::int64_t top = std::int64_t{1} << (std::max(bits_of(t), 2) - 2);
      return {Scalar(t, 0),           Scalar(t, 1),    Scalar(t, -1),
              Scalar(t, top),         Scalar(t, -top), identity_of(Op::max, t),
              identity_of(Op::min, t)};
    }
    constexpr double infinity = std::numeric_limits<double>::infinity();
    std::vector<Scalar> all;
    for (double v : {0.0, -0.0, 1.0, -1.0, 0.5, 2.0, infinity, -infinity, std::nan(""), 1e-40,
                     1e300, 448.0, 65504.0, -1e-8, 2147483648.0, 4294967295.0, -129.0})
      all.emplace_back(t, v);
    return all;
  }

 private:
  std::mt19937_64 engine_;
};

inline const std::vector<DType>& all_dtypes() {
  static const std::vector<DType> all = [] {
    std::vector<DType> data;
    for (int i = 0; i < dtype_count; ++i)
      if (static_cast<DType>(i) != DType::index) data.push_back(static_cast<DType>(i));
    return data;
  }();
  return all;
}

}  // namespace mote::testing
