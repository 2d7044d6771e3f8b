// What is told of a training: in the terminal, and as one page of HTML that needs nothing else.
#pragma once
#include <string>
#include <vector>

#include "mote/digits.h"

namespace digits {

struct Report {
  Settings settings;
  std::string device;
  int threads = 0;
  std::int64_t pictures = 0;
  double seconds = 0;
  std::vector<float> losses;  // of every step
  std::vector<int> seen;      // for each test picture
  double accuracy = 0;
};

// The confusion matrix: rows are digits, columns what was seen.
std::string confusion(const Report&, const mote::data::Dataset& test);
// The first `count` pictures that were read wrong, for the terminal.
std::string wrong_pictures(const Report&, const mote::data::Dataset& test, int count);
std::string html(const Report&, const mote::data::Dataset& test);

}  // namespace digits
