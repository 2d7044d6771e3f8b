#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>

#include "cases/case.h"

namespace mote::testing {
namespace {

Tensor slope(const Tensor& at, const std::function<Tensor(const Tensor&)>& f) {
  Tensor x = at.detach();
  x.set_requires_grad();
  return gradient({f(x).sum()}, {x})[0];
}

std::vector<Row> capture_rows() {
  return {
      {"jit-01",
       [](const Case&) {
         auto f = jit([](const std::vector<Tensor>& in) { return in[0] * 10 + 1; });
         std::vector<Tensor> out;
         for (int i = 0; i < 5; ++i) out.push_back(f(std::vector<Tensor>{Tensor({i})}));
         return Named{{"result", cat(out)}};
       }},
      {"jit-04",
       [](const Case&) {
         auto g = jit([](const Tensor& x) { return x.roll({1}, {0}) * 2 - x; });
         Tensor x = Tensor({1, 2, 4});
         std::vector<Tensor> rows;
         for (int i = 0; i < 6; ++i) rows.push_back(x = g(x));
         return Named{{"result", stack(rows)}};
       }},
      {"optim-01",
       [](const Case& c) {
         const Tensor w({1.0f, -2.0f}), grads = c["grads"].cast(DType::float32);
         Tensor parameter = w.detach();
         parameter.set_requires_grad();
         optim::Adam adam({parameter}, {.lr = 0.1});
         std::vector<Tensor> after;
         for (int i = 0; i < 3; ++i) {
           parameter.set_grad(grads(i));
           adam.step();
           after.push_back(parameter.detach());
         }
         return Named{{"corrected", stack(after)}};
       },
       {{"uncorrected", "Adam always corrects its bias, as PyTorch does"}}},
      {"rng-01",
       [](const Case&) {
         using Draws = std::pair<std::vector<float>, std::vector<float>>;
         const auto drawn = [](std::uint64_t seed, bool first_first) {
           manual_seed(seed);
           const Tensor a = Tensor::rand({4}), b = Tensor::rand({4});
           const auto x = (first_first ? a : b).to_vector<float>(),
                      y = (first_first ? b : a).to_vector<float>();
           return first_first ? Draws{x, y} : Draws{y, x};
         };
         const Draws one = drawn(7, true), two = drawn(7, false);
         bool differ = true;
         for (std::size_t i = 0; i < 4; ++i) differ &= one.first[i] != one.second[i];
         return Named{{"draws_differ", Tensor(differ)},
                      {"order_does_not_matter", Tensor(one == two)},
                      {"other_seed_differs", Tensor(one.first != drawn(8, true).first)}};
       }},
  };
}

std::vector<Row> reduction_rows() {
  return {
      {"reduce-01",
       [](const Case&) {
         const Tensor x = Tensor::full({90000}, 0.5, {.dtype = DType::float16}).contiguous();
         return Named{{"result", x.mean()}};
       }},
      {"reduce-03",
       [](const Case& c) {
         const Tensor x = c["x"];
         return Named{{"mean", x.mean()},
                      {"var_of_scaled", (x.cast(DType::float32) / 64).var({}, false, 0)}};
       }},
      {"nan-01",
       [](const Case&) {
         std::vector<Tensor> most, least;
         for (std::size_t k = 0; k < 7; ++k) {
           std::vector<float> row(k, NAN);
           row.insert(row.end(), {42, 1});
           const Tensor x(row, {static_cast<std::int64_t>(row.size())});
           most.push_back(x.max());
           least.push_back(x.min());
         }
         return Named{{"max", stack(most)}, {"min", stack(least)}};
       }},
      {"nan-03",
       [](const Case& c) {
         return Named{{"cummax", c["x"].cummax()}, {"cummin", c["x"].cummin()}};
       }},
      {"scan-01",
       [](const Case& c) {
         const Tensor x = c["x"], plain = x.cumsum(1), rev = x.flip({1}).cumsum(1).flip({1});
         return Named{{"axis1", plain},
                      {"exclusive", plain - x},
                      {"reverse", rev},
                      {"exclusive_reverse", rev - x},
                      {"axis0", x.cumsum(0)}};
       }},
      {"softmax-01",
       [](const Case& c) { return Named{{"result", c["x"].cast(DType::float32).logsumexp(-1)}}; }},
  };
}

Tensor lengths_of_pools() {
  std::vector<std::int64_t> out;
  for (std::int64_t n = 4; n <= 20; ++n) {
    const PoolOptions o{.stride = {2}, .padding = {1}, .ceil_mode = true};
    out.push_back(Tensor::zeros({n}).max_pool({2}, o).size(0));
  }
  return Tensor(out, {17});
}

std::vector<Row> window_rows() {
  return {
      {"conv-02",
       [](const Case& c) {
         const Tensor y = c["x"].unsqueeze(0).conv_transpose(
             c["w"], {}, {.stride = {2, 1}, .padding = {2, 1}, .dilation = {3, 1}});
         return Named{{"shape", Tensor(Dims(y.squeeze(0).shape()), {3})}, {"values", y.squeeze(0)}};
       }},
      {"conv-04",
       [](const Case& c) {
         // A window of 3 whose middle is left out is one of 2 with dilation 2.
         const ConvOptions o{.padding = {1, 1, 0, 1}, .dilation = {1, 2}, .groups = 2};
         const Tensor x = c["x"].unsqueeze(0), w = c["w"];
         const Tensor fused = (x.conv(w, c["bias"], o) + c["residual"]).relu();
         return Named{{"conv", x.conv(w, {}, o).squeeze(0)}, {"fused", fused.squeeze(0)}};
       }},
      {"pool-02",
       [](const Case& c) {
         const PoolOptions o{.padding = {1}, .ceil_mode = true};
         const Tensor x = c["x"].reshape({1, 1, 5, 5});
         return Named{{"max", x.max_pool({2, 2}, o).reshape({3, 3})},
                      {"avg_count_padding", x.avg_pool({2, 2}, o).reshape({3, 3})},
                      {"lengths", lengths_of_pools()}};
       }},
      {"pool-03",
       [](const Case& c) {
         const Tensor x = c["x"];
         const PoolOptions skipping{.stride = {1}, .padding = {1}, .count_include_pad = false};
         return Named{{"pad_then_pool", x.pad({{1, 1}, {1, 1}}).avg_pool({2, 2}, {.stride = {1}})},
                      {"pool_skipping_padding", x.avg_pool({2, 2}, skipping)}};
       }},
  };
}

std::vector<Row> gradient_rows() {
  const auto f32 = [](const Case& c) { return c["x"].cast(DType::float32); };
  return {
      {"grad-01",
       [=](const Case& c) {
         return Named{{"result", slope(f32(c), [](const Tensor& x) {
                         return where(x == 0, 0.0, x * x.sqrt());
                       })}};
       }},
      {"grad-03",
       [](const Case& c) {
         const auto huber = [](const Tensor& x) {
           const Tensor a = x.abs();
           return where(a <= 1, 0.5 * x * x, a - 0.5);
         };
         return Named{{"abs", slope(c["x"], [](const Tensor& x) { return x.abs(); })},
                      {"huber", slope(c["x"], huber)}};
       }},
      {"grad-05",
       [=](const Case& c) {
         return Named{
             {"result", slope(f32(c), [](const Tensor& x) { return x.exp().minimum(1.0); })}};
       }},
  };
}

// {"t0": {"dtype": .., "shape": .., "data_offsets": ..}, ..} and 16 bytes of data.
bool accepted(const nlohmann::json& header) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("mote-case-" + std::to_string(getpid()) + ".safetensors");
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&size), sizeof(size));
  file << text << std::string(16, '\0');
  file.close();
  bool good = true;
  try {
    load(path.string());
  } catch (const FileError&) {
    good = false;
  }
  std::filesystem::remove(path);
  return good;
}

std::vector<Row> file_rows() {
  return {
      {"load-01",
       [](const Case&) {
         const auto entry = [](const char* dtype, std::vector<std::int64_t> shape, int a, int b) {
           return nlohmann::json{{"dtype", dtype}, {"shape", shape}, {"data_offsets", {a, b}}};
         };
         using J = nlohmann::json;
         const std::int64_t wide = std::int64_t{1} << 32;
         const J files[] = {
             J{{"a", entry("F32", {2, 2}, 0, 16)}},
             J{{"a", entry("F32", {wide, wide / 4}, 0, 0)}},
             J{{"a", entry("U8", {4}, 8, 4)}},
             J{{"a", entry("F32", {8}, 0, 32)}},
             J{{"a", entry("F32", {2}, 0, 16)}},
             J{{"a", entry("U8", {10}, 0, 10)}, {"b", entry("U8", {8}, 8, 16)}},
         };
         std::vector<bool> good;
         for (const J& file : files) good.push_back(accepted(file));
         return Named{{"result", Tensor(good, {6})}};
       }},
      {"load-03",
       [](const Case&) {
         const unsigned char bytes[] = {0x80, 0x3F, 0x49, 0x40, 0x00, 0xC0,
                                        0x80, 0x7F, 0x01, 0x00, 0xC0, 0x7F};
         const auto raw = std::as_bytes(std::span(bytes));
         return Named{{"bf16", Tensor::from_bytes(raw, {6}, DType::bfloat16).cast(DType::float32)},
                      {"f16_first_three",
                       Tensor::from_bytes(raw.first(6), {3}, DType::float16).cast(DType::float32)}};
       }},
  };
}

}  // namespace

std::vector<Row> function_rows() {
  std::vector<Row> rows = capture_rows();
  for (const auto& more : {reduction_rows(), window_rows(), gradient_rows(), file_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace mote::testing
