// Damaged and hostile safetensors files: each is refused with its exact text.
#include <cstring>
#include <random>

#include "io/folder.h"
#include "mote/mote.h"
#include "testing.h"

namespace mote::testing {
namespace {

std::string file_of(const std::string& header, const std::string& bytes = "") {
  const std::uint64_t size = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &size, 8);
  return out + header + bytes;
}

std::string refused(const std::string& what) {
  return "load: FOLDER/x: " + what + " at HERE; the file is damaged or no safetensors file";
}

TEST(Hostile, SamplesAreRefused) {
  const struct {
    std::string name, what;
  } rows[] = {
      {"duplicate_name", "its header names 'a' twice"},
      {"empty_file", "it is shorter than a header"},
      {"hole", "tensor 'b' begins at 6, the one before ends at 2"},
      {"huge_header", "its header claims 9223372036854775808 bytes of 10"},
      {"negative_shape", "tensor 'a': a size is no number of 63 bits"},
      {"not_json", "its header is no JSON object"},
      {"out_of_range", "its tensors need 16 bytes, it holds 8"},
      {"overflow_shape", "tensor 'a': its sizes overflow"},
      {"overlap", "tensor 'b' begins at 3, the one before ends at 5"},
      {"reversed_offsets", "tensor 'a': its offsets 8 and 0 are in the wrong order"},
      {"shape_mismatch", "tensor 'a': its offsets hold 8 bytes, its shape needs 12"},
      {"short_length", "it is shorter than a header"},
      {"trailing_bytes", "its tensors need 454 bytes, it holds 456"},
      {"truncated_data", "its tensors need 454 bytes, it holds 447"},
      {"truncated_header", "its header claims 768 bytes of 40"},
      {"unknown_dtype", "tensor 'a': the dtype 'Q7' is not known"},
  };
  const Folder folder;
  std::size_t samples = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("io/data/bad"))
    ++samples;
  EXPECT_EQ(samples, std::size(rows));
  for (const auto& row : rows) {
    folder.put("x", content("io/data/bad/" + row.name + ".safetensors"));
    EXPECT_EQ(error_of(folder, [&] { load(folder / "x"); }), refused(row.what)) << row.name;
  }
}

TEST(Hostile, HeadersAreRefused) {
  const std::string overflow = "tensor 'a': its sizes overflow",
                    odd = "tensor 'a': its entry is odd",
                    missing = "tensor 'a': dtype, shape or data_offsets is missing",
                    no_json = "its header is no JSON object";
  const struct {
    std::string header, what;
  } rows[] = {
      {"", no_json},
      {"[]", no_json},
      {"7", no_json},
      {"{} {}", no_json},
      {"{\"a\xff\":1}", no_json},
      {std::string("{}\0", 3), no_json},
      {std::string(200000, '['), no_json},
      {R"({"a":7})", missing},
      {R"({"a":null})", missing},
      {R"({"a":{"dtype":"U8","shape":[0]}})", missing},
      {R"({"a":{"dtype":1,"shape":[0],"data_offsets":[0,0]}})", odd},
      {R"({"a":{"dtype":"U8","shape":{"0":0},"data_offsets":[0,0]}})", odd},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0]}})", odd},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0,0]}})", odd},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
       "its header names 'dtype' twice"},
      {R"({"a":{"dtype":"","shape":[0],"data_offsets":[0,0]}})",
       "tensor 'a': the dtype '' is not known"},
      {R"({"a":{"dtype":"f32","shape":[0],"data_offsets":[0,0]}})",
       "tensor 'a': the dtype 'f32' is not known"},
      {R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})",
       "tensor 'a': a size is no number of 63 bits"},
      {R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})",
       "tensor 'a': a size is no number of 63 bits"},
      {R"({"a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]}})",
       "tensor 'a': a size is no number of 63 bits"},
      {R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})",
       "tensor 'a': a size is no number of 63 bits"},
      {R"({"a":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}})", overflow},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", overflow},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0]}})", overflow},
      {R"({"a":{"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", overflow},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[-1,0]}})",
       "tensor 'a': an offset is no number of 64 bits"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0.0,0]}})",
       "tensor 'a': an offset is no number of 64 bits"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[18446744073709551615,0]}})",
       "tensor 'a': its offsets 18446744073709551615 and 0 are in the wrong order"},
      {R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
       "tensor 'a' begins at 1, the one before ends at 0"},
      {R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})",
       "its tensors need 2 bytes, it holds 0"},
  };
  const Folder folder;
  for (const auto& row : rows) {
    folder.put("x", file_of(row.header));
    EXPECT_EQ(error_of(folder, [&] { load(folder / "x"); }), refused(row.what))
        << row.header.substr(0, 100);
  }
}

TEST(Hostile, DeepNestingIsRefused) {
  const Folder folder;
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  folder.put("x", file_of(R"({"a":{"dtype":"U8","shape":)" + deep + R"(,"data_offsets":[0,0]}})"));
  EXPECT_EQ(error_of(folder, [&] { load(folder / "x"); }),
            refused("tensor 'a': a size is no number of 63 bits"));
}

TEST(Hostile, TheHeaderHasALimit) {
  const Folder folder;
  const std::uint64_t size = (100u << 20) + 1;
  std::string length(8, '\0');
  std::memcpy(length.data(), &size, 8);
  folder.put("x", length);
  std::filesystem::resize_file(folder / "x", 8 + size);  // a hole: no disk is used
  EXPECT_EQ(error_of(folder, [&] { load(folder / "x"); }),
            refused("its header claims 104857601 bytes of 104857609"));
}

TEST(Hostile, ManyAxesAreRefusedOrRead) {
  const Folder folder;
  for (int axes : {16, 1000}) {
    std::string shape = "1";
    for (int i = 1; i < axes; ++i) shape += ",1";
    folder.put(
        "x",
        file_of(R"({"a":{"dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,1]}})", "\5"));
    EXPECT_EQ(load(folder / "x").at("a").to_vector<int>(), std::vector{5}) << axes;
  }
}

// A byte of BOOL other than 0 and 1 would make code for bools do anything.
TEST(Hostile, ABoolIsZeroOrOne) {
  const Folder folder;
  folder.put("x", file_of(R"({"a":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})",
                          std::string("\0\1\2", 3)));
  EXPECT_EQ(error_of(folder, [&] { load(folder / "x"); }),
            refused("tensor 'a': a byte of BOOL is 2, not 0 or 1"));
}

TEST(Hostile, PathsThatAreNoFiles) {
  const Folder folder;
  EXPECT_EQ(error_of(folder, [&] { load(folder / "none"); }),
            "load: FOLDER/none cannot be opened at HERE; check the path");
  std::filesystem::create_directory(folder / "x");
  EXPECT_EQ(error_of(folder, [&] { load(folder / "x"); }),
            "load: FOLDER/x is no file at HERE; check the path");
}

TEST(Hostile, EveryCutIsRefused) {
  const Folder folder;
  for (const char* name : {"dtypes", "edges", "bf16_fp8"}) {
    const std::string whole = content("io/data/" + std::string(name) + ".safetensors");
    for (std::size_t size = 0; size < whole.size(); ++size) {
      folder.put("x", whole.substr(0, size));
      EXPECT_NE(error_of(folder, [&] { load(folder / "x"); }), "(nothing was thrown)")
          << name << " cut to " << size;
    }
  }
}

// A damaged file is refused with a FileError, or read as a file of the same length.
TEST(Hostile, DamageIsRefusedOrHarmless) {
  const Folder folder;
  const std::string whole = content("io/data/dtypes.safetensors");
  int read = 0, errors = 0;
  for (std::uint64_t seed : seeds(3000)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::string file = whole;
    for (std::uint64_t n = 1 + random() % 4; n > 0; --n)
      file[random() % 776] = static_cast<char>(random() % 256);  // the header lies there
    if (random() % 2) file[8 + random() % 768] = "[]{},:\"0919-.eE"[random() % 15];
    folder.put("x", file);
    try {
      std::size_t bytes = 0;
      for (const auto& [name, t] : load(folder / "x")) bytes += t.to_bytes().size();
      ASSERT_EQ(bytes, whole.size() - 776);
      ++read;
    } catch (const FileError&) {
      ++errors;
    }
  }
  if (!variable("MOTE_SEED").empty()) return;  // one round alone is of one kind
  EXPECT_GT(read, 0);
  EXPECT_GT(errors, read);
}

}  // namespace
}  // namespace mote::testing
