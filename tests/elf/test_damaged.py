"""What is no whole ELF object gives a fault of the right rule; nothing that is fed gives an exception."""

from __future__ import annotations

import os
import random
import resource
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheelfix.elf.read import ElfRead, read
from wheelfix.model.limits import Limits

Compile = Callable[..., Path]
Make = Callable[..., bytes]

SOURCE = '#include <dlfcn.h>\nint x(void) { return dlopen("libx.so", 1) != 0; } __thread int t; int *f(void) { return &t; }'


def rules(found: ElfRead) -> list[str]:
    return [f.rule for f in found.faults]


def phdr(data: bytes, kind: int, nth: int = 0) -> int:
    """File offset of the nth program header of a kind, in a little-endian 64-bit file."""
    (table,) = struct.unpack_from("<Q", data, 32)
    (count,) = struct.unpack_from("<H", data, 56)
    found = [
        table + 56 * i for i in range(count) if struct.unpack_from("<I", data, table + 56 * i)[0] == kind
    ]
    return found[nth]


def patched(data: bytes, at: int, form: str, value: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, at, value)
    return bytes(changed)


def dynamic_value(data: bytes, tag: int) -> int:
    """File offset of d_val of an entry."""
    (start,) = struct.unpack_from("<Q", data, phdr(data, 2) + 8)
    while struct.unpack_from("<Q", data, start)[0] != tag:
        start += 16
    return start + 8


def loads(path: Path) -> str:
    """What the real loader says: empty if it opens the file."""
    code = f"import ctypes; ctypes.CDLL({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return (
        ""
        if done.returncode == 0
        else done.stderr.strip().splitlines()[-1]
        if done.stderr
        else f"signal {done.returncode}"
    )


# -- files that are no ELF objects ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "kind", "holds"),
    [
        (b"/* GNU ld script */\nINPUT ( libhelper.so.1 )\n", "text", "a linker script"),
        (b"GROUP ( /lib/libc.so.6 AS_NEEDED ( /lib/ld.so ) )", "text", "a linker script"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "text", "text"),
        ("libhelper für alle\n".encode(), "text", "text"),
        (b"!<arch>\n", "archive", "a static archive"),
        (b"", "other", "empty"),
        (b"\xcf\xfa\xed\xfe\x07\0\0\1", "other", "a Mach-O object"),
        (b"MZ\x90\0", "other", "a Windows DLL or program"),
        (bytes(range(256)), "other", "data of an unknown kind"),
    ],
)
def test_a_library_name_that_holds_something_else(
    content: bytes, kind: str, holds: str, tmp_path: Path
) -> None:
    found = read(content, name="pkg/libhelper.so.1")
    assert (found.content, found.facts, rules(found)) == (kind, None, ["not-elf"])
    assert found.faults[0].evidence["holds"] == holds
    assert read(content, name="pkg/data.bin").faults == ()
    (tmp_path / "libhelper.so.1").write_bytes(content)
    assert read(tmp_path / "libhelper.so.1") == found


def test_text_that_ends_inside_a_character_is_text() -> None:
    assert read(("x" * 4095 + "ü" * 10).encode(), name="libx.so").content == "text"


@pytest.mark.parametrize(("at", "value"), [(4, 3), (5, 0), (6, 2), (54, 55)])
def test_the_magic_before_no_header_is_no_elf_object(make: Make, at: int, value: int) -> None:
    found = read(patched(make(), at, "B", value), name="libx.so")
    assert (found.facts, rules(found)) == (None, ["not-elf"])


# -- truncated ------------------------------------------------------------------------------------------


def test_every_cut_of_an_object_is_told(compiled: Compile) -> None:
    data = compiled("x.so", SOURCE).read_bytes()
    for cut in [*range(4, 200, 7), *range(200, len(data), 331), len(data) - 1]:
        found = read(data[:cut], name="x.so")
        assert set(rules(found)) == {"elf-truncated"}, cut


def test_an_object_without_its_section_table_still_tells_what_the_loader_reads(
    compiled: Compile, tmp_path: Path
) -> None:
    path = compiled("x.so", SOURCE, "-Wl,-soname,libx.so.1")
    data = path.read_bytes()
    found = read(data[:-64])
    assert rules(found) == ["elf-truncated"]
    assert found.facts is not None
    assert found.facts.soname == "libx.so.1"
    (tmp_path / "cut.so").write_bytes(data[:-64])
    assert loads(tmp_path / "cut.so") == ""


def test_an_object_without_its_dynamic_segment_has_no_facts(compiled: Compile, tmp_path: Path) -> None:
    data = compiled("x.so", SOURCE).read_bytes()[:6000]
    found = read(data)
    assert (found.content, found.facts) == ("elf", None)
    (tmp_path / "cut.so").write_bytes(data)
    assert loads(tmp_path / "cut.so") != ""


@pytest.mark.parametrize("tag", [5, 6, 7, 0x6FFFFEF5, 25, 0x6FFFFFFE, 0x6FFFFFF0, 23])
def test_a_dynamic_pointer_outside_the_object_is_told(compiled: Compile, tag: int) -> None:
    data = compiled("x.so", SOURCE, "-Wl,--hash-style=gnu").read_bytes()
    found = read(patched(data, dynamic_value(data, tag), "<Q", 0x7000_0000))
    assert "elf-truncated" in rules(found)


def test_a_needed_name_outside_the_string_table_is_told(compiled: Compile) -> None:
    data = compiled("x.so", SOURCE).read_bytes()
    found = read(patched(data, dynamic_value(data, 1), "<Q", 0x12345678))
    assert (found.facts, rules(found)) == (None, ["elf-truncated"])


def test_debugging_information_that_was_split_off_is_whole(compiled: Compile, tmp_path: Path) -> None:
    path = compiled("x.so", SOURCE, "-g")
    subprocess.run(["objcopy", "--only-keep-debug", path, tmp_path / "x.debug"], check=True)
    found = read(tmp_path / "x.debug")
    assert found.faults == ()
    assert found.facts is not None
    assert not found.facts.dynamic


def test_an_object_file_is_whole(compiled: Compile) -> None:
    found = read(compiled("x.o", SOURCE, "-c", shared=False))
    assert found.faults == ()
    assert found.facts is not None
    assert (found.facts.type, found.facts.dynamic) == (1, False)


# -- alignment: what the real loader refuses ---------------------------------------------------------------


def test_a_shifted_segment_is_refused_and_told(compiled: Compile, tmp_path: Path) -> None:
    data = compiled("x.so", SOURCE).read_bytes()
    at = phdr(data, 1, 1) + 8
    shifted = patched(data, at, "<Q", struct.unpack_from("<Q", data, at)[0] + 0x10)
    assert rules(read(shifted)) == ["elf-bad-alignment"]
    (tmp_path / "shifted.so").write_bytes(shifted)
    assert "not page-aligned" in loads(tmp_path / "shifted.so")


@pytest.mark.parametrize("align", [0x1800, 3, 0x10, 0x10000])
def test_an_alignment_that_some_glibc_refuses_is_told(compiled: Compile, align: int) -> None:
    data = compiled("x.so", SOURCE).read_bytes()
    last = phdr(data, 1, -1)
    offset, vaddr = struct.unpack_from("<QQ", data, last + 8)
    assert offset != vaddr or align < 0x10000 or align & (align - 1)
    assert rules(read(patched(data, last + 48, "<Q", align))) == ["elf-bad-alignment"]


@pytest.mark.parametrize("size", [0x1000, 0x4000, 0x10000, 0x200000])
def test_any_page_size_of_the_linker_is_fine(compiled: Compile, size: int) -> None:
    assert read(compiled("x.so", SOURCE, f"-Wl,-z,max-page-size={size}")).faults == ()


# -- limits -----------------------------------------------------------------------------------------------


def test_counts_beyond_the_limits_are_told_before_anything_is_read(make: Make) -> None:
    assert rules(read(patched(make(), 56, "<H", 0xFFFF))) == ["elf-limit"]
    many = make(symbols=[(f"s{i}", 0x12, 0) for i in range(50)])
    assert rules(read(many, limits=Limits(symbols=40))) == ["elf-limit"]
    assert rules(read(make(needed=["libx.so"] * 50), limits=Limits(dynamic=40))) == ["elf-limit"]
    wanted = [("libx.so", [(f"V{i}", 0, i + 2) for i in range(50)])]
    assert rules(read(make(verneed=wanted), limits=Limits(versions=40))) == ["elf-limit"]
    long = make(soname="x" * 500)
    assert rules(read(long, limits=Limits(string=400))) == ["elf-limit"]
    assert read(long, limits=Limits(string=500)).faults == ()


def test_a_number_of_sections_that_no_file_holds_is_no_reason_to_wait(compiled: Compile) -> None:
    data = compiled("x.so", SOURCE).read_bytes()
    (shoff,) = struct.unpack_from("<Q", data, 40)
    huge = patched(
        patched(data, 60, "<H", 0), shoff + 32, "<Q", 1 << 62
    )  # e_shnum 0: sh_size of section 0 counts
    assert rules(read(huge)) == ["elf-limit"]


def test_ends_of_one_long_string_do_not_multiply(make: Make) -> None:
    blob = make(soname="n" * 60_000, symbols=[("a", 0x12, 0)] * 20_000)
    at = blob.index(b"n" * 1000)
    start = blob.rindex(struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0), 0, at + 70_000 + 24 * 20_000)
    table = bytearray(blob)
    (base,) = struct.unpack_from("<Q", blob, dynamic_value(blob, 5))
    symbols = struct.unpack_from("<Q", blob, dynamic_value(blob, 6))[0]
    for i in range(1, 20_001):
        struct.pack_into("<I", table, symbols + 24 * i, at - base + i)
    assert start
    assert rules(read(bytes(table), limits=Limits(names=100_000_000))) == ["elf-limit"]


def versions_at(blob: bytes) -> int:
    return int(struct.unpack_from("<Q", blob, dynamic_value(blob, 0x6FFFFFFE))[0])


@pytest.mark.parametrize(
    ("field", "form", "value"), [(2, "<H", 2), (12, "<I", 1), (16 + 12, "<I", 1), (8, "<I", 0x7FFFFFFF)]
)
def test_version_lists_that_lead_nowhere_end(make: Make, field: int, form: str, value: int) -> None:
    blob = make(verneed=[("libx.so", [("V1", 0, 2)])], symbols=[("s", 0x12, 0)] * 300)
    began = time.monotonic()
    found = read(patched(blob, versions_at(blob) + field, form, value))
    assert rules(found) in (["elf-truncated"], ["elf-limit"])
    assert time.monotonic() - began < 5


def test_overlapping_version_lists_do_not_multiply(make: Make) -> None:
    # Lists of one-byte steps through the same bytes: quadratic for a reader that believes the counts.
    blob = bytearray(make(verneed=[("libx.so", [(f"V{i}", 0, 2) for i in range(5000)])]))
    at = versions_at(bytes(blob))
    for i in range(at, at + 64_000):
        blob[i] = 1 if (i - at) % 4 == 0 else 0
    began = time.monotonic()
    assert rules(read(bytes(blob))) in (["elf-truncated"], ["elf-limit"])
    assert time.monotonic() - began < 5


def test_a_hash_chain_without_end_is_told(compiled: Compile) -> None:
    data = bytearray(compiled("x.so", SOURCE, "-Wl,--hash-style=gnu").read_bytes())
    (at,) = struct.unpack_from("<Q", data, dynamic_value(bytes(data), 0x6FFFFEF5))
    buckets, first, bloom, _ = struct.unpack_from("<4I", data, at)
    for bucket in range(buckets):
        struct.pack_into("<I", data, at + 16 + 8 * bloom + 4 * bucket, first + 0x1000000)
    assert rules(read(bytes(data))) == ["elf-truncated"]


# -- anything ----------------------------------------------------------------------------------------------

BASES: dict[str, bytes] = {}


@pytest.fixture(scope="module", autouse=True)
def bases(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("bases")
    (folder / "x.c").write_text(SOURCE)
    for name, flags in {
        "gnu": ["-Wl,--hash-style=gnu"],
        "sysv": ["-Wl,--hash-style=sysv", "-Wl,-soname,libx.so.1", "-Wl,-rpath,/a"],
        "32": ["-m32", "-nostdlib"] if os.path.exists("/usr/include/gnu/stubs-32.h") else ["-fuse-ld=gold"],
    }.items():
        command = ["gcc", "-shared", "-fPIC", "-w", "x.c", "-o", f"{name}.so", *flags]
        subprocess.run(command, check=True, cwd=folder)
        BASES[name] = (folder / f"{name}.so").read_bytes()


def survives(data: bytes) -> None:
    found = read(data, name="x.so", strings=frozenset({"libx.so"}))
    assert found.facts is not None or found.faults or not data.startswith(b"\x7fELF")
    assert all(f.rule in ("not-elf", "elf-truncated", "elf-bad-alignment", "elf-limit") for f in found.faults)


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(["gnu", "sysv", "32"]), st.integers(0, 2**31), st.binary(min_size=1, max_size=8))
def test_any_overwritten_bytes_give_facts_or_faults(base: str, at: int, junk: bytes) -> None:
    data = bytearray(BASES[base])
    at %= len(data)
    data[at : at + len(junk)] = junk
    survives(bytes(data))


@pytest.mark.parametrize("base", ["gnu", "sysv", "32"])
def test_every_field_of_the_headers_and_the_dynamic_segment_may_hold_anything(base: str) -> None:
    data = BASES[base]
    (start,) = struct.unpack_from("<Q", data, phdr(data, 2) + 8)
    (size,) = struct.unpack_from("<Q", data, phdr(data, 2) + 32)
    (count,) = struct.unpack_from("<H", data, 56)
    places = [*range(16, 64, 2), *range(64, 64 + 56 * count, 4), *range(start, start + size, 8)]
    for at in places:
        for value in (0, 1, 0x7FFFFFFF, 0xFFFFFFFF):
            survives(patched(data, at, "<I", value))
        survives(patched(data, at, "<Q", 0xFFFFFFFFFFFFFFF8))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_class_and_byte_order_survives_noise(make: Make, bits: int, order: str) -> None:
    data = make(
        bits, order, 22 if order == ">" else 40, needed=["libc.so.6"], soname="x", symbols=[("a", 0x12, 0)] * 5,
        versym=[0, 2, 2, 1, 1, 1], verneed=[("libc.so.6", [("V", 0, 2)])], relocations=[(1, 10), (3, 10)],
    )  # fmt: skip
    noise = random.Random(bits)
    for _ in range(600):
        changed = bytearray(data)
        for _ in range(noise.randint(1, 6)):
            changed[noise.randrange(4, len(data))] = noise.choice(
                [0, 1, 0x7F, 0x80, 0xFF, noise.randrange(256)]
            )
        survives(bytes(changed))


def test_memory_stays_bounded_on_a_file_that_claims_everything(make: Make) -> None:
    blob = bytearray(make(soname="x", symbols=[("s", 0x12, 0)] * 1000, relocations=[(1, 6)] * 1000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for tag in (2, 8, 10, 0x6FFFFFFF):
        for value in (1 << 31, 1 << 40, (1 << 64) - 1):
            try:
                at = dynamic_value(bytes(blob), tag)
            except struct.error:
                continue
            survives(patched(bytes(blob), at, "<Q", value))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
