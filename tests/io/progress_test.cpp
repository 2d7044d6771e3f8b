// The progress bar, on a terminal and without one; a picture as text.
#include <fcntl.h>

#include <cmath>
#include <limits>

#include "io/folder.h"
#include "mote/mote.h"

namespace mote::testing {
namespace {

// What went to stderr, which is a file here; numbers of time read N.
template <class F>
std::string printed(F run) {
  ::testing::internal::CaptureStderr();
  run();
  const std::string text = ::testing::internal::GetCapturedStderr();
  return std::regex_replace(text, std::regex("  [0-9]+ ([a-z]+)/s  [0-9]+ s left"),
                            "  N $1/s  N s left");
}

const std::string full(30, '#');

TEST(Progress, WithoutATerminalTheFirstAndTheLastLineAreShownAtOnce) {
  const std::string text = printed([] {
    ProgressBar bar(4, 32, "images");
    for (const char* note : {"loss 4", "loss 3", "loss 2", "loss 1"}) bar.advance(note);
  });
  EXPECT_EQ(text, "[#######.......................] 1/4  N images/s  N s left  loss 4\n[" + full +
                      "] 4/4  N images/s  N s left  loss 1\n");
}

TEST(Progress, ANoteIsNotNeeded) {
  EXPECT_EQ(printed([] { ProgressBar(1).advance(); }), "[" + full + "] 1/1  N it/s  N s left\n");
  EXPECT_EQ(printed([] { ProgressBar bar(3); }), "");
}

// More steps than were told, or none: the bar is full and no time is left.
TEST(Progress, TheTotalMayBeWrong) {
  const std::string text = printed([] {
    ProgressBar bar(1);
    bar.advance();
    bar.advance();
  });
  EXPECT_EQ(text, "[" + full + "] 1/1  N it/s  N s left\n[" + full + "] 2/1  N it/s  N s left\n");
  EXPECT_EQ(printed([] { ProgressBar(0).advance(); }), "[" + full + "] 1/0  N it/s  N s left\n");
}

TEST(Progress, TheRateCountsUnits) {
  printed([] {
    ProgressBar one(10, 1), many(10, 1000);
    for (int i = 0; i < 5; ++i) {
      one.advance();
      many.advance();
    }
    EXPECT_GT(many.rate(), one.rate() * 10);
    EXPECT_GT(one.rate(), 0);
  });
}

TEST(Progress, GoesThroughBatches) {
  const data::Dataset set({1, 2, 3, 4, 5}, {1, 2, 3, 4, 5}, 1, 1);
  std::vector<int> seen;
  const std::string text = printed([&] {
    for (const auto [x, y] : progress(set.batches(2)))
      for (int label : y.to_vector<int>()) seen.push_back(label);
  });
  EXPECT_EQ(seen, (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(text, "[###############...............] 1/2  N it/s  N s left\n[" + full +
                      "] 2/2  N it/s  N s left\n");
}

// stderr is a terminal, for as long as this lives.
class Terminal {
 public:
  Terminal() : master_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0) return;
    const int slave = open(ptsname(master_), O_RDWR | O_NOCTTY);
    if (slave < 0) return;
    was_ = dup(2);
    ready_ = dup2(slave, 2) == 2;
    close(slave);
  }
  ~Terminal() {
    end();
    if (master_ >= 0) close(master_);
  }
  bool ready() const { return ready_; }
  // Gives stderr back; what was shown.
  std::string end() {
    if (was_ < 0) return "";
    std::string text;
    char part[4096];
    fcntl(master_, F_SETFL, O_NONBLOCK);
    for (ssize_t n; (n = read(master_, part, sizeof part)) > 0;)
      text.append(part, static_cast<std::size_t>(n));
    dup2(was_, 2);
    close(was_);
    was_ = -1;
    return text;
  }

 private:
  int master_, was_ = -1;
  bool ready_ = false;
};

// A line is drawn over the one before, whose rest is erased; the last one ends with a new line.
TEST(Progress, OnATerminalOneLineIsDrawnAgain) {
  Terminal terminal;
  if (!terminal.ready()) GTEST_SKIP() << "no terminals here";
  {
    ProgressBar bar(2, 1, "steps");
    bar.advance("a long note");
    bar.advance("short");
  }
  const std::string text = std::regex_replace(
      terminal.end(), std::regex("  [0-9]+ steps/s  [0-9]+ s left"), "  N steps/s  N s left");
  EXPECT_EQ(text,
            "\r[###############...............] 1/2  N steps/s  N s left  a long note\033[K\r[" +
                full + "] 2/2  N steps/s  N s left  short\033[K\r\n");
}

TEST(Picture, HasTenShades) {
  const Tensor t(std::vector{0.05f, 0.15f, 0.25f, 0.35f, 0.45f, 0.55f, 0.65f, 0.75f, 0.85f, 0.95f},
                 {2, 5});
  EXPECT_EQ(picture(t), "  ..::--==\n++**##%%@@\n");
}

TEST(Picture, WhatIsOutsideOfZeroToOne) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor t(std::vector{0.f, 1.f, -3.f, 7.f, -inf, inf, std::nanf("")}, {1, 7});
  EXPECT_EQ(picture(t), "  @@  @@  @@??\n");
}

TEST(Picture, AxesOfOneBeforeItDoNotCount) {
  for (const Dims& shape : {Dims{2, 2}, Dims{1, 2, 2}, Dims{1, 1, 2, 2}})
    EXPECT_EQ(picture(Tensor(std::vector{1, 0, 0, 1}, shape)), "@@  \n  @@\n");
  EXPECT_EQ(picture(Tensor(std::vector{1, 0, 0}, {1, 1, 1, 3})), "@@    \n");
  EXPECT_EQ(picture(Tensor(std::vector{1, 0, 1}, {1, 3, 1})), "@@\n  \n@@\n");
  EXPECT_EQ(picture(Tensor::zeros({0, 3})), "");
}

TEST(Picture, OtherShapesAreNoPicture) {
  const Folder folder;
  const auto text = [&](const Dims& shape) {
    return error_of<ShapeError>(folder, [&] { picture(Tensor::zeros(shape)); });
  };
  EXPECT_EQ(text({3, 2, 2}), "picture: a tensor of 3 axes at HERE; give (H, W)");
  EXPECT_EQ(text({2}), "picture: a tensor of 1 axes at HERE; give (H, W)");
  EXPECT_EQ(text({}), "picture: a tensor of 0 axes at HERE; give (H, W)");
}

}  // namespace
}  // namespace mote::testing
