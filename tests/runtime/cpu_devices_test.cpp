// CPU and CLANG: the same kernels in IR and in C, what they refuse, and with which words.
#include <fcntl.h>
#include <sys/wait.h>

#include <fstream>
#include <thread>

#include "runtime/cpu/host.h"
#include "runtime/kernels.h"
#include "runtime/thread_pool.h"

namespace mote::testing {
namespace {

struct Kind {
  std::string name;
  std::unique_ptr<Device> (*make)(std::string_view);
  Source (*multiply_add)(std::int64_t, std::int64_t);
  Source (*sum_of_squares)(std::int64_t);
};

const Kind kinds[] = {
    {"CPU", make_cpu_device, multiply_add_ir, sum_of_squares_ir},
    {"CLANG", make_clang_device, multiply_add_c, sum_of_squares_c},
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class CpuDevices : public ::testing::TestWithParam<Kind> {
 protected:
  Setting no_cache{"MOTE_CACHE", "0"};
  std::unique_ptr<Device> device = GetParam().make("");
};

INSTANTIATE_TEST_SUITE_P(, CpuDevices, ::testing::ValuesIn(kinds),
                         [](const auto& kind) { return kind.param.name; });

class Threads {
 public:
  explicit Threads(int n) : before_(thread_count()) { set_thread_count(n); }
  ~Threads() { set_thread_count(before_); }

 private:
  int before_;
};

int open_files() {
  int n = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/self/fd"))
    ++n;
  return n;
}

TEST_P(CpuDevices, RunAKernelOnAnyNumberOfThreads) {
  const auto program = device->compile(GetParam().multiply_add(100'000, 64));
  for (const int threads : {1, 2, 3}) {
    const Threads set(threads);
    for (const std::int64_t n : {1, 63, 64, 65, 1000, 100'000})
      EXPECT_TRUE(multiply_add_is_right(*device, *program, n)) << n << " on " << threads;
  }
}

TEST_P(CpuDevices, PhasesSeeSharedAndOwnScratchAndVariables) {
  const auto program = device->compile(GetParam().sum_of_squares(10'000));
  for (const int threads : {1, 2, 3}) {
    const Threads set(threads);
    for (const std::int64_t n : {1, 17, 10'000}) {
      const std::int64_t want = 5 + (n - 1) * n * (2 * n - 1) / 6;
      EXPECT_EQ(run_sum_of_squares(*device, *program, n, 5), want) << n << " on " << threads;
    }
  }
  EXPECT_EQ(device->memory().used, 0);
}

// The buffer has its exact size, so that one element past its end is caught.
TEST(ClangDevice, AKernelThatReadsOutsideIsCaughtByTheAddressSanitizer) {
  if (!address_sanitizer) GTEST_SKIP() << "needs the address sanitizer";
  const Setting no_cache("MOTE_CACHE", "0");
  const auto device = make_clang_device("");
  const Source source{.name = "outside",
                      .text =
                          "void outside_0(void* const* s, void* a, void* b, const long* v, "
                          "long begin, long end) {\n"
                          "  ((float*)s[0])[0] = ((const float*)s[1])[v[0]];\n}\n",
                      .phases = {{"outside_0", 1}},
                      .slots = 2,
                      .variables = 1};
  const auto program = device->compile(source);
  const auto to = Buffer::make(*device, 4), from = Buffer::make(*device, 20);
  void* const slots[] = {to->data(), from->data()};
  const std::int64_t tasks[] = {1}, last[] = {4}, past[] = {5};
  program->run(slots, last, tasks);
  EXPECT_DEATH(program->run(slots, past, tasks), "heap-buffer-overflow");
}

TEST_P(CpuDevices, CompileFastToo) {
  Source source = GetParam().multiply_add(1000, 64);
  source.fast_compile = true;
  EXPECT_TRUE(multiply_add_is_right(*device, *device->compile(source), 1000));
}

TEST_P(CpuDevices, CompileManyAtOnceInOrder) {
  std::vector<Source> sources;
  for (int i = 0; i < 5; ++i) sources.push_back(GetParam().sum_of_squares(100 + i));
  sources.push_back(GetParam().multiply_add(100, 64));
  const auto programs = device->compile_all(sources);
  ASSERT_EQ(programs.size(), 6u);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(run_sum_of_squares(*device, *programs[i], 3, 0), 5);
  EXPECT_TRUE(multiply_add_is_right(*device, *programs[5], 100));
  EXPECT_TRUE(device->compile_all({}).empty());
}

TEST_P(CpuDevices, ThrowTheFirstFailureOfMany) {
  std::vector<Source> sources(4, GetParam().multiply_add(100, 64));
  sources[2].text = "this is no kernel";
  EXPECT_TRUE(
      has(message_of<CompileError>([&] { device->compile_all(sources); }), "this is no kernel"));
}

TEST_P(CpuDevices, CompileAndRunFromManyThreads) {
  std::atomic<int> right{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        const std::int64_t n = 500 + t;
        const auto program = device->compile(GetParam().multiply_add(n, 16));
        for (int k = 0; k < 20; ++k) right += multiply_add_is_right(*device, *program, n);
      });
    }
  }
  EXPECT_EQ(right, 80);
}

TEST_P(CpuDevices, SayWhatTheCompilerSaidAndShowTheSource) {
  Source source = GetParam().multiply_add(100, 64);
  source.name = "broken_kernel";
  source.text += "\n%% not a line of any language\n";
  const std::string text = message_of<CompileError>([&] { device->compile(source); });
  EXPECT_TRUE(has(text, GetParam().name + ": "));
  EXPECT_TRUE(has(text, "refused the kernel 'broken_kernel'"));
  EXPECT_TRUE(has(text, "error: "));                          // the compiler's words
  EXPECT_TRUE(has(text, "%% not a line of any language\n"));  // the source
}

TEST_P(CpuDevices, LeaveNothingBehind) {
  device->compile(GetParam().multiply_add(100, 64));
  const int before = open_files();
  Source broken = GetParam().multiply_add(100, 64);
  broken.text = "broken";
  for (int i = 0; i < 3; ++i) {
    device->compile(GetParam().multiply_add(100 + i, 64));
    EXPECT_THROW(device->compile(broken), CompileError);
  }
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST_P(CpuDevices, NeedTheFunctionsThatTheSourceNames) {
  Source source = GetParam().multiply_add(100, 64);
  source.phases[0].symbol = "other";
  EXPECT_EQ(message_of<CompileError>([&] { device->compile(source); }),
            "the compiled object has no function 'other'");
}

TEST_P(CpuDevices, RefuseALaunchWithTooFewArguments) {
  const auto program = device->compile(GetParam().multiply_add(100, 64));
  EXPECT_EQ(message_of<InternalError>([&] { program->run({}, {}, {}); }),
            "kernel 'multiply_add' is run with 0 slots, 0 variables, 0 phases; it has 4, 0, 1");
}

TEST_P(CpuDevices, ShowTheirMachineCode) {
  const auto program = device->compile(GetParam().multiply_add(100, 64));
  EXPECT_EQ(program->machine_code().substr(0, 4),
            "\x7f"
            "ELF");
}

TEST_P(CpuDevices, TakeNoArguments) {
  EXPECT_EQ(message_of<DeviceError>([&] { GetParam().make("x"); }),
            GetParam().name + ": 'x' is not known; write " + GetParam().name + " alone");
}

TEST_P(CpuDevices, KnowTheChip) {
  const Target& t = device->target();
  EXPECT_EQ(t.renderer, GetParam().name == "CPU" ? "LLVM" : "C");
  EXPECT_TRUE(t.vector_bytes == 16 || t.vector_bytes == 32);
  EXPECT_GE(t.l1_bytes, 8 << 10);
  EXPECT_GE(t.l2_bytes, t.l1_bytes);
  EXPECT_EQ(t.parallel_width, Target().parallel_width);  // whatever the number of threads
}

// ---- CPU alone

TEST(Cpu, SaysWhatToInstall) {
  const Setting nowhere("MOTE_LLVM", "/nowhere/libLLVM.so");
  EXPECT_EQ(message_of<DeviceError>([] { make_cpu_device(""); }),
            "CPU: MOTE_LLVM names '/nowhere/libLLVM.so', which is not there");
}

TEST(Cpu, SaysWhenWhatIsThereIsNoLlvm) {
  const Folder folder;
  const std::string file = folder.path() + "/libLLVM.so";
  std::ofstream(file) << "no library";
  const Setting found("MOTE_LLVM", file), no_cache("MOTE_CACHE", "0");
  const auto device = make_cpu_device("");
  EXPECT_TRUE(has(message_of<DeviceError>([&] { device->compile(multiply_add_ir(10)); }),
                  "CPU: LLVM could not be loaded: "));
}

TEST(Cpu, VerifiesWhenAsked) {
  const Setting verify("MOTE_VERIFY", "1"), no_cache("MOTE_CACHE", "0");
  const auto device = make_cpu_device("");
  Source source = multiply_add_ir(10);
  source.text =
      "define void @multiply_add(ptr %a, ptr %b, ptr %c, ptr %d, i64 %e, i64 %f) {\n"
      "entry:\n  br label %loop\nloop:\n  %x = phi i64 [ 0, %entry ], [ %y, %loop ], [ 1, %off ]\n"
      "  %y = add i64 %x, 1\n  br label %loop\noff:\n  ret void\n}\n";
  EXPECT_TRUE(has(message_of<CompileError>([&] { device->compile(source); }),
                  "CPU: LLVM refused the kernel 'multiply_add' when verifying it"));
}

TEST(Cpu, SurvivesWhatLlvmCallsFatal) {
  if (address_sanitizer) GTEST_SKIP() << "what LLVM had allocated is lost";
  const Setting no_cache("MOTE_CACHE", "0"), no_verifier("MOTE_VERIFY", "0");
  const auto device = make_cpu_device("");
  Source source = multiply_add_ir(10);
  source.text =
      "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
      "define void @multiply_add(ptr %a, ptr %b, ptr %c, ptr %d, i64 %e, i64 %f) {\n"
      "  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  store i32 %x, ptr %a\n  ret void\n}\n";
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(has(message_of<CompileError>([&] { device->compile(source); }),
                    "CPU: LLVM cannot make code for the kernel 'multiply_add': "));
    EXPECT_TRUE(multiply_add_is_right(*device, *device->compile(multiply_add_ir(10)), 10));
  }
}

// ---- CLANG alone

TEST(Clang, SaysWhatToInstall) {
  const Setting nowhere("MOTE_CC", "/nowhere/cc");
  EXPECT_EQ(message_of<DeviceError>([] { make_clang_device(""); }),
            "CLANG: no C compiler was found (tried /nowhere/cc); install clang or gcc, or set "
            "MOTE_CC");
}

TEST(Clang, TakesAnyCompiler) {
  const Setting no_cache("MOTE_CACHE", "0");
  for (const char* name : {"gcc", "cc", "clang", "clang-19"}) {
    const Setting compiler("MOTE_CC", name);
    std::unique_ptr<Device> device;
    try {
      device = make_clang_device("");
    } catch (const DeviceError&) {
      continue;  // not on this machine
    }
    EXPECT_TRUE(multiply_add_is_right(*device, *device->compile(multiply_add_c(100)), 100)) << name;
    EXPECT_EQ(run_sum_of_squares(*device, *device->compile(sum_of_squares_c(100)), 4, 0), 14);
  }
}

TEST(Clang, SaysWhenTheCompilerDies) {
  const Setting compiler("MOTE_CC", "/bin/false"), no_cache("MOTE_CACHE", "0");
  const auto device = make_clang_device("");
  EXPECT_TRUE(has(message_of<CompileError>([&] { device->compile(multiply_add_c(10)); }),
                  "CLANG: /bin/false refused the kernel 'multiply_add'"));
}

}  // namespace
}  // namespace mote::testing
