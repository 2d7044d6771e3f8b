// Code as LLVM IR. One function a phase, in SSA form:
//
//   define void @add_p0(ptr %slots, ptr %shared, ptr %scratch, ptr %variables, i64 %begin, i64
//   %end)
//   ..
//   loop0:
//     %v0 = phi i32 [ %first, %enter0 ], [ %v0.next, %loop0 ]
//     %v2 = mul nsw i32 %v0, 8
//     %a3 = getelementptr float, ptr %x1, i32 %v2
//     %v3 = load <8 x float>, ptr %a3, align 4
//
// No pass of LLVM's middle runs over this text, so it is written as that would leave it: what a
// loop sets is a phi (found by looking ahead in its body), loops test at their bottom behind a
// guard where they may not run at all, and index arithmetic says that it never wraps. The code
// generator then folds addresses by itself.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <unordered_map>
#include <vector>

#include "base/text.h"
#include "mote/error.h"
#include "render/renderer.h"

namespace mote {
namespace {

std::string llvm_type(DType t) {
  switch (t) {
    case DType::boolean: return "i1";
    case DType::float16: return "half";
    case DType::float32: return "float";
    case DType::float64: return "double";
    default: break;
  }
  if (!is_integer(t) || t == DType::index)
    throw InternalError(cat("render: LLVM has no ", std::string(name_of(t))));
  return cat("i", size_of(t) * 8);
}

std::string llvm_type(DType t, int lanes) {
  return lanes == 1 ? llvm_type(t) : cat("<", lanes, " x ", llvm_type(t), ">");
}

std::string hex(const char* prefix, int digits, std::uint64_t bits) {
  char text[32];
  std::snprintf(text, sizeof text, "%s%0*llX", prefix, digits,
                static_cast<unsigned long long>(bits));
  return text;
}

// A float is written by its bits: as a double where it is a float.
std::string literal(const Scalar& s) {
  switch (s.dtype) {
    case DType::float16: return hex("0xH", 4, s.bits & 0xffff);
    case DType::float32:
    case DType::float64: return hex("0x", 16, std::bit_cast<std::uint64_t>(s.as_double()));
    case DType::boolean: return s.as_bool() ? "true" : "false";
    case DType::uint64: return cat(s.bits);
    default: return cat(s.as_int());
  }
}

class Printer {
 public:
  Printer(const Code& code, std::size_t number)
      : code_(code),
        phase_(code.phases[number]),
        symbol_(symbol_of(code, number)),
        names_(phase_.body.size()),
        exact_(phase_.body.size()) {}

  // Appends "declare .." lines of the intrinsics used.
  std::string run(std::map<std::string, std::string>& intrinsics) {
    intrinsics_ = &intrinsics;
    for (std::size_t n = phase_.body.size(); n-- > 0;) mark_exact(n);
    for (std::size_t n = 0; n < phase_.body.size(); ++n) print(static_cast<Value>(n));
    std::string out = cat("define void @", symbol_,
                          "(ptr %slots, ptr %shared, ptr %scratch, ptr %variables, i64 %begin, "
                          "i64 %end) nounwind {\nentry:\n");
    if (gated_)
      out +=
          "  %zeros = alloca [64 x i8], align 64\n  store [64 x i8] zeroinitializer, ptr %zeros\n";
    for (std::size_t m = 0; m < code_.memories.size(); ++m) {
      const Memory& memory = code_.memories[m];
      if (memory.space == Space::slot) {
        out += cat("  %", memory.name, ".at = getelementptr ptr, ptr %slots, i64 ", memory.number,
                   "\n  %", memory.name, " = load ptr, ptr %", memory.name, ".at\n");
      } else {
        out += cat("  %", memory.name, " = getelementptr i8, ptr ",
                   memory.space == Space::shared ? "%shared" : "%scratch", ", i64 ", memory.number,
                   "\n");
      }
    }
    for (const std::string& l : lines_) out += l;
    return out + "  ret void\n}\n";
  }

 private:
  // A loop or a branch that is open. `before`: the variables' values where it began.
  struct Open {
    Value at = no_value;
    std::size_t slot = 0;  // of a loop: the line that will hold its phis
    std::string from;      // the label it was entered from
    bool guarded = false;
    std::vector<Value> changed;  // the variables that its body sets
    std::unordered_map<Value, std::string> before, after_then;
    std::string then_label;  // of a branch with an otherwise: where its first part ended
  };

  const Instruction& at(Value v) const { return phase_.body[static_cast<std::size_t>(v)]; }
  std::string& name(Value v) { return names_[static_cast<std::size_t>(v)]; }
  std::string type(Value v) const { return llvm_type(at(v).dtype, at(v).lanes); }
  std::string typed(Value v) { return cat(type(v), " ", name(v)); }
  void line(const std::string& s) { lines_.push_back("  " + s + "\n"); }
  std::string fresh() { return cat("%u", fresh_++); }
  void open_label(const std::string& l) {
    lines_.push_back(l + ":\n");
    label_ = l;
  }
  void define(Value v, const std::string& value) {
    name(v) = cat("%v", v);
    line(cat(name(v), " = ", value));
  }

  // Index arithmetic never wraps: linearize chose its width by the bounds. Users come later, so one
  // pass from the end sees them all.
  void mark_exact(std::size_t n) {
    const Instruction& i = phase_.body[n];
    const bool access = i.kind == Ins::load || i.kind == Ins::store || i.kind == Ins::prefetch;
    if (access) exact_[static_cast<std::size_t>(i.args[0])] = true;
    if (i.kind == Ins::elementwise && exact_[n] && (i.op == Op::add || i.op == Op::mul))
      for (Value a : i.args) exact_[static_cast<std::size_t>(a)] = true;
  }

  void print(Value v) {
    const Instruction& i = at(v);
    switch (i.kind) {
      case Ins::constant: name(v) = literal(i.imm); return;
      case Ins::variable: return variable(v);
      case Ins::loop:
      case Ins::chunk: return open_loop(v);
      case Ins::branch: return open_branch(v);
      case Ins::otherwise: return otherwise();
      case Ins::end: return at(open_.back().at).kind == Ins::branch ? close_branch() : close_loop();
      case Ins::elementwise: return elementwise(v);
      case Ins::broadcast: return broadcast(v);
      case Ins::build: return build(v);
      case Ins::extract:
        return define(v, cat("extractelement ", typed(i.args[0]), ", i32 ", i.imm_int));
      case Ins::horizontal: return horizontal(v);
      case Ins::shuffle:
        return define(v, shuffled(typed(i.args[0]), typed(i.args[1]),
                                  std::vector<int>(i.picks.begin(), i.picks.end())));
      case Ins::load: return load(v);
      case Ins::store: return store(i);
      case Ins::declare: variables_[v] = name(i.args[0]); return;
      case Ins::get: name(v) = variables_.at(i.args[0]); return;
      case Ins::set: variables_[i.args[0]] = name(i.args[1]); return;
      case Ins::prefetch:
        return line(cat("call void ", intrinsic("llvm.prefetch.p0", "void", "ptr, i32, i32, i32"),
                        "(ptr ", address(i), ", i32 0, i32 3, i32 1)"));
    }
  }

  void variable(Value v) {
    const Instruction& i = at(v);
    const std::string where = fresh(), wide = i.dtype == DType::int64 ? "" : fresh();
    line(cat(where, " = getelementptr i64, ptr %variables, i64 ", i.imm_int));
    if (wide.empty()) return define(v, cat("load i64, ptr ", where));
    line(cat(wide, " = load i64, ptr ", where));
    define(v, cat("trunc i64 ", wide, " to ", type(v)));
  }

  // ---- control flow

  // The variables, declared before, that instructions after `v` set before its end.
  std::vector<Value> set_inside(Value v) const {
    std::vector<Value> out;
    int depth = 1;
    for (Value n = v + 1; depth > 0; ++n) {
      const Instruction& i = at(n);
      if (i.kind == Ins::loop || i.kind == Ins::chunk || i.kind == Ins::branch) ++depth;
      if (i.kind == Ins::end) --depth;
      if (i.kind == Ins::set && i.args[0] < v && std::ranges::find(out, i.args[0]) == out.end())
        out.push_back(i.args[0]);
    }
    return out;
  }

  std::unordered_map<Value, std::string> values_of(const std::vector<Value>& variables) {
    std::unordered_map<Value, std::string> out;
    for (Value x : variables) out[x] = variables_.at(x);
    return out;
  }

  // As the index type, from the i64 argument.
  std::string bound(const char* argument, Value v) {
    if (at(v).dtype == DType::int64) return argument;
    const std::string t = fresh();
    line(cat(t, " = trunc i64 ", argument, " to ", type(v)));
    return t;
  }

  void open_loop(Value v) {
    const Instruction& i = at(v);
    Open o;
    o.at = v;
    const bool chunk = i.kind == Ins::chunk;
    const std::string begin = chunk ? bound("%begin", v) : name(i.args[0]),
                      end = chunk ? bound("%end", v) : name(i.args[1]);
    o.guarded = chunk || at(i.args[0]).kind != Ins::constant ||
                at(i.args[1]).kind != Ins::constant ||
                at(i.args[0]).imm.as_int() >= at(i.args[1]).imm.as_int();
    o.changed = set_inside(v);
    o.before = values_of(o.changed);
    o.from = label_;
    if (o.guarded) {
      const std::string runs = fresh();
      line(cat(runs, " = icmp slt ", type(v), " ", begin, ", ", end));
      line(cat("br i1 ", runs, ", label %loop", v, ", label %done", v));
    } else {
      line(cat("br label %loop", v));
    }
    open_label(cat("loop", v));
    name(v) = cat("%v", v);
    o.slot = lines_.size();
    lines_.push_back(begin);  // until the loop closes
    ends_[v] = end;
    for (Value x : o.changed) variables_[x] = cat("%p", v, ".", x);
    open_.push_back(std::move(o));
  }

  void close_loop() {
    Open o = std::move(open_.back());
    open_.pop_back();
    const Value v = o.at;
    const std::string next = cat(name(v), ".next"), more = cat(name(v), ".more");
    line(cat(next, " = add nsw ", type(v), " ", name(v), ", 1"));
    line(cat(more, " = icmp slt ", type(v), " ", next, ", ", ends_.at(v)));
    line(cat("br i1 ", more, ", label %loop", v, ", label %done", v));
    std::string phis = phi(name(v), type(v), lines_[o.slot], o.from, next, label_);
    for (Value x : o.changed)
      phis += phi(cat("%p", v, ".", x), type(x), o.before.at(x), o.from, variables_.at(x), label_);
    lines_[o.slot] = phis;
    const std::string last = label_;
    open_label(cat("done", v));
    if (!o.guarded) return;
    for (Value x : o.changed) {
      const std::string merged = cat("%q", v, ".", x);
      lines_.push_back(phi(merged, type(x), o.before.at(x), o.from, variables_.at(x), last));
      variables_[x] = merged;
    }
  }

  static std::string phi(const std::string& result, const std::string& t, const std::string& a,
                         const std::string& a_from, const std::string& b,
                         const std::string& b_from) {
    return cat("  ", result, " = phi ", t, " [ ", a, ", %", a_from, " ], [ ", b, ", %", b_from,
               " ]\n");
  }

  void open_branch(Value v) {
    Open o;
    o.at = v;
    o.changed = set_inside(v);
    o.before = values_of(o.changed);
    o.from = label_;
    o.slot = lines_.size();
    line("");  // the branch: its second target is known at the end
    open_label(cat("then", v));
    open_.push_back(std::move(o));
  }

  void otherwise() {
    Open& o = open_.back();
    o.after_then = values_of(o.changed);
    o.then_label = label_;
    for (Value x : o.changed) variables_[x] = o.before.at(x);
    line(cat("br label %joined", o.at));
    open_label(cat("else", o.at));
  }

  void close_branch() {
    Open o = std::move(open_.back());
    open_.pop_back();
    const bool two = !o.then_label.empty();
    const std::string last = label_;
    line(cat("br label %joined", o.at));
    lines_[o.slot] = cat("  br i1 ", name(at(o.at).args[0]), ", label %then", o.at, ", label %",
                         two ? "else" : "joined", o.at, "\n");
    open_label(cat("joined", o.at));
    for (Value x : o.changed) {
      const std::string merged = cat("%q", o.at, ".", x);
      lines_.push_back(phi(merged, type(x), two ? o.after_then.at(x) : o.before.at(x),
                           two ? o.then_label : o.from, variables_.at(x), last));
      variables_[x] = merged;
    }
  }

  // ---- values

  std::string intrinsic(const std::string& function, const std::string& result,
                        const std::string& arguments) {
    (*intrinsics_)[function] = cat("declare ", result, " @", function, "(", arguments, ")\n");
    return "@" + function;
  }

  // The same literal in each lane.
  std::string all_lanes(DType t, int lanes, const std::string& one) {
    if (lanes == 1) return one;
    std::string out = "<";
    for (int l = 0; l < lanes; ++l) out += cat(l ? ", " : "", llvm_type(t), " ", one);
    return out + ">";
  }

  void elementwise(Value v) {
    const Instruction& i = at(v);
    const Instruction& x = at(i.args[0]);
    const bool floating = is_float(x.dtype), signed_ = is_signed(x.dtype);
    const auto binary = [&](const char* op) {
      define(v, cat(op, " ", typed(i.args[0]), ", ", name(i.args[1])));
    };
    const char* exact = exact_[static_cast<std::size_t>(v)] ? " nsw" : "";
    switch (i.op) {
      case Op::neg:
        return define(v, floating ? cat("fneg ", typed(i.args[0]))
                                  : cat("sub ", type(v), " ", all_lanes(i.dtype, i.lanes, "0"),
                                        ", ", name(i.args[0])));
      case Op::add:
        if (const auto sides = product_and_other(phase_, i)) return fused(v, *sides);
        return binary(floating ? "fadd" : cat("add", exact).c_str());
      case Op::mul: return binary(floating ? "fmul" : cat("mul", exact).c_str());
      case Op::div: return binary("fdiv");
      case Op::sqrt:
      case Op::trunc: return lanewise(v);
      case Op::tdiv: return binary(signed_ ? "sdiv" : "udiv");
      case Op::tmod: return binary(signed_ ? "srem" : "urem");
      case Op::max:
      case Op::min:
        define(v, extreme(i.op, x.dtype, i.lanes, name(i.args[0]), name(i.args[1])));
        return;
      case Op::lt: return binary(floating ? "fcmp olt" : signed_ ? "icmp slt" : "icmp ult");
      case Op::eq: return binary(floating ? "fcmp oeq" : "icmp eq");
      case Op::and_: return binary("and");
      case Op::or_: return binary("or");
      case Op::xor_: return binary("xor");
      case Op::not_:
        return define(v,
                      cat("xor ", typed(i.args[0]), ", ",
                          all_lanes(i.dtype, i.lanes, i.dtype == DType::boolean ? "true" : "-1")));
      case Op::shl: return binary("shl");
      case Op::shr: return binary(signed_ ? "ashr" : "lshr");
      case Op::where:
        return define(
            v, cat("select ", typed(i.args[0]), ", ", typed(i.args[1]), ", ", typed(i.args[2])));
      case Op::cast: return convert(v);
      case Op::bitcast: return define(v, cat("bitcast ", typed(i.args[0]), " to ", type(v)));
      default: throw InternalError(cat("render: LLVM: unexpected ", std::string(name_of(i.op))));
    }
  }

  // One rounding where the machine can.
  void fused(Value v, const std::pair<Value, Value>& sides) {
    const auto& factors = at(sides.first).args;
    const std::string t = type(v);
    const std::string function = overloaded("fmuladd", at(v));
    define(v, cat("call ", t, " ", intrinsic(function, t, cat(t, ", ", t, ", ", t)), "(",
                  typed(factors[0]), ", ", typed(factors[1]), ", ", typed(sides.second), ")"));
  }

  // "llvm.sqrt.v8f32"
  static std::string overloaded(const std::string& function, const Instruction& i) {
    return cat("llvm.", function, ".", i.lanes == 1 ? "" : cat("v", static_cast<int>(i.lanes)), "f",
               size_of(i.dtype) * 8);
  }

  // sqrt and trunc: an instruction of its own on every processor that matters.
  void lanewise(Value v) {
    const Instruction& i = at(v);
    const std::string function = overloaded(std::string(name_of(i.op)), i);
    define(v, cat("call ", type(v), " ", intrinsic(function, type(v), type(v)), "(",
                  typed(i.args[0]), ")"));
  }

  // The text of: a > b or a is NaN ? a : b. The first select alone is one instruction of x86.
  std::string extreme(Op op, DType t, int lanes, const std::string& a, const std::string& b) {
    const std::string ty = llvm_type(t, lanes), flags = llvm_type(DType::boolean, lanes),
                      c = fresh();
    const bool max = op == Op::max;
    if (!is_float(t)) {
      line(cat(c, " = icmp ", is_signed(t) ? "s" : "u", max ? "gt " : "lt ", ty, " ", a, ", ", b));
      return cat("select ", flags, " ", c, ", ", ty, " ", a, ", ", ty, " ", b);
    }
    const std::string m = fresh(), nan = fresh();
    line(cat(c, " = fcmp ", max ? "ogt " : "olt ", ty, " ", a, ", ", b));
    line(cat(m, " = select ", flags, " ", c, ", ", ty, " ", a, ", ", ty, " ", b));
    line(cat(nan, " = fcmp uno ", ty, " ", a, ", ", a));
    return cat("select ", flags, " ", nan, ", ", ty, " ", a, ", ", ty, " ", m);
  }

  void convert(Value v) {
    const DType from = at(at(v).args[0]).dtype, to = at(v).dtype;
    const Value x = at(v).args[0];
    const auto as = [&](const char* op) { define(v, cat(op, " ", typed(x), " to ", type(v))); };
    if (is_float(from) && is_float(to)) {
      if (size_of(from) == size_of(to)) return alias(v, x);
      return as(size_of(from) < size_of(to) ? "fpext" : "fptrunc");
    }
    if (is_float(from)) return as(is_signed(to) ? "fptosi" : "fptoui");
    if (is_float(to)) return as(is_signed(from) ? "sitofp" : "uitofp");
    if (from == DType::boolean) return as("zext");
    if (size_of(from) == size_of(to)) return alias(v, x);
    if (size_of(from) > size_of(to)) return as("trunc");
    as(is_signed(from) ? "sext" : "zext");
  }

  void alias(Value v, Value of) { name(v) = name(of); }

  bool is_literal(Value v) const { return at(v).kind == Ins::constant; }

  void broadcast(Value v) {
    const Instruction& i = at(v);
    if (is_literal(i.args[0])) {
      name(v) = all_lanes(i.dtype, i.lanes, name(i.args[0]));
      return;
    }
    const std::string first = fresh();
    line(cat(first, " = insertelement ", type(v), " poison, ", typed(i.args[0]), ", i32 0"));
    define(v, cat("shufflevector ", type(v), " ", first, ", ", type(v), " poison, <",
                  static_cast<int>(i.lanes), " x i32> zeroinitializer"));
  }

  void build(Value v) {
    const Instruction& i = at(v);
    std::string literals = "<";
    bool all = true;
    for (Value a : i.args) {
      all = all && is_literal(a);
      literals += cat(literals == "<" ? "" : ", ", typed(a));
    }
    if (all) {
      name(v) = literals + ">";
      return;
    }
    std::string sofar = "poison";
    for (std::size_t l = 0; l < i.args.size(); ++l) {
      const std::string next = l + 1 == i.args.size() ? cat("%v", v) : fresh();
      line(
          cat(next, " = insertelement ", type(v), " ", sofar, ", ", typed(i.args[l]), ", i32 ", l));
      sofar = next;
    }
    name(v) = sofar;
  }

  static std::string shuffled(const std::string& a, const std::string& b,
                              const std::vector<int>& picks) {
    std::string out = cat("shufflevector ", a, ", ", b, ", <", picks.size(), " x i32> <");
    for (std::size_t p = 0; p < picks.size(); ++p) out += cat(p ? ", " : "", "i32 ", picks[p]);
    return out + ">";
  }

  // Halves onto each other until one is left.
  void horizontal(Value v) {
    const Instruction& i = at(v);
    std::string x = name(i.args[0]);
    for (int lanes = at(i.args[0]).lanes; lanes > 1; lanes /= 2) {
      const std::string ty = llvm_type(i.dtype, lanes);
      std::string halves[2];
      for (int h = 0; h < 2; ++h) {
        std::vector<int> picks;
        for (int l = 0; l < lanes / 2; ++l) picks.push_back(h * lanes / 2 + l);
        halves[h] = fresh();
        line(cat(halves[h], " = ",
                 lanes == 2 ? cat("extractelement ", ty, " ", x, ", i32 ", h)
                            : shuffled(cat(ty, " ", x), cat(ty, " poison"), picks)));
      }
      x = combined(i, lanes / 2, halves[0], halves[1]);
    }
    name(v) = x;
  }

  std::string combined(const Instruction& i, int lanes, const std::string& a,
                       const std::string& b) {
    const std::string out = fresh(), ty = llvm_type(i.dtype, lanes);
    const auto op = [&]() -> std::string {
      const bool flag = i.dtype == DType::boolean, floating = is_float(i.dtype);
      if (flag) return i.op == Op::and_ || i.op == Op::min || i.op == Op::mul ? "and" : "or";
      if (i.op == Op::add) return floating ? "fadd" : "add";
      if (i.op == Op::mul) return floating ? "fmul" : "mul";
      if (i.op == Op::and_) return "and";
      if (i.op == Op::or_) return "or";
      return "";
    }();
    line(cat(out, " = ",
             op.empty() ? extreme(i.op, i.dtype, lanes, a, b) : cat(op, " ", ty, " ", a, ", ", b)));
    return out;
  }

  // ---- memory

  static std::string stored_type(DType t, int lanes) {
    return llvm_type(t == DType::boolean ? DType::uint8 : t, lanes);
  }

  std::string address(const Instruction& i) {
    const std::string a = fresh();
    line(cat(a, " = getelementptr ", stored_type(i.dtype, 1), ", ptr %",
             code_.memories[static_cast<std::size_t>(i.memory)].name, ", ", typed(i.args[0])));
    return a;
  }

  // Where the gate is false, zeros are read instead: no branch.
  void load(Value v) {
    const Instruction& i = at(v);
    std::string from = address(i);
    const bool masked = i.args.size() > 1 && at(i.args[1]).lanes > 1;
    if (i.args.size() > 1 && !masked) {
      gated_ = true;
      if (size_of(i.dtype) * i.lanes > 64)
        throw InternalError("render: LLVM: a gated load is too wide");
      const std::string safe = fresh();
      line(cat(safe, " = select ", typed(i.args[1]), ", ptr ", from, ", ptr %zeros"));
      from = safe;
    }
    const std::string t = stored_type(i.dtype, i.lanes);
    const std::string all = masked ? masked_load(i, from)
                                   : cat("load ", t, ", ptr ", from, ", align ", size_of(i.dtype));
    if (i.dtype != DType::boolean) return define(v, all);
    const std::string bytes = fresh();
    line(cat(bytes, " = ", all));
    define(v, cat("icmp ne ", stored_type(i.dtype, i.lanes), " ", bytes, ", ",
                  all_lanes(DType::uint8, i.lanes, "0")));
  }

  // Lanes whose flag is false read nothing and are zero.
  std::string masked_load(const Instruction& i, const std::string& from) {
    const std::string t = stored_type(i.dtype, i.lanes), flags = type(i.args[1]);
    const DType element = i.dtype == DType::boolean ? DType::uint8 : i.dtype;
    const std::string f = intrinsic(cat("llvm.masked.load.v", i.lanes,
                                        is_float(element) ? "f" : "i", size_of(element) * 8, ".p0"),
                                    t, cat("ptr, i32, ", flags, ", ", t));
    return cat("call ", t, " ", f, "(ptr ", from, ", i32 ", size_of(i.dtype), ", ",
               typed(i.args[1]), ", ", t, " zeroinitializer)");
  }

  void store(const Instruction& i) {
    std::string value = i.lanes > 1 || at(i.args[1]).lanes == 1 ? typed(i.args[1]) : "";
    if (i.dtype == DType::boolean) {
      const std::string bytes = fresh();
      line(cat(bytes, " = zext ", value, " to ", stored_type(i.dtype, i.lanes)));
      value = cat(stored_type(i.dtype, i.lanes), " ", bytes);
    }
    line(cat("store ", value, ", ptr ", address(i), ", align ", size_of(i.dtype)));
  }

  const Code& code_;
  const CodePhase& phase_;
  std::string symbol_;
  std::vector<std::string> names_;  // of each value: a register or a literal
  std::vector<bool> exact_;         // it is index arithmetic
  std::vector<std::string> lines_;
  std::string label_ = "entry";
  std::vector<Open> open_;
  std::unordered_map<Value, std::string> variables_;  // what each declared variable is now
  std::unordered_map<Value, std::string> ends_;       // of loops
  std::map<std::string, std::string>* intrinsics_ = nullptr;
  int fresh_ = 0;
  bool gated_ = false;
};

class LlvmRenderer final : public Renderer {
 public:
  Source render(const Code& code, const Target&) const override {
    Source out = source_of(code);
    std::map<std::string, std::string> intrinsics;
    for (std::size_t i = 0; i < code.phases.size(); ++i)
      out.text += Printer(code, i).run(intrinsics);
    for (const auto& [name, declaration] : intrinsics) out.text += declaration;
    return out;
  }
};

}  // namespace

const Renderer& llvm_renderer() {
  static const LlvmRenderer renderer;
  return renderer;
}

}  // namespace mote
