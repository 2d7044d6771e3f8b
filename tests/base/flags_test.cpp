#include "base/flags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <vector>

#include "base/trace.h"
#include "mote/error.h"

namespace mote {
namespace {

// A flag set for the length of one test.
class Setting {
 public:
  Setting(std::string_view name, std::string value) : name_(name) {
    set_flag(name_, std::move(value));
  }
  ~Setting() { unset_flag(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  std::string_view name_;
};

TEST(Flags, EachHasItsOwnNameAndASentence) {
  std::set<std::string_view> names;
  for (const Flag& f : all_flags()) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_EQ(f.name.substr(0, 5), "MOTE_");
    EXPECT_GT(f.help.size(), 10u) << f.name;
  }
}

TEST(Flags, WhatIsSetComesBeforeTheEnvironment) {
  ::unsetenv("MOTE_THREADS");
  EXPECT_EQ(flag_int("MOTE_THREADS"), 0);
  ::setenv("MOTE_THREADS", "3", 1);
  EXPECT_EQ(flag_int("MOTE_THREADS"), 3);
  {
    const Setting five("MOTE_THREADS", "5");
    EXPECT_EQ(flag_int("MOTE_THREADS"), 5);
  }
  EXPECT_EQ(flag_int("MOTE_THREADS"), 3);
  ::setenv("MOTE_THREADS", "", 1);  // empty counts as not set
  EXPECT_EQ(flag_int("MOTE_THREADS"), 0);
  ::unsetenv("MOTE_THREADS");
}

TEST(Flags, AValueThatIsNoIntegerSaysWhatTheFlagMeans) {
  const Setting odd("MOTE_THREADS", "two");
  try {
    flag_int("MOTE_THREADS");
    FAIL() << "nothing was thrown";
  } catch (const ValueError& e) {
    EXPECT_STREQ(e.what(),
                 "MOTE_THREADS: 'two' is no integer; threads of the CPU devices; 0: all cores. "
                 "Never changes a result");
  }
}

TEST(Flags, ASwitchIsZeroOrOne) {
  EXPECT_TRUE(flag_on("MOTE_CACHE"));
  const Setting odd("MOTE_CACHE", "maybe");
  try {
    flag_on("MOTE_CACHE");
    FAIL() << "nothing was thrown";
  } catch (const ValueError& e) {
    EXPECT_STREQ(
        e.what(),
        "MOTE_CACHE: 'maybe' is neither 0 nor 1; 0: compiled kernels are not kept on disk");
  }
}

TEST(Flags, AnUnknownFlagIsOurMistake) {
  EXPECT_THROW(flag("MOTE_NOT_THERE"), InternalError);
  EXPECT_THROW(set_flag("MOTE_NOT_THERE", "1"), InternalError);
}

struct Recorder : Trace {
  std::vector<std::string> texts;
  void report(const TraceEvent& e) override { texts.push_back(e.text); }
};

TEST(Traces, ReadersHearEveryLevel) {
  Recorder recorder;
  EXPECT_FALSE(tracing(6));
  add_trace(&recorder);
  EXPECT_TRUE(tracing(7));
  trace({6, "rewrite", "mul_one", "x * 1 -> x"});
  remove_trace(&recorder);
  trace({6, "rewrite", "mul_one", "not heard"});
  EXPECT_EQ(recorder.texts, std::vector<std::string>{"x * 1 -> x"});
  EXPECT_FALSE(tracing(6));
}

TEST(Traces, DebugPrintsUpToItsLevelOnStderr) {
  const Setting level("MOTE_DEBUG", "2");
  EXPECT_TRUE(tracing(2));
  EXPECT_FALSE(tracing(3));
  ::testing::internal::CaptureStderr();
  trace({2, "launch", "E_4", "kernel E_4"});
  trace({3, "opt", "E_4", "a move"});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "kernel E_4\n");
}

TEST(Traces, DumpWritesNumberedFiles) {
  const auto folder = std::filesystem::temp_directory_path() / "mote_trace_test";
  std::filesystem::remove_all(folder);
  {
    const Setting dump("MOTE_DUMP", folder.string());
    EXPECT_TRUE(tracing(3));
    EXPECT_FALSE(tracing(6));
    trace({4, "render", "sum/of two", "int x;"});
    trace({5, "schedule", "", "store(..)"});
    trace({6, "rewrite", "rule", "too much for a file"});
  }
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string().substr(4));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"_render_sum_of_two.txt", "_schedule.txt"}));
  std::filesystem::remove_all(folder);
}

TEST(Traces, ADumpThatCannotBeWrittenIsNoError) {
  const Setting dump("MOTE_DUMP", "/dev/null/folder");
  EXPECT_NO_THROW(trace({4, "render", "k", "int x;"}));
}

}  // namespace
}  // namespace mote
