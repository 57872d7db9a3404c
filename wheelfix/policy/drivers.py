"""Libraries that never come with a wheel: those of a GPU's kernel driver, and the interpreter's own.

A driver's user-space library must match the kernel module of the machine, so it can be neither promised
by a tag nor carried by a wheel. libpython is the process itself (PEP 513: extensions must not link it).
"""

from __future__ import annotations

import fnmatch
import re

# NVIDIA: the libraries of the driver packages (not of the CUDA toolkit). AMD's and Intel's user-space
# runtimes (libamdhip64, libze_loader, libOpenCL) are ordinary packages and are not listed.
_DRIVER = (
    "libcuda.so*",
    "libcudadebugger.so*",
    "libnvcuvid.so*",
    "libnvidia-*.so*",
    "libnvoptix.so*",
    "libnvrm_*.so*",
)
_LIBPYTHON = re.compile(r"libpython[23](\.\d+)?[a-z]*\.so(\.\d+)*")


def is_driver_library(name: str) -> bool:
    """Whether a DT_NEEDED name belongs to a GPU driver."""
    return any(fnmatch.fnmatchcase(name, glob) for glob in _DRIVER)


def is_libpython(name: str) -> bool:
    """Whether a DT_NEEDED name is the interpreter's library, or the limited-API stub libpython3.so."""
    return _LIBPYTHON.fullmatch(name) is not None
