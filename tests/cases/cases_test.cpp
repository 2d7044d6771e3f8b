// Every case of cases.json on every device, or the reason why not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include "cases/case.h"
#include "tensor/devices.h"
#include "testing.h"

namespace mote::testing {
namespace {

using Json = nlohmann::json;

void flatten(const Json& values, std::vector<double>& out) {
  if (values.is_array()) {
    for (const Json& v : values) flatten(v, out);
    return;
  }
  if (values.is_boolean()) out.push_back(values.get<bool>());
  else
    out.push_back(values.is_string() ? std::stod(values.get<std::string>()) : values.get<double>());
}

void flatten(const Json& values, std::vector<std::int64_t>& out) {
  if (!values.is_array()) return out.push_back(values.get<std::int64_t>());
  for (const Json& v : values) flatten(v, out);
}

Tensor tensor_of_json(const Json& v) {
  const DType t = dtype_named(v.at("dtype").get<std::string>());
  const Dims shape = v.at("shape").get<Dims>();
  if (is_integer(t)) {
    std::vector<std::int64_t> values;
    flatten(v.at("values"), values);
    return Tensor(values, shape, {.dtype = t});
  }
  std::vector<double> values;
  flatten(v.at("values"), values);
  return Tensor(values, shape, {.dtype = t});
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> all = [] {
    const std::string root = variable("MOTE_SOURCE_DIR");
    std::ifstream file((root.empty() ? "" : root + "/tests/") + "cases/cases.json");
    std::vector<Case> out;
    const Json read = Json::parse(file);
    for (const Json& c : read["cases"]) out.push_back({c});
    return out;
  }();
  return all;
}

std::vector<Row> all_rows() {
  std::vector<Row> rows = value_rows();
  for (Row& r : function_rows()) rows.push_back(r);
  return rows;
}

void expect_equal(const Tensor& got, const Json& want, const Json& tolerance) {
  EXPECT_EQ(name_of(got.dtype()), want.at("dtype").get<std::string>());
  ASSERT_EQ(got.shape(), want.at("shape").get<Dims>());
  if (is_integer(got.dtype())) {
    std::vector<std::int64_t> values;
    flatten(want.at("values"), values);
    EXPECT_EQ(got.to_vector<std::int64_t>(), values);
    return;
  }
  const std::vector<double> g = got.to_vector<double>();
  std::vector<double> w;
  flatten(want.at("values"), w);
  ASSERT_EQ(g.size(), w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    if (std::isnan(w[i])) {
      EXPECT_TRUE(std::isnan(g[i])) << "element " << i << " is " << g[i];
      continue;
    }
    if (std::isinf(w[i])) {
      EXPECT_EQ(g[i], w[i]) << "element " << i;
      continue;
    }
    const double bound =
        tolerance.at("atol").get<double>() + tolerance.at("rtol").get<double>() * std::abs(w[i]);
    EXPECT_LE(std::abs(g[i] - w[i]), bound) << "element " << i << ": " << g[i] << ", " << w[i];
  }
}

void check(const Case& c, const Row& row) {
  const Named results = row.run(c);
  const Json& expected = c.text["expected"];
  const bool single = expected.contains("dtype");
  const Json named = single ? Json{{"result", expected}} : expected;
  for (const auto& [name, want] : named.items()) {
    SCOPED_TRACE(name);
    if (row.missing.contains(name)) {
      EXPECT_FALSE(results.contains(name)) << "it is given, so it is not missing";
      continue;
    }
    const auto found = results.find(name);
    if (found == results.end()) ADD_FAILURE() << "no result";
    else expect_equal(found->second, want, c.text["tolerance"]);
  }
  for (const auto& [name, result] : results) EXPECT_TRUE(named.contains(name)) << name;
}

class Cases : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Devices, Cases, ::testing::ValuesIn(computing_devices),
                         [](const auto& chosen) { return std::string(chosen.param); });

TEST_P(Cases, HaveTheirRightValues) {
  const bool interpreted = std::string_view(GetParam()) == "REF";
  const std::vector<Row> rows = all_rows();
  for (const Case& c : all_cases()) {
    const auto row = std::ranges::find(rows, c.id(), &Row::id);
    if (row == rows.end()) continue;
    if (interpreted && c.id().starts_with("jit")) continue;  // REF launches nothing to record
    SCOPED_TRACE(c.id() + " on " + GetParam());
    set_default_device(GetParam());
    try {
      check(c, *row);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

TEST(CaseTable, EveryCaseHasARowOrAReason) {
  std::multiset<std::string> named;
  for (const Row& r : all_rows()) named.insert(r.id);
  for (const Unreachable& u : unreachable) named.insert(u.id);
  std::multiset<std::string> given;
  for (const Case& c : all_cases()) given.insert(c.id());
  EXPECT_EQ(named, given);
  EXPECT_GE(given.size(), 45u);
}

}  // namespace

Tensor Case::operator[](const std::string& input) const {
  return tensor_of_json(text.at("inputs").at(input));
}

}  // namespace mote::testing
