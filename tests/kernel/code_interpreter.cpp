#include "code_interpreter.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <unordered_map>

#include "base/text.h"
#include "mote/error.h"
#include "symbolic/int.h"

namespace mote::testing {
namespace {

using Lanes = std::vector<Scalar>;

class Machine {
 public:
  Machine(const Code& code, const CodePhase& phase, std::span<void* const> slots, char* shared,
          char* scratch, const RunOptions& options)
      : code_(code),
        phase_(phase),
        slots_(slots),
        shared_(shared),
        scratch_(scratch),
        options_(options),
        values_(phase.body.size()),
        match_(phase.body.size()) {
    std::vector<std::size_t> open;
    for (std::size_t n = 0; n < phase.body.size(); ++n) {
      const Ins kind = phase.body[n].kind;
      if (kind == Ins::otherwise) match_[open.back()] = n;
      if (kind == Ins::end || kind == Ins::otherwise) {
        match_[n] = open.back();
        if (kind == Ins::end && match_[open.back()] == 0) match_[open.back()] = n;
        if (kind == Ins::end) {
          end_of_.emplace_back(open.back(), n);
          open.pop_back();
        }
      }
      if (kind == Ins::loop || kind == Ins::chunk || kind == Ins::branch) open.push_back(n);
    }
  }

  void run(std::int64_t begin, std::int64_t end) {
    begin_ = begin;
    end_ = end;
    for (std::size_t n = 0; n < phase_.body.size();) n = step(n);
  }

 private:
  const Instruction& at(std::size_t n) const { return phase_.body[n]; }
  std::size_t end_of(std::size_t n) const {
    return std::ranges::find(end_of_, n, &std::pair<std::size_t, std::size_t>::first)->second;
  }
  const Lanes& value(Value v) const { return values_[static_cast<std::size_t>(v)]; }
  std::int64_t integer(Value v) const { return value(v)[0].as_int(); }

  // Runs instruction n and says which is next.
  std::size_t step(std::size_t n) {
    const Instruction& i = at(n);
    Lanes& out = values_[n];
    switch (i.kind) {
      case Ins::loop:
      case Ins::chunk: {
        const std::int64_t first = i.kind == Ins::chunk ? begin_ : integer(i.args[0]);
        if (first >= limit(i)) return end_of(n) + 1;
        out = {Scalar(i.dtype, first)};
        return n + 1;
      }
      case Ins::branch: {
        if (value(i.args[0])[0].as_bool()) return n + 1;
        return match_[n] + 1;
      }
      case Ins::otherwise: return end_of(match_[n]) + 1;
      case Ins::end: {
        const std::size_t begun = match_[n];
        if (at(begun).kind == Ins::branch) return n + 1;
        const std::int64_t next = values_[begun][0].as_int() + 1;
        if (next >= limit(at(begun))) return n + 1;
        values_[begun] = {Scalar(at(begun).dtype, next)};
        return begun + 1;
      }
      case Ins::store: store(n); return n + 1;
      case Ins::set: values_[static_cast<std::size_t>(i.args[0])] = value(i.args[1]); return n + 1;
      case Ins::prefetch: return n + 1;
      default: out = made(n); return n + 1;
    }
  }

  std::int64_t limit(const Instruction& i) const {
    return i.kind == Ins::chunk ? end_ : integer(i.args[1]);
  }

  Lanes made(std::size_t n) {
    const Instruction& i = at(n);
    switch (i.kind) {
      case Ins::constant: return {i.imm};
      case Ins::variable:
        return {Scalar(i.dtype, options_.variables.at(static_cast<std::size_t>(i.imm_int)))};
      case Ins::elementwise: return elementwise(i);
      case Ins::broadcast: return Lanes(i.lanes, value(i.args[0])[0]);
      case Ins::extract: return {value(i.args[0])[static_cast<std::size_t>(i.imm_int)]};
      case Ins::build: {
        Lanes out;
        for (Value a : i.args) out.push_back(value(a)[0]);
        return out;
      }
      case Ins::horizontal: return horizontal(i);
      case Ins::shuffle: {
        Lanes both = value(i.args[0]), out;
        both.insert(both.end(), value(i.args[1]).begin(), value(i.args[1]).end());
        for (std::uint8_t p : i.picks) out.push_back(both[p]);
        return out;
      }
      case Ins::load: return load(n);
      case Ins::declare:
      case Ins::get: return value(i.args[0]);
      default: throw InternalError("interpret: an instruction that has no value");
    }
  }

  Lanes elementwise(const Instruction& i) const {
    Lanes out;
    for (std::size_t l = 0; l < i.lanes; ++l) {
      Lanes sources;
      for (Value a : i.args) sources.push_back(value(a)[value(a).size() == 1 ? 0 : l]);
      out.push_back(evaluate(i.op, i.dtype, sources));
    }
    return out;
  }

  Lanes horizontal(const Instruction& i) const {
    Lanes x = value(i.args[0]);
    for (std::size_t half = x.size() / 2; half > 0; half /= 2) {
      for (std::size_t l = 0; l < half; ++l)
        x[l] = evaluate(i.op, i.dtype, std::vector<Scalar>{x[l], x[l + half]});
      x.resize(half);
    }
    return x;
  }

  char* element(std::size_t n, std::int64_t index, int lanes) {
    const Instruction& i = at(n);
    const Memory& m = code_.memories.at(static_cast<std::size_t>(i.memory));
    if (index < 0 || index + lanes > m.elements)
      throw InternalError(cat("interpret: ", code_.name, ": instruction %", n, " touches ", index,
                              "..", index + lanes - 1, " of ", m.name, ", which has ", m.elements,
                              " elements"));
    char* base = m.space == Space::shared ? shared_ + m.number
                 : m.space == Space::scratch
                     ? scratch_ + m.number
                     : static_cast<char*>(slots_[static_cast<std::size_t>(m.number)]);
    return base + index * size_of(m.dtype);
  }

  Lanes load(std::size_t n) {
    const Instruction& i = at(n);
    if (i.args.size() > 1 && value(i.args[1]).size() > 1) return masked_load(n);
    if (i.args.size() > 1 && !value(i.args[1])[0].as_bool())
      return Lanes(i.lanes, Scalar(i.dtype, 0));
    const char* from = element(n, integer(i.args[0]), i.lanes);
    Lanes out;
    for (int l = 0; l < i.lanes; ++l)
      out.push_back(load_scalar(from + l * size_of(i.dtype), i.dtype));
    return out;
  }

  Lanes masked_load(std::size_t n) {
    const Instruction& i = at(n);
    Lanes out(i.lanes, Scalar(i.dtype, 0));
    for (std::size_t l = 0; l < i.lanes; ++l)
      if (value(i.args[1])[l].as_bool())
        out[l] =
            load_scalar(element(n, integer(i.args[0]) + static_cast<std::int64_t>(l), 1), i.dtype);
    return out;
  }

  void store(std::size_t n) {
    const Instruction& i = at(n);
    char* to = element(n, integer(i.args[0]), i.lanes);
    for (int l = 0; l < i.lanes; ++l)
      store_scalar(to + l * size_of(i.dtype), value(i.args[1])[static_cast<std::size_t>(l)]);
  }

  const Code& code_;
  const CodePhase& phase_;
  std::span<void* const> slots_;
  char *shared_, *scratch_;
  const RunOptions& options_;
  std::vector<Lanes> values_;
  std::vector<std::size_t> match_;  // of a branch: its otherwise or end; of those: the opening
  std::vector<std::pair<std::size_t, std::size_t>> end_of_;
  std::int64_t begin_ = 0, end_ = 0;
};

}  // namespace

void interpret(const Code& code, std::span<void* const> slots, const RunOptions& options) {
  std::mt19937_64 random(options.seed);
  std::vector<char> shared(static_cast<std::size_t>(code.shared_bytes), '\xff'),
      scratch(static_cast<std::size_t>(code.scratch_bytes), '\xff');
  std::unordered_map<Expr, std::int64_t> bound;
  for (std::size_t i = 0; i < code.variables.size(); ++i)
    bound[code.variables[i]] = options.variables.at(i);
  for (const CodePhase& phase : code.phases) {
    const std::int64_t tasks = evaluate(Int(phase.tasks), bound),
                       chunk = options.chunk ? options.chunk : std::max<std::int64_t>(tasks, 1);
    std::vector<std::int64_t> begins;
    for (std::int64_t b = 0; b < tasks; b += chunk) begins.push_back(b);
    for (std::size_t i = 0, n = begins.size(); options.repeated && i < n; ++i)
      if (random() % 4 == 0) begins.push_back(begins[i]);
    if (options.shuffled) std::ranges::shuffle(begins, random);
    for (std::int64_t b : begins) {
      if (options.shuffled) std::ranges::fill(scratch, '\xff');
      Machine(code, phase, slots, shared.data(), scratch.data(), options)
          .run(b, std::min(b + chunk, tasks));
    }
  }
}

}  // namespace mote::testing
