"""One symbol in one object: what the loader accepts as a definition.

glibc: ``elf/dl-lookup.c``, ``check_match`` and ``do_lookup_x``. musl: ``ldso/dynlink.c``, ``find_sym2``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wheelfix.model.elf import (
    LOOKUP_COPY,
    SHN_ABS,
    SHN_UNDEF,
    STB_GNU_UNIQUE,
    STB_LOCAL,
    STT_FUNC,
    STT_GNU_IFUNC,
    STT_NOTYPE,
    STT_OBJECT,
    STT_TLS,
    STV_DEFAULT,
    STV_PROTECTED,
    ElfFacts,
    Symbol,
)

_STT_COMMON = 5
_TYPES = frozenset({STT_NOTYPE, STT_OBJECT, STT_FUNC, _STT_COMMON, STT_TLS, STT_GNU_IFUNC})
_VISIBLE = frozenset({STV_DEFAULT, STV_PROTECTED})

# musl answers for these names with "64" behind them under their plain spelling: its libc keeps no symbols
# of the large file interface since 1.2.4, and has the same ones as symbols before (``get_lfs64``).
_LARGE_FILE = frozenset(
    (
        "aio_cancel",
        "aio_error",
        "aio_fsync",
        "aio_read",
        "aio_return",
        "aio_suspend",
        "aio_write",
        "alphasort",
        "creat",
        "fallocate",
        "fgetpos",
        "fopen",
        "freopen",
        "fseeko",
        "fsetpos",
        "fstat",
        "fstatat",
        "fstatfs",
        "fstatvfs",
        "ftello",
        "ftruncate",
        "ftw",
        "getdents",
        "getrlimit",
        "glob",
        "globfree",
        "lio_listio",
        "lockf",
        "lseek",
        "lstat",
        "mkostemp",
        "mkostemps",
        "mkstemp",
        "mkstemps",
        "mmap",
        "nftw",
        "open",
        "openat",
        "posix_fadvise",
        "posix_fallocate",
        "pread",
        "preadv",
        "prlimit",
        "pwrite",
        "pwritev",
        "readdir",
        "scandir",
        "sendfile",
        "setrlimit",
        "stat",
        "statfs",
        "statvfs",
        "tmpfile",
        "truncate",
        "versionsort",
        "__fxstat",
        "__fxstatat",
        "__lxstat",
        "__xstat",
    )
)


@dataclass(frozen=True, slots=True)
class Index:
    """What one object offers to look-ups, by name; made once for each object.

    ``entries`` are undefined symbols with a value: the PLT entries that a program not built as PIE uses as
    the address of a function. ``versioned`` is False where the loader keeps no version table for the
    object: it has neither verneed nor verdef. ``measured`` facts were read from a file, not made from data.
    """

    definitions: Mapping[str, tuple[Symbol, ...]]
    entries: Mapping[str, tuple[Symbol, ...]]
    unique: frozenset[str]
    versioned: bool
    complete: bool
    measured: bool
    wants: tuple[Symbol, ...]  # what it looks up: undefined symbols, and those of COPY relocations


def index(elf: ElfFacts, *, absolute_zero: bool = True) -> Index:
    """Group what an object exports by name, in the order of its symbol table.

    A definition at address 0 is none, unless it is thread-local, or absolute where ``absolute_zero`` says so
    (glibc since 2.28, bug 23307). Facts that were made from data have no segments and no addresses.
    """
    measured = bool(elf.segments)
    definitions: dict[str, tuple[Symbol, ...]] = {}
    entries: dict[str, tuple[Symbol, ...]] = {}
    unique = set()
    wants = []
    for symbol in elf.symbols:
        name, bind, kind, visibility, section, value = symbol[:6]
        if section == SHN_UNDEF or symbol.lookups & LOOKUP_COPY:
            wants.append(symbol)
        if bind == STB_LOCAL or visibility not in _VISIBLE or kind not in _TYPES:
            continue
        if section == SHN_UNDEF:
            if value:
                entries[name] = (*entries.get(name, ()), symbol)
            continue
        if not value and measured and kind != STT_TLS and not (section == SHN_ABS and absolute_zero):
            continue
        if name in definitions:
            definitions[name] += (symbol,)
        else:
            definitions[name] = (symbol,)
        if bind == STB_GNU_UNIQUE:
            unique.add(name)
    versioned = bool(elf.versioned or elf.verdef or elf.verneed)
    return Index(definitions, entries, frozenset(unique), versioned, elf.complete, measured, tuple(wants))


def accepted(candidates: tuple[Symbol, ...], version: str | None, versioned: bool) -> Symbol | None:
    """The definition that glibc takes from one object for a reference with ``version`` (None: without).

    A versioned reference takes a definition of that version name, or one that is not hidden and has no
    version (index 0 or 1); anything, where the object has no versions at all. A reference without version
    takes the first definition of index 2 or less, hidden or not, else the only one that is not hidden.
    """
    if not versioned:
        return candidates[0]
    if version is not None:
        for symbol in candidates:
            if symbol.version == version or (symbol.version is None and not symbol.hidden):
                return symbol
        return None
    public = []
    for symbol in candidates:
        if symbol.version_index <= 2:
            return symbol
        if not symbol.hidden:
            public.append(symbol)
    return public[0] if len(public) == 1 else None


def accepted_by_musl(candidates: tuple[Symbol, ...]) -> Symbol | None:
    """The definition that musl takes: the first that is not hidden; versions and IFUNCs mean nothing to it."""
    return next((s for s in candidates if not s.hidden and s.kind != STT_GNU_IFUNC), None)


def plain_name(name: str) -> str | None:
    """The name under which musl's libc has a function of the large file interface (``fopen64``); None for others."""
    if name == "readdir64_r":
        return "readdir_r"
    plain = name[:-2]
    return plain if name.endswith("64") and plain in _LARGE_FILE else None
