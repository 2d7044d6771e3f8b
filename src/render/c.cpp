// Code as C with the vector extensions of GCC and clang. One function a phase:
//
//   void add_p0(void *const *slots, void *shared, void *scratch, const int64_t *variables,
//               int64_t begin, int64_t end) {
//     float *restrict x0 = slots[0];
//     ..
//     for (int32_t v0 = begin; v0 < end; v0++) {
//       int32_t v2 = v0 * v1;
//       float32x8 v3 = *(const float32x8 *)(x1 + v2);
//
// A bool vector is kept as signed integers, all ones for true, of the width of what was compared;
// where another width is needed it is converted.
#include <cmath>
#include <cstdio>
#include <set>

#include "base/text.h"
#include "mote/error.h"
#include "render/renderer.h"

namespace mote {
namespace {

std::string c_type(DType t) {
  switch (t) {
    case DType::boolean: return "uint8_t";
    case DType::float16: return "_Float16";
    case DType::float32: return "float";
    case DType::float64: return "double";
    default: break;
  }
  if (!is_integer(t) || t == DType::index)
    throw InternalError(cat("render: C has no ", std::string(name_of(t))));
  return cat(std::string(name_of(t)), "_t");
}

std::string vector_type(DType t, int lanes) { return cat(std::string(name_of(t)), "x", lanes); }

std::string literal(const Scalar& s) {
  if (is_float(s.dtype)) {
    const double v = s.as_double();
    const std::string suffix = s.dtype == DType::float64 ? "" : "f";
    if (std::isnan(v)) return "__builtin_nan" + suffix + "(\"\")";
    if (std::isinf(v)) return cat(v < 0 ? "-" : "", "__builtin_inf", suffix, "()");
    char text[64];
    std::snprintf(text, sizeof text, "%a", v);
    return cat(s.dtype == DType::float16 ? "(_Float16)" : "", text, suffix);
  }
  if (s.dtype == DType::uint64) return cat(s.bits, "u");
  if (s.dtype == DType::int64 && s.as_int() == INT64_MIN) return "(-9223372036854775807 - 1)";
  return s.dtype == DType::uint32 ? cat(s.as_int(), "u") : cat(s.as_int());
}

DType mask_type(DType t) {
  switch (size_of(t)) {
    case 1: return DType::int8;
    case 2: return DType::int16;
    case 4: return DType::int32;
    default: return DType::int64;
  }
}

class Printer {
 public:
  Printer(const Code& code, std::size_t number)
      : code_(code),
        phase_(code.phases[number]),
        name_(symbol_of(code, number)),
        masks_(phase_.body.size(), DType::int8) {}

  std::string run(std::set<std::pair<DType, int>>& vectors) {
    vectors_ = &vectors;
    for (std::size_t n = 0; n < phase_.body.size(); ++n) print(static_cast<Value>(n));
    std::string out = cat("void ", name_,
                          "(void *const *slots, void *shared, void *scratch, const int64_t "
                          "*variables, int64_t begin, int64_t end) {\n");
    for (std::size_t m = 0; m < code_.memories.size(); ++m) {
      if (!used_.contains(static_cast<int>(m))) continue;
      const Memory& memory = code_.memories[m];
      const std::string base =
          memory.space == Space::slot
              ? cat("slots[", memory.number, "]")
              : cat("(char *)", memory.space == Space::shared ? "shared" : "scratch", " + ",
                    memory.number);
      out += cat("  ", memory.written ? "" : "const ", c_type(memory.dtype), " *restrict ",
                 memory.name, " = (void *)(", base, ");\n");
    }
    return out + text_ + "}\n";
  }

 private:
  const Instruction& at(Value v) const { return phase_.body[static_cast<std::size_t>(v)]; }
  static std::string name(Value v) { return cat("v", v); }
  DType& mask_of(Value v) { return masks_[static_cast<std::size_t>(v)]; }
  void line(const std::string& s) { text_ += indent_ + s + "\n"; }
  void deeper() { indent_ += "  "; }
  void shallower() { indent_.resize(indent_.size() - 2); }

  std::string type(DType t, int lanes) {
    if (lanes == 1) return c_type(t);
    vectors_->insert({t, lanes});
    return vector_type(t, lanes);
  }

  void define(Value v, const std::string& value) {
    const Instruction& i = at(v);
    const DType t = i.dtype == DType::boolean && i.lanes > 1 ? mask_of(v) : i.dtype;
    line(cat(type(t, i.lanes), " ", name(v), " = ", value, ";"));
  }

  std::string memory(const Instruction& i) {
    used_.insert(i.memory);
    return code_.memories[static_cast<std::size_t>(i.memory)].name;
  }

  void print(Value v) {
    const Instruction& i = at(v);
    switch (i.kind) {
      case Ins::constant: return define(v, literal(i.imm));
      case Ins::variable: return define(v, cat("variables[", i.imm_int, "]"));
      case Ins::loop: return open_loop(v, name(i.args[0]), name(i.args[1]));
      case Ins::chunk: return open_loop(v, "begin", "end");
      case Ins::branch: line(cat("if (", name(i.args[0]), ") {")); return deeper();
      case Ins::otherwise:
        shallower();
        line("} else {");
        return deeper();
      case Ins::end: shallower(); return line("}");
      case Ins::elementwise: return elementwise(v);
      case Ins::broadcast: return repeated(v, std::vector<Value>(i.lanes, i.args[0]));
      case Ins::build: return repeated(v, i.args);
      case Ins::extract:
        return define(
            v, cat(name(i.args[0]), "[", i.imm_int, "]", i.dtype == DType::boolean ? " != 0" : ""));
      case Ins::horizontal: return horizontal(v);
      case Ins::shuffle: return shuffle(v);
      case Ins::load: return load(v);
      case Ins::store: return store(i);
      case Ins::declare:
      case Ins::get: return variable(v);
      case Ins::set: return line(cat(name(i.args[0]), " = ", as_stored(i.args[0], i.args[1]), ";"));
      case Ins::prefetch:
        return line(cat("__builtin_prefetch(", memory(i), " + ", name(i.args[0]), ");"));
    }
  }

  void open_loop(Value v, const std::string& begin, const std::string& end) {
    line(cat("for (", c_type(at(v).dtype), " ", name(v), " = ", begin, "; ", name(v), " < ", end,
             "; ", name(v), "++) {"));
    deeper();
  }

  void variable(Value v) {
    const Instruction& i = at(v);
    if (i.dtype == DType::boolean && i.lanes > 1) mask_of(v) = mask_of(i.args[0]);
    define(v, name(i.args[0]));
  }

  std::string as_stored(Value variable, Value v) {
    const Instruction& i = at(variable);
    return i.dtype == DType::boolean && i.lanes > 1 ? mask(v, mask_of(variable), i.lanes) : name(v);
  }

  // A bool vector as integers of this width.
  std::string mask(Value v, DType want, int lanes) {
    if (mask_of(v) == want) return name(v);
    return cat("__builtin_convertvector(", name(v), ", ", type(want, lanes), ")");
  }

  void elementwise(Value v) {
    const Instruction& i = at(v);
    const auto a = [&](std::size_t k) { return name(i.args[k]); };
    if (i.lanes > 1 && i.dtype == DType::boolean) return bool_vector(v);
    switch (i.op) {
      case Op::neg: return define(v, "-" + a(0));
      case Op::add: return define(v, sum(v));
      case Op::mul: return define(v, cat(a(0), " * ", a(1)));
      case Op::div:
      case Op::tdiv: return define(v, cat(a(0), " / ", a(1)));
      case Op::tmod: return define(v, cat(a(0), " % ", a(1)));
      case Op::and_: return define(v, cat(a(0), " & ", a(1)));
      case Op::or_: return define(v, cat(a(0), " | ", a(1)));
      case Op::xor_: return define(v, cat(a(0), " ^ ", a(1)));
      case Op::shl: return define(v, cat(a(0), " << ", a(1)));
      case Op::shr: return define(v, cat(a(0), " >> ", a(1)));
      case Op::not_: return define(v, cat(i.dtype == DType::boolean ? "!" : "~", a(0)));
      case Op::lt: return define(v, cat(a(0), " < ", a(1)));
      case Op::eq: return define(v, cat(a(0), " == ", a(1)));
      case Op::max:
      case Op::min: return extreme(v);
      case Op::where: return choose(v);
      case Op::sqrt: return lanewise(v, "sqrt");
      case Op::trunc: return lanewise(v, "trunc");
      case Op::cast: return convert(v);
      case Op::bitcast: return reinterpret(v);
      default: throw InternalError(cat("render: C: unexpected ", std::string(name_of(i.op))));
    }
  }

  // A product written in the expression of its sum is fused with it: -ffp-contract=on.
  std::string sum(Value v) {
    const Instruction& i = at(v);
    const auto sides = product_and_other(phase_, i);
    if (!sides) return cat(name(i.args[0]), " + ", name(i.args[1]));
    const auto& factors = at(sides->first).args;
    return cat("(", name(factors[0]), " * ", name(factors[1]), ") + ", name(sides->second));
  }

  // a > b or a is NaN ? a : b
  static std::string extreme_test(const Instruction& i, const std::string& a, const std::string& b,
                                  const char* either) {
    const std::string test = cat(a, i.op == Op::max ? " > " : " < ", b);
    return is_float(i.dtype) ? cat("((", test, ") ", either, " (", a, " != ", a, "))")
                             : cat("(", test, ")");
  }

  void extreme(Value v) {
    const Instruction& i = at(v);
    const std::string a = name(i.args[0]), b = name(i.args[1]);
    if (i.lanes == 1) return define(v, cat(extreme_test(i, a, b, "||"), " ? ", a, " : ", b));
    define(v, blend(extreme_test(i, a, b, "|"), a, b, i.dtype, i.lanes));
  }

  // The bits of a where the mask is set, else of b.
  std::string blend(const std::string& m, const std::string& a, const std::string& b, DType t,
                    int lanes) {
    const std::string bits = type(mask_type(t), lanes);
    return cat("(", type(t, lanes), ")(((", bits, ")", a, " & (", bits, ")", m, ") | ((", bits, ")",
               b, " & ~(", bits, ")", m, "))");
  }

  void choose(Value v) {
    const Instruction& i = at(v);
    const std::string a = name(i.args[1]), b = name(i.args[2]);
    if (at(i.args[0]).lanes == 1) return define(v, cat(name(i.args[0]), " ? ", a, " : ", b));
    define(v, blend(mask(i.args[0], mask_type(i.dtype), i.lanes), a, b, i.dtype, i.lanes));
  }

  void bool_vector(Value v) {
    const Instruction& i = at(v);
    DType& width = mask_of(v);
    if (i.op == Op::lt || i.op == Op::eq) {
      width = mask_type(at(i.args[0]).dtype);
      return define(v, cat(name(i.args[0]), i.op == Op::lt ? " < " : " == ", name(i.args[1])));
    }
    width = mask_of(i.args[i.op == Op::where ? 1 : 0]);
    const auto a = [&](std::size_t k) { return mask(i.args[k], width, i.lanes); };
    switch (i.op) {
      case Op::and_: return define(v, cat(a(0), " & ", a(1)));
      case Op::or_: return define(v, cat(a(0), " | ", a(1)));
      case Op::xor_: return define(v, cat(a(0), " ^ ", a(1)));
      case Op::not_: return define(v, "~" + a(0));
      case Op::where:
        if (at(i.args[0]).lanes == 1)
          return define(v, cat(name(i.args[0]), " ? ", a(1), " : ", a(2)));
        return define(v, cat("(", a(1), " & ", a(0), ") | (", a(2), " & ~", a(0), ")"));
      default:
        throw InternalError(
            cat("render: C: unexpected ", std::string(name_of(i.op)), " of bool vectors"));
    }
  }

  void lanewise(Value v, const char* function) {
    const Instruction& i = at(v);
    const std::string call = cat("__builtin_", function, i.dtype == DType::float32 ? "f" : "");
    if (i.lanes == 1) return define(v, cat(call, "(", name(i.args[0]), ")"));
    std::string all = "{";
    for (int l = 0; l < i.lanes; ++l)
      all += cat(l ? ", " : "", call, "(", name(i.args[0]), "[", l, "])");
    define(v, all + "}");
  }

  void convert(Value v) {
    const Instruction& i = at(v);
    const std::string x = name(i.args[0]);
    if (i.lanes == 1) return define(v, cat("(", c_type(i.dtype), ")", x));
    if (at(i.args[0]).dtype != DType::boolean)
      return define(v, cat("__builtin_convertvector(", x, ", ", type(i.dtype, i.lanes), ")"));
    const std::string ones = cat("(", mask(i.args[0], mask_type(i.dtype), i.lanes), " & 1)");
    define(v, is_float(i.dtype)
                  ? cat("__builtin_convertvector(", ones, ", ", type(i.dtype, i.lanes), ")")
                  : cat("(", type(i.dtype, i.lanes), ")", ones));
  }

  void reinterpret(Value v) {
    const Instruction& i = at(v);
    if (i.lanes > 1) return define(v, cat("(", type(i.dtype, i.lanes), ")", name(i.args[0])));
    line(cat(c_type(i.dtype), " ", name(v), ";"));
    line(cat("__builtin_memcpy(&", name(v), ", &", name(i.args[0]), ", ", size_of(i.dtype), ");"));
  }

  void repeated(Value v, const std::vector<Value>& lanes) {
    const bool flags = at(v).dtype == DType::boolean;
    if (flags) mask_of(v) = DType::int32;
    std::string all = "{";
    for (std::size_t l = 0; l < lanes.size(); ++l)
      all += cat(l ? ", " : "", flags ? "-(int32_t)" : "", name(lanes[l]));
    define(v, all + "}");
  }

  // Halves onto each other until one is left.
  void horizontal(Value v) {
    const Instruction& i = at(v);
    std::vector<std::string> lanes;
    for (int l = 0; l < at(i.args[0]).lanes; ++l)
      lanes.push_back(cat(name(i.args[0]), "[", l, "]"));
    int made = 0;
    for (std::size_t half = lanes.size() / 2; half > 0; half /= 2) {
      for (std::size_t l = 0; l < half; ++l) {
        const std::string x = cat(name(v), "_", made++);
        line(cat(c_type(i.dtype), " ", x, " = ", combined(i, lanes[l], lanes[l + half]), ";"));
        lanes[l] = x;
      }
      lanes.resize(half);
    }
    define(v, lanes[0]);
  }

  static std::string combined(const Instruction& i, const std::string& a, const std::string& b) {
    if (i.dtype == DType::boolean)
      return cat("(", a, " != 0) ",
                 i.op == Op::and_ || i.op == Op::min || i.op == Op::mul ? "&" : "|", " (", b,
                 " != 0)");
    switch (i.op) {
      case Op::add: return cat(a, " + ", b);
      case Op::mul: return cat(a, " * ", b);
      case Op::and_: return cat(a, " & ", b);
      case Op::or_: return cat(a, " | ", b);
      default: return cat(extreme_test(i, a, b, "||"), " ? ", a, " : ", b);
    }
  }

  void shuffle(Value v) {
    const Instruction& i = at(v);
    std::string picks;
    for (std::uint8_t p : i.picks) picks += cat(", ", static_cast<int>(p));
    define(v, cat("__builtin_shufflevector(", name(i.args[0]), ", ", name(i.args[1]), picks, ")"));
  }

  void load(Value v) {
    const Instruction& i = at(v);
    const std::string m = memory(i);
    if (i.lanes == 1) {
      const std::string one = cat(m, "[", name(i.args[0]), "]");
      return define(v, i.args.size() > 1 ? cat(name(i.args[1]), " ? ", one, " : 0") : one);
    }
    const bool flags = i.dtype == DType::boolean;  // bytes 0 or 1 to a mask
    if (flags) mask_of(v) = DType::int8;
    if (i.args.size() > 1 && at(i.args[1]).lanes > 1) {
      std::string each = "{";
      for (int l = 0; l < i.lanes; ++l)
        each += cat(l ? ", " : "", name(i.args[1]), "[", l, "] ? ", flags ? "-" : "", m, "[",
                    name(i.args[0]), " + ", l, "] : 0");
      return define(v, each + "}");
    }
    const std::string t = type(flags ? DType::int8 : i.dtype, i.lanes);
    const std::string all =
        cat(flags ? "-" : "", "*(const ", t, " *)(", m, " + ", name(i.args[0]), ")");
    define(v, i.args.size() > 1 ? cat(name(i.args[1]), " ? ", all, " : (", t, "){0}") : all);
  }

  void store(const Instruction& i) {
    const std::string m = memory(i);
    if (i.lanes == 1) return line(cat(m, "[", name(i.args[0]), "] = ", name(i.args[1]), ";"));
    const bool flags = i.dtype == DType::boolean;
    const std::string value =
        flags ? cat(mask(i.args[1], DType::int8, i.lanes), " & 1") : name(i.args[1]);
    line(cat("*(", type(flags ? DType::int8 : i.dtype, i.lanes), " *)(", m, " + ", name(i.args[0]),
             ") = ", value, ";"));
  }

  const Code& code_;
  const CodePhase& phase_;
  std::string name_, text_, indent_ = "  ";
  std::vector<DType> masks_;  // the width of each bool vector
  std::set<std::pair<DType, int>>* vectors_ = nullptr;
  std::set<int> used_;
};

class CRenderer final : public Renderer {
 public:
  Source render(const Code& code, const Target&) const override {
    Source out = source_of(code);
    std::set<std::pair<DType, int>> vectors;
    std::string functions;
    for (std::size_t i = 0; i < code.phases.size(); ++i) functions += Printer(code, i).run(vectors);
    out.text =
        "typedef signed char int8_t; typedef unsigned char uint8_t;\n"
        "typedef short int16_t; typedef unsigned short uint16_t;\n"
        "typedef int int32_t; typedef unsigned uint32_t;\n"
        "typedef long int64_t; typedef unsigned long uint64_t;\n";
    for (const auto& [t, lanes] : vectors) {
      out.text +=
          cat("typedef ", c_type(t), " ", vector_type(t, lanes), " __attribute__((vector_size(",
              lanes * size_of(t), "), aligned(", size_of(t), "), may_alias));\n");
    }
    out.text += functions;
    return out;
  }
};

}  // namespace

const Renderer& c_renderer() {
  static const CRenderer renderer;
  return renderer;
}

}  // namespace mote
