#include "mote/error.h"

#include <cstring>

namespace mote {

std::string Where::text() const {
  if (line == 0) return "";
  const char* slash = std::strrchr(file, '/');
  return std::string(slash ? slash + 1 : file) + ":" + std::to_string(line);
}

}  // namespace mote
