"""Wheels far larger than real ones: the verdict is right, nothing recurses, and memory stays bounded.

Time is not asserted: it depends on the machine.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.elf.conftest import make_elf
from tests.test_audit import TAG, wheel

#: What verify may take beside one and a half times the largest ELF member.
ROOM = 200_000_000  # bytes
#: What a symbol with its place in the index takes beyond that: seen only where symbols are most of an object.
SYMBOL = 400  # bytes
PLAIN_TAG = "cp311-cp311-linux_x86_64"
ZEROS = bytes(1 << 20)

# The peak that the kernel keeps for a process counts what its parent held at the fork: a small parent is put between.
_MEASURED = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "wheelfix", *sys.argv[2:]])
with open(sys.argv[1], "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))  # KiB on Linux
sys.exit(done.returncode)
"""


@dataclass(frozen=True)
class Ran:
    status: int
    out: str
    err: str
    peak: int  # bytes, of the largest process


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The command in a process of its own; ``run("verify", path)``."""

    def measured(*arguments: str | Path) -> Ran:
        peak = tmp_path / "peak"
        command = [sys.executable, "-c", _MEASURED, str(peak), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        return Ran(done.returncode, done.stdout, done.stderr, int(peak.read_text()) * 1024)

    return measured


def findings(report: Ran) -> list[tuple[str, str, str | None]]:
    """Severity, rule and member of what a JSON report tells."""
    (one,) = json.loads(report.out)["wheels"]
    return [(f["severity"], f["rule"], f["member"]) for f in one["findings"]]


def verified(run: Run, path: Path, largest: int, beside: int = 0) -> Ran:
    """A run of ``verify`` that kept within its memory; ``largest`` is the size of the largest ELF member in bytes."""
    report = run("verify", "--format", "json", path)
    assert report.err == ""
    assert report.peak < ROOM + 1.5 * largest + beside
    return report


# 20,000 members.


def test_a_wheel_of_20000_members(run: Run, tmp_path: Path) -> None:
    """WHEEL, METADATA and RECORD are three of them; one more that RECORD does not know is told alone."""
    path = wheel(tmp_path, "x", {f"pkg/d{n % 200}/f{n}.txt": b"text %d\n" % n for n in range(19_997)})
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 20_000
    report = verified(run, path, 0)
    assert (report.status, findings(report)) == (0, [])

    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("pkg/late.txt", "RECORD does not know me")
    report = verified(run, path, 0)
    assert (report.status, findings(report)) == (1, [("error", "record-missing", "pkg/late.txt")])


# 2,000 objects.


@pytest.fixture
def gcc(tmp_path: Path) -> Callable[..., bytes]:
    """A shared object without the C library: ``gcc(name, source, *flags)``."""

    def build(name: str, source: str, *flags: str) -> bytes:
        (tmp_path / "source.c").write_text(source)
        command = ["gcc", "-shared", "-fPIC", "-O1", "-nostdlib", "-w", "source.c", "-o", name]
        subprocess.run([*command, "-Wl,--enable-new-dtags", *flags], cwd=tmp_path, check=True)
        return (tmp_path / name).read_bytes()

    return build


def written(template: bytes, **names: str) -> bytes:
    """A copy of an object with other names of the same length in it."""
    for old, new in names.items():
        assert template.count(old.encode()) == 1
        assert len(old) == len(new)
    for old, new in names.items():
        template = template.replace(old.encode(), new.encode())
    return template


@pytest.fixture
def modules(gcc: Callable[..., bytes]) -> dict[str, bytes]:
    """1,999 extension modules, each in a folder of its own, and the library that all of them need."""
    library = gcc("libown.so", "int own(void) { return 1; }", "-Wl,-soname,libown.so")
    source = 'const char id[] = "number_0000"; int own(void); int PyInit_ext(void) { return own(); }'
    template = gcc("ext.so", source, "libown.so", "-Wl,-rpath,$ORIGIN/../lib")
    made = {f"pkg/d{n:04}/ext.so": written(template, number_0000=f"number_{n:04}") for n in range(1999)}
    return {**made, "pkg/lib/libown.so": library}


def test_a_wheel_of_2000_objects(run: Run, tmp_path: Path, modules: Mapping[str, bytes]) -> None:
    """All are bound; where one's library is not on its path that one is told, among all others."""
    path = wheel(tmp_path, "x", modules)
    report = verified(run, path, 20_000)
    assert (report.status, findings(report)) == (0, [])

    lost = modules["pkg/d1234/ext.so"].replace(b"$ORIGIN/../lib", b"$ORIGIN/../bil")
    path = wheel(tmp_path, "y", {**modules, "pkg/d1234/ext.so": lost})
    report = verified(run, path, 20_000)
    errors = [f for f in findings(report) if f[0] == "error"]
    assert (report.status, errors) == (1, [("error", "needed-unreachable", "pkg/d1234/ext.so")])


def test_2000_objects_are_shown_and_repaired(run: Run, tmp_path: Path, modules: Mapping[str, bytes]) -> None:
    path = wheel(tmp_path, "x", modules, tag=PLAIN_TAG)
    for command in ("show", "tree", "symbols"):
        said = run(command, "--json", path)
        assert (said.status, said.err) == (0, "")
        assert said.peak < ROOM
    bindings = json.loads(said.out)["bindings"]
    assert len(bindings) == 1999
    assert {b["provider"] for b in bindings} == {"pkg/lib/libown.so"}

    said = run("repair", "-w", tmp_path / "out", path)
    assert said.status == 0, said.err
    assert said.peak < ROOM
    (repaired,) = (tmp_path / "out").iterdir()
    assert findings(verified(run, repaired, 20_000)) == []


# A closure 500 deep.

DEPTH = 500


@pytest.fixture
def chain(gcc: Callable[..., bytes]) -> dict[str, bytes]:
    """A module that needs lib_0000.so, which needs lib_0001.so and so on to lib_0500.so, which alone defines
    what every one of them calls."""
    end = gcc("lib_bbbb.so", "int last(void) { return 7; }", "-Wl,-soname,lib_bbbb.so")
    call = "int last(void); int call(void) { return last(); }"
    template = gcc("lib_aaaa.so", call, "lib_bbbb.so", "-Wl,-soname,lib_aaaa.so", "-Wl,-rpath,$ORIGIN")
    start = gcc(
        "ext.so",
        "int call(void); int PyInit_ext(void) { return call(); }",
        "lib_aaaa.so",
        "-Wl,-rpath,$ORIGIN/../x.libs",
        "-Wl,--unresolved-symbols=ignore-in-shared-libs",
    )
    made = {
        f"x.libs/lib_{n:04}.so": written(template, lib_aaaa=f"lib_{n:04}", lib_bbbb=f"lib_{n + 1:04}")
        for n in range(DEPTH)
    }
    last = {f"x.libs/lib_{DEPTH:04}.so": written(end, lib_bbbb=f"lib_{DEPTH:04}")}
    return {"pkg/ext.so": written(start, lib_aaaa="lib_0000"), **made, **last}


def test_a_closure_500_deep(run: Run, tmp_path: Path, chain: Mapping[str, bytes]) -> None:
    """It loads, as the real loader says; without its last library the object that needs it is told."""
    path = wheel(tmp_path, "x", chain)
    report = verified(run, path, 20_000)
    assert report.status == 0
    assert {f[0] for f in findings(report)} <= {"info"}
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "site")
    code = f"import ctypes; print(ctypes.CDLL({str(tmp_path / 'site/pkg/ext.so')!r}).PyInit_ext())"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "7\n"

    last = f"x.libs/lib_{DEPTH:04}.so"
    path = wheel(tmp_path, "y", {name: data for name, data in chain.items() if name != last})
    report = verified(run, path, 20_000)
    missing = [f for f in findings(report) if f[1] == "needed-missing"]
    assert (report.status, missing) == (1, [("error", "needed-missing", f"x.libs/lib_{DEPTH - 1:04}.so")])


def test_a_closure_500_deep_is_drawn_and_repaired(
    run: Run, tmp_path: Path, chain: Mapping[str, bytes]
) -> None:
    path = wheel(tmp_path, "x", chain, tag=PLAIN_TAG)
    for arguments in (["show"], ["symbols"], ["tree"], ["verify", "--format", "html"], ["diff", path]):
        said = run(*arguments, path)
        assert (said.status, said.err) == (0, "")
        assert said.peak < ROOM
    drawn = " ".join(" ".join(line.strip("│├└─ ") for line in run("tree", path).out.splitlines()).split())
    for n in range(DEPTH + 1):
        assert f"lib_{n:04}.so -> x.libs/lib_{n:04}.so" in drawn
    bindings = json.loads(run("symbols", "--json", path).out)["bindings"]
    called = [b for b in bindings if b["symbol"] == "last"]
    assert len(called) == DEPTH
    assert {b["provider"] for b in called} == {f"x.libs/lib_{DEPTH:04}.so"}

    said = run("repair", "-w", tmp_path / "out", path)
    assert said.status == 0, said.err
    (repaired,) = (tmp_path / "out").iterdir()
    assert verified(run, repaired, 20_000).status == 0


# A million symbols.


def test_a_symbol_table_of_a_million_names(run: Run, tmp_path: Path) -> None:
    """The last of them is found, one that is not among them is told."""
    count = 1_000_000
    library = make_elf(soname="libmany.so", symbols=[(f"name_{n:07}", 0x12, 7) for n in range(count)])

    def user(n: int) -> bytes:
        name = [(f"name_{n:07}", 0x12, 0)]
        return make_elf(needed=["libmany.so"], runpath="$ORIGIN", symbols=name, plt=[(1, 7)])

    objects = {"pkg/libmany.so": library, "pkg/a.so": user(count - 1), "pkg/b.so": user(count)}
    path = wheel(tmp_path, "x", objects)
    report = verified(run, path, len(library), beside=count * SYMBOL)
    errors = [f for f in findings(report) if f[0] == "error"]
    assert (report.status, errors) == (1, [("error", "undefined-symbol", "pkg/b.so")])


# 4 GiB.


class _Holes(io.FileIO):
    """A file in which whole blocks of zeros are not written: they take no room on the disk."""

    def write(self, data: bytes) -> int:  # type: ignore[override]
        if len(data) == len(ZEROS) and data == ZEROS:
            self.seek(len(data), 1)
            return len(data)
        return super().write(data) or 0


def encoded(digest: hashlib._Hash) -> str:
    """As RECORD spells it (PEP 427): URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()


def large_wheel(folder: Path, blocks: int) -> Path:
    """A wheel whose first member takes so many MiB and a few bytes, stored; all others lie behind it."""
    digest = hashlib.sha256()
    for _ in range(blocks):
        digest.update(ZEROS)
    digest.update(b"the end")
    info = "x-1.0.dist-info"
    module = make_elf(symbols=[("PyInit_ext", 0x12, 7)])
    texts = {
        "pkg/ext.so": module,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: x\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nTag: %b\n"
        % TAG.encode(),
    }
    rows = [f"pkg/data.bin,sha256={encoded(digest)},{(blocks << 20) + 7}\n", f"{info}/RECORD,,\n"]
    rows += [f"{name},sha256={encoded(hashlib.sha256(data))},{len(data)}\n" for name, data in texts.items()]
    path = folder / f"x-1.0-{TAG}.whl"
    with _Holes(path, "w+") as file, zipfile.ZipFile(file, "w") as archive:
        with archive.open(zipfile.ZipInfo("pkg/data.bin"), "w", force_zip64=True) as member:
            for _ in range(blocks):
                member.write(ZEROS)
            member.write(b"the end")
        for name, data in texts.items():
            archive.writestr(name, data)
        archive.writestr(f"{info}/RECORD", "".join(rows))
    return path


def test_a_wheel_of_more_than_4_gib(run: Run, tmp_path: Path) -> None:
    """Sizes and offsets need ZIP64's 64 bits; every byte is hashed, and none is kept."""
    path = large_wheel(tmp_path, 4100)
    assert path.stat().st_size > 4 << 30
    assert path.stat().st_blocks * 512 < 16 << 20
    report = verified(run, path, 0)
    assert (report.status, findings(report)) == (0, [])
