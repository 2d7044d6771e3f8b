// engine: realize() = schedule, open, optimize, linearize, render, compile, run, with a cache at
// each step. It alone knows every room below.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/lazy_buffer.h"
#include "mote/device.h"

namespace mote {

// Makes the bytes of every root exist (a view: of its base). Values go to the roots' devices.
void realize(std::span<const Lazy> roots);
inline void realize(const Lazy& root) { realize({&root, 1}); }

// The device called `DEVICE[:INDEX]` or `NULL[:RENDERER[:ARCH]]`; made on first use, lives as long
// as the process. DeviceError says what is known, or what is missing and what to install.
Device& device_named(std::string_view name);
Device& default_device();  // MOTE_DEVICE, else CPU, else CLANG where LLVM is missing

// The estimate for one AST (NULL's counter): 2n^3 operations for a matmul of n.
struct Estimate {
  std::int64_t operations = 0, bytes = 0;
};
Estimate estimate(const Expr& ast);

// ---- capture, for jit: what realize launches on this thread between begin and end is recorded.
// A buffer that a replay is given in place of a recorded one.
struct Hole {
  const Buffer* recorded;
  std::shared_ptr<Buffer> now;
};

class Captured {  // a list of compiled kernels with bound arguments
 public:
  virtual ~Captured() = default;
  virtual int kernels() const = 0;
  virtual bool writes(const Buffer*) const = 0;
  virtual void replay(std::span<const Hole> holes) = 0;
};
void begin_capture(Where);  // JitError when this thread is capturing already
std::shared_ptr<Captured> end_capture();
void abandon_capture();
bool capturing();

// The value that a Variable has in the next launches; ValueError outside of its bounds.
void bind_variable(const Expr& variable, std::int64_t value);

}  // namespace mote
