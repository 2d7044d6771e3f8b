// NULL runs nothing: kernels are rendered, kept as text and counted. Its buffers have sizes and no
// bytes; they read as zeros.
#include "runtime/null/null.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace mote {
namespace {

// "CUDA:sm_80": a renderer, and what it wants to know of the chip.
Target null_target(std::string_view arguments) {
  Target t;
  const std::size_t colon = std::min(arguments.find(':'), arguments.size());
  if (!arguments.empty()) t.renderer = std::string(arguments.substr(0, colon));
  if (colon < arguments.size()) t.arch = std::string(arguments.substr(colon + 1));
  return t;
}

class NullDevice final : public Device {
 public:
  explicit NullDevice(std::string_view arguments)
      : Device(arguments.empty() ? "NULL" : cat("NULL:", std::string(arguments)),
               null_target(arguments)) {}
  std::shared_ptr<Program> compile(const Source& source) override {
    return std::make_shared<NullProgram>(source);
  }
  void copy_in(void*, const void*, std::int64_t) override {}
  void copy_out(void* to, const void*, std::int64_t bytes) override {
    if (bytes) std::memset(to, 0, static_cast<std::size_t>(bytes));
  }
  bool runs() const override { return false; }

 protected:
  void* raw_allocate(std::int64_t) override { return this; }  // an address that nobody follows
  void raw_release(void*, std::int64_t) override {}
};

}  // namespace

std::unique_ptr<Device> make_null_device(std::string_view arguments) {
  return std::make_unique<NullDevice>(arguments);
}

}  // namespace mote
