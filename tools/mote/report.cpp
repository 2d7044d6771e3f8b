#include "mote/report.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace digits {
namespace {

template <class... A>
std::string format(const char* form, A... values) {
  char text[512];
  std::snprintf(text, sizeof text, form, values...);
  return text;
}

using Counts = std::array<std::array<int, 10>, 10>;

Counts counts(const Report& r, const mote::data::Dataset& test) {
  Counts out{};
  for (std::size_t i = 0; i < r.seen.size(); ++i)
    ++out[test.labels()[i]][static_cast<std::size_t>(r.seen[i])];
  return out;
}

std::vector<std::size_t> wrong_ones(const Report& r, const mote::data::Dataset& test,
                                    std::size_t most) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < r.seen.size() && out.size() < most; ++i)
    if (r.seen[i] != test.labels()[i]) out.push_back(i);
  return out;
}

// Means over some forty pieces: the curve without its noise.
std::vector<double> smooth(const std::vector<float>& losses) {
  const std::size_t piece = std::max<std::size_t>(1, losses.size() / 40);
  std::vector<double> out;
  for (std::size_t begin = 0; begin < losses.size(); begin += piece) {
    const std::size_t end = std::min(losses.size(), begin + piece);
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += losses[i];
    out.push_back(sum / static_cast<double>(end - begin));
  }
  return out;
}

template <class T>
std::string line(const std::vector<T>& values, double top, const char* style) {
  std::string points;
  const double last = static_cast<double>(std::max<std::size_t>(values.size(), 2) - 1);
  for (std::size_t i = 0; i < values.size(); ++i)
    points += format("%.1f,%.1f ", 40 + 640 * static_cast<double>(i) / last,
                     210 - 190 * std::min(static_cast<double>(values[i]) / top, 1.0));
  return format("<polyline class=\"%s\" points=\"", style) + points + "\"/>\n";
}

std::string loss_curve(const Report& r) {
  const double top =
      r.losses.empty() ? 1 : *std::max_element(r.losses.begin(), r.losses.end()) * 1.02;
  std::string out = "<svg viewBox=\"0 0 700 240\" role=\"img\" aria-label=\"loss of each step\">\n";
  for (int i = 0; i <= 4; ++i) {
    const double y = 210 - 190 * i / 4.0;
    out += format(
        "<line class=\"grid\" x1=\"40\" x2=\"680\" y1=\"%.1f\" y2=\"%.1f\"/>"
        "<text x=\"34\" y=\"%.1f\" text-anchor=\"end\">%.2f</text>\n",
        y, y, y + 4, top * i / 4);
  }
  out += line(r.losses, top, "thin") + line(smooth(r.losses), top, "thick");
  return out + format("<text x=\"680\" y=\"230\" text-anchor=\"end\">%zu steps</text></svg>\n",
                      r.losses.size());
}

// 28 x 28 pixels as one path for each of eight shades.
std::string digit(const mote::data::Dataset& test, std::size_t which) {
  const int w = test.width(), h = test.height();
  std::array<std::string, 9> paths;
  const std::uint8_t* pixels = test.pixels().data() + which * static_cast<std::size_t>(w * h);
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x)
      if (const int shade = pixels[y * w + x] / 29; shade > 0)
        paths[static_cast<std::size_t>(shade)] += format("M%d %dh1v1h-1z", x, y);
  std::string out = format("<svg viewBox=\"0 0 %d %d\" class=\"digit\">", w, h);
  for (std::size_t i = 1; i < paths.size(); ++i)
    if (!paths[i].empty())
      out += format("<path opacity=\"%.2f\" d=\"", static_cast<double>(i) / 8) + paths[i] + "\"/>";
  return out + "</svg>";
}

constexpr const char* style = R"(
:root { color-scheme: light dark; --ink: #1c2430; --paper: #fbfaf7; --soft: #8a94a3; --mark: #2867b2;
        --line: #dcdfe4; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --paper: #14171c; --soft: #8a94a3; --mark: #6aa5f0; --line: #2b313a; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.big { font-size: 2.4rem; font-weight: 600; color: var(--mark); }
svg text { fill: var(--soft); font-size: 12px; }
.grid { stroke: var(--line); } polyline { fill: none; stroke: var(--mark); }
.thin { opacity: .3; } .thick { stroke-width: 2.5; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
td, th { padding: .15rem .55rem; text-align: right; } th { color: var(--soft); font-weight: 500; }
td.right { font-weight: 600; } td.none { color: var(--line); }
.wrong { display: flex; flex-wrap: wrap; gap: 1rem; } figure { margin: 0; text-align: center; }
.digit { width: 84px; height: 84px; border: 1px solid var(--line); fill: var(--ink); }
figcaption { font-size: .85rem; color: var(--soft); }
)";

}  // namespace

std::string confusion(const Report& r, const mote::data::Dataset& test) {
  std::string out = "      seen as\n      ";
  for (int d = 0; d < 10; ++d) out += format("%5d", d);
  const Counts all = counts(r, test);
  for (std::size_t d = 0; d < 10; ++d) {
    out += format("\n%5zu ", d);
    for (int n : all[d]) out += n ? format("%5d", n) : "    .";
  }
  return out + "\n";
}

std::string wrong_pictures(const Report& r, const mote::data::Dataset& test, int count) {
  std::string out;
  for (std::size_t i : wrong_ones(r, test, static_cast<std::size_t>(count)))
    out += format("\ntest picture %zu is a %d, seen as %d\n", i, test.labels()[i], r.seen[i]) +
           mote::picture(test.pick({static_cast<std::int64_t>(i)}).first);
  return out;
}

std::string html(const Report& r, const mote::data::Dataset& test) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>mote: the digits</title><style>";
  out += style;
  out += "</style></head><body>\n<h1>The digits</h1>\n";
  out += format("<p><span class=\"big\">%.2f %%</span> of %zu test pictures were read right.</p>\n",
                r.accuracy * 100, r.seen.size());
  out += format(
      "<p>%d epochs of %lld pictures, batch %lld, Adam with learning rate %g, seed %llu, on "
      "%s with %d threads: %.0f seconds, %.0f pictures a second.</p>\n",
      r.settings.epochs, static_cast<long long>(r.pictures),
      static_cast<long long>(r.settings.batch), r.settings.lr,
      static_cast<unsigned long long>(r.settings.seed), r.device.c_str(), r.threads, r.seconds,
      static_cast<double>(r.losses.size()) * static_cast<double>(r.settings.batch) /
          std::max(r.seconds, 1e-9));
  out += "<h2>Loss</h2>\n" + loss_curve(r);
  out += "<h2>What was seen</h2>\n<table><tr><th></th>";
  for (int d = 0; d < 10; ++d) out += format("<th>%d</th>", d);
  out += "</tr>\n";
  const Counts all = counts(r, test);
  for (std::size_t d = 0; d < 10; ++d) {
    out += format("<tr><th>%zu</th>", d);
    for (std::size_t s = 0; s < 10; ++s)
      out += format("<td class=\"%s\">%d</td>",
                    d == s      ? "right"
                    : all[d][s] ? ""
                                : "none",
                    all[d][s]);
    out += "</tr>\n";
  }
  out += "</table>\n<h2>What was read wrong</h2>\n<div class=\"wrong\">\n";
  for (std::size_t i : wrong_ones(r, test, 24))
    out +=
        "<figure>" + digit(test, i) +
        format("<figcaption>%d, seen as %d</figcaption></figure>\n", test.labels()[i], r.seen[i]);
  return out + "</div>\n</body></html>\n";
}

}  // namespace digits
