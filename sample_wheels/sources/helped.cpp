// An extension module that needs libhelper.so.
#include "backends.h"
#include "stable_abi.h"

extern "C" long helper_value(void);

MODULE(helper_value() + backends)
