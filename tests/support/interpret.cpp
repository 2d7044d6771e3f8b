#include "support/interpret.h"

#include <utility>

#include "base/text.h"
#include "ir/printer.h"
#include "mote/error.h"

namespace mote {
namespace {

using Environment = std::unordered_map<int, std::int64_t>;  // range id -> value
using Memo = std::unordered_map<Expr, Scalar>;              // in one environment

class Interpreter {
 public:
  Interpreter(std::span<void* const> slots, const std::unordered_map<Expr, std::int64_t>& variables)
      : slots_(slots), variables_(variables) {}

  void run(const Expr& store) {
    ranges_.clear();
    std::unordered_map<int, Expr> by_id;
    for (const Expr& e : topological(store))
      if (e->op == Op::range) by_id[static_cast<int>(e->arg)] = e;
    for (int id : store->free.ids()) ranges_.push_back(by_id.at(id));
    loop(ranges_, 0, [&] { store_one(store); });
  }

 private:
  template <class F>
  void loop(const std::vector<Expr>& ranges, std::size_t depth, const F& body) {
    if (depth == ranges.size()) return body();
    const std::int64_t extent = value(ranges[depth]->src[0]).as_int();
    const int id = static_cast<int>(ranges[depth]->arg);
    const Environment before = environment_;
    const Memo outside = std::exchange(memo_, {});
    for (std::int64_t i = 0; i < extent; ++i) {
      environment_[id] = i;
      memo_.clear();
      loop(ranges, depth + 1, body);
    }
    environment_ = before;
    memo_ = outside;
  }

  void* element(const Expr& slot, std::int64_t index) {
    if (index < 0 || index >= slot->arg2) {
      throw InternalError(cat("interpret: index ", index, " is outside of the ", slot->arg2,
                              " elements of slot ", slot->arg));
    }
    return static_cast<char*>(slots_[static_cast<std::size_t>(slot->arg)]) +
           index * size_of(slot->dtype);
  }

  void store_one(const Expr& s) {
    if (s->src.size() > 3 && !value(s->src[3]).as_bool()) return;
    void* at = element(s->src[0], value(s->src[1]).as_int());
    Scalar v = value(s->src[2]);
    const Op op = static_cast<Op>(s->arg);
    if (op != Op::store) {
      const Scalar both[] = {load_scalar(at, v.dtype), v};
      v = evaluate(op, v.dtype, both);
    }
    store_scalar(at, v);
  }

  Scalar value(const Expr& e) {
    if (const auto at = memo_.find(e); at != memo_.end()) return at->second;
    const Scalar v = computed(e);
    if (!e->src.empty()) memo_.emplace(e, v);
    return v;
  }

  Scalar computed(const Expr& e) {
    switch (e->op) {
      case Op::constant: return scalar_of(e);
      case Op::variable: return Scalar(DType::index, variables_.at(e));
      case Op::range: return Scalar(DType::index, environment_.at(static_cast<int>(e->arg)));
      case Op::load:
        if (e->src.size() > 2 && !value(e->src[2]).as_bool()) return Scalar(e->dtype, 0);
        return load_scalar(element(e->src[0], value(e->src[1]).as_int()), e->dtype);
      case Op::reduce: return reduced(e);
      case Op::scan: return scanned(e);
      case Op::stage_at: return staged(e);
      case Op::where: return value(value(e->src[0]).as_bool() ? e->src[1] : e->src[2]);
      default: break;
    }
    std::vector<Scalar> values;
    for (const Expr& s : e->src) values.push_back(value(s));
    return evaluate(e->op, e->dtype, values);
  }

  Scalar reduced(const Expr& e) {
    Scalar total = identity_of(static_cast<Op>(e->arg), e->dtype);
    const std::vector<Expr> ranges(e->src.begin() + 1, e->src.end());
    loop(ranges, 0, [&] {
      const Scalar both[] = {total, value(e->src[0])};
      total = evaluate(static_cast<Op>(e->arg), e->dtype, both);
    });
    return total;
  }

  Scalar scanned(const Expr& e) {
    Scalar total = identity_of(static_cast<Op>(e->arg), e->dtype);
    const std::int64_t last = value(e->src[2]).as_int();
    std::int64_t i = 0;
    loop({e->src[1]}, 0, [&] {
      if (i++ > last) return;
      const Scalar both[] = {total, value(e->src[0])};
      total = evaluate(static_cast<Op>(e->arg), e->dtype, both);
    });
    return total;
  }

  // The body where the table's ranges are at the indices.
  Scalar staged(const Expr& e) {
    const Expr& stage = e->src[0];
    std::vector<std::int64_t> indices;
    for (const Expr& i : e->src.subspan(1)) indices.push_back(value(i).as_int());
    const Environment before = environment_;
    const Memo outside = std::exchange(memo_, {});
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const Expr& range = stage->src[i + 1];
      if (indices[i] < 0 || indices[i] >= value(range->src[0]).as_int())
        throw InternalError(
            cat("interpret: ", indices[i], " is outside of a stage: ", short_text(e, 3)));
      environment_[static_cast<int>(range->arg)] = indices[i];
    }
    memo_.clear();
    const Scalar v = value(stage->src[0]);
    environment_ = before;
    memo_ = outside;
    return v;
  }

  std::span<void* const> slots_;
  const std::unordered_map<Expr, std::int64_t>& variables_;
  std::vector<Expr> ranges_;
  Environment environment_;
  Memo memo_;
};

}  // namespace

void interpret(const Expr& sink, std::span<void* const> slots,
               const std::unordered_map<Expr, std::int64_t>& variables) {
  for (const Expr& store : sink->src) Interpreter(slots, variables).run(store);
}

}  // namespace mote
