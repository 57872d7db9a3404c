/* The part of Python's stable ABI that the samples use, so that they build where Python's headers are not
   installed. The layouts are fixed since Python 3.2 (PEP 384). */
#ifndef STABLE_ABI_H
#define STABLE_ABI_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct _object PyObject;
typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);
typedef struct {
    const char *ml_name;
    PyCFunction ml_meth;
    int ml_flags;
    const char *ml_doc;
} PyMethodDef;
typedef struct {
    ptrdiff_t ob_refcnt;
    void *ob_type;
    PyObject *(*m_init)(void);
    ptrdiff_t m_index;
    PyObject *m_copy;
    const char *m_name;
    const char *m_doc;
    ptrdiff_t m_size;
    PyMethodDef *m_methods;
    void *m_slots, *m_traverse, *m_clear, *m_free;
} PyModuleDef;
#define METH_NOARGS 0x0004
PyObject *PyModule_Create2(PyModuleDef *, int);
PyObject *PyLong_FromLong(long);
#ifdef __cplusplus
}
#define EXPORTED extern "C" __attribute__((visibility("default")))
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

/* A module _ext with one function, value(), that returns what CALL gives. */
#define MODULE(CALL)                                                                                    \
    static PyObject *value(PyObject *self, PyObject *none) {                                            \
        (void)self, (void)none;                                                                         \
        return PyLong_FromLong(CALL);                                                                   \
    }                                                                                                   \
    static PyMethodDef methods[] = {{"value", value, METH_NOARGS, "One number."}, {0, 0, 0, 0}};        \
    static PyModuleDef module = {1, 0, 0, 0, 0, "_ext", "A sample.", -1, methods, 0, 0, 0, 0};          \
    EXPORTED PyObject *PyInit__ext(void) { return PyModule_Create2(&module, 3); }
#endif
