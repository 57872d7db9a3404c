"""That a changed ELF object is the old one, but for what was asked."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace

from wheelfix.elf import layout as elf
from wheelfix.elf import tables
from wheelfix.elf.layout import Broken, Layout, read_layout
from wheelfix.elf.read import read
from wheelfix.elf.versions import version_table
from wheelfix.model.elf import (
    ET_EXEC,
    PT_DYNAMIC,
    PT_GNU_EH_FRAME,
    PT_GNU_PROPERTY,
    PT_GNU_RELRO,
    PT_GNU_STACK,
    PT_INTERP,
    PT_LOAD,
    PT_NOTE,
    PT_TLS,
    SHN_ABS,
    SHN_UNDEF,
    STT_SECTION,
    ElfFacts,
    Segment,
    Symbol,
)
from wheelfix.model.limits import Limits
from wheelfix.model.plan import ElfChange

# What an edit may change or move, and no other fact: places in the file, sections, and what strip takes away.
_FREE = {"size", "segments", "sections", "local_names"}


class EditFailed(Exception):
    """The object could not be changed, or what came out is not the object with the change."""


def expected(facts: ElfFacts, change: ElfChange) -> ElfFacts:
    """The facts of an object after the change."""
    names = dict(change.rename_needed)
    wanted = [n for n in facts.needed if n not in change.remove_needed]
    result = replace(
        facts,
        soname=facts.soname if change.soname is None else change.soname,
        needed=tuple(names.get(n, n) for n in wanted),
        filters=tuple(names.get(n, n) for n in facts.filters),
        auxiliaries=tuple(names.get(n, n) for n in facts.auxiliaries),
        verneed=tuple(n._replace(file=names.get(n.file, n.file)) for n in facts.verneed),
        symbols=tuple(
            s._replace(version_file=names[s.version_file]) if s.version_file in names else s
            for s in facts.symbols
        ),
    )
    if change.path is None:
        return result
    path, runpath = change.path or None, change.path_kind == "runpath"
    return replace(result, rpath=None if runpath else path, runpath=path if runpath else None)


def prove(before: bytes, after: bytes, change: ElfChange) -> None:
    """Raise ``EditFailed`` unless ``after`` is ``before`` with the change and nothing else.

    * program headers lie inside the file and are congruent, PT_LOADs ascend and do not overlap, and every
      pointer of the dynamic segment leads into one of them;
    * every fact is the expected one: names, flags, symbols with versions and relocation kinds, notes;
    * relocation and hash tables hold the same bytes, wherever they lie now;
    * every byte that the loader mapped before is mapped now, at the same address, with the same permissions
      and value, but for the headers, the tables that were changed, and those that only the dynamic segment
      or a program header leads to and that moved.
    """
    old, new = read(before), read(after)
    if old.facts is None:
        raise EditFailed("the object cannot be read: " + "; ".join(f.message for f in old.faults))
    known = {f.rule for f in old.faults}
    fresh = [f.message for f in new.faults if f.rule not in known]
    if new.facts is None or fresh:
        raise EditFailed("the changed object is damaged: " + "; ".join(fresh or ["it cannot be read"]))
    _prove_facts(expected(old.facts, change), new.facts)
    try:
        first, _ = read_layout(before, Limits())
        second, _ = read_layout(after, Limits())
        _prove_headers(before, first, after, second)
        moved = _moved(before, first, after, second)
    except Broken as reason:
        raise EditFailed(f"the changed object is damaged: {reason}") from None
    _prove_memory(before, first, after, second, _live(first, change.strip), moved)


def _prove_facts(wanted: ElfFacts, got: ElfFacts) -> None:
    for name in ElfFacts.__dataclass_fields__:
        if name in _FREE:
            continue
        left, right = getattr(wanted, name), getattr(got, name)
        if name == "symbols":
            left, right = tuple(map(_comparable, left)), tuple(map(_comparable, right))
        if left != right:
            raise EditFailed(f"the changed object differs in its {name.replace('_', ' ')}")


def _comparable(symbol: Symbol) -> Symbol:
    """Section numbers change when a section is added, and with them nothing that the loader does."""
    section = symbol.section if symbol.section in (SHN_UNDEF, SHN_ABS) else 1
    return symbol._replace(section=section, value=0 if symbol.kind == STT_SECTION else symbol.value)


def _prove_headers(before: bytes, first: Layout, after: bytes, second: Layout) -> None:
    if _entry(before, first) != _entry(after, second):
        raise EditFailed("the changed object has another entry point")
    loads = [s for s in second.segments if s.kind == PT_LOAD]
    if any(a.vaddr + a.memsz > b.vaddr for a, b in itertools.pairwise(loads)):
        raise EditFailed("the PT_LOAD segments of the changed object overlap or are out of order")
    for kind in (PT_TLS, PT_GNU_STACK, PT_GNU_RELRO, PT_GNU_EH_FRAME):
        left, right = (
            [(s.flags, s.vaddr, s.memsz) for s in x.segments if s.kind == kind] for x in (first, second)
        )
        if left != right:
            raise EditFailed(f"program header {kind:#x} of the changed object is another")


def _live(layout: Layout, stripped: bool) -> list[tuple[int, int]]:
    """Address ranges of the bytes of the file that must stay: start and end.

    Everything that is mapped. Only the sections after strip, which drops what an earlier patchelf left behind
    between them, and in a program at fixed addresses, whose first segment patchelf splits.
    """
    stripped = stripped or layout.type == ET_EXEC
    if stripped and layout.sections:
        return [
            (s.address, s.address + s.size)
            for s in layout.sections
            if s.flags & elf.SHF_ALLOC and s.kind != elf.SHT_NOBITS and s.size
        ]
    return [(s.vaddr, s.vaddr + s.filesz) for s in layout.segments if s.kind == PT_LOAD and s.filesz]


def _moved(before: bytes, first: Layout, after: bytes, second: Layout) -> list[tuple[int, int]]:
    """Address ranges of ``before`` that may hold anything now: start and end.

    Raises ``EditFailed`` where a table that no change touches does not hold what it held.
    """
    left, right = (dict(_tables(b, x)) for b, x in ((before, first), (after, second)))
    if left.keys() != right.keys():
        raise EditFailed("the changed object has lost or gained a table of the dynamic segment")
    free = list(_header_ranges(before, first))
    for name, (addresses, content) in left.items():
        where, now = right[name]
        if name not in _REWRITTEN and content != now:
            raise EditFailed(f"the {name} of the changed object is another")
        if name in _REWRITTEN or where != addresses:
            free += addresses
    for start, end in _header_ranges(after, second):
        # A longer table of program headers may only take the place of what moved away, or of nothing.
        for s in first.sections:
            held = s.flags & elf.SHF_ALLOC and s.kind != elf.SHT_NOBITS and s.address < end
            inside = any(a <= s.address and s.address + s.size <= b for a, b in free)
            if held and start < s.address + s.size and not inside:
                raise EditFailed(f"the program headers of the changed object overwrite {s.name}")
        free.append((start, end))
    return free


# Tables that a change rewrites; what is in them is compared as facts.
_REWRITTEN = frozenset({"dynamic segment", "string table", "verneed", "symbol table"})


def _header_ranges(data: bytes, layout: Layout) -> Iterator[tuple[int, int]]:
    """Where the ELF header and the program headers are mapped."""
    wide = layout.bits == 64
    (table,) = struct.unpack_from(layout.order + ("Q" if wide else "I"), data, 32 if wide else 28)
    for start, size in ((0, 64 if wide else 52), (table, len(layout.segments) * (56 if wide else 32))):
        for s in layout.segments:
            if s.kind == PT_LOAD and s.offset <= start < s.offset + s.filesz:
                yield s.vaddr + start - s.offset, s.vaddr + start - s.offset + size


def _tables(data: bytes, layout: Layout) -> Iterator[tuple[str, tuple[list[tuple[int, int]], bytes]]]:
    """Each table that only a dynamic entry or a program header leads to: name, address ranges and bytes."""
    count = tables.symbol_count(data, layout, tables.symbol_lookups(data, layout), Limits())
    sizes = {
        elf.DT_STRTAB: ("string table", layout.value(elf.DT_STRSZ) or 0),
        elf.DT_SYMTAB: ("symbol table", count * (24 if layout.bits == 64 else 16)),
        elf.DT_VERSYM: ("versym", 2 * count),
        elf.DT_HASH: ("hash table", tables.hash_size(data, layout)),
        elf.DT_GNU_HASH: ("GNU hash table", tables.gnu_hash_size(data, layout)),
        elf.DT_REL: ("REL table", layout.value(elf.DT_RELSZ) or 0),
        elf.DT_RELA: ("RELA table", layout.value(elf.DT_RELASZ) or 0),
        elf.DT_RELR: ("RELR table", layout.value(elf.DT_RELRSZ) or 0),
        elf.DT_JMPREL: ("PLT relocation table", layout.value(elf.DT_PLTRELSZ) or 0),
    }
    for tag, (name, size) in sizes.items():
        address = layout.value(tag)
        if address:
            yield name, ([(address, address + size)], layout.table(data, tag, size))
    for tag, name in ((elf.DT_VERNEED, "verneed"), (elf.DT_VERDEF, "verdef")):
        address = layout.value(tag)
        if address:
            content = version_table(data, layout, tag, Limits())
            yield name, ([(address, address + len(content))], content)
    for kind, name in (
        (PT_INTERP, "interpreter"),
        (PT_NOTE, "notes"),  # patchelf gives each its own program header
        (PT_GNU_PROPERTY, "property note"),
        (PT_DYNAMIC, "dynamic segment"),
    ):
        parts = sorted((s.vaddr, s.offset, s.filesz) for s in layout.segments if s.kind == kind)
        ranges = [(address, address + size) for address, _, size in parts]
        yield name, (ranges, b"".join(data[offset : offset + size] for _, offset, size in parts))


def _prove_memory(
    before: bytes,
    first: Layout,
    after: bytes,
    second: Layout,
    live: Iterable[tuple[int, int]],
    moved: Iterable[tuple[int, int]],
) -> None:
    old, new = memoryview(before), memoryview(after)
    gaps = sorted(moved)
    for at, end in live:
        for start, stop in [*gaps, (end, end)]:
            upto = min(max(start, at), end)
            if upto > at:
                _prove_range(old, first, new, second, at, upto)
            at = max(at, min(stop, end))
    for s in first.segments:
        if s.kind == PT_LOAD and s.memsz > s.filesz:
            _prove_zeros(s, after, second)


def _prove_zeros(segment: Segment, after: bytes, layout: Layout) -> None:
    start, end = segment.vaddr + segment.filesz, segment.vaddr + segment.memsz
    now = _segment_at(layout, start)
    if now is None or now.flags != segment.flags or now.vaddr + now.memsz < end:
        raise EditFailed(f"the zeros from {start:#x} on are no longer mapped as they were")
    place = layout.room(start)
    if place is not None and any(after[place[0] : place[0] + min(place[1], end - start)]):
        raise EditFailed(f"the bytes from {start:#x} on were zero and are no longer")


def _prove_range(
    old: memoryview, first: Layout, new: memoryview, second: Layout, start: int, end: int
) -> None:
    here, there = first.room(start), second.room(start)
    was, now = _segment_at(first, start), _segment_at(second, start)
    size = end - start
    if here is None or there is None or was is None or now is None or min(here[1], there[1]) < size:
        raise EditFailed(f"the bytes from {start:#x} on are no longer mapped")
    if was.flags != now.flags:
        raise EditFailed(f"the bytes from {start:#x} on are mapped with other permissions")
    if old[here[0] : here[0] + size] != new[there[0] : there[0] + size]:
        raise EditFailed(f"bytes between {start:#x} and {end:#x} changed that nobody asked to change")


def _segment_at(layout: Layout, address: int) -> Segment | None:
    return next(
        (s for s in layout.segments if s.kind == PT_LOAD and s.vaddr <= address < s.vaddr + s.memsz), None
    )


def _entry(data: bytes, layout: Layout) -> int:
    entry: int = struct.unpack_from(layout.order + ("Q" if layout.bits == 64 else "I"), data, 24)[0]
    return entry
