// A renderer prints Code as text that a device compiles.
#pragma once
#include <optional>
#include <utility>

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
// The product and the other side of a float sum that are rounded once, as a fused multiply-add:
// where exactly one side is a product, and there whether or not somebody else needs the product. So
// the same expression has the same bits in every kernel.
std::optional<std::pair<Value, Value>> product_and_other(const CodePhase&, const Instruction& sum);
// What every Source holds beside its text.
Source source_of(const Code&);

}  // namespace mote
