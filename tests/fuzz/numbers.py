"""Changes that fit any bytes: the numbers at which parsers break, cuts, copies and noise."""

from __future__ import annotations

import random
import struct

_NUMBERS = (
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    0x7F,
    0x80,
    0xFF,
    0x100,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x10000,
    1 << 20,
    1 << 24,
)
_LARGE = (
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFE,
    0xFFFFFFFF,
    1 << 32,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
)


def number(rng: random.Random, size: int) -> int:
    """A number worth trying in a file of ``size`` bytes."""
    kind = rng.randrange(5)
    if kind == 0:
        return rng.choice(_NUMBERS)
    if kind == 1:
        return rng.choice(_LARGE)
    if kind == 2:
        return max(0, size + rng.randrange(-64, 65))
    if kind == 3:
        return rng.randrange(size + 1)
    return rng.getrandbits(rng.choice((8, 16, 32, 64)))


def put(data: bytearray, at: int, width: int, value: int, order: str = "<") -> None:
    """Write an unsigned number of ``width`` bytes where it fits."""
    if 0 <= at <= len(data) - width:
        form = {1: "B", 2: "H", 4: "I", 8: "Q"}[width]
        struct.pack_into(order + form, data, at, value & ((1 << (8 * width)) - 1))


def noise(rng: random.Random, data: bytearray) -> None:
    """A few bytes, bits or aligned numbers, anywhere."""
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(max(1, len(data)))
        if rng.random() < 0.3 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        else:
            width = rng.choice((1, 2, 4, 8))
            put(data, at // width * width, width, number(rng, len(data)), rng.choice("<>"))


def shape(rng: random.Random, data: bytearray) -> None:
    """Cut, lengthened, a piece zeroed, copied over another or taken out."""
    start = rng.randrange(max(1, len(data)))
    length = min(rng.choice((1, 8, 64, 512, 4096)), len(data) - start)
    kind = rng.randrange(6)
    if kind == 0:
        del data[start:]
    elif kind == 1:
        data += rng.randbytes(rng.choice((1, 16, 4096)))
    elif kind == 2:
        data[start : start + length] = bytes(length)
    elif kind == 3:
        other = rng.randrange(max(1, len(data)))
        data[other : other + length] = data[start : start + length]
    elif kind == 4:
        del data[start : start + length]
    else:
        data[start:start] = data[start : start + length]
