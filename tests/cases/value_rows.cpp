#include <cmath>

#include "cases/case.h"

namespace mote::testing {
namespace {

const Slice all, back({}, {}, -1);

Tensor raw(const Tensor& t) {  // the bytes of a value
  const auto bytes = t.to_bytes();
  return Tensor::from_bytes(bytes, {static_cast<std::int64_t>(bytes.size())}, DType::uint8);
}

Tensor outer(const Tensor& p, const Tensor& q) {
  const auto wide = [](const Tensor& t) { return t.cast(DType::int32).cast(DType::float32); };
  return wide(q).reshape({2, 1}).matmul(wide(p).reshape({1, 2}));
}

// Each smallest integer in its own dtype, as int64.
Tensor of_smallest(const std::function<Tensor(const Tensor&)>& f) {
  std::vector<Tensor> out;
  const std::int64_t least[] = {INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN};
  const DType types[] = {DType::int8, DType::int16, DType::int32, DType::int64};
  for (int i = 0; i < 4; ++i)
    out.push_back(f(Tensor(std::vector<std::int64_t>{least[i]}, {1}).cast(types[i])));
  return cat(out);
}

std::vector<Row> view_rows() {
  return {
      {"views-01",
       [](const Case& c) {
         const Tensor p = c["x"].pad({{0, 2}}, 3.5);
         return Named{{"padded", p}, {"element_2", p(2)}, {"flipped_tail", p(Slice(1, {}))(back)}};
       }},
      {"views-03",
       [](const Case& c) {
         return Named{{"strided", raw(c["a"](Slice(1, {}, 3)))},
                      {"transposed", raw(c["m"].t())},
                      {"expanded", raw(c["one"](Slice(0, 1)).expand({3}))}};
       }},
      {"views-06",
       [](const Case& c) {
         Tensor x = c["parent"].t();
         x += 0.5 * c["y"] / c["z"];
         return Named{{"view", x}};
       },
       {{"parent", "a view is a value: writing it does not change what it was made of"}}},
      {"fusion-01",
       [](const Case& c) {
         Tensor x = c["x"];
         const Tensor y = x.log2();
         x *= 3;
         return Named{{"y", y}, {"x_after", x}};
       }},
      {"fusion-03",
       [](const Case&) {
         const Tensor u({300, 7}), s({-3, 2}), t({-5, 6}), w({1000, 40000});
         return Named{{"u16_i8", outer(u.cast(DType::uint16), s.cast(DType::int8))},
                      {"i8_u16", outer(t.cast(DType::int8), w.cast(DType::uint16))}};
       }},
      {"empty-01",
       [](const Case&) {
         const Tensor a = Tensor::zeros({0, 2}).max(-1), b = Tensor::zeros({3, 0, 2}).max(-1),
                      d = Tensor::zeros({2, 0}).max(0);
         std::vector<std::int64_t> sizes;
         for (Dims shape : {a.shape(), b.shape(), d.shape()}) {
           shape.resize(2, -1);
           sizes.insert(sizes.end(), shape.begin(), shape.end());
         }
         return Named{{"a", a}, {"b", b}, {"c", d}, {"shapes", Tensor(sizes, {3, 2})}};
       }},
      {"empty-03",
       [](const Case& c) {
         const Tensor x = c["x"], none = x(Slice(0, 5, -1));
         return Named{{"empty", none},
                      {"forward", x(Slice(5, 0, 2))},
                      {"backward", x(Slice(7, 2, -2))},
                      {"concat", cat({none, x(Slice(0, 2))})}};
       }},
  };
}

std::vector<Row> index_rows() {
  return {
      {"ties-01",
       [](const Case& c) {
         const Tensor x = c["x"];
         return Named{{"max0", x.argmax(0)},
                      {"max1", x.argmax(1)},
                      {"min0", x.argmin(0)},
                      {"all", stack({x.argmax(), x.argmin()})}};
       }},
      {"gather-01",
       [](const Case& c) {
         const Tensor x = c["x"], nd = c["nd"];
         return Named{{"along_axis", x.gather(1, c["idx"])},
                      {"by_coordinates", x(nd(all, 0), nd(all, 1))},
                      {"one_hot", Tensor({0, 2, -1}).one_hot(5).cast(DType::float32)}};
       }},
      {"gather-03",
       [](const Case&) {
         const Tensor x = Tensor::zeros({3, 5}).contiguous();
         x(Slice(1, 3), Slice(2, 5)) = Tensor::arange(1, 7).reshape({2, 3});
         const Tensor y = x.detach();
         y(Slice(0, 2), Slice(1, 3)) += Tensor({{10.f, 20.f}, {30.f, 40.f}});
         return Named{{"written", x}, {"added", y}};
       }},
      {"setitem-01",
       [](const Case& c) {
         const Tensor a = c["a"];
         a(Tensor({0, 0, 1}), Tensor({0, 0, 1})) = Tensor({5.f, 0.f, 8.f});
         const Tensor first = a.detach();
         a(Tensor({1, 1}), Tensor({0, 0})) = Tensor({NAN, 6.f});
         return Named{{"first", first}, {"second", a}};
       }},
      {"broadcast-01",
       [](const Case& c) {
         const Tensor a = c["a"], b = c["b"], d = c["c"];
         return Named{{"min", minimum(minimum(a, b), d)}, {"max", maximum(maximum(a, b), d)}};
       }},
  };
}

std::vector<Row> integer_rows() {
  return {
      {"symbolic-01",
       [](const Case& c) {
         const Tensor n = 241 + 48 * c["x"];
         return Named{{"truncated", n.div(16, Rounding::trunc)}, {"floored", n.floor_divide(16)}};
       }},
      {"symbolic-04",
       [](const Case& c) {
         const Tensor n = 4 * c["i"] - 3;
         return Named{{"c_div", n.div(4, Rounding::trunc)},
                      {"c_mod", n.fmod(4)},
                      {"floor_div", n.floor_divide(4)},
                      {"floor_mod", n % 4}};
       }},
      {"overflow-01",
       [](const Case&) { return Named{{"result", Tensor::arange(7) * 1234567890}}; }},
      {"divmod-01",
       [](const Case& c) {
         const Tensor b = Tensor::arange(1, 128, 1, {.dtype = DType::int32}), a = c["k"] * b;
         const Tensor q = a.floor_divide(b), r = a % b;
         const Tensor n({110}), m({55});
         return Named{{"quotient_row_sums", q.sum(1)},
                      {"remainder_total", r.abs().sum()},
                      {"110_over_55", cat({n.floor_divide(m), n % m}).cast(DType::int64)}};
       }},
      {"divmod-05",
       [](const Case&) {
         return Named{
             {"remainder", of_smallest([](const Tensor& t) { return t % -1; })},
             {"wrapped_quotient", of_smallest([](const Tensor& t) { return t.floor_divide(-1); })}};
       }},
      {"cast-01", [](const Case& c) { return Named{{"result", c["x"].cast(DType::int8)}}; }},
      {"cast-03",
       [](const Case& c) {
         const Tensor x = c["x"];
         return Named{{"int32", x.cast(DType::int32)},
                      {"int8", x.cast(DType::int8)},
                      {"int64", x.cast(DType::int64)}};
       }},
      {"smallint-01",
       [](const Case& c) {
         const Tensor x = c["x"];
         return Named{{"sum", (x + x).cast(DType::int16)}, {"triple", (x * 3).cast(DType::int32)}};
       }},
      {"smallint-03",
       [](const Case& c) {
         return Named{
             {"result", stack({(~c["i"]).argmax(), (~c["b"]).argmax(), (~c["u"]).argmax()})}};
       }},
      {"lowprec-01",
       [](const Case& c) {
         return Named{{"result", c["x"].cast(DType::bfloat16).cast(DType::float32)}};
       }},
      {"round-01",
       [](const Case& c) {
         const Tensor r = c["x"].round();
         return Named{{"rounded", r}, {"sign_bits", r.bitcast(DType::int32) < 0}};
       }},
      {"math-01",
       [](const Case& c) {
         const Tensor x = c["x"].cast(DType::float32);
         return Named{{"sin", x.sin()}, {"cos", x.cos()}, {"tan", x.tan()}};
       }},
      {"math-03",
       [](const Case& c) {
         const Tensor p = c["b"].pow(c["e"]);
         return Named{{"pow", p}, {"sign_bits", ~p.isnan() & (p.bitcast(DType::int32) < 0)}};
       }},
  };
}

}  // namespace

std::vector<Row> value_rows() {
  std::vector<Row> rows = view_rows();
  for (const auto& more : {index_rows(), integer_rows()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

}  // namespace mote::testing
