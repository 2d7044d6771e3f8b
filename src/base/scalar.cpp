// Scalars: rounding and conversion exactly as docs/semantics.md says.
#include "base/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/text.h"

namespace mote {
namespace {

// Rounds to a float of `mantissa` stored bits and exponents from `least` (of the smallest normal
// number), ties to even, subnormals kept. Too large values are the caller's.
double round_to(double v, int mantissa, int least) {
  if (v == 0 || !std::isfinite(v)) return v;
  int exponent;
  std::frexp(v, &exponent);  // |v| in [2^(exponent-1), 2^exponent)
  const int ulp = std::max(exponent - 1, least) - mantissa;
  return std::ldexp(std::nearbyint(std::ldexp(v, -ulp)), ulp);
}

struct SmallFloat {
  int exponent_bits, mantissa;
  bool has_infinity;  // e4m3 has none: it overflows to NaN
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int least() const { return 1 - bias(); }
  double greatest() const {
    if (!has_infinity) return 448;  // e4m3: the last code is NaN
    return std::ldexp(2 - std::ldexp(1, -mantissa), bias());
  }
};

constexpr SmallFloat half{5, 10, true}, brain{8, 7, true}, e4m3{4, 3, false}, e5m2{5, 2, true};

std::uint32_t encode(double v, const SmallFloat& f) {
  const std::uint32_t sign = std::signbit(v) ? 1u << (f.exponent_bits + f.mantissa) : 0;
  const std::uint32_t top = ((1u << f.exponent_bits) - 1) << f.mantissa;
  const std::uint32_t nan =
      f.has_infinity ? top | (1u << (f.mantissa - 1)) : top | ((1u << f.mantissa) - 1);
  if (std::isnan(v)) return sign | nan;
  const double r = std::abs(round_to(v, f.mantissa, f.least()));
  if (r > f.greatest()) return sign | (f.has_infinity ? top : nan);
  if (r == 0) return sign;
  int exponent;
  std::frexp(r, &exponent);
  const int e = std::max(exponent - 1, f.least());
  const auto code = static_cast<std::uint32_t>(std::ldexp(r, f.mantissa - e));  // 1.m as an integer
  // A subnormal has no implicit bit: its exponent field is 0.
  return sign | (code + (static_cast<std::uint32_t>(e - f.least()) << f.mantissa));
}

double decode(std::uint32_t code, const SmallFloat& f) {
  const bool negative = (code >> (f.exponent_bits + f.mantissa)) & 1;
  const std::uint32_t exponent = (code >> f.mantissa) & ((1u << f.exponent_bits) - 1);
  const std::uint32_t fraction = code & ((1u << f.mantissa) - 1);
  const std::uint32_t last = (1u << f.exponent_bits) - 1;
  double v;
  if (exponent == last && f.has_infinity) v = fraction ? NAN : INFINITY;
  else if (exponent == last && fraction == (1u << f.mantissa) - 1) v = NAN;
  else if (exponent == 0) v = std::ldexp(fraction, f.least() - f.mantissa);
  else
    v = std::ldexp(fraction + (1u << f.mantissa),
                   static_cast<int>(exponent) - f.bias() - f.mantissa);
  return negative ? -v : v;
}

const SmallFloat& small(DType t) {
  if (t == DType::float16) return half;
  if (t == DType::bfloat16) return brain;
  return t == DType::float8_e4m3 ? e4m3 : e5m2;
}

double round_float(double v, DType t) {
  if (t == DType::float64) return v;
  if (t == DType::float32) return static_cast<double>(static_cast<float>(v));
  return decode(encode(v, small(t)), small(t));
}

// An integer of 64 bits goes to float32 in one rounding, not by way of double.
template <class Integer>
double round_integer(Integer v, DType t) {
  if (t == DType::float32) return static_cast<double>(static_cast<float>(v));
  return round_float(static_cast<double>(v), t);
}

// The value of the bits of a float below 64 bits.
double widen(std::uint64_t raw, DType t) {
  const auto code = static_cast<std::uint32_t>(raw);
  return t == DType::float32 ? static_cast<double>(std::bit_cast<float>(code))
                             : decode(code, small(t));
}

// Two's complement of the dtype's width, as int64 (uint64: its bits).
std::int64_t wrap(std::int64_t v, DType t) {
  const int bits = bits_of(t);
  if (t == DType::boolean) return v != 0;
  if (bits == 64) return v;
  const std::uint64_t low = static_cast<std::uint64_t>(v) << (64 - bits);
  if (is_unsigned(t)) return static_cast<std::int64_t>(low >> (64 - bits));
  return static_cast<std::int64_t>(low) >> (64 - bits);
}

// Toward zero; to 8 and 16 bits magnitudes below 2^31 wrap, what fits is exact, all else is 0.
std::int64_t float_to_int(double v, DType t) {
  if (std::isnan(v)) return 0;
  v = std::trunc(v);
  if (bits_of(t) <= 16) return std::abs(v) < 0x1p31 ? wrap(static_cast<std::int64_t>(v), t) : 0;
  const double limit = std::ldexp(1, is_unsigned(t) ? bits_of(t) : bits_of(t) - 1);
  if (v >= limit || v < (is_unsigned(t) ? 0 : -limit)) return 0;
  if (t == DType::uint64) return static_cast<std::int64_t>(static_cast<std::uint64_t>(v));
  return static_cast<std::int64_t>(v);
}

}  // namespace

Scalar::Scalar(DType t, double v) : dtype(t) {
  if (is_float(t)) bits = std::bit_cast<std::uint64_t>(round_float(v, t));
  else if (t == DType::boolean) bits = v != 0 ? 1 : 0;
  else bits = static_cast<std::uint64_t>(float_to_int(v, t));
}

Scalar::Scalar(DType t, std::int64_t v) : dtype(t) {
  if (is_float(t)) bits = std::bit_cast<std::uint64_t>(round_integer(v, t));
  else bits = static_cast<std::uint64_t>(wrap(v, t));
}

Scalar::Scalar(DType t, std::uint64_t v) : dtype(t) {
  if (is_float(t)) bits = std::bit_cast<std::uint64_t>(round_integer(v, t));
  else bits = static_cast<std::uint64_t>(wrap(static_cast<std::int64_t>(v), t));
}

double Scalar::as_double() const {
  if (is_float(dtype)) return std::bit_cast<double>(bits);
  if (dtype == DType::uint64) return static_cast<double>(bits);
  return static_cast<double>(static_cast<std::int64_t>(bits));
}

std::int64_t Scalar::as_int() const {
  if (is_float(dtype)) return float_to_int(as_double(), DType::int64);
  return static_cast<std::int64_t>(bits);
}

bool Scalar::as_bool() const { return is_float(dtype) ? as_double() != 0 : bits != 0; }
bool Scalar::is_nan() const { return is_float(dtype) && std::isnan(as_double()); }

std::string Scalar::text() const {
  if (dtype == DType::boolean) return bits ? "true" : "false";
  if (!is_float(dtype)) return dtype == DType::uint64 ? cat(bits) : cat(as_int());
  const double v = as_double();
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  std::string out = cat(v);
  return out.find_first_of(".e") == std::string::npos ? out + ".0" : out;
}

Scalar cast(Scalar s, DType to) {
  if (s.dtype == to) return s;
  if (is_float(s.dtype)) return Scalar(to, s.as_double());
  if (s.dtype == DType::uint64) return Scalar(to, s.bits);
  return Scalar(to, s.as_int());
}

Scalar load_scalar(const void* at, DType t) {
  std::uint64_t raw = 0;
  std::memcpy(&raw, at, static_cast<std::size_t>(size_of(t)));
  if (!is_float(t)) return Scalar(t, static_cast<std::int64_t>(raw));
  Scalar s;
  s.dtype = t;
  s.bits = t == DType::float64 ? raw : std::bit_cast<std::uint64_t>(widen(raw, t));
  return s;
}

void store_scalar(void* at, Scalar s) {
  std::uint64_t raw = s.bits;
  if (s.dtype == DType::float32) {
    raw = std::bit_cast<std::uint32_t>(static_cast<float>(s.as_double()));
  } else if (is_float(s.dtype) && s.dtype != DType::float64) {
    raw = encode(s.as_double(), small(s.dtype));
  }
  std::memcpy(at, &raw, static_cast<std::size_t>(size_of(s.dtype)));
}

Scalar bitcast(Scalar s, DType to) {
  std::uint64_t raw = 0;
  store_scalar(&raw, s);
  return load_scalar(&raw, to);
}

std::uint16_t to_half(double v) { return static_cast<std::uint16_t>(encode(v, half)); }
double from_half(std::uint16_t v) { return decode(v, half); }
std::uint16_t to_bfloat(double v) { return static_cast<std::uint16_t>(encode(v, brain)); }
double from_bfloat(std::uint16_t v) { return decode(v, brain); }

}  // namespace mote
