#include "tensor/errors.h"

namespace mote {
namespace {

thread_local std::string_view op_now;

}  // namespace

Within::Within(std::string_view op, Where place) : op_before_(op_now), place_(place) {
  if (op_now.empty()) op_now = op;
}
Within::~Within() { op_now = op_before_; }

std::string message(std::string_view text, const std::vector<std::string>& values) {
  const std::string place = current_place().text(), at = place.empty() ? "" : " at " + place;
  std::string out = op_now.empty() ? "" : cat(op_now, ": ");
  std::size_t next = 0;
  bool placed = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (rest.starts_with("{}")) {
      out += values.at(next++);
      ++i;
      continue;
    }
    if (rest.starts_with("; ") && !placed) {
      out += at;
      placed = true;
    }
    out += text[i];
  }
  return placed ? out : out + at;
}

std::string word(const Tensor& t) { return t.is_defined() ? word(t.shape()) : "(undefined)"; }
std::string word(const Dims& sizes) { return to_text(Shape(sizes.begin(), sizes.end())); }
std::string word(DType t) { return std::string(name_of(t)); }

}  // namespace mote
