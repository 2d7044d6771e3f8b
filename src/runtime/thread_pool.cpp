// A launch opens a round, whoever is awake joins it, and it ends when no task is left and all who
// joined have left: a worker that sleeps or has no core holds nobody up.
//
//   state_:  open, 0 -> open, 1 -> open, 2 -> closed, 2 -> closed, 1 -> closed, 0
#include "runtime/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "base/flags.h"
#include "base/text.h"
#include "mote/error.h"

namespace mote {
namespace {

constexpr int most_threads = 256;
constexpr std::int64_t most_scratch = std::int64_t{1} << 40;
constexpr std::chrono::microseconds spin_time{200};  // longer than between kernels of one program

struct Job {
  PhaseFunction function = nullptr;
  void* const* slots = nullptr;
  void* shared = nullptr;
  std::int64_t scratch_bytes = 0;
  const std::int64_t* variables = nullptr;
  std::int64_t tasks = 0, grain = 1;
};

// This thread's scratch, as large as the largest kernel that it has met. Null when there is no
// memory.
void* thread_scratch(std::int64_t bytes) {
  struct Block {
    void* at = nullptr;
    std::int64_t size = 0;
    ~Block() { std::free(at); }
  };
  thread_local Block block;
  if (bytes <= block.size) return block.at;
  if (bytes > most_scratch) return nullptr;
  std::free(block.at);
  block.size = (bytes + 4095) / 4096 * 4096;
  block.at = std::aligned_alloc(64, static_cast<std::size_t>(block.size));
  if (!block.at) block.size = 0;
  return block.at;
}

void* scratch_of_caller(const Job& job) {
  void* scratch = thread_scratch(job.scratch_bytes);
  if (scratch || job.scratch_bytes == 0) return scratch;
  throw MemoryError(cat("no memory for ", job.scratch_bytes, " bytes of a kernel's scratch"));
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns once `word` is no longer `old`: spins for a while, then sleeps.
void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t old) {
  const auto end = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 64; ++i) {
      if (word != old) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  word.wait(old);
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
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run(const Job& job) {
    void* scratch = scratch_of_caller(job);
    job_ = job;
    next_ = 0;
    state_ = open;
    ++round_;
    round_.notify_all();
    claim(scratch);
    state_ &= ~open;
    for (std::uint32_t joined; (joined = state_) != 0;) wait_while(state_, joined);
  }

 private:
  static constexpr std::uint32_t open = 1u << 31;  // the other bits of state_ count who has joined

  void claim(void* scratch) {
    for (;;) {
      const std::int64_t begin = next_.fetch_add(job_.grain);
      if (begin >= job_.tasks) return;
      const std::int64_t end = begin + std::min(job_.grain, job_.tasks - begin);
      job_.function(job_.slots, job_.shared, scratch, job_.variables, begin, end);
    }
  }

  bool join() {  // false: the round is over
    std::uint32_t state = state_;
    while (state & open)
      if (state_.compare_exchange_weak(state, state + 1)) return true;
    return false;
  }

  void work() {
    for (std::uint32_t seen = 0;;) {
      wait_while(round_, seen);
      seen = round_;
      if (stop_) return;
      if (!join()) continue;
      void* scratch = thread_scratch(job_.scratch_bytes);
      // Without scratch the others do this one's share.
      if (scratch || job_.scratch_bytes == 0) claim(scratch);
      if (--state_ == 0) state_.notify_all();
    }
  }

  std::vector<std::thread> threads_;
  Job job_;  // written while state_ is 0
  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::atomic<std::uint32_t> state_{0};
  alignas(64) std::atomic<std::uint32_t> round_{0};
  std::atomic<bool> stop_{false};
};

struct Shared {
  std::atomic<bool> taken{false};  // by the launch that uses the workers
  std::atomic<int> count{0};       // 0: not asked yet
  std::unique_ptr<Pool> pool;
  int pool_threads = 0;
  Shared* parent = nullptr;
};

std::atomic<Shared*> current{nullptr};

// A forked child has none of the workers: it starts anew, and the parent's pool is left alone.
void start_anew() {
  Shared* before = current;
  auto* fresh = new Shared;
  fresh->count = before->count.load();
  fresh->parent = before;
  current = fresh;
}

// Never destroyed: workers sleep until the process ends, and no kernel outlives its pool.
Shared& shared() {
  static const bool made = [] {
    current = new Shared;
    return pthread_atfork(nullptr, nullptr, start_anew) == 0;
  }();
  (void)made;
  return *current;
}

int default_threads() {
  const std::int64_t asked = flag_int("MOTE_THREADS");
  if (asked < 0 || asked > most_threads)
    throw ValueError(cat("MOTE_THREADS: ", asked, " is not in 0..", most_threads));
  if (asked > 0) return static_cast<int>(asked);
  cpu_set_t cores;
  const bool known = sched_getaffinity(0, sizeof cores, &cores) == 0;
  const int n = known ? CPU_COUNT(&cores) : static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(n, 1, most_threads);
}

void run_alone(const Job& job) {
  job.function(job.slots, job.shared, scratch_of_caller(job), job.variables, 0, job.tasks);
}

}  // namespace

int thread_count() {
  int n = shared().count;
  if (n == 0) shared().count = n = default_threads();
  return n;
}

void set_thread_count(int n) {
  if (n < 1 || n > most_threads)
    throw ValueError(cat("set_threads: ", n, " is not in 1..", most_threads));
  shared().count = n;
}

void run_phase(PhaseFunction function, void* const* slots, void* shared_scratch,
               std::int64_t scratch_bytes, const std::int64_t* variables, std::int64_t tasks,
               std::int64_t grain) {
  if (tasks <= 0) return;
  grain = std::clamp<std::int64_t>(grain, 1, tasks);
  const Job job{function, slots, shared_scratch, scratch_bytes, variables, tasks, grain};
  const int threads = thread_count();
  Shared& s = shared();
  if (threads == 1 || grain == tasks || s.taken.exchange(true)) return run_alone(job);
  struct Taken {
    std::atomic<bool>& flag;
    ~Taken() { flag = false; }
  } const taken{s.taken};
  if (s.pool_threads != threads) {
    s.pool_threads = 0;
    s.pool.reset();
    s.pool = std::make_unique<Pool>(threads - 1);
    s.pool_threads = threads;
  }
  s.pool->run(job);
}

}  // namespace mote
