// Buffers and the allocator that all devices share.
#include "runtime/device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

#include "base/flags.h"
#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

std::atomic<std::int64_t> buffers_alive{0};
constexpr std::int64_t most_cached = std::int64_t{2} << 30;

}  // namespace

// ---- Buffer

Buffer::Buffer(Device& device, std::int64_t bytes, std::string name)
    : device_(&device), bytes_(bytes), name_(std::move(name)) {
  ++buffers_alive;
}

std::shared_ptr<Buffer> Buffer::make(Device& device, std::int64_t bytes, std::string name) {
  if (bytes < 0) throw MemoryError(cat("a buffer of ", bytes, " bytes; sizes are not negative"));
  return std::shared_ptr<Buffer>(new Buffer(device, bytes, std::move(name)));
}

std::shared_ptr<Buffer> Buffer::part_of(std::shared_ptr<Buffer> parent, std::int64_t offset, std::int64_t bytes) {
  if (offset < 0 || bytes < 0 || offset > parent->bytes_ || bytes > parent->bytes_ - offset) {
    throw InternalError(cat("a part of ", bytes, " bytes at ", offset, " is outside of a buffer of ", parent->bytes_));
  }
  auto part = make(*parent->device_, bytes, parent->name_);
  part->offset_ = offset;
  part->parent_ = std::move(parent);
  return part;
}

std::shared_ptr<Buffer> Buffer::borrow(Device& device, void* bytes, std::int64_t size, std::function<void()> release) {
  auto b = make(device, size);
  b->data_ = bytes;
  b->release_ = std::move(release);
  return b;
}

Buffer::~Buffer() {
  --buffers_alive;
  if (release_) {
    release_();
    return;
  }
  void* data = data_;
  if (data && !parent_) device_->release(data, bytes_);
}

bool Buffer::allocated() const { return parent_ ? parent_->allocated() : data_ != nullptr; }

void* Buffer::data() {
  if (parent_) return static_cast<char*>(parent_->data()) + offset_;
  if (void* have = data_) return have;
  void* fresh = device_->allocate(bytes_, name_);
  void* none = nullptr;
  if (data_.compare_exchange_strong(none, fresh)) return fresh;
  device_->release(fresh, bytes_);  // another thread was first
  return none;
}

void Buffer::read(void* to, std::int64_t offset, std::int64_t bytes) {
  if (offset < 0 || bytes < 0 || offset > bytes_ || bytes > bytes_ - offset)
    throw InternalError(cat("reading ", bytes, " bytes at ", offset, " of a buffer of ", bytes_));
  device_->synchronize();
  device_->copy_out(to, static_cast<char*>(data()) + offset, bytes);
}

void Buffer::write(const void* from, std::int64_t offset, std::int64_t bytes) {
  if (offset < 0 || bytes < 0 || offset > bytes_ || bytes > bytes_ - offset)
    throw InternalError(cat("writing ", bytes, " bytes at ", offset, " of a buffer of ", bytes_));
  device_->copy_in(static_cast<char*>(data()) + offset, from, bytes);
  written();
}

std::int64_t Buffer::alive() { return buffers_alive; }

// ---- Device

struct Device::Pool {
  mutable std::mutex mutex;
  std::multimap<std::int64_t, void*> free;  // by size
  MemoryUse use;
};

Device::Device(std::string name, Target target)
    : target_(std::move(target)), name_(std::move(name)), pool_(std::make_unique<Pool>()) {}
Device::~Device() = default;

std::vector<std::shared_ptr<Program>> Device::compile_all(std::span<const Source> sources) {
  std::vector<std::shared_ptr<Program>> out;
  for (const Source& s : sources) out.push_back(compile(s));
  return out;
}

// A freed block of exactly this size is used again; nothing else is kept.
void* Device::allocate(std::int64_t bytes, std::string_view name) {
  {
    const std::lock_guard lock(pool_->mutex);
    const auto at = pool_->free.find(bytes);
    if (at != pool_->free.end()) {
      void* block = at->second;
      pool_->free.erase(at);
      pool_->use.cached -= bytes;
      pool_->use.used += bytes;
      pool_->use.peak = std::max(pool_->use.peak, pool_->use.used);
      return block;
    }
  }
  void* block = raw_allocate(bytes);
  if (!block) {
    free_cached();
    block = raw_allocate(bytes);
  }
  if (!block) {
    throw MemoryError(cat(name_, ": no memory for ", bytes, " bytes", name.empty() ? "" : " of '" + std::string(name) + "'",
                          " (", memory().used, " in use); use smaller batches or free tensors"));
  }
  const std::lock_guard lock(pool_->mutex);
  pool_->use.used += bytes;
  pool_->use.peak = std::max(pool_->use.peak, pool_->use.used);
  return block;
}

void Device::release(void* block, std::int64_t bytes) {
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->use.used -= bytes;
    if (pool_->use.cached + bytes <= most_cached) {
      pool_->free.emplace(bytes, block);
      pool_->use.cached += bytes;
      return;
    }
  }
  raw_release(block, bytes);
}

MemoryUse Device::memory() const {
  const std::lock_guard lock(pool_->mutex);
  return pool_->use;
}

void Device::free_cached() {
  std::multimap<std::int64_t, void*> blocks;
  {
    const std::lock_guard lock(pool_->mutex);
    blocks.swap(pool_->free);
    pool_->use.cached = 0;
  }
  for (const auto& [bytes, block] : blocks) raw_release(block, bytes);
}

}  // namespace mote
