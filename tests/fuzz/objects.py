"""Mutated ELF objects: every header field, every table that the dynamic segment names, then any byte."""

from __future__ import annotations

import random
import struct
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from tests.elf.conftest import make_elf
from tests.fuzz.numbers import noise, number, put, shape

_SOURCE = """
#include <dlfcn.h>
#include <string.h>
extern int other(int); extern int versioned_one(void);
__thread int local = 3; int global_one = 4; static int hidden(int x) { return x + 1; }
static int pick(void) { return 1; } int (*chosen(void))(void) { return pick; }
__asm__(".symver old_one,both@V1"); __asm__(".symver new_one,both@@V2");
int old_one(void) { return 1; } int new_one(void) { return 2; }
int f(int x) { return other(x) + hidden(x) + local + (dlopen("libopened.so.1", 2) != 0) + (int)strlen("ab"); }
void *PyInit_x(void) { return &global_one; }
"""
_VERSIONS = "V1 { global: f; both; PyInit_x; global_one; chosen; }; V2 { local: hidden; } V1;"


@lru_cache(maxsize=1)
def seeds() -> tuple[bytes, ...]:
    """Whole objects to start from: of both classes and byte orders, by three linkers, of every layout."""
    made = [
        make_elf(bits, order, machine, needed=("liba.so", "libb.so.1"), soname="libs.so", **tables)  # type: ignore[arg-type]
        for bits, order, machine in (
            (64, "<", 62),
            (32, "<", 3),
            (64, ">", 22),
            (32, ">", 20),
            (64, "<", 183),
        )
        for tables in (
            {},
            {
                "symbols": (("wanted", 0x12, 0), ("given", 0x12, 7), ("unique", 0xA1, 7)),
                "versym": (0, 2, 1, 0x8003),
                "verneed": (("liba.so", (("V1", 0, 2),)), ("libb.so.1", (("V2", 0, 3), ("V3", 2, 4)))),
                "relocations": ((1, 6), (2, 1)),
                "plt": ((1, 7),),
            },
        )
    ]
    with tempfile.TemporaryDirectory() as folder:
        source, script = Path(folder, "x.c"), Path(folder, "map")
        source.write_text(_SOURCE)
        script.write_text(_VERSIONS)
        for number_, flags in enumerate(
            (
                ("-Wl,--hash-style=both", "-g"),
                ("-Wl,--hash-style=gnu", "-s", "-Wl,-rpath,$ORIGIN/../lib", "-Wl,-soname,libx.so"),
                (
                    "-Wl,--hash-style=sysv",
                    "-Wl,-z,noseparate-code",
                    "-Wl,--disable-new-dtags,-rpath,/a:$ORIGIN",
                ),
                ("-fuse-ld=gold",),
                ("-fuse-ld=lld", "-Wl,-z,max-page-size=0x10000"),
            )
        ):
            target = Path(folder, f"{number_}.so")
            command = ["gcc", "-shared", "-fPIC", "-w", f"-Wl,--version-script={script}", str(source), "-ldl"]
            subprocess.run([*command, *flags, "-o", str(target)], check=True, capture_output=True)
            made.append(target.read_bytes())
    code = sorted((Path(__file__).parents[1] / "elf" / "device_code").glob("*.so"))
    return (*made, *(p.read_bytes() for p in code))


def mutated(rng: random.Random) -> bytes:
    """One object, changed in one to four ways."""
    data = bytearray(rng.choice(seeds()))
    for _ in range(rng.choice((1, 1, 2, 4))):
        if len(data) < 64:
            break
        rng.choice(
            (_ident, _header, _program_headers, _sections, _dynamic, _dynamic, _tables, _tables, noise, shape)
        )(rng, data)
    if rng.random() < 0.03:
        data += rng.choice(seeds())
    return bytes(data)


def _form(data: bytearray) -> tuple[bool, str]:
    return data[4] == 2, ">" if data[5] == 2 else "<"


def _ident(rng: random.Random, data: bytearray) -> None:
    data[rng.randrange(4, 16)] = rng.choice((0, 1, 2, 3, 255))


def _header(rng: random.Random, data: bytearray) -> None:
    wide, order = _form(data)
    fields = (
        (
            (16, 2),
            (18, 2),
            (20, 4),
            (24, 8),
            (32, 8),
            (40, 8),
            (48, 4),
            (52, 2),
            (54, 2),
            (56, 2),
            (58, 2),
            (60, 2),
            (62, 2),
        )
        if wide
        else (
            (16, 2),
            (18, 2),
            (24, 4),
            (28, 4),
            (32, 4),
            (40, 2),
            (42, 2),
            (44, 2),
            (46, 2),
            (48, 2),
            (50, 2),
        )
    )
    at, width = rng.choice(fields)
    put(data, at, width, number(rng, len(data)), order)


def _table(
    data: bytearray, at: tuple[int, int], sizes: tuple[int, int], count_at: tuple[int, int]
) -> tuple[int, int, int]:
    """Offset, entry size and number of entries of the program or section headers."""
    wide, order = _form(data)
    start = struct.unpack_from(order + ("Q" if wide else "I"), data, at[not wide])[0]
    count = struct.unpack_from(order + "H", data, count_at[not wide])[0]
    return start, sizes[not wide], count


def _entry(rng: random.Random, data: bytearray, start: int, size: int, count: int) -> None:
    _, order = _form(data)
    if count and start + size * count <= len(data):
        width = rng.choice((4, 8) if size >= 56 else (4,))
        at = start + size * rng.randrange(count) + rng.randrange(size // width) * width
        put(data, at, width, number(rng, len(data)), order)


def _program_headers(rng: random.Random, data: bytearray) -> None:
    _entry(rng, data, *_table(data, (32, 28), (56, 32), (56, 44)))


def _sections(rng: random.Random, data: bytearray) -> None:
    _entry(rng, data, *_table(data, (40, 32), (64, 40), (60, 48)))


def _entries(data: bytearray) -> list[tuple[int, int, int]]:
    """The dynamic entries: offset, tag and value."""
    wide, order = _form(data)
    start, size, count = _table(data, (32, 28), (56, 32), (56, 44))
    for at in range(start, min(start + size * count, len(data) - size + 1), size):
        if struct.unpack_from(order + "I", data, at)[0] == 2:
            form, where = ("Q", at + 8) if wide else ("I", at + 4)
            offset = struct.unpack_from(order + form, data, where)[0]
            length = struct.unpack_from(order + form, data, where + (24 if wide else 12))[0]
            pair = order + ("QQ" if wide else "II")
            step = struct.calcsize(pair)
            end = min(offset + length, len(data) - step + 1)
            return [(o, *struct.unpack_from(pair, data, o)) for o in range(offset, end, step)][:64]
    return []


def _dynamic(rng: random.Random, data: bytearray) -> None:
    entries = _entries(data)
    if not entries:
        return
    wide, order = _form(data)
    width = 8 if wide else 4
    at, _, _ = rng.choice(entries)
    kind = rng.randrange(3)
    if kind == 0:
        put(data, at + width, width, number(rng, len(data)), order)
    elif kind == 1:
        put(
            data,
            at,
            width,
            rng.choice((0, 1, 4, 5, 6, 7, 10, 14, 15, 23, 29, 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFE)),
            order,
        )
    else:
        put(data, at + width, width, rng.choice(entries)[2], order)


def _tables(rng: random.Random, data: bytearray) -> None:
    """A number in what DT_HASH, DT_GNU_HASH, DT_SYMTAB, DT_VERNEED, ... point at (addresses taken as offsets)."""
    entries = [
        e
        for e in _entries(data)
        if e[1] in (4, 5, 6, 7, 17, 23, 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFE)
    ]
    if entries:
        _, order = _form(data)
        width = rng.choice((1, 2, 4, 4, 8))
        at = (
            rng.choice(entries)[2]
            + rng.choice((0, 0, rng.randrange(64), rng.randrange(1024))) // width * width
        )
        value = rng.choice((number(rng, len(data)), 0, 1, -1, rng.randrange(64)))
        put(data, at, width, value, order)
