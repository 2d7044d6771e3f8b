#include "ir/printer.h"

#include <charconv>
#include <sstream>
#include <unordered_map>

#include "base/text.h"
#include "mote/error.h"

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

// ---- parsing

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Expr run() {
    Expr last;
    while (at_ < text_.size()) {
      ++line_;
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      rest_ = text_.substr(at_, end - at_);
      at_ = end + 1;
      if (rest_.find_first_not_of(' ') != std::string_view::npos) last = node();
    }
    if (!last) expected("a node");
    return last;
  }

 private:
  [[noreturn]] void expected(const std::string& what) const {
    throw ValueError(cat("parse: line ", line_, ": expected ", what, " at '",
                         std::string(rest_.substr(0, 40)), "'"));
  }

  std::string_view word() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view w = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return w;
  }

  bool number(std::string_view w, std::int64_t& out) const {
    const auto [end, error] = std::from_chars(w.data(), w.data() + w.size(), out);
    return error == std::errc() && end == w.data() + w.size();
  }

  std::string string_literal(std::string_view first) {
    std::string all(first.substr(1));
    all += rest_;
    std::string out;
    std::size_t i = 0;
    for (; i < all.size() && all[i] != '"'; ++i) {
      const bool escaped = all[i] == '\\' && i + 1 < all.size();
      if (escaped) ++i;
      out += escaped && all[i] == 'n' ? '\n' : all[i];
    }
    if (i >= all.size()) expected("a closing quote");
    rest_ = {};
    return out;
  }

  template <class F>
  auto named(
      F find) {  // the error for an unknown name offers the nearest one; here it gets its line
    try {
      return find(word());
    } catch (const Error& e) {
      throw ValueError(cat("parse: line ", line_, ": ", e.what()));
    }
  }

  Expr node() {
    if (word() != "%" + std::to_string(nodes_.size())) expected(cat("%", nodes_.size()));
    if (word() != "=") expected("=");
    const Op op = named(op_named);
    const DType dtype =
        named([](std::string_view w) { return w == "index" ? DType::index : dtype_named(w); });
    std::vector<Expr> src;
    std::int64_t args[2] = {0, 0};
    int count = 0;
    std::string name;
    for (std::string_view w = word(); !w.empty(); w = word()) {
      std::int64_t n = 0;
      if (w[0] == '%') {
        if (!number(w.substr(1), n) || n < 0 || n >= static_cast<std::int64_t>(nodes_.size()))
          expected("an earlier node");
        src.push_back(nodes_[static_cast<std::size_t>(n)]);
      } else if (w[0] == '"') {
        name = string_literal(w);
      } else if (count < 2 && number(w, n)) {
        args[count++] = n;
      } else {
        expected("a source, a number or a name");
      }
    }
    check(op, dtype, src, args[0]);
    nodes_.push_back(intern(op, dtype, src, args[0], args[1], name));
    return nodes_.back();
  }

  // Is it the one form of a value of this dtype?
  static bool is_canonical(DType t, std::int64_t bits) {
    Scalar s(t, 0);
    s.bits = static_cast<std::uint64_t>(bits);
    return s.is_nan() || s == (is_float(t) ? Scalar(t, s.as_double()) : Scalar(t, bits));
  }

  // Enough that no later code reads a source that is not there.
  void check(Op op, DType t, const std::vector<Expr>& src, std::int64_t arg) const {
    const int arity = arity_of(op);
    if (arity >= 0 && static_cast<int>(src.size()) != arity)
      expected(cat(arity, " sources of ", std::string(name_of(op))));
    const std::size_t least = op == Op::store                   ? 3
                              : op == Op::load || op == Op::add ? 2
                              : arity < 0 && op != Op::sink     ? 1
                                                                : 0;
    if (src.size() < least)
      expected(cat("at least ", least, " sources of ", std::string(name_of(op))));
    if (op == Op::range && (arg < 0 || arg >= RangeSet::capacity)) expected("a range id in 0..255");
    const bool holds_op = op == Op::reduce || op == Op::scan || op == Op::store;
    if (holds_op && (arg < 0 || arg >= op_count)) expected("an operation");
    if (op == Op::constant && !is_canonical(t, arg))
      expected(cat("a value of ", std::string(name_of(t))));
    for (std::size_t i = 1; i < src.size() && (op == Op::reduce || op == Op::stage); ++i)
      if (src[i]->op != Op::range) expected("a range");
    if (op == Op::scan && src[1]->op != Op::range) expected("a range");
  }

  std::string_view text_, rest_;
  std::size_t at_ = 0;
  int line_ = 0;
  std::vector<Expr> nodes_;
};

// ---- short form

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

Expr parse(std::string_view text) { return Parser(text).run(); }

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
