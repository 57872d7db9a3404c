"""Objects for the edit campaign: what the linkers of this machine make, and what real wheels hold.

Each compiled object answers a question when it is loaded, and only the right dynamic segment, relocations,
TLS, IFUNC and versions give the right answer.
"""

from __future__ import annotations

import random
import subprocess
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DEP = """
__thread int outer = 20; int data = 5; int helper(void) { return 11; }
int dep_answer(void) { return outer + data + helper(); }
"""
PLAIN = "int plain(int x) { return x + 1; }"
USER = """
#ifdef LIBC
#include <math.h>
#include <string.h>
#endif
extern int helper(void), plain(int), data; extern __thread int outer;
__thread int slot = 7; static __thread int zeroed[40]; static int *where = &data;
static int one(void) { return 1; } static int two(void) { return 2; }
static int (*volatile const table[])(void) = {one, two, one, two, two, one, two};
static const char *volatile const words[] = {"a", "bc", "d", "e", "f", "g", "hijk"};
static int real_picked(void) { return 100; } static void *choose(void) { return real_picked; }
int picked(void) __attribute__((ifunc("choose")));
static volatile char big[300000];
__attribute__((constructor)) static void first(void) { slot += 1; }
int answer(void) {
    int sum = helper() + *where + plain(1) + outer + slot + picked() + zeroed[3] + big[299999];
    for (int i = 0; i < 7; i++) sum += table[i]() + words[i][0] - 'a';
#ifdef LIBC
    volatile double zero = 0; char b[9]; memset(b, (int)cos(zero), 9); sum += b[3] - 1;
#endif
    return sum;
}
int main(void) { return answer(); }
"""
# 11 + 5 + 2 + 20 + 8 + 100 of the first line, 11 of the functions, 0 + 1 + 3 + 4 + 5 + 6 + 7 of the words.
USER_ANSWER, DEP_ANSWER = 146 + 11 + 26, 36
LONG_PATH = "$ORIGIN/../libs:/home/somebody/build/third_party/install/lib64"

MACHINES = {62: "x86_64", 183: "aarch64"}  # e_machine


@dataclass(frozen=True, slots=True)
class Subject:
    """One object to edit: where it lies, its row in the table, and what it does when it is loaded or run.

    ``answer`` is what its function or its exit status must be; None where nobody knows. ``folders`` hold the
    libraries that it needs. ``native``: this machine may be able to load it. ``hidden`` are the bytes of the
    ELF header that say where the section headers are, where the object itself says that it has none.
    """

    name: str
    row: str
    path: Path
    function: str | None = None  # of no arguments
    answer: int | None = None
    program: bool = False
    folders: tuple[Path, ...] = ()
    native: bool = True
    hidden: bytes | None = None


def compiled(folder: Path, pick: random.Random, count: int) -> Iterator[Subject]:
    """Up to ``count`` objects of random build options; each linker gets its share."""
    objects, libs = folder / "obj", folder / "libs"
    objects.mkdir(parents=True)
    libs.mkdir()
    for name, text in {"dep.c": DEP, "plain.c": PLAIN, "user.c": USER, "none.c": ""}.items():
        (folder / name).write_text(text)
    (folder / "dep.map").write_text(
        "H1 { global: helper; data; local: *; }; H2 { global: outer; dep_answer; } H1;"
    )
    (folder / "user.map").write_text(
        "U1 { global: answer; main; }; U2 { global: picked; slot; local: *; } U1;"
    )
    _link(
        folder, "libs/libdep.so.1", "dep.c", ["-shared", "-Wl,-soname,libdep.so.1,--version-script=dep.map"]
    )
    _link(folder, "libs/libplain.so", "plain.c", ["-shared", "-Wl,-soname,libplain.so"])
    _link(folder, "libs/libunused.so", "none.c", ["-shared", "-Wl,-soname,libunused.so"])
    _link(folder, "libs/libfiltee.so", "plain.c", ["-shared", "-Wl,-soname,libfiltee.so"])
    for i in range(count):
        linker = ("bfd", "gold", "lld")[i % 3]
        yield _one(folder, f"{i:03d}", linker, pick)


def _one(folder: Path, name: str, linker: str, pick: random.Random) -> Subject:
    kind = pick.choice(["user", "user", "user", "user", "dep", "pie", "fixed"])
    libc = pick.random() < 0.6 or kind in ("pie", "fixed")
    flags = [f"-fuse-ld={linker}", "-Wl,--no-as-needed"]
    flags += [f"-Wl,--hash-style={pick.choice(['sysv', 'gnu', 'both'])}"]
    if linker != "gold" and pick.random() < 0.4:
        # glibc refuses lld's without libc's version GLIBC_ABI_DT_RELR, unless no version of libc is wanted.
        flags += ["-Wl,-z,pack-relative-relocs" if linker == "bfd" else "-Wl,--pack-dyn-relocs=relr"]
        libc = libc and linker == "bfd"
        kind = "user" if linker == "lld" else kind
    page = pick.choice([None, None, "0x10000", "0x200000"])
    flags += [f"-Wl,-z,max-page-size={page}"] if page else []
    if linker != "gold":
        flags += [pick.choice(["-Wl,-z,separate-code", "-Wl,-z,noseparate-code"])]
    flags += pick.choice([["-Wl,-z,relro,-z,now"], ["-Wl,-z,norelro"], ["-Wl,-z,lazy"], []])
    flags += pick.choice([["-g", "-Wl,--compress-debug-sections=zlib"], ["-g"], []])
    flags += pick.choice([["-Wl,-O2"], ["-Wl,--spare-dynamic-tags=1"] if linker != "lld" else [], []])
    flags += pick.choice([["-Wl,--build-id"], ["-Wl,--build-id=none"]])
    if pick.random() < 0.8:
        path = pick.choice(["$ORIGIN/../libs", LONG_PATH])
        flags += [f"-Wl,-rpath,{path}", f"-Wl,--{pick.choice(['en', 'dis'])}able-new-dtags"]
    if kind == "dep":
        flags += ["-shared", "-Wl,-soname,libdep.so.1", "-Wl,--version-script=dep.map"]
        target = _link(folder, f"obj/{name}.so", "dep.c", flags)
    else:
        flags += [f"-Wl,--version-script={folder}/user.map"] if kind == "user" and pick.random() < 0.6 else []
        flags += pick.choice([["-Wl,-soname,libuser.so.1"], []]) if kind == "user" else []
        flags += {"user": ["-shared"], "pie": ["-pie"], "fixed": ["-no-pie", "-fno-pic"]}[kind]
        if kind == "user":
            flags += pick.choice(
                [[f"-Wl,-{f},{n}"] for f in "Ff" for n in ("libplain.so", "libfiltee.so")] + [[]] * 4
            )
        flags += ["-DLIBC", "-lm"] if libc else ["-nostdlib"]
        flags += ["libs/libdep.so.1", "libs/libplain.so", "libs/libunused.so"]
        target = _link(folder, f"obj/{name}" + (".so" if kind == "user" else ""), "user.c", flags)
    hidden = _afterwards(target, pick)
    return Subject(
        name=f"{target.name} ({' '.join(flags)}{', no section headers' if hidden else ''})",
        row=linker,
        path=target,
        function="dep_answer" if kind == "dep" else "answer",
        answer=DEP_ANSWER if kind == "dep" else USER_ANSWER,
        program=kind in ("pie", "fixed"),
        folders=(folder / "libs",),
        hidden=hidden,
    )


def _link(folder: Path, name: str, source: str, flags: Sequence[str]) -> Path:
    command = ["gcc", "-O1", "-fPIC", "-w", source, "-o", name, *flags]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    return folder / name


def _afterwards(target: Path, pick: random.Random) -> bytes | None:
    """What distributions do to an object after the linker; returns the header's bytes if they were zeroed."""
    step = pick.choice(["", "", "strip -s", "strip -g", "hide"])
    if step == "hide":
        data = bytearray(target.read_bytes())
        hidden = bytes(data[40:48] + data[58:64])
        data[40:48], data[58:64] = bytes(8), bytes(6)
        target.write_bytes(data)
        return hidden
    if step:
        subprocess.run([*step.split(), str(target)], check=True)
    return None


def with_headers(data: bytes, hidden: bytes | None) -> bytes:
    """The object with its section headers in sight again, for judges that go by them."""
    if hidden is None:
        return data
    return data[:40] + hidden[:8] + data[48:58] + hidden[8:] + data[64:]


def real(
    folder: Path, places: Iterable[Path], pick: random.Random, each: int = 8, largest: int = 40_000_000
) -> Iterator[Subject]:
    """Objects of wheels, folders and files: at most ``each`` of one wheel, none over ``largest`` bytes.

    A wheel's objects are unpacked to ``folder``: the neighbours are what they are loaded with.
    """
    for place in places:
        files = sorted(place.rglob("*")) if place.is_dir() else [place]
        wheels = [f for f in files if f.suffix == ".whl" and f.stat().st_size < 64_000_000]
        plain = [f for f in files if f.suffix != ".whl" and f.is_file()]
        for wheel in wheels:
            root = folder / wheel.name.removesuffix(".whl")
            yield from _sample(_unpacked(wheel, root), wheel.name, pick, each, largest)
        yield from _sample(plain, "", pick, each, largest)


def _unpacked(wheel: Path, root: Path) -> list[Path]:
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            with archive.open(info) as member:
                if member.read(4) != b"\x7fELF":
                    continue
            path = Path(archive.extract(info, root))
            path.chmod(0o755)
    return sorted(p for p in root.rglob("*") if p.is_file())


def _sample(files: list[Path], wheel: str, pick: random.Random, each: int, largest: int) -> Iterator[Subject]:
    """Some of the objects; ``file(1)``'s facts come from the ELF header, read here by the gABI's offsets."""
    folders = tuple(sorted({p.parent for p in files}))
    chosen = [p for p in files if 64 < p.stat().st_size <= largest]
    pick.shuffle(chosen)
    for path in chosen[:each]:
        with path.open("rb") as file:
            head = file.read(64)
        order = "little" if head[5] == 1 else "big"
        kind, machine = (int.from_bytes(head[at : at + 2], order) for at in (16, 18))  # type: ignore[arg-type]
        if head[:4] != b"\x7fELF" or kind not in (2, 3):
            continue
        libc = "musl" if "musllinux" in wheel else ""
        program = kind == 2 or (".so" not in path.name and b"/ld-" in path.read_bytes()[:8192])
        yield Subject(
            name=f"{wheel}/{path.name}" if wheel else str(path),
            row=f"wheels {MACHINES.get(machine, machine)} {libc}".strip()
            if wheel
            else f"files {MACHINES.get(machine, machine)}",
            path=path,
            program=program,
            folders=folders if wheel else (),
            native=machine == 62 and not libc,
        )
