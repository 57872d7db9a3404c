"""What /etc/ld.so.cache tells the loader, without running ldconfig.

The layout is that of glibc's sysdeps/generic/dl-cache.h: the "new" format, alone or behind the old one. The file
is read with every offset checked: a damaged one gives what can be read of it.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

CACHE = Path("/etc/ld.so.cache")
_NEW = b"glibc-ld.so.cache1.1"
_OLD = b"ld.so-1.7.0\0"
_HEADER = 48  # struct cache_file_new without its entries
_ENTRY = struct.Struct("<iIIIQ")
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


def cached_libraries(arch: str, cache: Path = CACHE) -> Mapping[str, tuple[str, ...]]:
    """Names of the cache for one architecture -> the paths of each, the loader's choice first.

    Entries for newer processors (glibc-hwcaps, or a hardware capability mask) are left out. Empty where there is
    no cache, or none of this format.
    """
    try:
        data = cache.read_bytes()
    except OSError:
        return {}
    start = 0
    if data.startswith(_OLD):
        start = data.find(_NEW)
    if start < 0 or not data.startswith(_NEW, start) or len(data) < start + _HEADER:
        return {}
    (count,) = struct.unpack_from("<I", data, start + len(_NEW))
    found: dict[str, tuple[str, ...]] = {}
    for index in range(count):
        at = start + _HEADER + index * _ENTRY.size
        if at + _ENTRY.size > len(data):
            break
        flags, key, value, _, hwcap = _ENTRY.unpack_from(data, at)
        if flags & _TYPE_MASK != _ELF_LIBC6 or flags & 0xFF00 != _FLAGS.get(arch, 0) or hwcap:
            continue
        name, path = _text(data, start + key), _text(data, start + value)
        if name and path.startswith("/"):
            found[name] = (*found.get(name, ()), path)
    return found


def _text(data: bytes, offset: int) -> str:
    end = data.find(b"\0", offset, offset + 4096)
    return data[offset:end].decode("utf-8", "surrogateescape") if 0 <= offset < end else ""
