// A reader of golden.npz: a zip archive of npy files and an index (see golden.py).
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "tensor/golden.h"
#include "testing.h"

namespace mote::testing {
namespace {

template <class T>
T number_at(const std::string& bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.substr(at, sizeof(T)).data(), sizeof(T));  // substr checks the place
  return value;
}

std::string inflated(const std::string& packed, std::size_t size) {
  std::string out(size, '\0');
  z_stream z{};
  if (inflateInit2(&z, -MAX_WBITS) != Z_OK) throw std::runtime_error("golden.npz: zlib failed");
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(size);
  const int status = inflate(&z, Z_FINISH);
  inflateEnd(&z);
  if (status != Z_STREAM_END || z.total_out != size)
    throw std::runtime_error("golden.npz: a member is damaged");
  return out;
}

// The members by name, read along the central directory (signatures as in PKWARE's APPNOTE 4.3).
std::map<std::string, std::string> members(const std::string& zip) {
  const std::size_t end = zip.rfind("PK\5\6");
  if (end == std::string::npos) throw std::runtime_error("golden.npz: no zip archive");
  const auto count = number_at<std::uint16_t>(zip, end + 10);
  std::size_t at = number_at<std::uint32_t>(zip, end + 16);
  std::map<std::string, std::string> out;
  for (int i = 0; i < count; ++i) {
    const auto method = number_at<std::uint16_t>(zip, at + 10);
    const auto packed = number_at<std::uint32_t>(zip, at + 20),
               size = number_at<std::uint32_t>(zip, at + 24),
               local = number_at<std::uint32_t>(zip, at + 42);
    const auto name = number_at<std::uint16_t>(zip, at + 28),
               extra = number_at<std::uint16_t>(zip, at + 30),
               comment = number_at<std::uint16_t>(zip, at + 32);
    const std::size_t start = std::size_t{local} + 30 + number_at<std::uint16_t>(zip, local + 26) +
                              number_at<std::uint16_t>(zip, local + 28);
    const std::string bytes = zip.substr(start, packed);
    out[zip.substr(at + 46, name)] = method == 0 ? bytes : inflated(bytes, size);
    at += 46u + name + extra + comment;
  }
  return out;
}

DType dtype_of_descr(const std::string& d) {  // "<f4"
  static const std::map<std::string, DType> known{
      {"b1", DType::boolean}, {"i1", DType::int8},    {"i2", DType::int16},
      {"i4", DType::int32},   {"i8", DType::int64},   {"u1", DType::uint8},
      {"u2", DType::uint16},  {"u4", DType::uint32},  {"u8", DType::uint64},
      {"f2", DType::float16}, {"f4", DType::float32}, {"f8", DType::float64}};
  return known.at(d.substr(1));
}

// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
Array parsed(const std::string& npy) {
  const auto length = number_at<std::uint16_t>(npy, 8);
  const std::string header = npy.substr(10, length);
  const auto after = [&](const char* key) { return header.find(key) + std::strlen(key); };
  const std::size_t descr = after("'descr': '"), shape = after("'shape': (");
  Array a{dtype_of_descr(header.substr(descr, header.find('\'', descr) - descr)), {}, {}};
  std::string sizes = header.substr(shape, header.find(')', shape) - shape);
  for (char& c : sizes)
    if (c == ',') c = ' ';
  std::istringstream numbers(sizes);
  for (std::int64_t n; numbers >> n;) a.shape.push_back(n);
  const auto* data = reinterpret_cast<const std::byte*>(npy.data());
  a.bytes.assign(data + 10 + length, data + npy.size());
  return a;
}

std::vector<Case> read_cases() {
  const std::string root = variable("MOTE_SOURCE_DIR");
  const std::string path = (root.empty() ? "" : root + "/tests/") + "tensor/golden.npz";
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " is missing; run golden.py");
  const std::string zip{std::istreambuf_iterator<char>(file), {}};
  const auto all = members(zip);
  std::vector<Case> out;
  std::istringstream lines(all.at("index.txt"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Case c;
    words >> c.name;
    c.op = c.name.substr(0, c.name.find('/'));
    bool output = false;
    for (std::string word; words >> word;) {
      if (word == "->") {
        output = true;
        continue;
      }
      const std::size_t colon = word.find(':');
      Array a = parsed(all.at(word.substr(0, colon) + ".npy"));
      if (colon != std::string::npos) a.dtype = dtype_named(word.substr(colon + 1));
      (output ? c.outputs : c.inputs).push_back(std::move(a));
    }
    out.push_back(std::move(c));
  }
  return out;
}

}  // namespace

const std::vector<Case>& golden_cases() {
  static const std::vector<Case> all = read_cases();
  return all;
}

}  // namespace mote::testing
