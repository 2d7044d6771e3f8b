// Buffers, and the allocator that all devices share.
#include "runtime/device.h"

#include <unistd.h>

#include <deque>
#include <list>
#include <map>
#include <mutex>

#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

std::atomic<std::int64_t> buffers_alive{0};

// Freed blocks of a quarter of this machine's memory are kept.
std::int64_t most_cached() {
  static const std::int64_t bytes =
      std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE) / 4;
  return bytes;
}

}  // namespace

// ---- Buffer

Buffer::Buffer(Device& device, std::int64_t bytes, std::string name)
    : device_(&device), bytes_(bytes), name_(std::move(name)) {
  ++buffers_alive;
}

std::shared_ptr<Buffer> Buffer::make(Device& device, std::int64_t bytes, std::string name) {
  if (bytes < 0)
    throw MemoryError(cat("buffer '", name, "': ", bytes, " bytes; a size is not negative"));
  return std::shared_ptr<Buffer>(new Buffer(device, bytes, std::move(name)));
}

std::shared_ptr<Buffer> Buffer::part_of(std::shared_ptr<Buffer> parent, std::int64_t offset,
                                        std::int64_t bytes) {
  parent->check_range("a part", offset, bytes);
  auto part = make(*parent->device_, bytes, parent->name_);
  part->offset_ = offset + parent->offset_;
  part->parent_ = parent->parent_ ? parent->parent_ : std::move(parent);
  return part;
}

std::shared_ptr<Buffer> Buffer::borrow(Device& device, void* bytes, std::int64_t size,
                                       std::function<void()> release) {
  if (!bytes && size > 0) throw ValueError(cat("borrowing ", size, " bytes at address 0"));
  auto b = make(device, size, "borrowed");
  b->borrowed_ = true;
  b->data_ = bytes;
  b->release_ = std::move(release);
  return b;
}

Buffer::~Buffer() {
  --buffers_alive;
  if (release_) release_();
  void* data = data_;
  if (data && !borrowed_) device_->release(data, bytes_);
}

bool Buffer::allocated() const {
  return parent_ ? parent_->allocated() : borrowed_ || data_ != nullptr;
}

void* Buffer::data() {
  if (parent_) return static_cast<char*>(parent_->data()) + offset_;
  void* have = data_;
  if (have || borrowed_) return have;
  void* fresh = device_->allocate(bytes_, name_);
  if (data_.compare_exchange_strong(have, fresh)) return fresh;
  device_->release(fresh, bytes_);  // another thread was first
  return have;
}

void Buffer::check_range(const char* doing, std::int64_t offset, std::int64_t bytes) const {
  if (offset >= 0 && bytes >= 0 && offset <= bytes_ && bytes <= bytes_ - offset) return;
  throw InternalError(cat(doing, " of ", bytes, " bytes at ", offset, " is outside of the buffer '",
                          name_, "' of ", bytes_));
}

void Buffer::read(void* to, std::int64_t offset, std::int64_t bytes) {
  check_range("a read", offset, bytes);
  if (bytes == 0) return;
  device_->synchronize();
  device_->copy_out(to, static_cast<char*>(data()) + offset, bytes);
}

void Buffer::write(const void* from, std::int64_t offset, std::int64_t bytes) {
  check_range("a write", offset, bytes);
  if (bytes > 0) device_->copy_in(static_cast<char*>(data()) + offset, from, bytes);
  written();
}

std::int64_t Buffer::alive() { return buffers_alive; }

// ---- Device

// Freed blocks: by age, and by size with the latest at the end.
struct Device::Pool {
  struct Block {
    std::int64_t bytes;
    void* at;
  };
  mutable std::mutex mutex;
  std::list<Block> free;  // the oldest first
  std::map<std::int64_t, std::deque<std::list<Block>::iterator>> by_size;
  MemoryUse use;

  void count_used(std::int64_t bytes) {
    use.used += bytes;
    use.peak = std::max(use.peak, use.used);
  }
  void keep(Block block) {
    by_size[block.bytes].push_back(free.insert(free.end(), block));
    use.cached += block.bytes;
  }
  // The one of this size that was freed last: its bytes may still be near the processor.
  void* take(std::int64_t bytes) {
    const auto same = by_size.find(bytes);
    if (same == by_size.end()) return nullptr;
    void* at = same->second.back()->at;
    free.erase(same->second.back());
    same->second.pop_back();
    if (same->second.empty()) by_size.erase(same);
    use.cached -= bytes;
    return at;
  }
  Block take_oldest() {
    const Block block = free.front();
    const auto same = by_size.find(block.bytes);
    same->second.pop_front();
    if (same->second.empty()) by_size.erase(same);
    free.pop_front();
    use.cached -= block.bytes;
    return block;
  }
};

Device::Device(std::string name, Target target)
    : target_(std::move(target)), name_(std::move(name)), pool_(std::make_unique<Pool>()) {}
Device::~Device() = default;

std::vector<std::shared_ptr<Program>> Device::compile_all(std::span<const Source> sources) {
  std::vector<std::shared_ptr<Program>> out;
  for (const Source& s : sources) out.push_back(compile(s));
  return out;
}

void* Device::allocate(std::int64_t bytes, std::string_view name) {
  {
    const std::lock_guard lock(pool_->mutex);
    if (void* block = pool_->take(bytes)) {
      pool_->count_used(bytes);
      return block;
    }
  }
  void* block = raw_allocate(bytes);
  if (!block) {
    free_cached();
    block = raw_allocate(bytes);
  }
  if (!block) {
    const std::string whose = name.empty() ? "" : cat(" of '", std::string(name), "'");
    throw MemoryError(cat(name_, ": no memory for ", bytes, " bytes", whose, " (", memory().used,
                          " in use); use smaller batches or free tensors"));
  }
  const std::lock_guard lock(pool_->mutex);
  pool_->count_used(bytes);
  return block;
}

void Device::release(void* block, std::int64_t bytes) {
  std::vector<Pool::Block> surplus;
  {
    const std::lock_guard lock(pool_->mutex);
    pool_->use.used -= bytes;
    pool_->keep({bytes, block});
    while (pool_->use.cached > most_cached()) surplus.push_back(pool_->take_oldest());
  }
  for (const Pool::Block& b : surplus) raw_release(b.at, b.bytes);
}

MemoryUse Device::memory() const {
  const std::lock_guard lock(pool_->mutex);
  return pool_->use;
}

void Device::free_cached() {
  std::list<Pool::Block> blocks;
  {
    const std::lock_guard lock(pool_->mutex);
    blocks.swap(pool_->free);
    pool_->by_size.clear();
    pool_->use.cached = 0;
  }
  for (const Pool::Block& b : blocks) raw_release(b.at, b.bytes);
}

}  // namespace mote
