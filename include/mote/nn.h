// room: nn
// Layers: values that hold parameters and have a `forward`. MOTE_MODULE names the fields for
// parameters() and state_dict(); a name that is no field does not compile.
//
//   struct Net : nn::Module {
//     nn::Linear l1{784, 128}, l2{128, 10};
//     MOTE_MODULE(Net, l1, l2)
//     Tensor forward(const Tensor& x) const { return l2(l1(x.flatten(1)).relu()); }
//   };
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mote/tensor.h"

namespace mote::nn {

using StateDict = std::map<std::string, Tensor>;  // "l1.weight" -> handle

class Module;
// One visitor for parameters, buffers and children; overloads decide by the field's type.
struct FieldVisitor {
  std::string prefix;
  StateDict* all = nullptr;
  std::vector<std::pair<std::string, Tensor>>* ordered = nullptr;
  void field(std::string_view name, const Tensor& t);
  void field(std::string_view name, const Module& m);
  template <class M>
  void field(std::string_view name, const std::vector<M>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      field(std::string(name) + "." + std::to_string(i), list[i]);
    }
  }
};

class Module {
 public:
  virtual ~Module() = default;
  virtual void visit(FieldVisitor&) const {}
  std::vector<Tensor> parameters() const;  // those with requires_grad, in field order
  StateDict state_dict() const;            // parameters and buffers by name
  // Writes the values into this module's tensors. strict: names must agree exactly. Shapes must
  // agree; the error names the tensor and both shapes.
  void load_state_dict(const StateDict&, bool strict = true, Where = Where::here());
  void zero_grad();
};

#define MOTE_FIELD_1(v, a) (v).field(#a, a);
#define MOTE_FIELD_2(v, a, ...) MOTE_FIELD_1(v, a) MOTE_FIELD_1(v, __VA_ARGS__)
#define MOTE_FIELD_3(v, a, ...) MOTE_FIELD_1(v, a) MOTE_FIELD_2(v, __VA_ARGS__)
#define MOTE_FIELD_4(v, a, ...) MOTE_FIELD_1(v, a) MOTE_FIELD_3(v, __VA_ARGS__)
#define MOTE_FIELD_5(v, a, ...) MOTE_FIELD_1(v, a) MOTE_FIELD_4(v, __VA_ARGS__)
#define MOTE_FIELD_6(v, a, ...) MOTE_FIELD_1(v, a) MOTE_FIELD_5(v, __VA_ARGS__)
#define MOTE_FIELD_7(v, a, ...) MOTE_FIELD_1(v, a) MOTE_FIELD_6(v, __VA_ARGS__)
#define MOTE_FIELD_8(v, a, ...) MOTE_FIELD_1(v, a) MOTE_FIELD_7(v, __VA_ARGS__)
#define MOTE_FIELD_9(v, a, ...) MOTE_FIELD_1(v, a) MOTE_FIELD_8(v, __VA_ARGS__)
#define MOTE_FIELD_10(v, a, ...) MOTE_FIELD_1(v, a) MOTE_FIELD_9(v, __VA_ARGS__)
#define MOTE_FIELD_11(v, a, ...) MOTE_FIELD_1(v, a) MOTE_FIELD_10(v, __VA_ARGS__)
#define MOTE_FIELD_12(v, a, ...) MOTE_FIELD_1(v, a) MOTE_FIELD_11(v, __VA_ARGS__)
#define MOTE_PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, name, ...) name
#define MOTE_FIELDS(v, ...)                                                                       \
  MOTE_PICK(__VA_ARGS__, MOTE_FIELD_12, MOTE_FIELD_11, MOTE_FIELD_10, MOTE_FIELD_9, MOTE_FIELD_8, \
            MOTE_FIELD_7, MOTE_FIELD_6, MOTE_FIELD_5, MOTE_FIELD_4, MOTE_FIELD_3, MOTE_FIELD_2,   \
            MOTE_FIELD_1, 0)(v, __VA_ARGS__)
// module.forward(args..), with the place of the call where it takes one: a layer of mote does, and
// names it in its errors; inside of a user's module the lines of its own forward are better places.
template <class M, class... A>
auto forwarded(const M& module, Where at, const A&... args) {
  if constexpr (requires { module.forward(args..., at); }) return module.forward(args..., at);
  else return module.forward(args...);
}

// Up to 12 fields: Tensors, Modules, vectors of Modules. Gives the type a call operator as well.
#define MOTE_MODULE(Type, ...)                                                                     \
  void visit(::mote::nn::FieldVisitor& mote_visitor) const override {                              \
    MOTE_FIELDS(mote_visitor, __VA_ARGS__)                                                         \
  }                                                                                                \
  template <class A>                                                                               \
  auto operator()(const A& mote_a, ::mote::Where mote_at = ::mote::Where::here()) const {          \
    return ::mote::nn::forwarded(static_cast<const Type&>(*this), mote_at, mote_a);                \
  }                                                                                                \
  template <class A, class B>                                                                      \
  auto operator()(const A& mote_a, const B& mote_b, ::mote::Where mote_at = ::mote::Where::here()) \
      const {                                                                                      \
    return ::mote::nn::forwarded(static_cast<const Type&>(*this), mote_at, mote_a, mote_b);        \
  }                                                                                                \
  template <class... A>                                                                            \
    requires(sizeof...(A) == 0 || sizeof...(A) > 2)                                                \
  auto operator()(const A&... mote_args) const {                                                   \
    return static_cast<const Type&>(*this).forward(mote_args...);                                  \
  }

class Linear : public Module {  // weight (out, in), as in PyTorch
 public:
  Linear(std::int64_t in, std::int64_t out, bool bias = true, Where = Where::here());
  Tensor weight, bias;
  Tensor forward(const Tensor& x, Where = Where::here()) const;  // (.., in) -> (.., out)
  MOTE_MODULE(Linear, weight, bias)
};

class Conv2d : public Module {  // weight (out, in / groups, k, k)
 public:
  struct Options {
    std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
    bool bias = true;
  };
  Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, Where = Where::here());
  Conv2d(std::int64_t in, std::int64_t out, std::int64_t kernel, Options, Where = Where::here());
  Tensor weight, bias;
  Options options;
  Tensor forward(const Tensor& x,
                 Where = Where::here()) const;  // (N, in, H, W) -> (N, out, H', W')
  MOTE_MODULE(Conv2d, weight, bias)
};

class BatchNorm : public Module {  // over axis 1 of (N, C, ..)
 public:
  explicit BatchNorm(std::int64_t channels, double eps = 1e-5, double momentum = 0.1,
                     bool affine = true, Where = Where::here());
  Tensor weight, bias, running_mean, running_var;
  double eps, momentum;
  // While Training is on: statistics of the batch, and the running ones (unbiased) move.
  Tensor forward(const Tensor& x, Where = Where::here()) const;
  MOTE_MODULE(BatchNorm, weight, bias, running_mean, running_var)
};

class LayerNorm : public Module {
 public:
  explicit LayerNorm(Dims shape, double eps = 1e-5, bool affine = true, Where = Where::here());
  Tensor weight, bias;
  Dims normalized;
  double eps;
  Tensor forward(const Tensor& x, Where = Where::here()) const;
  MOTE_MODULE(LayerNorm, weight, bias)
};

class GroupNorm : public Module {
 public:
  GroupNorm(std::int64_t groups, std::int64_t channels, double eps = 1e-5, bool affine = true,
            Where = Where::here());
  Tensor weight, bias;
  std::int64_t groups, channels;
  double eps;
  Tensor forward(const Tensor& x, Where = Where::here()) const;
  MOTE_MODULE(GroupNorm, weight, bias)
};

class RMSNorm : public Module {
 public:
  explicit RMSNorm(std::int64_t size, double eps = 1e-6, Where = Where::here());
  Tensor weight;
  double eps;
  Tensor forward(const Tensor& x, Where = Where::here()) const;
  MOTE_MODULE(RMSNorm, weight)
};

class Embedding : public Module {  // weight (count, size)
 public:
  Embedding(std::int64_t count, std::int64_t size, std::optional<std::int64_t> padding_idx = {},
            Where = Where::here());
  Tensor weight;
  std::optional<std::int64_t> padding_idx;                           // this row gets no gradient
  Tensor forward(const Tensor& index, Where = Where::here()) const;  // (..) -> (.., size)
  MOTE_MODULE(Embedding, weight)
};

class Dropout : public Module {
 public:
  explicit Dropout(double probability = 0.5, Where = Where::here());
  double p;
  Tensor forward(const Tensor& x, Where at = Where::here()) const { return x.dropout(p, at); }
  Tensor operator()(const Tensor& x, Where at = Where::here()) const { return forward(x, at); }
};

}  // namespace mote::nn
