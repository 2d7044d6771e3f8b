// IDX files are hostile input: what is wrong with one is said, and nothing else happens.
#include <random>

#include "io/idx_file.h"
#include "mote/data.h"
#include "testing.h"

namespace mote::testing {
namespace {

TEST(Idx, PlainAndGzipGiveShapeAndBytes) {
  const Folder folder;
  const std::vector<std::vector<std::uint32_t>> shapes{{5}, {2, 3},    {4, 3, 2},      {2, 1, 3, 2},
                                                       {0}, {3, 0, 4}, {0, 4294967295}};
  for (const auto& shape : shapes) {
    std::size_t n = 1;
    for (std::uint32_t size : shape) n *= size;
    const Bytes bytes = counted(n, 37), file = idx(shape, bytes);
    for (const Bytes& stored : {file, gzip(file)}) {
      const data::Idx got = data::read_idx(folder.put("x", stored));
      EXPECT_EQ(got.shape, std::vector<std::int64_t>(shape.begin(), shape.end()));
      EXPECT_EQ(got.bytes, bytes);
    }
  }
}

TEST(Idx, FaultsAreTold) {
  const auto cut = [](Bytes bytes, std::size_t size) {
    bytes.resize(size);
    return bytes;
  };
  const auto changed = [](Bytes bytes, std::size_t at, std::uint8_t value) {
    bytes[at] = value;
    return bytes;
  };
  const Bytes whole = idx({2, 3}, counted(6)), packed = gzip(whole);
  // The check sum of the plain bytes is the last but one word of the gzip format.
  const std::size_t check = packed.size() - 8;
  const struct {
    Bytes file;
    std::string what;
  } rows[] = {
      {{}, "it has 0 bytes, less than a header"},
      {{0, 0, 8}, "it has 3 bytes, less than a header"},
      {changed(whole, 0, 1), "it begins with a wrong magic number"},
      {changed(whole, 1, 1), "it begins with a wrong magic number"},
      {changed(whole, 2, 0x0d), "its elements have type 13, not bytes (8)"},
      {changed(whole, 3, 0), "its header names 0 axes, not 1 to 4"},
      {changed(whole, 3, 5), "its header names 5 axes, not 1 to 4"},
      {cut(whole, 11), "it ends within its header of 2 axes"},
      {cut(whole, 4), "it ends within its header of 2 axes"},
      {cut(whole, 17), "its sizes ask for 6 bytes, it holds 5"},
      {cut(whole, 19), "its sizes ask for 6 bytes, it holds 7"},
      {idx_header({4294967295, 4294967295}),
       "its sizes ask for 18446744065119617025 bytes, it holds 0"},
      {idx_header({4294967295, 4294967295, 2}), "its sizes overflow"},
      {idx_header({65536, 65536, 65536, 65536}), "its sizes overflow"},
      {gzip(cut(whole, 17)), "its sizes ask for 6 bytes, it holds 5"},
      {cut(packed, packed.size() - 1), "bad gzip data (it ends too early)"},
      {cut(packed, 20), "bad gzip data (it ends too early)"},
      {changed(packed, check, packed[check] ^ 1), "bad gzip data (FOLDER/x: incorrect data check)"},
      {changed(packed, 10, 7), "bad gzip data (FOLDER/x: invalid block type)"},
  };
  const Folder folder;
  for (const auto& row : rows) {
    const std::string path = folder.put("x", row.file);
    EXPECT_EQ(error_of(folder, [&] { data::read_idx(path); }),
              "read_idx: FOLDER/x: " + row.what + " at HERE; give a complete IDX file");
  }
  EXPECT_EQ(error_of(folder, [&] { data::read_idx(folder / "none"); }),
            "read_idx: FOLDER/none: it cannot be opened at HERE; give a complete IDX file");
}

TEST(Idx, EveryCutIsAnError) {
  const Folder folder;
  const Bytes plain = idx({3, 2, 2}, counted(12, 21));
  for (const Bytes& whole : {plain, gzip(plain)})
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::string path =
          folder.put("x", Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
      EXPECT_NE(error_of(folder, [&] { data::read_idx(path); }), "(nothing was thrown)")
          << size << " of " << whole.size() << " bytes";
    }
}

// gzip has a check sum: damage is an error or does no harm, but never changes a byte.
TEST(Idx, DamagedGzipNeverGivesOtherBytes) {
  const Folder folder;
  const Bytes bytes = counted(600, 91), whole = gzip(idx({6, 10, 10}, bytes));
  int harmless = 0, errors = 0;
  for (std::uint64_t seed : seeds(500)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Bytes file = whole;
    for (std::uint64_t n = 1 + random() % 3; n > 0; --n)
      file[random() % file.size()] ^= static_cast<std::uint8_t>(1 << random() % 8);
    const std::string path = folder.put("x", file);
    try {
      const data::Idx got = data::read_idx(path);
      ASSERT_EQ(got.bytes, bytes);
      ++harmless;
    } catch (const FileError&) {
      ++errors;
    }
  }
  if (!variable("MOTE_SEED").empty()) return;  // one round alone is of one kind
  EXPECT_GT(errors, harmless);
}

}  // namespace
}  // namespace mote::testing
