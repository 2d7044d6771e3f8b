#include "tensor/errors.h"

#include <algorithm>

namespace mote {
namespace {

thread_local std::string_view op_now;

}  // namespace

Within::Within(std::string_view op, Where place) : op_before_(op_now), place_(place) {
  if (op_now.empty()) op_now = op;
}
Within::~Within() { op_now = op_before_; }

std::string message(std::string_view text, const std::vector<std::string>& values) {
  const std::string place = current_place().text();
  std::string out = op_now.empty() ? std::string(text) : cat(op_now, ": ", text);
  if (!place.empty()) out.insert(std::min(out.find("; "), out.size()), " at " + place);
  std::size_t from = 0;
  for (const std::string& value : values) {
    from = out.find("{}", from);
    out.replace(from, 2, value);
    from += value.size();
  }
  return out;
}

std::string word(const Tensor& t) { return t.is_defined() ? word(t.shape()) : "(undefined)"; }
std::string word(const Dims& sizes) { return to_text(Shape(sizes.begin(), sizes.end())); }
std::string word(DType t) { return std::string(name_of(t)); }

}  // namespace mote
