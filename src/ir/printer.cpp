#include "ir/printer.h"

#include <sstream>
#include <unordered_map>

#include "base/text.h"

namespace mote {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return out + "\"";
}

std::string_view symbol(Op op) {
  switch (op) {
    case Op::add: return " + ";
    case Op::mul: return "*";
    case Op::div: return " / ";
    case Op::idiv: return " // ";
    case Op::mod: return " % ";
    case Op::lt: return " < ";
    case Op::eq: return " == ";
    case Op::and_: return " & ";
    case Op::or_: return " | ";
    case Op::xor_: return " ^ ";
    default: return {};
  }
}

std::string head(const Expr& e) {
  if (e->op == Op::reduce || e->op == Op::scan)
    return cat(std::string(name_of(e->op)), "_", std::string(name_of(static_cast<Op>(e->arg))));
  if (e->op == Op::cast) return std::string(name_of(e->dtype));
  return std::string(name_of(e->op));
}

}  // namespace

std::string to_text(const Expr& root) {
  std::ostringstream out;
  std::unordered_map<Expr, std::size_t> number;
  for (const Expr& e : topological(root)) {
    const std::size_t n = number.size();
    number.emplace(e, n);
    out << '%' << n << " = " << name_of(e->op) << ' ' << name_of(e->dtype);
    if (e->arg || e->arg2) out << ' ' << e->arg;
    if (e->arg2) out << ' ' << e->arg2;
    for (const Expr& s : e->src) out << " %" << number.at(s);
    if (!e->text.empty()) out << ' ' << quoted(e->text);
    out << '\n';
  }
  return out.str();
}

std::string short_text(const Expr& e, int depth) {
  if (e->op == Op::constant) return scalar_of(e).text();
  if (e->op == Op::hole || e->op == Op::variable) return std::string(e->text);
  if (e->op == Op::range) return cat("r", e->arg);
  if (e->op == Op::slot) return cat("slot", e->arg);
  if (depth == 0) return "..";
  std::string out;
  const std::string_view infix = symbol(e->op);
  for (const Expr& s : e->src) {
    if (!out.empty()) out += infix.empty() ? std::string_view(", ") : infix;
    out += short_text(s, depth - 1);
  }
  return infix.empty() ? cat(head(e), "(", out, ")") : cat("(", out, ")");
}

}  // namespace mote
