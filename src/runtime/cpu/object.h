// Maps a relocatable object file (ELF x86-64, from LLVM or a C compiler) into executable memory.
// Objects may come from a damaged disk cache: every offset and size in them is checked.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace mote {

class Object {
 public:
  // The bytes may go once it is loaded. CompileError says what is wrong with them.
  static std::shared_ptr<Object> load(std::span<const std::byte> bytes);
  virtual ~Object() = default;
  virtual void* symbol(std::string_view) const = 0;  // a function; nullptr when it is not there
};

}  // namespace mote
