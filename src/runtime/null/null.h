// What tests and tools may ask a program of NULL.
#pragma once
#include <atomic>
#include <utility>

#include "runtime/device.h"

namespace mote {

class NullProgram final : public Program {
 public:
  explicit NullProgram(Source source) : source_(std::move(source)) {}
  void run(std::span<void* const>, std::span<const std::int64_t>,
           std::span<const std::int64_t>) override {
    ++launches_;
  }
  const Source& source() const { return source_; }
  std::int64_t launches() const { return launches_; }

 private:
  Source source_;
  std::atomic<std::int64_t> launches_{0};
};

}  // namespace mote
