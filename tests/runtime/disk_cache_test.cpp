// The cache may lose anything and must never return what was not put.
#include "runtime/disk_cache.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "runtime/kernels.h"
#include "testing.h"

extern char** environ;

namespace mote::testing {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void put(const std::string& key, const std::string& value) {
  cache_put("test", key, bytes_of(value));
}

// The text that is stored; "(none)" for a miss.
std::string get(const std::string& key) {
  const auto value = cache_get("test", key);
  if (!value) return "(none)";
  return {reinterpret_cast<const char*>(value->data()), value->size()};
}

std::string value_of(const std::string& key) { return key + std::string(3000, 'v') + key; }

// Runs one of the DISABLED_ tests below in a process of its own; its exit status.
pid_t start_child(const std::string& test, const std::vector<std::string>& environment) {
  std::vector<std::string> words = {"/proc/self/exe", "--gtest_also_run_disabled_tests",
                                    "--gtest_filter=CacheChild.DISABLED_" + test,
                                    "--gtest_brief=1"};
  std::vector<std::string> variables = environment;
  for (char** e = environ; *e; ++e)
    if (std::strncmp(*e, "MOTE_", 5) != 0 && std::strncmp(*e, "XDG_CACHE", 9) != 0 &&
        std::strncmp(*e, "HOME=", 5) != 0)
      variables.emplace_back(*e);
  std::vector<char*> argv, env;
  for (std::string& w : words) argv.push_back(w.data());
  for (std::string& v : variables) env.push_back(v.data());
  argv.push_back(nullptr);
  env.push_back(nullptr);
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  EXPECT_EQ(posix_spawn(&child, argv[0], &quiet, nullptr, argv.data(), env.data()), 0);
  posix_spawn_file_actions_destroy(&quiet);
  return child;
}

int finish(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

int run_child(const std::string& test, const std::vector<std::string>& environment) {
  return finish(start_child(test, environment));
}

// ---- what runs in processes of its own. Each sees the folder that its parent names.

TEST(CacheChild, DISABLED_PutsAndExits) {  // without a flush: the exit writes
  for (int i = 0; i < 20; ++i) put(cat("key ", i), value_of(cat("key ", i)));
}

TEST(CacheChild, DISABLED_FindsAll) {
  for (int i = 0; i < 20; ++i) EXPECT_EQ(get(cat("key ", i)), value_of(cat("key ", i)));
}

TEST(CacheChild, DISABLED_FindsNothing) {
  for (int i = 0; i < 20; ++i) EXPECT_EQ(get(cat("key ", i)), "(none)");
}

// Reads, puts what is missing, reads again: whatever state the file is in, values are right.
TEST(CacheChild, DISABLED_UsesIt) {
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20; ++i) {
      const std::string key = cat("key ", i), found = get(key);
      if (found == "(none)") put(key, value_of(key));
      else EXPECT_EQ(found, value_of(key));
    }
    cache_flush();
  }
}

TEST(CacheChild, DISABLED_UsesAReadOnlyFolder) {
  const bool root = geteuid() == 0;
  ASSERT_TRUE(!root || seteuid(65534) == 0);  // root may write anywhere
  for (int i = 0; i < 20; ++i) {
    const std::string key = cat("key ", i), found = get(key);
    EXPECT_TRUE(found == "(none)" || found == value_of(key));
    put(cat("new ", i), "value");
  }
  cache_flush();
  EXPECT_EQ(get("new 1"), "(none)");
  ASSERT_TRUE(!root || seteuid(0) == 0);
}

TEST(CacheChild, DISABLED_UsesAFullDisk) {
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{20'000, 20'000};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  for (int i = 0; i < 20; ++i) put(cat("key ", i), value_of(cat("key ", i)));
  cache_flush();
  for (int i = 0; i < 20; ++i) {
    const std::string found = get(cat("key ", i));
    EXPECT_TRUE(found == "(none)" || found == value_of(cat("key ", i)));
  }
}

TEST(CacheChild, DISABLED_ForksAndExits) {
  put("key", "value");
  cache_flush();
  EXPECT_EQ(get("key"), "value");
  const pid_t child = fork();
  if (child == 0) {
    put("other", "value");
    cache_flush();
    std::exit(get("key") == "(none)" ? 0 : 1);
  }
  const int status = finish(child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(get("key"), "value");
}

// ---- in this process

class DiskCache : public ::testing::Test {
 protected:
  Folder folder;
  Setting on{"MOTE_CACHE", "1"};
  Setting where{"MOTE_CACHE_DIR", folder.path() + "/made/for/it"};
  std::string file() const { return folder.path() + "/made/for/it/cache-v2.sqlite"; }
};

TEST_F(DiskCache, FindsWhatWasPut) {
  EXPECT_EQ(get("a"), "(none)");
  put("a", "1");
  put("b", "");
  put("a", "2");
  cache_flush();
  EXPECT_EQ(get("a"), "2");
  EXPECT_EQ(get("b"), "");
  EXPECT_EQ(get("c"), "(none)");
  EXPECT_FALSE(cache_get("another table", "a"));
  struct stat info;
  ASSERT_EQ(stat((folder.path() + "/made/for/it").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(DiskCache, KeysAndValuesHoldAnyBytes) {
  const std::string key("with\0zero", 9), value("\0\xff\0", 3), large(3'000'000, 'x');
  put(key, value);
  put("large", large);
  cache_flush();
  EXPECT_EQ(get(key), value);
  EXPECT_EQ(get("large"), large);
}

TEST_F(DiskCache, IsOffWhenAsked) {
  put("a", "1");
  cache_flush();
  const Setting off("MOTE_CACHE", "0");
  put("b", "1");
  cache_flush();
  EXPECT_EQ(get("a"), "(none)");
  const Setting on_again("MOTE_CACHE", "1");
  EXPECT_EQ(get("b"), "(none)");
  EXPECT_EQ(get("a"), "1");
}

TEST_F(DiskCache, FollowsItsFolder) {
  put("a", "here");
  cache_flush();
  const Folder other;
  {
    const Setting there("MOTE_CACHE_DIR", other.path());
    EXPECT_EQ(get("a"), "(none)");
    put("a", "there");
    cache_flush();
    EXPECT_EQ(get("a"), "there");
  }
  set_flag("MOTE_CACHE_DIR", folder.path() + "/made/for/it");
  EXPECT_EQ(get("a"), "here");
}

TEST_F(DiskCache, IsUsedFromManyThreads) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 50; ++i) {
        const std::string key = cat(i % 10);
        put(key, value_of(key));
        if (i % 10 == t) cache_flush();
        const std::string found = get(key);
        EXPECT_TRUE(found == "(none)" || found == value_of(key));
      }
    });
  }
}

TEST_F(DiskCache, AFolderThatCannotBeReadAsMisses) {
  std::ofstream(folder.path() + "/file") << "x";
  for (const std::string& bad : {folder.path() + "/file", folder.path() + "/file/below",
                                 std::string("/proc/none"), std::string("/dev/null")}) {
    const Setting there("MOTE_CACHE_DIR", bad);
    put("a", "1");
    cache_flush();
    EXPECT_EQ(get("a"), "(none)") << bad;
  }
}

// ---- what is on the disk

class DiskCacheFile : public ::testing::Test {
 protected:
  Folder folder;
  std::vector<std::string> here = {"MOTE_CACHE_DIR=" + folder.path()};
  std::string file = folder.path() + "/cache-v2.sqlite";

  void fill() { ASSERT_EQ(run_child("PutsAndExits", here), 0); }
  std::string content() const {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void replace(const std::string& bytes) const {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }
  // Wrong values never; after at most two uses all is there again.
  void expect_recovery() {
    EXPECT_EQ(run_child("UsesIt", here), 0);
    EXPECT_EQ(run_child("UsesIt", here), 0);
    EXPECT_EQ(run_child("FindsAll", here), 0);
  }
};

TEST_F(DiskCacheFile, IsWrittenWhenTheProcessEnds) {
  EXPECT_NE(run_child("FindsAll", here), 0);
  fill();
  EXPECT_EQ(run_child("FindsAll", here), 0);
  EXPECT_FALSE(fs::exists(file + "-wal")) << "the last process leaves one file";
}

TEST_F(DiskCacheFile, LiesWhereTheEnvironmentSays) {
  ASSERT_EQ(run_child("PutsAndExits", {"XDG_CACHE_HOME=" + folder.path() + "/x", "HOME=/none"}), 0);
  EXPECT_TRUE(fs::exists(folder.path() + "/x/mote/cache-v2.sqlite"));
  ASSERT_EQ(run_child("PutsAndExits", {"HOME=" + folder.path() + "/h"}), 0);
  EXPECT_TRUE(fs::exists(folder.path() + "/h/.cache/mote/cache-v2.sqlite"));
  ASSERT_EQ(run_child("FindsNothing", {"MOTE_CACHE=1"}), 0);  // no home at all
  EXPECT_EQ(run_child("PutsAndExits", {"MOTE_CACHE=1"}), 0);
}

TEST_F(DiskCacheFile, IsMadeAnewWhenItIsTruncated) {
  fill();
  const std::string good = content();
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100},
                                 std::size_t{4096}, good.size() / 2, good.size() - 1}) {
    SCOPED_TRACE(size);
    replace(good.substr(0, size));
    expect_recovery();
  }
}

TEST_F(DiskCacheFile, IsMadeAnewWhenItIsSomethingElse) {
  fill();
  std::mt19937_64 random(1);
  std::string noise(50'000, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  replace(noise);
  expect_recovery();
  replace("SQLite format 3" + std::string(1, '\0') + noise);
  expect_recovery();
}

TEST_F(DiskCacheFile, NeverReturnsWhatWasNotPut) {
  fill();
  const std::string good = content();
  for (const std::uint64_t seed : seeds(40)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::string bytes = good;
    for (int i = 0; i < 1 << (seed % 8); ++i)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    replace(bytes);
    EXPECT_EQ(run_child("UsesIt", here), 0);
    if (seed % 4) continue;  // also with its neighbours damaged
    for (const char* part : {"-wal", "-shm"})
      std::ofstream(file + part, std::ios::binary) << bytes.substr(random() % bytes.size());
    EXPECT_EQ(run_child("UsesIt", here), 0);
  }
  expect_recovery();
}

TEST_F(DiskCacheFile, AFullDiskOnlyCostsTheCache) {
  EXPECT_EQ(run_child("UsesAFullDisk", here), 0);
  expect_recovery();
}

TEST_F(DiskCacheFile, AReadOnlyFolderOnlyCostsTheCache) {
  fill();
  chmod(file.c_str(), 0444);
  chmod(folder.path().c_str(), 0555);
  EXPECT_EQ(run_child("UsesAReadOnlyFolder", here), 0);
  chmod(folder.path().c_str(), 0755);
}

TEST_F(DiskCacheFile, IsSharedByManyProcesses) {
  std::vector<pid_t> children;
  for (int i = 0; i < (fast() ? 16 : 64); ++i) children.push_back(start_child("UsesIt", here));
  for (const pid_t child : children) EXPECT_EQ(finish(child), 0);
  EXPECT_EQ(run_child("FindsAll", here), 0);
}

TEST_F(DiskCacheFile, AForkedChildDoesWithout) { EXPECT_EQ(run_child("ForksAndExits", here), 0); }

// ---- objects

TEST_F(DiskCache, ObjectsAreTakenFromIt) {
  const Source source = multiply_add_c(100);
  {
    const auto device = make_clang_device("");
    EXPECT_TRUE(multiply_add_is_right(*device, *device->compile(source), 100));
  }
  cache_flush();
  const std::string compiler = folder.path() + "/cc";  // known by its path, size and time
  std::ofstream(compiler) << "#!/bin/sh\nexec clang-19 \"$@\"\n";
  fs::permissions(compiler, fs::perms::owner_all);
  const Setting cc("MOTE_CC", compiler);
  const auto device = make_clang_device("");
  ASSERT_TRUE(multiply_add_is_right(*device, *device->compile(source), 100));
  cache_flush();
  const auto changed = fs::last_write_time(compiler);
  std::ofstream(compiler) << "#!/bin/sh\nexit 1          \n";
  fs::resize_file(compiler, 35);
  fs::last_write_time(compiler, changed);
  // The compiler no longer works: what runs comes from the disk.
  EXPECT_TRUE(multiply_add_is_right(*device, *device->compile(source), 100));
  Source other = source;
  other.text += "\n";
  EXPECT_THROW(device->compile(other), CompileError);
  Source fast_one = source;
  fast_one.fast_compile = true;  // other flags
  EXPECT_THROW(device->compile(fast_one), CompileError);
}

}  // namespace
}  // namespace mote::testing
