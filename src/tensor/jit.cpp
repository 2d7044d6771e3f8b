#include "mote/jit.h"

#include <algorithm>

#include "engine/engine.h"
#include "tensor/lift.h"

namespace mote {
namespace {

struct Signature {
  Dims shape;
  DType dtype;
  std::string device;
  bool operator==(const Signature&) const = default;
};

// A recorded call: its launches, and which buffers are inputs and results.
struct Recording {
  std::vector<Signature> inputs;
  int calls = 0;
  std::shared_ptr<Captured> captured;
  std::vector<std::shared_ptr<Buffer>> holes;  // of the inputs
  std::vector<Lazy> results;
};

Lazy stored(const Lazy& n) { return n->is_view() ? n->base : n; }

}  // namespace

struct JitFunction::State {
  Body body;
  std::vector<Recording> recordings;
};

JitFunction::JitFunction(Body body) : state_(std::make_shared<State>(State{std::move(body), {}})) {}

int JitFunction::kernels() const {
  for (const Recording& r : state_->recordings)
    if (r.captured) return r.captured->kernels();
  return 0;
}

void JitFunction::reset() { state_->recordings.clear(); }

namespace {

void check_inputs(const std::vector<Tensor>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (inputs[i].same(inputs[j]) || (inputs[i].numel() && stored(inputs[i].lazy())->buffer ==
                                                                 stored(inputs[j].lazy())->buffer))
        refuse<JitError>(
            "inputs {} and {} are the same tensor; give it once, and use it twice "
            "inside",
            j, i);
    }
  }
}

Tensor with_own_bytes(const Lazy& n) {
  return wrap(make_lazy(Op::contiguous, {n}, n->shape, n->dtype, n->device));
}

// Results get bytes of their own: they never are a parameter's or an input's.
std::vector<Tensor> realized(const std::vector<Tensor>& results, Where at) {
  const Within within("jit", at);
  std::vector<Tensor> out;
  for (const Tensor& t : results) {
    if (!t.is_defined())
      refuse<JitError>("a result is not defined; return tensors that hold something");
    out.push_back(with_own_bytes(detach(t.lazy())));
  }
  realize(out);
  return out;
}

// Inputs with bytes of their own, in row-major order: what a hole needs.
std::vector<Tensor> made_ready(const std::vector<Tensor>& inputs, Where at) {
  const Within within("jit", at);
  std::vector<Tensor> out;
  for (const Tensor& t : inputs) {
    const Lazy n = t.lazy();
    out.push_back(n->is_realized() ? t : wrap(contiguous(n)));
  }
  realize(out);
  for (Tensor& t : out)  // a view that is contiguous has no bytes of its own
    if (!t.lazy()->is_realized()) t = with_own_bytes(t.lazy()).realize();
  check_inputs(out);
  return out;
}

}  // namespace

std::vector<Tensor> JitFunction::call(const std::vector<Tensor>& given, Where at) {
  if (capturing()) begin_capture(at);  // throws: recordings do not nest
  const std::vector<Tensor> inputs = made_ready(given, at);
  std::vector<Signature> signature;
  for (const Tensor& t : inputs) signature.push_back({t.shape(), t.dtype(), t.device()});
  auto& all = state_->recordings;
  auto found = std::ranges::find_if(all, [&](const Recording& r) { return r.inputs == signature; });
  if (found == all.end()) {
    all.push_back({signature, 0, nullptr, {}, {}});
    found = all.end() - 1;
  }
  const auto which = static_cast<std::size_t>(found - all.begin());
  if (all[which].calls++ == 0) return realized(state_->body(inputs), at);
  if (!all[which].captured) {
    realize(std::vector<Tensor>{}, at);  // the random counters are buffers before the recording
    begin_capture(at);
    std::vector<Tensor> results;
    try {
      results = realized(state_->body(inputs), at);
    } catch (...) {
      abandon_capture();
      all[which].calls = 1;
      throw;
    }
    all[which].captured = end_capture();
    for (const Tensor& t : inputs) all[which].holes.push_back(t.lazy()->buffer);
    for (const Tensor& t : results) all[which].results.push_back(t.lazy());
    // This call's results keep their buffers; the record gets fresh ones at each replay.
    return results;
  }
  Recording& r = all[which];
  std::vector<Hole> holes;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    holes.push_back({r.holes[i].get(), inputs[i].lazy()->buffer});
  std::vector<Tensor> out;
  for (const Lazy& n : r.results) {
    const auto fresh = Buffer::make(*n->device, n->buffer->bytes());
    holes.push_back({n->buffer.get(), fresh});
    out.push_back(wrap(from_buffer(fresh, n->shape, n->dtype)));
  }
  r.captured->replay(holes);
  return out;
}

}  // namespace mote
