#include "base/flags.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

// clang-format off
constexpr Flag table[] = {
    {"MOTE_DEVICE",      "",   "the default device, such as CPU, CLANG, REF or NULL:LLVM"},
    {"MOTE_THREADS",     "0",  "threads of the CPU devices; 0: all cores. Never changes a result"},
    {"MOTE_DEBUG",       "0",  "1 device, 2 launch, 3 moves, 4 source, 5 IR, 6 rules, 7 assembly"},
    {"MOTE_DUMP",        "",   "a folder: each phase writes a numbered file there"},
    {"MOTE_CACHE",       "1",  "0: compiled kernels are not kept on disk"},
    {"MOTE_CACHE_DIR",   "",   "where they are kept; default $XDG_CACHE_HOME/mote"},
    {"MOTE_MEMORY_PLAN", "1",  "0: temporaries never share bytes"},
    {"MOTE_NOOPT",       "0",  "1: the plain path: no moves, fast compiles"},
    {"MOTE_BEAM",        "0",  "n: schedules are searched by the clock, n kept a round; 0: heuristic"},
    {"MOTE_VERIFY",      "0",  "1: each stage is verified, each access proven inside its memory"},
    {"MOTE_DATA_DIR",    "",   "where data sets are looked for first"},
    {"MOTE_CC",          "",   "the C compiler of CLANG; default: clang-19, clang, gcc, cc"},
    {"MOTE_LLVM",        "",   "the path of libLLVM for CPU; default: 19, then the newest known"},
    {"MOTE_GUARD",       "0",  "1: each buffer ends at a page that may not be touched"},
};
// clang-format on

struct Settings {
  std::mutex mutex;
  std::atomic<int> version{0};
  std::map<std::string, std::string, std::less<>> values;
};

Settings& settings() {
  static Settings* const all = new Settings;
  return *all;
}

const Flag& row(std::string_view name) {
  for (const Flag& f : table)
    if (f.name == name) return f;
  throw InternalError(cat("the flag '", name, "' is not in the table of flags"));
}

}  // namespace

std::span<const Flag> all_flags() { return table; }

std::string flag(std::string_view name) {
  const Flag& f = row(name);
  {
    const std::lock_guard lock(settings().mutex);
    const auto at = settings().values.find(name);
    if (at != settings().values.end()) return at->second;
  }
  const char* set = std::getenv(std::string(name).c_str());
  return std::string(set && *set ? std::string_view(set) : f.fallback);
}

std::int64_t flag_int(std::string_view name) {
  const std::string text = flag(name);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  throw ValueError(cat(name, ": '", text, "' is no integer; ", row(name).help));
}

bool flag_on(std::string_view name) {
  const std::string text = flag(name);
  if (text == "0" || text == "1") return text == "1";
  throw ValueError(cat(name, ": '", text, "' is neither 0 nor 1; ", row(name).help));
}

void set_flag(std::string_view name, std::string value) {
  row(name);
  const std::lock_guard lock(settings().mutex);
  settings().values.insert_or_assign(std::string(name), std::move(value));
  ++settings().version;
}

void unset_flag(std::string_view name) {
  const std::lock_guard lock(settings().mutex);
  const auto at = settings().values.find(name);
  if (at != settings().values.end()) settings().values.erase(at);
  ++settings().version;
}

int flags_version() { return settings().version.load(std::memory_order_relaxed); }

}  // namespace mote
