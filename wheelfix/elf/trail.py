"""Follows NVIDIA's fat binaries through bytes that pass by, and keeps their headers alone.

Each entry's header tells where the next one is, so the payloads (four fifths of a CUDA library) need not
be looked at, nor searched. ``wheelfix.elf.fatbin`` tells the layout and reads what is kept here.
"""

from __future__ import annotations

import struct

from wheelfix.elf.fatbin import ENTRY, HEADER, MAGIC

_MAGIC = struct.pack("<I", MAGIC)
_FORM = struct.Struct("<IHHQ")


class Trail:
    """Where the next header is, while a row of fat binaries passes by; off the trail, looks for one."""

    __slots__ = ("_end", "_next", "_rest")

    def __init__(self) -> None:
        self._next = -1  # file offset of the next header; -1 off the trail
        self._end = -1  # where the fat binary ends whose entries pass by
        self._rest = b""  # bytes from ``_next`` on that were too few for a header

    def feed(self, start: int, piece: bytes) -> list[tuple[int, bytes]]:
        """What to keep of a piece that starts at ``start``: the headers in it, by their offsets, or all of it."""
        whole = self._next < 0
        if whole:
            self._next = self._end = _first(start, piece)
            if self._next < 0:
                return [(start, piece)]
        kept: list[tuple[int, bytes]] = []
        data, base = self._rest + piece, start - len(self._rest)
        self._rest = b""
        stop = start + len(piece)
        while self._next < stop:
            inside = self._next < self._end
            wanted = ENTRY if inside else HEADER
            head = data[self._next - base : self._next - base + wanted]
            if len(head) < wanted:
                self._rest = head
                break
            kept.append((self._next, head))
            self._next = self._after(head, inside)
            if self._next < 0:
                whole = True
                break
        return [*(k for k in kept if k[0] < start), (start, piece)] if whole else kept

    def _after(self, head: bytes, inside: bool) -> int:
        """Where the header behind this one is; -1 where this is none."""
        if inside:
            length, payload = struct.unpack_from("<IQ", head, 4)
            following = self._next + length + payload
            return following if length >= ENTRY and following + ENTRY <= self._end else self._end
        magic, _, header, size = _FORM.unpack_from(head)
        if magic != MAGIC:
            return self._next + 8 if not any(head[:8]) else -1  # padding between fat binaries
        if header < HEADER:
            return -1
        self._end = self._next + header + size
        return self._next + header if size >= ENTRY else self._end


def _first(start: int, piece: bytes) -> int:
    """Where a row of fat binaries starts in a piece, -1 where none does.

    The magic number alone also stands in programs that look for it.
    """
    at = piece.find(_MAGIC)
    while at >= 0:
        head = piece[at : at + HEADER]
        if len(head) == HEADER and (start + at) % 8 == 0 and _FORM.unpack(head)[1:3] == (1, HEADER):
            return start + at
        at = piece.find(_MAGIC, at + 1)
    return -1
