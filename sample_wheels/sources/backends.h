// What backends call while the module is loaded; every sample has one backend, in demo_backend.cpp.
#ifndef BACKENDS_H
#define BACKENDS_H
static long backends;
extern "C" __attribute__((visibility("hidden"))) void register_backend(const char *) { backends++; }
#endif
