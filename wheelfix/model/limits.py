"""How much is read before an input is refused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on hostile inputs; every wheel of the package index that was looked at stays far below each.

    Counts, and bytes where said. ``ratio`` is inflated to packed size, told only for members of at least
    ``ratio_from`` bytes: deflate reaches about 1000 on zeros, honest device code about 20.
    """

    # Of an archive.
    members: int = 100_000
    name_length: int = 4096  # bytes
    member: int = 16 << 30  # bytes
    total: int = 64 << 30  # bytes of all members together
    ratio: int = 200
    ratio_from: int = 32 << 20  # bytes
    metadata: int = 64 << 20  # bytes of METADATA, WHEEL and RECORD, each

    # Of an ELF object.
    held: int = 1 << 30  # bytes of it that are kept in memory while it is read
    segments: int = 512
    sections: int = 200_000
    dynamic: int = 4_096  # entries of the dynamic segment
    versions: int = 16_384  # entries of verneed and verdef together
    symbols: int = 2 << 20
    string: int = 1 << 17  # bytes of one string of the dynamic string table
    names: int = 1 << 28  # bytes of all symbol names together
    notes: int = 1 << 20  # bytes of one note segment
    local_symbols: int = 100_000  # entries of .symtab; a larger one is not looked at

    # Of a policy.
    policy: int = 1 << 20  # bytes of one file
