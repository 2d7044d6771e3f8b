// How many kernels each program of cases.h becomes, against tests/golden/kernels.txt, and its
// values against REF. MOTE_GOLDEN=1 writes the file anew; review the diff.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/text.h"
#include "schedule/cases.h"

namespace mote::cases {
namespace {

constexpr const char* golden_file = "golden/kernels.txt";

std::map<std::string, std::int64_t> golden() {
  std::map<std::string, std::int64_t> out;
  std::ifstream file(golden_file);
  std::string name;
  std::int64_t count = 0;
  while (file >> name >> count) out[name] = count;
  return out;
}

std::int64_t kernels_of(const Case& c) {
  set_default_device("NULL");
  manual_seed(1);
  Inputs in(true);
  reset_counters();
  realize(c.build(in));
  return counters().kernels;
}

std::vector<std::vector<double>> values_of(const Case& c, const std::string& device) {
  set_default_device(device);
  manual_seed(1);
  Inputs in(false);
  const Tensors roots = c.build(in);
  if (device != "REF") realize(roots);
  std::vector<std::vector<double>> out;
  for (const Tensor& t : roots) out.push_back(t.to_vector<double>());
  return out;
}

TEST(Golden, KernelCounts) {
  std::map<std::string, std::int64_t> counted;
  for (const Case& c : all()) counted[c.name] = kernels_of(c);
  if (std::getenv("MOTE_GOLDEN")) {
    std::ofstream file(golden_file);
    for (const Case& c : all()) file << c.name << ' ' << counted[c.name] << '\n';
  }
  const auto want = golden();
  ASSERT_GE(want.size(), 50u) << golden_file << " is read from the folder tests/";
  for (const auto& [name, count] : counted) {
    const auto at = want.find(name);
    ASSERT_NE(at, want.end()) << name << " has " << count << " kernels; MOTE_GOLDEN=1 adds it";
    EXPECT_EQ(count, at->second) << name;
  }
  for (const auto& [name, count] : want) EXPECT_TRUE(counted.contains(name)) << name;
}

class Values : public testing::TestWithParam<std::string> {};

TEST_P(Values, EqualReference) {
  for (const Case& c : all()) {
    SCOPED_TRACE(c.name);
    const auto want = values_of(c, "REF"), got = values_of(c, GetParam());
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t r = 0; r < want.size(); ++r) {
      ASSERT_EQ(got[r].size(), want[r].size());
      for (std::size_t i = 0; i < want[r].size(); ++i) {
        const double a = got[r][i], b = want[r][i];
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        ASSERT_LE(std::abs(a - b), 1e-4 * (1 + std::abs(b)))
            << "root " << r << " element " << i << ": " << a << ", REF " << b;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Values, testing::ValuesIn(devices_that_run()),
                         [](const auto& p) { return p.param; });

}  // namespace
}  // namespace mote::cases
