// Where the phases report to. MOTE_DEBUG and MOTE_DUMP are the first readers, the explorer a later
// one. A phase asks `tracing(level)` before it builds a text, so that silence costs a few compares.
// The two flags are read at the first question and after each set_flag.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace mote {

// Levels of MOTE_DEBUG: 1 devices, 2 each launch, 3 chosen moves, 4 source, 5 AST and IR,
// 6 every rewrite by rule name, 7 machine code.
struct TraceEvent {
  int level;
  std::string_view phase;  // "schedule", "opt", "render", "launch", ..
  std::string_view name;   // of the kernel, rule or file it concerns
  std::string text;        // what is shown
};

class Trace {
 public:
  virtual ~Trace() = default;
  virtual void report(const TraceEvent&) = 0;
};

bool tracing(int level);  // is anybody reading this level? (MOTE_DUMP reads 3 to 5)
void trace(TraceEvent);
void add_trace(Trace*);  // not owned; remove before it dies
void remove_trace(Trace*);

}  // namespace mote
