// Tensors as text, as NumPy prints them: brackets by axis, columns aligned at their points, the
// fewest digits that tell a number from its neighbours (at most 8 after the point), exponents where
// sizes lie far apart, lines of 75 columns, and of more than 1000 elements the first and last three
// of each axis.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "tensor/lift.h"

namespace mote {
namespace {

constexpr std::int64_t most_elements = 1000, edge = 3;
constexpr std::size_t line_width = 75;
constexpr int most_decimals = 8;

std::string printed(const char* format, int decimals, double v) {
  char text[400];
  std::snprintf(text, sizeof text, format, decimals, v);
  return text;
}

bool is_number(const Scalar& s) { return is_float(s.dtype) && std::isfinite(s.as_double()); }

// By the fewest digits, without zeros at the end: "-3.25", "12.", "1.5e-07".
std::string fewest(const Scalar& s, bool with_power) {
  const double v = s.as_double();
  int digits = 0;  // after the first one
  while (Scalar(s.dtype, std::stod(printed("%.*e", digits, v))) != s) ++digits;
  std::string text = printed("%#.*e", std::min(digits, most_decimals), v), power;
  power = text.substr(text.find('e'));
  text.resize(text.find('e'));
  if (!with_power) {
    const int decimals = digits - std::stoi(power.substr(1));
    // Digits past the fewest are zeros: 65504 in float16 is 65500.
    const double value = decimals < 0 ? std::stod(printed("%.*e", digits, v)) : v;
    text = printed("%#.*f", std::clamp(decimals, 0, most_decimals), value);
    power.clear();
  }
  text.erase(text.find_last_not_of('0') + 1);
  return text + power;
}

std::size_t power_size(const std::string& text) {
  return text.size() - std::min(text.find('e'), text.size());
}
std::size_t decimals_of(const std::string& text) {
  return text.size() - power_size(text) - text.find('.') - 1;
}

class Printer {
 public:
  Printer(const Tensor& t, const std::vector<std::byte>& bytes)
      : shape_(t.shape()), dtype_(t.dtype()), bytes_(bytes), cut_(t.numel() > most_elements) {
    std::vector<Scalar> elements;
    gather(0, 0, elements);
    with_power_ = sizes_lie_apart(elements);
    for (const Scalar& s : elements) {
      if (!is_number(s)) continue;
      const std::string text = fewest(s, with_power_);
      decimals_ = std::max(decimals_, decimals_of(text));
      power_ = std::max(power_, power_size(text));
    }
    if (dtype_ == DType::boolean && !shape_.empty()) width_ = 5;
    for (const Scalar& s : elements) width_ = std::max(width_, unpadded(s).size());
  }
  std::string run() const {
    if (std::ranges::find(shape_, 0) != shape_.end()) return "[]";
    const std::string text = part(0, 0, line_width);
    return text.back() == '.' ? text + "0" : text;  // a scalar
  }

 private:
  Scalar at(std::int64_t flat) const {
    return load_scalar(bytes_.data() + flat * size_of(dtype_), dtype_);
  }

  bool sizes_lie_apart(const std::vector<Scalar>& elements) const {
    double least = INFINITY, most = 0;
    for (const Scalar& s : elements) {
      const double size = std::abs(s.as_double());
      if (!is_number(s) || size == 0) continue;
      least = std::min(least, size);
      most = std::max(most, size);
    }
    const double limit = bits_of(dtype_) == 64 ? 1e8 : bits_of(dtype_) == 32 ? 1e6 : 1e3;
    return most > 0 && (most >= limit || least < 1e-4 || most / least > 1000);
  }

  // All numbers have as much behind the point: padded on the left, the points are in line.
  std::string unpadded(const Scalar& s) const {
    if (dtype_ == DType::boolean) return s.as_bool() ? "True" : "False";
    if (!is_number(s)) return s.text();
    std::string text = fewest(s, with_power_);
    if (!with_power_) return text + std::string(decimals_ - decimals_of(text), ' ');
    // Up to the longest, the digits are those of the exact value.
    text = printed("%#.*e", static_cast<int>(decimals_), s.as_double());
    return text.insert(text.find('e') + 2, power_ - power_size(text), '0');
  }

  // The places shown of an axis; -1 stands for "..".
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

  void gather(std::size_t axis, std::int64_t flat, std::vector<Scalar>& out) const {
    if (axis == shape_.size()) return out.push_back(at(flat));
    for (std::int64_t i : shown(axis))
      if (i >= 0) gather(axis + 1, flat * shape_[axis] + i, out);
  }

  // Rows end at `width`, less what their closing brackets take.
  std::string part(std::size_t axis, std::int64_t flat, std::size_t width) const {
    if (axis == shape_.size()) {
      const std::string text = unpadded(at(flat));
      return std::string(width_ - text.size(), ' ') + text;
    }
    const std::size_t axes = shape_.size() - axis;
    const std::string indent(axis + 1, ' ');
    std::string out, line = indent;
    for (std::int64_t i : shown(axis)) {
      const std::string word = i < 0 ? "..." : part(axis + 1, flat * shape_[axis] + i, width - 1);
      const bool full = axes > 1 || line.size() + word.size() + 1 > width;
      if (full && line != indent) {
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + std::string(std::max<std::size_t>(axes - 1, 1), '\n');
        line = indent;
      }
      line += word + (axes == 1 ? " " : "");
    }
    if (axes == 1) line.pop_back();
    return "[" + (out + line).substr(indent.size()) + "]";
  }

  Dims shape_;
  DType dtype_;
  const std::vector<std::byte>& bytes_;
  bool cut_, with_power_ = false;
  std::size_t decimals_ = 0, power_ = 0, width_ = 0;
};

}  // namespace

std::string Tensor::text(Where where) const {
  const Within op("text", where);
  if (!is_defined()) return "(undefined)";
  const auto bytes = to_bytes();
  return Printer(*this, bytes).run();
}

std::ostream& operator<<(std::ostream& out, const Tensor& t) { return out << t.text(Where{}); }
void show(const Tensor& t, Where where) {
  const Within op("show", where);
  std::cout << t.text() << std::endl;
}

}  // namespace mote
