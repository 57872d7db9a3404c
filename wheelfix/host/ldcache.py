"""What /etc/ld.so.cache tells the loader, without running ldconfig.

The layout is that of glibc's sysdeps/generic/dl-cache.h: the "new" format, alone or behind the old one. The file
is read with every offset checked: a damaged one gives what can be read of it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

CACHE = Path("/etc/ld.so.cache")
_NEW = b"glibc-ld.so.cache1.1"
_OLD = b"ld.so-1.7.0\0"
_HEADER = struct.Struct(
    "=20sIIB3xI12x"
)  # magic, entries, size of strings, byte order, offset of the extensions
_ENTRY = struct.Struct("=iIIIQ")  # flags, name, path, OS version, hardware capabilities
_EXTENSION_MAGIC, _HWCAPS = 0xEAA42174, 1
_SECTION = struct.Struct("=IIII")  # tag, flags, offset, size
_NAMED, _INDEX = 1 << 62, 0xFFFFFFFF  # DL_CACHE_HWCAP_EXTENSION: the entry is of a glibc-hwcaps subfolder
_TYPE_MASK, _ELF_LIBC6 = 0xFF, 3
# The upper byte of an entry's flags, by architecture (dl-cache.h, FLAG_*); i386 and old formats have none.
_FLAGS = {
    "x86_64": 0x0300,
    "i686": 0x0000,
    "aarch64": 0x0A00,
    "armv7l": 0x0900,
    "ppc64le": 0x0500,
    "ppc64": 0x0500,
    "s390x": 0x0400,
    "riscv64": 0x1000,
    "loongarch64": 0x1200,
}


def cached_libraries(
    arch: str, cache: Path = CACHE, subfolders: Sequence[str] = ()
) -> Mapping[str, tuple[str, ...]]:
    """Names of the cache for one architecture -> the paths of each, the loader's choice first.

    Of the entries for newer processors those of ``subfolders`` (``glibc-hwcaps/x86-64-v3``, the best first) come
    before the plain ones; others, and those with a legacy hardware capability mask, are left out. Empty where there
    is no cache, or none of this format.
    """
    try:
        data = cache.read_bytes()
    except OSError:
        return {}
    start = 0
    if data.startswith(_OLD):
        start = data.find(_NEW)
    if start < 0 or not data.startswith(_NEW, start) or len(data) < start + _HEADER.size:
        return {}
    _, count, _, _, extensions = _HEADER.unpack_from(data, start)
    names = _hwcaps(data, start, extensions)
    found: dict[str, list[tuple[int, str]]] = {}
    for index in range(count):
        at = start + _HEADER.size + index * _ENTRY.size
        if at + _ENTRY.size > len(data):
            break
        flags, key, value, _, hwcap = _ENTRY.unpack_from(data, at)
        if flags & _TYPE_MASK != _ELF_LIBC6 or flags & 0xFF00 != _FLAGS.get(arch, 0):
            continue
        rank = len(subfolders)
        if hwcap:
            position = hwcap & _INDEX
            name = names[position] if hwcap & _NAMED and position < len(names) else None
            if f"glibc-hwcaps/{name}" not in subfolders:
                continue
            rank = subfolders.index(f"glibc-hwcaps/{name}")
        name, path = _text(data, start + key), _text(data, start + value)
        if name and path.startswith("/"):
            found.setdefault(name, []).append((rank, path))
    return {
        name: tuple(path for _, path in sorted(paths, key=lambda p: p[0])) for name, paths in found.items()
    }


def _hwcaps(data: bytes, start: int, offset: int) -> list[str]:
    """The names of the glibc-hwcaps subfolders that entries refer to (struct cache_extension, glibc 2.33 and later).

    The offsets of extensions count from the start of the file, those of strings from that of the new format.
    """
    if not offset or len(data) < offset + 8:
        return []
    magic, count = struct.unpack_from("=II", data, offset)
    if magic != _EXTENSION_MAGIC:
        return []
    end = min(offset + 8 + count * _SECTION.size, len(data) - _SECTION.size + 1)
    for place in range(offset + 8, end, _SECTION.size):
        tag, _, begin, size = _SECTION.unpack_from(data, place)
        if tag == _HWCAPS and begin + size <= len(data):
            offsets = struct.unpack_from(f"={size // 4}I", data, begin)
            return [_text(data, start + o) for o in offsets]
    return []


def _text(data: bytes, offset: int) -> str:
    end = data.find(b"\0", offset, offset + 4096)
    return data[offset:end].decode("utf-8", "surrogateescape") if 0 <= offset < end else ""
