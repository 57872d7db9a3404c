"""The small image of an object that LIEF is given: what it is asked for, and nothing else.

A few kilobytes: dynamic entries, their strings and the notes, copied from ranges that were checked, behind
one PT_LOAD. LIEF copies what it is given two or three times, so the whole of a 450 MB object takes it 0.3
seconds and 1.3 GB; and what is damaged elsewhere in a file never reaches it.
"""

from __future__ import annotations

import struct

from wheelfix.elf.layout import (
    DT_AUXILIARY,
    DT_FILTER,
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    DT_STRSZ,
    DT_STRTAB,
    Broken,
    Buffer,
    Layout,
)
from wheelfix.model.elf import ET_CORE, ET_DYN, PT_DYNAMIC, PT_GNU_PROPERTY, PT_LOAD, PT_NOTE, ElfFacts
from wheelfix.model.limits import Limits

STRING_TAGS = (DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_FILTER, DT_AUXILIARY)


def small_image(data: Buffer, layout: Layout, strings: bytes, limits: Limits) -> bytes:
    """An ELF file with the same dynamic strings and notes as the object.

    Empty where the object has none of them. Raises ``Broken`` where one of them cannot be read whole.
    """
    parts: list[tuple[int, int, bytes]] = []  # p_type (0: no header of its own), alignment, bytes
    entries: list[tuple[int, int]] = []
    offset = 64 + 56 * (3 + len(layout.segments))  # room for the headers of either class
    if layout.dynamic:
        table = b"\0"
        for tag, value in layout.dynamic:
            if tag not in STRING_TAGS:
                continue
            end = strings.find(b"\0", value)
            if end < 0:
                raise Broken("elf-truncated", f"the string of dynamic entry {tag:#x} lies outside DT_STRTAB")
            entries.append((tag, len(table)))
            table += strings[value : end + 1]
        offset += -offset % 16
        entries += [(DT_STRTAB, offset), (DT_STRSZ, len(table))]
        parts.append((0, 16, table))
        form = layout.order + ("QQ" if layout.bits == 64 else "II")
        parts.append((PT_DYNAMIC, 16, b"".join(struct.pack(form, *e) for e in [*entries, (0, 0)])))
    if layout.type != ET_CORE and not layout.detached:
        parts += _notes(data, layout, limits)
    return _assemble(layout, parts) if parts else b""


def _notes(data: Buffer, layout: Layout, limits: Limits) -> list[tuple[int, int, bytes]]:
    found = []
    for s in layout.segments:
        if s.kind in (PT_NOTE, PT_GNU_PROPERTY) and s.filesz and s.offset + s.filesz <= layout.size:
            if s.filesz > limits.notes:
                raise Broken(
                    "elf-limit",
                    f"{s.filesz} bytes of notes; more than {limits.notes} are not read (--limit notes=N)",
                )
            found.append((s.kind, 8 if s.align == 8 else 4, data[s.offset : s.offset + s.filesz]))
    return found


def _assemble(layout: Layout, parts: list[tuple[int, int, bytes]]) -> bytes:
    """A file whose only PT_LOAD maps it whole at address 0, so that addresses are offsets."""
    wide = layout.bits == 64
    head, phdr = (64, 56) if wide else (52, 32)
    body = bytearray(64 + 56 * (3 + len(layout.segments)))
    headers = []
    for kind, align, content in parts:
        body += bytes(-len(body) % 16)
        if kind:
            headers.append((kind, 4, len(body), len(content), align))
        body += content
    headers.insert(0, (PT_LOAD, 4, 0, len(body), 4096))
    ident = b"\x7fELF" + bytes([layout.bits // 32, 1 if layout.order == "<" else 2, 1]) + bytes(9)
    body[:head] = ident + struct.pack(
        layout.order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"),
        ET_DYN, _machine(layout), 1, 0, head, 0, layout.abi_flags, head, phdr, len(headers), 0, 0, 0,
    )  # fmt: skip
    for i, (kind, flags, offset, size, align) in enumerate(headers):
        form = layout.order + ("IIQQQQQQ" if wide else "8I")
        fields = (
            (kind, flags, offset, offset, offset, size, size, align)
            if wide
            else (kind, offset, offset, offset, size, size, flags, align)
        )
        struct.pack_into(form, body, head + i * phdr, *fields)
    return bytes(body)


def _machine(layout: Layout) -> int:
    """LIEF goes by the machine where class or byte order say otherwise, and finds nothing: it gets one that fits."""
    big_endian = layout.order == ">"
    if ElfFacts(machine=layout.machine, bits=layout.bits, big_endian=big_endian).arch is not None:
        return layout.machine
    return 22 if big_endian else 62 if layout.bits == 64 else 3
