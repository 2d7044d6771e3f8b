// Proves that Code touches nothing outside of its memories. Each integer value becomes an index
// expression again, over the open loops' ranges and unknowns (what is loaded); then the symbolic
// algebra bounds the index of each access, assuming the conditions under which it runs.
#include <algorithm>
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
  // What lies in the tables, by memory: the bounds of all that was stored so far.
  using Contents = std::map<int, Bounds>;

  Verifier(const Code& code, const CodePhase& phase, Contents& contents)
      : code_(code),
        phase_(phase),
        contents_(contents),
        known_(phase.body.size()),
        made_in_(phase.body.size()) {}

  void run() {
    for (number_ = 0; number_ < phase_.body.size(); ++number_) {
      for (Value a : at().args) {
        if (a < 0 || static_cast<std::size_t>(a) >= number_)
          illegal("it uses a value that is not made yet");
        if (std::ranges::find(blocks_, made_in_[static_cast<std::size_t>(a)]) == blocks_.end())
          illegal("it uses a value of a block that is closed");
      }
      check_types(at());
      check(at());
      made_in_[number_] = blocks_.back();  // a counter lives in its loop
    }
    if (!open_.empty())
      throw InternalError(
          cat("verify: ", code_.name, ": ", open_.size(), " loops or branches are not closed"));
  }

 private:
  const Instruction& at() const { return phase_.body[number_]; }
  const Instruction& made_by(Value v) const { return phase_.body[static_cast<std::size_t>(v)]; }
  // Lane l of an integer or bool value as an index expression or condition; null for floats.
  Expr known(Value v, std::size_t l = 0) const {
    const auto& lanes = known_[static_cast<std::size_t>(v)];
    return l < lanes.size() ? lanes[l] : Expr();
  }

  [[noreturn]] void illegal(const std::string& why) const {
    throw InternalError(
        cat("verify: ", code_.name, ": ", why, ": ", to_text(code_, at(), number_)));
  }

  // Operands have the dtype and the lanes that the instruction says.
  void check_types(const Instruction& i) const {
    const auto expect = [&](std::size_t a, DType t, int lanes) {
      if (made_by(i.args[a]).lanes != lanes) illegal("the lanes differ");
      if (made_by(i.args[a]).dtype != t) illegal("the dtypes differ");
    };
    if (i.kind == Ins::branch) expect(0, DType::boolean, 1);
    if (i.kind == Ins::store) expect(1, i.dtype, i.lanes);
    if (i.kind == Ins::load && i.args.size() > 1)
      expect(1, DType::boolean, made_by(i.args[1]).lanes == 1 ? 1 : i.lanes);
    if (i.kind == Ins::set) expect(1, made_by(i.args[0]).dtype, made_by(i.args[0]).lanes);
    if (i.kind != Ins::elementwise) return;
    const bool compares = i.op == Op::lt || i.op == Op::eq,
               converts = i.op == Op::cast || i.op == Op::bitcast;
    for (std::size_t a = 0; a < i.args.size(); ++a) {
      const bool condition = i.op == Op::where && a == 0;
      const Instruction& operand = made_by(i.args[a]);
      expect(a,
             condition  ? DType::boolean
             : compares ? made_by(i.args[0]).dtype
             : converts ? operand.dtype
                        : i.dtype,
             condition && operand.lanes == 1 ? 1 : i.lanes);
    }
  }

  void check(const Instruction& i) {
    switch (i.kind) {
      case Ins::constant:
        if (is_integer(i.dtype)) remember(index_constant(i.imm.as_int()));
        if (i.dtype == DType::boolean) remember(i.imm.as_bool() ? always() : never());
        break;
      case Ins::variable: remember(code_.variables.at(static_cast<std::size_t>(i.imm_int))); break;
      case Ins::loop: open(known(i.args[0]), known(i.args[1])); break;
      case Ins::chunk: open(index_constant(0), phase_.tasks); break;
      case Ins::branch:
        open_.push_back(known(i.args[0]));
        blocks_.push_back(number_ + 1);
        break;
      case Ins::otherwise:
        if (open_.empty()) illegal("it closes nothing");
        open_.back() = negate(open_.back());
        blocks_.back() = number_ + 1;
        break;
      case Ins::end:
        if (open_.empty()) illegal("it closes nothing");
        open_.pop_back();
        blocks_.pop_back();
        counters_.erase(static_cast<int>(open_.size()));
        break;
      case Ins::elementwise: elementwise(i); break;
      case Ins::broadcast:
        for (int l = 0; l < i.lanes; ++l) remember(known(i.args[0]));
        break;
      case Ins::build:
        for (Value a : i.args) remember(known(a));
        break;
      case Ins::extract: remember(known(i.args[0], static_cast<std::size_t>(i.imm_int))); break;
      case Ins::load: access(i); break;
      case Ins::store:
        access(i);
        note_contents(i);
        break;
      case Ins::declare:
        variables_[static_cast<Value>(number_)] = {open_.size(), of_value(i.args[0])};
        break;
      case Ins::get:
      case Ins::set:
        if (made_by(i.args[0]).kind != Ins::declare) illegal("it names no variable");
        if (i.kind == Ins::set) note_set(i.args[0], i.args[1]);
        break;
      default: break;
    }
    // What nothing is known of, such as what was loaded, has a name.
    auto& lanes = known_[number_];
    if (!is_integer(i.dtype) && i.dtype != DType::boolean) return lanes.clear();
    lanes.resize(i.lanes);
    Bounds bounds = whole(i.dtype);
    if (const auto table = contents_.find(i.memory);
        i.kind == Ins::load && table != contents_.end())
      bounds = table->second;
    if (i.kind == Ins::get && open_.size() == variables_.at(i.args[0]).first)
      bounds = variables_.at(i.args[0]).second;  // the loops that set it are behind
    for (std::size_t l = 0; l < lanes.size(); ++l)
      if (!lanes[l]) lanes[l] = unknown(i.dtype, bounds, l);
  }

  Bounds of_value(Value v) const {
    Bounds all = whole(made_by(v).dtype);
    const auto& lanes = known_[static_cast<std::size_t>(v)];
    for (std::size_t l = 0; l < lanes.size(); ++l)
      all = l == 0 ? Bounds{lanes[0]->lo, lanes[0]->hi} : hull(all, {lanes[l]->lo, lanes[l]->hi});
    return all;
  }

  static Bounds hull(const Bounds& a, const Bounds& b) {
    return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)};
  }

  // The greatest or least of what it was and a value lies between them; else nothing is known.
  void note_set(Value variable, Value v) {
    Bounds& have = variables_.at(variable).second;
    const Instruction& i = made_by(v);
    const auto is_old = [&](Value a) {
      return made_by(a).kind == Ins::get && made_by(a).args[0] == variable;
    };
    if (i.kind == Ins::elementwise && (i.op == Op::min || i.op == Op::max) &&
        (is_old(i.args[0]) || is_old(i.args[1])))
      have = hull(have, of_value(i.args[is_old(i.args[0]) ? 1 : 0]));
    else have = whole(made_by(variable).dtype);
  }

  // A table is filled before it is read, so its contents are known by then.
  void note_contents(const Instruction& i) {
    if (code_.memories.at(static_cast<std::size_t>(i.memory)).space == Space::slot) return;
    const auto [at, first] = contents_.try_emplace(i.memory, of_value(i.args[1]));
    if (!first) at->second = hull(at->second, of_value(i.args[1]));
  }

  void remember(const Expr& e) { known_[number_].push_back(e); }

  Expr unknown(DType t, const Bounds& b, std::size_t lane) const {
    const Expr v = variable(cat("~", number_, ".", lane), b.lo, b.hi);
    return t == DType::boolean ? equal(Int(v), 1) : v;
  }

  // Loops that are open at once have ids of their own: their depth.
  void open(const Expr& begin, const Expr& end) {
    const Expr counter =
        range(static_cast<int>(open_.size()), (Int(end) - Int(begin)).expr());  // steps from begin
    remember((Int(counter) + Int(begin)).expr());
    open_.push_back(always());
    blocks_.push_back(number_ + 1);
    counters_[static_cast<int>(open_.size()) - 1] = counter;
  }

  void elementwise(const Instruction& i) {
    if (is_float(i.dtype)) return;
    const Bounds all = whole(i.dtype);
    for (std::size_t l = 0; l < i.lanes; ++l) {
      const Expr e = rebuilt(i, l);
      const bool fits = e && (i.dtype == DType::boolean || (e->lo >= all.lo && e->hi <= all.hi));
      remember(fits ? e : Expr());
    }
  }

  // The operation on index expressions; null where there is none.
  Expr rebuilt(const Instruction& i, std::size_t lane) const {
    std::vector<Expr> s;
    for (Value a : i.args) {
      s.push_back(known(a, made_by(a).lanes == 1 ? 0 : lane));
      if (!s.back()) return {};
    }
    const bool flags = made_by(i.args.back()).dtype == DType::boolean;
    const auto a = [&](std::size_t k) { return Int(s[k]); };
    switch (i.op) {
      case Op::and_: return flags ? all_of(s[0], s[1]) : Expr();
      case Op::or_: return flags ? any_of(s[0], s[1]) : Expr();
      case Op::not_: return flags ? negate(s[0]) : Expr();
      case Op::cast: return flags ? select(s[0], 1, 0).expr() : s[0];  // where it fits
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
      case Op::tdiv:
      case Op::tmod:
      case Op::shl:
      case Op::shr:
      case Op::and_:
      case Op::or_:
      case Op::xor_: return rebuild(intern(i.op, DType::index, s), s);
      default: return {};
    }
  }

  void access(const Instruction& i) {
    if (i.memory < 0 || i.memory >= std::ssize(code_.memories))
      throw InternalError(cat("verify: ", code_.name, ": %", number_, " names no memory"));
    const Memory& m = code_.memories[static_cast<std::size_t>(i.memory)];
    if (m.dtype != i.dtype) illegal("the dtype is not the memory's");
    Expr gate = always();
    for (const Expr& c : open_) gate = all_of(gate, c);
    const Int index = Int(known(i.args[0]));
    if (i.kind == Ins::store || i.args.size() == 1)
      return prove(index, gate, m, m.elements - i.lanes);
    if (made_by(i.args[1]).lanes == 1)
      return prove(index, all_of(gate, known(i.args[1])), m, m.elements - i.lanes);
    for (int l = 0; l < i.lanes; ++l)
      prove(index + l, all_of(gate, known(i.args[1], static_cast<std::size_t>(l))), m,
            m.elements - 1);
  }

  // Where the gate holds, the index is in 0..last.
  void prove(const Int& at, const Expr& gate, const Memory& m, std::int64_t last) const {
    if (gate == never()) return;
    const Expr index = at.expr();
    if (proven(index, gate, last)) return;
    Expr apart = index, gate_apart = gate;
    take_apart(apart, gate_apart);
    if (proven(apart, gate_apart, last)) return;
    const Search search(index, gate, last, counters_);
    if (search.is_proof()) return;
    illegal(cat("an access of ", m.name, " (", m.elements, " elements) is not proven in bounds",
                search.witness()));
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

  // Goes through the counters and Variables: all of their values where those are few, which is a
  // proof as well, else their ends and some places in between.
  class Search {
   public:
    Search(const Expr& index, const Expr& gate, std::int64_t last,
           const std::map<int, Expr>& counters)
        : index_(index), gate_(gate), last_(last) {
      std::vector<Expr> all{index, gate};
      for (const auto& [id, r] : counters)
        if (index->free.has(id) || gate->free.has(id)) all.push_back(r);
      for (const Expr& e : topological(all))  // what was loaded has a name that begins with ~
        if (e->op == Op::variable && e->text[0] != '~') places_.push_back(e);
      places_.insert(places_.end(), all.begin() + 2, all.end());
      double points = 1;
      for (const Expr& p : places_)
        points *= static_cast<double>(p->hi) - static_cast<double>(p->lo) + 1;
      all_ = points <= 4096;
      if (all_ || places_.size() <= 4) next();
    }
    bool is_proof() const { return all_ && witness_.empty(); }
    const std::string& witness() const { return witness_; }

   private:
    void next() {
      if (!witness_.empty()) return;
      Bindings here;
      for (auto r = at_.rbegin(); r != at_.rend(); ++r)  // extents of inner ones name outer ones
        here.emplace(places_[static_cast<std::size_t>(at_.rend() - r) - 1], index_constant(*r));
      if (at_.size() == places_.size()) return look(here);
      const Expr& place = places_[at_.size()];
      const bool is_counter = place->op == Op::range;
      const Expr extent = is_counter ? substitute(place->src[0], here) : Expr();
      if (is_counter && !is_constant(extent)) {
        all_ = false;
        return;
      }
      const std::int64_t least = is_counter ? 0 : place->lo,
                         most = is_counter ? extent->arg - 1 : place->hi;
      std::set<std::int64_t> values;
      for (std::int64_t p = 0; p < (all_ ? most - least + 1 : 6); ++p)
        for (std::int64_t v : {least + p, most - p, least + (most - least) / 5 * p})
          if (v >= least && v <= most) values.insert(v);
      for (std::int64_t v : values) {
        at_.push_back(v);
        next();
        at_.pop_back();
      }
    }

    void look(const Bindings& here) {
      const Expr gate = substitute(gate_, here), place = substitute(index_, here);
      if (gate == never()) return;
      if (is_constant(place) && place->arg >= 0 && place->arg <= last_) return;
      all_ = false;
      if (gate != always() || !is_constant(place)) return;
      for (std::size_t i = 0; i < at_.size(); ++i) {
        const Expr& p = places_[i];
        witness_ +=
            cat(i ? ", " : "; with ",
                p->op == Op::range ? cat("loop ", p->arg) : std::string(p->text), " at ", at_[i]);
      }
      witness_ += cat(at_.empty() ? "; it goes to " : " it goes to ", place->arg);
    }

    Expr index_, gate_;
    std::int64_t last_;
    std::vector<Expr> places_;  // Variables, then counters, outermost first
    std::vector<std::int64_t> at_;
    bool all_ = false;
    std::string witness_;
  };

  const Code& code_;
  const CodePhase& phase_;
  Contents& contents_;
  std::map<Value, std::pair<std::size_t, Bounds>> variables_;  // depth of declare; what it may hold
  std::vector<std::vector<Expr>> known_;  // of each integer or bool value, by lane
  std::vector<std::size_t> made_in_;      // the block of each value
  std::vector<std::size_t> blocks_{0};    // those that are open, by the number of what begins them
  std::vector<Expr> open_;                // the conditions of what is open; of loops: true
  std::map<int, Expr> counters_;          // of the open loops, by depth
  std::size_t number_ = 0;
};

}  // namespace

void verify(const Code& code) {
  Verifier::Contents contents;
  for (const CodePhase& phase : code.phases) Verifier(code, phase, contents).run();
}

}  // namespace mote
