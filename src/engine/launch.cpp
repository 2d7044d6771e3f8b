// Running compiled kernels: argument lists, counters, and the line a launch prints.
#include <chrono>
#include <cstdio>
#include <mutex>
#include <unordered_map>

#include "base/text.h"
#include "base/trace.h"
#include "engine/launch.h"

namespace mote {
namespace {

struct Counts {
  std::atomic<std::int64_t> kernels{0}, copies{0}, scheduled{0}, hits{0}, compiled{0},
      operations{0}, bytes{0};
};

Counts& counts() {
  static Counts all;
  return all;
}

struct Variables {
  std::mutex mutex;
  std::unordered_map<Expr, std::int64_t> values;
};

Variables& variables() {
  static Variables* const all = new Variables;
  return *all;
}

// "kernel r_1024_1024 0.52 ms 4.1 GFLOP/s 12.0 GB/s"
void report(const CompiledKernel& k, double seconds) {
  char rates[96];
  std::snprintf(rates, sizeof rates, "%10.3f ms %8.2f GFLOP/s %8.2f GB/s", seconds * 1e3,
                static_cast<double>(k.estimate.operations) / seconds * 1e-9,
                static_cast<double>(k.estimate.bytes) / seconds * 1e-9);
  trace({2, "launch", k.name, cat("kernel ", k.name, " ", rates)});
}

}  // namespace

void bind_variable(const Expr& variable, std::int64_t value) {
  if (value < variable->lo || value > variable->hi) {
    throw ValueError(cat("bind: ", value, " is outside of the bounds ", variable->lo, "..",
                         variable->hi, " of the variable '", std::string(variable->text), "'"));
  }
  const std::lock_guard lock(variables().mutex);
  variables().values[variable] = value;
}

std::int64_t variable_value(const Expr& variable) {
  const std::lock_guard lock(variables().mutex);
  const auto at = variables().values.find(variable);
  if (at != variables().values.end()) return at->second;
  throw ValueError(cat("the variable '", std::string(variable->text),
                       "' has no value; bind one before the result is needed"));
}

Counters counters() {
  const Counts& c = counts();
  return {c.kernels, c.copies, c.scheduled, c.hits, c.compiled, c.operations, c.bytes};
}

void reset_counters() {
  Counts& c = counts();
  for (auto* n :
       {&c.kernels, &c.copies, &c.scheduled, &c.hits, &c.compiled, &c.operations, &c.bytes})
    *n = 0;
}

void count_compiled(std::int64_t kernels) { counts().compiled += kernels; }
void count_scheduled(bool hit) { ++(hit ? counts().hits : counts().scheduled); }

void launch(const CompiledKernel& kernel, Device& device,
            std::span<const std::shared_ptr<Buffer>> slots) {
  std::vector<void*> pointers;
  for (const auto& b : slots) pointers.push_back(b->data());
  std::unordered_map<Expr, std::int64_t> bound;
  std::vector<std::int64_t> values;
  for (const Expr& v : kernel.variables) {
    values.push_back(variable_value(v));
    bound[v] = values.back();
  }
  std::vector<std::int64_t> tasks;
  for (const Expr& t : kernel.tasks) tasks.push_back(evaluate(Int(t), bound));
  const auto begin = std::chrono::steady_clock::now();
  kernel.program->run(pointers, values, tasks);
  for (int slot : kernel.written) slots[static_cast<std::size_t>(slot)]->written();
  ++counts().kernels;
  counts().operations += kernel.estimate.operations;
  counts().bytes += kernel.estimate.bytes;
  if (!tracing(2)) return;
  device.synchronize();
  report(kernel, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

void copy_bytes(Buffer& to, Buffer& from) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(from.bytes()));
  from.read(bytes.data(), 0, from.bytes());
  to.write(bytes.data(), 0, from.bytes());
  to.written();
  ++counts().copies;
  if (tracing(2))
    trace(
        {2, "copy", to.name(),
         cat("copy ", from.bytes(), " bytes ", from.device().name(), " to ", to.device().name())});
}

}  // namespace mote
