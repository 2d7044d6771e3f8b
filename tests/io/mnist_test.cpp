// The set of digits: where it is looked for, and what is wrong with one that does not fit.
#include <functional>

#include "base/flags.h"
#include "io/idx_file.h"
#include "mote/data.h"

namespace mote::testing {
namespace {

class Mnist : public ::testing::Test {
 protected:
  ~Mnist() override { unset_flag("MOTE_DATA_DIR"); }

  // A set of 3 and 2 pictures of 2 x 2, whose first pixel is `mark`.
  void put_set(const std::string& sub, std::uint8_t mark) const {
    if (!sub.empty()) std::filesystem::create_directories(folder / sub);
    const std::string at = sub.empty() ? "" : sub + "/";
    Bytes pixels = counted(12, 3);
    pixels[0] = mark;
    folder.put(at + "train-images-idx3-ubyte.gz", gzip(idx({3, 2, 2}, pixels)));
    folder.put(at + "train-labels-idx1-ubyte", idx({3}, {7, 0, 9}));
    folder.put(at + "t10k-images-idx3-ubyte", idx({2, 2, 2}, counted(8)));
    folder.put(at + "t10k-labels-idx1-ubyte.gz", gzip(idx({2}, {1, 2})));
  }
  const Folder folder;
};

TEST_F(Mnist, TheRealDigitsLieInTheSource) {
  const auto [train, test] = data::mnist();
  EXPECT_EQ(train.size(), 60000);
  EXPECT_EQ(test.size(), 10000);
  EXPECT_EQ(train.height(), 28);
  EXPECT_EQ(train.width(), 28);
  EXPECT_EQ(Bytes(train.labels().begin(), train.labels().begin() + 10),
            (Bytes{5, 0, 4, 1, 9, 2, 1, 3, 1, 4}));
  std::vector<int> count(10);
  for (std::uint8_t label : train.labels()) ++count[label];
  EXPECT_EQ(count, (std::vector{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}));
  std::int64_t sum = 0;
  for (std::uint8_t pixel : train.pixels()) sum += pixel;
  EXPECT_NEAR(static_cast<double>(sum) / (255.0 * 60000 * 28 * 28), 0.13066, 1e-5);
}

TEST_F(Mnist, PlainAndGzipFilesMakeASet) {
  put_set("", 5);
  const auto [train, test] = data::mnist(folder.path());
  EXPECT_EQ(train.size(), 3);
  EXPECT_EQ(train.labels(), (Bytes{7, 0, 9}));
  EXPECT_EQ(train.pixels()[0], 5);
  EXPECT_EQ(train.pixels()[11], 33);
  EXPECT_EQ(test.labels(), (Bytes{1, 2}));
  EXPECT_EQ(test.pixels(), counted(8));
}

TEST_F(Mnist, TheFolderNamedComesFirstThenTheVariable) {
  put_set("here", 1);
  put_set("data", 2);
  set_flag("MOTE_DATA_DIR", folder / "data");
  EXPECT_EQ(data::mnist().train.pixels()[0], 2);
  put_set("data/mnist", 3);
  EXPECT_EQ(data::mnist().train.pixels()[0], 3);
  EXPECT_EQ(data::mnist(folder / "here").train.pixels()[0], 1);
}

// Whoever names a folder does not want another set in silence.
TEST_F(Mnist, AFolderNamedIsTheOnlyOne) {
  put_set("data", 2);
  set_flag("MOTE_DATA_DIR", folder / "data");
  EXPECT_EQ(error_of(folder, [&] { data::mnist(folder / "none"); }),
            "mnist: train-images-idx3-ubyte is in none of FOLDER/none/mnist, FOLDER/none at HERE; "
            "give the folder of the four IDX files");
}

TEST_F(Mnist, SetsOfTwoFoldersAreNotMixed) {
  put_set("data/mnist", 2);
  put_set("data", 3);
  set_flag("MOTE_DATA_DIR", folder / "data");
  std::filesystem::remove(folder / "data/mnist/t10k-labels-idx1-ubyte.gz");
  EXPECT_EQ(error_of(folder, [&] { data::mnist(); }),
            "mnist: t10k-labels-idx1-ubyte is in none of FOLDER/data/mnist at HERE; set "
            "MOTE_DATA_DIR to the folder that holds mnist/");
}

TEST_F(Mnist, FilesThatDoNotBelongTogether) {
  const struct {
    std::string name;
    Bytes file;
    std::string what;
  } rows[] = {
      {"train-labels-idx1-ubyte", idx({2}, {7, 0}),
       "mnist: FOLDER/train-images-idx3-ubyte.gz: it holds 3 pictures, "
       "FOLDER/train-labels-idx1-ubyte 2 labels"},
      {"t10k-images-idx3-ubyte", idx({1, 2, 4}, counted(8)),
       "mnist: FOLDER/t10k-images-idx3-ubyte: it holds 1 pictures, "
       "FOLDER/t10k-labels-idx1-ubyte.gz 2 labels"},
      {"t10k-images-idx3-ubyte", idx({2, 4}, counted(8)),
       "mnist: FOLDER/t10k-images-idx3-ubyte: it has 2 axes, not 3"},
      {"train-labels-idx1-ubyte", idx({3, 1}, {7, 0, 9}),
       "mnist: FOLDER/train-labels-idx1-ubyte: it has 2 axes, not 1"},
      {"t10k-images-idx3-ubyte", idx({2, 4097, 1}, counted(8194)),
       "mnist: FOLDER/t10k-images-idx3-ubyte: its pictures of 4097 x 1 are larger than 4096"},
      {"train-labels-idx1-ubyte", idx({3}, {7, 10, 9}),
       "mnist: FOLDER/train-labels-idx1-ubyte: label 1 is 10, not 0 to 9"},
  };
  for (const auto& row : rows) {
    put_set("", 1);
    folder.put(row.name, row.file);
    EXPECT_EQ(error_of(folder, [&] { data::mnist(folder.path()); }),
              row.what + " at HERE; give the four files of one set");
  }
  put_set("", 1);
  folder.put("train-labels-idx1-ubyte", Bytes{0, 0, 8, 1, 0});
  EXPECT_EQ(
      error_of(folder, [&] { data::mnist(folder.path()); }),
      "read_idx: FOLDER/train-labels-idx1-ubyte: it ends within its header of 1 axes at HERE; "
      "give a complete IDX file");
}

}  // namespace
}  // namespace mote::testing
