// safetensors: 8 bytes of header length, a JSON header, then the bytes of the tensors. The header
// is hostile input: sizes are checked against the file before anything is made of them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/text.h"
#include "mote/data.h"

namespace mote {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::pair<std::string_view, DType> names[] = {
    {"BOOL", DType::boolean},        {"U8", DType::uint8},
    {"U16", DType::uint16},          {"U32", DType::uint32},
    {"U64", DType::uint64},          {"I8", DType::int8},
    {"I16", DType::int16},           {"I32", DType::int32},
    {"I64", DType::int64},           {"F8_E4M3", DType::float8_e4m3},
    {"F8_E5M2", DType::float8_e5m2}, {"F16", DType::float16},
    {"BF16", DType::bfloat16},       {"F32", DType::float32},
    {"F64", DType::float64}};

std::string at_place(Where where) { return where.line ? " at " + where.text() : ""; }

[[noreturn]] void refuse(const std::string& path, const std::string& what, Where where) {
  throw FileError(cat("load: ", path, ": ", what, at_place(where),
                      "; the file is damaged or no safetensors file"));
}

// A tree of JSON that refuses a key given twice.
Json parsed(const std::string& text, const std::string& path, Where where) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  const auto watch = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  Json header = Json::parse(text, watch, false);
  // The parser takes a zero byte for the end of the text.
  if (text.find('\0') != std::string::npos || header.is_discarded() || !header.is_object())
    refuse(path, "its header is no JSON object", where);
  if (!twice.empty()) refuse(path, cat("its header names '", twice, "' twice"), where);
  return header;
}

struct Entry {
  std::string name;
  DType dtype;
  Dims shape;
  std::uint64_t begin, end;
};

Entry entry(const std::string& name, const Json& j, const std::string& path, Where where) {
  const auto bad = [&](const std::string& what) {
    refuse(path, cat("tensor '", name, "': ", what), where);
  };
  if (!j.is_object() || !j.contains("dtype") || !j.contains("shape") || !j.contains("data_offsets"))
    bad("dtype, shape or data_offsets is missing");
  if (!j["dtype"].is_string() || !j["shape"].is_array() || !j["data_offsets"].is_array() ||
      j["data_offsets"].size() != 2)
    bad("its entry is odd");
  Entry e{name, DType::float32, {}, 0, 0};
  const auto type = j["dtype"].get<std::string>();
  const auto known = std::ranges::find(names, type, &std::pair<std::string_view, DType>::first);
  if (known == std::end(names)) bad(cat("the dtype '", type, "' is not known"));
  e.dtype = known->second;
  // Strides are products of the sizes beside a 0, so these must fit as well.
  std::int64_t total = size_of(e.dtype);
  for (const Json& s : j["shape"]) {
    if (!s.is_number_unsigned() || s.get<std::uint64_t>() > INT64_MAX)
      bad("a size is no number of 63 bits");
    e.shape.push_back(s.get<std::int64_t>());
    if (__builtin_mul_overflow(total, std::max<std::int64_t>(e.shape.back(), 1), &total))
      bad("its sizes overflow");
  }
  if (std::ranges::count(e.shape, 0)) total = 0;
  for (const Json& o : j["data_offsets"])
    if (!o.is_number_unsigned()) bad("an offset is no number of 64 bits");
  e.begin = j["data_offsets"][0].get<std::uint64_t>();
  e.end = j["data_offsets"][1].get<std::uint64_t>();
  if (e.end < e.begin) bad(cat("its offsets ", e.begin, " and ", e.end, " are in the wrong order"));
  if (e.end - e.begin != static_cast<std::uint64_t>(total))
    bad(cat("its offsets hold ", e.end - e.begin, " bytes, its shape needs ", total));
  return e;
}

// Code for bools may rely on it.
void expect_bools(const std::vector<std::byte>& bytes, const std::string& name,
                  const std::string& path, Where where) {
  const auto other = std::ranges::find_if(bytes, [](std::byte b) { return b > std::byte{1}; });
  if (other != bytes.end())
    refuse(path,
           cat("tensor '", name, "': a byte of BOOL is ", static_cast<int>(*other), ", not 0 or 1"),
           where);
}

// The name as JSON can hold it, and as a reader takes it for a tensor's.
void expect_name(const std::string& name, Where where) {
  const auto bad = [&](const std::string& what) {
    throw ValueError(cat("save: ", what, at_place(where), "; choose another name"));
  };
  if (name == "__metadata__") bad("'__metadata__' names no tensor in a safetensors file");
  try {
    Json(name).dump();
  } catch (const Json::type_error&) {
    bad(cat("the name '", name, "' is no UTF-8"));
  }
}

// A file beside its place, renamed when it is complete and on the disk: whatever fails, a reader
// sees the old file or the new one, and nothing is left beside. Each writer has a file of its own.
class NewFile {
 public:
  NewFile(const std::string& path, Where where) : path_(path), where_(where) {
    static std::atomic<int> count{0};
    beside_ = cat(path, ".", static_cast<long long>(getpid()), ".", count++, ".part");
    fd_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0) failed("making the file");
  }
  ~NewFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!done_) ::unlink(beside_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void put(const void* data, std::size_t size) {
    const char* from = static_cast<const char*>(data);
    while (size) {
      const ssize_t n = ::write(fd_, from, size);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) failed("writing");
      from += n;
      size -= static_cast<std::size_t>(n);
    }
  }
  void finish() {
    if (::fsync(fd_) != 0 || ::close(std::exchange(fd_, -1)) != 0) failed("syncing");
    if (::rename(beside_.c_str(), path_.c_str()) != 0) failed("renaming");
    done_ = true;
  }

 private:
  [[noreturn]] void failed(const char* what) const {
    throw FileError(cat("save: ", path_, ": ", what, " failed (", std::strerror(errno), ")",
                        at_place(where_), "; check the folder and the free space"));
  }

  std::string path_, beside_;
  Where where_;
  int fd_ = -1;
  bool done_ = false;
};

}  // namespace

std::map<std::string, Tensor> load(const std::string& path, Where where) {
  const auto no_file = [&](const char* what) {
    throw FileError(cat("load: ", path, what, at_place(where), "; check the path"));
  };
  std::error_code missing;
  if (fs::exists(path, missing) && !fs::is_regular_file(path, missing)) no_file(" is no file");
  std::ifstream file(path, std::ios::binary);
  if (!file) no_file(" cannot be opened");
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(file.tellg());
  file.seekg(0);
  std::uint64_t header_size = 0;
  if (size < 8 || !file.read(reinterpret_cast<char*>(&header_size), 8))
    refuse(path, "it is shorter than a header", where);
  if (header_size > size - 8 || header_size > (100u << 20))
    refuse(path, cat("its header claims ", header_size, " bytes of ", size), where);
  std::string text(header_size, ' ');
  file.read(text.data(), static_cast<std::streamsize>(header_size));
  const Json header = parsed(text, path, where);
  std::vector<Entry> entries;
  for (const auto& [name, j] : header.items())
    if (name != "__metadata__") entries.push_back(entry(name, j, path, where));
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const Entry& e : entries) {
    if (e.begin != at)
      refuse(path,
             cat("tensor '", e.name, "' begins at ", e.begin, ", the one before ends at ", at),
             where);
    at = e.end;
  }
  if (at != size - 8 - header_size)
    refuse(path, cat("its tensors need ", at, " bytes, it holds ", size - 8 - header_size), where);
  std::map<std::string, Tensor> out;
  for (const Entry& e : entries) {
    std::vector<std::byte> bytes(e.end - e.begin);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file && !bytes.empty()) refuse(path, "it ends too early", where);
    if (e.dtype == DType::boolean) expect_bools(bytes, e.name, path, where);
    out.emplace(e.name, Tensor::from_bytes(bytes, e.shape, e.dtype, {}, where));
  }
  return out;
}

void save(const std::map<std::string, Tensor>& tensors, const std::string& path, Where where) {
  Json header = Json::object();
  std::uint64_t at = 0;
  std::vector<std::vector<std::byte>> parts;
  for (const auto& [name, t] : tensors) {
    expect_name(name, where);
    parts.push_back(t.to_bytes(where));
    const auto type =
        std::ranges::find(names, t.dtype(), &std::pair<std::string_view, DType>::second);
    header[name] = {{"dtype", std::string(type->first)},
                    {"shape", t.shape()},
                    {"data_offsets", {at, at + parts.back().size()}}};
    at += parts.back().size();
  }
  std::string text = header.dump();
  text += std::string((8 - text.size() % 8) % 8, ' ');  // the data begins aligned
  const std::uint64_t header_size = text.size();
  NewFile file(path, where);
  file.put(&header_size, 8);
  file.put(text.data(), text.size());
  for (const auto& p : parts) file.put(p.data(), p.size());
  file.finish();
}

}  // namespace mote
