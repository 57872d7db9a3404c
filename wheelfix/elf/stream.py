"""One ELF object as its bytes pass by: what the reader can need is kept, the rest is let go.

Most of a large object is machine code and device code, which nobody here reads. Where they lie is known
early: the program headers stand at the front of the file, and every entry of a fat binary tells where the
next one is. What is kept beyond need costs memory; what is let go and then asked for raises ``NotHeld``,
and the object is read again, whole: a guess decides how fast an answer comes, never which.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable

from wheelfix.elf.trail import Trail
from wheelfix.model.elf import PF_X, PT_LOAD
from wheelfix.model.limits import Limits

#: Objects up to this size, in bytes, are kept whole: nothing is saved by looking for what could go.
SMALL = 4 << 20
_UNMAPPED = (
    32 << 20
)  # bytes behind the segments that are kept: symbols and strings that are no debugging information
_NAMES = b".shstrtab\0"  # stands in the table of the sections' names


class NotHeld(Exception):
    """Bytes were asked for that were let go as they passed."""


class Sparse:
    """Parts of a file by their offsets; reads like ``bytes`` where they are held.

    ``most`` is the limit where it was passed and nothing is held for that reason.
    """

    __slots__ = ("_parts", "_size", "_starts", "most")

    def __init__(self, size: int, parts: list[tuple[int, bytes]], most: int | None = None) -> None:
        self._size = size
        self.most = most
        self._starts = [start for start, _ in parts]
        self._parts = [part for _, part in parts]

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, where: slice) -> bytes:
        """The bytes of a slice without step. Raises ``NotHeld`` where they are not all there."""
        at, stop, _ = where.indices(self._size)
        found = []
        while at < stop:
            index = bisect_right(self._starts, at) - 1
            begin = at - self._starts[index] if index >= 0 else 0
            part = self._parts[index][begin : begin + stop - at] if index >= 0 else b""
            if not part:
                raise NotHeld
            found.append(part)
            at += len(part)
        return found[0] if len(found) == 1 else b"".join(found)


class Stream:
    """Takes the pieces of one object in order; ``data()`` is then what ``wheelfix.elf.read`` reads."""

    def __init__(self, size: int, *, whole: bool = False, limits: Limits | None = None) -> None:
        self._size = size
        self._room = self._most = (limits or Limits()).held
        self._whole = whole or size <= SMALL
        self._at = 0
        self._parts: list[tuple[int, bytes]] = []
        self._unread: tuple[tuple[int, int], ...] = ()
        self._unmapped: tuple[tuple[int, int], ...] = ()
        self._trail = Trail()

    def feed(self, piece: bytes) -> None:
        """The next bytes of the object; the first piece should hold its program headers."""
        start, self._at = self._at, self._at + len(piece)
        if self._room < 0:
            return
        before = len(self._parts)
        self._take(start, piece)
        self._room -= sum(len(part) for _, part in self._parts[before:])
        if self._room < 0:
            self._parts.clear()

    def _take(self, start: int, piece: bytes) -> None:
        if self._whole:
            self._parts.append((start, piece))
            return
        if start == 0:
            self._unread, self._unmapped = _unneeded(piece, self._size)
        if _inside(start, self._at, self._unread):
            return
        if _inside(start, self._at, self._unmapped) and _NAMES not in piece:
            return
        self._parts += self._trail.feed(start, piece)

    def data(self) -> bytes | Sparse:
        """Everything, or what was kept of it."""
        if self._room < 0:
            return Sparse(self._at, [], self._most)
        if self._whole:
            parts = [part for _, part in self._parts]
            return parts[0] if len(parts) == 1 else b"".join(parts)
        return Sparse(self._at, self._parts)


def _inside(start: int, end: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= start and end <= last for first, last in ranges)


def _unneeded(head: bytes, size: int) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """File ranges of code alone, and of much that no segment maps; none where the headers are not in ``head``.

    Code alone is an executable PT_LOAD behind another one, which then holds the tables of the dynamic
    segment (``-z separate-code``); in older layouts one segment holds both. What is not mapped is .symtab
    and debugging information, in which only the names of the sections are needed, and their headers.
    """
    if head[4:6] != b"\x02\x01" or len(head) < 64:  # large objects are 64-bit and little-endian
        return (), ()
    phoff, shoff = struct.unpack_from("<QQ", head, 32)
    entry, count, _, sections = struct.unpack_from("<4H", head, 54)
    if entry != 56 or phoff + count * entry > len(head):
        return (), ()
    loads = sorted(
        (offset, offset + filesz, flags)
        for kind, flags, offset, _, _, filesz, _, _ in struct.iter_unpack(
            "<IIQQQQQQ", head[phoff : phoff + count * entry]
        )
        if kind == PT_LOAD
    )
    code = tuple((start, end) for start, end, flags in loads[1:] if flags & PF_X)
    gaps: list[tuple[int, int]] = []
    mapped = 0
    for start, end in [*((start, end) for start, end, _ in loads), (size, size)]:
        if mapped < shoff < start:
            gaps.append((mapped, shoff))
            mapped = shoff + 64 * sections
        gaps.append((mapped, start))
        mapped = max(mapped, end)
    return code, tuple((start, end) for start, end in gaps if end - start > _UNMAPPED)
