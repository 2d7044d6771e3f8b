#include "schedule/cases.h"

#include "engine/engine.h"

namespace mote::cases {

namespace {

Tensor with_bytes(Dims shape, DType dtype, const std::function<double(std::int64_t)>& value) {
  Device& device = default_device();
  std::int64_t n = 1;
  for (const std::int64_t s : shape) n *= s;
  if (device.runs()) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < n; ++i) values.push_back(value(i));
    return Tensor(values, std::move(shape), {.dtype = dtype});
  }
  const auto buffer = Buffer::make(device, n * size_of(dtype));
  buffer->data();  // counted as used from now on
  return Tensor(from_buffer(buffer, Shape(shape.begin(), shape.end()), dtype));
}

}  // namespace

Tensor Inputs::floats(Dims shape) {
  const std::int64_t start = 13 * ++made_;
  return with_bytes(std::move(shape), DType::float32, [start](std::int64_t i) {
    return static_cast<double>((i + start) * 37 % 101) / 50 - 1;
  });
}

Tensor Inputs::weights(Dims shape) { return floats(std::move(shape)).set_requires_grad(); }

Tensor Inputs::integers(Dims shape, std::int64_t end) {
  const std::int64_t start = 13 * ++made_;
  return with_bytes(std::move(shape), DType::int64, [start, end](std::int64_t i) {
    return static_cast<double>((i + start) * 37 % 101 % end);
  });
}

void Inputs::begin(const nn::Module& net) {
  Tensors made;
  for (const auto& [name, t] : net.state_dict()) made.push_back(t);
  realize(made);
  reset_counters();
}

std::vector<Case> all() {
  std::vector<Case> out;
  for (const auto* list : {&forward(), &movement(), &training()})
    out.insert(out.end(), list->begin(), list->end());
  return out;
}

std::vector<std::string> devices_that_run() {
  std::vector<std::string> names;
  for (const DeviceStatus& d : devices())
    if (d.ready && (d.name == "CPU" || d.name == "CLANG")) names.push_back(d.name);
  return names;
}

}  // namespace mote::cases
