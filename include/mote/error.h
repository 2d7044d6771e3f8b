// room: base
// What mote throws. A message is one lower-case sentence: what is wrong (with the values), where
// (operation and the user's source place), and what to do.
#pragma once
#include <source_location>
#include <stdexcept>
#include <string>

namespace mote {

// A place in the user's program. Public functions end in `Where where = Where::here()`.
struct Where {
  const char* file = "";
  int line = 0;
  static constexpr Where here(std::source_location at = std::source_location::current()) {
    return {at.file_name(), static_cast<int>(at.line())};
  }
  std::string text() const;  // "train.cpp:41", empty when unknown
};

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// clang-format off
struct ShapeError : Error { using Error::Error; };
struct DTypeError : Error { using Error::Error; };
struct IndexError : Error { using Error::Error; };
struct DeviceError : Error { using Error::Error; };
struct CompileError : Error { using Error::Error; };   // carries the source and the compiler's text
struct FileError : Error { using Error::Error; };
struct MemoryError : Error { using Error::Error; };
struct JitError : Error { using Error::Error; };
struct GradientError : Error { using Error::Error; };
struct ValueError : Error { using Error::Error; };     // an argument out of its range
struct InternalError : Error { using Error::Error; };  // a fault of mote itself
// clang-format on

}  // namespace mote
