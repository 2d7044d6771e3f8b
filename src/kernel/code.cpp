#include "kernel/code.h"

#include <algorithm>

#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

std::string_view kind_name(Ins kind) {
  // clang-format off
  constexpr std::string_view names[] = {"constant", "variable", "loop", "chunk", "branch", "otherwise", "end", "elementwise", "broadcast",
                                        "extract", "build", "horizontal", "shuffle", "load", "store", "declare", "get", "set", "prefetch"};
  // clang-format on
  return names[static_cast<std::size_t>(kind)];
}

std::string line(const Code& code, const Instruction& i, std::size_t number) {
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

[[noreturn]] void illegal(const Code& code, const Instruction& i, std::size_t number,
                          const std::string& why) {
  throw InternalError(cat("verify: ", code.name, ": ", why, ": ", line(code, i, number)));
}

// The interval of each integer value, for the proof of bounds.
struct Interval {
  std::int64_t lo = INT64_MIN, hi = INT64_MAX;
  bool known() const { return lo != INT64_MIN && hi != INT64_MAX; }
};

__extension__ using Wide = __int128;

Interval clipped(Wide lo, Wide hi) {
  if (lo < INT64_MIN / 2 || hi > INT64_MAX / 2) return {};
  return {static_cast<std::int64_t>(lo), static_cast<std::int64_t>(hi)};
}

Interval of_op(Op op, const Interval& a, const Interval& b) {
  if (!a.known() || !b.known()) {
    if (op == Op::tmod && b.known() && b.lo > 0) return clipped(-(Wide(b.hi) - 1), Wide(b.hi) - 1);
    return {};
  }
  switch (op) {
    case Op::add: return clipped(Wide(a.lo) + b.lo, Wide(a.hi) + b.hi);
    case Op::mul: {
      const Wide p[] = {Wide(a.lo) * b.lo, Wide(a.lo) * b.hi, Wide(a.hi) * b.lo, Wide(a.hi) * b.hi};
      return clipped(*std::min_element(p, p + 4), *std::max_element(p, p + 4));
    }
    case Op::tdiv:
      if (b.lo != b.hi || b.lo <= 0) return {};
      return {a.lo / b.lo, a.hi / b.lo};
    case Op::tmod:
      if (b.lo <= 0) return {};
      return {a.lo >= 0 ? 0 : std::max(a.lo, 1 - b.hi), a.hi <= 0 ? 0 : std::min(a.hi, b.hi - 1)};
    case Op::min: return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case Op::max: return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    default: return {};
  }
}

class Verifier {
 public:
  Verifier(const Code& code, const CodePhase& phase)
      : code_(code), phase_(phase), intervals_(phase.body.size()) {}

  void run() {
    for (number_ = 0; number_ < phase_.body.size(); ++number_) check(phase_.body[number_]);
    if (open_ != 0)
      throw InternalError(
          cat("verify: ", code_.name, ": ", open_, " loops or branches are not closed"));
  }

 private:
  void check(const Instruction& i) {
    for (Value a : i.args)
      if (a < 0 || static_cast<std::size_t>(a) >= number_)
        illegal(code_, i, number_, "it uses a value that is not made yet");
    Interval& mine = intervals_[number_];
    const auto arg = [&](std::size_t k) { return intervals_[static_cast<std::size_t>(i.args[k])]; };
    switch (i.kind) {
      case Ins::constant:
        if (!is_float(i.dtype)) mine = {i.imm.as_int(), i.imm.as_int()};
        break;
      case Ins::variable: {
        const Expr& v = code_.variables.at(static_cast<std::size_t>(i.imm_int));
        mine = {v->lo, v->hi};
        break;
      }
      case Ins::loop:
        ++open_;
        mine = {arg(0).lo, std::max(arg(1).hi - 1, arg(0).lo)};
        break;
      case Ins::chunk:
        ++open_;
        mine = {0, std::max<std::int64_t>(phase_.tasks->hi - 1, 0)};
        break;
      case Ins::branch: ++open_; break;
      case Ins::end: --open_; break;
      case Ins::elementwise: elementwise(i, mine); break;
      case Ins::load:
      case Ins::store: access(i); break;
      case Ins::get:
      case Ins::set:
        if (phase_.body[static_cast<std::size_t>(i.args[0])].kind != Ins::declare)
          illegal(code_, i, number_, "it names no variable");
        break;
      default: break;
    }
  }

  void elementwise(const Instruction& i, Interval& mine) {
    for (Value a : i.args) {
      const auto& source = phase_.body[static_cast<std::size_t>(a)];
      const bool condition = i.op == Op::where && a == i.args[0];
      if (source.lanes != i.lanes && !condition) illegal(code_, i, number_, "the lanes differ");
    }
    if (is_float(i.dtype) || i.dtype == DType::boolean) return;
    const auto arg = [&](std::size_t k) { return intervals_[static_cast<std::size_t>(i.args[k])]; };
    if (i.args.size() == 2) mine = of_op(i.op, arg(0), arg(1));
    if (i.op == Op::neg && arg(0).known()) mine = {-arg(0).hi, -arg(0).lo};
    if (i.op == Op::cast && !is_float(phase_.body[static_cast<std::size_t>(i.args[0])].dtype))
      mine = arg(0);
    if (i.op == Op::where && arg(1).known() && arg(2).known())
      mine = {std::min(arg(1).lo, arg(2).lo), std::max(arg(1).hi, arg(2).hi)};
  }

  void access(const Instruction& i) {
    const Memory& m = code_.memories.at(static_cast<std::size_t>(i.memory));
    if (m.dtype != i.dtype) illegal(code_, i, number_, "the dtype is not the memory's");
    const Interval at = intervals_[static_cast<std::size_t>(i.args[0])];
    const bool gated = i.kind == Ins::load && i.args.size() > 1;
    if (gated || in_branch()) return;  // the gate was proven where the AST was made
    if (!at.known() || at.lo < 0 || at.hi + i.lanes > m.elements) {
      illegal(code_, i, number_,
              cat("an access of ", m.name, " (", m.elements,
                  " elements) is not proven in bounds: the index reaches ",
                  at.known() && at.lo < 0 ? at.lo : at.hi + i.lanes - 1));
    }
  }

  bool in_branch() const {
    int depth = 0;
    for (std::size_t k = number_; k-- > 0;) {
      const Ins kind = phase_.body[k].kind;
      if (kind == Ins::end) ++depth;
      if (kind == Ins::loop || kind == Ins::chunk || kind == Ins::branch) {
        if (depth == 0 && kind == Ins::branch) return true;
        depth = std::max(0, depth - 1);
      }
    }
    return false;
  }

  const Code& code_;
  const CodePhase& phase_;
  std::vector<Interval> intervals_;
  std::size_t number_ = 0;
  int open_ = 0;
};

}  // namespace

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
      out += cat(indent, line(code, i, n), "\n");
      if (i.kind == Ins::loop || i.kind == Ins::chunk || i.kind == Ins::branch ||
          i.kind == Ins::otherwise)
        indent += "  ";
    }
  }
  return out;
}

void verify(const Code& code) {
  for (const CodePhase& phase : code.phases) Verifier(code, phase).run();
}

}  // namespace mote
