"""The bulk tables of the dynamic segment: symbols, their versions, and the relocations that name them.

Decoded with ``struct`` from ranges that ``layout`` has checked: LIEF takes six microseconds to hand over
one symbol with its version, this takes less than one, and large libraries hold 100,000.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import repeat

from wheelfix.elf.layout import (
    DT_GNU_HASH,
    DT_HASH,
    DT_JMPREL,
    DT_PLTREL,
    DT_PLTRELSZ,
    DT_REL,
    DT_RELA,
    DT_RELASZ,
    DT_RELSZ,
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMTAB,
    DT_VERSYM,
    SHT_DYNSYM,
    SHT_SYMTAB,
    Broken,
    Buffer,
    Layout,
)
from wheelfix.model.elf import (
    LOOKUP_COPY,
    LOOKUP_DATA,
    LOOKUP_PLT,
    NameTable,
    Symbol,
)
from wheelfix.model.limits import Limits

VER_NDX_LOCAL, VER_NDX_GLOBAL = 0, 1  # versym entries that name no version

#: A version index -> (name of the node, file that verneed names, None for a definition).
Versions = Mapping[int, tuple[str, str | None]]

# Relocation types by e_machine: (none, relative, jump slot, copy), from the psABIs as elf.h spells them.
_RELOCATION_TYPES = {
    3: (0, 8, 7, 5),  # i386
    62: (0, 8, 7, 5),  # x86-64
    40: (0, 23, 22, 20),  # Arm
    183: (0, 1027, 1026, 1024),  # AArch64
    20: (0, 22, 21, 19),  # PowerPC
    21: (0, 22, 21, 19),  # PowerPC64
    22: (0, 12, 11, 9),  # S/390
    243: (0, 3, 5, 4),  # RISC-V
    258: (0, 3, 5, 4),  # LoongArch
}
_UNKNOWN_MACHINE = (0, -1, -1, -1)
_CHAIN = 4096  # bytes of a hash chain that are read at once


def symbol_lookups(data: Buffer, layout: Layout) -> dict[int, int]:
    """Symbol index -> LOOKUP_* bits, for every symbol that a dynamic or PLT relocation names.

    Relative relocations and R_*_NONE look nothing up, whatever symbol index they carry; DT_RELR holds
    relative ones only. Raises ``Broken`` where a table is not whole.
    """
    infos: set[int] = set()
    rel, rela = 2, 3  # words of an entry
    plt = rela if layout.value(DT_PLTREL) == DT_RELA else rel
    for pointer, size_tag, words in (
        (DT_REL, DT_RELSZ, rel),
        (DT_RELA, DT_RELASZ, rela),
        (DT_JMPREL, DT_PLTRELSZ, plt),
    ):
        table = layout.table(data, pointer, layout.value(size_tag) or 0)
        infos.update(_words(table, layout, words)[1::words])
    none, relative, jump_slot, copy = _RELOCATION_TYPES.get(layout.machine, _UNKNOWN_MACHINE)
    shift, mask = (32, 0xFFFFFFFF) if layout.bits == 64 else (8, 0xFF)
    found: dict[int, int] = {}
    for info in infos:
        index, kind = info >> shift, info & mask
        if index and kind not in (none, relative):
            bit = LOOKUP_PLT if kind == jump_slot else LOOKUP_COPY if kind == copy else LOOKUP_DATA
            found[index] = found.get(index, 0) | bit
    return found


def symbol_count(data: Buffer, layout: Layout, named: Collection[int], limits: Limits) -> int:
    """How many entries .dynsym has, which nothing in the dynamic segment says outright.

    The largest of what the hash tables, the relocations and (where it describes this very table) the section
    header know: an object that defines nothing has an empty hash table, and one without section headers may
    hold symbols that no relocation names. Never more than the file holds.
    """
    address = layout.value(DT_SYMTAB)
    place = layout.room(address) if address else None
    if address is None or place is None:
        return 0
    entry = _symbol_size(layout)
    hashed = _gnu_hash(data, layout, limits.symbols) or (0, 0)
    count = max(max(named, default=0) + 1, _hash_count(data, layout), hashed[0])
    for s in layout.sections:
        if s.kind == SHT_DYNSYM and s.address == address:
            count = max(count, s.size // entry)
    if count > limits.symbols:
        raise Broken(
            "elf-limit",
            f"{count} dynamic symbols; more than {limits.symbols} are not read (--limit symbols=N)",
        )
    if count * entry > place[1]:
        raise Broken("elf-truncated", f"its {count} dynamic symbols reach past the end of their PT_LOAD")
    return count


def string_table(data: Buffer, layout: Layout, limits: Limits) -> bytes:
    """The dynamic string table. Raises ``Broken`` where it is not whole or holds a string over the limit."""
    table = layout.table(data, DT_STRTAB, layout.value(DT_STRSZ) or 0)
    start = 0
    while len(table) - start > limits.string:
        end = table.rfind(b"\0", start, start + limits.string + 1)
        if end < 0:
            raise Broken(
                "elf-limit",
                f"a string of its dynamic string table is longer than {limits.string} bytes (--limit string=N)",
            )
        start = end + 1
    return table


def symbols(
    data: Buffer,
    layout: Layout,
    count: int,
    strings: bytes,
    versions: Versions,
    lookups: Mapping[int, int],
    limits: Limits,
) -> tuple[Symbol, ...]:
    """The dynamic symbols without the null entry. Raises ``Broken`` where they cannot be read whole."""
    if count <= 1:
        return ()
    table = layout.table(data, DT_SYMTAB, count * _symbol_size(layout))
    versym: Sequence[int] = ()
    if layout.value(DT_VERSYM) is not None:
        versym = _array("H", layout.table(data, DT_VERSYM, 2 * count), layout)
    # By the raw entry, hidden bit (0x8000) included: at most a few hundred differ.
    raws = set(versym) or {VER_NDX_GLOBAL}
    known = {raw: versions.get(raw & 0x7FFF, (None, None)) for raw in raws}
    node, file_, index, hidden = (
        {raw: known[raw][0] for raw in raws},
        {raw: known[raw][1] for raw in raws},
        {raw: raw & 0x7FFF for raw in raws},
        {raw: raw > 0x7FFF for raw in raws},
    )
    versym = versym or [VER_NDX_GLOBAL] * count
    name, info, other, section, value, size = _columns(table, layout)
    rows = zip(
        _names(strings, name, limits),
        info.translate(_HIGH_NIBBLE),
        info.translate(_LOW_NIBBLE),
        other.translate(_LOW_TWO_BITS),
        section,
        value,
        size,
        map(node.__getitem__, versym),
        map(file_.__getitem__, versym),
        map(index.__getitem__, versym),
        map(hidden.__getitem__, versym),
        map(lookups.get, range(count), repeat(0)),
        strict=True,
    )
    next(rows)
    return tuple(map(partial(tuple.__new__, Symbol), rows))


def name_offsets(data: Buffer, layout: Layout, count: int) -> Sequence[int]:
    """st_name of every dynamic symbol."""
    return _columns(layout.table(data, DT_SYMTAB, count * _symbol_size(layout)), layout)[0]


def local_names(data: Buffer, layout: Layout, limits: Limits) -> NameTable:
    """The names in .symtab: its string table as it is, and each name that is the end of a longer one in it.

    They only explain an undefined symbol, so a large or damaged table is passed over without a word.
    """
    tables = [s for s in layout.sections if s.kind == SHT_SYMTAB]
    linked = next((s for s in layout.sections if s.name == ".strtab"), None)
    entry = _symbol_size(layout)
    if len(tables) != 1 or linked is None or tables[0].size // entry > limits.local_symbols:
        return NameTable()
    where = tables[0]
    if max(linked.offset + linked.size, where.offset + where.size) > layout.size:
        return NameTable()
    strings = data[linked.offset : linked.offset + linked.size]
    table = data[where.offset : where.offset + where.size // entry * entry]
    offsets = _array("I", table, layout)[:: entry // 4]
    try:
        merged = _raw_names(strings, [o for o in offsets if o and strings[o - 1]], limits)
    except (Broken, IndexError):
        return NameTable()
    return NameTable(b"%b%b\0" % (strings, b"\0".join(merged)) if merged else strings)


# st_info holds the binding above the type, st_other the visibility in its low bits (gABI, "Symbol Table").
_HIGH_NIBBLE = bytes(i >> 4 for i in range(256))
_LOW_NIBBLE = bytes(i & 15 for i in range(256))
_LOW_TWO_BITS = bytes(i & 3 for i in range(256))


def _symbol_size(layout: Layout) -> int:
    return 24 if layout.bits == 64 else 16


def _columns(
    table: bytes, layout: Layout
) -> tuple[array[int], bytes, bytes, array[int], array[int], array[int]]:
    """st_name, st_info, st_other, st_shndx, st_value and st_size of all entries, each as one sequence."""
    words, halves = _array("I", table, layout), _array("H", table, layout)
    if layout.bits == 64:
        longs = _array("Q", table, layout)
        return words[0::6], table[4::24], table[5::24], halves[3::12], longs[1::3], longs[2::3]
    return words[0::4], table[12::16], table[13::16], halves[7::8], words[1::4], words[2::4]


def _names(strings: bytes, offsets: Sequence[int], limits: Limits) -> list[str]:
    """The NUL-terminated strings at these offsets. Raises ``Broken`` as ``_raw_names`` does."""
    raw = _raw_names(strings, offsets, limits)
    return b"\0".join(raw).decode("utf-8", "backslashreplace").split("\0") if raw else []


def _raw_names(strings: bytes, offsets: Sequence[int], limits: Limits) -> list[bytes]:
    """The NUL-terminated strings at these offsets.

    Raises ``Broken`` for one that the table does not hold, and where all together take too much: the ends
    of one long string can be named again and again.
    """
    names: list[bytes] = []
    room = limits.names
    longest = limits.string
    for block in range(0, len(offsets), 512):
        try:
            raw = [
                strings[o : strings.index(b"\0", o, o + longest + 1)] for o in offsets[block : block + 512]
            ]
        except ValueError:
            raise Broken("elf-truncated", "a symbol's name lies outside the string table") from None
        room -= sum(map(len, raw))
        if room < 0:
            raise Broken(
                "elf-limit",
                f"its symbol names take more than {limits.names} bytes together (--limit names=N)",
            )
        names += raw
    return names


def _array(kind: str, table: bytes, layout: Layout) -> array[int]:
    found = array(kind, table)
    if (layout.order == "<") != (sys.byteorder == "little"):
        found.byteswap()
    return found


def _words(table: bytes, layout: Layout, per_entry: int) -> array[int]:
    """The address-sized words of a relocation table, whole entries only."""
    size = per_entry * layout.word
    return _array("Q" if layout.bits == 64 else "I", table[: len(table) // size * size], layout)


def hash_size(data: Buffer, layout: Layout) -> int:
    """Bytes of DT_HASH: two counts, the buckets and the chains."""
    if layout.value(DT_HASH) is None:
        return 0
    form = _hash_form(layout)
    buckets, chains = struct.unpack(form, layout.table(data, DT_HASH, struct.calcsize(form)))
    return int((2 + buckets + chains) * struct.calcsize(form) // 2)


def gnu_hash_size(data: Buffer, layout: Layout) -> int:
    """Bytes of DT_GNU_HASH: header, bloom filter, buckets and the chains up to the end of the last."""
    found = _gnu_hash(data, layout, Limits().symbols)
    return found[1] if found else 0


def _hash_form(layout: Layout) -> str:
    """nbucket and nchain; Alpha and s390x have 64-bit words in DT_HASH (their psABIs)."""
    wide = layout.machine in (22, 0x9026) and layout.bits == 64
    return layout.order + ("QQ" if wide else "II")


def _hash_count(data: Buffer, layout: Layout) -> int:
    """DT_HASH's nchain equals the number of symbols (gABI, "Hash Table")."""
    if layout.value(DT_HASH) is None:
        return 0
    form = _hash_form(layout)
    count: int = struct.unpack(form, layout.table(data, DT_HASH, struct.calcsize(form)))[1]
    return count


def _gnu_hash(data: Buffer, layout: Layout, most: int) -> tuple[int, int] | None:
    """One more than the last symbol of the last chain of DT_GNU_HASH, and the bytes of the table.

    The hashed symbols stand last in the symbol table. The layout of the table is that of glibc's
    ``_dl_setup_hash``; a chain ends at an odd value. It is not followed beyond ``most`` symbols.
    """
    address = layout.value(DT_GNU_HASH)
    place = layout.room(address) if address else None
    if place is None:
        return None
    offset, held = place
    if held < 16:
        raise Broken("elf-truncated", "DT_GNU_HASH ends inside its header")
    head: tuple[int, int, int, int] = struct.unpack(layout.order + "4I", data[offset : offset + 16])
    buckets, first, bloom, _ = head
    chains = 16 + bloom * layout.word + 4 * buckets
    if chains > held:
        raise Broken("elf-truncated", "DT_GNU_HASH reaches past the end of its PT_LOAD")
    heads = _array("I", data[offset + chains - 4 * buckets : offset + chains], layout)
    last = max(heads, default=0)
    if last < first:
        return first, chains  # nothing is defined: what stands before the hashed symbols is all
    low = 0 if layout.order == "<" else 3
    end = chains + 4 * (last - first)
    while len(block := data[offset + end : offset + min(end + _CHAIN, held)]) >= 4:
        if last > most:
            raise Broken(
                "elf-limit",
                f"DT_GNU_HASH names symbol {last}; more than {most} symbols are not read (--limit symbols=N)",
            )
        for byte in range(low, len(block) // 4 * 4, 4):
            last += 1
            end += 4
            if block[byte] & 1:
                return last, end
    raise Broken("elf-truncated", "a chain of DT_GNU_HASH does not end")
