// `mote bench`: one case, one line of JSON. Cases, sizes and keys are those of other frameworks'
// runs of the same work, so that lines can be laid side by side.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

struct Options {
  std::string device;
  std::int64_t n = 1024;  // size of matmul
  double seconds = 2;     // for the measured iterations
  int threads = 1;
  bool json = false;
};

const std::vector<std::string>& cases();

// Three iterations first (plain, recorded, replayed), then at least five for the seconds asked.
// ValueError for an unknown case. Gives the line.
std::string run(const std::string& name, const Options&);

}  // namespace bench
