// CPU, the default device: LLVM IR through LLVM in this process, its object code taken by the
// loader.
#include <mutex>

#include "base/flags.h"
#include "base/text.h"
#include "mote/error.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/llvm_library.h"

namespace mote {
namespace {

class CpuDevice final : public HostDevice {
 public:
  CpuDevice() : HostDevice("CPU", host_target("LLVM")), path_(find_llvm()) {}

  std::shared_ptr<Program> compile(const Source& source) override {
    const int level = source.fast_compile ? 0 : 1;
    const bool verify = flag_on("MOTE_VERIFY");
    const std::string how = cat("LLVM level ", level, verify ? " verified " : " ");
    const std::string key = cat(how, compiler(), "\n", source.text);
    return cached_program(*this, source, key,
                          [&] { return library().compile(source, level, verify); });
  }

  std::string compiler() const override { return cat(file_identity(path_), "\n", host_features()); }

 private:
  // Loaded by the first kernel that the disk cache does not have.
  const LlvmLibrary& library() {
    const std::lock_guard lock(loading_);
    if (!library_) library_ = std::make_unique<LlvmLibrary>(path_);
    return *library_;
  }

  std::string path_;
  std::mutex loading_;
  std::unique_ptr<LlvmLibrary> library_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(std::string_view arguments) {
  if (!arguments.empty())
    throw DeviceError(cat("CPU: '", std::string(arguments), "' is not known; write CPU alone"));
  return std::make_unique<CpuDevice>();
}

}  // namespace mote
