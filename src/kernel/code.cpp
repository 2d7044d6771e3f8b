#include "kernel/code.h"

#include "base/text.h"

namespace mote {
namespace {

std::string_view kind_name(Ins kind) {
  // clang-format off
  constexpr std::string_view names[] = {
      "constant",  "variable", "loop",  "chunk",      "branch",  "otherwise", "end",
      "elementwise", "broadcast", "extract", "build", "horizontal", "shuffle",
      "load",      "store",    "declare", "get",      "set",     "prefetch"};
  // clang-format on
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace

std::string to_text(const Code& code, const Instruction& i, std::size_t number) {
  std::string out = i.kind == Ins::store || i.kind == Ins::set || i.kind == Ins::end ||
                            i.kind == Ins::branch || i.kind == Ins::otherwise
                        ? ""
                        : cat("%", number, " = ");
  out += i.kind == Ins::elementwise || i.kind == Ins::horizontal ? std::string(name_of(i.op))
                                                                 : std::string(kind_name(i.kind));
  if (i.kind == Ins::horizontal) out += " over lanes of";
  if (i.memory >= 0) out += " " + code.memories[static_cast<std::size_t>(i.memory)].name;
  for (std::size_t a = 0; a < i.args.size(); ++a)
    out +=
        cat(a == 0 && i.memory >= 0 ? "[%" : " %", i.args[a], a == 0 && i.memory >= 0 ? "]" : "");
  if (i.kind == Ins::constant) out += " " + i.imm.text();
  if (i.kind == Ins::extract || i.kind == Ins::variable) out += cat(" ", i.imm_int);
  if (i.kind != Ins::end && i.kind != Ins::branch && i.kind != Ins::otherwise)
    out += cat(" : ", std::string(name_of(i.dtype)));
  return i.lanes > 1 ? cat(out, " x", static_cast<int>(i.lanes)) : out;
}

std::string to_text(const Code& code) {
  std::string out = code.name + "\n";
  for (const Memory& m : code.memories)
    out += cat("  ", m.name, ": ", std::string(name_of(m.dtype)), " x ", m.elements,
               m.space == Space::slot ? cat(" slot ", m.number) : cat(" scratch at ", m.number),
               m.written ? " written" : "", "\n");
  for (const CodePhase& phase : code.phases) {
    out += cat("phase of ", phase.tasks->hi, " tasks, grain ", phase.grain, "\n");
    std::string indent = "  ";
    for (std::size_t n = 0; n < phase.body.size(); ++n) {
      const Instruction& i = phase.body[n];
      if (i.kind == Ins::end || i.kind == Ins::otherwise) indent.resize(indent.size() - 2);
      out += cat(indent, to_text(code, i, n), "\n");
      if (i.kind == Ins::loop || i.kind == Ins::chunk || i.kind == Ins::branch ||
          i.kind == Ins::otherwise)
        indent += "  ";
    }
  }
  return out;
}

}  // namespace mote
