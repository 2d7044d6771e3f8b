// What the files of this room share: from an AST to a compiled kernel, and its launch.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "kernel/kernel.h"
#include "render/renderer.h"

namespace mote {

// One AST compiled for one device, ready to be launched any number of times.
struct CompiledKernel {
  std::string name;
  Expr ast;
  std::shared_ptr<Program> program;
  std::vector<Expr> variables;  // in the order the program takes them
  std::vector<Expr> tasks;      // of each phase
  std::vector<int> written;     // slots that are stored to
  Estimate estimate;
};

const Renderer& renderer_of(const Device&);

// From the cache in memory, else compiled; many at once where the device can.
std::vector<std::shared_ptr<const CompiledKernel>> compile(std::span<const Expr> asts, Device&);

// Runs it on buffers that are allocated; counts it, and prints its line at MOTE_DEBUG=2.
void launch(const CompiledKernel&, Device&, std::span<const std::shared_ptr<Buffer>> slots);
void copy_bytes(Buffer& to, Buffer& from);
void count_compiled(std::int64_t kernels);
void count_scheduled(bool hit);
// The fastest kernel that MOTE_BEAM=beam finds, or found in an earlier process.
Kernel searched(const Kernel& opened, const Expr& ast, Device&, int beam);
void clear_kernel_cache();  // for leak tests: the cache owns expressions

std::int64_t variable_value(const Expr& variable);

// Called for each launch while this thread captures.
struct CaptureItem {
  std::shared_ptr<const CompiledKernel> kernel;  // null: a copy
  Device* device = nullptr;
  std::vector<std::shared_ptr<Buffer>> slots;
};
void record(CaptureItem);

}  // namespace mote
