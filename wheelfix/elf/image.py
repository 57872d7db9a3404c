"""The small image of an object that LIEF is given: what it is asked for, and nothing else.

A few kilobytes: dynamic entries, their strings, version tables and notes, copied from ranges that were
checked, behind one PT_LOAD. LIEF copies what it is given two or three times, so the whole of a 450 MB object
takes it 0.3 seconds and 1.3 GB; and what is damaged elsewhere in a file never reaches it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from wheelfix.elf.layout import (
    DT_AUXILIARY,
    DT_FILTER,
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    DT_STRSZ,
    DT_STRTAB,
    DT_VERDEF,
    DT_VERDEFNUM,
    DT_VERNEED,
    DT_VERNEEDNUM,
    Broken,
    Buffer,
    ElfLimits,
    Layout,
)
from wheelfix.model.elf import ET_CORE, ET_DYN, PT_DYNAMIC, PT_GNU_PROPERTY, PT_LOAD, PT_NOTE

_STRING_TAGS = (DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_FILTER, DT_AUXILIARY)


def small_image(data: Buffer, layout: Layout, strings: bytes, limits: ElfLimits) -> bytes:
    """An ELF file with the same dynamic strings, version tables and notes as the object.

    Empty where the object has none of them. Raises ``Broken`` where one of them cannot be read whole.
    """
    parts: list[tuple[int, int, bytes]] = []  # p_type (0: no header of its own), alignment, bytes
    entries: list[tuple[int, int]] = []
    offset = 64 + 56 * (3 + len(layout.segments))  # room for the headers of either class
    if layout.dynamic:
        entries = [(t, v) for t, v in layout.dynamic if t in _STRING_TAGS]
        for tag, value in entries:
            if strings.find(b"\0", value) < 0:
                raise Broken("elf-truncated", f"the string of dynamic entry {tag:#x} lies outside DT_STRTAB")
        tables = [(DT_STRTAB, DT_STRSZ, len(strings), strings)]
        for pointer, number in ((DT_VERNEED, DT_VERNEEDNUM), (DT_VERDEF, DT_VERDEFNUM)):
            if layout.value(pointer):
                count, table = version_table(data, layout, pointer, limits)
                tables.append((pointer, number, count, table))
        for pointer, number, count, table in tables:
            offset += -offset % 16
            entries += [(pointer, offset), (number, count)]
            parts.append((0, 16, table))
            offset += len(table)
        form = layout.order + ("qQ" if layout.bits == 64 else "iI")
        parts.append(
            (PT_DYNAMIC, 16, b"".join(struct.pack(form, *e) for e in [*_signed(entries, layout), (0, 0)]))
        )
    if layout.type != ET_CORE and not layout.detached:
        parts += _notes(data, layout, limits)
    return _assemble(layout, parts) if parts else b""


def _signed(entries: list[tuple[int, int]], layout: Layout) -> list[tuple[int, int]]:
    """Tags as d_tag's signed type holds them."""
    limit = 1 << (layout.bits - 1)
    return [(t - 2 * limit if t >= limit else t, v) for t, v in entries]


def _notes(data: Buffer, layout: Layout, limits: ElfLimits) -> list[tuple[int, int, bytes]]:
    found = []
    for s in layout.segments:
        if s.kind in (PT_NOTE, PT_GNU_PROPERTY) and s.filesz and s.offset + s.filesz <= layout.size:
            if s.filesz > limits.notes:
                raise Broken("elf-limit", f"{s.filesz} bytes of notes; more than {limits.notes} are not read")
            found.append((s.kind, 8 if s.align == 8 else 4, data[s.offset : s.offset + s.filesz]))
    return found


def version_table(data: Buffer, layout: Layout, pointer: int, limits: ElfLimits) -> tuple[int, bytes]:
    """How many verneed (or verdef) entries there are, and the bytes that they and their lists span."""
    start = (layout.room(layout.value(pointer) or 0) or (0, 0))[0]
    heads, end = 0, start
    for record in version_records(data, layout, pointer, limits):
        heads += record.head
        end = max(end, record.offset + record.size)
    return heads, data[start:end]


class VersionRecord(NamedTuple):
    """One entry of verneed or verdef (``head``), or of the list that hangs on the entry before it."""

    head: bool
    offset: int  # in the file
    size: int
    name: (
        int | None
    )  # file offset of the field that holds a string's place in DT_STRTAB; verdef heads have none


def version_records(data: Buffer, layout: Layout, pointer: int, limits: ElfLimits) -> Iterator[VersionRecord]:
    """The entries of DT_VERNEED or DT_VERDEF, each followed by its list.

    Both lists end at a zero offset: that is what glibc's ``_dl_check_map_versions`` goes by, not the counts,
    so a count that says otherwise would hide versions from everybody else and raises ``Broken``, as does
    a table that is not whole.
    """
    if pointer == DT_VERNEED:
        title, head, aux, count_at, head_name, aux_name = "DT_VERNEED", "HHIII", "IHHII", 1, 4, 8
    else:
        title, head, aux, count_at, head_name, aux_name = "DT_VERDEF", "HHHHIII", "II", 3, None, 0
    head_form, aux_form = struct.Struct(layout.order + head), struct.Struct(layout.order + aux)
    start, held = layout.room(layout.value(pointer) or 0) or (0, 0)
    at = start
    seen = 0
    while True:
        fields = _unpack(head_form, data, at, start + held, title)
        yield VersionRecord(True, at, head_form.size, None if head_name is None else at + head_name)
        inner, length = at + fields[-2], 0
        while True:
            onward = _unpack(aux_form, data, inner, start + held, title)[-1]
            yield VersionRecord(False, inner, aux_form.size, inner + aux_name)
            length += 1
            seen += 1
            if seen > limits.versions:
                raise Broken("elf-limit", f"more than {limits.versions} entries of {title} are not read")
            if not onward:
                break
            inner += onward
        if length != fields[count_at]:
            raise Broken(
                "elf-truncated",
                f"an entry of {title} counts {fields[count_at]} versions, but its list holds {length}",
            )
        if not fields[-1]:
            return
        at += fields[-1]


def _unpack(form: struct.Struct, data: Buffer, at: int, end: int, title: str) -> tuple[int, ...]:
    if at + form.size > end:
        raise Broken("elf-truncated", f"{title} reaches past the end of its PT_LOAD")
    return form.unpack_from(data, at)


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
        ET_DYN, layout.machine, 1, 0, head, 0, layout.abi_flags, head, phdr, len(headers), 0, 0, 0,
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
