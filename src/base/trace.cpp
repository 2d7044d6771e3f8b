#include "base/trace.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

#include "base/flags.h"
#include "base/text.h"

namespace mote {
namespace {

constexpr int first_dumped = 3, last_dumped = 5;

struct Readers {
  std::mutex mutex;
  std::vector<Trace*> all;
  std::atomic<int> count{0};
  std::atomic<int> version{-1};  // of the flags that `debug` and `dumping` were read from
  std::atomic<int> debug{0};
  std::atomic<bool> dumping{false};
  int dumped = 0;
  std::atomic<bool> complained{false};  // that a dump cannot be written
};

Readers& readers() {
  static Readers* const r = new Readers;
  return *r;
}

void read_flags(Readers& r) {
  const int version = flags_version();
  if (r.version.load(std::memory_order_acquire) == version) return;
  r.debug = static_cast<int>(flag_int("MOTE_DEBUG"));
  r.dumping = !flag("MOTE_DUMP").empty();
  r.version.store(version, std::memory_order_release);
}

// Names of kernels hold marks that a file name may not.
std::string file_name(std::string_view name) {
  std::string out(name.substr(0, 60));
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-') c = '_';
  return out;
}

void dump(const TraceEvent& e, const std::string& folder) {
  char number[16];
  std::snprintf(number, sizeof number, "%04d", readers().dumped++);
  const std::string name = e.name.empty() ? "" : "_" + file_name(e.name);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::string path = cat(folder, "/", number, "_", file_name(e.phase), name, ".txt");
  if (std::ofstream(path) << e.text << "\n") return;
  // No reason to fail, but to say once.
  if (!readers().complained.exchange(true))
    std::fprintf(stderr, "MOTE_DUMP: cannot write %s; give a folder that can be written\n",
                 path.c_str());
}

}  // namespace

bool tracing(int level) {
  Readers& r = readers();
  if (r.count.load(std::memory_order_relaxed) > 0) return true;
  read_flags(r);
  if (r.debug.load(std::memory_order_relaxed) >= level) return true;
  return r.dumping.load(std::memory_order_relaxed) && level >= first_dumped && level <= last_dumped;
}

void trace(TraceEvent e) {
  Readers& r = readers();
  read_flags(r);
  const std::lock_guard lock(r.mutex);
  if (r.debug >= e.level) std::fprintf(stderr, "%s\n", e.text.c_str());
  if (r.dumping && e.level >= first_dumped && e.level <= last_dumped) dump(e, flag("MOTE_DUMP"));
  for (Trace* reader : r.all) reader->report(e);
}

void add_trace(Trace* reader) {
  const std::lock_guard lock(readers().mutex);
  readers().all.push_back(reader);
  ++readers().count;
}

void remove_trace(Trace* reader) {
  const std::lock_guard lock(readers().mutex);
  std::erase(readers().all, reader);
  readers().count = static_cast<int>(readers().all.size());
}

}  // namespace mote
