#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "base/text.h"
#include "mote/data.h"

namespace mote {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

char shade(float value) {
  static constexpr std::string_view shades = " .:-=+*#%@";
  const float clipped = std::clamp(value, 0.f, 1.f);
  return shades[std::min<std::size_t>(static_cast<std::size_t>(clipped * 10), 9)];
}

}  // namespace

ProgressBar::ProgressBar(std::int64_t total, std::int64_t unit, std::string unit_name)
    : total_(total),
      unit_(unit),
      unit_name_(std::move(unit_name)),
      begun_(now()),
      terminal_(isatty(2) == 1) {}

ProgressBar::~ProgressBar() {
  if (terminal_ && done_) std::fputc('\n', stderr);
}

double ProgressBar::rate() const {
  return static_cast<double>(done_ * unit_) / std::max(now() - begun_, 1e-9);
}

void ProgressBar::advance(std::string note) {
  ++done_;
  const double t = now();
  if (done_ < total_ && t - shown_ < (terminal_ ? 0.1 : 10.0)) return;
  shown_ = t;
  // More may be done than was told.
  const double share =
      done_ < total_ ? static_cast<double>(done_) / static_cast<double>(total_) : 1;
  const double left = (t - begun_) / share * (1 - share);
  constexpr int width = 30;
  const int full = static_cast<int>(share * width);
  std::fprintf(stderr, "%s[%.*s%.*s] %lld/%lld  %.0f %s/s  %.0f s left%s%s%s",
               terminal_ ? "\r" : "", full, "##############################", width - full,
               "..............................", static_cast<long long>(done_),
               static_cast<long long>(total_), rate(), unit_name_.c_str(), left,
               note.empty() ? "" : "  ", note.c_str(),
               terminal_ ? "\033[K" : "\n");  // erases the rest of a longer line
  std::fflush(stderr);
}

// Two rows of the picture to one line of half blocks would need colours; shades do without.
std::string picture(const Tensor& t, Where where) {
  Dims shape = t.shape();
  while (shape.size() > 2 && shape.front() == 1) shape.erase(shape.begin());
  if (shape.size() != 2)
    throw ShapeError(cat("picture: a tensor of ", shape.size(), " axes",
                         where.line ? " at " + where.text() : "", "; give (H, W)"));
  const Tensor p = t.reshape(shape, where);
  const auto v = p.to_vector<float>(where);
  const auto width = static_cast<std::size_t>(p.size(1));
  std::string out;
  for (std::size_t i = 0; i < v.size(); ++i) {
    out += std::string(2, std::isnan(v[i]) ? '?' : shade(v[i]));
    if ((i + 1) % width == 0) out += '\n';
  }
  return out;
}

}  // namespace mote
