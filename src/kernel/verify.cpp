// Proves that Code touches nothing outside of its memories. Each integer value becomes an index
// expression again, over the open loops' ranges and unknowns (what is loaded); then the symbolic
// algebra bounds the index of each access, assuming the conditions under which it runs.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "ir/bounds.h"
#include "kernel/code.h"
#include "mote/error.h"
#include "symbolic/int.h"

namespace mote {
namespace {

class Verifier {
 public:
  Verifier(const Code& code, const CodePhase& phase)
      : code_(code), phase_(phase), known_(phase.body.size()) {}

  void run() {
    for (number_ = 0; number_ < phase_.body.size(); ++number_) {
      for (Value a : at().args)
        if (a < 0 || static_cast<std::size_t>(a) >= number_)
          illegal("it uses a value that is not made yet");
      check(at());
    }
    if (!open_.empty())
      throw InternalError(
          cat("verify: ", code_.name, ": ", open_.size(), " loops or branches are not closed"));
  }

 private:
  const Instruction& at() const { return phase_.body[number_]; }
  const Instruction& made_by(Value v) const { return phase_.body[static_cast<std::size_t>(v)]; }
  const Expr& known(Value v) const { return known_[static_cast<std::size_t>(v)]; }

  [[noreturn]] void illegal(const std::string& why) const {
    throw InternalError(
        cat("verify: ", code_.name, ": ", why, ": ", to_text(code_, at(), number_)));
  }

  void check(const Instruction& i) {
    switch (i.kind) {
      case Ins::constant:
        if (is_integer(i.dtype)) remember(index_constant(i.imm.as_int()));
        if (i.dtype == DType::boolean) remember(i.imm.as_bool() ? always() : never());
        break;
      case Ins::variable: remember(code_.variables.at(static_cast<std::size_t>(i.imm_int))); break;
      case Ins::loop: open(known(i.args[1])); break;
      case Ins::chunk: open(phase_.tasks); break;
      case Ins::branch: open_.push_back(condition(i.args[0])); break;
      case Ins::otherwise:
        if (open_.empty()) illegal("it closes nothing");
        open_.back() = negate(open_.back());
        break;
      case Ins::end:
        if (open_.empty()) illegal("it closes nothing");
        open_.pop_back();
        counters_.erase(static_cast<int>(open_.size()));
        break;
      case Ins::elementwise: elementwise(i); break;
      case Ins::load:
      case Ins::store: access(i); break;
      case Ins::get:
      case Ins::set:
        if (made_by(i.args[0]).kind != Ins::declare) illegal("it names no variable");
        break;
      default: break;
    }
    if (!known_[number_] && i.lanes == 1 && is_integer(i.dtype)) remember(unknown(i.dtype));
  }

  void remember(const Expr& e) { known_[number_] = e; }

  Expr unknown(DType t) const {
    const Bounds b = whole(t);
    return variable(cat("~", number_), b.lo, b.hi);
  }

  // Loops that are open at once have ids of their own: their depth.
  void open(const Expr& extent) {
    const Expr counter = range(static_cast<int>(open_.size()), extent);
    remember(counter);
    open_.push_back(always());
    counters_[static_cast<int>(open_.size()) - 1] = counter;
  }

  Expr condition(Value v) const { return known(v) ? known(v) : variable_condition(v); }

  static Expr variable_condition(Value v) {  // that nothing is known of
    return equal(Int(variable(cat("~", v), 0, 1)), 1);
  }

  void elementwise(const Instruction& i) {
    for (std::size_t a = 0; a < i.args.size(); ++a)
      if (made_by(i.args[a]).lanes != i.lanes && !(i.op == Op::where && a == 0))
        illegal("the lanes differ");
    if (i.lanes > 1 || is_float(i.dtype)) return;
    const Expr e = rebuilt(i);
    if (!e) return;
    const Bounds all = whole(i.dtype);
    if (i.dtype == DType::boolean || (e->lo >= all.lo && e->hi <= all.hi)) remember(e);
  }

  // The operation on index expressions; null where there is none.
  Expr rebuilt(const Instruction& i) const {
    std::vector<Expr> s;
    for (Value a : i.args) {
      if (!known(a) || is_float(made_by(a).dtype)) return {};
      s.push_back(known(a));
    }
    const bool flags = made_by(i.args.back()).dtype == DType::boolean;
    const auto a = [&](std::size_t k) { return Int(s[k]); };
    switch (i.op) {
      case Op::and_: return flags ? all_of(s[0], s[1]) : Expr();
      case Op::or_: return flags ? any_of(s[0], s[1]) : Expr();
      case Op::not_: return flags ? negate(s[0]) : Expr();
      case Op::where: return flags ? Expr() : select(s[0], a(1), a(2)).expr();
      default: break;
    }
    if (flags) return {};
    switch (i.op) {
      case Op::add: return (a(0) + a(1)).expr();
      case Op::mul: return (a(0) * a(1)).expr();
      case Op::neg: return (-a(0)).expr();
      case Op::min: return min(a(0), a(1)).expr();
      case Op::max: return max(a(0), a(1)).expr();
      case Op::lt: return less(a(0), a(1));
      case Op::eq: return equal(a(0), a(1));
      case Op::cast: return s[0];  // where it fits
      case Op::tdiv:
      case Op::tmod: return rebuild(intern(i.op, DType::index, s), s);
      default: return {};
    }
  }

  void access(const Instruction& i) {
    const Memory& m = code_.memories.at(static_cast<std::size_t>(i.memory));
    if (m.dtype != i.dtype) illegal("the dtype is not the memory's");
    Expr gate = always();
    for (const Expr& c : open_) gate = all_of(gate, c);
    if (i.kind == Ins::load && i.args.size() > 1) gate = all_of(gate, condition(i.args[1]));
    if (gate == never()) return;
    const Expr index = known(i.args[0]);
    const std::int64_t last = m.elements - i.lanes;
    if (proven(index, gate, last)) return;
    Expr apart = index, gate_apart = gate;
    take_apart(apart, gate_apart);
    if (proven(apart, gate_apart, last)) return;
    illegal(cat("an access of ", m.name, " (", m.elements, " elements) is not proven in bounds",
                witness(index, gate, last)));
  }

  // Extents and conditions bound each other, in either order.
  static bool proven(const Expr& index, const Expr& gate, std::int64_t last) {
    const std::int64_t least = std::max(bounded_by(extreme(index, false), gate)->lo,
                                        extreme(bounded_by(index, gate), false)->lo),
                       most = std::min(bounded_by(extreme(index, true), gate)->hi,
                                       extreme(bounded_by(index, gate), true)->hi);
    return least >= 0 && most <= last;
  }

  // A fused loop p of which p // c and p % c are asked for is q*c + s again: then both are simple.
  static void take_apart(Expr& index, Expr& gate) {
    for (int id = RangeSet::first_bound; id + 1 < RangeSet::capacity; id += 2) {
      const Expr both[] = {index, gate};
      const auto all = topological(both);
      const auto part = std::ranges::find_if(all, [](const Expr& e) {
        return (e->op == Op::idiv || e->op == Op::mod) && e->src[0]->op == Op::range &&
               is_constant(e->src[1]) && e->src[1]->arg > 1;
      });
      if (part == all.end()) return;
      const Expr p = (*part)->src[0];
      const std::int64_t c = (*part)->src[1]->arg;
      const Int parts = Int(range(id, p->hi / c + 1)) * c + Int(range(id + 1, c));
      index = substitute(index, {{p, parts.expr()}});
      gate = substitute(gate, {{p, parts.expr()}});
    }
  }

  // The index with each range, whose extent depends on others, at the end where it is greatest or
  // least: then the extents cancel (i*6 + j with j < n - i*6).
  static Expr extreme(Expr e, bool greatest) {
    std::vector<Expr> ragged;
    for (const Expr& r : topological(e))
      if (r->op == Op::range && !is_constant(r->src[0])) ragged.push_back(r);
    std::ranges::sort(ragged, std::greater<>(), [](const Expr& r) { return r->arg; });
    for (const Expr& r : ragged) {
      const Int first(substitute(e, {{r, index_constant(0)}})),
          step = Int(substitute(e, {{r, index_constant(1)}})) - first;
      if (!step.is_constant() || step.is(0) || !(first + step * Int(r) == Int(e))) continue;
      if ((step.value() > 0) != greatest) return extreme(first.expr(), greatest);
      // An extent min(a, b): each alone is a bound.
      const Expr& extent = r->src[0];
      Expr best;
      for (const Expr& bound : extent->op == Op::min
                                   ? std::vector<Expr>(extent->src.begin(), extent->src.end())
                                   : std::vector<Expr>{extent}) {
        const Expr end = extreme((first + step * (Int(bound) - 1)).expr(), greatest);
        if (!best || (greatest ? end->hi < best->hi : end->lo > best->lo)) best = end;
      }
      return best;
    }
    return e;
  }

  // Counters where the gate holds and the index goes too far: each range tries its ends and some
  // places in between.
  std::string witness(const Expr& index, const Expr& gate, std::int64_t last) const {
    std::vector<std::pair<Expr, std::int64_t>> at;  // a range and its value
    std::string found;
    const std::function<bool()> search = [&] {
      if (at.size() < counters_.size()) {
        const Expr& r =
            std::next(counters_.begin(), static_cast<std::ptrdiff_t>(at.size()))->second;
        const bool counts =
            index->free.has(static_cast<int>(r->arg)) || gate->free.has(static_cast<int>(r->arg));
        std::set<std::int64_t> places{0};
        Bindings outer;
        for (const auto& [range, place] : at) outer.emplace(range, index_constant(place));
        const Expr extent = substitute(r->src[0], outer);
        if (!is_constant(extent) || extent->arg < 1) return false;
        const std::int64_t last_place = extent->arg - 1;
        for (std::int64_t p = 0; counts && p < 6; ++p)
          for (std::int64_t place : {p, last_place - p, last_place * p / 5})
            if (place >= 0 && place <= last_place) places.insert(place);
        for (std::int64_t place : places) {
          at.emplace_back(r, place);
          if (search()) return true;
          at.pop_back();
        }
        return false;
      }
      Bindings bindings;
      for (auto r = at.rbegin(); r != at.rend(); ++r)  // extents of inner ones name outer ones
        bindings.emplace(r->first, index_constant(r->second));
      const Expr where = substitute(index, bindings);
      if (!is_constant(where) || (where->arg >= 0 && where->arg <= last) ||
          substitute(gate, bindings) != always())
        return false;
      for (const auto& [r, place] : at)
        found += cat(found.empty() ? "; with loop " : ", loop ", r->arg, " at ", place);
      found += cat(found.empty() ? "; it goes to " : " it goes to ", where->arg);
      return true;
    };
    if (counters_.size() <= 4) search();
    return found;
  }

  const Code& code_;
  const CodePhase& phase_;
  std::vector<Expr> known_;       // of each integer or bool value
  std::vector<Expr> open_;        // the conditions of what is open; of loops: true
  std::map<int, Expr> counters_;  // of the open loops, by depth
  std::size_t number_ = 0;
};

}  // namespace

void verify(const Code& code) {
  for (const CodePhase& phase : code.phases) Verifier(code, phase).run();
}

}  // namespace mote
