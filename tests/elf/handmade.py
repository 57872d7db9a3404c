"""Shared objects of any class, byte order and machine, written by hand: for the tests, and for the pages of rules."""

from __future__ import annotations

import struct
from collections.abc import Sequence


def make_elf(
    bits: int = 64,
    order: str = "<",
    machine: int = 62,
    *,
    needed: Sequence[str] = (),
    soname: str | None = None,
    rpath: str | None = None,
    runpath: str | None = None,
    symbols: Sequence[tuple[str, int, int]] = (),  # name, st_info, st_shndx
    versym: Sequence[int] = (),
    verneed: Sequence[tuple[str, Sequence[tuple[str, int, int]]]] = (),  # file, (version, flags, index)
    relocations: Sequence[tuple[int, int]] = (),  # symbol, type
    plt: Sequence[tuple[int, int]] = (),
    rela: bool = True,
    wide_hash: bool = False,
    dynamic: Sequence[tuple[int, int]] = (),
    stack: int | None = 6,
    align: int = 0x1000,
    size: int = 4,  # st_size of every symbol
    notes: bytes = b"",
) -> bytes:
    """A shared object without section headers: one PT_LOAD that maps the file at address 0.

    Written after the gABI's tables, not after the code under test.
    """
    wide = bits == 64
    word, head, phdr = (8, 64, 56) if wide else (4, 52, 32)
    strings = bytearray(b"\0")

    def text(value: str) -> int:
        strings.extend(value.encode() + b"\0")
        return len(strings) - len(value.encode()) - 1

    entries = [(1, text(n)) for n in needed] + ([(14, text(soname))] if soname else [])
    entries += [(tag, text(path)) for tag, path in ((15, rpath), (29, runpath)) if path is not None]
    dynsym = bytearray(24 if wide else 16)
    for name, info, section in symbols:
        fields = (
            (text(name), info, 0, section, 0x40, size) if wide else (text(name), 0x40, size, info, 0, section)
        )
        dynsym += struct.pack(order + ("IBBHQQ" if wide else "IIIBBH"), *fields)
    versions = bytearray()
    for i, (file, wanted) in enumerate(verneed):
        step = 16 * (1 + len(wanted)) if i + 1 < len(verneed) else 0
        versions += struct.pack(order + "HHIII", 1, len(wanted), text(file), 16, step)
        for j, (name, flags, index) in enumerate(wanted):
            versions += struct.pack(
                order + "IHHII", 0, flags, index, text(name), 16 if j + 1 < len(wanted) else 0
            )

    def table(items: Sequence[tuple[int, int]]) -> bytes:
        form = order + (("QQq" if rela else "QQ") if wide else ("IIi" if rela else "II"))
        infos = [(s << 32 | t) if wide else (s << 8 | t) for s, t in items]
        return b"".join(struct.pack(form, 0x40, info, *([0] if rela else [])) for info in infos)

    count = len(symbols) + 1
    hashes = struct.pack(
        order + (f"{3 + count}Q" if wide_hash else f"{3 + count}I"), 1, count, 0, *[0] * count
    )
    pieces = {
        "strings": bytes(strings),
        "dynsym": bytes(dynsym),
        "hash": hashes,
        "versym": struct.pack(order + f"{len(versym)}H", *versym),
        "verneed": bytes(versions),
        "relocations": table(relocations),
        "plt": table(plt),
        "notes": notes,
    }
    number = 2 + (stack is not None) + bool(notes)
    at = head + number * phdr
    where = {}
    body = bytearray()
    for key, content in pieces.items():
        body += bytes(-(at + len(body)) % 16)
        where[key] = at + len(body)
        body += content
    entries += [(5, where["strings"]), (10, len(strings)), (6, where["dynsym"]), (4, where["hash"])]
    if versym:
        entries.append((0x6FFFFFF0, where["versym"]))
    if verneed:
        entries += [(0x6FFFFFFE, where["verneed"]), (0x6FFFFFFF, len(verneed))]
    if relocations:
        tags = (7, 8) if rela else (17, 18)
        entries += [(tags[0], where["relocations"]), (tags[1], len(pieces["relocations"]))]
    if plt:
        entries += [(23, where["plt"]), (2, len(pieces["plt"])), (20, 7 if rela else 17)]
    entries += [*dynamic, (0, 0)]
    body += bytes(-(at + len(body)) % 16)
    start = at + len(body)
    body += b"".join(struct.pack(order + ("QQ" if wide else "II"), *e) for e in entries)
    total = at + len(body)

    def header(kind: int, flags: int, offset: int, length: int, alignment: int) -> bytes:
        if wide:
            return struct.pack(
                order + "IIQQQQQQ", kind, flags, offset, offset, offset, length, length, alignment
            )
        return struct.pack(order + "8I", kind, offset, offset, offset, length, length, flags, alignment)

    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    main = struct.pack(
        order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"),
        *(3, machine, 1, 0, head, 0, 0, head, phdr, number, 0, 0, 0),
    )
    headers = header(1, 6, 0, total, align) + header(2, 6, start, len(entries) * 2 * word, word)
    if stack is not None:
        headers += header(0x6474E551, stack, 0, 0, 16)
    if notes:
        headers += header(4, 4, where["notes"], len(notes), 8)
    return ident + main + headers + bytes(body)
