// Data sets in memory and their batches: what is in which batch depends on the options alone.
#include <set>

#include "io/folder.h"
#include "mote/mote.h"

namespace mote::testing {
namespace {

using data::BatchOptions;
using data::Dataset;

// Picture i of 1 x 2 holds i and 255 - i, its label is i.
Dataset numbered(int count) {
  Bytes pixels, labels;
  for (int i = 0; i < count; ++i) {
    labels.push_back(static_cast<std::uint8_t>(i));
    pixels.insert(pixels.end(), {static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(255 - i)});
  }
  return {pixels, labels, 1, 2};
}

// The labels of each batch, by iterating.
std::vector<std::vector<int>> labels_of(const Dataset& set, std::int64_t batch, BatchOptions o) {
  std::vector<std::vector<int>> out;
  for (const auto [x, y] : set.batches(batch, o)) {
    out.push_back(y.to_vector<int>());
    EXPECT_EQ(x.shape(), (Dims{y.size(0), 1, 1, 2}));
    EXPECT_EQ(x.dtype(), DType::float32);
    EXPECT_EQ(y.dtype(), DType::int64);
    const auto pixels = x.to_vector<float>();
    for (std::size_t i = 0; i < out.back().size(); ++i) {
      EXPECT_EQ(pixels[2 * i], static_cast<float>(out.back()[i]) / 255.f);
      EXPECT_EQ(pixels[2 * i + 1], static_cast<float>(255 - out.back()[i]) / 255.f);
    }
  }
  return out;
}

std::vector<int> joined(const std::vector<std::vector<int>>& parts) {
  std::vector<int> out;
  for (const auto& p : parts) out.insert(out.end(), p.begin(), p.end());
  return out;
}

TEST(Dataset, PicturesAreFloatsFromZeroToOne) {
  const Dataset set({0, 255, 51, 102, 1, 254}, {3, 200}, 3, 1);
  const auto [x, y] = set.all();
  EXPECT_EQ(x.shape(), (Dims{2, 1, 3, 1}));
  EXPECT_EQ(x.to_vector<float>(), (std::vector{0.f, 1.f, 0.2f, 0.4f, 1 / 255.f, 254 / 255.f}));
  EXPECT_EQ(y.to_vector<int>(), (std::vector{3, 200}));
  EXPECT_EQ(set.pick({1, 1, 0}).second.to_vector<int>(), (std::vector{200, 200, 3}));
  EXPECT_EQ(set.pick({}).first.shape(), (Dims{0, 1, 3, 1}));
}

TEST(Dataset, TheFirstPictures) {
  const Dataset set = numbered(5);
  EXPECT_EQ(set.first(2).labels(), (Bytes{0, 1}));
  EXPECT_EQ(set.first(2).pixels(), (Bytes{0, 255, 1, 254}));
  EXPECT_EQ(set.first(9).size(), 5);
  EXPECT_EQ(set.first(0).size(), 0);
  EXPECT_EQ(set.first(-1).size(), 0);
}

TEST(Dataset, WrongUses) {
  const Folder folder;
  const Dataset set = numbered(3);
  EXPECT_EQ(error_of<ShapeError>(folder, [] { Dataset({1, 2, 3}, {1, 2}, 1, 2); }),
            "dataset: 2 labels for 3 pixels of 1 x 2; give height * width bytes for each label");
  EXPECT_EQ(error_of<ShapeError>(folder, [] { Dataset({1, 2}, {1, 2}, -1, -1); }),
            "dataset: 2 labels for 2 pixels of -1 x -1; give height * width bytes for each label");
  EXPECT_EQ(error_of<ShapeError>(folder, [] { Dataset({}, {1, 2, 3, 4}, 1 << 30, 1 << 30); }),
            "dataset: 4 labels for 0 pixels of 1073741824 x 1073741824; give height * width bytes "
            "for each label");
  EXPECT_EQ(error_of<IndexError>(folder, [&] { set.pick({0, 3}); }),
            "dataset: there is no picture 3; it has 3");
  EXPECT_EQ(error_of<IndexError>(folder, [&] { set.pick({-1}); }),
            "dataset: there is no picture -1; it has 3");
}

TEST(Batches, InOrder) {
  const Dataset set = numbered(7);
  using Parts = std::vector<std::vector<int>>;
  EXPECT_EQ(labels_of(set, 3, {}), (Parts{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(labels_of(set, 3, {.drop_last = false}), (Parts{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(labels_of(set, 4, {.epochs = 2}), (Parts{{0, 1, 2, 3}, {0, 1, 2, 3}}));
  EXPECT_EQ(labels_of(set, 7, {.epochs = 1, .drop_last = false}), (Parts{{0, 1, 2, 3, 4, 5, 6}}));
  EXPECT_EQ(labels_of(set, 8, {.drop_last = false}), (Parts{{0, 1, 2, 3, 4, 5, 6}}));
  EXPECT_EQ(labels_of(set, 3, {.epochs = 0}), Parts{});
  EXPECT_EQ(labels_of(numbered(0), 3, {.epochs = 2, .drop_last = false}), Parts{});
}

TEST(Batches, CountsAllEpochs) {
  const Dataset set = numbered(10);
  EXPECT_EQ(set.batches(3).count(), 3);
  EXPECT_EQ(set.batches(3, {.epochs = 4}).count(), 12);
  EXPECT_EQ(set.batches(3, {.epochs = 4, .drop_last = false}).count(), 16);
  EXPECT_EQ(set.batches(3).batch(), 3);
}

// The generator is the standard's, so the order is the same on every machine; these were computed
// from its definition by another program.
TEST(Batches, TheShuffleIsFixed) {
  const Dataset set = numbered(10);
  const auto order = [&](std::uint64_t seed, int epochs) {
    return joined(labels_of(set, 5, {.epochs = epochs, .shuffle = true, .seed = seed}));
  };
  EXPECT_EQ(order(0, 1), (std::vector{7, 2, 0, 8, 3, 9, 6, 1, 5, 4}));
  EXPECT_EQ(order(1, 2), (std::vector{2, 5, 6, 8, 7, 1, 9, 3, 4, 0, 3, 4, 9, 8, 2, 5, 0, 6, 1, 7}));
}

TEST(Batches, AnEpochHoldsEveryPictureOnce) {
  const Dataset set = numbered(23);
  const BatchOptions o{.epochs = 3, .shuffle = true, .drop_last = false, .seed = 4};
  const auto parts = labels_of(set, 5, o);
  ASSERT_EQ(parts.size(), 15u);
  std::set<std::vector<int>> orders;
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    const auto order = joined({parts.begin() + static_cast<std::ptrdiff_t>(5 * epoch),
                               parts.begin() + static_cast<std::ptrdiff_t>(5 * epoch + 5)});
    EXPECT_EQ(std::set<int>(order.begin(), order.end()).size(), 23u) << "epoch " << epoch;
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3u) << "each epoch has an order of its own";
  EXPECT_EQ(labels_of(set, 5, o), parts) << "twice the same";
  BatchOptions shorter = o;
  shorter.epochs = 1;
  EXPECT_EQ(joined(labels_of(set, 5, shorter)), joined({parts.begin(), parts.begin() + 5}))
      << "later epochs do not change the first";
}

TEST(Batches, AnyOneCanBeTakenAlone) {
  const Dataset set = numbered(11);
  const BatchOptions o{.epochs = 2, .shuffle = true, .seed = 9};
  const auto parts = labels_of(set, 4, o);
  const auto all = set.batches(4, o);
  for (std::int64_t i = all.count() - 1; i >= 0; --i)
    EXPECT_EQ(all.at(i).second.to_vector<int>(), parts[static_cast<std::size_t>(i)]);
}

TEST(Batches, WrongUses) {
  const Folder folder;
  const Dataset set = numbered(7);
  EXPECT_EQ(error_of<ValueError>(folder, [&] { set.batches(0); }),
            "batches: the batch size is 0 at HERE; give 1 or more");
  EXPECT_EQ(error_of<ValueError>(folder, [&] { set.batches(-3); }),
            "batches: the batch size is -3 at HERE; give 1 or more");
  EXPECT_EQ(error_of<ValueError>(folder, [&] { set.batches(1, {.epochs = -1}); }),
            "batches: the number of epochs is -1 at HERE; give 0 or more");
  EXPECT_EQ(error_of<IndexError>(folder, [&] { set.batches(3).at(2); }),
            "batches: there is no batch 2; there are 2");
  EXPECT_EQ(error_of<IndexError>(folder, [&] { set.batches(3).at(-1); }),
            "batches: there is no batch -1; there are 2");
  EXPECT_EQ(error_of<ValueError>(folder, [&] { set.batches(8); }),
            "batches: a batch of 8 is more than the 7 pictures at HERE; give a smaller one, or "
            "drop_last = false");
}

// Batches look at the set: one that dies with the expression does not compile.
template <class Set>
concept gives_batches = requires(Set set) { std::forward<Set>(set).batches(1); };
static_assert(gives_batches<Dataset&> && gives_batches<const Dataset&>);
static_assert(!gives_batches<Dataset&&> && !gives_batches<const Dataset&&>);

}  // namespace
}  // namespace mote::testing
