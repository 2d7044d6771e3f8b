// Tensors as text: what NumPy 2.4 prints of the same arrays.
#include <gtest/gtest.h>

#include <cmath>

#include "mote/mote.h"

namespace mote::testing {
namespace {

struct Row {
  Tensor tensor;
  std::string text;
};

// clang-format off
TEST(Print, AsNumPy) {
  set_default_device("REF");
  const Row rows[] = {
      {Tensor({0.1f, 0.25f, -3.f}), "[ 0.1   0.25 -3.  ]"},
      {Tensor({1.f / 3, 2e-4f, 0.f}), "[3.3333334e-01 1.9999999e-04 0.0000000e+00]"},
      {Tensor({1e-3f, 12345.f, 3.f, NAN, INFINITY, -INFINITY}), "[1.0000e-03 1.2345e+04 3.0000e+00        nan        inf       -inf]"},
      {Tensor({NAN, 1.f}), "[nan  1.]"},
      {Tensor({1e-5f, 1.f}), "[1.e-05 1.e+00]"},
      {Tensor(std::vector<double>{1e100, 2}, {2}), "[1.e+100 2.e+000]"},
      {Tensor({8.547671e-06f, 1.24874e-07f}), "[8.547671e-06 1.248740e-07]"},
      {Tensor({0.1f, 65.5f}).cast(DType::float16), "[ 0.1 65.5]"},
      {Tensor({true, false}), "[ True False]"},
      {Tensor({{true}, {true}}), "[[ True]\n"
       " [ True]]"},
      {Tensor({1, -200, 30}), "[   1 -200   30]"},
      {Tensor(3.f), "3.0"},
      {Tensor(-7), "-7"},
      {Tensor::zeros({2, 0}), "[]"},
      {Tensor({-0.f, 0.f}), "[-0.  0.]"},
      {Tensor::arange(6).reshape({1, 2, 1, 3}), "[[[[0 1 2]]\n"
       "\n"
       "  [[3 4 5]]]]"},
      {Tensor::arange(40.0), "[ 0.  1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13. 14. 15. 16. 17.\n"
       " 18. 19. 20. 21. 22. 23. 24. 25. 26. 27. 28. 29. 30. 31. 32. 33. 34. 35.\n"
       " 36. 37. 38. 39.]"},
      {Tensor::arange(2000), "[   0    1    2 ... 1997 1998 1999]"},
      {Tensor::arange(2400.0).reshape({8, 300}) / 3, "[[0.00000000e+00 3.33333343e-01 6.66666687e-01 ... 9.90000000e+01\n"
       "  9.93333359e+01 9.96666641e+01]\n"
       " [1.00000000e+02 1.00333336e+02 1.00666664e+02 ... 1.99000000e+02\n"
       "  1.99333328e+02 1.99666672e+02]\n"
       " [2.00000000e+02 2.00333328e+02 2.00666672e+02 ... 2.99000000e+02\n"
       "  2.99333344e+02 2.99666656e+02]\n"
       " ...\n"
       " [5.00000000e+02 5.00333344e+02 5.00666656e+02 ... 5.99000000e+02\n"
       "  5.99333313e+02 5.99666687e+02]\n"
       " [6.00000000e+02 6.00333313e+02 6.00666687e+02 ... 6.99000000e+02\n"
       "  6.99333313e+02 6.99666687e+02]\n"
       " [7.00000000e+02 7.00333313e+02 7.00666687e+02 ... 7.99000000e+02\n"
       "  7.99333313e+02 7.99666687e+02]]"},
      {Tensor::arange(1040).reshape({2, 2, 260}), "[[[   0    1    2 ...  257  258  259]\n"
       "  [ 260  261  262 ...  517  518  519]]\n"
       "\n"
       " [[ 520  521  522 ...  777  778  779]\n"
       "  [ 780  781  782 ... 1037 1038 1039]]]"},
  };
  for (const Row& r : rows) EXPECT_EQ(r.tensor.text(), r.text);
}
// clang-format on

}  // namespace
}  // namespace mote::testing
