"""verneed and verdef: the versions that an object wants and gives.

Walked as glibc walks them. LIEF goes by the counts, and raises on a name that is no UTF-8.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from wheelfix.elf.layout import DT_VERDEF, DT_VERNEED, Broken, Buffer, Layout
from wheelfix.model.elf import VersionDef, VersionNeed, VersionRef
from wheelfix.model.limits import Limits

VER_FLG_BASE, VER_FLG_WEAK = 1, 2


class VersionRecord(NamedTuple):
    """One entry of verneed or verdef (``head``), or of the list that hangs on the entry before it.

    ``name_at`` is the file offset of the field that holds a string's place in DT_STRTAB; the heads of
    verdef have none.
    """

    head: bool
    offset: int
    size: int
    fields: tuple[int, ...]
    name_at: int | None


def version_needs(data: Buffer, layout: Layout, strings: bytes, limits: Limits) -> tuple[VersionNeed, ...]:
    """What DT_VERNEED says. Raises ``Broken`` where it, or a name of it, is not there."""
    found: list[tuple[str, list[VersionRef]]] = []
    for record in version_records(data, layout, DT_VERNEED, limits):
        if record.head:
            found.append((_name(strings, record.fields[2]), []))
        else:
            _, flags, index, name, _ = record.fields
            wanted = VersionRef(_name(strings, name), index & 0x7FFF, bool(flags & VER_FLG_WEAK))
            found[-1][1].append(wanted)
    return tuple(VersionNeed(file, tuple(wanted)) for file, wanted in found)


def version_definitions(
    data: Buffer, layout: Layout, strings: bytes, limits: Limits
) -> tuple[VersionDef, ...]:
    """What DT_VERDEF says; the names behind the first of each list are its parents and bind nothing.

    Raises ``Broken`` where it, or a name of it, is not there.
    """
    found: list[VersionDef] = []
    head: VersionRecord | None = None
    for record in version_records(data, layout, DT_VERDEF, limits):
        if record.head:
            head = record
        elif head is not None:
            _, flags, index = head.fields[:3]
            base, weak = bool(flags & VER_FLG_BASE), bool(flags & VER_FLG_WEAK)
            found.append(VersionDef(_name(strings, record.fields[0]), index & 0x7FFF, base, weak))
            head = None
    return tuple(found)


def version_table(data: Buffer, layout: Layout, pointer: int, limits: Limits) -> bytes:
    """The bytes that DT_VERNEED or DT_VERDEF and its lists span."""
    start = (layout.room(layout.value(pointer) or 0) or (0, 0))[0]
    ends = (r.offset + r.size for r in version_records(data, layout, pointer, limits))
    return data[start : max(ends, default=start)]


def version_records(data: Buffer, layout: Layout, pointer: int, limits: Limits) -> Iterator[VersionRecord]:
    """The entries of DT_VERNEED or DT_VERDEF, each followed by its list; none where the object has none.

    Both lists end at a zero offset: that is what glibc's ``_dl_check_map_versions`` goes by, not the counts,
    so a count that says otherwise would hide versions from everybody else and raises ``Broken``, as does
    a table that is not whole.
    """
    if pointer == DT_VERNEED:
        title, head, aux, count_at, head_name, aux_name = "DT_VERNEED", "HHIII", "IHHII", 1, 4, 8
    else:
        title, head, aux, count_at, head_name, aux_name = "DT_VERDEF", "HHHHIII", "II", 3, None, 0
    if not layout.value(pointer):
        return
    head_form, aux_form = struct.Struct(layout.order + head), struct.Struct(layout.order + aux)
    start, held = layout.room(layout.value(pointer) or 0) or (0, 0)
    at = start
    seen = 0
    while True:
        fields = _unpack(head_form, data, at, start + held, title)
        yield VersionRecord(True, at, head_form.size, fields, None if head_name is None else at + head_name)
        inner, length = at + fields[-2], 0
        while True:
            link = _unpack(aux_form, data, inner, start + held, title)
            yield VersionRecord(False, inner, aux_form.size, link, inner + aux_name)
            length += 1
            seen += 1
            if seen > limits.versions:
                raise Broken(
                    "elf-limit",
                    f"more than {limits.versions} entries of {title} are not read (--limit versions=N)",
                )
            if not link[-1]:
                break
            inner += link[-1]
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
    return form.unpack(data[at : at + form.size])


def _name(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset)
    if end < 0:
        raise Broken("elf-truncated", "the name of a version lies outside the string table")
    return strings[offset:end].decode("utf-8", "backslashreplace")
