// An extension module that needs the C++ runtime: a string and an exception.
#include "backends.h"
#include "stable_abi.h"
#include <stdexcept>
#include <string>

static long length() {
    try {
        throw std::runtime_error(std::string("four"));
    } catch (const std::exception &thrown) {
        return static_cast<long>(std::string(thrown.what()).size());
    }
}

MODULE(length() + backends)
