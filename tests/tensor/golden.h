// Golden values: golden.npz holds the inputs and right outputs of cases, golden.py makes it.
//
// A case is called "add/float32"; the row "add" of a table below runs it. The tables lie one to a
// topic, and golden_test.cpp runs every case of each on every device.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "mote/mote.h"

namespace mote::testing {

using Tensors = std::vector<Tensor>;

// How far a value may lie from the golden one: bits; values, where either zero will do; or the bounds
// of docs/semantics.md for an elementwise operation or for one that reduces.
enum class Bound : std::uint8_t { bits, values, elementwise, reduce };

struct Row {
  std::string op;
  Bound bound;
  std::function<Tensors(const Tensors&)> run;
};
using Rows = std::vector<Row>;

Rows elementwise_rows();
Rows cast_rows();
Rows reduce_rows();
Rows movement_rows();
Rows indexing_rows();
Rows product_rows();

struct Array {
  DType dtype;
  Dims shape;
  std::vector<std::byte> bytes;
};

struct Case {
  std::string name, op;  // "add/float32", "add"
  std::vector<Array> inputs, outputs;
};

// The cases of golden.npz in their order.
const std::vector<Case>& golden_cases();

}  // namespace mote::testing
