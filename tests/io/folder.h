// What the tests of io/ share: a folder of files that lives as long as one test, and the text of an
// error without the parts that differ from run to run.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include "mote/error.h"

namespace mote::testing {

using Bytes = std::vector<std::uint8_t>;

class Folder {
 public:
  Folder() {
    std::string name = ::testing::TempDir() + "mote_io_XXXXXX";
    if (!mkdtemp(name.data())) throw std::runtime_error("no folder for the test");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file and returns its path.
  template <class Content>
  std::string put(const std::string& name, const Content& content) const {
    // Some file systems write a file to the disk at once when it is cut and written anew.
    std::filesystem::remove(*this / name);
    std::ofstream file(*this / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(content.data()),
               static_cast<std::streamsize>(content.size()));
    return *this / name;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  std::string path_;
};

inline std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text of the Kind that `wrong` throws; the folder reads FOLDER, the place in the test HERE.
template <class Kind = FileError, class F>
std::string error_of(const Folder& folder, F wrong) {
  try {
    wrong();
  } catch (const Error& e) {
    EXPECT_TRUE(typeid(e) == typeid(Kind)) << typeid(e).name() << ": " << e.what();
    std::string text = e.what();
    for (std::size_t at; (at = text.find(folder.path())) != std::string::npos;)
      text.replace(at, folder.path().size(), "FOLDER");
    return std::regex_replace(text, std::regex("[a-z_]+_test\\.cpp:[0-9]+"), "HERE");
  }
  return "(nothing was thrown)";
}

}  // namespace mote::testing
