"""How much of an archive is read before it is refused, and why a file is no wheel at all."""

from __future__ import annotations

from dataclasses import dataclass


class Unreadable(Exception):
    """The input cannot be read as a wheel at all; the text says why, for people (exit status 3)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on hostile archives, wide enough for every wheel on the package index.

    Sizes are bytes. ``ratio`` is inflated to packed size, told only for members of at least
    ``ratio_from`` bytes: deflate reaches about 1000 on zeros, honest device code about 20.
    """

    members: int = 100_000
    name_length: int = 4096
    member: int = 16 << 30
    total: int = 64 << 30
    ratio: int = 200
    ratio_from: int = 32 << 20
    metadata: int = 64 << 20  # METADATA, WHEEL and RECORD, each
