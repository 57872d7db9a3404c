"""What this machine's loader and interpreter are: versions, tokens, subfolders."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path

from wheelfix.host.libraries import real_node
from wheelfix.model.resolution import Node


def interpreter() -> Node | None:
    """The interpreter that runs this program, as the first object of its process."""
    return real_node(os.path.realpath(sys.executable), "interpreter", "interpreter")


def libc_version() -> tuple[int, int] | None:
    """glibc's version, None on a system with another C library."""
    try:
        name, _, number = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        return None
    parts = number.split(".")
    return (int(parts[0]), int(parts[1])) if name == "glibc" and len(parts) >= 2 else None


@cache
def diagnostics() -> dict[str, str]:
    """What the loader says of itself (``ld.so --list-diagnostics``, glibc 2.33 and later); empty where it cannot."""
    node = interpreter()
    loader = node.elf.interpreter if node is not None and node.elf is not None else None
    if loader is None or not Path(loader).is_file():
        return {}
    try:
        done = subprocess.run([loader, "--list-diagnostics"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return {}
    pairs = (line.partition("=") for line in done.stdout.splitlines())
    return {key: value.strip('"') for key, _, value in pairs}


def lib_token() -> str:
    """What ``$LIB`` stands for."""
    return diagnostics().get("dl_dst_lib", "lib64" if sys.maxsize > 1 << 32 else "lib")


def platform_token() -> str:
    """What ``$PLATFORM`` stands for: a name of the processor, by glibc's choice."""
    return diagnostics().get("dl_platform") or platform.machine()


def system_folders() -> tuple[str, ...]:
    """The folders that the loader searches after its cache, whatever ld.so.conf says.

    Older loaders than glibc 2.33 do not tell: the trusted folders and Debian's, as the loader's builds have them.
    """
    told = (v for k, v in diagnostics().items() if k.startswith("path.system_dirs["))
    found = tuple(folder.rstrip("/") for folder in told)
    multiarch = sysconfig.get_config_var("MULTIARCH")
    return found or (
        *((f"/lib/{multiarch}", f"/usr/lib/{multiarch}") if multiarch else ()),
        *("/lib64", "/usr/lib64", "/lib", "/usr/lib"),
    )


def subfolders() -> tuple[str, ...]:
    """The subfolders that the loader tries in each folder, the best first: glibc-hwcaps, and legacy ones before 2.37."""
    names = [n for n in diagnostics().get("dl_hwcaps_subdirs", "").split(":") if n]
    # elf/dl-hwcaps_subdirs.c: bit i of the mask stands for the i-th name.
    active = int(diagnostics().get("dl_hwcaps_subdirs_active", "0"), 0)
    best = tuple(f"glibc-hwcaps/{n}" for i, n in enumerate(names) if active & (1 << i))
    version = libc_version()
    return best if version is None or version >= (2, 37) else (*best, *_legacy())


@cache
def _legacy() -> tuple[str, ...]:
    """The legacy subfolders (elf/dl-hwcaps.c), as the loader itself lists them for a folder that it searches."""
    node = interpreter()
    loader = node.elf.interpreter if node is not None and node.elf is not None else None
    if loader is None:
        return ()
    folder = "/nonexistent-wheelfix"
    environment = {"LD_DEBUG": "libs", "LD_LIBRARY_PATH": folder, "LD_TRACE_LOADED_OBJECTS": "1"}
    try:
        done = subprocess.run(
            [loader, sys.executable], env=environment, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    lists = (line for line in done.stderr.splitlines() if f"search path={folder}" in line)
    listed = next(lists, "").partition("search path=")[2].split()[:1]
    found = (p.removeprefix(folder).strip("/") for p in (listed[0].split(":") if listed else ()))
    return tuple(p for p in found if p and not p.startswith("glibc-hwcaps/"))
