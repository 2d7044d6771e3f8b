// MOTE_BEAM: what a search needs from the device. Kernels are compiled many at once and run on
// buffers of the sizes that the AST names, filled with the same numbers each time; winners are kept
// on disk by AST, target and compiler, so that the next process only replays them.
#include "opt/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>

#include "base/text.h"
#include "base/trace.h"
#include "engine/launch.h"
#include "ir/printer.h"
#include "mote/error.h"
#include "opt/opt.h"
#include "runtime/disk_cache.h"

namespace mote {
namespace {

constexpr Seconds never = std::numeric_limits<double>::infinity();

// A compiled candidate.
struct Trial {
  std::shared_ptr<Program> program;
  std::vector<std::int64_t> variables, tasks;  // at their upper bounds
};

class Bench {
 public:
  Bench(const Expr& ast, Device& device) : device_(device) {
    std::vector<Expr> slots;
    for (const Expr& e : topological(ast))
      if (e->op == Op::slot) slots.push_back(e);
    std::ranges::sort(slots, {}, [](const Expr& s) { return s->arg; });
    for (const Expr& s : slots) {
      slots_.push_back(s);
      buffers_.push_back(Buffer::make(device, s->arg2 * size_of(s->dtype), "search"));
    }
    for (const Expr& s : ast->src) written_.push_back(static_cast<std::size_t>(s->src[0]->arg));
  }

  std::vector<Seconds> measure(std::span<const Kernel> kernels, Seconds give_up) {
    constexpr int rounds = 5;
    constexpr Seconds longest = 0.4;  // of all rounds after the first
    const std::vector<Trial> trials = compiled(kernels);
    fill();
    std::vector<Seconds> best(trials.size(), never);
    std::vector<bool> runs(trials.size(), true);
    Seconds spent = 0, fastest = give_up / 1.5;
    for (int round = 0; round < rounds && spent < longest; ++round) {
      for (std::size_t i = 0; i < trials.size(); ++i) {
        if (!trials[i].program || !runs[i]) continue;
        if (round == 0) run(trials[i]);  // its pages and caches, untimed
        const Seconds t = run(trials[i]);
        best[i] = std::min(best[i], t);
        fastest = std::min(fastest, t);
        if (round > 0) spent += t;
      }
      for (std::size_t i = 0; i < trials.size(); ++i) runs[i] = best[i] < fastest * 1.3;
    }
    return best;
  }

  // The results of two kernels on equal inputs agree as docs/semantics.md says of two schedules.
  bool agree(const Kernel& a, const Kernel& b) {
    const Kernel both[] = {a, b};
    const std::vector<Trial> trials = compiled(both);
    if (!trials[0].program || !trials[1].program) return false;
    std::vector<std::vector<std::byte>> results[2];
    for (std::size_t i = 0; i < 2; ++i) {
      fill();
      run(trials[i]);
      for (std::size_t slot : written_) {
        auto& bytes = results[i].emplace_back(static_cast<std::size_t>(buffers_[slot]->bytes()));
        buffers_[slot]->read(bytes.data(), 0, buffers_[slot]->bytes());
      }
    }
    for (std::size_t w = 0; w < written_.size(); ++w)
      if (!close(results[0][w], results[1][w], slots_[written_[w]]->dtype)) return false;
    return true;
  }

 private:
  // Alone where one of them is refused, so that it costs itself only.
  std::vector<Trial> compiled(std::span<const Kernel> kernels) {
    std::vector<Trial> out;
    std::vector<Source> sources;
    for (const Kernel& k : kernels) {
      const Code code = linearize(k, device_.target());
      Trial t;
      std::unordered_map<Expr, std::int64_t> bound;
      for (const Expr& v : code.variables) {
        t.variables.push_back(v->hi);
        bound[v] = v->hi;
      }
      for (const CodePhase& p : code.phases) t.tasks.push_back(evaluate(Int(p.tasks), bound));
      sources.push_back(renderer_of(device_).render(code, device_.target()));
      out.push_back(std::move(t));
    }
    try {
      const auto programs = device_.compile_all(sources);
      for (std::size_t i = 0; i < out.size(); ++i) out[i].program = programs[i];
    } catch (const CompileError&) {
      for (std::size_t i = 0; i < out.size(); ++i) out[i].program = compiled_alone(sources[i]);
    }
    return out;
  }

  std::shared_ptr<Program> compiled_alone(const Source& source) {
    try {
      return device_.compile(source);
    } catch (const CompileError& e) {
      if (tracing(3)) trace({3, "search", source.name, cat("search: refused: ", e.what())});
      return nullptr;
    }
  }

  Seconds run(const Trial& t) {
    std::vector<void*> pointers;
    for (const auto& b : buffers_) pointers.push_back(b->data());
    const auto begin = std::chrono::steady_clock::now();
    t.program->run(pointers, t.variables, t.tasks);
    device_.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  // Floats in 0.5..1.5, integers in 0..3.
  void fill() {
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      const DType t = slots_[i]->dtype;
      const auto width = static_cast<std::size_t>(size_of(t));
      std::vector<std::byte> bytes(static_cast<std::size_t>(buffers_[i]->bytes()));
      for (std::size_t at = 0; at < bytes.size(); at += width) {
        const std::uint64_t bits = random();
        const Scalar v =
            is_float(t) ? Scalar(DType::float64, 0.5 + static_cast<double>(bits >> 40) * 0x1p-24)
                        : Scalar(DType::int64, static_cast<std::int64_t>(bits >> 62));
        store_scalar(bytes.data() + at, cast(v, t));
      }
      if (!bytes.empty())
        buffers_[i]->write(bytes.data(), 0, static_cast<std::int64_t>(bytes.size()));
    }
  }

  static bool close(std::span<const std::byte> a, std::span<const std::byte> b, DType t) {
    if (!is_float(t)) return std::ranges::equal(a, b);
    const double within = t == DType::float64   ? 1e-12
                          : t == DType::float32 ? 1e-4
                          : t == DType::float16 ? 2e-3
                                                : 2e-2;
    const auto width = static_cast<std::size_t>(size_of(t));
    for (std::size_t at = 0; at < a.size(); at += width) {
      const double x = load_scalar(a.data() + at, t).as_double(),
                   y = load_scalar(b.data() + at, t).as_double();
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      if (!(std::abs(x - y) <= within * (1 + std::max(std::abs(x), std::abs(y))))) return false;
    }
    return true;
  }

  Device& device_;
  std::vector<Expr> slots_;
  std::vector<std::shared_ptr<Buffer>> buffers_;
  std::vector<std::size_t> written_;
};

std::string key_of(const Expr& ast, const Device& device) {
  const Target& t = device.target();
  return cat("1 ", device.compiler(), "\n", t.renderer, " ", t.arch, " ", t.vector_bytes, " ",
             t.vector_registers, " ", t.l1_bytes, " ", t.l2_bytes, "\n", to_text(ast));
}

std::optional<Kernel> stored(const Kernel& opened, const std::string& key, const Target& target) {
  const auto bytes = cache_get("winner", key);
  if (!bytes) return {};
  const auto words = parse_words({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  if (!words) return {};
  try {
    return replay(opened, *words, target);
  } catch (const InternalError&) {  // of another version of the moves: it is searched anew
    return {};
  }
}

}  // namespace

Kernel searched(const Kernel& opened, const Expr& ast, Device& device, int beam) {
  constexpr std::int64_t most_plain = std::int64_t{1} << 32;  // operations of the plain path
  const Target& target = device.target();
  const std::string key = key_of(ast, device);
  if (auto winner = stored(opened, key, target)) return *winner;
  std::optional<Bench> bench;
  SearchOptions options;
  options.beam = beam;
  options.measure = [&](std::span<const Kernel> kernels, Seconds give_up) {
    return bench->measure(kernels, give_up);
  };
  options.verify = [&](const Kernel& winner) {
    const bool short_enough = estimate(ast).operations <= most_plain;
    return bench->agree(winner, short_enough ? opened : optimize(opened, target));
  };
  Found found;
  try {
    bench.emplace(ast, device);
    found = search(opened, target, options);
  } catch (const MemoryError&) {  // no room for a second set of buffers: nothing is kept
    return optimize(opened, target);
  }
  const std::string words = to_text(found.words);
  cache_put("winner", key, std::as_bytes(std::span(words)));
  if (tracing(1)) {
    char times[64];
    std::snprintf(times, sizeof times, "%.4f -> %.4f ms", found.before * 1e3, found.after * 1e3);
    trace({1, "search", opened.name,
           cat("search ", opened.name, ": ", times, ", ", found.measured, " measured; ",
               words.empty() ? "the heuristic's" : words)});
  }
  return replay(opened, found.words, target);
}

}  // namespace mote
