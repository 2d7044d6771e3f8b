// AST -> Kernel -> Code -> text -> Program, in the order of the calls in `prepare`.
#include <chrono>
#include <mutex>
#include <unordered_map>

#include "base/flags.h"
#include "base/text.h"
#include "base/trace.h"
#include "engine/launch.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "kernel/kernel.h"
#include "opt/opt.h"
#include "schedule/cache.h"

namespace mote {
namespace {

struct Key {
  Expr ast;
  const Device* device;
  int beam;  // of the search; 0: the heuristic alone, -1: the plain path
  bool operator==(const Key&) const = default;
};

struct KeyHash {
  std::size_t operator()(const Key& k) const {
    return std::hash<Expr>()(k.ast) * 31 + std::hash<const void*>()(k.device) +
           static_cast<std::size_t>(k.beam);
  }
};

struct KernelCache {
  std::mutex mutex;
  std::unordered_map<Key, std::shared_ptr<const CompiledKernel>, KeyHash> kernels;
};

KernelCache& cache() {
  static KernelCache* const all = new KernelCache;
  return *all;
}

struct Prepared {
  std::shared_ptr<CompiledKernel> kernel;
  Source source;
};

std::vector<int> written_slots(const Expr& ast) {
  std::vector<int> slots;
  for (const Expr& store : ast->src) slots.push_back(static_cast<int>(store->src[0]->arg));
  return slots;
}

// The passes of one kernel, in order.
Prepared prepare(const Expr& ast, Device& device, int beam) {
  const Target& target = device.target();
  const bool checked = flag_on("MOTE_VERIFY");
  if (tracing(5)) trace({5, "ast", "", to_text(ast)});
  if (checked) verify_ast(ast);
  Kernel kernel = open(ast);
  if (beam == 0) kernel = optimize(std::move(kernel), target);
  if (beam > 0) kernel = searched(kernel, ast, device, beam);
  const Code code = linearize(kernel, target);
  if (tracing(5)) trace({5, "code", code.name, to_text(code)});
  if (checked) verify(code);
  Prepared out{std::make_shared<CompiledKernel>(), renderer_of(device).render(code, target)};
  if (tracing(4)) trace({4, "source", code.name, out.source.text});
  out.source.fast_compile = beam < 0;
  out.kernel->name = code.name;
  out.kernel->ast = ast;
  out.kernel->variables = code.variables;
  for (const CodePhase& phase : code.phases) out.kernel->tasks.push_back(phase.tasks);
  out.kernel->written = written_slots(ast);
  out.kernel->estimate = estimate(ast);
  return out;
}

int beam_of(const Device& device) {
  if (flag_on("MOTE_NOOPT")) return -1;
  const std::int64_t beam = flag_int("MOTE_BEAM");
  if (beam < 0 || beam > 1000)
    throw ValueError(cat("MOTE_BEAM: ", beam,
                         " is not in 0..1000; give how many schedules a "
                         "search keeps, 0 for none"));
  return device.runs() ? static_cast<int>(beam) : 0;
}

}  // namespace

std::vector<std::shared_ptr<const CompiledKernel>> compile(std::span<const Expr> asts,
                                                           Device& device) {
  const int beam = beam_of(device);
  std::vector<std::shared_ptr<const CompiledKernel>> out(asts.size());
  std::vector<Prepared> missing;
  std::unordered_map<Expr, std::size_t> at;  // of an AST in `missing`
  {
    const std::lock_guard lock(cache().mutex);
    for (std::size_t i = 0; i < asts.size(); ++i) {
      const auto found = cache().kernels.find({asts[i], &device, beam});
      if (found != cache().kernels.end()) out[i] = found->second;
      else at.emplace(asts[i], 0);
    }
  }
  for (std::size_t i = 0; i < asts.size(); ++i) {
    const auto found = at.find(asts[i]);
    if (out[i] || found == at.end() || found->second) continue;
    missing.push_back(prepare(asts[i], device, beam));
    found->second = missing.size();  // one past its place: 0 says "not yet"
  }
  if (missing.empty()) return out;
  std::vector<Source> sources;
  for (Prepared& p : missing) sources.push_back(std::move(p.source));
  const auto programs = device.compile_all(sources);
  count_compiled(static_cast<std::int64_t>(programs.size()));
  const std::lock_guard lock(cache().mutex);
  for (std::size_t i = 0; i < missing.size(); ++i) {
    missing[i].kernel->program = programs[i];
    cache().kernels[{missing[i].kernel->ast, &device, beam}] = missing[i].kernel;
    if (tracing(7))
      trace({7, "machine", missing[i].kernel->name, std::string(programs[i]->machine_code())});
  }
  for (std::size_t i = 0; i < asts.size(); ++i)
    if (!out[i]) out[i] = missing[at[asts[i]] - 1].kernel;
  return out;
}

void clear_kernel_cache() {
  clear_schedule_cache();
  const std::lock_guard lock(cache().mutex);
  cache().kernels.clear();
}

}  // namespace mote
