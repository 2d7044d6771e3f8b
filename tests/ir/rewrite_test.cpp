// Matching, rule sets, the rewriter and replace.
#include "ir/rewrite.h"

#include <gtest/gtest.h>

#include <memory>

#include "ir/printer.h"
#include "ir/rules.h"
#include "mote/error.h"

namespace mote {
namespace {

const Expr x = hole("x"), y = hole("y"), a = const_hole("a");

Expr element(int n) { return load(slot(n, float32, 8), range(0, 8)); }

std::string message_of(const Expr& e, const RuleSet& rules, const RewriteOptions& options = {}) {
  try {
    rewrite(e, rules, options);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Match, ARepeatedHoleMeetsTheSameNode) {
  const Expr p = element(0), q = element(1);
  Match same(p + p), other(p + q);
  EXPECT_TRUE(match(x + x, p + p, same));
  EXPECT_FALSE(match(x + x, p + q, other));
}

TEST(Match, WhatAFailedTryHasBoundDoesNotStay) {
  const Expr p = element(0), q = element(1), e = (p * q) + q;
  Match m(e);
  EXPECT_TRUE(match(y + (x * y), e, m));  // only the second order of both fits
  EXPECT_EQ(m[y], q);
  EXPECT_EQ(m[x], p);
}

TEST(Match, AConstHoleMeetsConstantsOnly) {
  const Expr p = element(0);
  Match no(p), yes(constant(float32, 3));
  EXPECT_FALSE(match(a, p, no));
  EXPECT_TRUE(match(a, constant(float32, 3), yes));
  EXPECT_EQ(yes.value(a), Scalar(float32, 3.0));
  EXPECT_THROW(yes[x], InternalError);
}

TEST(Match, ZerosDiffer) {
  const Rule rule{"add_negzero", x + -0.0f, x};
  EXPECT_TRUE(apply(rule, element(0) + -0.0f));
  EXPECT_FALSE(apply(rule, element(0) + 0.0f));
}

TEST(Rule, TemplatesTakeTheDtypeOfTheMatch) {
  const Rule twice{"twice", x + x, x * 2.0f};
  const Expr p = load(slot(0, DType::int32, 8), range(0, 8));
  EXPECT_EQ(apply(twice, p + p), p * 2);
}

TEST(Rule, Prints) {
  EXPECT_EQ(to_text(Rule{"mul_one", x * 1.0f, x}), "mul_one: (x*1.0) -> x");
  EXPECT_EQ(to_text(Rule{"drop", x * a, [](const Match& m) { return m[x]; },
                         [](const Match&) { return true; }}),
            "drop: (x*a) -> (code) if ..");
}

TEST(RuleSet, ACopyStandsAlone) {
  const auto copied = [] {
    const RuleSet made{{"mul_one", x * 1.0f, x}};
    const RuleSet copy = made;  // NOLINT: the copy is the point
    return std::make_unique<RuleSet>(copy);
  }();
  EXPECT_EQ(copied->for_op(Op::mul).at(0), &copied->rules()[0]);
  EXPECT_EQ(rewrite(element(0) * 1.0f, *copied), element(0));
}

TEST(RuleSet, JoinsInOrder) {
  const RuleSet first{{"one", x * 1.0f, x}}, second{{"two", x * 1.0f, y}, {"neg", -x, x}};
  const RuleSet both = first | second;
  EXPECT_EQ(both.for_op(Op::mul).at(0)->name, "one");
  EXPECT_EQ(both.for_op(Op::mul).at(1)->name, "two");
  EXPECT_EQ(both.for_op(Op::neg).size(), 1u);
}

TEST(Rewrite, ToAFixpoint) {
  const Expr p = element(0);
  EXPECT_EQ(rewrite(((p * 1 + -0.0f) * 1) / 1, float_algebra()), p);
  EXPECT_EQ(rewrite(-(-(-p)), float_algebra()), -p);
  EXPECT_EQ(rewrite(p + 0.0f, float_algebra()), p + 0.0f);  // -0.0 + 0.0 is 0.0
  EXPECT_EQ(rewrite(p * 0.0f, float_algebra()), p * 0.0f);  // NaN
}

TEST(Rewrite, SharedNodesAreSeenOnce) {
  Expr e = element(0);
  for (int i = 0; i < 200; ++i) e = e * 1 + e;  // 2^200 paths
  Expr want = element(0);
  for (int i = 0; i < 200; ++i) want = want + want;
  EXPECT_EQ(rewrite(e, float_algebra()), want);
}

TEST(Rewrite, AMillionDeep) {
  Expr e = element(0);
  for (int i = 0; i < 500'000; ++i) e = (-e) * 1;
  EXPECT_EQ(rewrite(e, float_algebra()), element(0));
}

TEST(Rewrite, CyclicRulesAreNamed) {
  const RuleSet rules{{"there", x * y, x + y}, {"back", x + y, x * y}};
  const std::string what = message_of(element(0) * element(1), rules);
  EXPECT_NE(what.find("there"), std::string::npos) << what;
  EXPECT_NE(what.find("back"), std::string::npos) << what;
  EXPECT_NE(message_of(element(0) * element(1), rules, {.most_steps = 20}).find("21 steps"),
            std::string::npos);
}

TEST(Rewrite, GrowingRulesAreNamed) {
  const RuleSet inner{{"grow_inside", x * y, (-x) * y}};
  EXPECT_NE(message_of(element(0) * element(1), inner).find("grow_inside"), std::string::npos);
  const RuleSet outer{{"grow_outside", x * y, -(x * y)}};
  EXPECT_EQ(message_of(element(0) * element(1), outer, {.most_steps = 1000}).find("no error"),
            std::string::npos);
}

TEST(Rewrite, RebuildMakesNodesWithNewSources) {
  int calls = 0;
  const RewriteOptions options{.rebuild = [&](const Expr& e, std::span<const Expr> src) {
    ++calls;
    return with_sources(e, src);
  }};
  const Expr p = element(0);
  EXPECT_EQ(rewrite(-(p * 1), float_algebra(), options), -p);
  EXPECT_EQ(calls, 1);
}

TEST(Replace, NodesAndWhatTheyHoldOnce) {
  const Expr p = element(0), q = element(1);
  EXPECT_EQ(replace(p * p + 1, {{p, q}}), q * q + 1);
  EXPECT_EQ(replace(p + q, {{p, q}, {q, p}}), q + p);  // at once, not one after the other
  EXPECT_EQ(replace(p, {{q, p}}), p);
}

TEST(Replace, ABoundRangeIsAnotherOne) {
  const Expr i = range(0, 4), r = range(128, 4);
  const Expr sum = reduce(Op::add, load(slot(0, float32, 16), i * 4 + r), {{r}});
  const Expr outside = load(slot(1, float32, 4), r);
  const Expr zero = index_constant(0), one = index_constant(1);
  EXPECT_EQ(replace(sum * outside, {{r, one}}), sum * load(slot(1, float32, 4), one));
  const Expr both = replace(sum * outside, {{r, one}, {i, zero}});
  const Expr want = reduce(Op::add, load(slot(0, float32, 16), zero * 4 + r), {{r}});
  EXPECT_EQ(both, want * load(slot(1, float32, 4), one)) << to_text(both);
}

TEST(Replace, ACaptureIsRefused) {
  const Expr i = range(0, 4), r = range(128, 4);
  const Expr sum = reduce(Op::add, load(slot(0, float32, 16), i * 4 + r), {{r}});
  EXPECT_THROW(replace(sum, {{i, r}}), InternalError);
  EXPECT_EQ(replace(-i, {{i, r}}), -r);
}

TEST(Replace, AMillionDeep) {
  const Expr p = element(0), q = element(1);
  Expr e = p;
  for (int n = 0; n < 1'000'000; ++n) e = -e;
  const Expr moved = replace(e, {{p, q}});
  EXPECT_EQ(moved->depth, e->depth);
}

}  // namespace
}  // namespace mote
