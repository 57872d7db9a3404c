"""What is kept of an object as it passes by gives the same facts as all of it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.elf.conftest import Compile
from wheelfix.elf import stream
from wheelfix.elf.fatbin import nvidia_code
from wheelfix.elf.read import read
from wheelfix.elf.stream import NotHeld, Sparse, Stream
from wheelfix.elf.trail import Trail

DEVICE_CODE = Path(__file__).parent / "device_code"
SOURCE = """
#include <dlfcn.h>
static int hidden_one(void) { return 1; }
int shown(void) { return hidden_one(); }
void *open_it(void) { return dlopen("libopened.so.3", RTLD_NOW); }
"""
LAYOUTS = {
    "code in a segment of its own": ["-Wl,-z,separate-code"],
    "code and tables in one segment": ["-Wl,-z,noseparate-code"],
    "lld": ["-fuse-ld=lld"],
    "gold": ["-fuse-ld=gold"],
    "debugging information": ["-g3", "-Wl,-z,separate-code"],
    "stripped": ["-s"],
    "old hash table": ["-Wl,--hash-style=sysv"],
}


@pytest.fixture(autouse=True)
def _nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SMALL", 0)


def passed(data: bytes, piece: int = 4096) -> bytes | Sparse:
    one = Stream(len(data))
    for start in range(0, len(data), piece):
        one.feed(data[start : start + piece])
    return one.data()


def held(kept: bytes | Sparse, start: int, stop: int) -> bool:
    try:
        return len(kept[start:stop]) == stop - start
    except NotHeld:
        return False


@pytest.mark.parametrize("flags", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("piece", [512, 4096, 1 << 18])
def test_what_is_kept_gives_the_facts_of_the_whole_object(
    compiled: Compile, flags: list[str], piece: int
) -> None:
    body = "".join(f"int pad{i}(int x) {{ return x * {i} + pad{i - 1}(x); }}\n" for i in range(1, 800))
    path = compiled("x.so", SOURCE + "int pad0(int x) { return x; }\n" + body, *flags, "-ldl")
    data = path.read_bytes()
    whole = read(data, name="x.so")
    assert whole.facts is not None
    assert "libopened.so.3" in whole.facts.library_names
    try:
        assert read(passed(data, piece), name="x.so") == whole
    except NotHeld:
        assert piece == 512, "the program headers or the sections' names did not fit into one piece"


def test_code_in_a_segment_of_its_own_is_let_go(compiled: Compile) -> None:
    body = "".join(f"int pad{i}(int x) {{ return x * {i}; }}\n" for i in range(4000))
    data = compiled("x.so", body, "-Wl,-z,separate-code").read_bytes()
    facts = read(data).facts
    assert facts is not None
    text = next(s for s in facts.sections if s.name == ".text")
    middle = text.offset + text.size // 2
    kept = passed(data)
    assert not held(kept, middle, middle + 1)
    assert sum(held(kept, at, at + 1) for at in range(0, len(data), 512)) < len(data) / 512


def test_debugging_information_is_let_go_and_the_names_of_the_sections_stay(
    compiled: Compile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "_UNMAPPED", 4096)
    body = "".join(
        f"struct s{i} {{ int a{i}; }} v{i}; int p{i}(void) {{ return v{i}.a{i}; }}\n" for i in range(999)
    )
    data = compiled("x.so", body, "-g3").read_bytes()
    whole = read(data).facts
    assert whole is not None
    info = next(s for s in whole.sections if s.name == ".debug_info")
    kept = passed(data)
    assert not held(kept, info.offset + 8192, info.offset + 8193)
    with pytest.raises(NotHeld):  # .symtab went with it; the object is then read again, whole
        read(kept)


@pytest.mark.parametrize("fixture", sorted(p.name for p in DEVICE_CODE.glob("*.so")))
@pytest.mark.parametrize("piece", [64, 1000, 4096])
def test_device_code_is_the_same_from_its_headers_alone(fixture: str, piece: int) -> None:
    data = (DEVICE_CODE / fixture).read_bytes()
    whole = read(data).facts
    assert whole is not None
    try:
        found = read(passed(data, piece)).facts
    except NotHeld:
        assert piece == 64
    else:
        assert found is not None
        assert found.device_code == whole.device_code


def fat_binary(*payloads: int) -> bytes:
    """A fat binary with one cubin for sm_80 of each size."""
    entries = b"".join(
        struct.pack("<HHIQ12xI8xQ16x", 2, 0x101, 64, size, 80, 0) + b"\xaa" * size for size in payloads
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


@given(
    payloads=st.lists(st.lists(st.sampled_from((0, 8, 72, 4096, 10_000)), max_size=4), max_size=4),
    before=st.integers(0, 40),
    padding=st.sampled_from((0, 8, 24)),
    piece=st.sampled_from((16, 24, 100, 4096)),
)
def test_the_trail_keeps_every_header_that_a_reader_asks_for(
    payloads: Sequence[Sequence[int]], before: int, padding: int, piece: int
) -> None:
    row = b"".join(fat_binary(*sizes) + bytes(padding) for sizes in payloads)
    data = b"\x01" * (8 * before) + row + b"\x02" * 64
    trail = Trail()
    parts = [k for at in range(0, len(data), piece) for k in trail.feed(at, data[at : at + piece])]
    kept = Sparse(len(data), parts)
    section = slice(8 * before, 8 * before + len(row))

    class Window:
        def __len__(self) -> int:
            return len(row)

        def __getitem__(self, where: slice) -> bytes:
            start, stop, _ = where.indices(len(row))
            return kept[section.start + start : section.start + stop]

    assert nvidia_code(Window()) == nvidia_code(row)


def test_the_payloads_of_fat_binaries_are_let_go() -> None:
    row = fat_binary(50_000) + fat_binary(70_000, 30_000)
    trail = Trail()
    parts = [k for at in range(0, len(row), 4096) for k in trail.feed(at, row[at : at + 4096])]
    assert sum(len(part) for _, part in parts) < 6 * 4096


def test_a_magic_number_that_starts_no_fat_binary_starts_no_trail() -> None:
    data = struct.pack("<I", 0xBA55ED50) + b"/src/file.c" + bytes(5000)
    trail = Trail()
    assert trail.feed(0, data) == [(0, data)]
    assert trail.feed(len(data), data) == [(len(data), data)]


@given(
    data=st.binary(max_size=200),
    start=st.integers(-5, 210),
    stop=st.integers(-5, 210),
    cut=st.integers(1, 50),
)
def test_what_is_held_whole_reads_as_bytes_do(data: bytes, start: int, stop: int, cut: int) -> None:
    sparse = Sparse(len(data), [(at, data[at : at + cut]) for at in range(0, len(data), cut)])
    assert sparse[start:stop] == data[start:stop]
    assert len(sparse) == len(data)


def test_a_hole_is_told_and_never_filled() -> None:
    sparse = Sparse(30, [(0, b"a" * 10), (20, b"b" * 10)])
    assert sparse[5:10] == b"aaaaa"
    assert sparse[20:40] == b"b" * 10
    for where in (slice(5, 11), slice(10, 12), slice(15, 25)):
        with pytest.raises(NotHeld):
            sparse[where]
