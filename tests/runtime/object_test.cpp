// The loader: relocations of real objects, and damaged ones by the thousand.
#include "runtime/cpu/object.h"

#include <elf.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>

#include "base/scalar.h"
#include "runtime/kernels.h"
#include "testing.h"

namespace mote::testing {
namespace {

// The object file of some C, by the compiler of CLANG, and of some IR, by LLVM.
std::string object_of(Device& device, const std::string& text, const std::string& symbol) {
  const Setting no_cache("MOTE_CACHE", "0");
  Source source;
  source.name = symbol;
  source.text = text;
  source.phases = {{symbol, 1, 1}};
  return std::string(device.compile(source)->machine_code());
}

std::string from_c(const std::string& text, const std::string& symbol) {
  return object_of(*make_clang_device(""), text, symbol);
}
std::string from_ir(const std::string& text, const std::string& symbol) {
  return object_of(*make_cpu_device(""), text, symbol);
}

std::shared_ptr<Object> load(const std::string& bytes) {
  return Object::load(std::as_bytes(std::span(bytes)));
}

template <class F>
F* function(const Object& object, std::string_view name) {
  return reinterpret_cast<F*>(object.symbol(name));
}

// Constants, tables of pointers, static data, calls of this file's and of libc's and libm's.
const char* everything = R"(
#include <math.h>
#include <stdint.h>
#include <string.h>
static const double table[4] = {1.5, 2.5, 3.5, 4.5};
static int64_t counter;
static int64_t started = 40;
static const char* const names[] = {"zero", "one", "two"};
__attribute__((noinline)) static int64_t twice(int64_t x) { return 2 * x; }
int64_t count(void) { return ++counter + started; }
double constant(int64_t i) { return table[i & 3]; }
int64_t length(int64_t i) { return (int64_t)strlen(names[i % 3]); }
int64_t calls(int64_t x) { return twice(x) + twice(x + 1); }
double power(double x, double y) { return pow(x, y); }
void fill(void* to, int value, uint64_t n) { memset(to, value, n); memmove((char*)to + 1, to, n - 1); }
void* address(void) { return (void*)&sinf; }
float many(int64_t op, float x) {
  switch (op) { case 0: return sinf(x); case 1: return cosf(x); case 2: return expf(x);
                case 3: return logf(x); case 4: return tanhf(x); case 5: return -x; default: return 0; }
}
)";

TEST(Object, RunsEverythingThatACompilerMakes) {
  const auto object = load(from_c(everything, "calls"));
  EXPECT_EQ(function<std::int64_t()>(*object, "count")(), 41);
  EXPECT_EQ(function<std::int64_t()>(*object, "count")(), 42);
  EXPECT_EQ(function<double(std::int64_t)>(*object, "constant")(2), 3.5);
  EXPECT_EQ(function<std::int64_t(std::int64_t)>(*object, "length")(0), 4);
  EXPECT_EQ(function<std::int64_t(std::int64_t)>(*object, "calls")(3), 14);
  EXPECT_EQ(function<double(double, double)>(*object, "power")(2.0, 10.0), 1024.0);
  char bytes[8] = "abcdefg";
  function<void(void*, int, std::uint64_t)>(*object, "fill")(bytes, 'x', 7);
  EXPECT_STREQ(bytes, "xxxxxxx");
  const auto sine = std::bit_cast<float (*)(float)>(function<void*()>(*object, "address")());
  EXPECT_EQ(sine(0.5f), std::sin(0.5f));
  const auto many = function<float(std::int64_t, float)>(*object, "many");
  EXPECT_EQ(many(0, 1.f), std::sin(1.f));
  EXPECT_EQ(many(4, 1.f), std::tanh(1.f));
  EXPECT_EQ(many(5, 1.f), -1.f);
  EXPECT_EQ(object->symbol("missing"), nullptr);
  EXPECT_EQ(object->symbol("table"), nullptr) << "no function";
}

TEST(Object, EachLoadHasDataOfItsOwn) {
  const std::string bytes = from_c(everything, "calls");
  const auto a = load(bytes), b = load(bytes);
  EXPECT_EQ(function<std::int64_t()>(*a, "count")(), 41);
  EXPECT_EQ(function<std::int64_t()>(*b, "count")(), 41);
}

TEST(Object, HasTheConversionsThatLlvmCallsFor) {
  const auto object = load(from_ir(R"(
define void @to_bfloat(ptr %x, ptr %out) {
  %v = load float, ptr %x
  %r = fptrunc float %v to bfloat
  store bfloat %r, ptr %out
  ret void
}
define void @to_half(ptr %x, ptr %out) {
  %v = load double, ptr %x
  %r = fptrunc double %v to half
  store half %r, ptr %out
  ret void
}
)",
                                   "to_half"));
  const auto bfloat = function<void(const float*, std::uint16_t*)>(*object, "to_bfloat");
  const auto half = function<void(const double*, std::uint16_t*)>(*object, "to_half");
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    const float f = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(f)) continue;
    std::uint16_t got = 0;
    bfloat(&f, &got);
    EXPECT_EQ(got, to_bfloat(f)) << f;
    const double d = std::ldexp(f, -100);
    half(&d, &got);
    EXPECT_EQ(got, to_half(d)) << d;
  }
}

TEST(Object, NamesTheFunctionThatIsMissing) {
  const std::string text =
      "extern int not_anywhere(void);\nint f(void) { return not_anywhere(); }\n";
  EXPECT_EQ(message_of<CompileError>([&] { from_c(text, "f"); }),
            "object file: it needs a function 'not_anywhere' that this process does not have");
}

TEST(Object, SaysWhatIsWrong) {
  const std::string good = from_c("int f(void) { return 1; }\n", "f");
  const auto error_of = [](const std::string& bytes) {
    return message_of<CompileError>([&] { load(bytes); });
  };
  EXPECT_EQ(error_of(good), "");
  EXPECT_EQ(error_of(""), "object file: it ends too early");
  EXPECT_EQ(error_of(std::string(1000, 'x')), "object file: it is no relocatable 64-bit ELF file");
  EXPECT_EQ(error_of(good.substr(0, good.size() - 1)), "object file: it ends too early");
  std::string other = good;
  other[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_AARCH64);
  EXPECT_EQ(error_of(other), "object file: it is for another machine");
}

// Whatever the bytes are, the loader loads or throws. (What is loaded then is not run.)
void survives(const std::string& bytes) {
  try {
    load(bytes)->symbol("calls");
  } catch (const CompileError&) {
    // as it should
  }
}

TEST(Object, SurvivesEveryTruncation) {
  for (const std::string& good :
       {from_c(everything, "calls"), from_ir(multiply_add_ir(1).text, "multiply_add")}) {
    for (std::size_t n = 0; n < good.size(); n += fast() ? 13 : 1) {
      const std::string cut(good.data(), n);  // exactly n bytes, so that a sanitizer sees the end
      survives(cut);
    }
  }
}

TEST(Object, SurvivesDamage) {
  const std::string objects[] = {from_c(everything, "calls"),
                                 from_ir(sum_of_squares_ir(1).text, "total")};
  for (const std::uint64_t seed : seeds(20'000)) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::string bytes = objects[seed % 2];
    // The header and the section table matter most: half of the damage goes there.
    Elf64_Ehdr head;
    std::memcpy(&head, bytes.data(), sizeof head);
    for (auto n = 1 + random() % 8; n > 0; --n) {
      std::size_t at = random() % bytes.size();
      if (random() % 2) at = (random() % 4 ? head.e_shoff + at : at % sizeof head) % bytes.size();
      const unsigned char odd[] = {0, 1, 0x7f, 0x80, 0xff, static_cast<unsigned char>(random())};
      bytes[at] = static_cast<char>(odd[random() % 6]);
    }
    survives(bytes);
  }
}

}  // namespace
}  // namespace mote::testing
