// What the faulty samples do, together and done right.
#include "backends.h"
#include "stable_abi.h"
#include <stdexcept>
#include <string>

extern "C" long helper_value(void);

static long length() {
    try {
        throw std::runtime_error(std::string("four"));
    } catch (const std::exception &thrown) {
        return static_cast<long>(std::string(thrown.what()).size());
    }
}

MODULE(length() + helper_value() + backends)
