#include "base/trace.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

#include "base/flags.h"
#include "base/text.h"

namespace mote {
namespace {

struct Readers {
  std::mutex mutex;
  std::vector<Trace*> all;
  std::atomic<int> count{0};
  int dumped = 0;
};

Readers& readers() {
  static Readers* const r = new Readers;
  return *r;
}

void dump(const TraceEvent& e, const std::string& folder) {
  char number[16];
  std::snprintf(number, sizeof number, "%04d", readers().dumped++);
  const std::string name = e.name.empty() ? "" : "_" + std::string(e.name.substr(0, 60));
  std::error_code ignored;  // a dump that cannot be written is no reason to fail
  std::filesystem::create_directories(folder, ignored);
  std::ofstream(folder + "/" + number + "_" + std::string(e.phase) + name + ".txt") << e.text << "\n";
}

}  // namespace

bool tracing(int level) {
  if (readers().count.load(std::memory_order_relaxed) > 0) return true;
  return flag_int("MOTE_DEBUG") >= level || (level >= 3 && level <= 5 && !flag("MOTE_DUMP").empty());
}

void trace(TraceEvent e) {
  const std::lock_guard lock(readers().mutex);
  if (flag_int("MOTE_DEBUG") >= e.level) std::fprintf(stderr, "%s\n", e.text.c_str());
  const std::string folder = flag("MOTE_DUMP");
  if (!folder.empty() && e.level >= 3 && e.level <= 5) dump(e, folder);
  for (Trace* reader : readers().all) reader->report(e);
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
