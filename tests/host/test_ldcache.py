"""/etc/ld.so.cache: what ldconfig itself prints of a cache, and caches that are damaged."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from wheelfix.host.ldcache import CACHE, cached_libraries

LDCONFIG = "/sbin/ldconfig"
_ENTRY = re.compile(r'\t(\S+) \(libc6,x86-64(?:, hwcap: "([^"]*)")?(?:, OS ABI: [^)]*)?\) => (/.*)')
V3, V2 = "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v2"


def printed(cache: Path) -> list[tuple[str, str, str]]:
    """Name, subfolder and path of each x86-64 entry, as ldconfig prints them."""
    said = subprocess.run([LDCONFIG, "-p", "-C", cache], capture_output=True, text=True, check=True).stdout
    found = (_ENTRY.fullmatch(line) for line in said.splitlines())
    return [(m[1], m[2] or "", m[3]) for m in found if m]


def library(place: Path, soname: str) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o", place, f"-Wl,-soname,{soname}"]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A cache made by ldconfig over a folder of libraries with variants for newer processors."""
    library(tmp_path / "lib/libq.so.1", "libq.so.1")
    for variant in (V2, V3):
        library(tmp_path / f"lib/{variant}/libq.so.1", "libq.so.1")
    library(tmp_path / "with space/libw.so.2", "libw.so.2")
    (tmp_path / "conf").write_text(f"{tmp_path}/lib\n{tmp_path}/with space\n")
    subprocess.run(
        [LDCONFIG, "-X", "-f", tmp_path / "conf", "-C", tmp_path / "cache"], check=True, capture_output=True
    )
    return tmp_path / "cache"


def test_every_name_of_this_machine_as_ldconfig_prints_it() -> None:
    expected: dict[str, list[str]] = {}
    for name, variant, path in printed(CACHE):
        if not variant:
            expected.setdefault(name, []).append(path)
    assert len(expected) > 10
    assert {name: [*paths] for name, paths in cached_libraries("x86_64").items()} == expected


def test_variants_for_newer_processors_are_left_out_unless_asked_for(made: Path, tmp_path: Path) -> None:
    paths = {variant: path for name, variant, path in printed(made) if name == "libq.so.1"}
    assert set(paths) == {"", "x86-64-v2", "x86-64-v3"}, "the cache does not hold what the test is about"
    plain, v2, v3 = paths[""], paths["x86-64-v2"], paths["x86-64-v3"]
    assert cached_libraries("x86_64", made)["libq.so.1"] == (plain,)
    assert cached_libraries("x86_64", made, (V3, V2))["libq.so.1"] == (v3, v2, plain)
    assert cached_libraries("x86_64", made, (V2,))["libq.so.1"] == (v2, plain)


def test_paths_with_spaces(made: Path, tmp_path: Path) -> None:
    assert cached_libraries("x86_64", made)["libw.so.2"] == (f"{tmp_path}/with space/libw.so.2",)


def test_the_new_format_behind_the_old_one(made: Path, tmp_path: Path) -> None:
    new = cached_libraries("x86_64", made, (V3, V2))
    compat = tmp_path / "compat"
    subprocess.run(
        [LDCONFIG, "-X", "-c", "compat", "-f", tmp_path / "conf", "-C", compat],
        check=True,
        capture_output=True,
    )
    assert compat.read_bytes().startswith(b"ld.so-1.7.0")
    assert cached_libraries("x86_64", compat, (V3, V2)) == new


def test_another_architecture_has_no_entries(made: Path) -> None:
    assert cached_libraries("aarch64", made) == {}
    assert cached_libraries("riscv64", made) == {}


def test_no_cache(tmp_path: Path) -> None:
    assert cached_libraries("x86_64", tmp_path / "none") == {}
    assert cached_libraries("x86_64", tmp_path) == {}


@pytest.mark.parametrize(
    "content", [b"", b"glibc-ld.so.cache1.1", b"ld.so-1.7.0\0" * 9, b"\x7fELF" + bytes(99)]
)
def test_what_is_no_cache(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cache").write_bytes(content)
    assert cached_libraries("x86_64", tmp_path / "cache") == {}


def test_a_cache_cut_off_anywhere_gives_what_can_be_read(made: Path, tmp_path: Path) -> None:
    data, whole = made.read_bytes(), cached_libraries("x86_64", made, (V3, V2))
    cut = tmp_path / "cut"
    for length in range(0, min(len(data), 3000), 7):
        cut.write_bytes(data[:length])
        for name, paths in cached_libraries("x86_64", cut, (V3, V2)).items():
            assert set(paths) <= set(whole[name])


def test_offsets_and_counts_that_lie_are_not_believed(made: Path, tmp_path: Path) -> None:
    data = made.read_bytes()
    spoilt = tmp_path / "spoilt"
    shutil.copy(made, spoilt)
    for at in (20, 24, 32, *range(48, 48 + 24 * 3, 4)):  # the header's fields, then those of three entries
        for value in (0, 0x7FFFFFFF, 0xFFFFFFFF):
            changed = bytearray(data)
            struct.pack_into("<I", changed, at, value)
            spoilt.write_bytes(changed)
            for paths in cached_libraries("x86_64", spoilt, (V3, V2)).values():
                assert all(p.startswith("/") for p in paths)
