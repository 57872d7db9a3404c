"""Judges of the edit campaign. None of them uses wheelfix: readelf, pyelftools, and the loader itself.

Each returns what is wrong, one line per fault; nothing where all is well.
"""

from __future__ import annotations

import functools
import io
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.segments import Segment

from tests.elf.campaign_set import Subject, with_headers
from wheelfix.model.plan import ElfChange

# Dynamic entries that say where a table lies or how long the string table is: they follow what moves.
_PLACES = {
    "HASH", "GNU_HASH", "STRTAB", "STRSZ", "SYMTAB", "RELA", "REL", "RELR", "JMPREL", "VERSYM", "VERNEED",
    "VERDEF", "NULL", "DEBUG",
}  # fmt: skip
# Sections that only the dynamic segment or a program header leads to. The content of the first is compared as text.
_AS_TEXT = {"SHT_DYNAMIC", "SHT_STRTAB", "SHT_DYNSYM", "SHT_GNU_verneed"}
_MAY_MOVE = _AS_TEXT | {
    "SHT_HASH", "SHT_GNU_HASH", "SHT_RELA", "SHT_REL", "SHT_RELR", "SHT_GNU_versym", "SHT_GNU_verdef", "SHT_NOTE",
}  # fmt: skip
_DYNAMIC = re.compile(r"^ 0x[0-9a-f]+ \(([^)]+)\)\s+(.*)$")
_OF = r"(?:\w+|<[\w ]+>: \d+)"  # a type or binding, also one of an OS/ABI that the header does not name
_SYMBOL = re.compile(
    rf"^\s+\d+: ([0-9a-f]{{8,16}})\s+(\S+ +({_OF}) +{_OF} +\w+(?:\s+\[.*?\])?)\s+(UND|ABS|COM|\d+)( .*)?$"
)
_RELOCATION = re.compile(r"^[0-9a-f]{8,16}( .*)?$")
_VERSION = re.compile(r"^\s+(?:0x)?[0-9a-f]+:\s+(.*)$")


@dataclass(frozen=True, slots=True)
class Told:
    """What readelf tells of one object, without what may move."""

    dynamic: tuple[tuple[str, str], ...]
    symbols: tuple[str, ...]
    relocations: tuple[str, ...]
    versions: tuple[str, ...]
    warnings: frozenset[str]

    def strings(self, *tags: str) -> list[str]:
        return [v[v.index("[") + 1 : -1] for t, v in self.dynamic if t in tags]


def told(data: bytes) -> Told:
    """What ``readelf`` tells of these bytes."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        done = subprocess.run(
            ["readelf", "-W", "-d", "-l", "-V", "--dyn-syms", "-r", file.name],
            capture_output=True, check=False, env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
        text = done.stdout.decode("utf-8", "surrogateescape").replace(file.name, "FILE")
        errors = done.stderr.decode("utf-8", "surrogateescape").replace(file.name, "FILE")
    warnings = [w for w in errors.splitlines() + text.splitlines() if w.startswith("readelf:")]
    dynamic, symbols, relocations, versions = [], [], [], []
    for line in text.splitlines():
        if found := _DYNAMIC.match(line):
            dynamic.append((found[1], found[2].strip()))
        elif found := _SYMBOL.match(line):
            section = found[4] if found[4] in ("UND", "ABS", "COM") else "section"
            value = "-" if found[3] == "SECTION" else found[1]
            symbols.append(f"{value} {found[2]} {section}{found[5] or ''}")
        elif _RELOCATION.match(line):
            relocations.append(line)
        elif found := _VERSION.match(line):
            versions.append(found[1].rstrip())
    return Told(
        *map(tuple, (dynamic, symbols, relocations, versions)),
        frozenset(re.sub(r"0x[0-9a-f]+|\d+", "N", w) for w in warnings),
    )


@functools.lru_cache(maxsize=200)
def _told_before(path: Path, hidden: bytes | None) -> Told:
    return told(with_headers(path.read_bytes(), hidden))


def before(subject: Subject) -> Told:
    """What readelf tells of the object as it was."""
    return _told_before(subject.path, subject.hidden)


def by_readelf(old: Told, new: Told, change: ElfChange) -> list[str]:
    """The dynamic segment is exactly the asked one; symbols, versions and relocations are the old ones."""
    names = dict(change.rename_needed)
    wanted: dict[tuple[str, ...], list[str]] = {
        ("NEEDED",): [names.get(n, n) for n in old.strings("NEEDED") if n not in change.remove_needed],
        ("SONAME",): old.strings("SONAME") if change.soname is None else [change.soname],
        ("FILTER", "AUXILIARY"): [names.get(n, n) for n in old.strings("FILTER", "AUXILIARY")],
        ("RPATH",): old.strings("RPATH"),
        ("RUNPATH",): old.strings("RUNPATH"),
    }
    if change.path is not None:
        for kind in ("rpath", "runpath"):
            wanted[(kind.upper(),)] = [change.path] if change.path and kind == change.path_kind else []
    faults = [
        f"{'/'.join(tags)} is {new.strings(*tags)}, not {asked}"
        for tags, asked in wanted.items()
        if new.strings(*tags) != asked
    ]
    skipped = _PLACES | {t for tags in wanted for t in tags}
    left, right = (Counter(e for e in x.dynamic if e[0] not in skipped) for x in (old, new))
    if left != right:
        faults.append(f"dynamic entries lost {list(left - right)}, gained {list(right - left)}")
    tags = [Counter(t for t, _ in x.dynamic if t in _PLACES - {"NULL", "STRSZ"}) for x in (old, new)]
    if tags[0] != tags[1]:
        faults.append(f"tables lost {list(tags[0] - tags[1])}, gained {list(tags[1] - tags[0])}")
    renamed = tuple(
        re.sub(r"File: (\S+)", lambda m: f"File: {names.get(m[1], m[1])}", v) for v in old.versions
    )
    for what, was, now in (
        ("symbols", old.symbols, new.symbols),
        ("relocations", old.relocations, new.relocations),
        ("versions", renamed, new.versions),
    ):
        if was != now:
            pair = next(((a, b) for a, b in zip(was, now, strict=False) if a != b), (len(was), len(now)))
            faults.append(f"{what} differ: {pair[0]!r} is now {pair[1]!r}")
    return faults + sorted(f"readelf: {w}" for w in new.warnings - old.warnings)


def by_pyelftools(before: bytes, after: bytes, page: int) -> list[str]:
    """Segments are whole and in order; what was mapped is mapped as it was, at the same address."""
    first, second = ELFFile(io.BytesIO(before)), ELFFile(io.BytesIO(after))
    faults = []
    kept = ("PT_TLS", "PT_GNU_STACK", "PT_GNU_RELRO", "PT_GNU_EH_FRAME")
    shapes = [
        [
            (s["p_type"], s["p_flags"], s["p_vaddr"], s["p_memsz"])
            for s in x.iter_segments()
            if s["p_type"] in kept
        ]
        for x in (first, second)
    ]
    if sorted(shapes[0]) != sorted(shapes[1]):
        faults.append(f"program headers {shapes[0]} are now {shapes[1]}")
    old, loads = (list(x.iter_segments("PT_LOAD")) for x in (first, second))
    for s in loads:
        if (s["p_vaddr"] - s["p_offset"]) % (s["p_align"] or 1):
            faults.append(f"PT_LOAD at {s['p_vaddr']:#x} is not congruent")
        if s["p_offset"] + s["p_filesz"] > len(after):
            faults.append(f"PT_LOAD at {s['p_vaddr']:#x} leads out of the file")
    if _clashes(loads, 1) or (_clashes(loads, page) and not _clashes(old, page)):
        faults.append("PT_LOADs overlap, share pages, or are out of order")
    interp = [[s.get_interp_name() for s in x.iter_segments("PT_INTERP")] for x in (first, second)]
    if interp[0] != interp[1]:
        faults.append(f"interpreter {interp[0]} is now {interp[1]}")
    here = {(s.name, s["sh_type"]): s for s in second.iter_sections()}
    for s in first.iter_sections():
        thread_zeros = s["sh_flags"] & 0x400 and s["sh_type"] == "SHT_NOBITS"  # .tbss lies nowhere
        if not s["sh_flags"] & 2 or not s["sh_size"] or thread_zeros:  # 2: SHF_ALLOC
            continue
        now = here.get((s.name, s["sh_type"]))
        moves = s["sh_type"] in _MAY_MOVE or s.name == ".interp"
        if now is None:
            faults.append(f"{s.name} is gone")
        elif s["sh_type"] in _AS_TEXT:
            continue
        elif not moves and now["sh_addr"] != s["sh_addr"]:
            faults.append(f"{s.name} has moved")
        else:
            faults += _content(s, old, now["sh_addr"], loads, before, after)
    return faults


def _content(
    section: object, old: list[Segment], at: int, loads: list[Segment], before: bytes, after: bytes
) -> list[str]:
    name, size, start = section.name, section["sh_size"], section["sh_addr"]  # type: ignore[attr-defined,index]
    was = next(
        (s for s in old if s["p_vaddr"] <= start and start + size <= s["p_vaddr"] + s["p_memsz"]), None
    )
    now = next((s for s in loads if s["p_vaddr"] <= at and at + size <= s["p_vaddr"] + s["p_memsz"]), None)
    if was is None:
        return []
    if now is None:
        return [f"{name} is no longer mapped"]
    if was["p_flags"] != now["p_flags"] and at == start:
        return [f"{name} is mapped with other permissions"]

    def memory(segment: Segment, address: int, data: bytes) -> bytes:
        first = segment["p_offset"] + address - segment["p_vaddr"]
        return data[first : min(first + size, segment["p_offset"] + segment["p_filesz"])].ljust(size, b"\0")

    return [] if memory(was, start, before) == memory(now, at, after) else [f"{name} holds other bytes"]


def _clashes(loads: list[Segment], page: int) -> bool:
    ends = [(s["p_vaddr"] // page * page, -(-(s["p_vaddr"] + s["p_memsz"]) // page) * page) for s in loads]
    return any(a[1] > b[0] for a, b in itertools.pairwise(ends))


LOADER = """
import ctypes, sys
name, function, *first = sys.argv[1:]
for f in first: ctypes.CDLL(f, ctypes.RTLD_GLOBAL)
d = ctypes.CDLL(name)
print("loaded", getattr(d, function)() if function else "")
"""


def loaded(subject: Subject, data: bytes, change: ElfChange) -> str:
    """What becomes of the object when the real loader opens or runs it: "loaded 7", or why not.

    A renamed library exists under its new name: for compiled objects under no other, in the folder that the
    path leads to. For real ones every folder of the wheel is searched where the path changes.
    """
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        names = dict(change.rename_needed)
        if subject.answer is not None:
            (root / "libs").mkdir()
            for library in subject.folders[0].iterdir():
                (root / "libs" / names.get(library.name, library.name)).symlink_to(library)
            target = root / "obj" / subject.path.name
            target.parent.mkdir()
            path = _path_of(subject, change)
            search = [] if "$ORIGIN/../libs" in path.split(":") else [root / "libs"]
        else:
            target = subject.path.with_name(f".edited-{subject.path.name}")
            search = [root, *(subject.folders if change.path is not None else ())]
        for old, new in names.items():
            found = _library(subject, old)
            if found is not None and not (root / new).exists():
                (root / new).symlink_to(found)
                if (
                    subject.answer is not None
                    and (root / "libs").is_dir()
                    and not (root / "libs" / new).exists()
                ):
                    (root / "libs" / new).symlink_to(found)
        target.write_bytes(data)
        target.chmod(0o755)
        try:
            return _opened(subject, target, change, search)
        finally:
            target.unlink()


def _opened(subject: Subject, target: Path, change: ElfChange, search: list[Path]) -> str:
    env = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, search))}
    removed = [str(f) for n in change.remove_needed if (f := _library(subject, n)) is not None]
    command = [sys.executable, "-S", "-c", LOADER, str(target), subject.function or "", *removed]
    if subject.program:
        command = [str(target), "--version"]
        env["LD_PRELOAD"] = ":".join(removed)
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=60, env=env, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as reason:
        return f"not loaded: {type(reason).__name__}"
    if subject.program and done.returncode >= 0 and done.returncode != 127:
        return (
            f"loaded {done.returncode}"
            if subject.answer is not None
            else f"loaded {done.returncode} {done.stdout!r}"
        )
    if not subject.program and done.returncode == 0 and b"loaded" in done.stdout:
        return done.stdout.decode()[done.stdout.decode().index("loaded") :].strip()
    last = (done.stderr.decode("utf-8", "replace").strip().splitlines() or [""])[-1]
    return f"not loaded: {last or f'status {done.returncode}'}"


def _path_of(subject: Subject, change: ElfChange) -> str:
    if change.path is not None:
        return change.path
    return ":".join(before(subject).strings("RPATH", "RUNPATH"))


@functools.lru_cache(maxsize=1)
def _system() -> dict[str, str]:
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^\s(\S+) \(libc6,x86-64.*\) => (\S+)$", listed, re.M)
    return dict(reversed(found))


def _library(subject: Subject, name: str) -> Path | None:
    for folder in subject.folders:
        if (folder / name).is_file():
            return folder / name
    return Path(_system()[name]) if name in _system() else None
