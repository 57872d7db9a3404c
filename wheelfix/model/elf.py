"""What one ELF object says of itself: every fact that a later stage judges by.

Nothing here reads bytes. ``wheelfix.elf.read`` makes these values from a file, tests make them
as literals. Numbers that the gABI names (e_machine, st_info, DT_FLAGS, ...) stay numbers, with the
few names that are needed below; sizes and addresses are bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal, NamedTuple

# gABI, chapter 4, "Symbol Table" (and the GNU extensions of elf.h).
STB_LOCAL, STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE = 0, 1, 2, 10
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION, STT_TLS, STT_GNU_IFUNC = 0, 1, 2, 3, 6, 10
STV_DEFAULT, STV_INTERNAL, STV_HIDDEN, STV_PROTECTED = 0, 1, 2, 3
SHN_UNDEF, SHN_ABS = 0, 0xFFF1

# gABI, chapter 4, "ELF Header".
ET_REL, ET_EXEC, ET_DYN, ET_CORE = 1, 2, 3, 4

# gABI, chapter 5, "Program Header".
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_TLS = 1, 2, 3, 4, 7
PT_GNU_EH_FRAME, PT_GNU_STACK, PT_GNU_RELRO, PT_GNU_PROPERTY = (
    0x6474E550,
    0x6474E551,
    0x6474E552,
    0x6474E553,
)
PF_X, PF_W, PF_R = 1, 2, 4

# DT_FLAGS and DT_FLAGS_1 bits that change what the loader does.
DF_SYMBOLIC, DF_TEXTREL, DF_BIND_NOW, DF_STATIC_TLS = 0x2, 0x4, 0x8, 0x10
DF_1_NODELETE, DF_1_NOOPEN, DF_1_NODEFLIB, DF_1_PIE = 0x8, 0x40, 0x800, 0x08000000

# How relocations look a symbol up. A symbol with neither bit is never looked up by the loader.
LOOKUP_DATA, LOOKUP_PLT, LOOKUP_COPY = 1, 2, 4


class Symbol(NamedTuple):
    """One entry of the dynamic symbol table.

    A NamedTuple, not a dataclass: large libraries hold hundreds of thousands of them, and a tuple is
    made three times as fast as a frozen dataclass.
    """

    name: str
    bind: int = STB_GLOBAL
    kind: int = STT_FUNC  # st_info & 0xf
    visibility: int = STV_DEFAULT  # st_other & 3
    section: int = SHN_UNDEF  # st_shndx; SHN_UNDEF for a symbol that is wanted, not given
    value: int = 0
    size: int = 0
    version: str | None = None  # name of the version node; None for versym index 0 and 1
    version_file: str | None = None  # the file that verneed names; None for definitions
    version_index: int = 1  # versym entry without the hidden bit
    hidden: bool = False  # bit 15 of the versym entry
    lookups: int = 0  # LOOKUP_* bits: which relocations name the symbol

    @property
    def defined(self) -> bool:
        """The object gives the symbol (an undefined entry with a value is a PLT entry, not a definition)."""
        return self.section != SHN_UNDEF

    @property
    def weak(self) -> bool:
        return self.bind == STB_WEAK

    @property
    def exported(self) -> bool:
        """Other objects can bind to it: defined, not local, neither hidden nor internal visibility."""
        return (
            self.section != SHN_UNDEF
            and self.bind != STB_LOCAL
            and self.visibility in (STV_DEFAULT, STV_PROTECTED)
        )


class Segment(NamedTuple):
    """One program header; ``kind`` is p_type."""

    kind: int
    flags: int
    offset: int
    vaddr: int
    filesz: int
    memsz: int
    align: int


class Section(NamedTuple):
    """One section header, where the file has any; ``kind`` is sh_type, ``flags`` sh_flags."""

    name: str
    kind: int
    flags: int
    address: int
    offset: int
    size: int


class VersionRef(NamedTuple):
    """One version that the object needs of one file (vernaux)."""

    name: str
    index: int = 2  # type: ignore[assignment]  # vna_other, hidden bit removed; hides tuple.index
    weak: bool = False  # VER_FLG_WEAK: its absence is no error at load


class VersionNeed(NamedTuple):
    """All versions that the object needs of one file (verneed)."""

    file: str
    versions: tuple[VersionRef, ...]


class VersionDef(NamedTuple):
    """One version node that the object defines (verdef)."""

    name: str
    index: int  # type: ignore[assignment]  # vd_ndx; hides tuple.index
    base: bool = False  # VER_FLG_BASE: names the file, not a version
    weak: bool = False


class DeviceCode(NamedTuple):
    """GPU code of one kind for one architecture inside an object.

    ``architecture`` is NVIDIA's name with its suffix (``sm_90a``, ``compute_120`` for PTX) or AMD's
    target (``gfx942``, "unknown" where a compressed bundle hides it); "tile" is Tile IR and "other" a kind
    that nobody has described; ``size`` counts the bytes that it takes in the file, over all ``entries``.
    """

    kind: Literal["cubin", "ptx", "lto", "tile", "other", "hip"]
    architecture: str
    entries: int
    size: int
    compressed: bool = False  # at least one entry is


@dataclass(frozen=True, slots=True)
class NameTable:
    """Names that are seldom asked for, as bytes: each between two NULs. A hundred thousand cost next to nothing."""

    raw: bytes = b""

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and b"\0%b\0" % name.encode("utf-8", "replace") in self.raw

    def __iter__(self) -> Iterator[str]:
        return iter(self.raw.decode("utf-8", "backslashreplace").split("\0")[1:-1])


Names = frozenset[str] | NameTable


@dataclass(frozen=True, slots=True)
class ElfFacts:
    """One ELF object as the dynamic loader sees it.

    ``complete`` is False for a library of which only the name is known (the tag promises it, but no
    data tell its symbols; or another distribution holds it and was not given): whatever is looked up
    in it is undecided. Facts that were read from bytes are always complete.
    """

    machine: int = 62  # e_machine; 62 is x86-64
    bits: int = 64  # 32 or 64
    big_endian: bool = False
    type: int = ET_DYN
    abi_flags: int = 0  # e_flags
    size: int = 0  # of the file, in bytes
    interpreter: str | None = None
    dynamic: bool = True  # a PT_DYNAMIC segment is present
    soname: str | None = None
    needed: tuple[str, ...] = ()  # DT_NEEDED in order, duplicates kept
    rpath: str | None = None  # DT_RPATH, unsplit
    runpath: str | None = None  # DT_RUNPATH, unsplit
    filters: tuple[str, ...] = ()  # DT_FILTER
    auxiliaries: tuple[str, ...] = ()  # DT_AUXILIARY
    flags: int = 0  # DT_FLAGS
    flags_1: int = 0  # DT_FLAGS_1
    symbolic: bool = False  # DT_SYMBOLIC or DF_SYMBOLIC
    textrel: bool = False  # DT_TEXTREL or DF_TEXTREL
    relr: bool = False  # DT_RELR
    segments: tuple[Segment, ...] = ()
    sections: tuple[Section, ...] = ()
    verneed: tuple[VersionNeed, ...] = ()
    verdef: tuple[VersionDef, ...] = ()
    versioned: bool = False  # DT_VERSYM is present
    symbols: tuple[Symbol, ...] = ()  # .dynsym without its null entry
    #: What .symtab names, imports and exports included; ``hides`` tells what only it defines.
    local_names: Names = NameTable()
    x86_isa_needed: int = 0  # GNU_PROPERTY_X86_ISA_1_NEEDED bits (1 baseline, 2 v2, 4 v3, 8 v4)
    build_id: str | None = None  # hexadecimal
    constructors: int = 0  # entries of DT_INIT_ARRAY and DT_PREINIT_ARRAY
    library_names: tuple[
        str, ...
    ] = ()  # names like libx.so.1 that stand NUL-terminated in an allocated section, if it imports dlopen
    strings: frozenset[str] = (
        frozenset()
    )  # which of the wanted strings stand NUL-terminated in an allocated section
    complete: bool = True
    device_code: tuple[DeviceCode, ...] = ()
    open_ended: bool = (
        False  # made from data that may be older than the machine: a version it lacks is undecided
    )

    def __reduce__(self) -> tuple[Any, ...]:
        """Symbols travel between processes as plain tuples: a third of the time of named ones."""
        others = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "symbols"}
        return _rebuilt, (tuple(map(tuple, self.symbols)), others)

    @property
    def is_program(self) -> bool:
        """Started by the kernel: ET_EXEC, or a PIE (a program interpreter, or DF_1_PIE).

        libc.so.6 and ld.so carry PT_INTERP or an entry point too; a SONAME tells a library.
        """
        if self.type == ET_EXEC:
            return True
        if self.type != ET_DYN or self.soname is not None:
            return False
        return self.interpreter is not None or bool(self.flags_1 & DF_1_PIE)

    @property
    def search_path(self) -> str | None:
        """The path that counts: DT_RUNPATH turns DT_RPATH off (glibc, elf/get-dynamic-info.h; musl, ldso/dynlink.c)."""
        return self.runpath if self.runpath is not None else self.rpath

    def hides(self, name: str) -> bool:
        """The object contains a function or variable of that name to which no other object can bind."""
        return name in self.local_names and all(s.name != name for s in self.symbols)

    @property
    def python_modules(self) -> tuple[str, ...]:
        """Names of the PyInit_* functions that it exports: not empty for a Python extension module."""
        return tuple(
            s.name for s in self.symbols if s.name.startswith(("PyInit_", "PyInitU_")) and s.exported
        )

    @property
    def tls(self) -> Segment | None:
        return next((s for s in self.segments if s.kind == PT_TLS), None)

    @property
    def arch(self) -> str | None:
        """The architecture as platform tags spell it, None for one that no tag names."""
        return _ARCH.get((self.machine, self.bits, self.big_endian))


def _rebuilt(symbols: tuple[Any, ...], others: dict[str, Any]) -> ElfFacts:
    return ElfFacts(symbols=tuple(map(partial(tuple.__new__, Symbol), symbols)), **others)


# e_machine, class and byte order -> the last part of a platform tag (PEP 600 and auditwheel's policies).
_ARCH = {
    (62, 64, False): "x86_64",
    (3, 32, False): "i686",
    (183, 64, False): "aarch64",
    (40, 32, False): "armv7l",
    (21, 64, False): "ppc64le",
    (21, 64, True): "ppc64",
    (22, 64, True): "s390x",
    (243, 64, False): "riscv64",
    (258, 64, False): "loongarch64",
}

#: e_machine, class (bits) and byte order (big-endian) of each architecture that a platform tag names.
MACHINES = {arch: machine for machine, arch in _ARCH.items()}
