// REF holds bytes on the host; ref/ computes.
#include "base/text.h"
#include "mote/error.h"
#include "runtime/cpu/host.h"

namespace mote {
namespace {

class RefDevice final : public HostDevice {
 public:
  RefDevice() : HostDevice("REF", host_target("C")) {}
  std::shared_ptr<Program> compile(const Source&) override {
    throw InternalError("REF: it compiles nothing");
  }
};

}  // namespace

std::unique_ptr<Device> make_ref_device(std::string_view arguments) {
  if (!arguments.empty())
    throw DeviceError(cat("REF: '", std::string(arguments), "' is not known; write REF alone"));
  return std::make_unique<RefDevice>();
}

}  // namespace mote
