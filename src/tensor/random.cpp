// Random numbers: threefry2x32 (Salmon et al. 2011, 20 rounds) of a counter. The counter is a
// Tensor of one uint64 on each device: a draw takes its numbers when the tensor is made, and in a
// replay at each replay, since moving the counter is part of what was recorded.
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

// n raw words of 32 bits.
Tensor draw(std::int64_t n, const std::string& on) {
  const std::string device = device_of({.device = on}).name();
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  const NoGrad off;
  Tensor& counter = all.counters[device];
  if (!counter.is_defined())
    counter = Tensor(std::vector<std::uint64_t>{0}, {1}, {.device = device});
  const std::int64_t pairs = (n + 1) / 2;
  const Tensor place = Tensor::arange(pairs, {DType::uint64, device, false}) + counter.detach();
  counter.assign(counter + pairs);
  const auto [a, b] = threefry(place.cast(u32), (place >> 32).cast(u32), all.seed);
  return cut(stack({a, b}).flatten(), 0, 0, n);
}

// n words of 64 bits.
Tensor draw_wide(std::int64_t n, const std::string& device) {
  const Tensor words = draw(2 * n, device).cast(DType::uint64).reshape({2, n});
  return (words(0) << 32) | words(1);
}

// Uniform in [0, 1): k / 2^24 in float32, k / 2^53 in float64.
Tensor unit(const Dims& shape, const std::string& device, DType t) {
  const std::int64_t n = checked_count(shape);
  if (n == 0) return Tensor::zeros(shape, {t, device, false});
  if (t == DType::float64)
    return ((draw_wide(n, device) >> 11).cast(DType::float64) * 0x1p-53).reshape(shape);
  return ((draw(n, device) >> 8).cast(DType::float32) * 0x1p-24).reshape(shape);
}

// f of uniform numbers in the dtype that was asked for, or a wider one.
template <class F>
Tensor drawn(std::string_view name, Where at, const Dims& shape, const Options& o, F f) {
  const Within within(name, at);
  const DType t = dtype_of(o, default_float());
  if (!is_float(t)) refuse<DTypeError>("the dtype is {}; draw floats, or call randint", t);
  const DType wide = t == DType::float64 ? t : DType::float32;
  return finished(f(unit(shape, o.device, wide)).cast(t).contiguous(), o);
}

// Box and Muller: sqrt(-2 log u) cos(2 pi v), u in (0, 1].
Tensor bell(const Tensor& u) {
  const Tensor radius = ((1.0 - u(0)).log() * -2.0).sqrt();
  return radius * (u(1) * (2 * std::numbers::pi)).cos();
}

Dims two_of(Dims shape) {
  shape.insert(shape.begin(), 2);
  return shape;
}

// The inputs of one output of a layer with a weight of this shape.
double fan_in(const Dims& shape) {
  double n = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) n *= static_cast<double>(shape[i]);
  return n;
}

}  // namespace

void manual_seed(std::uint64_t seed) {
  Generators& all = generators();
  const std::lock_guard lock(all.mutex);
  all.seed = seed;
  all.counters.clear();
}

Tensor Tensor::rand(Dims shape, Options o, Where at) {
  return drawn("rand", at, shape, o, [](const Tensor& u) { return u; });
}
Tensor Tensor::uniform(Dims shape, double low, double high, Options o, Where at) {
  const Within within("uniform", at);
  if (!(low <= high)) refuse<ValueError>("the bounds are {} and {}; give low <= high", low, high);
  return drawn("uniform", at, shape, o, [&](const Tensor& u) { return u * (high - low) + low; });
}
Tensor Tensor::randn(Dims shape, Options o, Where at) {
  return drawn("randn", at, two_of(shape), o, bell);
}
Tensor Tensor::normal(Dims shape, double mean, double std, Options o, Where at) {
  const Within within("normal", at);
  if (!(std >= 0)) refuse<ValueError>("the standard deviation is {}; give 0 or more", std);
  return drawn("normal", at, two_of(shape), o,
               [&](const Tensor& u) { return bell(u) * std + mean; });
}

// The high half of a product of 32 bits by the width: nearly even for widths far below 2^32. A
// wider range takes the remainder of 64 bits.
Tensor Tensor::randint(std::int64_t low, std::int64_t high, Dims shape, Options o, Where at) {
  const Within within("randint", at);
  if (high <= low)
    refuse<ValueError>("there is no integer in {}..{}; give low < high", low, high - 1);
  const DType t = dtype_of(o, default_int());
  for (std::int64_t bound : {low, high - 1}) scalar_of(bound, t);
  const std::int64_t n = checked_count(shape);
  if (n == 0) return zeros(shape, {t, o.device, false});
  const std::uint64_t width = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  const Tensor offset = width <= std::uint64_t{1} << 32
                            ? (draw(n, o.device).cast(DType::uint64) * width) >> 32
                            : draw_wide(n, o.device) % width;
  const Tensor value = offset.cast(DType::int64) + low;
  return finished(value.reshape(shape).cast(t).contiguous(), o);
}

Tensor Tensor::kaiming_uniform(Dims shape, double a, Options o, Where at) {
  const double bound = std::sqrt(6.0 / (1 + a * a) / fan_in(shape));
  return Within("kaiming_uniform", at)(uniform(shape, -bound, bound, o));
}
Tensor Tensor::kaiming_normal(Dims shape, double a, Options o, Where at) {
  const double deviation = std::sqrt(2.0 / (1 + a * a) / fan_in(shape));
  return Within("kaiming_normal", at)(normal(shape, 0, deviation, o));
}
Tensor Tensor::glorot_uniform(Dims shape, Options o, Where at) {
  const double outs = static_cast<double>(shape.empty() ? 1 : shape[0]),
               ins = static_cast<double>(shape.size() > 1 ? shape[1] : 1);
  const double bound = std::sqrt(6.0 / (fan_in(shape) * (1 + outs / std::max(1.0, ins))));
  return Within("glorot_uniform", at)(uniform(shape, -bound, bound, o));
}

// Each element's rank among random 64-bit keys: ties, at 2^-64, by place.
Tensor Tensor::randperm(std::int64_t n, Options o, Where at) {
  const Within within("randperm", at);
  if (n < 0) refuse<ValueError>("the count is {}; give 0 or more", n);
  const DType t = dtype_of(o, default_int());
  if (n == 0) return zeros({0}, {t, o.device, false});
  const Tensor keys = draw_wide(n, o.device).contiguous();
  const Tensor mine = keys.unsqueeze(1), other = keys.unsqueeze(0);
  const Tensor earlier = places_along(1, n, 2, o.device) < places_along(0, n, 2, o.device);
  const Tensor before = (other < mine) | ((other == mine) & earlier);
  return finished(before.sum(1).cast(t).contiguous(), o);
}

Tensor Tensor::bernoulli(Where at) const {
  const Within within("bernoulli", at);
  return (unit(shape(), device(), DType::float32) < cast(DType::float32)).cast(dtype());
}

Tensor Tensor::multinomial(std::int64_t samples, bool replacement, Where at) const {
  const Within within("multinomial", at);
  if (ndim() < 1 || ndim() > 2) refuse<ShapeError>("shape {}; give (C,) or (N, C)", *this);
  if (samples < 1 || size(-1) < (replacement ? 1 : samples))
    refuse<ValueError>(
        "{} samples of {} classes; draw at most as many as there are, or with "
        "replacement",
        samples, size(-1));
  const Tensor w = ndim() == 1 ? unsqueeze(0) : *this, wide = w.cast(DType::float64);
  const Tensor p = mote::where(0 < wide, wide, 0.0);  // no weight below 0, no NaN
  Tensor out;
  if (replacement) {  // the number of cumulative probabilities at or below a uniform draw
    const Tensor c = p.cumsum(1), total = c(Slice(), Slice(-1, {}));
    const Tensor u = unit({w.size(0), samples, 1}, device(), DType::float64) * total.unsqueeze(-1);
    out = (c.unsqueeze(1) <= u).sum(-1).minimum(w.size(1) - 1);
  } else {  // the classes with the greatest p / exponential draws (Efraimidis, Spirakis)
    const Tensor u = unit(w.shape(), device(), DType::float64);
    Tensor left = (p / -(1.0 - u).log()).contiguous();
    std::vector<Tensor> picks;
    for (std::int64_t i = 0; i < samples; ++i) {
      picks.push_back(left.argmax(1, true));
      const Tensor taken = picks.back().one_hot(w.size(1)).squeeze(1).cast(DType::boolean);
      left = mote::where(taken, -INFINITY, left);
    }
    out = mote::cat(picks, 1);
  }
  return ndim() == 1 ? out.squeeze(0) : out;
}

Tensor Tensor::dropout(double p, Where at) const {
  const Within within("dropout", at);
  if (!(p >= 0 && p <= 1)) refuse<ValueError>("the probability is {}; give one in 0..1", p);
  if (!Training::is_on() || p == 0) return *this;
  if (p == 1) return zeros_like();
  const Tensor keep = p <= unit(shape(), device(), DType::float32).contiguous();
  return mote::where(keep, *this / (1 - p), zeros_like());
}

}  // namespace mote
