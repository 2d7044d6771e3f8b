// A case of cases.json: small ones reduced from public bug reports of other frameworks, each with its
// inputs and right values.
#pragma once
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mote/mote.h"

namespace mote::testing {

using Named = std::map<std::string, Tensor>;

struct Case {
  nlohmann::json text;
  std::string id() const { return text["id"]; }
  Tensor operator[](const std::string& input) const;  // an input, by name
};

struct Row {
  std::string id;
  std::function<Named(const Case&)> run;  // the results by their names in the case
  // Results that mote cannot give, or gives otherwise, with the reason.
  std::map<std::string, std::string> missing = {};
};

std::vector<Row> value_rows();     // views, indexing, integers, casts, low precision
std::vector<Row> function_rows();  // reductions, convolutions, gradients, optimizers, files

struct Unreachable {
  const char *id, *reason;
};
inline constexpr Unreachable unreachable[] = {
    {"nan-05", "there is no sort and no argsort yet"},
};

}  // namespace mote::testing
