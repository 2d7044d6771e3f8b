// Buffers and the allocator, on a device whose memory the test controls.
#include <csignal>
#include <cstdint>
#include <set>
#include <thread>

#include "runtime/cpu/host.h"
#include "runtime/kernels.h"

namespace mote::testing {
namespace {

// Host memory, of which only `limit` bytes exist.
class SmallDevice final : public Device {
 public:
  SmallDevice() : Device("SMALL", Target()) {}
  ~SmallDevice() override { free_cached(); }
  std::shared_ptr<Program> compile(const Source&) override { return nullptr; }
  void copy_in(void* to, const void* from, std::int64_t n) override {
    std::copy_n(static_cast<const char*>(from), n, static_cast<char*>(to));
  }
  void copy_out(void* to, const void* from, std::int64_t n) override { copy_in(to, from, n); }

  std::atomic<std::int64_t> limit{1 << 20}, taken{0}, calls{0};

 protected:
  void* raw_allocate(std::int64_t bytes) override {
    ++calls;
    if (taken + bytes > limit) return nullptr;
    taken += bytes;
    return std::aligned_alloc(64, static_cast<std::size_t>(bytes / 64 * 64 + 64));
  }
  void raw_release(void* block, std::int64_t bytes) override {
    taken -= bytes;
    std::free(block);
  }
};

TEST(Buffer, HasNoBytesUntilTheyAreAskedFor) {
  SmallDevice device;
  const auto b = Buffer::make(device, 1000, "weights");
  EXPECT_FALSE(b->allocated());
  EXPECT_EQ(device.memory().used, 0);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b->data()) % 64, 0u);
  EXPECT_TRUE(b->allocated());
  EXPECT_EQ(device.memory().used, 1000);
}

TEST(Buffer, ReadsWhatWasWritten) {
  SmallDevice device;
  const auto b = Buffer::make(device, 16);
  const char text[] = "fifteen letters";
  b->write(text, 0, 16);
  char back[8] = {};
  b->read(back, 8, 7);
  EXPECT_STREQ(back, "letters");
  EXPECT_EQ(b->version(), 1u);
}

TEST(Buffer, MayBeEmpty) {
  SmallDevice device;
  const auto b = Buffer::make(device, 0);
  EXPECT_NE(b->data(), nullptr);
  b->write(nullptr, 0, 0);
  b->read(nullptr, 0, 0);
}

TEST(Buffer, RefusesWhatIsOutside) {
  SmallDevice device;
  const auto b = Buffer::make(device, 16, "b");
  char byte = 0;
  const std::int64_t most = INT64_MAX;
  const std::int64_t ranges[][2] = {{0, 17}, {16, 1}, {-1, 1}, {0, -1}, {most, most}, {1, most}};
  for (const auto& [offset, bytes] : ranges) {
    EXPECT_THROW(b->read(&byte, offset, bytes), InternalError);
    EXPECT_THROW(b->write(&byte, offset, bytes), InternalError);
    EXPECT_THROW(Buffer::part_of(b, offset, bytes), InternalError);
  }
  EXPECT_EQ(message_of<InternalError>([&] { b->read(&byte, 10, 7); }),
            "a read of 7 bytes at 10 is outside of the buffer 'b' of 16");
  EXPECT_EQ(message_of<MemoryError>([&] { Buffer::make(device, -1, "b"); }),
            "buffer 'b': -1 bytes; a size is not negative");
}

TEST(Buffer, PartsShareBytesAndVersion) {
  SmallDevice device;
  auto whole = Buffer::make(device, 100);
  auto part = Buffer::part_of(whole, 20, 60);
  const auto inner = Buffer::part_of(part, 10, 10);
  EXPECT_EQ(inner->data(), static_cast<char*>(whole->data()) + 30);
  inner->write("0123456789", 0, 10);
  EXPECT_EQ(whole->version(), 1u);
  EXPECT_EQ(part->version(), 1u);
  char c = 0;
  whole->read(&c, 35, 1);
  EXPECT_EQ(c, '5');
  whole.reset();
  part.reset();
  inner->read(&c, 9, 1);  // the bytes live as long as a part does
  EXPECT_EQ(c, '9');
  EXPECT_EQ(device.memory().used, 100);
}

TEST(Buffer, BorrowsAndGivesBack) {
  SmallDevice device;
  int memory[4] = {1, 2, 3, 4};
  int released = 0;
  {
    const auto b = Buffer::borrow(device, memory, 16, [&] { ++released; });
    EXPECT_EQ(b->data(), memory);
    const auto part = Buffer::part_of(b, 4, 4);
    EXPECT_EQ(part->data(), memory + 1);
    Buffer::borrow(device, memory, 16, {});  // nobody wants to know
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(device.memory().used, 0);
  EXPECT_EQ(device.calls, 0);
  const auto none = Buffer::borrow(device, nullptr, 0, {});
  EXPECT_TRUE(none->allocated());
  EXPECT_EQ(none->data(), nullptr);
  EXPECT_EQ(message_of<ValueError>([&] { Buffer::borrow(device, nullptr, 4, {}); }),
            "borrowing 4 bytes at address 0");
}

TEST(Buffer, AreCounted) {
  SmallDevice device;
  const std::int64_t before = Buffer::alive();
  {
    const auto a = Buffer::make(device, 1);
    const auto b = Buffer::part_of(a, 0, 1);
    EXPECT_EQ(Buffer::alive(), before + 2);
  }
  EXPECT_EQ(Buffer::alive(), before);
}

TEST(Buffer, IsAllocatedOnceByManyThreads) {
  SmallDevice device;
  for (int round = 0; round < 50; ++round) {
    const auto b = Buffer::make(device, 64);
    void* seen[4] = {};
    {
      std::vector<std::jthread> threads;
      for (void*& at : seen) threads.emplace_back([&b, &at] { at = b->data(); });
    }
    for (void* at : seen) EXPECT_EQ(at, b->data());
    EXPECT_EQ(device.memory().used, 64);
  }
  EXPECT_EQ(device.memory().used, 0);
}

TEST(Allocator, UsesFreedBlocksAgain) {
  SmallDevice device;
  void* first = device.allocate(1000, "");
  device.release(first, 1000);
  EXPECT_EQ(device.memory().cached, 1000);
  void* other = device.allocate(999, "");
  EXPECT_NE(other, first);
  EXPECT_EQ(device.allocate(1000, ""), first);
  EXPECT_EQ(device.calls, 2);
  const MemoryUse use = device.memory();
  EXPECT_EQ(use.used, 1999);
  EXPECT_EQ(use.cached, 0);
  EXPECT_EQ(use.peak, 1999);
  device.release(first, 1000);
  device.free_cached();
  EXPECT_EQ(device.memory().cached, 0);
  EXPECT_EQ(device.taken, 999);
  device.release(other, 999);
}

TEST(Allocator, FreesWhatItKeepsBeforeItGivesUp) {
  SmallDevice device;
  device.limit = 1500;
  device.release(device.allocate(1000, ""), 1000);
  void* large = device.allocate(1400, "large");
  EXPECT_EQ(device.memory().cached, 0);
  EXPECT_EQ(message_of<MemoryError>([&] { device.allocate(200, "logits"); }),
            "SMALL: no memory for 200 bytes of 'logits' (1400 in use); use smaller batches or free "
            "tensors");
  EXPECT_EQ(device.memory().used, 1400);
  device.release(large, 1400);
  EXPECT_EQ(device.memory().used, 0);
  EXPECT_EQ(device.memory().peak, 1400);
}

TEST(Allocator, IsRightInManyThreads) {
  SmallDevice device;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&device, t] {
        for (int i = 0; i < 500; ++i) {
          const std::int64_t bytes = 64 * (1 + (i * 7 + t) % 5);
          auto* block = static_cast<std::int64_t*>(device.allocate(bytes, ""));
          block[0] = block[bytes / 8 - 1] = t;
          std::this_thread::yield();
          ASSERT_EQ(block[0], t);
          ASSERT_EQ(block[bytes / 8 - 1], t);
          device.release(block, bytes);
          if (i % 100 == 0) device.free_cached();
        }
      });
    }
  }
  EXPECT_EQ(device.memory().used, 0);
  device.free_cached();
  EXPECT_EQ(device.taken, 0);
}

TEST(Ref, HoldsBytesAndCompilesNothing) {
  const auto ref = make_ref_device("");
  const auto b = Buffer::make(*ref, 4);
  const int seven = 7;
  b->write(&seven, 0, 4);
  int back = 0;
  b->read(&back, 0, 4);
  EXPECT_EQ(back, 7);
  EXPECT_EQ(message_of<InternalError>([&] { ref->compile({}); }), "REF: it compiles nothing");
  EXPECT_THROW(make_ref_device("x"), DeviceError);
}

TEST(Ref, NamesTheBufferThatDoesNotFit) {
  const auto ref = make_ref_device("");
  for (const std::int64_t bytes : {std::int64_t{1} << 50, INT64_MAX}) {
    const std::string text =
        message_of<MemoryError>([&] { Buffer::make(*ref, bytes, "embedding")->data(); });
    EXPECT_TRUE(has(text, cat("REF: no memory for ", bytes, " bytes of 'embedding'")));
  }
}

TEST(GuardDeathTest, EndsEachBlockAtAPageThatFaults) {
  const Setting guard("MOTE_GUARD", "1");
  const auto device = make_ref_device("");
  for (const std::int64_t bytes : {1, 4, 100, 4096, 5000}) {
    const auto b = Buffer::make(*device, bytes);
    auto* at = static_cast<volatile char*>(b->data());
    at[0] = 1;
    at[bytes - 1] = 1;
    EXPECT_DEATH(at[bytes] = 1, "") << bytes;
  }
  EXPECT_THROW(Buffer::make(*device, INT64_MAX)->data(), MemoryError);
  Buffer::make(*device, 0)->data();
  EXPECT_EQ(device->memory().used, 0);
}

}  // namespace
}  // namespace mote::testing
