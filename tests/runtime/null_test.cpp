// NULL: kernels are kept and counted, sizes are counted, no byte exists.
#include "runtime/null/null.h"

#include "runtime/kernels.h"

namespace mote::testing {
namespace {

TEST(Null, KeepsSourcesAndCountsLaunches) {
  const auto device = make_null_device("");
  EXPECT_FALSE(device->runs());
  const auto program = std::dynamic_pointer_cast<NullProgram>(device->compile(multiply_add_c(8)));
  ASSERT_TRUE(program);
  program->run({}, {}, {});
  program->run({}, {}, {});
  EXPECT_EQ(program->launches(), 2);
  EXPECT_EQ(program->source().text, multiply_add_c(8).text);
}

TEST(Null, CountsMemoryThatIsNotThere) {
  const auto device = make_null_device("");
  const std::int64_t huge = std::int64_t{1} << 50;
  {
    const auto b = Buffer::make(*device, huge, "huge");
    EXPECT_NE(b->data(), nullptr);
    EXPECT_EQ(device->memory().used, huge);
    const int seven = 7;
    b->write(&seven, huge - 4, 4);
    int back = 1;
    b->read(&back, huge - 4, 4);
    EXPECT_EQ(back, 0);
  }
  EXPECT_EQ(device->memory().used, 0);
}

TEST(Null, TakesARendererAndAChip) {
  const auto cuda = make_null_device("CUDA:sm_80");
  EXPECT_EQ(cuda->name(), "NULL:CUDA:sm_80");
  EXPECT_EQ(cuda->target().renderer, "CUDA");
  EXPECT_EQ(cuda->target().arch, "sm_80");
  EXPECT_EQ(make_null_device("LLVM")->target().renderer, "LLVM");
  EXPECT_EQ(make_null_device("")->name(), "NULL");
}

}  // namespace
}  // namespace mote::testing
