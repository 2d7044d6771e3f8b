// The path that docs/tour.md walks: two small tensors through every room, on CLANG.
#include <mote/mote.h>
using namespace mote;

int main() {
  set_default_device("CLANG");
  Tensor a{1.f, 2.f, 3.f, 4.f}, b{5.f, 6.f, 7.f, 8.f};
  show((a * b).sum());
}
