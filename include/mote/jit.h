// room: tensor
// jit: a function of Tensors, recorded once and replayed.
//
//   auto step = jit([&](Tensor x, Tensor y) { ..; opt.step(); return loss; });
//   for (..) show(step(x, y));
//
// Call 1 runs plainly (optimizer state is born there). Call 2 is recorded with its inputs as holes.
// Call 3 and later replay the compiled kernels. A captured Tensor is read anew at each replay; a
// captured C++ number is fixed when recorded. Another shape, dtype or device of an input records
// anew. Reading a value on the host while recording, a nested jit, the same tensor given twice, or
// an undefined result throws JitError.
#pragma once
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "mote/tensor.h"

namespace mote {

class JitFunction {
 public:
  using Body = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  explicit JitFunction(Body body);
  // The results are new tensors at each call: they do not alias those of an earlier one.
  std::vector<Tensor> call(const std::vector<Tensor>& inputs, Where);
  int kernels() const;  // launched by one replay; 0 before the recording
  void reset();         // forgets the recordings

 private:
  struct State;
  std::shared_ptr<State> state_;
};

namespace detail {
template <class F, class... A>
using jit_result = std::invoke_result_t<F, A...>;
}

// Works for functions of any number of Tensors (or one std::vector<Tensor>) that return a Tensor or
// a std::vector<Tensor>.
template <class F>
class Jit {
 public:
  Jit(F f, Where where) : f_(std::make_shared<F>(std::move(f))), where_(where) {}

  template <class... T>
  auto operator()(const T&... inputs) {
    if constexpr (sizeof...(T) == 1 && (std::is_same_v<T, std::vector<Tensor>> && ...)) {
      return run([f = f_](const std::vector<Tensor>& in) { return (*f)(in); }, inputs...);
    } else {
      return run(
          [f = f_](const std::vector<Tensor>& in) {
            return [&]<std::size_t... I>(std::index_sequence<I...>) {
              return (*f)(in[I]...);
            }(std::index_sequence_for<T...>{});
          },
          std::vector<Tensor>{inputs...});
    }
  }
  int kernels() const { return function_ ? function_->kernels() : 0; }
  void reset() { function_.reset(); }

 private:
  template <class G>
  auto run(G g, const std::vector<Tensor>& inputs) {
    using Result = std::invoke_result_t<G, const std::vector<Tensor>&>;
    static_assert(std::is_same_v<Result, Tensor> || std::is_same_v<Result, std::vector<Tensor>>,
                  "jit: the function must return a Tensor or a std::vector<Tensor>");
    if (!function_) {
      function_ = std::make_shared<JitFunction>([g](const std::vector<Tensor>& in) {
        if constexpr (std::is_same_v<Result, Tensor>) return std::vector<Tensor>{g(in)};
        else return g(in);
      });
    }
    std::vector<Tensor> out = function_->call(inputs, where_);
    if constexpr (std::is_same_v<Result, Tensor>) return out[0];
    else return out;
  }
  std::shared_ptr<F> f_;
  Where where_;  // of the call of jit, for messages
  std::shared_ptr<JitFunction> function_;
};

template <class F>
Jit<F> jit(F f, Where where = Where::here()) {
  return Jit<F>(std::move(f), where);
}

}  // namespace mote
