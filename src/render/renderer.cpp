#include "render/renderer.h"

#include "base/text.h"

namespace mote {

std::string symbol_of(const Code& code, std::size_t phase) {
  std::string name;
  for (char c : code.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return cat(name, "_p", phase);
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
