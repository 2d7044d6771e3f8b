// libLLVM, found and loaded at run time: IR text in, the bytes of an object file out.
//
//   LlvmLibrary llvm(find_llvm());
//   std::string object = llvm.compile(source, 1, false);
#pragma once
#include <memory>
#include <string>

#include "base/source.h"

namespace mote {

// Where libLLVM lies: MOTE_LLVM, else the first version that is installed. The file is looked for
// and not loaded (loading takes 20 to 35 ms). DeviceError says what to install.
std::string find_llvm();

// Safe to use from several threads at once: each compile has a context of its own.
class LlvmLibrary {
 public:
  explicit LlvmLibrary(const std::string& path);  // DeviceError
  ~LlvmLibrary();
  LlvmLibrary(const LlvmLibrary&) = delete;
  LlvmLibrary& operator=(const LlvmLibrary&) = delete;

  // No middle-end pass runs: the renderer writes what they would make. `level` is that of code
  // generation: 0 compiles three times sooner, 1 makes code as fast as 2 and 3. CompileError
  // carries what LLVM said and the IR.
  std::string compile(const Source&, int level, bool verify) const;

 private:
  struct Functions;
  struct Work;
  std::string object_of(const Source&, Work&, bool verify) const;

  std::unique_ptr<const Functions> llvm_;
  std::string triple_, cpu_, features_;
};

}  // namespace mote
