// Random graphs on each device against REF. MOTE_GRAPHS=n sets how many, MOTE_SEED=s runs one.
#include <gtest/gtest.h>

#include <cmath>

#include "base/text.h"
#include "engine/engine.h"
#include "random_graph.h"
#include "ref/ref.h"
#include "testing.h"

namespace mote {
namespace {

using testing::RandomGraph;
using Elements = std::vector<std::vector<Scalar>>;

constexpr int longest = 14;  // operations of a graph

struct Expected {
  Elements values, exact;  // in the dtypes, and with every float op in float64
};

Expected expected(std::span<const Lazy> roots) {
  RefOptions wide;
  wide.float64 = true;
  return {reference(roots), reference(roots, wide)};
}

// "" where the roots, which are realized, hold what is expected: integers exactly, floats as near as
// REF itself is to the float64 result, with room for another order of sums.
std::string difference(std::span<const Lazy> roots, const Expected& want) {
  const Elements got = reference(roots);
  for (std::size_t r = 0; r < roots.size(); ++r) {
    double largest = 1;
    for (const Scalar& s : want.values[r])
      if (std::isfinite(s.as_double())) largest = std::max(largest, std::abs(s.as_double()));
    for (std::size_t i = 0; i < got[r].size(); ++i) {
      const Scalar a = got[r][i], b = want.values[r][i];
      if (a.bits == b.bits) continue;
      const double x = a.as_double(), y = b.as_double(), z = want.exact[r][i].as_double();
      if (std::isnan(x) && std::isnan(y)) continue;
      const double room = a.dtype == DType::float64   ? 1e-11
                          : a.dtype == DType::float32 ? 2e-5
                          : is_float(a.dtype)         ? 2e-3
                                                      : 0;
      if (x == y || (room > 0 && std::abs(x - y) <= room * largest + 20 * std::abs(y - z)))
        continue;
      return cat("root ", r, " element ", i, ": ", a.text(), ", not ", b.text());
    }
  }
  return "";
}

std::string difference_of(std::uint64_t seed, int steps, Device& device) {
  try {
    const RandomGraph graph(seed, steps, device);
    std::vector<Lazy> roots = graph.roots();
    for (Lazy& r : roots) r = contiguous(r);
    const Expected want = expected(roots);
    realize(roots);
    return difference(roots, want);
  } catch (const Error& e) {
    return e.what();
  }
}

// The shortest beginning of the graph that still fails, with its nodes.
std::string smallest(std::uint64_t seed, Device& device) {
  for (int steps = 1; steps <= longest; ++steps) {
    const std::string what = difference_of(seed, steps, device);
    if (what.empty()) continue;
    std::string out = cat("MOTE_SEED=", seed, " with ", steps, " operations: ", what, "\n");
    try {
      out += to_text(RandomGraph(seed, steps, device).roots());
    } catch (const Error& e) {
      out += e.what();
    }
    return out;
  }
  return cat("MOTE_SEED=", seed, ": fails only beside other graphs");
}

struct Run {
  const char* device;
  int graphs;
};
void PrintTo(const Run& run, std::ostream* out) { *out << run.device; }

class Graphs : public ::testing::TestWithParam<Run> {};

TEST_P(Graphs, AgreeWithTheReference) {
  Device& device = device_named(GetParam().device);
  const std::string asked = testing::variable("MOTE_GRAPHS");
  const auto seeds = testing::seeds(asked.empty() ? GetParam().graphs : std::stoi(asked));
  // Many graphs at once: one call of the compiler for all of their kernels.
  constexpr std::size_t together = 20;
  for (std::size_t begin = 0; begin < seeds.size(); begin += together) {
    std::vector<std::vector<Lazy>> roots;
    std::vector<Expected> want;
    std::vector<Lazy> all;
    const std::size_t end = std::min(seeds.size(), begin + together);
    std::size_t at = begin;
    std::string error;
    try {
      for (; at < end; ++at) {
        roots.push_back(RandomGraph(seeds[at], longest, device).roots());
        for (Lazy& r : roots.back()) all.push_back(r = contiguous(r));
        want.push_back(expected(roots.back()));
      }
      realize(all);
    } catch (const Error& e) {
      error = e.what();
    }
    if (!error.empty()) {
      for (std::size_t i = begin; i < end; ++i)
        ASSERT_EQ(difference_of(seeds[i], longest, device), "") << smallest(seeds[i], device);
      FAIL() << "seeds " << seeds[begin] << ".." << seeds[end - 1] << " together: " << error;
    }
    for (std::size_t i = begin; i < end; ++i) {
      const std::string what = difference(roots[i - begin], want[i - begin]);
      ASSERT_EQ(what, "") << smallest(seeds[i], device);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Graphs, ::testing::Values(Run{"CPU", 2000}, Run{"CLANG", 200}),
                         [](const auto& run) { return std::string(run.param.device); });

}  // namespace
}  // namespace mote
