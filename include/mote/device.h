// room: engine
// Choosing devices by name: `DEVICE[:INDEX]`, or `NULL[:RENDERER[:ARCH]]`.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mote {

struct DeviceStatus {
  std::string name;
  std::string description;
  bool ready = false;
  std::string reason;  // why not, and what to install
};

std::vector<DeviceStatus> devices();
void set_default_device(std::string_view name);  // DeviceError when it cannot be used
std::string default_device_name();
void set_threads(int);  // of the CPU devices; never changes a result
int threads();

// What has been launched by this process since reset_counters().
struct Counters {
  std::int64_t kernels = 0;    // NULL: would have been launched
  std::int64_t copies = 0;     // between devices
  std::int64_t scheduled = 0;  // graphs scheduled (misses of the schedule cache)
  std::int64_t schedule_hits = 0;
  std::int64_t compiled = 0;    // kernels compiled, or taken from the disk cache
  std::int64_t operations = 0;  // estimated arithmetic operations
  std::int64_t bytes = 0;       // estimated bytes read and written
};
Counters counters();
void reset_counters();

}  // namespace mote
