// A backend in a static archive. Nobody calls it: only its constructor matters, and the linker takes a
// member out of an archive only if somebody refers to it, or if it is told to (--whole-archive).
extern "C" void register_backend(const char *);

namespace {
struct Registration {
    Registration() { register_backend("DemoBackend"); }
} registration;
}  // namespace
