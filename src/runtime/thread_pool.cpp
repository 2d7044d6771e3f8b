#include "runtime/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "base/flags.h"
#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

struct Job {
  PhaseFunction function;
  void* const* slots;
  void* shared;
  std::int64_t scratch_bytes;
  const std::int64_t* variables;
  std::int64_t tasks, grain;
};

// A thread's scratch grows to the largest kernel it has met.
void* thread_scratch(std::int64_t bytes) {
  struct Block {
    void* at = nullptr;
    std::int64_t size = 0;
    ~Block() { std::free(at); }
  };
  thread_local Block block;
  if (bytes > block.size) {
    std::free(block.at);
    block.size = (bytes + 4095) / 4096 * 4096;
    block.at = std::aligned_alloc(64, static_cast<std::size_t>(block.size));
    if (!block.at) {
      block.size = 0;
      throw std::bad_alloc();
    }
  }
  return block.at;
}

class Pool {
 public:
  explicit Pool(int workers) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Pool() {
    stop_ = true;
    ++round_;
    round_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  void run(const Job& job) {
    job_ = job;
    next_ = 0;
    busy_ = static_cast<int>(threads_.size());
    ++round_;
    round_.notify_all();
    claim();
    for (int left = busy_, spins = 0; left > 0; left = busy_)
      if (++spins > 4000) busy_.wait(left);
  }

 private:
  void claim() {
    void* scratch = thread_scratch(job_.scratch_bytes);
    for (;;) {
      const std::int64_t begin = next_.fetch_add(job_.grain);
      if (begin >= job_.tasks) return;
      job_.function(job_.slots, job_.shared, scratch, job_.variables, begin, std::min(begin + job_.grain, job_.tasks));
    }
  }

  void work() {
    std::uint32_t seen = 0;
    for (;;) {
      for (int spins = 0; round_ == seen; )
        if (++spins > 20000) round_.wait(seen);
      seen = round_;
      if (stop_) return;
      claim();
      if (--busy_ == 0) busy_.notify_all();
    }
  }

  std::vector<std::thread> threads_;
  Job job_{};
  std::atomic<std::int64_t> next_{0};
  std::atomic<int> busy_{0};
  std::atomic<std::uint32_t> round_{0};
  std::atomic<bool> stop_{false};
};

int default_threads() {
  const std::int64_t asked = flag_int("MOTE_THREADS");
  if (asked > 0) return static_cast<int>(std::min<std::int64_t>(asked, 256));
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? std::max(1, CPU_COUNT(&cores)) : 1;
}

struct Shared {
  std::mutex mutex;               // held by the launch that uses the workers
  std::atomic<int> count{0};      // 0: not asked yet
  std::unique_ptr<Pool> pool;
  int pool_threads = 0;
};

Shared& shared() {
  static Shared all;              // its workers end with the process
  return all;
}

void run_alone(const Job& job) {
  job.function(job.slots, job.shared, thread_scratch(job.scratch_bytes), job.variables, 0, job.tasks);
}

}  // namespace

int thread_count() {
  int n = shared().count;
  if (n == 0) shared().count = n = default_threads();
  return n;
}

void set_thread_count(int n) {
  if (n < 1 || n > 256) throw ValueError(cat("set_threads: ", n, " is not in 1..256"));
  shared().count = n;
}

void run_phase(PhaseFunction function, void* const* slots, void* scratch_shared, std::int64_t scratch_bytes,
               const std::int64_t* variables, std::int64_t tasks, std::int64_t grain) {
  if (tasks <= 0) return;
  const Job job{function, slots, scratch_shared, scratch_bytes, variables, tasks, std::max<std::int64_t>(grain, 1)};
  const int threads = thread_count();
  if (threads == 1 || tasks <= job.grain) return run_alone(job);
  Shared& s = shared();
  const std::unique_lock lock(s.mutex, std::try_to_lock);
  if (!lock) return run_alone(job);
  if (s.pool_threads != threads) {
    s.pool.reset();
    s.pool = std::make_unique<Pool>(threads - 1);
    s.pool_threads = threads;
  }
  s.pool->run(job);
}

}  // namespace mote
