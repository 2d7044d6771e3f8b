// The parts that the devices on this processor share: its memory, its Target, its programs.
#pragma once
#include <memory>

#include "runtime/cpu/object.h"
#include "runtime/device.h"
#include "runtime/thread_pool.h"

namespace mote {

// A device whose memory is the host's. MOTE_GUARD=1 ends each block at a page that faults.
class HostDevice : public Device {
 public:
  HostDevice(std::string name, Target target) : Device(std::move(name), std::move(target)) {}
  void copy_in(void* to, const void* from, std::int64_t bytes) override;
  void copy_out(void* to, const void* from, std::int64_t bytes) override;

 protected:
  void* raw_allocate(std::int64_t bytes) override;
  void raw_release(void* block, std::int64_t bytes) override;
};

Target host_target(std::string renderer);

// The phases of a Source, found in an Object and run on the thread pool.
std::shared_ptr<Program> host_program(const Source&, std::shared_ptr<Object>, std::string machine_code);

}  // namespace mote
