#include <mote/dtype.h>
#include <mote/mote.h>

int main() { return mote::promote(mote::int8, mote::float32) == mote::float32 ? 0 : 1; }
