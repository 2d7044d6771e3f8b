#include "render/renderer.h"

#include "base/text.h"

namespace mote {

std::string symbol_of(const Code& code, std::size_t phase) {
  std::string name;
  for (char c : code.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return cat(name, "_p", phase);
}

std::optional<std::pair<Value, Value>> product_and_other(const CodePhase& phase,
                                                         const Instruction& sum) {
  const auto is_product = [&](Value v) {
    const Instruction& i = phase.body[static_cast<std::size_t>(v)];
    return i.kind == Ins::elementwise && i.op == Op::mul && is_float(i.dtype) &&
           i.lanes == sum.lanes;
  };
  const Value a = sum.args[0], b = sum.args[1];
  if (is_product(a) == is_product(b)) return {};
  return is_product(a) ? std::pair(a, b) : std::pair(b, a);
}

Source source_of(const Code& code) {
  Source s;
  s.name = code.name;
  s.slots = code.slots;
  s.variables = static_cast<int>(code.variables.size());
  s.shared_bytes = code.shared_bytes;
  s.scratch_bytes = code.scratch_bytes;
  for (std::size_t i = 0; i < code.phases.size(); ++i)
    s.phases.push_back({symbol_of(code, i), code.phases[i].tasks->hi, code.phases[i].grain});
  return s;
}

}  // namespace mote
