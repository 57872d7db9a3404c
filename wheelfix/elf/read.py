"""From bytes to what an ELF object says of itself.

``layout`` walks the headers and checks every range against the file first; LIEF then reads the dynamic
strings and the notes from a small image of checked ranges, ``versions`` and ``tables`` decode versions, symbols
and relocations. A hostile or damaged file gives faults, never an exception.
"""

from __future__ import annotations

import io
import re
import signal
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from mmap import ACCESS_READ, mmap
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from wheelfix.elf import layout as elf
from wheelfix.elf import tables
from wheelfix.elf.fatbin import NVIDIA_SECTIONS, merged, nvidia_code
from wheelfix.elf.image import STRING_TAGS, small_image
from wheelfix.elf.layout import Broken, Buffer, Layout, Part, read_layout
from wheelfix.elf.offload import AMD_SECTION, amd_code
from wheelfix.elf.stream import Sparse
from wheelfix.elf.versions import version_definitions, version_needs
from wheelfix.model.elf import (
    DF_SYMBOLIC,
    DF_TEXTREL,
    PF_W,
    PF_X,
    PT_DYNAMIC,
    PT_INTERP,
    PT_LOAD,
    DeviceCode,
    ElfFacts,
    Symbol,
    VersionDef,
    VersionNeed,
)
from wheelfix.model.finding import Fault
from wheelfix.model.limits import Limits
from wheelfix.model.wheel import Content

if TYPE_CHECKING:
    import lief

_LIBRARY_FILE = re.compile(r"\.so(\.\d+)*$")
_LIBRARY_NAME = re.compile(rb"lib[\w.+-]*\.so(?:\.\d+)*")
# What the magic bytes of a file that is no ELF object tell (Mach-O: both orders, both sizes, universal).
_OTHER_MAGICS = {
    b"\xcf\xfa\xed\xfe": "a Mach-O object",
    b"\xce\xfa\xed\xfe": "a Mach-O object",
    b"\xfe\xed\xfa\xcf": "a Mach-O object",
    b"\xca\xfe\xba\xbe": "a Mach-O universal file",
    b"MZ": "a Windows DLL or program",
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "gzip-compressed data",
}


class Image(NamedTuple):
    """What LIEF is to read of one object: a small image of it, and how many strings its dynamic segment names."""

    data: bytes
    strings: int


@dataclass(frozen=True, slots=True)
class ElfRead:
    """What a file holds. ``facts`` is None for anything but an ELF object whose tables are all there.

    ``image`` is what ``complete`` still has to read; None where nothing is left.
    """

    content: Content
    facts: ElfFacts | None = None
    faults: tuple[Fault, ...] = ()
    image: Image | None = None


def looks_like_elf_name(name: str) -> bool:
    """The file name is a shared library's: it ends in ``.so``, perhaps with version numbers behind it."""
    return _LIBRARY_FILE.search(name) is not None


def read(
    data: Buffer | Path,
    *,
    name: str = "",
    strings: frozenset[str] = frozenset(),
    limits: Limits | None = None,
) -> ElfRead:
    """What one file is, and its facts where it is an ELF object.

    ``name`` is the file's name, by which a text or an archive in place of a library is known; a ``Path`` gives
    its own where there is none. ``strings`` are looked for in the object's data (``ElfFacts.strings``).
    Raises ``OSError`` for a path that cannot be read; whatever is wrong with the bytes is a fault.
    """
    return complete(begin(data, name=name, strings=strings, limits=limits))


def begin(
    data: Buffer | Path,
    *,
    name: str = "",
    strings: frozenset[str] = frozenset(),
    limits: Limits | None = None,
) -> ElfRead:
    """As ``read``, but for the names and notes that LIEF reads from ``ElfRead.image``: they are not there yet.

    Starting LIEF takes 0.3 s. Several processes that read objects leave it to one of them.
    """
    if not isinstance(data, Path):
        return _read(data, name, strings, limits or Limits())
    with data.open("rb") as file:
        if not data.stat().st_size:
            return _not_elf(b"", name or data.name)
        with mmap(file.fileno(), 0, access=ACCESS_READ) as view:
            return _read(view, name or data.name, strings, limits or Limits())


def complete(seen: ElfRead) -> ElfRead:
    """What ``begin`` gave, with what LIEF reads of the object."""
    if seen.image is None or seen.facts is None:
        return seen
    try:
        return ElfRead(seen.content, replace(seen.facts, **_named(seen.image)), seen.faults)
    except Broken as reason:
        return ElfRead(seen.content, None, _with(seen.faults, reason))


@cache
def start() -> None:
    """Import what ``complete`` needs.

    A signal that comes meanwhile is handled afterwards: an exception out of a handler (KeyboardInterrupt) would pass
    through C++ code that makes modules, which ends the process by ``std::terminate``.
    """
    came: list[int] = []
    handlers = {}
    if threading.current_thread() is threading.main_thread():  # no other one runs handlers, nor may set them
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if callable(signal.getsignal(number)):
                handlers[number] = signal.signal(number, lambda number, _: came.append(number))
    try:
        import lief
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for one in came:
        signal.raise_signal(one)
    lief.logging.disable()


def _read(data: Buffer, name: str, strings: frozenset[str], limits: Limits) -> ElfRead:
    if isinstance(data, Sparse) and data.most is not None:
        message = f"reading it would take more than {data.most} bytes of memory (--limit held=N)"
        return ElfRead("elf", None, (Fault("elf-limit", message, evidence={"limit": data.most}),))
    if data[:4] != b"\x7fELF":
        return _not_elf(data[:4096], name)
    try:
        layout, faults = read_layout(data, limits)
    except Broken as reason:
        return ElfRead("other" if reason.fault.rule == "not-elf" else "elf", None, (reason.fault,))
    try:
        table = tables.string_table(data, layout, limits)
        image = small_image(data, layout, table, limits)
        facts = _facts(data, layout, table, strings, limits)
    except Broken as reason:
        return ElfRead("elf", None, _with(faults, reason))
    named = sum(tag in STRING_TAGS for tag, _ in layout.dynamic)
    return ElfRead("elf", facts, faults, Image(image, named) if image else None)


def _with(faults: tuple[Fault, ...], reason: Broken) -> tuple[Fault, ...]:
    """The faults and why nothing more was read, unless one of them says it."""
    return faults if reason.fault.rule in {f.rule for f in faults} else (*faults, reason.fault)


def _not_elf(head: bytes, name: str) -> ElfRead:
    content, holds = _kind_of(head)
    if not looks_like_elf_name(name):
        return ElfRead(content)
    message = f"it is named like a shared library but is {holds}"
    return ElfRead(content, None, (Fault("not-elf", message, evidence={"holds": holds}),))


def _kind_of(head: bytes) -> tuple[Content, str]:
    if not head:
        return "other", "empty"
    if head.startswith((b"!<arch>\n", b"!<thin>\n")):
        return "archive", "a static archive"
    for magic, holds in _OTHER_MAGICS.items():
        if head.startswith(magic):
            return "other", holds
    try:
        head.decode()
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # no character cut off at the end
            return "other", "data of an unknown kind"
    if b"\0" in head:
        return "other", "data of an unknown kind"
    if re.search(rb"^\s*(INPUT|GROUP|OUTPUT_FORMAT)\s*\(", head, re.MULTILINE):
        return "text", "a linker script"
    return "text", "text"


def _facts(data: Buffer, layout: Layout, strings: bytes, wanted: frozenset[str], limits: Limits) -> ElfFacts:
    verneed = version_needs(data, layout, strings, limits)
    verdef = version_definitions(data, layout, strings, limits)
    symbols = _symbols(data, layout, strings, _version_names(verneed, verdef), limits)
    interpreter = next((s for s in layout.segments if s.kind == PT_INTERP), None)
    flags = layout.value(elf.DT_FLAGS) or 0
    arrays = (layout.value(elf.DT_INIT_ARRAYSZ) or 0) + (layout.value(elf.DT_PREINIT_ARRAYSZ) or 0)
    return ElfFacts(
        machine=layout.machine,
        bits=layout.bits,
        big_endian=layout.order == ">",
        type=layout.type,
        abi_flags=layout.abi_flags,
        size=layout.size,
        interpreter=None
        if interpreter is None or layout.detached
        else _text(data[interpreter.offset : interpreter.offset + min(interpreter.filesz, 4096)]),
        dynamic=any(s.kind == PT_DYNAMIC for s in layout.segments) and not layout.detached,
        flags=flags,
        flags_1=layout.value(elf.DT_FLAGS_1) or 0,
        symbolic=layout.value(elf.DT_SYMBOLIC) is not None or bool(flags & DF_SYMBOLIC),
        textrel=layout.value(elf.DT_TEXTREL) is not None or bool(flags & DF_TEXTREL),
        relr=layout.value(elf.DT_RELR) is not None,
        segments=layout.segments,
        sections=layout.sections,
        verneed=verneed,
        verdef=verdef,
        versioned=layout.value(elf.DT_VERSYM) is not None,
        symbols=symbols,
        local_names=tables.local_names(data, layout, limits),
        constructors=arrays // layout.word,
        library_names=_library_names(data, layout, strings),
        strings=frozenset(s for s in wanted if _holds(data, layout, s)),
        device_code=_device_code(data, layout),
    )


def _named(image: Image) -> dict[str, Any]:
    """The fields of ``ElfFacts`` that are strings or notes, read by LIEF."""
    start()
    import lief

    config = lief.ELF.ParserConfig()
    config.parse_relocations = config.parse_dyn_symbols = config.parse_symtab_symbols = False
    config.parse_overlay = False
    config.parse_symbol_versions = config.parse_notes = True
    binary = lief.ELF.parse(io.BytesIO(image.data), config)
    if binary is None:
        raise Broken("elf-truncated", "its dynamic segment or its notes cannot be parsed")
    found: dict[int, list[str]] = {}
    for entry in binary.dynamic_entries:
        if isinstance(
            entry,
            lief.ELF.DynamicEntryLibrary
            | lief.ELF.DynamicSharedObject
            | lief.ELF.DynamicEntryFilter
            | lief.ELF.DynamicEntryAuxiliary,
        ):
            text = entry.name
        elif isinstance(entry, lief.ELF.DynamicEntryRpath):
            text = entry.rpath
        elif isinstance(entry, lief.ELF.DynamicEntryRunPath):
            text = entry.runpath
        else:
            continue
        found.setdefault(int(entry.tag), []).append(_text(text))
    if sum(map(len, found.values())) != image.strings:
        raise Broken("elf-truncated", "its dynamic segment cannot be parsed whole")
    isa, build_id = _notes(binary, lief)
    return {
        "soname": _last(found, elf.DT_SONAME),
        "needed": tuple(found.get(elf.DT_NEEDED, ())),
        "rpath": _last(found, elf.DT_RPATH),
        "runpath": _last(found, elf.DT_RUNPATH),
        "filters": tuple(found.get(elf.DT_FILTER, ())),
        "auxiliaries": tuple(found.get(elf.DT_AUXILIARY, ())),
        "x86_isa_needed": isa,
        "build_id": build_id,
    }


def _last(found: Mapping[int, list[str]], tag: int) -> str | None:
    """Of several entries the last counts, as in glibc's ``elf_get_dynamic_info``."""
    return found[tag][-1] if tag in found else None


def _notes(binary: lief.ELF.Binary, lib: ModuleType) -> tuple[int, str | None]:
    """GNU_PROPERTY_X86_ISA_1_NEEDED bits, and the build id in hexadecimal."""
    isa, build_id = 0, None
    levels = lib.ELF.X86ISA.ISA
    bits = {levels.BASELINE: 1, levels.V2: 2, levels.V3: 4, levels.V4: 8}
    for note in binary.notes:
        if isinstance(note, lib.ELF.NoteGnuProperty):
            for item in note.properties:
                if isinstance(item, lib.ELF.X86ISA):
                    for flag, level in item.values:
                        if flag == lib.ELF.X86ISA.FLAG.NEEDED:
                            isa |= bits.get(level, 0)
        elif note.type == lib.ELF.Note.TYPE.GNU_BUILD_ID:
            build_id = bytes(note.description).hex()
    return isa, build_id


def _text(raw: str | bytes) -> str:
    """A string of the file; bytes that are no UTF-8 are escaped, so that any report can print them."""
    if isinstance(raw, str):
        return raw
    return raw.partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _version_names(
    verneed: Iterable[VersionNeed], verdef: Iterable[VersionDef]
) -> dict[int, tuple[str, str | None]]:
    """What a versym entry means: the name, and the file that it is wanted of (None for a definition)."""
    versions: dict[int, tuple[str, str | None]] = {d.index: (d.name, None) for d in verdef if not d.base}
    versions.update((v.index, (v.name, need.file)) for need in verneed for v in need.versions)
    for reserved in (tables.VER_NDX_LOCAL, tables.VER_NDX_GLOBAL):
        versions.pop(reserved, None)
    return versions


def _symbols(
    data: Buffer, layout: Layout, strings: bytes, versions: tables.Versions, limits: Limits
) -> tuple[Symbol, ...]:
    lookups = tables.symbol_lookups(data, layout)
    count = tables.symbol_count(data, layout, lookups, limits)
    return tables.symbols(data, layout, count, strings, versions, lookups, limits)


def _device_code(data: Buffer, layout: Layout) -> tuple[DeviceCode, ...]:
    """What the sections of GPU code hold; an object without section headers tells nothing of it."""
    found = []
    for s in layout.sections:
        decode = amd_code if s.name == AMD_SECTION else nvidia_code if s.name in NVIDIA_SECTIONS else None
        if decode is not None and s.kind != elf.SHT_NOBITS:
            found.append(decode(Part(data, s.offset, max(0, min(s.size, layout.size - s.offset)))))
    return merged(*found)


def _library_names(data: Buffer, layout: Layout, strings: bytes) -> tuple[str, ...]:
    """Whole strings like ``libx.so.1`` in read-only data, for an object that could open them by name."""
    if b"dlopen\0" not in strings and b"dlmopen\0" not in strings:
        return ()
    skipped = [*_names_of_the_loader(layout), *_no_strings(layout)]
    found: dict[str, None] = {}
    for start, end in _mapped(layout, skipped, writable=False):
        for at in _occurrences(data, b".so", start, end):
            around = data[max(start, at - 256) : min(at + 64, end)]
            middle = at - max(start, at - 256)
            first, last = around.rfind(b"\0", 0, middle) + 1, around.find(b"\0", middle)
            if last > 0 and _LIBRARY_NAME.fullmatch(around, first, last):
                found[around[first:last].decode()] = None
    return tuple(found)


def _holds(data: Buffer, layout: Layout, wanted: str) -> bool:
    """The string stands in the object's data with a NUL behind it.

    Linkers merge a literal into the tail of a longer one, so what stands before it decides nothing, but for
    one case: an Itanium type name is the length and the name (``11CudaBackend``), and a class that is known
    is no backend that is registered.
    """
    raw = wanted.encode()
    mangled = str(len(raw)).encode()
    for start, end in _mapped(layout, _names_of_the_loader(layout), writable=True):
        for at in _occurrences(data, raw + b"\0", start, end):
            if data[max(at - len(mangled), start) : at] != mangled:
                return True
    return False


def _names_of_the_loader(layout: Layout) -> Iterator[tuple[int, int]]:
    """File ranges of the dynamic string table and of PT_INTERP: names for the loader, not the program's own."""
    yield from ((s.offset, s.offset + s.filesz) for s in layout.segments if s.kind == PT_INTERP)
    table = layout.room(layout.value(elf.DT_STRTAB) or 0)
    if table is not None:
        yield table[0], table[0] + (layout.value(elf.DT_STRSZ) or 0)


def _no_strings(layout: Layout) -> Iterator[tuple[int, int]]:
    """File ranges of machine code and device code: most of a large object, and no names of libraries.

    A segment in which every section holds instructions is passed over with the padding between them.
    """
    held = [s for s in layout.sections if s.flags & elf.SHF_ALLOC and s.kind != elf.SHT_NOBITS and s.size]
    for s in held:
        if s.flags & elf.SHF_EXECINSTR or s.name in NVIDIA_SECTIONS or s.name == AMD_SECTION:
            yield s.offset, s.offset + s.size
    for segment in layout.segments:
        start, end = segment.offset, segment.offset + segment.filesz
        inside = [s.flags & elf.SHF_EXECINSTR for s in held if start <= s.offset < end]
        if segment.kind == PT_LOAD and segment.flags & PF_X and inside and all(inside):
            yield start, end


def _mapped(
    layout: Layout, skipped: Iterable[tuple[int, int]], *, writable: bool
) -> Iterator[tuple[int, int]]:
    """File ranges of the bytes that the loader maps, without the skipped ranges."""
    skipped = sorted(skipped)
    for s in layout.segments:
        if s.kind != PT_LOAD or (s.flags & PF_W and not writable):
            continue
        at, end = s.offset, min(s.offset + s.filesz, layout.size)
        for start, stop in skipped:
            if at <= start < end:
                yield at, start
            if start < end:
                at = max(at, stop)
        if at < end:
            yield at, end


def _occurrences(data: Buffer, wanted: bytes, start: int, end: int) -> Iterator[int]:
    """Where ``wanted`` stands between two offsets. By pieces: ``mmap.find`` is many times slower than bytes'."""
    piece = 1 << 22
    while start < end:
        held = data[start : min(start + piece + len(wanted) - 1, end)]
        at = held.find(wanted)
        while at >= 0:
            yield start + at
            at = held.find(wanted, at + 1)
        start += piece
