"""Device code inside an object: NVIDIA's fat binaries and AMD's offload bundles, by their headers alone.

NVIDIA publishes no description of the format; the layout below was measured on objects that nvcc 13.0
made (``-gencode`` combinations, every ``--compress-mode``, relocatable device code, LTO) and agrees with
cuobjdump on them. A section is a row of fat binaries, each a 16-byte header (magic, version, header size,
bytes that follow) and a row of entries:

    0  u16 kind (1 PTX, 2 cubin, 8 LTO-IR)      28  u32 architecture (90 for sm_90)
    2  u16 version (0x101)                      40  u64 flags
    4  u32 size of this header                  56  u64 size before compression, 0 if none
    8  u64 size of the payload

Flags: 0x2000 compressed with LZ4, 0x8000 with Zstandard; 0x100000 architecture-specific (``sm_90a``),
0x200000 family-specific (``sm_100f``).

AMD's bundle is described by LLVM's ClangOffloadBundler: a magic text, the number of entries, and for
each its offset, size, the length of its target's name and the name. Compressed bundles (``CCOB``) name no
targets outside the compressed data and are counted as target "unknown".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Literal

from wheelfix.elf.layout import Buffer
from wheelfix.model.elf import DeviceCode

NVIDIA_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
AMD_SECTION = ".hip_fatbin"

MAGIC = 0xBA55ED50  # of a fat binary
HEADER, ENTRY = 16, 64  # bytes of a fat binary's header; the least of an entry's
_KINDS: dict[int, tuple[Literal["cubin", "ptx", "lto"], str]] = {
    1: ("ptx", "compute_"),
    2: ("cubin", "sm_"),
    8: ("lto", "lto_"),
}
_COMPRESSED = 0x2000 | 0x8000
_SPECIFIC, _FAMILY = 0x100000, 0x200000
_BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_BUNDLE_COMPRESSED = b"CCOB"


def nvidia_code(section: Buffer) -> tuple[DeviceCode, ...]:
    """What a ``.nv_fatbin`` or ``__nv_relfatbin`` section holds, one row for each kind and architecture.

    Entries of an unknown kind are passed over, and a truncated or foreign rest ends the walk: the tool
    says what it could read and nothing about the rest.
    """
    return _sum(_nvidia_entries(section))


def amd_code(section: Buffer) -> tuple[DeviceCode, ...]:
    """What a ``.hip_fatbin`` section holds: one row for each target (``gfx942:sramecc+:xnack-``)."""
    return _sum(_amd_entries(section))


def merged(*groups: tuple[DeviceCode, ...]) -> tuple[DeviceCode, ...]:
    """The rows of several sections as one table."""
    return _sum(row for group in groups for row in group)


def _sum(rows: Iterator[DeviceCode]) -> tuple[DeviceCode, ...]:
    total: dict[tuple[str, str], DeviceCode] = {}
    for row in rows:
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


def _nvidia_entries(data: Buffer) -> Iterator[DeviceCode]:
    offset, end = 0, len(data)
    while offset + HEADER <= end:
        magic, _, header, size = struct.unpack("<IHHQ", data[offset : offset + HEADER])
        if magic != MAGIC:
            # Padding between fat binaries, which are aligned to 8 bytes.
            if any(data[offset : offset + 8]):
                return
            offset += 8
            continue
        if header < HEADER:
            return
        limit = min(offset + header + size, end)
        entry = offset + header
        while entry + ENTRY <= limit:
            head = data[entry : entry + ENTRY]
            kind, _, length, payload = struct.unpack_from("<HHIQ", head)
            (number,) = struct.unpack_from("<I", head, 28)
            (flags,) = struct.unpack_from("<Q", head, 40)
            if length < ENTRY:
                return
            if kind in _KINDS and entry + length + payload <= limit:
                name, prefix = _KINDS[kind]
                suffix = "a" if flags & _SPECIFIC else "f" if flags & _FAMILY else ""
                yield DeviceCode(name, f"{prefix}{number}{suffix}", 1, payload, bool(flags & _COMPRESSED))
            entry += length + payload
        offset += header + size


def _amd_entries(data: Buffer) -> Iterator[DeviceCode]:
    offset = 0
    blob = bytes(data[:])
    while True:
        plain = blob.find(_BUNDLE_MAGIC, offset)
        packed = blob.find(_BUNDLE_COMPRESSED, offset)
        if plain < 0 and packed < 0:
            return
        if plain < 0 or 0 <= packed < plain:
            yield DeviceCode("hip", "unknown", 1, 0, True)
            offset = packed + len(_BUNDLE_COMPRESSED)
            continue
        cursor = plain + len(_BUNDLE_MAGIC)
        offset = cursor
        if cursor + 8 > len(blob):
            return
        (count,) = struct.unpack_from("<Q", blob, cursor)
        cursor += 8
        for _ in range(min(count, 1024)):
            if cursor + 24 > len(blob):
                return
            _, size, length = struct.unpack_from("<QQQ", blob, cursor)
            target = blob[cursor + 24 : cursor + 24 + min(length, 256)].decode("ascii", "replace")
            cursor += 24 + length
            kind, _, name = target.rpartition("--")
            if kind.startswith("hip"):
                yield DeviceCode("hip", name, 1, size)
