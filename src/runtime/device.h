// Devices hold bytes and run programs. Nothing here knows of graphs, expressions or dtypes.
//
//   Device& d = Device::get("CLANG");
//   auto b = Buffer::make(d, 4096, "weights");     // allocated on first use
//   auto p = d.compile({.name = "k", .text = source, .phases = {{"k_0", 1}}, ..});
//   p->run(args, variables, tasks);
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/source.h"
#include "base/target.h"

namespace mote {

class Device;

// A piece of device memory: the one shared, mutable thing. Bytes exist from the first `data()`, are
// aligned to 64 and hold anything at first. A part shares its parent's bytes at an offset, and its
// version, and keeps the parent alive; parts and borrowed memory are aligned as they come.
class Buffer {
 public:
  static std::shared_ptr<Buffer> make(Device&, std::int64_t bytes, std::string name = "");
  static std::shared_ptr<Buffer> part_of(std::shared_ptr<Buffer> parent, std::int64_t offset,
                                         std::int64_t bytes);
  // Memory that somebody else owns (NumPy, a mapped file); `release` is called at the end, if
  // given, and must not throw.
  static std::shared_ptr<Buffer> borrow(Device&, void* bytes, std::int64_t size,
                                        std::function<void()> release);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Device& device() const { return *device_; }
  std::int64_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  const std::shared_ptr<Buffer>& parent() const { return parent_; }  // of a part; else null
  std::int64_t offset() const { return offset_; }                    // of a part, in its parent
  bool allocated() const;
  void* data();  // the device's address; allocates (MemoryError names size, name)
  void read(void* to, std::int64_t offset, std::int64_t bytes);  // device -> host, waits
  void write(const void* from, std::int64_t offset, std::int64_t bytes);
  // Counts writes, for prepacked copies.
  std::uint64_t version() const { return parent_ ? parent_->version() : version_.load(); }
  void written() { ++(parent_ ? parent_->version_ : version_); }
  static std::int64_t alive();  // buffers that exist, for leak tests

 private:
  Buffer(Device&, std::int64_t bytes, std::string name);
  void check_range(const char* doing, std::int64_t offset, std::int64_t bytes) const;
  Device* device_;
  std::int64_t bytes_;
  std::string name_;
  std::atomic<void*> data_{nullptr};
  std::shared_ptr<Buffer> parent_;  // has no parent itself
  std::int64_t offset_ = 0;
  bool borrowed_ = false;
  std::function<void()> release_;  // of borrowed memory
  std::atomic<std::uint64_t> version_{0};
};

// A compiled kernel. Safe to run from several threads at once on different buffers.
class Program {
 public:
  virtual ~Program() = default;
  // `slots`: data pointers in slot order. `tasks`: one number a phase. Returns when done on a CPU.
  virtual void run(std::span<void* const> slots, std::span<const std::int64_t> variables,
                   std::span<const std::int64_t> tasks) = 0;
  virtual std::string_view machine_code() const { return {}; }  // object bytes, for MOTE_DEBUG=7
};

struct MemoryUse {
  std::int64_t used = 0;    // bytes in live buffers
  std::int64_t cached = 0;  // bytes kept for reuse
  std::int64_t peak = 0;    // the most ever used at once
};

class Device {
 public:
  virtual ~Device();
  const std::string& name() const { return name_; }  // "CPU", "CLANG", "CL:0", "NULL:C"
  const Target& target() const { return target_; }
  virtual std::shared_ptr<Program> compile(const Source&) = 0;  // CompileError: source and log
  // Many at once: one module or worker processes, whatever is fastest. Same order as given.
  virtual std::vector<std::shared_ptr<Program>> compile_all(std::span<const Source>);
  // The compiler and the chip, as text: part of the keys of what is kept on disk.
  virtual std::string compiler() const { return name_; }
  virtual void synchronize() {}
  virtual void copy_in(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void copy_out(void* to, const void* from, std::int64_t bytes) = 0;
  virtual bool runs() const { return true; }  // false: NULL only counts

  // Memory with reuse of freed blocks of the same size; the longest unused go first when too much
  // is kept. On failure all that is kept is freed and it is tried again, then MemoryError.
  void* allocate(std::int64_t bytes, std::string_view name);
  void release(void*, std::int64_t bytes);
  MemoryUse memory() const;
  void free_cached();

 protected:
  Device(std::string name, Target);
  virtual void* raw_allocate(
      std::int64_t bytes) = 0;  // nullptr when there is none; 64-byte aligned
  virtual void raw_release(void*, std::int64_t bytes) = 0;
  Target target_;

 private:
  std::string name_;
  struct Pool;
  std::unique_ptr<Pool> pool_;
};

// The makers that engine/devices.cpp lists. Each throws DeviceError that says what is missing and
// what to install. `arguments` is what follows the name: "NULL:CUDA:sm_80" gives "CUDA:sm_80".
std::unique_ptr<Device> make_cpu_device(std::string_view arguments);    // LLVM in process
std::unique_ptr<Device> make_clang_device(std::string_view arguments);  // the C compiler found
std::unique_ptr<Device> make_null_device(std::string_view arguments);   // counts launches
std::unique_ptr<Device> make_ref_device(std::string_view arguments);    // bytes only: ref/ computes

}  // namespace mote
