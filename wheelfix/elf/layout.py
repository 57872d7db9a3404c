"""Where things lie in an ELF file, and whether the file really holds them.

A walk over the ELF header, the program headers, the section headers and the dynamic segment with ``struct``
alone, for both classes and both byte orders. Parsers accept half a file "successfully" (no NEEDED, no
symbols), so this walk comes first and everything that is read later is a range that it has checked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from wheelfix.model.elf import (
    ET_DYN,
    ET_EXEC,
    PT_DYNAMIC,
    PT_LOAD,
    Section,
    Segment,
)
from wheelfix.model.finding import Fault
from wheelfix.model.limits import Limits


class Buffer(Protocol):
    """The bytes of a file: ``bytes``, ``mmap.mmap`` or ``wheelfix.elf.stream.Sparse``; only slices are taken."""

    def __len__(self) -> int: ...
    def __getitem__(self, where: slice, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Part:
    """A range of a file, with offsets of its own."""

    data: Buffer
    start: int
    size: int

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, where: slice, /) -> bytes:
        begin, end, _ = where.indices(self.size)
        return self.data[self.start + begin : self.start + end]


DT_NULL, DT_NEEDED, DT_PLTRELSZ, DT_PLTGOT, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ = range(9)
DT_STRSZ, DT_SYMENT, DT_SONAME, DT_RPATH, DT_SYMBOLIC, DT_REL, DT_RELSZ = 10, 11, 14, 15, 16, 17, 18
DT_PLTREL, DT_TEXTREL, DT_JMPREL, DT_INIT_ARRAY, DT_FINI_ARRAY = 20, 22, 23, 25, 26
DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ, DT_RUNPATH, DT_FLAGS = 27, 28, 29, 30
DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ, DT_RELRSZ, DT_RELR = 32, 33, 35, 36
DT_GNU_HASH, DT_VERSYM, DT_FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFB
DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
DT_AUXILIARY, DT_FILTER = 0x7FFFFFFD, 0x7FFFFFFF

SHT_SYMTAB, SHT_NOBITS, SHT_DYNSYM = 2, 8, 11
SHF_ALLOC, SHF_EXECINSTR = 2, 4

#: The page size of the machines that the tags promise; the smallest of those that one architecture may have.
PAGE = 4096

# The pointers that the loader follows, by the tag of their size where they have one (gABI, "Dynamic Section").
_POINTERS = {
    DT_STRTAB: ("DT_STRTAB", DT_STRSZ),
    DT_SYMTAB: ("DT_SYMTAB", None),
    DT_HASH: ("DT_HASH", None),
    DT_GNU_HASH: ("DT_GNU_HASH", None),
    DT_RELA: ("DT_RELA", DT_RELASZ),
    DT_REL: ("DT_REL", DT_RELSZ),
    DT_RELR: ("DT_RELR", DT_RELRSZ),
    DT_JMPREL: ("DT_JMPREL", DT_PLTRELSZ),
    DT_VERSYM: ("DT_VERSYM", None),
    DT_VERNEED: ("DT_VERNEED", None),
    DT_VERDEF: ("DT_VERDEF", None),
    DT_INIT_ARRAY: ("DT_INIT_ARRAY", DT_INIT_ARRAYSZ),
    DT_FINI_ARRAY: ("DT_FINI_ARRAY", DT_FINI_ARRAYSZ),
    DT_PREINIT_ARRAY: ("DT_PREINIT_ARRAY", DT_PREINIT_ARRAYSZ),
}


class Broken(Exception):
    """The object cannot be read any further; carries the fault that says why."""

    def __init__(self, rule: str, message: str, **evidence: object) -> None:
        super().__init__(message)
        self.fault = Fault(rule, message, evidence=evidence)


@dataclass(frozen=True, slots=True)
class Layout:
    """The headers and the dynamic segment of one file, every range checked against its size.

    ``dynamic`` holds raw (d_tag, d_val) pairs before DT_NULL. ``detached`` tells a file of debugging
    information that was split off an object (``objcopy --only-keep-debug``): its headers describe bytes that
    it does not hold, and no loader ever opens it.
    """

    size: int  # of the file
    order: str  # "<" or ">", as struct wants it
    bits: int
    type: int
    machine: int
    abi_flags: int
    segments: tuple[Segment, ...]
    sections: tuple[Section, ...] = ()
    dynamic: tuple[tuple[int, int], ...] = ()
    detached: bool = False
    strings_of: int = 0  # index of the section that holds section names

    @property
    def word(self) -> int:
        """Bytes of an address."""
        return self.bits // 8

    def values(self, tag: int) -> tuple[int, ...]:
        return tuple(v for t, v in self.dynamic if t == tag)

    def value(self, tag: int) -> int | None:
        """The entry that counts: glibc's ``elf_get_dynamic_info`` keeps the last of each tag."""
        return next((v for t, v in reversed(self.dynamic) if t == tag), None)

    def room(self, address: int) -> tuple[int, int] | None:
        """File offset of an address, and how many bytes of its PT_LOAD the file holds from there on.

        None outside all of them. The loader maps the segments in order with MAP_FIXED, so of two that
        overlap the later counts.
        """
        for s in reversed(self.segments):
            if s.kind == PT_LOAD and s.vaddr <= address < s.vaddr + s.filesz:
                offset = s.offset + address - s.vaddr
                held = min(s.vaddr + s.filesz - address, self.size - offset)
                return (offset, held) if held > 0 else None
        return None

    def table(self, data: Buffer, pointer: int, size: int) -> bytes:
        """The bytes of a table that a dynamic entry points at; empty where the object has none.

        Raises ``Broken`` where they do not all lie inside one PT_LOAD.
        """
        address = self.value(pointer)
        if address is None or size <= 0:
            return b""
        place = self.room(address)
        if place is None or place[1] < size:
            name = _POINTERS[pointer][0]
            raise Broken("elf-truncated", f"{name} points at {size} bytes that the object does not hold")
        return data[place[0] : place[0] + size]


def read_layout(data: Buffer, limits: Limits) -> tuple[Layout, tuple[Fault, ...]]:
    """Headers and dynamic segment of a file that starts with the ELF magic, and what is wrong with them.

    Raises ``Broken`` where the header itself, the program headers or the dynamic segment cannot be read.
    """
    size = len(data)
    layout, phoff, phnum, shoff, shnum = _header(data, limits)
    phsize = 56 if layout.bits == 64 else 32
    if phnum and phoff + phnum * phsize > size:
        raise Broken(
            "elf-truncated",
            f"the file ends at byte {size}, but its {phnum} program headers reach to byte {phoff + phnum * phsize}",
            size=size,
        )
    segments = tuple(_segments(data[phoff : phoff + phnum * phsize], layout))
    layout = replace(layout, segments=segments)
    faults: list[Fault] = []
    shsize = 64 if layout.bits == 64 else 40
    if shnum and shoff + shnum * shsize > size:
        reach = shoff + shnum * shsize
        faults.append(
            Fault(
                "elf-truncated",
                f"the file ends at byte {size}, but its section header table reaches to byte {reach}",
                evidence={"size": size, "needs": reach},
            )
        )
    elif shnum:
        layout = replace(layout, sections=tuple(_sections(data, shoff, shnum, layout)))
    if layout.type not in (ET_DYN, ET_EXEC):
        return layout, tuple(faults)
    if _is_detached(layout):
        return replace(layout, detached=True), tuple(faults)
    faults.extend(_segment_faults(layout))
    try:
        layout = replace(layout, dynamic=_dynamic(data, layout, limits))
    except Broken as reason:
        if faults:
            reason.fault = faults[0]  # what made it unreadable says more than what was then not found
        raise
    faults.extend(_pointer_faults(layout))
    return layout, tuple(faults)


def _header(data: Buffer, limits: Limits) -> tuple[Layout, int, int, int, int]:
    """Layout without tables, then e_phoff, e_phnum, e_shoff and the number of section headers."""
    head = data[:64]
    if len(head) < 16:
        raise Broken("elf-truncated", f"the file ends after {len(data)} bytes, inside the ELF header")
    elf_class, encoding, version = head[4], head[5], head[6]
    if elf_class not in (1, 2) or encoding not in (1, 2) or version != 1:
        raise Broken(
            "not-elf",
            f"it starts like an ELF object, but class {elf_class}, byte order {encoding}, version {version} "
            "are none that exist",
        )
    bits, order = 32 * elf_class, "<" if encoding == 1 else ">"
    form = struct.Struct(order + ("HHIQQQIHHHHHH" if bits == 64 else "HHIIIIIHHHHHH"))
    if len(head) < 16 + form.size:
        raise Broken("elf-truncated", f"the file ends after {len(data)} bytes, inside the ELF header")
    kind, machine, _, _, phoff, shoff, flags, _, phentsize, phnum, shentsize, shnum, shstrndx = (
        form.unpack_from(head, 16)
    )
    if phnum and phentsize != (56 if bits == 64 else 32):
        raise Broken("not-elf", f"its header says that a program header takes {phentsize} bytes")
    if phnum > limits.segments:
        raise Broken(
            "elf-limit",
            f"{phnum} program headers; more than {limits.segments} are not read (--limit segments=N)",
        )
    shsize = 64 if bits == 64 else 40
    if shoff and shentsize == shsize and shoff + shsize <= len(data):
        # gABI: the true numbers stand in section header 0 where they do not fit into 16 bits.
        first = struct.unpack(order + ("IIQQQQIIQQ" if bits == 64 else "10I"), data[shoff : shoff + shsize])
        shnum = shnum or first[5]
        shstrndx = first[6] if shstrndx == 0xFFFF else shstrndx
    elif shentsize != shsize:
        shnum = 0  # the loader never looks at sections; a table of unknown shape is none
    if shnum > limits.sections:
        raise Broken(
            "elf-limit",
            f"{shnum} section headers; more than {limits.sections} are not read (--limit sections=N)",
        )
    layout = Layout(len(data), order, bits, kind, machine, flags, (), strings_of=shstrndx)
    return layout, phoff, phnum, shoff, shnum if shoff else 0


def _segments(table: bytes, layout: Layout) -> Iterator[Segment]:
    if layout.bits == 64:
        for kind, flags, offset, vaddr, _, filesz, memsz, align in struct.iter_unpack(
            layout.order + "IIQQQQQQ", table
        ):
            yield Segment(kind, flags, offset, vaddr, filesz, memsz, align)
    else:
        for kind, offset, vaddr, _, filesz, memsz, flags, align in struct.iter_unpack(
            layout.order + "8I", table
        ):
            yield Segment(kind, flags, offset, vaddr, filesz, memsz, align)


def _sections(data: Buffer, shoff: int, shnum: int, layout: Layout) -> Iterator[Section]:
    form = layout.order + ("IIQQQQ24x" if layout.bits == 64 else "6I16x")
    size = struct.calcsize(form)
    raw = list(struct.iter_unpack(form, data[shoff : shoff + shnum * size]))
    names = b""
    if layout.strings_of < len(raw):
        _, kind, _, _, offset, length = raw[layout.strings_of]
        if kind != SHT_NOBITS:
            names = data[offset : offset + min(length, 64 * (shnum + 1) + (1 << 20))]
    for name, kind, flags, address, offset, length in raw[1:]:  # entry 0 is the null section
        end = names.find(b"\0", name, name + 4096)
        text = names[name:end].decode("utf-8", "backslashreplace") if end > name else ""
        yield Section(text, kind, flags, address, offset, length)


def _is_detached(layout: Layout) -> bool:
    """The section table says that the bytes of the dynamic segment are not in this file."""
    where = next((s for s in layout.segments if s.kind == PT_DYNAMIC), None)
    return where is not None and any(
        s.kind == SHT_NOBITS and s.name == ".dynamic" and s.address == where.vaddr for s in layout.sections
    )


def _segment_faults(layout: Layout) -> Iterator[Fault]:
    """What makes glibc's ``_dl_map_object_from_fd`` refuse a file, or touch bytes that are not there.

    Congruence is judged modulo p_align *and* modulo the page: before 2.35 glibc refused the first ("not
    properly aligned", and an alignment that is no multiple of the page), since then the second.
    """
    size = layout.size
    mapped_by_loader = any(s.kind == PT_DYNAMIC for s in layout.segments)
    for index, s in enumerate(layout.segments):
        if s.kind in (PT_LOAD, PT_DYNAMIC) and s.filesz and s.offset + s.filesz > size:
            name = "PT_LOAD" if s.kind == PT_LOAD else "PT_DYNAMIC"
            yield Fault(
                "elf-truncated",
                f"the file ends at byte {size}, but {name} (program header {index}) reaches to byte "
                f"{s.offset + s.filesz}",
                evidence={"size": size, "needs": s.offset + s.filesz},
            )
        if s.kind != PT_LOAD:
            continue
        reason = None
        if s.align & (s.align - 1):
            reason = f"p_align {s.align:#x} is no power of two"
        elif s.align > 1 and (s.vaddr - s.offset) % s.align:
            reason = f"p_offset {s.offset:#x} and p_vaddr {s.vaddr:#x} differ modulo p_align {s.align:#x}"
        elif (s.vaddr - s.offset) % PAGE:
            reason = f"p_offset {s.offset:#x} and p_vaddr {s.vaddr:#x} differ modulo the page, {PAGE:#x}"
        elif mapped_by_loader and s.align % PAGE:
            reason = f"p_align {s.align:#x} is no multiple of the page, {PAGE:#x}"
        if reason is not None:
            yield Fault(
                "elf-bad-alignment",
                f"PT_LOAD (program header {index}): {reason}",
                evidence={
                    "segment": index,
                    "p_offset": s.offset,
                    "p_vaddr": s.vaddr,
                    "p_align": s.align,
                },
            )


def _dynamic(data: Buffer, layout: Layout, limits: Limits) -> tuple[tuple[int, int], ...]:
    """The dynamic entries before DT_NULL, read where the loader reads them: at p_vaddr."""
    segment = next((s for s in reversed(layout.segments) if s.kind == PT_DYNAMIC), None)
    if segment is None or not segment.filesz:
        return ()
    place = layout.room(segment.vaddr)
    if place is None or place[1] < segment.filesz:
        raise Broken("elf-truncated", "PT_DYNAMIC lies outside every PT_LOAD")
    entry = 2 * layout.word
    count = min(segment.filesz // entry, limits.dynamic + 1)
    form = layout.order + ("qQ" if layout.bits == 64 else "iI")
    found = []
    for tag, value in struct.iter_unpack(form, data[place[0] : place[0] + count * entry]):
        if tag == DT_NULL:
            break
        found.append((tag, value))
    if len(found) > limits.dynamic:
        raise Broken(
            "elf-limit", f"more than {limits.dynamic} dynamic entries are not read (--limit dynamic=N)"
        )
    return tuple(found)


def _pointer_faults(layout: Layout) -> Iterator[Fault]:
    for tag, (name, size_tag) in _POINTERS.items():
        address = layout.value(tag)
        size = 1 if size_tag is None else layout.value(size_tag) or 0
        if not address or not size:
            continue
        place = layout.room(address)
        if place is None or place[1] < size:
            yield Fault(
                "elf-truncated",
                f"{name} points at {address:#x} ({size} bytes), outside the bytes of every PT_LOAD",
                evidence={"tag": name, "address": address, "size": size},
            )
