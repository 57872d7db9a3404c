// An extension module that counts its backends.
#include "backends.h"
#include "stable_abi.h"

MODULE(backends)
