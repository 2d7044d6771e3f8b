// What CPU, CLANG and REF have in common.
#include "runtime/cpu/host.h"

#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/flags.h"
#include "base/text.h"
#include "mote/error.h"
#include "runtime/disk_cache.h"

namespace mote {
namespace {

constexpr std::int64_t page = 4096;
constexpr std::int64_t most_bytes = std::int64_t{1} << 46;  // no machine has more: no sum overflows

std::int64_t round_up(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::int64_t cache_bytes(int level, std::int64_t fallback) {
  for (int i = 0; i < 5; ++i) {
    const std::string folder = cat("/sys/devices/system/cpu/cpu0/cache/index", i, "/");
    std::ifstream level_file(folder + "level"), type_file(folder + "type");
    std::ifstream size_file(folder + "size");
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
  HostProgram(Device& device, const Source& source, std::string object)
      : device_(device),
        name_(source.name),
        code_(std::move(object)),
        object_(Object::load(std::as_bytes(std::span(code_)))),
        phases_(source.phases),
        slots_(static_cast<std::size_t>(source.slots)),
        variables_(static_cast<std::size_t>(source.variables)),
        shared_bytes_(source.shared_bytes),
        scratch_bytes_(source.scratch_bytes) {
    for (const Phase& p : phases_) {
      void* at = object_->symbol(p.symbol);
      if (!at) throw CompileError(cat("the compiled object has no function '", p.symbol, "'"));
      functions_.push_back(reinterpret_cast<PhaseFunction>(at));
    }
  }

  void run(std::span<void* const> slots, std::span<const std::int64_t> variables,
           std::span<const std::int64_t> tasks) override {
    if (slots.size() < slots_ || variables.size() < variables_ || tasks.size() < phases_.size()) {
      throw InternalError(cat("kernel '", name_, "' is run with ", slots.size(), " slots, ",
                              variables.size(), " variables, ", tasks.size(), " phases; it has ",
                              slots_, ", ", variables_, ", ", phases_.size()));
    }
    const SharedScratch shared(device_, shared_bytes_, name_);
    for (std::size_t i = 0; i < functions_.size(); ++i)
      run_phase(functions_[i], slots.data(), shared.at, scratch_bytes_, variables.data(), tasks[i],
                phases_[i].grain);
  }
  std::string_view machine_code() const override { return code_; }

 private:
  // From the device's pool, so that the next launch finds it mapped.
  struct SharedScratch {
    SharedScratch(Device& d, std::int64_t size, const std::string& kernel)
        : device(d), bytes(round_up(size, 64)) {
      if (bytes) at = device.allocate(bytes, cat("scratch of ", kernel));
    }
    ~SharedScratch() {
      if (at) device.release(at, bytes);
    }
    SharedScratch(const SharedScratch&) = delete;
    SharedScratch& operator=(const SharedScratch&) = delete;
    Device& device;
    std::int64_t bytes;
    void* at = nullptr;
  };

  Device& device_;
  std::string name_, code_;
  std::shared_ptr<Object> object_;
  std::vector<Phase> phases_;
  std::size_t slots_, variables_;
  std::int64_t shared_bytes_, scratch_bytes_;
  std::vector<PhaseFunction> functions_;
};

}  // namespace

// ---- HostDevice

HostDevice::HostDevice(std::string name, Target target)
    : Device(std::move(name), std::move(target)), guarded_(flag_on("MOTE_GUARD")) {}

HostDevice::~HostDevice() { free_cached(); }

std::vector<std::shared_ptr<Program>> HostDevice::compile_all(std::span<const Source> sources) {
  std::vector<std::shared_ptr<Program>> out(sources.size());
  std::atomic<std::size_t> next{0};
  std::mutex failing;
  std::exception_ptr failure;
  const auto work = [&] {
    for (std::size_t i; (i = next++) < sources.size();) {
      try {
        out[i] = compile(sources[i]);
      } catch (...) {  // thrown again below, on the caller's thread
        const std::lock_guard lock(failing);
        if (!failure) failure = std::current_exception();
        next = sources.size();
      }
    }
  };
  const std::size_t workers =
      std::min<std::size_t>(sources.size(), static_cast<std::size_t>(std::max(2, thread_count())));
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < workers; ++i) others.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
  return out;
}

void HostDevice::copy_in(void* to, const void* from, std::int64_t bytes) {
  if (bytes) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

void HostDevice::copy_out(void* to, const void* from, std::int64_t bytes) {
  if (bytes) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

// NOTE: with guards the last byte lies just before the page that faults, so that a block is aligned
// to 64 bytes only where its size is a multiple of 64.
void* HostDevice::raw_allocate(std::int64_t bytes) {
  if (bytes > most_bytes) return nullptr;
  if (!guarded_ && address_sanitized) {  // the exact size, so that a red zone follows at once
    void* at = nullptr;
    return posix_memalign(&at, 64, static_cast<std::size_t>(bytes)) == 0 ? at : nullptr;
  }
  if (!guarded_) {
    const std::int64_t whole = round_up(std::max<std::int64_t>(bytes, 1), 64);
    return std::aligned_alloc(64, static_cast<std::size_t>(whole));
  }
  const std::int64_t whole = round_up(bytes, page);
  void* at = mmap(nullptr, static_cast<std::size_t>(whole + page), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  mprotect(static_cast<char*>(at) + whole, page, PROT_NONE);
  return static_cast<char*>(at) + whole - bytes;
}

void HostDevice::raw_release(void* block, std::int64_t bytes) {
  if (!guarded_) return std::free(block);
  const std::int64_t whole = round_up(bytes, page);
  munmap(static_cast<char*>(block) + bytes - whole, static_cast<std::size_t>(whole + page));
}

// ---- the chip

Target host_target(std::string renderer) {
  Target t;
  t.renderer = std::move(renderer);
#if defined(__x86_64__)
  const bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  // Also with AVX-512: as fast in most kernels that were measured, and far quicker to compile.
  t.vector_bytes = wide ? 32 : 16;
#else
  t.arch = "aarch64";
  t.vector_bytes = 16;
  t.vector_registers = 32;
#endif
  t.l1_bytes = cache_bytes(1, t.l1_bytes);
  t.l2_bytes = cache_bytes(2, t.l2_bytes);
  return t;
}

const std::string& host_features() {
  static const std::string text = [] {
    std::string out;
#if defined(__x86_64__)
    const auto leaf = [&](unsigned number, unsigned sub, bool model) {
      unsigned a = 0, b = 0, c = 0, d = 0;
      __get_cpuid_count(number, sub, &a, &b, &c, &d);
      // Register b of leaf 1 says on which core this runs.
      out += model ? cat(a, " ", c, " ", d, " ") : cat(a, " ", b, " ", c, " ", d, " ");
    };
    leaf(1, 0, true);
    leaf(7, 0, false);
    leaf(7, 1, false);
    leaf(0x80000001u, 0, false);
#endif
    return out;
  }();
  return text;
}

std::string file_identity(const std::string& path) {
  std::error_code unknown;  // then the path alone is its identity
  const auto size = std::filesystem::file_size(path, unknown);
  const auto changed = std::filesystem::last_write_time(path, unknown).time_since_epoch().count();
  return cat(path, " ", static_cast<unsigned long long>(size), " ",
             static_cast<long long>(changed));
}

// ---- programs

std::shared_ptr<Program> host_program(Device& device, const Source& source, std::string object) {
  return std::make_shared<HostProgram>(device, source, std::move(object));
}

std::shared_ptr<Program> cached_program(Device& device, const Source& source,
                                        const std::string& key,
                                        const std::function<std::string()>& compile) {
  if (const auto cached = cache_get("object", key)) {
    try {
      const auto* text = reinterpret_cast<const char*>(cached->data());
      return host_program(device, source, std::string(text, cached->size()));
    } catch (const CompileError&) {
      // A damaged object in the cache: it is compiled anew and written over.
    }
  }
  const std::string object = compile();
  auto program = host_program(device, source, object);
  cache_put("object", key, std::as_bytes(std::span(object)));
  return program;
}

}  // namespace mote
