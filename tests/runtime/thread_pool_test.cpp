// Each task runs exactly once, whatever the number of threads, callers, tasks and chunks.
#include "runtime/thread_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>

#include "runtime/kernels.h"

namespace mote::testing {
namespace {

class Threads {
 public:
  explicit Threads(int n) : before_(thread_count()) { set_thread_count(n); }
  ~Threads() { set_thread_count(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// slots[0]: a counter for each task.
void count_task(void* const* slots, void*, void*, const std::int64_t*, std::int64_t begin,
                std::int64_t end) {
  auto* counts = static_cast<std::atomic<int>*>(slots[0]);
  for (std::int64_t i = begin; i < end; ++i) counts[i].fetch_add(1, std::memory_order_relaxed);
}

bool each_ran_once(std::int64_t tasks, std::int64_t grain) {
  std::vector<std::atomic<int>> counts(static_cast<std::size_t>(tasks));
  void* slot = counts.data();
  run_phase(count_task, &slot, nullptr, 0, nullptr, tasks, grain);
  for (const auto& n : counts)
    if (n != 1) return false;
  return true;
}

TEST(ThreadPool, RunsEachTaskOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const Threads set(threads);
    for (const std::int64_t tasks : {1, 2, 3, 7, 64, 1000})
      for (const std::int64_t grain : {1, 2, 3, 64, 5000})
        EXPECT_TRUE(each_ran_once(tasks, grain)) << threads << ": " << tasks << " by " << grain;
  }
}

TEST(ThreadPool, TakesOddNumbers) {
  const Threads set(2);
  EXPECT_TRUE(each_ran_once(0, 1));
  EXPECT_TRUE(each_ran_once(10, 0));
  EXPECT_TRUE(each_ran_once(10, -5));
  EXPECT_TRUE(each_ran_once(10, INT64_MAX));
  run_phase(count_task, nullptr, nullptr, 0, nullptr, -3, 1);
}

TEST(ThreadPool, WakesSleepers) {
  const Threads set(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // longer than they spin
    EXPECT_TRUE(each_ran_once(100, 1));
  }
}

TEST(ThreadPool, TakesManyCallers) {
  const Threads set(2);
  std::atomic<int> right{0};
  {
    std::vector<std::jthread> callers;
    for (int t = 0; t < 4; ++t) {
      callers.emplace_back([&right] {
        for (int i = 0; i < 300; ++i) right += each_ran_once(50, 2);
      });
    }
  }
  EXPECT_EQ(right, 1200);
}

TEST(ThreadPool, TheCountMayChangeWhileOthersRun) {
  const Threads set(2);
  std::atomic<bool> stop{false};
  std::jthread changer([&] {
    for (int n = 0; !stop; ++n) set_thread_count(1 + n % 4);
  });
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(each_ran_once(40, 1));
  stop = true;
}

TEST(ThreadPool, GivesEachThreadItsOwnAlignedScratch) {
  const auto fill = [](void* const* slots, void*, void* scratch, const std::int64_t* variables,
                       std::int64_t begin, std::int64_t) {
    const auto bytes = static_cast<std::size_t>(variables[0]);
    auto* failures = static_cast<std::atomic<int>*>(slots[0]);
    if (reinterpret_cast<std::uintptr_t>(scratch) % 64 != 0) ++*failures;
    auto* own = static_cast<volatile unsigned char*>(scratch);
    const auto mine = static_cast<unsigned char>(begin);
    std::memset(scratch, mine, bytes);
    for (std::size_t i = 0; i < bytes; i += 61)
      if (own[i] != mine) ++*failures;
  };
  const Threads set(3);
  std::atomic<int> failures{0};
  void* slot = &failures;
  for (const std::int64_t bytes : {1, 64, 5000, 100'000, 64})
    run_phase(fill, &slot, nullptr, bytes, &bytes, 200, 1);
  EXPECT_EQ(failures, 0);
}

TEST(ThreadPool, SaysWhenThereIsNoScratch) {
  for (const int threads : {1, 2}) {
    const Threads set(threads);
    const std::int64_t bytes = std::int64_t{1} << 60;
    EXPECT_EQ(message_of<MemoryError>(
                  [&] { run_phase(count_task, nullptr, nullptr, bytes, nullptr, 10, 1); }),
              cat("no memory for ", bytes, " bytes of a kernel's scratch"));
    EXPECT_TRUE(each_ran_once(100, 1));
  }
}

TEST(ThreadPool, CountsAreChecked) {
  for (const int n : {0, -1, 257, 1 << 30})
    EXPECT_EQ(message_of<ValueError>([&] { set_thread_count(n); }),
              cat("set_threads: ", n, " is not in 1..256"));
  EXPECT_GE(thread_count(), 1);
}

// A forked child has no workers: it neither hangs when it runs a kernel nor when it exits.
TEST(ThreadPool, AChildMayRunKernelsAndExit) {
  if (address_sanitizer || thread_sanitizer) GTEST_SKIP() << "the workers' memory is lost by fork";
  const Threads set(2);
  EXPECT_TRUE(each_ran_once(100, 1));
  const pid_t child = fork();
  if (child == 0) std::exit(each_ran_once(100, 1) && each_ran_once(100, 1) ? 0 : 1);
  int status = -1;
  for (int i = 0; i < 2000 && waitpid(child, &status, WNOHANG) == 0; ++i) usleep(5000);
  EXPECT_TRUE(WIFEXITED(status)) << "it hung";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(each_ran_once(100, 1));
}

}  // namespace
}  // namespace mote::testing
