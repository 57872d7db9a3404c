"""Each rule of the search, on compiled objects, against the loader of this machine.

``agree`` holds our answer against every search, every file tried, the scope and the failure of the real loader;
what a test asserts itself is the real loader's own behaviour, so that the input is known to exercise the rule.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from tests.loader.conftest import Shared
from tests.loader.observed import Observed, agree, observe, world_of
from tests.oracle.simulate import node_at
from wheelfix.host import machine
from wheelfix.loader.closure import load

Opener = Callable[..., Path]
NOT_FOUND = "cannot open shared object file: No such file or directory"


def names(seen: Observed, folder: Path) -> list[str]:
    """The scope below the test's folder, as relative paths."""
    real = os.path.realpath(folder)
    return [p[len(real) + 1 :] for p in seen.scope if p.startswith(real)]


# The five places, and their order.


def test_rpath_of_the_requester(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/libd.so")
    root = shared("root.so", "libd.so", rpath="$ORIGIN/lib")
    assert names(agree(root, opener()), tmp_path) == ["root.so", "lib/libd.so"]


def test_runpath_of_the_requester(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/libd.so")
    root = shared("root.so", "libd.so", runpath="$ORIGIN/lib")
    assert names(agree(root, opener()), tmp_path) == ["root.so", "lib/libd.so"]


def test_no_path_leads_nowhere(shared: Shared, opener: Opener) -> None:
    shared("libd.so")
    assert agree(shared("root.so", "libd.so"), opener()).said == f"libd.so: {NOT_FOUND}"


def test_rpath_is_dead_beside_a_runpath(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("one/libd.so")
    root = shared("root.so", "libd.so", rpath="$ORIGIN/one:$ORIGIN/two")
    add_tag(root, "DT_RUNPATH", "$ORIGIN/two")
    assert not agree(root, opener()).opened
    shared("two/libd.so")
    assert names(agree(root, opener()), tmp_path) == ["root.so", "two/libd.so"]


@pytest.mark.parametrize(("kind", "wins"), [("rpath", "own"), ("runpath", "env")])
def test_ld_library_path_stands_between_rpath_and_runpath(
    shared: Shared, opener: Opener, tmp_path: Path, kind: str, wins: str
) -> None:
    shared("own/libd.so")
    shared("env/libd.so")
    root = shared("root.so", "libd.so", **{kind: "$ORIGIN/own"})
    seen = agree(root, opener(), [str(tmp_path / "env")])
    assert names(seen, tmp_path) == ["root.so", f"{wins}/libd.so"]


def test_runpath_comes_before_the_cache(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("own/libm.so.6")
    root = shared("root.so", "libm.so.6", runpath="$ORIGIN/own")
    assert names(agree(root, opener()), tmp_path) == ["root.so", "own/libm.so.6"]


def test_the_cache_is_last(shared: Shared, opener: Opener) -> None:
    seen = agree(shared("root.so", "libm.so.6", runpath="$ORIGIN/own"), opener())
    assert any(p.endswith("/libm.so.6") for p in seen.scope)


def test_nodeflib_closes_the_default_folders(shared: Shared, opener: Opener) -> None:
    root = shared("root.so", "libm.so.6", flags=("-Wl,-z,nodefaultlib",))
    assert "libm.so.6: cannot open shared object file" in agree(root, opener()).said


def test_nodeflib_binds_the_requester_alone(shared: Shared, opener: Opener) -> None:
    shared("liba.so", "libm.so.6")
    root = shared("root.so", "liba.so", runpath="$ORIGIN", flags=("-Wl,-z,nodefaultlib",))
    assert agree(root, opener()).opened


# Who inherits what.


def test_runpath_is_not_inherited(shared: Shared, opener: Opener) -> None:
    shared("lib/liba.so", "libd.so")
    shared("lib/libd.so")
    root = shared("root.so", "liba.so", runpath="$ORIGIN/lib")
    assert agree(root, opener()).said == f"libd.so: {NOT_FOUND}"


def test_rpath_is_inherited_over_two_steps(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/liba.so", "libb.so")
    shared("lib/libb.so", "libd.so")
    shared("lib/libd.so")
    root = shared("root.so", "liba.so", rpath="$ORIGIN/lib")
    assert names(agree(root, opener()), tmp_path)[-1] == "lib/libd.so"


def test_a_requester_with_runpath_inherits_no_rpath(shared: Shared, opener: Opener) -> None:
    shared("lib/liba.so", "libd.so", runpath="$ORIGIN/nothing")
    shared("lib/libd.so")
    root = shared("root.so", "liba.so", rpath="$ORIGIN/lib")
    assert agree(root, opener()).said == f"libd.so: {NOT_FOUND}"


def test_a_requester_with_an_empty_runpath_inherits_no_rpath(shared: Shared, opener: Opener) -> None:
    library = shared("lib/liba.so", "libd.so")
    add_tag(library, "DT_RUNPATH", "")
    shared("lib/libd.so")
    root = shared("root.so", "liba.so", rpath="$ORIGIN/lib")
    assert agree(root, opener()).said == f"libd.so: {NOT_FOUND}"


def test_a_runpath_in_between_drops_only_its_own_rpath(
    shared: Shared, opener: Opener, tmp_path: Path
) -> None:
    shared("lib/liba.so", "libb.so", runpath="$ORIGIN")
    shared("lib/libb.so", "libd.so")
    shared("deep/libd.so")
    root = shared("root.so", "liba.so", rpath="$ORIGIN/lib:$ORIGIN/deep")
    assert names(agree(root, opener()), tmp_path)[-1] == "deep/libd.so"


def test_the_rpath_of_an_object_in_between_is_dead_beside_its_runpath(shared: Shared, opener: Opener) -> None:
    library = shared("lib/liba.so", "libb.so", rpath="$ORIGIN/deep:$ORIGIN")
    add_tag(library, "DT_RUNPATH", "$ORIGIN")
    shared("lib/libb.so", "libd.so")
    shared("lib/deep/libd.so")
    root = shared("root.so", "liba.so", runpath="$ORIGIN/lib")
    assert agree(root, opener()).said == f"libd.so: {NOT_FOUND}"


def test_the_rpath_of_an_object_in_between_counts(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/liba.so", "libb.so", rpath="$ORIGIN:$ORIGIN/deep")
    shared("lib/libb.so", "libd.so")
    shared("lib/deep/libd.so")
    root = shared("root.so", "liba.so", runpath="$ORIGIN/lib")
    assert names(agree(root, opener()), tmp_path)[-1] == "lib/deep/libd.so"


def test_the_nearest_rpath_wins(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/liba.so", "libd.so", rpath="$ORIGIN/near")
    shared("lib/near/libd.so")
    shared("far/libd.so")
    root = shared("root.so", "liba.so", rpath="$ORIGIN/far:$ORIGIN/lib")
    assert names(agree(root, opener()), tmp_path)[-1] == "lib/near/libd.so"


def test_the_chain_is_that_of_the_first_who_loaded_it(shared: Shared, opener: Opener) -> None:
    shared("lib/liba.so", "libd.so")  # loaded by the root first, then needed by libb, whose RPATH would help
    shared("lib/libb.so", "liba.so", rpath="$ORIGIN/deep")
    shared("lib/deep/libd.so")
    root = shared("root.so", "liba.so", "libb.so", runpath="$ORIGIN/lib")
    assert agree(root, opener()).said == f"libd.so: {NOT_FOUND}"


def test_the_rpath_of_the_program_counts_for_what_it_opens(
    shared: Shared, opener: Opener, tmp_path: Path
) -> None:
    shared("lib/libd.so")
    program = opener("-Wl,--disable-new-dtags", f"-Wl,-rpath,{tmp_path}/lib")
    assert names(agree(shared("root.so", "libd.so"), program), tmp_path)[-1] == "lib/libd.so"
    assert not agree(shared("root.so", "libd.so", runpath="$ORIGIN/x"), program).opened


def test_the_runpath_of_the_program_does_not_count(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/libd.so")
    program = opener("-Wl,--enable-new-dtags", f"-Wl,-rpath,{tmp_path}/lib")
    assert not agree(shared("root.so", "libd.so"), program).opened


def test_the_rpath_of_the_library_that_calls_dlopen_does_not_count(
    shared: Shared, opener: Opener, tmp_path: Path
) -> None:
    shared("lib/libd.so")
    program = opener(caller=("-Wl,--disable-new-dtags", f"-Wl,-rpath,{tmp_path}/lib"))
    assert not agree(shared("root.so", "libd.so"), program).opened


def test_a_program_is_its_own_chain(shared: Shared, tmp_path: Path) -> None:
    shared("lib/liba.so", "libd.so")
    shared("lib/libd.so")
    assert agree(shared("tool", "liba.so", rpath="$ORIGIN/lib", program=True)).opened
    seen = agree(shared("other", "liba.so", runpath="$ORIGIN/lib", program=True))
    assert "libd.so: cannot open shared object file" in seen.said


# What an element of a path means.


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("$ORIGIN/lib", True),
        ("${ORIGIN}/lib", True),
        ("$ORIGIN//lib/", True),
        ("$ORIGIN/./lib/.", True),
        ("$ORIGIN/lib/../lib", True),
        ("$ORIGIN/nonexistent/../lib", False),
        ("$ORIGIN/root.so/../lib", False),
        ("$ORIGIN/lib/nonexistent/..", False),
        ("$ORIGINAL/lib", False),
        ("$ORIGIN_/lib", False),
        ("$ORIGIN0/lib", False),
        ("${ORIGINAL}/lib", False),
        ("${ORIGIN/lib", False),
        ("$ORIGIN-x/lib", True),  # the token ends where no identifier could go on: FOLDER-x/lib
        ("x$ORIGIN/lib", False),
        ("lib", False),
        ("", False),
        (":", False),
        ("::$ORIGIN/lib", True),
        ("$ORIGIN/nothing:$ORIGIN/lib", True),
        ("$ORIGIN/$LIB", False),
        ("$ORIGIN/${UNKNOWN}/lib", False),
    ],
)
@pytest.mark.parametrize("kind", ["rpath", "runpath"])
def test_elements_and_tokens(
    shared: Shared, opener: Opener, tmp_path: Path, kind: str, entry: str, found: bool
) -> None:
    library = shared("lib/libd.so")
    for ending in ("AL", "_", "0", "-x"):  # what would be found if the token ended elsewhere
        shutil.copytree(library.parent, Path(f"{tmp_path}{ending}") / "lib")
    seen = agree(shared("root.so", "libd.so", **{kind: entry}), opener())
    assert seen.opened == found


def test_lib_and_platform(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    lib, platform = machine.lib_token(), machine.platform_token()
    tokens = {"lib_token": lib, "platform_token": platform}
    root = shared("root.so", "libd.so", runpath="$ORIGIN/a/$LIB:$ORIGIN/b/${PLATFORM}")
    assert not agree(root, opener(), **tokens).opened
    shared(f"b/{platform}/libd.so")
    assert agree(root, opener(), **tokens).opened
    shared(f"a/{lib}/libd.so")
    assert names(agree(root, opener(), **tokens), tmp_path)[-1] == f"a/{lib}/libd.so"


def test_subfolders_for_newer_processors_come_first_in_each_folder(
    shared: Shared, opener: Opener, tmp_path: Path
) -> None:
    subfolders = machine.subfolders()
    assert subfolders, "this machine's loader has no subfolders"
    shared("one/libd.so")
    shared(f"two/{subfolders[0]}/libd.so")
    root = shared("root.so", "libd.so", runpath="$ORIGIN/one:$ORIGIN/two")
    assert names(agree(root, opener(), subfolders=subfolders), tmp_path)[-1] == "one/libd.so"
    for subfolder in reversed(subfolders):  # each is better than all that were there before
        shared(f"one/{subfolder}/libd.so")
        seen = agree(root, opener(), subfolders=subfolders)
        assert names(seen, tmp_path)[-1] == f"one/{subfolder}/libd.so"


def test_origin_is_the_folder_of_the_name_that_was_opened(
    shared: Shared, opener: Opener, tmp_path: Path
) -> None:
    """Not that of the file to which a symbolic link leads."""
    shared("real/liba.so", "libd.so", runpath="$ORIGIN")
    shared("real/libd.so")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/liba.so").symlink_to("../real/liba.so")
    root = shared("root.so", "liba.so", runpath="$ORIGIN/lib")
    assert agree(root, opener()).said == f"libd.so: {NOT_FOUND}"


# Names with a slash.


def test_an_absolute_name_is_opened_as_it_is(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    library = shared("lib/libd.so")
    root = shared("root.so", str(library), runpath="$ORIGIN/other")
    assert names(agree(root, opener()), tmp_path)[-1] == "lib/libd.so"
    library.unlink()
    shared("other/libd.so")
    assert not agree(root, opener()).opened


def test_a_relative_name_depends_on_the_working_directory(shared: Shared, opener: Opener) -> None:
    shared("lib/libd.so")
    root = shared("root.so", "lib/libd.so", runpath="$ORIGIN")
    assert agree(root, opener()).said == f"lib/libd.so: {NOT_FOUND}"


def test_tokens_in_a_name_are_those_of_each_requester(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("a/liba.so", "$ORIGIN/own/libd.so")
    shared("b/libb.so", "$ORIGIN/own/libd.so")
    shared("a/own/libd.so")
    shared("b/own/libd.so")
    root = shared("root.so", "liba.so", "libb.so", runpath="$ORIGIN/a:$ORIGIN/b")
    assert names(agree(root, opener()), tmp_path)[-2:] == ["a/own/libd.so", "b/own/libd.so"]


def test_a_name_is_what_its_tokens_make_of_it_also_without_a_slash(shared: Shared, opener: Opener) -> None:
    platform = machine.platform_token()
    shared(f"lib{platform}.so")
    root = shared("root.so", "lib${PLATFORM}.so", runpath="$ORIGIN")
    seen = observe(root, opener())
    assert seen.opened
    assert seen.searches[-1].name == f"lib{platform}.so"
    ours = load(world_of(seen, False, (), platform_token=platform), node_at(str(root)))
    assert [(e.needed, e.status) for e in ours.edges] == [("lib${PLATFORM}.so", "found")]


# What is loaded already.


def test_loaded_under_its_soname(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/libfile.so", soname="libname.so")
    shared("lib/libb.so", "libname.so")  # no path of its own
    root = shared("root.so", "libfile.so", "libb.so", runpath="$ORIGIN/lib")
    assert names(agree(root, opener()), tmp_path) == ["root.so", "lib/libfile.so", "lib/libb.so"]


def test_loaded_under_the_name_that_was_asked_for(shared: Shared, opener: Opener) -> None:
    shared("lib/libfile.so", soname="libname.so")
    shared("lib/libb.so", "libfile.so")
    assert agree(shared("root.so", "libfile.so", "libb.so", runpath="$ORIGIN/lib"), opener()).opened


def test_a_file_name_that_nobody_asked_for_is_no_name(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/libreal.so", soname="libname.so")
    (tmp_path / "lib/libname.so").symlink_to("libreal.so")
    shared("lib/libb.so", "libreal.so")
    root = shared("root.so", "libname.so", "libb.so", runpath="$ORIGIN/lib")
    assert agree(root, opener()).said == f"libreal.so: {NOT_FOUND}"


def test_loaded_by_the_wrong_soname(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    """A library that claims another's SONAME is taken for it, though the real one can be found."""
    shared("lib/libwrong.so", soname="libd.so")
    shared("lib/libd.so")
    root = shared("root.so", "libwrong.so", "libd.so", runpath="$ORIGIN/lib")
    assert names(agree(root, opener()), tmp_path) == ["root.so", "lib/libwrong.so"]


def test_the_roots_own_soname_is_loaded(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/liba.so", "libroot.so")
    root = shared("root.so", "liba.so", "libroot.so", runpath="$ORIGIN/lib", soname="libroot.so")
    assert names(agree(root, opener()), tmp_path) == ["root.so", "lib/liba.so"]


def test_one_file_by_two_names_is_loaded_once(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/libd.so.1")
    (tmp_path / "lib/libd.so").symlink_to("libd.so.1")
    shared("lib/libb.so", "libd.so")  # has no path: it is known by the second name now
    root = shared("root.so", "libd.so.1", "libd.so", "libb.so", runpath="$ORIGIN/lib")
    assert names(agree(root, opener()), tmp_path) == ["root.so", "lib/libd.so.1", "lib/libb.so"]


def test_two_files_of_one_content_are_two(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    library = shared("lib/libd.so.1")
    shutil.copy(library, tmp_path / "lib/libd.so")
    root = shared("root.so", "libd.so.1", "libd.so", runpath="$ORIGIN/lib")
    assert names(agree(root, opener()), tmp_path) == ["root.so", "lib/libd.so.1", "lib/libd.so"]


def test_what_the_process_has_loaded_is_not_searched_for(
    shared: Shared, opener: Opener, tmp_path: Path
) -> None:
    library = shared("private/libfile.so", soname="libname.so")
    program = opener("-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}")
    shutil.copy(library, library.with_name("libname.so"))
    assert agree(shared("root.so", "libname.so"), program).opened


def test_what_the_process_has_loaded_is_known_by_the_name_that_was_asked_for(
    shared: Shared, opener: Opener
) -> None:
    library = shared("private/libfile.so")  # without SONAME
    folder = library.parent
    program = opener("-Wl,--no-as-needed", f"-L{folder}", "-l:libfile.so", f"-Wl,-rpath,{folder}")
    assert agree(shared("root.so", "libfile.so"), program).opened


@pytest.mark.parametrize("how", ["-pie", "-no-pie"])
def test_the_program_itself_is_no_library(shared: Shared, opener: Opener, how: str) -> None:
    program = opener(how)
    root = shared("root.so", "opener", runpath="$ORIGIN/opener")
    assert not agree(root, program).opened


def test_a_name_listed_twice_is_searched_once(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/libd.so")
    root = shared("root.so", "libd.so", runpath="$ORIGIN/lib")
    add_tag(root, "DT_NEEDED", "libd.so")
    said = subprocess.run(["readelf", "-d", root], capture_output=True, text=True).stdout
    assert said.count("[libd.so]") == 2
    assert names(agree(root, opener()), tmp_path) == ["root.so", "lib/libd.so"]


# The order.


def test_the_walk_is_breadth_first(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    for name, needs in {"a": ("c", "d"), "b": ("e",), "c": ("f",), "d": (), "e": (), "f": ("b",)}.items():
        shared(f"lib/lib{name}.so", *(f"lib{n}.so" for n in needs), runpath="$ORIGIN")
    root = shared("root.so", "liba.so", "libb.so", runpath="$ORIGIN/lib")
    order = [f"lib/lib{n}.so" for n in "abcdef"]
    assert names(agree(root, opener()), tmp_path) == ["root.so", *order]


def test_who_comes_first_decides_which_file_serves_all(
    shared: Shared, opener: Opener, tmp_path: Path
) -> None:
    shared("a/liba.so", "libd.so", runpath="$ORIGIN")
    shared("b/libb.so", "libd.so", runpath="$ORIGIN")
    shared("a/libd.so")
    shared("b/libd.so")
    root = shared("root.so", "libb.so", "liba.so", runpath="$ORIGIN/a:$ORIGIN/b")
    assert names(agree(root, opener()), tmp_path) == ["root.so", "b/libb.so", "a/liba.so", "b/libd.so"]


def test_circles_end(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/liba.so", "libb.so", runpath="$ORIGIN")
    shared("lib/libb.so", "liba.so", "libb.so", runpath="$ORIGIN")
    root = shared("root.so", "liba.so", runpath="$ORIGIN/lib")
    assert names(agree(root, opener()), tmp_path) == ["root.so", "lib/liba.so", "lib/libb.so"]


def test_the_first_failure_is_the_one_told(shared: Shared, opener: Opener) -> None:
    shared("lib/liba.so", "libdeep.so")
    root = shared("root.so", "liba.so", "libgone.so", runpath="$ORIGIN/lib")
    assert agree(root, opener()).said == f"libgone.so: {NOT_FOUND}"


# Files that do not serve.


def patched(path: Path, *bytes_at: tuple[int, int]) -> None:
    data = bytearray(path.read_bytes())
    for at, value in bytes_at:
        data[at] = value
    path.write_bytes(data)


def foreign(path: Path, emulation: str) -> None:
    """Put a shared object of another architecture there, of which lld needs no compiler."""
    content = path.with_name("content")
    content.write_bytes(b"x")
    command = ["ld.lld", "-m", emulation, "-shared", "--format=binary", content, "-o", path]
    subprocess.run(command, check=True, capture_output=True)


def linked(target: Path, *how: str) -> None:
    """Compile a program or a relocatable object over the file."""
    source = target.with_name("main.c")
    source.write_text("int main(void) { return 0; }")
    subprocess.run(["gcc", source, "-o", target, *how], check=True, capture_output=True)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda p: patched(p, (18, 183)), id="another machine"),
        pytest.param(lambda p: patched(p, (4, 1)), id="another class"),
        pytest.param(lambda p: patched(p, (4, 1), (5, 2)), id="another class and byte order"),
        pytest.param(lambda p: foreign(p, "elf64ppc"), id="another machine and byte order"),
    ],
)
def test_passed_over(shared: Shared, opener: Opener, tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    spoil(shared("bad/libd.so"))
    shared("lib/libd.so")
    root = shared("root.so", "libd.so", runpath="$ORIGIN/bad:$ORIGIN/lib")
    assert names(agree(root, opener()), tmp_path)[-1] == "lib/libd.so"


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(lambda p: p.write_text("INPUT(libd.so.1)\n" * 20), "invalid ELF header", id="text"),
        pytest.param(lambda p: p.write_bytes(b""), "file too short", id="empty"),
        pytest.param(lambda p: (p.unlink(), p.mkdir()), "Is a directory", id="folder"),
        pytest.param(lambda p: linked(p, "-c", "-fPIC"), "only ET_DYN and ET_EXEC", id="relocatable"),
        pytest.param(lambda p: linked(p, "-no-pie"), "cannot dynamically load executable", id="program"),
        pytest.param(lambda p: linked(p, "-pie"), "position-independent executable", id="PIE"),
        pytest.param(
            lambda p: subprocess.run(["objcopy", "--only-keep-debug", p], check=True),
            "no dynamic section",
            id="debug information",
        ),
    ],
)
@pytest.mark.parametrize("slash", [False, True])
def test_fatal(
    shared: Shared, opener: Opener, spoil: Callable[[Path], object], said: str, slash: bool
) -> None:
    bad = shared("bad/libd.so")
    spoil(bad)
    shared("lib/libd.so")
    name = str(bad) if slash else "libd.so"
    root = shared("root.so", name, runpath="$ORIGIN/bad:$ORIGIN/lib")
    assert said in agree(root, opener()).said


def test_noopen_forbids_dlopen_alone(shared: Shared, opener: Opener) -> None:
    shared("lib/libd.so", flags=("-Wl,-z,nodlopen",))
    root = shared("root.so", "libd.so", runpath="$ORIGIN/lib")
    assert "cannot be dlopen()ed" in agree(root, opener()).said
    assert agree(shared("tool", "libd.so", runpath="$ORIGIN/lib", program=True)).opened


@pytest.mark.parametrize("how", ["-no-pie", "-pie"])
def test_no_program_is_a_library_of_a_program(shared: Shared, how: str) -> None:
    linked(shared("lib/libd.so"), how)
    assert not agree(shared("tool", "libd.so", runpath="$ORIGIN/lib", program=True)).opened


# DT_FILTER and DT_AUXILIARY.


FILTER, AUXILIARY = "-Wl,-F,libimpl.so", "-Wl,-f,libimpl.so"


@pytest.mark.parametrize("flag", [FILTER, AUXILIARY])
def test_a_filtee_stands_before_its_filter_and_is_walked_next(
    shared: Shared, opener: Opener, tmp_path: Path, flag: str
) -> None:
    shared("lib/libimpl.so", "libx.so", runpath="$ORIGIN")
    shared("lib/liba.so", "libown.so", runpath="$ORIGIN", flags=(flag,))
    shared("lib/libb.so", "liby.so", runpath="$ORIGIN")
    for name in ("libx.so", "liby.so", "libown.so"):
        shared(f"lib/{name}")
    root = shared("root.so", "liba.so", "libb.so", runpath="$ORIGIN/lib")
    order = ["root.so", *(f"lib/lib{n}.so" for n in ("impl", "a", "b", "own", "x", "y"))]
    assert names(agree(root, opener()), tmp_path) == order


@pytest.mark.parametrize("flag", [FILTER, AUXILIARY])
def test_a_filtee_behind_its_filter_is_moved(
    shared: Shared, opener: Opener, tmp_path: Path, flag: str
) -> None:
    shared("lib/libimpl.so", "libx.so", runpath="$ORIGIN")
    shared("lib/liba.so", runpath="$ORIGIN", flags=(flag,))
    shared("lib/libb.so", "liby.so", runpath="$ORIGIN")
    shared("lib/libx.so")
    shared("lib/liby.so")
    root = shared("root.so", "liba.so", "libb.so", "libimpl.so", runpath="$ORIGIN/lib")
    order = ["root.so", *(f"lib/lib{n}.so" for n in ("impl", "a", "b", "x", "y"))]
    assert names(agree(root, opener()), tmp_path) == order


def test_a_filtee_before_its_filter_stays(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/libimpl.so")
    shared("lib/libb.so")
    shared("lib/liba.so", runpath="$ORIGIN", flags=(FILTER,))
    root = shared("root.so", "libimpl.so", "libb.so", "liba.so", runpath="$ORIGIN/lib")
    order = ["root.so", *(f"lib/lib{n}.so" for n in ("impl", "b", "a"))]
    assert names(agree(root, opener()), tmp_path) == order


def test_two_filtees_of_a_root(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/libimpl.so", "libx.so", runpath="$ORIGIN")
    shared("lib/libmore.so", "liby.so", runpath="$ORIGIN")
    for name in ("libx.so", "liby.so", "liba.so"):
        shared(f"lib/{name}")
    root = shared("root.so", "liba.so", runpath="$ORIGIN/lib", flags=(FILTER, "-Wl,-f,libmore.so"))
    seen = agree(root, opener())
    assert names(seen, tmp_path) == [
        "lib/libimpl.so",
        "lib/libmore.so",
        "root.so",
        "lib/liba.so",
        "lib/libx.so",
        "lib/liby.so",
    ]


def test_a_filter_of_itself_is_nothing(shared: Shared, opener: Opener, tmp_path: Path) -> None:
    shared("lib/libimpl.so")
    shared("lib/liba.so", runpath="$ORIGIN", soname="liba.so", flags=("-Wl,-F,liba.so", AUXILIARY))
    root = shared("root.so", "liba.so", runpath="$ORIGIN/lib")
    assert names(agree(root, opener()), tmp_path) == ["root.so", "lib/libimpl.so", "lib/liba.so"]


def test_a_missing_filtee_is_an_error_of_a_filter_alone(shared: Shared, opener: Opener) -> None:
    shared("lib/liba.so", flags=(FILTER,))
    root = shared("root.so", "liba.so", runpath="$ORIGIN/lib")
    assert agree(root, opener()).said == f"libimpl.so: {NOT_FOUND}"
    shared("lib/liba.so", flags=(AUXILIARY,))
    assert agree(root, opener()).opened


def test_the_dependencies_of_an_auxiliary_filtee_must_be_there(shared: Shared, opener: Opener) -> None:
    shared("lib/libimpl.so", "libgone.so")
    shared("lib/liba.so", runpath="$ORIGIN", flags=(AUXILIARY,))
    root = shared("root.so", "liba.so", runpath="$ORIGIN/lib")
    assert agree(root, opener()).said == f"libgone.so: {NOT_FOUND}"


def add_tag(path: Path, tag: str, text: str) -> None:
    """Put one more entry before the end of the dynamic section, in a place that the linker left free.

    ``text`` must be the end of a string that .dynstr holds.
    """
    number = {"DT_NEEDED": 1, "DT_RUNPATH": 29}[tag]
    data = bytearray(path.read_bytes())
    with path.open("rb") as file:
        elf = ELFFile(file)
        dynamic, strings = elf.get_section_by_name(".dynamic"), elf.get_section_by_name(".dynstr")
        used = list(dynamic.iter_tags())
        at = dynamic["sh_offset"] + 16 * (len(used) - 1)  # the entry that ends the section
        assert dynamic["sh_size"] >= 16 * (len(used) + 1), "no free place"
        offset = strings.data().index(text.encode() + b"\0")
    struct.pack_into("<QQ", data, at, number, offset)
    path.write_bytes(data)
