// room: io
// Data sets and files of tensors.
#pragma once
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mote/tensor.h"

namespace mote {

// ---- safetensors: headers are checked as hostile input; a file is written beside its place,
// synced and renamed. FileError says what is wrong with which file.
void save(const std::map<std::string, Tensor>&, const std::string& path, Where = Where::here());
std::map<std::string, Tensor> load(const std::string& path, Where = Where::here());

namespace data {

struct BatchOptions {
  int epochs = 1;
  bool shuffle = false;
  bool drop_last = true;
  std::uint64_t seed = 0;
};

// Pictures as bytes with labels; batches are made as float32 (N, 1, H, W) in 0..1 and int64 (N).
class Dataset {
 public:
  Dataset() = default;
  Dataset(std::vector<std::uint8_t> pixels, std::vector<std::uint8_t> labels, int height,
          int width);
  std::int64_t size() const { return static_cast<std::int64_t>(labels_.size()); }
  Dataset first(std::int64_t count) const;
  std::pair<Tensor, Tensor> pick(const std::vector<std::int64_t>& which) const;
  std::pair<Tensor, Tensor> all() const;
  const std::vector<std::uint8_t>& pixels() const { return pixels_; }
  const std::vector<std::uint8_t>& labels() const { return labels_; }
  int height() const { return height_; }
  int width() const { return width_; }

  // A range of (x, y), for range-for and progress().
  class Batches {
   public:
    Batches(const Dataset& set, std::int64_t batch, BatchOptions options,
            Where where = Where::here());
    struct Sentinel {};
    class Iterator {
     public:
      explicit Iterator(const Batches* of) : of_(of) {}
      std::pair<Tensor, Tensor> operator*() const { return of_->at(index_); }
      Iterator& operator++() {
        ++index_;
        return *this;
      }
      bool operator!=(Sentinel) const { return index_ < of_->count(); }

     private:
      const Batches* of_;
      std::int64_t index_ = 0;
    };
    Iterator begin() const { return Iterator(this); }
    Sentinel end() const { return {}; }
    std::int64_t count() const;  // of all epochs
    std::int64_t batch() const { return batch_; }
    std::pair<Tensor, Tensor> at(std::int64_t index) const;

   private:
    const Dataset* set_;
    std::int64_t batch_;
    BatchOptions options_;
  };
  // They look at this set, which must outlive them.
  Batches batches(std::int64_t batch, BatchOptions options = {},
                  Where where = Where::here()) const& {
    return Batches(*this, batch, options, where);
  }
  Batches batches(std::int64_t batch, BatchOptions options = {},
                  Where where = Where::here()) const&& = delete;

 private:
  std::vector<std::uint8_t> pixels_, labels_;
  int height_ = 0, width_ = 0;
};

struct TrainTest {
  Dataset train, test;
};
// The real digits: 60,000 and 10,000 pictures of 28 x 28. Looked for in `folder` alone if one is
// named, else in MOTE_DATA_DIR, then where mote is installed, then in its source. The first place
// that holds pictures must hold the whole set. FileError lists the places.
TrainTest mnist(const std::string& folder = "", Where = Where::here());
// One IDX file, gzip or not: magic, sizes and length are checked.
struct Idx {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> bytes;
};
Idx read_idx(const std::string& path, Where = Where::here());

}  // namespace data

// Goes through a range of batches and shows on stderr how far it is, the rate and the time left; a
// line now and then where stderr is no terminal. `note` is shown at the end of the line.
class ProgressBar {
 public:
  ProgressBar(std::int64_t total, std::int64_t unit = 1, std::string unit_name = "it");
  ~ProgressBar();
  void advance(std::string note = "");
  double rate() const;  // units a second so far

 private:
  std::int64_t total_, unit_, done_ = 0;
  std::string unit_name_;
  double begun_, shown_ = -1e9;
  bool terminal_;
};

template <class Range>
class Progress {
 public:
  explicit Progress(Range range) : range_(std::move(range)), bar_(range_.count(), range_.batch()) {}
  struct Sentinel {};
  class Iterator {
   public:
    Iterator(decltype(std::declval<const Range&>().begin()) it, Progress* of) : it_(it), of_(of) {}
    auto operator*() const { return *it_; }
    Iterator& operator++() {
      ++it_;
      of_->bar_.advance();
      return *this;
    }
    bool operator!=(Sentinel) const { return it_ != of_->range_.end(); }

   private:
    decltype(std::declval<const Range&>().begin()) it_;
    Progress* of_;
  };
  Iterator begin() { return Iterator(range_.begin(), this); }
  Sentinel end() const { return {}; }

 private:
  Range range_;
  ProgressBar bar_;
};
template <class Range>
Progress<Range> progress(Range range) {
  return Progress<Range>(std::move(range));
}

// A picture (H, W), or one with axes of 1 before these, in 0..1 as blocks of text, for the
// terminal.
std::string picture(const Tensor&, Where = Where::here());

}  // namespace mote
