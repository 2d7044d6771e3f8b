// Random numbers: threefry2x32 (Salmon et al. 2011, 20 rounds) of a counter. The counter is a Tensor
// of one uint64 on each device: a draw takes its numbers when the tensor is made, and in a replay at
// each replay, since moving the counter is part of what was recorded.
#include <cmath>
#include <map>
#include <numbers>

#include "engine/engine.h"
#include "tensor/lift.h"

namespace mote {
namespace {

struct Generators {
  std::recursive_mutex mutex;
  std::uint64_t seed = 0;
  std::map<std::string, Tensor> counters;  // by device: the next number to draw
};

Generators& generators() {
  static Generators* const all = new Generators;
  return *all;
}

constexpr DType u32 = DType::uint32;
Tensor number(const Tensor& like, std::uint32_t v) {
  return wrap(
      constant_lazy(Scalar(u32, std::int64_t{v}), like.lazy()->shape, *like.lazy()->device));
}

// Two words of counter, two of key -> two words.
std::pair<Tensor, Tensor> threefry(Tensor x0, Tensor x1, std::uint64_t key) {
  constexpr int rotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  const auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  const std::uint32_t keys[3] = {k0, k1, 0x1BD11BDAu ^ k0 ^ k1};
  x0 = x0 + number(x0, keys[0]);
  x1 = x1 + number(x1, keys[1]);
  for (std::uint32_t round = 0; round < 20; ++round) {
    const int r = rotations[round % 8];
    x0 = x0 + x1;
    x1 = ((x1 << r) | (x1 >> (32 - r))) ^ x0;
    if (round % 4 != 3) continue;
    const std::uint32_t s = round / 4 + 1;
    x0 = x0 + number(x0, keys[s % 3]);
    x1 = x1 + number(x1, keys[(s + 1) % 3] + s);
  }
  return {x0, x1};
}

std::int64_t count_of(std::string_view op, const Dims& shape, Where at) {
  std::int64_t n = 1;
  for (std::int64_t s : shape) {
    if (s < 0) fail<ShapeError>(op, cat("size ", s, " is negative"), at, "sizes are 0 or more");
    n *= s;
  }
  return n;
}

// n raw words of 32 bits.
Tensor draw(std::int64_t n, const Options& o, Where at) {
  const std::string device =
      o.device.empty() ? default_device_name() : device_named(o.device).name();
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  const NoGrad off;
  Tensor& counter = all.counters[device];
  if (!counter.is_defined())
    counter = Tensor(std::vector<std::uint64_t>{0}, {1}, {.device = device}, at);
  const std::int64_t pairs = (n + 1) / 2;
  const Tensor place =
      Tensor::arange(pairs, {DType::uint64, device, false}, at) + wrap(counter.lazy());
  counter.assign(counter + pairs, at);
  const auto [a, b] = threefry(place.cast(u32, at), (place >> 32).cast(u32, at), all.seed);
  return stack({a, b}, 0, at).flatten(0, -1, at).shrink({{0, n}}, at);
}

// 24 bits for a float32: every value is k / 2^24.
Tensor unit(const Dims& shape, const Options& o, DType t, Where at) {
  const std::int64_t n = count_of("rand", shape, at);
  if (n == 0) return Tensor::zeros(shape, {t, o.device, false}, at);
  if (t == DType::float64) {
    const Tensor words = draw(2 * n, o, at).reshape({2, n}, at);
    const Tensor high = (words(0) >> 6).cast(DType::float64, at),
                 low = (words(1) >> 5).cast(DType::float64, at);
    return ((high * 0x1p27 + low) * 0x1p-53).reshape(shape, at);
  }
  return ((draw(n, o, at) >> 8).cast(DType::float32, at) * 0x1p-24).reshape(shape, at);
}

DType wanted(const Options& o) { return o.dtype.value_or(default_float()); }
Tensor finished(const Tensor& t, const Options& o, Where at) {
  Tensor out = t.cast(wanted(o), at).contiguous(at);
  if (o.requires_grad) out.set_requires_grad(true, at);
  return out;
}

}  // namespace

void manual_seed(std::uint64_t seed) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  all.seed = seed;
  all.counters.clear();
}

Tensor Tensor::rand(Dims shape, Options o, Where at) {
  return finished(unit(shape, o, wanted(o), at), o, at);
}

Tensor Tensor::uniform(Dims shape, double low, double high, Options o, Where at) {
  return finished(unit(shape, o, wanted(o), at) * (high - low) + low, o, at);
}

// Box and Muller: sqrt(-2 log u) cos(2 pi v), u in (0, 1].
Tensor Tensor::randn(Dims shape, Options o, Where at) {
  Dims two = shape;
  two.insert(two.begin(), 2);
  const DType t = wanted(o) == DType::float64 ? DType::float64 : DType::float32;
  const Tensor u = unit(two, o, t, at);
  if (u.numel() == 0) return zeros(shape, o, at);
  const Tensor radius = ((1.0 - u(0)).log(at) * -2.0).sqrt(at);
  return finished(radius * (u(1) * (2 * std::numbers::pi)).cos(at), o, at);
}

Tensor Tensor::normal(Dims shape, double mean, double std, Options o, Where at) {
  Options plain = o;
  plain.requires_grad = false;
  return finished(randn(shape, plain, at) * std + mean, o, at);
}

Tensor Tensor::randint(std::int64_t low, std::int64_t high, Dims shape, Options o, Where at) {
  if (high <= low)
    fail<ValueError>("randint", cat("there is no integer in ", low, "..", high - 1), at,
                     "give low < high");
  const std::int64_t n = count_of("randint", shape, at);
  const DType t = o.dtype.value_or(default_int());
  if (n == 0) return zeros(shape, {t, o.device, false}, at);
  // The high half of a product of 32 bits by the width: nearly even for widths far below 2^32.
  const Tensor words = draw(n, o, at).cast(DType::uint64, at);
  const Tensor scaled = ((words * (high - low)) >> 32).cast(DType::int64, at) + low;
  return scaled.reshape(shape, at).cast(t, at).contiguous(at);
}

namespace {
double fan_in(const Dims& shape) {
  double n = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) n *= static_cast<double>(shape[i]);
  return n;
}
}  // namespace

Tensor Tensor::kaiming_uniform(Dims shape, double a, Options o, Where at) {
  const double bound = std::sqrt(3.0) * std::sqrt(2.0 / (1 + a * a)) / std::sqrt(fan_in(shape));
  return uniform(shape, -bound, bound, o, at);
}
Tensor Tensor::kaiming_normal(Dims shape, double a, Options o, Where at) {
  return normal(shape, 0, std::sqrt(2.0 / (1 + a * a)) / std::sqrt(fan_in(shape)), o, at);
}
Tensor Tensor::glorot_uniform(Dims shape, Options o, Where at) {
  const double fan_out = static_cast<double>(shape.empty() ? 1 : shape[0]) * fan_in(shape) /
                         std::max(1.0, shape.size() > 1 ? static_cast<double>(shape[1]) : 1.0);
  const double bound = std::sqrt(6.0 / (fan_in(shape) + fan_out));
  return uniform(shape, -bound, bound, o, at);
}

// Each element's rank among random 64-bit keys: ties, at 2^-64, by place.
Tensor Tensor::randperm(std::int64_t n, Options o, Where at) {
  if (n < 0) fail<ValueError>("randperm", cat("the count is ", n), at, "give 0 or more");
  const DType t = o.dtype.value_or(default_int());
  if (n == 0) return zeros({0}, {t, o.device, false}, at);
  const Tensor words = draw(2 * n, o, at).cast(DType::uint64, at).reshape({2, n}, at);
  const Tensor keys = ((words(0) << 32) | words(1)).contiguous(at);
  const Tensor place = arange(n, {DType::int64, o.device, false}, at);
  const Tensor mine = keys.reshape({n, 1}, at), other = keys.reshape({1, n}, at);
  const Tensor before =
      (other < mine) | ((other == mine) & (place.reshape({1, n}, at) < place.reshape({n, 1}, at)));
  return before.sum(1, false, {}, at).cast(t, at).contiguous(at);
}

Tensor Tensor::bernoulli(Where at) const {
  const Tensor u = unit(shape(), {.device = device()}, DType::float32, at);
  return (u < cast(DType::float32, at)).cast(dtype(), at);
}

// The number of cumulative probabilities at or below a uniform draw.
Tensor Tensor::multinomial(std::int64_t samples, bool replacement, Where at) const {
  if (ndim() < 1 || ndim() > 2)
    fail<ShapeError>("multinomial", cat("shape ", shape_text(*this)), at, "give (C,) or (N, C)");
  if (samples < 1 || (!replacement && samples > size(-1)))
    fail<ValueError>("multinomial", cat(samples, " samples of ", size(-1), " classes"), at,
                     "draw at most as many as there are, or with replacement");
  const Tensor w = ndim() == 1 ? unsqueeze(0, at) : *this;
  const Tensor p = w.cast(DType::float64, at);
  if (replacement) {
    const Tensor c = p.cumsum(1, at), total = c(Slice(), Slice(-1, {}));
    const Tensor u = unit({w.size(0), samples, 1}, {.device = device()}, DType::float64, at) *
                     total.unsqueeze(-1, at);
    const Tensor out = (c.unsqueeze(1, at) <= u).sum(-1, false, {}, at);
    return ndim() == 1 ? out.squeeze(0, at) : out;
  }
  // Without replacement: the classes with the greatest p / exponential draws (Efraimidis, Spirakis).
  const Tensor u = unit(w.shape(), {.device = device()}, DType::float64, at);
  const Tensor score = (p / -(1.0 - u).log(at)).contiguous(at);
  Tensor left = score;
  std::vector<Tensor> picks;
  for (std::int64_t i = 0; i < samples; ++i) {
    picks.push_back(left.argmax(1, true, at));
    left = mote::where(picks.back().one_hot(w.size(1), at).squeeze(1, at).cast(DType::boolean, at),
                       -INFINITY, left, at);
  }
  const Tensor out = mote::cat(picks, 1, at);
  return ndim() == 1 ? out.squeeze(0, at) : out;
}

Tensor Tensor::dropout(double p, Where at) const {
  if (p < 0 || p > 1)
    fail<ValueError>("dropout", cat("the probability is ", p), at, "give one in 0..1");
  if (!Training::is_on() || p == 0) return *this;
  if (p == 1) return zeros_like(at);
  const Tensor keep = p <= unit(shape(), {.device = device()}, DType::float32, at).contiguous(at);
  return mote::where(keep, *this / (1 - p), zeros_like(at), at);
}

}  // namespace mote
