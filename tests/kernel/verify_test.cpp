// verify(Code) proves each access or refuses it with a witness.
#include <gtest/gtest.h>

#include "base/text.h"
#include "kernel/kernel.h"
#include "mote/error.h"

namespace mote {
namespace {

std::string complaint_of(const Code& code) {
  try {
    verify(code);
  } catch (const InternalError& e) {
    const std::string text = e.what();
    return text.substr(text.find("an access"),
                       text.find(": ", text.find("an access")) - text.find("an access"));
  }
  return "";
}

std::string complaint(const Expr& value, std::int64_t outputs = 8) {
  const Expr i = range(0, 8);
  const Expr out = slot(0, DType::float32, outputs);
  return complaint_of(linearize(open(sink({{store(out, i, value)}})), Target{}));
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
  EXPECT_EQ(complaint_of(linearize(vectorize(k, k.nests[0].loops[0], 4), Target{})),
            "an access of x1 (10 elements) is not proven in bounds; with loop 0 at 1 it goes to 7");
}

// Code by hand, over 8 floats m0 and 8 integers m1.
class Made {
 public:
  Made() {
    code_.name = "made";
    code_.memories = {{Space::slot, DType::float32, 0, 8, true, "m0"},
                      {Space::slot, DType::int32, 1, 8, false, "m1"}};
    code_.slots = 2;
    code_.phases.resize(1);
    code_.phases[0].tasks = index_constant(1);
  }

  Value add(Instruction i) {
    code_.phases[0].body.push_back(std::move(i));
    return static_cast<Value>(code_.phases[0].body.size() - 1);
  }
  Value ins(Ins kind, std::vector<Value> args = {}, DType t = DType::int32, int lanes = 1) {
    Instruction i = {};
    i.kind = kind;
    i.args = std::move(args);
    i.dtype = t;
    i.lanes = static_cast<std::uint16_t>(lanes);
    if (kind == Ins::load || kind == Ins::store) i.memory = t == DType::float32 ? 0 : 1;
    return add(std::move(i));
  }
  Value op(Op op, std::vector<Value> args, DType t = DType::int32, int lanes = 1) {
    const Value v = ins(Ins::elementwise, std::move(args), t, lanes);
    at(v).op = op;
    return v;
  }
  Value number(std::int64_t v, DType t = DType::int32) {
    const Value n = ins(Ins::constant, {}, t);
    at(n).imm = Scalar(t, v);
    return n;
  }
  // A Variable as a value.
  Value variable(const Expr& v) {
    code_.variables.push_back(v);
    const Value n = ins(Ins::variable, {}, DType::int64);
    at(n).imm_int = std::ssize(code_.variables) - 1;
    return n;
  }
  Instruction& at(Value v) { return code_.phases[0].body[static_cast<std::size_t>(v)]; }

  // "" or what is wrong, without the name of the kernel.
  std::string complaint() const {
    try {
      verify(code_);
    } catch (const InternalError& e) {
      const std::string text = e.what();
      EXPECT_TRUE(text.starts_with("verify: made: ")) << text;
      return text.substr(14);
    }
    return "";
  }

 private:
  Code code_;
};

TEST(Verify, SeesWhatIsNotMadeYet) {
  Made m;
  m.op(Op::neg, {0});
  EXPECT_EQ(m.complaint(), "it uses a value that is not made yet: %0 = neg %0 : int32");
}

TEST(Verify, SeesNestingThatDoesNotFit) {
  for (Ins kind : {Ins::end, Ins::otherwise}) {
    Made m;
    m.ins(kind);
    EXPECT_EQ(m.complaint(), cat("it closes nothing: ", kind == Ins::end ? "end" : "otherwise"));
  }
  Made open;
  open.ins(Ins::loop, {open.number(0), open.number(8)});
  EXPECT_EQ(open.complaint(), "1 loops or branches are not closed");
}

TEST(Verify, SeesLanesAndTypesThatDiffer) {
  {
    Made m;
    const Value one = m.number(1), four = m.ins(Ins::broadcast, {one}, DType::int32, 4);
    m.op(Op::add, {one, four}, DType::int32, 4);
    EXPECT_EQ(m.complaint(), "the lanes differ: %2 = add %0 %1 : int32 x4");
  }
  {
    Made m;
    m.at(m.ins(Ins::load, {m.number(0)})).memory = 0;
    EXPECT_EQ(m.complaint(), "the dtype is not the memory's: %1 = load m0[%0] : int32");
  }
  {
    Made m;
    m.ins(Ins::store, {m.number(0), m.number(1)}, DType::float32);
    EXPECT_EQ(m.complaint(), "the dtypes differ: store m0[%0] %1 : float32");
  }
  {
    Made m;
    const Value x = m.number(1, DType::float32),
                four = m.ins(Ins::broadcast, {x}, DType::float32, 4);
    m.ins(Ins::store, {m.number(0), four}, DType::float32);
    EXPECT_EQ(m.complaint(), "the lanes differ: store m0[%2] %1 : float32");
  }
  {
    Made m;
    m.op(Op::add, {m.number(1), m.number(1, DType::float32)});
    EXPECT_TRUE(m.complaint().starts_with("the dtypes differ: %2 = add")) << m.complaint();
  }
  {
    Made m;
    const Value d = m.ins(Ins::declare, {m.number(1)});
    m.ins(Ins::set, {d, m.number(1, DType::float32)});
    EXPECT_EQ(m.complaint(), "the dtypes differ: set %1 %2 : int32");
  }
  {
    Made m;
    m.ins(Ins::load, {m.number(0), m.number(1)}, DType::float32);
    EXPECT_EQ(m.complaint(), "the dtypes differ: %2 = load m0[%0] %1 : float32");
  }
  {
    Made m;
    m.ins(Ins::branch, {m.number(1)}, DType::boolean);
    EXPECT_EQ(m.complaint(), "the dtypes differ: branch %0");
  }
  {
    Made m;
    m.at(m.ins(Ins::load, {m.number(0)})).memory = 7;
    EXPECT_EQ(m.complaint(), "%1 names no memory");
  }
  {
    Made m;
    const Value one = m.number(1);
    m.ins(Ins::get, {one});
    EXPECT_EQ(m.complaint(), "it names no variable: %1 = get %0 : int32");
  }
}

// if (i < limit) { m0[i + then] } else { m0[i + otherwise] }, for i in 0..8
std::string branches(std::int64_t limit, std::int64_t then, std::int64_t otherwise) {
  Made m;
  const Value zero = m.number(0), i = m.ins(Ins::loop, {zero, m.number(8)}),
              low = m.op(Op::lt, {i, m.number(limit)}, DType::boolean),
              x = m.number(1, DType::float32);
  m.ins(Ins::branch, {low}, DType::boolean);
  m.ins(Ins::store, {m.op(Op::add, {i, m.number(then)}), x}, DType::float32);
  m.ins(Ins::otherwise);
  m.ins(Ins::store, {m.op(Op::add, {i, m.number(otherwise)}), x}, DType::float32);
  m.ins(Ins::end);
  m.ins(Ins::end);
  const std::string text = m.complaint();
  return text.substr(0, text.find(": store"));
}

TEST(Verify, ProvesByTheBranch) {
  const std::string fault = "an access of m0 (8 elements) is not proven in bounds; with loop 0 at ";
  EXPECT_EQ(branches(5, 3, -5), "");
  EXPECT_EQ(branches(5, 0, 0), "");
  EXPECT_EQ(branches(5, 4, -5), fault + "4 it goes to 8");
  EXPECT_EQ(branches(5, 3, -6), fault + "5 it goes to -1");
  EXPECT_EQ(branches(5, 3, 1), fault + "7 it goes to 8");
}

// x[i] of m0, in a loop.
std::string loop_over(Made& m, Value begin, Value end) {
  m.ins(Ins::load, {m.ins(Ins::loop, {begin, end}, m.at(end).dtype)}, DType::float32);
  m.ins(Ins::end);
  const std::string text = m.complaint();
  return text.substr(0, text.rfind(": %"));
}

TEST(Verify, KnowsWhereALoopBegins) {
  const std::string fault = "an access of m0 (8 elements) is not proven in bounds; with loop 0 at ";
  for (std::int64_t begin : {-1, 0, 3}) {
    Made m;
    EXPECT_EQ(loop_over(m, m.number(begin), m.number(8)),
              begin < 0 ? fault + "0 it goes to -1" : "");
  }
  Made m;
  EXPECT_EQ(loop_over(m, m.number(3), m.number(9)), fault + "5 it goes to 8");
}

TEST(Verify, NamesVariablesInTheWitness) {
  const std::string fault = "an access of m0 (8 elements) is not proven in bounds; with n at ";
  for (std::int64_t most : {8, 10, 1000000}) {
    Made m;
    const Value n = m.variable(variable("n", 0, most));
    EXPECT_EQ(loop_over(m, m.number(0, DType::int64), n),
              most == 8    ? ""
              : most == 10 ? fault + "9, loop 0 at 8 it goes to 8"
                           : fault + "200000, loop 0 at 39999 it goes to 39999");
  }
  Made below;
  below.ins(Ins::load, {below.variable(variable("n", -3, 7))}, DType::float32);
  EXPECT_EQ(below.complaint(), fault + "-3 it goes to -3: %1 = load m0[%0] : float32");
  Made m;
  m.ins(Ins::load, {m.variable(variable("n", 0, 8))}, DType::float32);
  EXPECT_EQ(m.complaint(), fault + "8 it goes to 8: %1 = load m0[%0] : float32");
}

TEST(Verify, SeesAValueOfAClosedBlock) {
  Made m;
  const Value i = m.ins(Ins::loop, {m.number(0), m.number(8)});
  m.ins(Ins::end);
  m.op(Op::neg, {i});
  EXPECT_EQ(m.complaint(), "it uses a value of a block that is closed: %4 = neg %2 : int32");
  Made other;
  other.ins(Ins::branch, {other.number(1, DType::boolean)}, DType::boolean);
  const Value x = other.number(1);
  other.ins(Ins::otherwise);
  other.op(Op::neg, {x});
  EXPECT_EQ(other.complaint(), "it uses a value of a block that is closed: %4 = neg %2 : int32");
}

}  // namespace
}  // namespace mote
