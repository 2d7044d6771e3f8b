// All of mote. `using namespace mote;` is what the examples do.
#pragma once
#include "mote/data.h"
#include "mote/device.h"
#include "mote/dtype.h"
#include "mote/error.h"
#include "mote/jit.h"
#include "mote/nn.h"
#include "mote/optim.h"
#include "mote/tensor.h"
