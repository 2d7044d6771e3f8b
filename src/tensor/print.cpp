// Tensors as text, as NumPy prints them: brackets by axis, columns aligned, long axes cut.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "tensor/lift.h"

namespace mote {
namespace {

constexpr std::int64_t most_elements = 1000, edge = 3;

std::string number_text(Scalar s) {
  if (!is_float(s.dtype)) return s.text();
  const double v = s.as_double();
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  char text[40];
  const double size = std::abs(v);
  std::snprintf(text, sizeof text, size != 0 && (size < 1e-4 || size >= 1e8) ? "%.4e" : "%.4f", v);
  std::string out = text;
  if (out.find('e') == std::string::npos) {
    out.erase(out.find_last_not_of('0') + 1);
  }
  return out;
}

class Printer {
 public:
  Printer(const Tensor& t, const std::vector<std::byte>& bytes)
      : shape_(t.shape()), dtype_(t.dtype()), bytes_(bytes), cut_(t.numel() > most_elements) {
    measure(0, 0);
  }
  std::string run() { return part(0, 0, 1); }

 private:
  std::vector<std::int64_t> shown(std::size_t axis) const {
    std::vector<std::int64_t> out;
    const std::int64_t n = shape_[axis];
    for (std::int64_t i = 0; i < n; ++i) {
      if (cut_ && n > 2 * edge && i == edge) {
        out.push_back(-1);
        i = n - edge;
      }
      out.push_back(i);
    }
    return out;
  }

  std::string element(std::int64_t flat) const {
    return number_text(load_scalar(bytes_.data() + flat * size_of(dtype_), dtype_));
  }

  void measure(std::size_t axis, std::int64_t flat) {
    if (axis == shape_.size()) {
      width_ = std::max(width_, element(flat).size());
      return;
    }
    for (std::int64_t i : shown(axis))
      if (i >= 0) measure(axis + 1, flat * shape_[axis] + i);
  }

  std::string part(std::size_t axis, std::int64_t flat, std::size_t indent) const {
    if (axis == shape_.size()) {
      const std::string text = element(flat);
      return std::string(width_ - text.size(), ' ') + text;
    }
    std::string out = "[";
    bool first = true;
    for (std::int64_t i : shown(axis)) {
      const bool last_axis = axis + 1 == shape_.size();
      if (!first)
        out += last_axis ? " "
                         : std::string(shape_.size() - axis - 1, '\n') + std::string(indent, ' ');
      out += i < 0 ? "..." : part(axis + 1, flat * shape_[axis] + i, indent + 1);
      first = false;
    }
    return out + "]";
  }

  Dims shape_;
  DType dtype_;
  const std::vector<std::byte>& bytes_;
  bool cut_;
  std::size_t width_ = 0;
};

}  // namespace

std::string Tensor::text() const {
  if (!is_defined()) return "(undefined)";
  const auto bytes = to_bytes(Where{});
  return Printer(*this, bytes).run();
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << t.text(); }
void show(const Tensor& t) { std::cout << t.text() << std::endl; }

}  // namespace mote
