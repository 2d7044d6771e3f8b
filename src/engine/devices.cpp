// The devices that mote knows: one row each. A new one is a row here, a folder in runtime/ and a
// renderer in render/.
#include <algorithm>
#include <map>
#include <mutex>

#include "base/flags.h"
#include "base/text.h"
#include "base/trace.h"
#include "engine/engine.h"
#include "engine/launch.h"
#include "mote/device.h"
#include "render/renderer.h"
#include "runtime/thread_pool.h"

namespace mote {
namespace {

struct Row {
  std::string_view name;
  std::string_view description;
  std::unique_ptr<Device> (*make)(std::string_view arguments);
};

// clang-format off
const Row rows[] = {
    {"CPU",   "LLVM in this process, on all cores",          make_cpu_device},
    {"CLANG", "a C compiler found at run time, on all cores", make_clang_device},
    {"REF",   "the naive interpreter: the oracle of tests",  make_ref_device},
    {"NULL",  "runs nothing, counts kernels and bytes",      make_null_device},
};

struct RendererRow {
  std::string_view name;
  const Renderer& (*get)();
};
const RendererRow renderers[] = {
    {"C",    c_renderer},
    {"LLVM", llvm_renderer},
};
// clang-format on

struct Devices {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Device>, std::less<>> made;
  std::string chosen;  // by set_default_device
};

Devices& all() {
  static Devices* const devices = new Devices;  // programs may run until the very end
  return *devices;
}

std::vector<std::string> known_names() {
  std::vector<std::string> names;
  for (const Row& row : rows) names.emplace_back(row.name);
  return names;
}

// "cpu:0" and "CPU" are "CPU"; what follows a colon belongs to the device otherwise.
std::string normal_name(std::string_view name) {
  std::string upper(name);
  const std::size_t colon = std::min(upper.find(':'), upper.size());
  std::transform(upper.begin(), upper.begin() + static_cast<std::ptrdiff_t>(colon), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (upper.ends_with(":0")) upper.resize(upper.size() - 2);
  return upper;
}

const Row& row_named(std::string_view device) {
  const std::string_view kind = device.substr(0, device.find(':'));
  for (const Row& row : rows)
    if (row.name == kind) return row;
  const auto names = known_names();
  const std::string near = nearest(kind, names);
  throw DeviceError(cat("there is no device '", std::string(device), "'",
                        near.empty() ? "" : "; did you mean '" + near + "'?",
                        " (known: ", join(names), "; see `mote devices`)"));
}

std::string fallback_name() {
  const std::string asked = flag("MOTE_DEVICE");
  if (!asked.empty()) return normal_name(asked);
  try {
    device_named("CPU");
    return "CPU";
  } catch (const DeviceError& no_llvm) {    // no LLVM: the C compiler
    if (!flag("MOTE_LLVM").empty()) throw;  // one was asked for
    try {
      device_named("CLANG");
    } catch (const DeviceError& no_compiler) {
      throw DeviceError(cat("no device can be used: ", no_llvm.what(), "; ", no_compiler.what()));
    }
    trace({1, "devices", "CPU", no_llvm.what()});
    return "CLANG";
  }
}

}  // namespace

Device& device_named(std::string_view name) {
  const std::string wanted = normal_name(name);
  Devices& devices = all();
  const std::lock_guard lock(devices.mutex);
  if (const auto at = devices.made.find(wanted); at != devices.made.end()) return *at->second;
  const Row& row = row_named(wanted);
  const std::string_view rest = std::string_view(wanted).substr(row.name.size());
  auto made = row.make(rest.empty() ? rest : rest.substr(1));
  if (tracing(1))
    trace({1, "devices", wanted, cat("device ", wanted, ": ", std::string(row.description))});
  return *devices.made.emplace(wanted, std::move(made)).first->second;
}

Device& default_device() { return device_named(default_device_name()); }

std::string default_device_name() {
  {
    const std::lock_guard lock(all().mutex);
    if (!all().chosen.empty()) return all().chosen;
  }
  return fallback_name();
}

void set_default_device(std::string_view name) {
  const std::string wanted = normal_name(name);
  device_named(wanted);  // throws when it cannot be used
  const std::lock_guard lock(all().mutex);
  all().chosen = wanted;
}

std::vector<DeviceStatus> devices() {
  std::vector<DeviceStatus> out;
  for (const Row& row : rows) {
    DeviceStatus status{std::string(row.name), std::string(row.description), true, ""};
    try {
      device_named(row.name);
    } catch (const DeviceError& error) {
      status.ready = false;
      status.reason = error.what();
    }
    out.push_back(status);
  }
  return out;
}

const Renderer& renderer_of(const Device& device) {
  for (const RendererRow& row : renderers)
    if (row.name == device.target().renderer) return row.get();
  std::vector<std::string> names;
  for (const RendererRow& row : renderers) names.emplace_back(row.name);
  throw DeviceError(cat("device ", device.name(), ": there is no renderer '",
                        device.target().renderer, "' (known: ", join(names), ")"));
}

void set_threads(int count) { set_thread_count(count); }
int threads() { return thread_count(); }

}  // namespace mote
