// The digits: IDX files, gzip or not, checked before anything is allocated.
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "base/flags.h"
#include "base/text.h"
#include "mote/data.h"
#include "tensor/errors.h"

namespace mote::data {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& path, const std::string& what, Where where) {
  const std::string at = where.text();
  throw FileError(cat("read_idx: ", path, ": ", what, at.empty() ? "" : " at " + at,
                      "; give a complete IDX file"));
}

// What an IDX file with this beginning holds in all; 0 where it is none.
std::uint64_t claimed_size(const std::vector<std::uint8_t>& bytes) {
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0 || bytes[3] > 4) return 0;
  std::uint64_t total = 1;
  for (std::size_t i = 0; i < bytes[3]; ++i) {
    std::uint64_t n = 0;
    for (std::size_t k = 4 + 4 * i; k < 8 + 4 * i && k < bytes.size(); ++k) n = n << 8 | bytes[k];
    if (__builtin_mul_overflow(total, n, &total)) return 0;
  }
  return total + 4 + 4 * std::uint64_t{bytes[3]};
}

// zlib reads plain files too. Bytes are taken as they come: no size is believed before, and what
// goes on past the size in its header (a small file can inflate to anything) is never read.
std::vector<std::uint8_t> inflated(const std::string& path, Where where) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (!file) refuse(path, "it cannot be opened", where);
  std::vector<std::uint8_t> out, part(1 << 20);
  for (;;) {
    const int n = gzread(file, part.data(), static_cast<unsigned>(part.size()));
    if (n < 0) {
      int code = 0;
      const std::string why = gzerror(file, &code);
      gzclose(file);
      refuse(path, "bad gzip data (" + why + ")", where);
    }
    out.insert(out.end(), part.begin(), part.begin() + n);
    if (n == 0) break;
    if (out.size() > claimed_size(out)) {
      gzclose(file);
      return out;
    }
  }
  if (gzclose(file) != Z_OK) refuse(path, "bad gzip data (it ends too early)", where);
  return out;
}

// Where the set's files are looked for, and what to do when they are nowhere.
struct Places {
  std::vector<std::string> folders;
  std::string advice;
};

Places places_of_mnist(const std::string& folder) {
  const std::string set = folder.empty() ? flag("MOTE_DATA_DIR") : folder;
  Places out;
  if (!set.empty()) out.folders = {set + "/mnist", set};
  if (!folder.empty()) {
    out.advice = "give the folder of the four IDX files";
    return out;
  }
  out.folders.insert(out.folders.end(), {MOTE_INSTALL_DATA "/mnist", MOTE_SOURCE_DATA "/mnist"});
  out.advice = "set MOTE_DATA_DIR to the folder that holds mnist/";
  return out;
}

std::string found(const Places& places, const std::string& name, Where where) {
  std::string tried;
  for (const std::string& folder : places.folders) {
    for (const char* ending : {".gz", ""}) {
      const std::string path = folder + "/" + name + ending;
      if (fs::exists(path)) return path;
    }
    tried += (tried.empty() ? "" : ", ") + folder;
  }
  const std::string at = where.text();
  throw FileError(cat("mnist: ", name, " is in none of ", tried, at.empty() ? "" : " at " + at,
                      "; ", places.advice));
}

// Pictures and their labels, which must fit to each other.
Dataset digits_of(const std::string& image_path, const std::string& label_path, Where where) {
  Idx images = read_idx(image_path, where), labels = read_idx(label_path, where);
  const auto bad = [&](const std::string& path, const std::string& what) {
    const std::string at = where.text();
    throw FileError(cat("mnist: ", path, ": ", what, at.empty() ? "" : " at " + at,
                        "; give the four files of one set"));
  };
  if (images.shape.size() != 3)
    bad(image_path, cat("it has ", images.shape.size(), " axes, not 3"));
  if (labels.shape.size() != 1)
    bad(label_path, cat("it has ", labels.shape.size(), " axes, not 1"));
  const std::int64_t height = images.shape[1], width = images.shape[2];
  if (images.shape[0] != labels.shape[0])
    bad(image_path, cat("it holds ", images.shape[0], " pictures, ", label_path, " ",
                        labels.shape[0], " labels"));
  if (height > 4096 || width > 4096)
    bad(image_path, cat("its pictures of ", height, " x ", width, " are larger than 4096"));
  const auto other = std::ranges::find_if(labels.bytes, [](std::uint8_t n) { return n > 9; });
  if (other != labels.bytes.end())
    bad(label_path, cat("label ", other - labels.bytes.begin(), " is ", static_cast<int>(*other),
                        ", not 0 to 9"));
  return {std::move(images.bytes), std::move(labels.bytes), static_cast<int>(height),
          static_cast<int>(width)};
}

}  // namespace

Idx read_idx(const std::string& path, Where where) {
  const auto bytes = inflated(path, where);
  if (bytes.size() < 4)
    refuse(path, cat("it has ", bytes.size(), " bytes, less than a header"), where);
  if (bytes[0] != 0 || bytes[1] != 0) refuse(path, "it begins with a wrong magic number", where);
  if (bytes[2] != 8)
    refuse(path, cat("its elements have type ", static_cast<int>(bytes[2]), ", not bytes (8)"),
           where);
  const std::size_t axes = bytes[3], header = 4 + 4 * axes;
  if (axes < 1 || axes > 4)
    refuse(path, cat("its header names ", axes, " axes, not 1 to 4"), where);
  if (bytes.size() < header)
    refuse(path, cat("it ends within its header of ", axes, " axes"), where);
  Idx out;
  std::uint64_t total = 1;
  for (std::size_t i = 0; i < axes; ++i) {
    std::uint64_t n = 0;
    for (std::size_t k = 0; k < 4; ++k) n = n << 8 | bytes[4 + 4 * i + k];
    out.shape.push_back(static_cast<std::int64_t>(n));
    if (__builtin_mul_overflow(total, n, &total)) refuse(path, "its sizes overflow", where);
  }
  if (total != bytes.size() - header)
    refuse(path, cat("its sizes ask for ", total, " bytes, it holds ", bytes.size() - header),
           where);
  out.bytes.assign(bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end());
  return out;
}

Dataset::Dataset(std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels, int height,
                 int width)
    : pixels_(std::move(pixels)), labels_(std::move(labels)), height_(height), width_(width) {
  const std::int64_t picture = std::int64_t{height} * width;
  std::int64_t total = 0;
  if (height < 0 || width < 0 || __builtin_mul_overflow(size(), picture, &total) ||
      pixels_.size() != static_cast<std::uint64_t>(total))
    throw ShapeError(cat("dataset: ", labels_.size(), " labels for ", pixels_.size(), " pixels of ",
                         height, " x ", width, "; give height * width bytes for each label"));
}

Dataset Dataset::first(std::int64_t count) const {
  const auto n = static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, size()));
  const std::size_t picture = static_cast<std::size_t>(height_ * width_);
  return {{pixels_.begin(), pixels_.begin() + static_cast<std::ptrdiff_t>(n * picture)},
          {labels_.begin(), labels_.begin() + static_cast<std::ptrdiff_t>(n)},
          height_,
          width_};
}

std::pair<Tensor, Tensor> Dataset::pick(const std::vector<std::int64_t>& which) const {
  const std::size_t picture = static_cast<std::size_t>(height_ * width_);
  std::vector<float> x(which.size() * picture);
  std::vector<std::int64_t> y(which.size());
  for (std::size_t i = 0; i < which.size(); ++i) {
    if (which[i] < 0 || which[i] >= size())
      throw IndexError(cat("dataset: there is no picture ", which[i], "; it has ", size()));
    const auto at = static_cast<std::size_t>(which[i]);
    for (std::size_t k = 0; k < picture; ++k)
      x[i * picture + k] = static_cast<float>(pixels_[at * picture + k]) / 255.f;
    y[i] = labels_[at];
  }
  const auto n = static_cast<std::int64_t>(which.size());
  return {Tensor(x, {n, 1, height_, width_}), Tensor(y, {n})};
}

std::pair<Tensor, Tensor> Dataset::all() const {
  std::vector<std::int64_t> which(labels_.size());
  std::iota(which.begin(), which.end(), 0);
  return pick(which);
}

Dataset::Batches::Batches(const Dataset& set, std::int64_t batch, BatchOptions options, Where where)
    : set_(&set), batch_(batch), options_(options) {
  const Within op("batches", where);
  if (batch < 1) mote::refuse<ValueError>("the batch size is {}; give 1 or more", batch);
  if (options.epochs < 0)
    mote::refuse<ValueError>("the number of epochs is {}; give 0 or more", options.epochs);
  if (options.drop_last && set.size() > 0 && batch > set.size())
    mote::refuse<ValueError>(
        "a batch of {} is more than the {} pictures; give a smaller one, or "
        "drop_last = false",
        batch, set.size());
}

std::int64_t Dataset::Batches::count() const {
  const std::int64_t n = set_->size();
  return options_.epochs * (options_.drop_last ? n / batch_ : (n + batch_ - 1) / batch_);
}

// The order of an epoch depends on the seed and the epoch alone.
std::pair<Tensor, Tensor> Dataset::Batches::at(std::int64_t index) const {
  if (index < 0 || index >= count())
    throw IndexError(cat("batches: there is no batch ", index, "; there are ", count()));
  const std::int64_t each = count() / options_.epochs, epoch = index / each;
  std::vector<std::int64_t> order(static_cast<std::size_t>(set_->size()));
  std::iota(order.begin(), order.end(), 0);
  if (options_.shuffle) {
    std::mt19937_64 random(options_.seed * 1000003 + static_cast<std::uint64_t>(epoch));
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  }
  const std::int64_t from = index % each * batch_, to = std::min(from + batch_, set_->size());
  return set_->pick({order.begin() + from, order.begin() + to});
}

TrainTest mnist(const std::string& folder, Where where) {
  Places places = places_of_mnist(folder);
  const std::string first = found(places, "train-images-idx3-ubyte", where);
  places.folders = {fs::path(first).parent_path().string()};  // sets of two folders do not mix
  const auto part = [&](const std::string& name) {
    return digits_of(found(places, name + "-images-idx3-ubyte", where),
                     found(places, name + "-labels-idx1-ubyte", where), where);
  };
  return {part("train"), part("t10k")};
}

}  // namespace mote::data
