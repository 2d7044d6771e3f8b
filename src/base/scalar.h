// One element of any DType, as 8 bytes: what constants hold, and what the interpreters compute
// with. Floats are kept as the bits of a double (it holds every smaller float exactly), integers
// as two's complement (uint64 by its bits), bool as 0 or 1.
//
//   Scalar(float32, 0.1)    0.1 rounded to float32
//   Scalar(uint8, 300)      44: integers wrap
#pragma once
#include <cstdint>
#include <string>

#include "mote/dtype.h"

namespace mote {

struct Scalar {
  DType dtype = DType::float32;
  std::uint64_t bits = 0;

  Scalar() = default;
  Scalar(DType, double);  // rounds as semantics.md says (float to integer: toward zero, ..)
  Scalar(DType, std::int64_t);
  Scalar(DType, std::uint64_t);
  Scalar(DType t, int v) : Scalar(t, static_cast<std::int64_t>(v)) {}
  Scalar(DType t, bool v) : Scalar(t, static_cast<std::int64_t>(v)) {}

  double as_double() const;     // the value (an integer is converted)
  std::int64_t as_int() const;  // the value of an integer or bool; floats: toward zero
  bool as_bool() const;         // not zero; NaN is true
  bool is_nan() const;
  bool operator==(const Scalar&) const = default;  // same dtype and same bits
  std::string text() const;  // "0.5", "3.0", "-7", "true", "nan": parses back without loss
};

Scalar cast(Scalar, DType to);
Scalar bitcast(Scalar, DType to);           // sizes must be equal
Scalar load_scalar(const void* at, DType);  // from an element in memory, any alignment
void store_scalar(void* at, Scalar);

// Rounding of a double to a small float and back, ties to even, subnormals kept.
std::uint16_t to_half(double);
double from_half(std::uint16_t);
std::uint16_t to_bfloat(double);
double from_bfloat(std::uint16_t);

}  // namespace mote
