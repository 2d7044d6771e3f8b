// verify(Code) proves each access or refuses it with a witness.
#include <gtest/gtest.h>

#include "kernel/kernel.h"
#include "mote/error.h"

namespace mote {
namespace {

std::string complaint(const Expr& value, std::int64_t outputs = 8) {
  const Expr i = range(0, 8);
  const Expr out = slot(0, DType::float32, outputs);
  const Code code = linearize(open(sink({{store(out, i, value)}})), Target{});
  try {
    verify(code);
  } catch (const InternalError& e) {
    const std::string text = e.what();
    return text.substr(text.find("an access"),
                       text.find(": ", text.find("an access")) - text.find("an access"));
  }
  return "";
}

Expr at(const Int& index, const Expr& gate = always()) {
  const Expr x = slot(1, DType::float32, 8);
  return gate == always() ? load(x, index.expr()) : load(x, index.expr(), gate);
}

const Int& i() {
  static const Int range_0(range(0, 8));
  return range_0;
}

TEST(Verify, ProvesByBounds) {
  EXPECT_EQ(complaint(at(i())), "");
  EXPECT_EQ(complaint(at(i() / 2 + 4)), "");
  EXPECT_EQ(complaint(at(i() % 3 + 5)), "");
  EXPECT_EQ(complaint(at(7 - i())), "");
}

TEST(Verify, ProvesByTheGate) {
  EXPECT_EQ(complaint(at(i() + 3, less(i(), 5))), "");
  EXPECT_EQ(complaint(at(i() - 3, at_least(i(), 3))), "");
  EXPECT_EQ(complaint(at(i() * 2 - 1, all_of(at_least(i(), 1), less(i(), 4)))), "");
}

TEST(Verify, RefusesWithAWitness) {
  EXPECT_EQ(complaint(at(i() + 1)),
            "an access of x1 (8 elements) is not proven in bounds; with loop 0 at 7 it goes to 8");
  EXPECT_EQ(complaint(at(i() - 1)),
            "an access of x1 (8 elements) is not proven in bounds; with loop 0 at 0 it goes to -1");
  EXPECT_EQ(complaint(at(i()), 7),
            "an access of x0 (7 elements) is not proven in bounds; with loop 0 at 7 it goes to 7");
}

TEST(Verify, RefusesAWrongGate) {
  EXPECT_EQ(complaint(at(i() + 3, less(i(), 6))),
            "an access of x1 (8 elements) is not proven in bounds; with loop 0 at 5 it goes to 8");
  EXPECT_EQ(complaint(at(i() - 3, at_least(i(), 2))),
            "an access of x1 (8 elements) is not proven in bounds; with loop 0 at 2 it goes to -1");
}

TEST(Verify, WantsWhatIsLoadedToBeGated) {
  const Expr index = cast(load(slot(2, DType::int32, 8), i().expr()), DType::index);
  EXPECT_EQ(complaint(at(Int(index))), "an access of x1 (8 elements) is not proven in bounds");
  EXPECT_EQ(complaint(at(Int(index), all_of(at_least(Int(index), 0), less(Int(index), 8)))), "");
  EXPECT_EQ(complaint(at(Int(index), all_of(at_least(Int(index), 0), less(Int(index), 9)))),
            "an access of x1 (8 elements) is not proven in bounds");
}

TEST(Verify, SeesVectorsThatOverlapTheEnd) {
  const Expr r = range(0, 8);
  Kernel k = open(sink({{store(slot(0, DType::float32, 8), r,
                               load(slot(1, DType::float32, 10), (Int(r) + 3).expr()))}}));
  const Code code = linearize(vectorize(k, k.nests[0].loops[0], 4), Target{});
  EXPECT_THROW(verify(code), InternalError);
}

}  // namespace
}  // namespace mote
