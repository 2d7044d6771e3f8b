#include "runtime/cpu/host.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>

#include "base/flags.h"
#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

constexpr std::int64_t page = 4096;
bool guarded() {
  static const bool on = flag_int("MOTE_GUARD") != 0;
  return on;
}

std::int64_t pages(std::int64_t bytes) { return (bytes + page - 1) / page * page; }

std::int64_t cache_bytes(int level, std::int64_t fallback) {
  for (int i = 0; i < 5; ++i) {
    const std::string folder = cat("/sys/devices/system/cpu/cpu0/cache/index", i, "/");
    std::ifstream level_file(folder + "level"), type_file(folder + "type"), size_file(folder + "size");
    int found = 0;
    std::string type;
    std::int64_t size = 0;
    char unit = 0;
    if (!(level_file >> found) || !(type_file >> type) || !(size_file >> size >> unit)) continue;
    if (found == level && type != "Instruction") return size << (unit == 'M' ? 20 : 10);
  }
  return fallback;
}

class HostProgram final : public Program {
 public:
  HostProgram(const Source& source, std::shared_ptr<Object> object, std::string code)
      : object_(std::move(object)), code_(std::move(code)), phases_(source.phases),
        shared_bytes_(source.shared_bytes), scratch_bytes_(source.scratch_bytes) {
    for (const Phase& p : phases_) {
      void* at = object_->symbol(p.symbol);
      if (!at) throw CompileError(cat("the compiled object has no function '", p.symbol, "'"));
      functions_.push_back(reinterpret_cast<PhaseFunction>(at));
    }
  }

  void run(std::span<void* const> slots, std::span<const std::int64_t> variables,
           std::span<const std::int64_t> tasks) override {
    const std::unique_ptr<void, decltype(&std::free)> shared(
        shared_bytes_ ? std::aligned_alloc(64, static_cast<std::size_t>((shared_bytes_ + 63) / 64 * 64)) : nullptr, std::free);
    if (shared_bytes_ && !shared) throw MemoryError(cat("no memory for ", shared_bytes_, " bytes of a kernel's scratch"));
    for (std::size_t i = 0; i < functions_.size(); ++i)
      run_phase(functions_[i], slots.data(), shared.get(), scratch_bytes_, variables.data(), tasks[i], phases_[i].grain);
  }
  std::string_view machine_code() const override { return code_; }

 private:
  std::shared_ptr<Object> object_;
  std::string code_;
  std::vector<Phase> phases_;
  std::vector<PhaseFunction> functions_;
  std::int64_t shared_bytes_, scratch_bytes_;
};

}  // namespace

void HostDevice::copy_in(void* to, const void* from, std::int64_t bytes) {
  if (bytes) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
void HostDevice::copy_out(void* to, const void* from, std::int64_t bytes) {
  if (bytes) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

// With guards the block's last byte lies before the page that faults; a block is aligned to 64 bytes
// only then where its size is a multiple of 64.
void* HostDevice::raw_allocate(std::int64_t bytes) {
  if (!guarded()) {
    if (bytes > (std::int64_t{1} << 46)) return nullptr;
    return std::aligned_alloc(64, static_cast<std::size_t>((std::max<std::int64_t>(bytes, 1) + 63) / 64 * 64));
  }
  const std::int64_t whole = pages(bytes);
  void* at = mmap(nullptr, static_cast<std::size_t>(whole + page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  mprotect(static_cast<char*>(at) + whole, page, PROT_NONE);
  return static_cast<char*>(at) + whole - bytes;
}

void HostDevice::raw_release(void* block, std::int64_t bytes) {
  if (!guarded()) return std::free(block);
  const std::int64_t whole = pages(bytes);
  munmap(static_cast<char*>(block) + bytes - whole, static_cast<std::size_t>(whole + page));
}

Target host_target(std::string renderer) {
  Target t;
  t.renderer = std::move(renderer);
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  t.vector_bytes = wide ? 32 : 16;
  t.has_float16 = __builtin_cpu_supports("f16c");
#else
  t.arch = "aarch64";
  t.vector_bytes = 16;
  t.vector_registers = 32;
#endif
  t.l1_bytes = cache_bytes(1, t.l1_bytes);
  t.l2_bytes = cache_bytes(2, t.l2_bytes);
  t.l3_bytes = cache_bytes(3, t.l3_bytes);
  return t;
}

std::shared_ptr<Program> host_program(const Source& source, std::shared_ptr<Object> object, std::string machine_code) {
  return std::make_shared<HostProgram>(source, std::move(object), std::move(machine_code));
}

}  // namespace mote
