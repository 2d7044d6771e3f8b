// A renderer prints Code as text that a device compiles.
#pragma once
#include "base/source.h"
#include "base/target.h"
#include "kernel/code.h"

namespace mote {

class Renderer {
 public:
  virtual ~Renderer() = default;
  virtual Source render(const Code&, const Target&) const = 0;
};

const Renderer& c_renderer();
const Renderer& llvm_renderer();

// A name that C and LLVM take, the same for equal code.
std::string symbol_of(const Code&, std::size_t phase);
// What every Source holds beside its text.
Source source_of(const Code&);

}  // namespace mote
