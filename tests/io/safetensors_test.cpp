// safetensors: what was saved comes back, byte by byte; files of other writers are read.
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "io/folder.h"
#include "mote/mote.h"
#include "tensor/devices.h"
#include "testing.h"

namespace mote::testing {
namespace {

using Json = nlohmann::json;
using Tensors = std::map<std::string, Tensor>;

class Safetensors : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { set_default_device(GetParam()); }
  const Folder folder;
};

std::vector<std::byte> random_bytes(DType type, std::size_t count, std::mt19937_64& random) {
  std::vector<std::byte> out(count * static_cast<std::size_t>(size_of(type)));
  for (std::byte& b : out)
    b = static_cast<std::byte>(random() % (type == DType::boolean ? 2 : 256));
  return out;
}

// Bytes are kept as they are, those of NaN included.
TEST_P(Safetensors, EveryDtypeAndShapeComesBack) {
  const std::vector<Dims> shapes{{}, {0}, {1}, {7}, {2, 3}, {2, 0, 3}, {2, 1, 2, 1, 2, 1}};
  std::mt19937_64 random(1);
  Tensors saved;
  for (int d = 0; d < dtype_count - 1; ++d) {  // the last one, index, is internal
    const auto type = static_cast<DType>(d);
    for (std::size_t s = 0; s < shapes.size(); ++s) {
      std::size_t n = 1;
      for (std::int64_t size : shapes[s]) n *= static_cast<std::size_t>(size);
      saved.emplace(std::string(name_of(type)) + "." + std::to_string(s),
                    Tensor::from_bytes(random_bytes(type, n, random), shapes[s], type));
    }
  }
  save(saved, folder / "all");
  const Tensors got = load(folder / "all");
  ASSERT_EQ(got.size(), saved.size());
  for (const auto& [name, want] : saved) {
    const Tensor& t = got.at(name);
    EXPECT_EQ(t.dtype(), want.dtype()) << name;
    EXPECT_EQ(t.shape(), want.shape()) << name;
    EXPECT_EQ(t.to_bytes(), want.to_bytes()) << name;
    EXPECT_EQ(t.device(), GetParam());
  }
}

TEST_P(Safetensors, LazyValuesAndViewsAreSavedInRowMajorOrder) {
  const Tensor a = Tensor::arange(6).reshape({2, 3});
  save({{"sum", a + 1}, {"turned", a.permute({1, 0})}, {"part", a.flip({1})}}, folder / "x");
  const Tensors got = load(folder / "x");
  EXPECT_EQ(got.at("sum").to_vector<int>(), (std::vector{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(got.at("turned").shape(), (Dims{3, 2}));
  EXPECT_EQ(got.at("turned").to_vector<int>(), (std::vector{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(got.at("part").to_vector<int>(), (std::vector{2, 1, 0, 5, 4, 3}));
}

// The file itself: the header's length, JSON padded to 8 bytes, the bytes in the order of names.
TEST_P(Safetensors, TheFileIsExactlyThis) {
  save({{"b", Tensor(std::vector<std::uint8_t>{7, 8, 9}, {3})}, {"a \"1\"", Tensor(1.0f)}},
       folder / "x");
  const std::string header = R"({"a \"1\"":{"data_offsets":[0,4],"dtype":"F32","shape":[]},)"
                             R"("b":{"data_offsets":[4,7],"dtype":"U8","shape":[3]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  std::string want(8, '\0');
  want[0] = static_cast<char>(header.size() + padding.size());
  want += header + padding + std::string("\0\0\x80\x3f\7\10\11", 7);
  EXPECT_EQ(content(folder / "x"), want);
  save({}, folder / "none");
  EXPECT_EQ(content(folder / "none"), std::string("\10\0\0\0\0\0\0\0{}      ", 16));
  EXPECT_TRUE(load(folder / "none").empty());
}

TEST_P(Safetensors, StateOfAModuleMovesToAnother) {
  manual_seed(3);
  const nn::Linear from{3, 2};
  nn::Linear to{3, 2};
  save(from.state_dict(), folder / "x");
  to.load_state_dict(load(folder / "x"));
  EXPECT_EQ(to.weight.to_bytes(), from.weight.to_bytes());
  EXPECT_EQ(to.bias.to_bytes(), from.bias.to_bytes());
}

// A leaf of expected.json; numbers that JSON cannot hold are texts there.
void expect_values(const Tensor& t, const Json& want) {
  const bool wide = t.dtype() == DType::int64 || t.dtype() == DType::uint64;
  ASSERT_EQ(static_cast<std::size_t>(t.numel()), want.size());
  const auto numbers = t.to_vector<double>();
  const auto integers = wide ? t.to_vector<std::int64_t>() : std::vector<std::int64_t>{};
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::string text = want[i].is_string() ? want[i].get<std::string>() : want[i].dump();
    if (t.dtype() == DType::int64) {
      EXPECT_EQ(std::to_string(integers[i]), text) << i;
    } else if (t.dtype() == DType::uint64) {
      EXPECT_EQ(std::to_string(static_cast<std::uint64_t>(integers[i])), text) << i;
    } else {
      EXPECT_EQ(numbers[i], std::stod(text)) << i;
    }
  }
}

TEST_P(Safetensors, FilesOfOtherWritersAreRead) {
  const Json expected = Json::parse(content("io/data/expected.json"));
  for (const auto& [file, tensors] : expected.items()) {
    SCOPED_TRACE(file);
    const Tensors got = load("io/data/" + file + ".safetensors");
    EXPECT_EQ(got.size(), tensors.size());
    for (const auto& [name, values] : tensors.items()) {
      SCOPED_TRACE(name);
      ASSERT_TRUE(got.contains(name));
      expect_values(got.at(name), values);
    }
  }
  const Tensors edges = load("io/data/edges.safetensors");
  EXPECT_EQ(edges.at("scalar").shape(), Dims{});
  EXPECT_EQ(edges.at("empty2d").shape(), (Dims{4, 0, 3}));
  EXPECT_EQ(edges.at("rank6").shape(), (Dims{2, 2, 2, 2, 2, 2}));
}

INSTANTIATE_TEST_SUITE_P(Devices, Safetensors, ::testing::ValuesIn(computing_devices),
                         [](const auto& device) { return std::string(device.param); });

}  // namespace
}  // namespace mote::testing
