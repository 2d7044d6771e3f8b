// Prints parse back to the same node; hostile text is an error with its line, never a crash.
#include "ir/printer.h"

#include <gtest/gtest.h>

#include "ir/verify.h"
#include "mote/error.h"
#include "parse.h"
#include "random_expr.h"
#include "testing.h"

namespace mote {
namespace {

using testing::Random;

Expr random_dag(Random& random) {
  const Expr i = range(0, random.pick(1, 9)), r = range(128, variable("n", 1, random.pick(1, 99)));
  std::vector<Expr> all{constant(random.scalar(float32)), load(slot(0, float32, 1000), i),
                        load(slot(1, float32, 1000), r, lt(r, index_constant(3)))};
  for (int k = 0; k < 12; ++k) {
    const Expr a = random.of(all), b = random.of(all);
    switch (random.pick(0, 7)) {
      case 0: all.push_back(a + b); break;
      case 1: all.push_back(where(lt(a, b), a, b)); break;
      case 2: all.push_back(reduce(Op::max, a, {{r}})); break;
      case 3: all.push_back(scan(Op::add, a, r, i)); break;
      case 4: all.push_back(stage_at(stage(a, {{r}}), {{i}})); break;
      case 5: all.push_back(cast(cast(a, random.of(testing::all_dtypes())), float32)); break;
      case 6: all.push_back(constant(random.scalar(float32)) * a); break;
      default: all.push_back(unary(Op::exp, a)); break;
    }
  }
  return sink({{store(slot(2, float32, 9), i, all.back(), Op::add)}});
}

TEST(Printer, RandomDagsParseBackToTheSameNode) {
  for (const std::uint64_t seed : testing::seeds(2000)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Expr e = random_dag(random);
    ASSERT_EQ(parse(to_text(e)), e) << to_text(e);
  }
}

TEST(Printer, ConstantsOfEveryDtypeParseBack) {
  for (DType t : testing::all_dtypes())
    for (const Scalar& v : Random::extremes(t))
      EXPECT_EQ(parse(to_text(constant(v))), constant(v)) << to_text(constant(v));
}

TEST(Printer, NamesOfAnyCharacter) {
  for (const char* name : {"", "n", "a b", "quote\"", "back\\slash", "%0", "two\nlines", "\\n"}) {
    const Expr v = variable(name, 0, 9);
    EXPECT_EQ(parse(to_text(v)), v) << to_text(v);
  }
}

TEST(Printer, TheExactForm) {
  const Expr x = load(slot(0, float32, 4), range(0, 4));
  EXPECT_EQ(to_text(x + x),
            "%0 = slot float32 0 4\n%1 = constant index 4\n%2 = range index %1\n"
            "%3 = load float32 %0 %2\n%4 = add float32 %3 %3\n");
}

TEST(Printer, TheShortForm) {
  const Expr i = range(0, 4), x = load(slot(0, float32, 4), i);
  EXPECT_EQ(short_text(x * 2 + -x), "((load(slot0, r0)*2.0) + neg(load(slot0, r0)))");
  EXPECT_EQ(short_text(reduce(Op::add, x, {{i}})), "reduce_add(load(slot0, r0), r0)");
  EXPECT_EQ(short_text(cast(x, DType::int8), 1), "int8(..)");
}

TEST(Printer, DeepAndShared) {
  Expr deep = variable("n", 0, 1), wide = deep;
  for (int i = 0; i < 200'000; ++i) deep = -deep;
  for (int i = 0; i < 64; ++i) wide = wide + wide;  // 2^64 paths
  EXPECT_EQ(parse(to_text(deep)), deep);
  EXPECT_EQ(parse(to_text(wide)), wide);
  EXPECT_LT(short_text(wide).size(), 1000u);
}

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

struct Fault {
  const char* text;
  const char* part;  // of the message
};

// clang-format off
const Fault faults[] = {
    {"", "expected a node"},
    {"hello", "line 1: expected %0"},
    {"%0 = constant index 4\n\n%2 = neg index %0", "line 3: expected %1"},
    {"%0 : constant", "line 1: expected ="},
    {"%0 = nonsense index", "line 1"},
    {"%0 = constant floot32 0", "line 1"},
    {"%0 = neg index", "expected 1 sources"},
    {"%0 = neg index %0", "expected an earlier node"},
    {"%0 = neg index %-1", "expected an earlier node"},
    {"%0 = neg index %99999999999999999999", "expected an earlier node"},
    {"%0 = constant index 1 2 3", "expected a source, a number or a name"},
    {"%0 = variable index 0 1 \"open", "expected a closing quote"},
    {"%0 = constant index 4\n%1 = range index 300 %0", "line 2: expected a range id"},
    {"%0 = constant index 4\n%1 = reduce index 99 %0", "line 2: expected an operation"},
    {"%0 = constant index 4\n%1 = reduce index 16 %0 %0", "expected a range"},
    {"%0 = constant index 4\n%1 = store index 99 %0 %0 %0", "line 2: expected an operation"},
    {"%0 = constant index 4\n%1 = load index %0", "expected at least 2 sources"},
    {"%0 = constant int8 1000", "line 1: expected a value of int8"},
    {"%0 = constant bool 7", "line 1: expected a value of bool"},
};
// clang-format on

TEST(Printer, FaultsNameTheLine) {
  for (const Fault& f : faults)
    EXPECT_NE(error_of(f.text).find(f.part), std::string::npos) << f.text << "\n"
                                                                << error_of(f.text);
}

// Good text with a few bytes changed: an error or a node, and whatever comes back can be looked at.
TEST(Printer, HostileText) {
  for (const std::uint64_t seed : testing::seeds(3000)) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::string text = to_text(random_dag(random));
    for (int k = 0; k < random.pick(1, 6); ++k) {
      auto& c = text[static_cast<std::size_t>(
          random.pick(0, static_cast<std::int64_t>(text.size()) - 1))];
      c = random.chance(50) ? static_cast<char>(random.pick(0, 255))
                            : "0123456789%= \n\"-"[random.pick(0, 16)];
    }
    try {
      const Expr e = parse(text);
      EXPECT_EQ(parse(to_text(e)), e);
      short_text(e);
      verify_ast(e);
    } catch (const Error&) {  // what it should be
    }
  }
}

}  // namespace
}  // namespace mote
