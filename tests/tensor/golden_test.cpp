// Every case of golden.npz on every device: values, dtypes and shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "base/scalar.h"
#include "tensor/devices.h"
#include "tensor/golden.h"
#include "testing.h"

namespace mote::testing {
namespace {

struct Table {
  const char* name;
  Rows (*rows)();
};
void PrintTo(const Table& t, std::ostream* out) { *out << t.name; }
const Table tables[] = {{"elementwise", elementwise_rows}, {"cast", cast_rows},
                        {"reduce", reduce_rows},           {"movement", movement_rows},
                        {"indexing", indexing_rows},       {"product", product_rows}};

std::string to_text(const Dims& shape) {
  std::string out = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + ")";
}

double tolerance(DType t, Bound bound, std::int64_t longest) {
  switch (t) {
    case DType::float64: return 1e-12;
    case DType::float32:
      return 1e-5 * std::log2(bound == Bound::reduce ? static_cast<double>(longest) + 2 : 2.0);
    case DType::float16: return 2e-3;
    case DType::bfloat16: return 2e-2;
    default: return 0;
  }
}

bool is_near(double got, double want, double bound) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::abs(got - want) <= bound + bound * std::abs(want);
}

// What is wrong with the values, or nothing.
std::string difference(const std::vector<std::byte>& got, const Array& want, Bound bound,
                       std::int64_t longest) {
  if (got.size() != want.bytes.size()) return "another number of bytes";
  const auto width = static_cast<std::size_t>(size_of(want.dtype));
  const double limit = tolerance(want.dtype, bound, longest);
  std::string out;
  int wrong = 0;
  for (std::size_t i = 0; i * width < got.size(); ++i) {
    const Scalar g = load_scalar(got.data() + i * width, want.dtype),
                 w = load_scalar(want.bytes.data() + i * width, want.dtype);
    const bool nan = is_float(want.dtype) && std::isnan(w.as_double());
    bool same = std::memcmp(got.data() + i * width, want.bytes.data() + i * width, width) == 0;
    if (nan) same = std::isnan(g.as_double());
    else if (bound == Bound::values) same |= is_float(want.dtype) && g.as_double() == w.as_double();
    else if (bound != Bound::bits && limit > 0) same = is_near(g.as_double(), w.as_double(), limit);
    if (same) continue;
    if (++wrong <= 4) {
      out += "\n  [" + std::to_string(i) + "] is " + g.text() + ", should be " + w.text();
    }
  }
  return wrong ? std::to_string(wrong) + " wrong values:" + out : "";
}

constexpr const char* huge_angles = "sin(3e38) is infinite: its reduction is right to 2^30 pi / 2";

// What is known to be wrong, and must be taken from here when it is mended.
struct Fault {
  const char *name, *why;
  bool on_ref;  // or on every other device
};
const Fault faults[] = {
    {"sum_of_ones/float32", "the oracle adds in one chain", true},
    {"sin/huge-bfloat16", huge_angles, false},
    {"cos/huge-bfloat16", huge_angles, false},
    {"sin/huge-float32", huge_angles, false},
    {"cos/huge-float32", huge_angles, false},
    {"tan/huge-float32", huge_angles, false},
    {"sin/huge-float64", huge_angles, false},
    {"cos/huge-float64", huge_angles, false},
    {"tan/huge-float64", huge_angles, false},
};

bool is_faulty(std::string_view device, const std::string& name) {
  return std::ranges::any_of(
      faults, [&](const Fault& f) { return name == f.name && f.on_ref == (device == "REF"); });
}

struct Running {
  const Case* of;
  Bound bound;
  Tensors results;
};

Tensors inputs_of(const Case& c) {
  Tensors inputs;
  for (const Array& a : c.inputs) inputs.push_back(Tensor::from_bytes(a.bytes, a.shape, a.dtype));
  return inputs;
}

std::int64_t longest_of(const Case& c) {
  std::int64_t n = 1;
  for (const Array& a : c.inputs)
    n = std::max(n, static_cast<std::int64_t>(a.bytes.size()) / size_of(a.dtype));
  return n;
}

void check(const Running& r) {
  SCOPED_TRACE(r.of->name);
  ASSERT_EQ(r.results.size(), r.of->outputs.size());
  for (std::size_t i = 0; i < r.results.size(); ++i) try {
      const Tensor& got = r.results[i];
      const Array& want = r.of->outputs[i];
      EXPECT_EQ(name_of(got.dtype()), name_of(want.dtype)) << "output " << i;
      EXPECT_EQ(to_text(got.shape()), to_text(want.shape)) << "output " << i;
      if (got.dtype() != want.dtype || got.shape() != want.shape) continue;
      const std::string wrong = difference(got.to_bytes(), want, r.bound, longest_of(*r.of));
      EXPECT_TRUE(wrong.empty()) << "output " << i << ": " << wrong;
    } catch (const Error& e) {
      ADD_FAILURE() << "output " << i << ": " << e.what();
    }
}

// Many together: one call of the compiler for all. Where that fails, each case alone says which.
void realize_all(const std::vector<Running>& batch) {
  Tensors all;
  for (const Running& r : batch)
    for (const Tensor& t : r.results) all.push_back(t);
  try {
    realize(all);
  } catch (const Error& e) {
    for (const Running& r : batch) {
      try {
        realize(r.results);
      } catch (const Error& alone) {
        ADD_FAILURE() << r.of->name << ": " << alone.what();
      }
    }
    ADD_FAILURE() << e.what();
  }
}

void run_table(const char* device, const Table& table) {
  const Rows rows = table.rows();
  std::vector<Running> batch;
  const auto flush = [&] {
    realize_all(batch);
    for (const Running& r : batch) check(r);
    batch.clear();
  };
  // A C compiler takes its time: in a fast run it sees every eighth case.
  const int stride = fast() && std::string_view(device) == "CLANG" ? 8 : 1;
  int number = 0;
  for (const Case& c : golden_cases()) {
    const auto row = std::ranges::find(rows, c.op, &Row::op);
    if (row == rows.end() || number++ % stride != 0) continue;
    if (is_faulty(device, c.name)) continue;
    SCOPED_TRACE(c.name);
    try {
      batch.push_back({&c, row->bound, row->run(inputs_of(c))});
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
    if (batch.size() == 40) flush();
  }
  flush();
}

class Golden : public ::testing::TestWithParam<std::tuple<const char*, Table>> {};

TEST_P(Golden, EveryCase) {
  const auto& [device, table] = GetParam();
  set_default_device(device);
  run_table(device, table);
}

INSTANTIATE_TEST_SUITE_P(Devices, Golden,
                         ::testing::Combine(::testing::ValuesIn(computing_devices),
                                            ::testing::ValuesIn(tables)),
                         [](const auto& chosen) {
                           return std::string(std::get<0>(chosen.param)) + "_" +
                                  std::get<1>(chosen.param).name;
                         });

// Is the case right on its own?
bool holds(const Row& row, const Case& c) {
  try {
    const Tensors results = row.run(inputs_of(c));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!difference(results[i].to_bytes(), c.outputs[i], row.bound, longest_of(c)).empty())
        return false;
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(GoldenTables, KnownFaultsAreStillThere) {
  for (const char* device : computing_devices) {
    set_default_device(device);
    for (const Table& table : tables) {
      for (const Row& row : table.rows()) {
        for (const Case& c : golden_cases()) {
          if (c.op != row.op || !is_faulty(device, c.name)) continue;
          EXPECT_FALSE(holds(row, c)) << c.name << " is right on " << device;
        }
      }
    }
  }
}

TEST(GoldenTables, EveryCaseHasOneRowAndEveryRowACase) {
  std::set<std::string> rows, ops;
  for (const Table& table : tables)
    for (const Row& row : table.rows()) EXPECT_TRUE(rows.insert(row.op).second) << row.op;
  for (const Case& c : golden_cases()) ops.insert(c.op);
  EXPECT_EQ(rows, ops);
}

}  // namespace
}  // namespace mote::testing
