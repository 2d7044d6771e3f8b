// Small kernels in the phase ABI, in C and in LLVM IR, and what tests of this room share.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/flags.h"
#include "base/text.h"
#include "mote/error.h"
#include "runtime/device.h"

namespace mote::testing {

// What does not go with a sanitizer is left out under it.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool address_sanitizer = true, thread_sanitizer = false;
#define MOTE_KNOWS_SANITIZER
#elif __has_feature(thread_sanitizer)
inline constexpr bool address_sanitizer = false, thread_sanitizer = true;
#define MOTE_KNOWS_SANITIZER
#endif
#endif
#if !defined(MOTE_KNOWS_SANITIZER)
inline constexpr bool address_sanitizer = false, thread_sanitizer = false;
#endif

// A flag set for the length of one test.
class Setting {
 public:
  Setting(std::string_view name, std::string value) : name_(name) {
    set_flag(name_, std::move(value));
  }
  ~Setting() { unset_flag(name_); }
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;

 private:
  std::string_view name_;
};

// A folder that goes away with its test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mote-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code gone;
    std::filesystem::remove_all(path_, gone);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The text of what `call` throws; empty when it throws no E.
template <class E, class F>
std::string message_of(F call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

inline ::testing::AssertionResult has(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "no '" << part << "' in: " << text;
}

// out[i] = a[i] * b[i] + c[i], tasks are elements.
inline Source multiply_add_c(std::int64_t n, std::int64_t grain = 64) {
  Source s;
  s.name = "multiply_add";
  s.text = R"(
#include <stdint.h>
void multiply_add(void* const* slots, void* shared, void* scratch, const int64_t* variables,
                  int64_t begin, int64_t end) {
  float* out = slots[0];
  const float *a = slots[1], *b = slots[2], *c = slots[3];
  for (int64_t i = begin; i < end; ++i) out[i] = a[i] * b[i] + c[i];
}
)";
  s.phases = {{"multiply_add", n, grain}};
  s.slots = 4;
  return s;
}

inline Source multiply_add_ir(std::int64_t n, std::int64_t grain = 64) {
  Source s = multiply_add_c(n, grain);
  s.text = R"(
define void @multiply_add(ptr %slots, ptr %shared, ptr %scratch, ptr %variables, i64 %begin, i64 %end) {
entry:
  %out = load ptr, ptr %slots
  %a.at = getelementptr ptr, ptr %slots, i64 1
  %a = load ptr, ptr %a.at
  %b.at = getelementptr ptr, ptr %slots, i64 2
  %b = load ptr, ptr %b.at
  %c.at = getelementptr ptr, ptr %slots, i64 3
  %c = load ptr, ptr %c.at
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %ai = getelementptr float, ptr %a, i64 %i
  %av = load float, ptr %ai
  %bi = getelementptr float, ptr %b, i64 %i
  %bv = load float, ptr %bi
  %ci = getelementptr float, ptr %c, i64 %i
  %cv = load float, ptr %ci
  %product = fmul contract float %av, %bv
  %sum = fadd contract float %product, %cv
  %oi = getelementptr float, ptr %out, i64 %i
  store float %sum, ptr %oi
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
)";
  return s;
}

// Two phases and both kinds of scratch: phase 1 puts squares into the shared scratch, through the
// thread's own; phase 2 adds all of them to variables[0].
inline Source sum_of_squares_c(std::int64_t n) {
  Source s;
  s.name = "sum_of_squares";
  s.text = R"(
#include <stdint.h>
void squares(void* const* slots, void* shared, void* scratch, const int64_t* variables,
             int64_t begin, int64_t end) {
  int64_t *own = scratch, *all = shared;
  for (int64_t i = begin; i < end; ++i) {
    own[i % 16] = i * i;
    all[i] = own[i % 16];
  }
}
void total(void* const* slots, void* shared, void* scratch, const int64_t* variables,
           int64_t begin, int64_t end) {
  int64_t sum = variables[0];
  for (int64_t i = 0; i < variables[1]; ++i) sum += ((int64_t*)shared)[i];
  *(int64_t*)slots[0] = sum;
}
)";
  s.phases = {{"squares", n, 16}, {"total", 1, 1}};
  s.slots = 1;
  s.variables = 2;
  s.shared_bytes = n * 8;
  s.scratch_bytes = 16 * 8;
  return s;
}

inline Source sum_of_squares_ir(std::int64_t n) {
  Source s = sum_of_squares_c(n);
  s.text = R"(
define void @squares(ptr %slots, ptr %shared, ptr %scratch, ptr %variables, i64 %begin, i64 %end) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %square = mul i64 %i, %i
  %k = and i64 %i, 15
  %own = getelementptr i64, ptr %scratch, i64 %k
  store i64 %square, ptr %own
  %read = load i64, ptr %own
  %at = getelementptr i64, ptr %shared, i64 %i
  store i64 %read, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
define void @total(ptr %slots, ptr %shared, ptr %scratch, ptr %variables, i64 %begin, i64 %end) {
entry:
  %start = load i64, ptr %variables
  %n.at = getelementptr i64, ptr %variables, i64 1
  %n = load i64, ptr %n.at
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi i64 [ %start, %entry ], [ %added, %loop ]
  %at = getelementptr i64, ptr %shared, i64 %i
  %v = load i64, ptr %at
  %added = add i64 %sum, %v
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  %out = load ptr, ptr %slots
  store i64 %added, ptr %out
  ret void
}
)";
  return s;
}

// Runs multiply_add on n elements; true when every one is right.
inline bool multiply_add_is_right(Device& device, Program& program, std::int64_t n) {
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<void*> slots;
  std::vector<float> values(static_cast<std::size_t>(n));
  for (int k = 0; k < 4; ++k) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((i * 7 + static_cast<std::size_t>(k)) % 13);
    buffers.push_back(Buffer::make(device, n * 4, cat("slot ", k)));
    buffers.back()->write(values.data(), 0, n * 4);
    slots.push_back(buffers.back()->data());
  }
  program.run(slots, {}, std::vector<std::int64_t>{n});
  buffers[0]->read(values.data(), 0, n * 4);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = [&](std::size_t k) { return static_cast<float>((i * 7 + k) % 13); };
    if (values[i] != at(1) * at(2) + at(3)) return false;
  }
  return true;
}

inline std::int64_t run_sum_of_squares(Device& device, Program& program, std::int64_t n,
                                       std::int64_t start) {
  const auto out = Buffer::make(device, 8, "sum");
  void* slot = out->data();
  program.run({&slot, 1}, std::vector<std::int64_t>{start, n}, std::vector<std::int64_t>{n, 1});
  std::int64_t sum = 0;
  out->read(&sum, 0, 8);
  return sum;
}

}  // namespace mote::testing
