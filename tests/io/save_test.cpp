// A file is written whole or not at all: whatever fails, the old one stays and nothing lies beside.
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "io/folder.h"
#include "mote/mote.h"
#include "testing.h"

namespace mote::testing {
namespace {

Tensor small() { return Tensor({1.0f, 2.0f}); }

std::string refused(const std::string& what) {
  return "save: FOLDER/" + what + " at HERE; check the folder and the free space";
}

TEST(Save, ReplacesTheOldFile) {
  const Folder folder;
  save({{"a", Tensor::ones({1000}).realize()}}, folder / "x");
  save({{"b", small()}}, folder / "x");
  EXPECT_EQ(load(folder / "x").at("b").to_vector<float>(), (std::vector{1.0f, 2.0f}));
  EXPECT_EQ(load(folder / "x").size(), 1u);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"x"}));
}

TEST(Save, EqualTensorsMakeEqualFiles) {
  const Folder folder;
  for (const char* name : {"x", "y"}) save({{"b", small()}, {"a", Tensor(3)}}, folder / name);
  EXPECT_EQ(content(folder / "x"), content(folder / "y"));
}

TEST(Save, FoldersThatDoNotWork) {
  const Folder folder;
  folder.put("file", std::string("old"));
  std::filesystem::create_directory(folder / "sub");
  const auto text = [&](const std::string& path) {
    return error_of(folder, [&] { save({{"a", small()}}, folder / path); });
  };
  EXPECT_EQ(text("none/x"), refused("none/x: making the file failed (No such file or directory)"));
  EXPECT_EQ(text("file/x"), refused("file/x: making the file failed (Not a directory)"));
  EXPECT_EQ(text("sub"), refused("sub: renaming failed (Is a directory)"));
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"file", "sub"}));
  EXPECT_EQ(content(folder / "file"), "old");
}

// Root may write anywhere: it becomes nobody for the time of a test.
class Nobody {
 public:
  Nobody() : was_(geteuid()) { ready_ = was_ != 0 || seteuid(65534) == 0; }
  ~Nobody() {
    if (was_ == 0 && seteuid(0) != 0) std::abort();
  }
  bool ready() const { return ready_; }

 private:
  uid_t was_;
  bool ready_;
};

TEST(Save, AFolderThatIsReadOnly) {
  const Folder folder;
  const Tensor t = small().realize();
  save({{"a", t}}, folder / "x");
  const std::string before = content(folder / "x");
  namespace fs = std::filesystem;
  fs::permissions(folder.path(), fs::perms(0555));
  {
    const Nobody nobody;
    if (!nobody.ready()) GTEST_SKIP() << "this process may not change its user";
    EXPECT_EQ(error_of(folder, [&] { save({{"b", t}}, folder / "x"); }),
              refused("x: making the file failed (Permission denied)"));
  }
  fs::permissions(folder.path(), fs::perms(0755));
  EXPECT_EQ(content(folder / "x"), before);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"x"}));
}

// Files of this process end at a size, as on a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : signal_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &was_);
    const rlimit now{bytes, was_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &was_);
    std::signal(SIGXFSZ, signal_);
  }

 private:
  rlimit was_{};
  void (*signal_)(int);
};

TEST(Save, ADiskThatIsFull) {
  const Folder folder;
  save({{"a", small()}}, folder / "x");
  const std::string before = content(folder / "x");
  const Tensor large = Tensor::ones({100000}).realize();
  std::string text;
  {
    const FullDisk full(100000);
    text = error_of(folder, [&] { save({{"a", large}}, folder / "x"); });
  }
  EXPECT_EQ(text, refused("x: writing failed (File too large)"));
  EXPECT_EQ(content(folder / "x"), before);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"x"}));
}

TEST(Save, NamesThatNoFileCanHold) {
  const Folder folder;
  const auto text = [&](const std::string& name) {
    return error_of<ValueError>(folder, [&] { save({{name, small()}}, folder / "x"); });
  };
  EXPECT_EQ(
      text("__metadata__"),
      "save: '__metadata__' names no tensor in a safetensors file at HERE; choose another name");
  EXPECT_EQ(text("a\xff"), "save: the name 'a\xff' is no UTF-8 at HERE; choose another name");
  EXPECT_EQ(error_of<ValueError>(folder, [&] { save({{"a", Tensor()}}, folder / "x"); }),
            "to_bytes: the tensor is not defined at HERE; give it a value first");
  EXPECT_TRUE(folder.names().empty());
}

// Each writer has a file of its own beside the place: the last to rename wins, whole.
TEST(Save, ManyThreadsWriteOneFile) {
  const Folder folder;
  std::vector<Tensor> values;
  for (int i = 0; i < 4; ++i) values.push_back(Tensor::full({20000 * (i + 1)}, i).realize());
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (const Tensor& value : values)
    threads.emplace_back([&folder, &failed, value] {
      for (int i = 0; i < rounds(20); ++i) {
        try {
          save({{"a", value}}, folder / "x");
          load(folder / "x");
        } catch (const Error& e) {
          ++failed;
          ADD_FAILURE() << e.what();
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(folder.names(), (std::vector<std::string>{"x"}));
}

}  // namespace
}  // namespace mote::testing
