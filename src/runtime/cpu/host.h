// The parts that the devices on this processor share: its memory, its Target, its programs.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "runtime/cpu/object.h"
#include "runtime/device.h"
#include "runtime/thread_pool.h"

namespace mote {

// Is this library built with the address sanitizer? CLANG's kernels are then instrumented too.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool address_sanitized = true;
#elif defined(__has_feature)
inline constexpr bool address_sanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool address_sanitized = false;
#endif

// A device whose memory is the host's. With MOTE_GUARD=1, read when the device is made, each block
// ends at a page that faults.
class HostDevice : public Device {
 public:
  HostDevice(std::string name, Target target);
  ~HostDevice() override;
  // As many at once as there are threads, at least two. The first failure is thrown.
  std::vector<std::shared_ptr<Program>> compile_all(std::span<const Source>) override;
  void copy_in(void* to, const void* from, std::int64_t bytes) override;
  void copy_out(void* to, const void* from, std::int64_t bytes) override;

 protected:
  void* raw_allocate(std::int64_t bytes) override;
  void raw_release(void* block, std::int64_t bytes) override;

 private:
  const bool guarded_;
};

Target host_target(std::string renderer);
const std::string& host_features();  // what this chip can do, as text for cache keys
// Path, size and time of change: what a compiler is known by, without running it.
std::string file_identity(const std::string& path);

// The phases of a Source, found in an object file and run on the thread pool. The device must
// outlive the program.
std::shared_ptr<Program> host_program(Device&, const Source&, std::string object);
// The same with the object from the disk cache, or from `compile` and then put there.
std::shared_ptr<Program> cached_program(Device&, const Source&, const std::string& key,
                                        const std::function<std::string()>& compile);

}  // namespace mote
