#include "parse.h"

#include <charconv>

#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

Op op_named(std::string_view name) {
  std::vector<std::string> known;
  for (int i = 0; i < op_count; ++i) {
    const Op op = static_cast<Op>(i);
    if (name_of(op) == name) return op;
    known.emplace_back(name_of(op));
  }
  const std::string close = nearest(name, known);
  throw ValueError(cat("no operation is called '", std::string(name), "'",
                       close.empty() ? "" : cat("; did you mean '", close, "'?")));
}

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

}  // namespace

Expr parse(std::string_view text) { return Parser(text).run(); }

}  // namespace mote
