"""Device code of NVIDIA inside an object: its fat binaries, by their headers alone.

NVIDIA publishes no description of the format; the layout below was measured on objects that nvcc 13.0
made (``-gencode`` combinations, every ``--compress-mode``, relocatable device code, LTO) and agrees with
cuobjdump on them and on wheels (``python -m tests.oracle.cuda``). The names of the kinds that nvcc 13.0
does not make, and the flags of compression, are what cuobjdump 13.5 takes them for. A section is a row of
fat binaries, each a 16-byte header (magic, version, header size, bytes that follow) and a row of entries:

    0  u16 kind, see ``_KINDS``             28  u32 architecture (90 for sm_90)
    2  u16 version (0x101)                  40  u64 flags
    4  u32 size of this header              56  u64 size before compression, 0 if none
    8  u64 size of the payload

Flags: 0x1000 to 0x8000 say how the payload is compressed (0x2000 LZ4, 0x8000 Zstandard); 0x100000
architecture-specific (``sm_90a``), 0x200000 family-specific (``sm_100f``).

``.nvFatBinSegment`` holds the addresses by which a program registers these fat binaries, and no device code.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal

from wheelfix.elf.layout import Buffer
from wheelfix.model.elf import DeviceCode

#: Whole programs, and code that a device linker has linked; what it links (``-rdc=true``) is in the second.
NVIDIA_SECTIONS = (".nv_fatbin", "__nv_relfatbin")

MAGIC = 0xBA55ED50  # of a fat binary
HEADER, ENTRY = 16, 64  # bytes of a fat binary's header; the least of an entry's
_KINDS: dict[int, tuple[Literal["cubin", "ptx", "lto", "tile", "other"], str]] = {
    0x01: ("ptx", "compute_"),
    0x02: ("cubin", "sm_"),  # an ELF object
    0x04: ("cubin", "sm_"),  # its form before CUDA 3
    0x08: ("lto", "lto_"),  # LTO-IR, which cuobjdump calls nvvm
    0x40: ("ptx", "compute_"),  # relocatable
    0x80: ("tile", "sm_"),  # Tile IR
}
_COMPRESSED = 0xF000
_SPECIFIC, _FAMILY = 0x100000, 0x200000
_MOST = 1 << 20  # entries, and fat binaries, that are looked at; libtorch_cuda.so has 3,000 and 475


def nvidia_code(section: Buffer) -> tuple[DeviceCode, ...]:
    """What a ``.nv_fatbin`` or ``__nv_relfatbin`` section holds, one row for each kind and architecture.

    Entries of an unknown kind take room in the wheel like any other and are "other". An entry that is cut
    off or makes no sense ends its fat binary, and what is no fat binary the walk: the tool says what it
    could read and nothing about the rest.
    """
    return merged(islice(_entries(section), _MOST))


def merged(*groups: Iterable[DeviceCode]) -> tuple[DeviceCode, ...]:
    """All rows as one table, in the order of kind and architecture."""
    total: dict[tuple[str, str], DeviceCode] = {}
    for group in groups:
        for row in group:
            seen = total.get((row.kind, row.architecture))
            if seen is not None:
                row = row._replace(
                    entries=seen.entries + row.entries,
                    size=seen.size + row.size,
                    compressed=seen.compressed or row.compressed,
                )
            total[row.kind, row.architecture] = row
    return tuple(sorted(total.values(), key=lambda r: (r.kind, _number(r.architecture), r.architecture)))


def _number(architecture: str) -> int:
    digits = "".join(c for c in architecture.partition("_")[2] if c.isdigit())
    return int(digits) if digits else 0


def _entries(data: Buffer) -> Iterator[DeviceCode]:
    offset, end = 0, len(data)
    for _ in range(_MOST):
        if offset + HEADER > end:
            return
        magic, _, header, size = struct.unpack("<IHHQ", data[offset : offset + HEADER])
        if magic == MAGIC and header >= HEADER:
            yield from _fat_binary(data, offset + header, min(offset + header + size, end))
            offset += header + size
        elif any(data[offset : offset + 8]):
            return
        else:
            offset += 8  # padding between fat binaries, which are aligned to 8 bytes


def _fat_binary(data: Buffer, entry: int, limit: int) -> Iterator[DeviceCode]:
    while entry + ENTRY <= limit:
        head = data[entry : entry + ENTRY]
        code, _, length, payload = struct.unpack_from("<HHIQ", head)
        (number,) = struct.unpack_from("<I", head, 28)
        (flags,) = struct.unpack_from("<Q", head, 40)
        if length < ENTRY or entry + length + payload > limit:
            return
        kind, prefix = _KINDS.get(code, ("other", "sm_"))
        suffix = "a" if flags & _SPECIFIC else "f" if flags & _FAMILY else ""
        yield DeviceCode(kind, f"{prefix}{number}{suffix}", 1, payload, bool(flags & _COMPRESSED))
        entry += length + payload
