// room: base
// The element types of tensors. A DType is a plain value: code switches on it and never
// instantiates a template for each one.
#pragma once
#include <cstdint>
#include <string_view>

namespace mote {

// clang-format off
enum class DType : std::uint8_t {
  boolean,
  uint8, uint16, uint32, uint64,
  int8, int16, int32, int64,
  float8_e4m3, float8_e5m2,
  float16, bfloat16, float32, float64,
  index,  // internal: an integer of the compiler's own; 32 or 64 bits are chosen when rendering
};
// clang-format on

inline constexpr int dtype_count = static_cast<int>(DType::index) + 1;

using enum DType;

// Bytes of one element (bool 1; index counts as 8).
int size_of(DType);
int bits_of(DType);
std::string_view name_of(DType);      // "float32"
DType dtype_named(std::string_view);  // throws DTypeError, offers the nearest known name
bool is_float(DType);
bool is_integer(DType);  // signed or unsigned, not bool; index counts
bool is_signed(DType);
bool is_unsigned(DType);

// The lattice of docs/semantics.md: the dtype of a binary operation on two tensors.
DType promote(DType, DType);
// The dtype that sum, prod and cumsum return: int64, uint64 or the float itself.
DType sum_dtype(DType);
// The dtype in which a float reduction runs: float32 for 8- and 16-bit floats, else itself.
DType accumulator_dtype(DType);

}  // namespace mote
