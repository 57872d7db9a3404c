"""Device code of AMD inside an object: the offload bundles of HIP, by their headers alone.

LLVM's ClangOffloadBundler describes them. A bundle is a magic text, the number of entries, and for each its
offset, its size, the length of its name and the name, ``<kind>-<triple>-<target>`` with a triple of four
parts of which the last may be empty: ``hipv4-amdgcn-amd-amdhsa--gfx942:xnack-``. A compressed bundle
(``--offload-compress``) is a header (``CCOB``, version, method, sizes, hash) and the bundle.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from wheelfix.elf.fatbin import merged
from wheelfix.elf.layout import Buffer
from wheelfix.model.elf import DeviceCode

AMD_SECTION = ".hip_fatbin"

_PLAIN = b"__CLANG_OFFLOAD_BUNDLE__"
_COMPRESSED = b"CCOB"
# version -> the fields behind version and method: size of the file from version 2 on, size of the bundle, hash
_FIELDS = {1: struct.Struct("<IQ"), 2: struct.Struct("<IIQ"), 3: struct.Struct("<QQQ")}
_ZLIB, _ZSTD = 0, 1  # llvm::compression::Format
_HEAD = 1 << 16  # bytes of a bundle that hold all names: a hundred targets need 8,000
_PACKED = 1 << 20  # compressed bytes that hold as many
_MOST = 1 << 14  # bundles, and entries of one, that are looked at
_PAGE = 4096


def amd_code(section: Buffer) -> tuple[DeviceCode, ...]:
    """What a ``.hip_fatbin`` section holds: one row for each target (``gfx942:sramecc+:xnack-``).

    In a compressed bundle each target has the share of the compressed size that it has of the code.
    Where the names cannot be had (a method or version nobody knows, a damaged bundle), the target is
    "unknown". What is cut off is passed over.
    """
    return merged(_bundles(section))


def _bundles(data: Buffer) -> Iterator[DeviceCode]:
    at = _next(data, 0)
    for _ in range(_MOST):
        if at is None:
            return
        size, rows = _plain(data, at) if data[at : at + len(_PLAIN)] == _PLAIN else _compressed(data, at)
        yield from rows
        at = _next(data, at + max(size, len(_COMPRESSED)))


def _next(data: Buffer, at: int) -> int | None:
    """Where the next bundle starts. Compilers align them to pages (clang's HIPCodeObjectAlign).

    The magic text between pages is none: Zstandard leaves it readable inside what it has compressed.
    """
    for page in range(-(-at // _PAGE) * _PAGE, len(data), _PAGE):
        if data[page : page + len(_PLAIN)].startswith((_PLAIN, _COMPRESSED)):
            return page
    return None


def _plain(data: Buffer, at: int) -> tuple[int, list[DeviceCode]]:
    """Size and rows of a bundle; its entries' offsets count from its start."""
    entries = list(_entries(data[at : at + _HEAD]))
    inside = [(o, s, name) for o, s, name in entries if at + o + s <= len(data)]
    rows = [DeviceCode("hip", target, 1, s) for _, s, name in inside if (target := _target(name)) is not None]
    return max((o + s for o, s, _ in inside), default=0), rows


def _compressed(data: Buffer, at: int) -> tuple[int, list[DeviceCode]]:
    """Size and rows of a compressed bundle; a size of 0 where its header does not tell one."""
    head = data[at : at + 32]
    version, method = struct.unpack_from("<HH", head, 4) if len(head) == 32 else (0, 0)
    if version not in _FIELDS:
        return 0, [DeviceCode("hip", "unknown", 1, 0, True)] if version else []
    *sizes, _, _ = _FIELDS[version].unpack_from(head, 8)
    start = at + 8 + _FIELDS[version].size
    following = None if sizes else _next(data, start)
    end = at + sizes[0] if sizes else len(data) if following is None else following
    if not start < end <= len(data):
        return 0, []  # cut off, or four letters in something else
    entries = list(_entries(_inflated(data[start : min(end, start + _PACKED)], method)))
    targets = [(target, size) for _, size, name in entries if (target := _target(name)) is not None]
    whole = max(1, sum(size for _, size in targets))
    rows = [DeviceCode("hip", name, 1, (end - start) * size // whole, True) for name, size in targets]
    return end - at, rows or [DeviceCode("hip", "unknown", 1, end - start, True)]


def _inflated(packed: bytes, method: int) -> bytes:
    """The first bytes of a compressed bundle, none where they cannot be had."""
    import sys

    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    try:
        if method == _ZLIB:
            return zlib.decompressobj().decompress(packed, _HEAD)
        if method == _ZSTD:
            head: bytes = zstd.ZstdDecompressor().decompress(packed, _HEAD)
            return head
    except (zlib.error, zstd.ZstdError):
        pass
    return b""


def _entries(head: bytes) -> Iterator[tuple[int, int, str]]:
    """Offset, size and name of each entry of a bundle that starts with ``head``."""
    if not head.startswith(_PLAIN) or len(head) < len(_PLAIN) + 8:
        return
    (count,) = struct.unpack_from("<Q", head, len(_PLAIN))
    at = len(_PLAIN) + 8
    for _ in range(min(count, _MOST)):
        if at + 24 > len(head):
            return
        offset, size, length = struct.unpack_from("<QQQ", head, at)
        at += 24
        if at + length > len(head):
            return
        yield offset, size, head[at : at + length].decode("ascii", "replace")
        at += length


def _target(name: str) -> str | None:
    """The GPU that an entry is for; None for the host's entry, which is empty, and for OpenMP's."""
    kind, *rest = name.split("-", 5)
    # LLVM before 13 left out the fourth part of the triple.
    return rest[-1] if kind.startswith("hip") and len(rest) >= 4 and rest[-1] else None
