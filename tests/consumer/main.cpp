// What a program built against an installed mote does: one kernel, its value checked.
#include <mote/mote.h>

int main() {
  mote::set_default_device("CLANG");
  mote::Tensor a{1.f, 2.f, 3.f, 4.f}, b{5.f, 6.f, 7.f, 8.f};
  return (a * b).sum().item<float>() == 70.f ? 0 : 1;
}
