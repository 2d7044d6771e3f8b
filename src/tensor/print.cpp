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

// A number in parts: "-12", "345", "e+06"; nan and inf are all front.
struct Word {
  std::string front, decimals, exponent;
};

Word word_of(Scalar s, bool with_exponent) {
  if (s.dtype == DType::boolean) return {s.as_bool() ? "True" : "False", "", ""};
  if (!is_float(s.dtype)) return {s.text(), "", ""};
  const double v = s.as_double();
  if (!std::isfinite(v)) return {s.text(), "", ""};
  int digits = 0;  // after the first one: the fewest that give the number back
  while (Scalar(s.dtype, std::stod(printed("%.*e", digits, v))) != s) ++digits;
  std::string text = printed("%.*e", std::min(digits, most_decimals), v);
  std::string exponent = text.substr(text.find('e'));
  if (with_exponent) {
    text.resize(text.find('e'));
  } else {
    const int decimals = digits - std::stoi(exponent.substr(1));
    // Digits past the fewest are zeros: 65504 in float16 is 65500.
    if (decimals < 0) text = printed("%.*f", 0, std::stod(printed("%.*e", digits, v)));
    else text = printed("%.*f", std::min(decimals, most_decimals), v);
    exponent.clear();
  }
  const std::size_t point = std::min(text.find('.'), text.size());
  std::string decimals = text.substr(std::min(point + 1, text.size()));
  decimals.erase(decimals.find_last_not_of('0') + 1);
  return {text.substr(0, point), decimals, exponent};
}

class Printer {
 public:
  Printer(const Tensor& t, const std::vector<std::byte>& bytes)
      : shape_(t.shape()), dtype_(t.dtype()), bytes_(bytes), cut_(t.numel() > most_elements) {
    std::vector<Scalar> elements;
    gather(0, 0, elements);
    choose_exponent(elements);
    if (dtype_ == DType::boolean && !shape_.empty()) front_ = 5;
    for (const Scalar& s : elements) {
      const Word w = word_of(s, exponent_);
      if (!is_number(s)) continue;
      front_ = std::max(front_, w.front.size());
      decimals_ = std::max(decimals_, w.decimals.size());
      exponent_size_ = std::max(exponent_size_, w.exponent.size());
    }
    for (const Scalar& s : elements)
      if (!is_number(s))
        front_ = std::max(front_, s.text().size() - std::min(s.text().size(), rest()));
  }
  std::string run() const {
    if (!shape_.empty())
      return std::find(shape_.begin(), shape_.end(), 0) == shape_.end() ? part(0, 0, line_width)
                                                                        : "[]";
    const std::string text = element(0);
    return text.back() == '.' ? text + "0" : text;
  }

 private:
  bool is_number(const Scalar& s) const {
    return !is_float(dtype_) || std::isfinite(s.as_double());
  }
  Scalar at(std::int64_t flat) const {
    return load_scalar(bytes_.data() + flat * size_of(dtype_), dtype_);
  }
  // What stands behind the front: the point, decimals and exponent.
  std::size_t rest() const { return is_float(dtype_) ? 1 + decimals_ + exponent_size_ : 0; }

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

  void choose_exponent(const std::vector<Scalar>& elements) {
    double least = INFINITY, most = 0;
    for (const Scalar& s : elements) {
      const double size = std::abs(s.as_double());
      if (!is_number(s) || size == 0) continue;
      least = std::min(least, size);
      most = std::max(most, size);
    }
    const double limit = bits_of(dtype_) == 64 ? 1e8 : bits_of(dtype_) == 32 ? 1e6 : 1e3;
    exponent_ =
        is_float(dtype_) && most > 0 && (most >= limit || least < 1e-4 || most / least > 1000);
  }

  std::string element(std::int64_t flat) const {
    const Scalar s = at(flat);
    Word w = word_of(s, exponent_);
    if (!is_float(dtype_) || !is_number(s))
      return std::string(front_ + rest() - w.front.size(), ' ') + w.front;
    const std::string before(front_ - w.front.size(), ' ');
    if (!exponent_)
      return before + w.front + "." + w.decimals + std::string(decimals_ - w.decimals.size(), ' ');
    // Up to the longest, the digits are those of the exact value.
    std::string digits = printed("%#.*e", static_cast<int>(decimals_), s.as_double());
    digits.resize(digits.find('e'));
    w.exponent.insert(2, exponent_size_ - w.exponent.size(), '0');
    return before + digits + w.exponent;
  }

  // Rows end at `width`, less what their closing brackets take.
  std::string part(std::size_t axis, std::int64_t flat, std::size_t width) const {
    if (axis == shape_.size()) return element(flat);
    const std::size_t axes = shape_.size() - axis;
    const std::string indent(axis + 1, ' ');
    std::string out, line = indent;
    for (std::int64_t i : shown(axis)) {
      const std::string word = i < 0 ? "..." : part(axis + 1, flat * shape_[axis] + i, width - 1);
      const bool first = line == indent && out.empty();
      const bool full = axes > 1 || line.size() + word.size() + 1 > width;
      if (!first && full && line.size() > indent.size()) {
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
  bool cut_, exponent_ = false;
  std::size_t front_ = 0, decimals_ = 0, exponent_size_ = 0;
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
