"""The search of musl, against its real loader (``ld-musl --list``, which loads and says what it mapped).

The loader is that of Debian's package ``musl``, which ``make test`` installs as root (tests/tools.sh).
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.loader.conftest import Shared
from tests.oracle.simulate import Disk, Folders, Links, node_at
from wheelfix.loader.closure import load
from wheelfix.model.resolution import World

MUSL = f"/lib/ld-musl-{platform.machine()}.so.1"
_MAPPED = re.compile(r"\t(\S+) => (.+) \(0x[0-9a-f]+\)")
_MISSING = re.compile(r"Error loading shared library (.+?): .* \(needed by (.+)\)")


def agree(root: Path, library_path: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """The files that the loader mapped, in order, and the names that it missed, after ours were held against both."""
    environment = {"LD_LIBRARY_PATH": ":".join(library_path)} if library_path else {}
    done = subprocess.run(
        [MUSL, "--list", root],
        capture_output=True,
        text=True,
        cwd="/",
        env=environment,
    )
    mapped = [os.path.realpath(m[2]) for line in done.stdout.splitlines() if (m := _MAPPED.match(line))]
    missing = [
        (os.path.realpath(m[2]), m[1]) for line in done.stderr.splitlines() if (m := _MISSING.match(line))
    ]
    itself = node_at(MUSL)
    world = World(
        Disk(),
        Folders(),  # type: ignore[arg-type]
        links=Links(),
        host={"libc.so": itself},
        libc="musl",
        library_path=tuple(library_path),
    )
    ours = load(world, node_at(str(root)))
    assert [n.path for n in ours.scope[1:]] == mapped
    assert [(e.object, e.needed) for e in ours.edges if e.status == "missing"] == missing
    return [os.path.relpath(p, root.parent.resolve()) for p in mapped], [name for _, name in missing]


@pytest.mark.parametrize("kind", ["rpath", "runpath"])
def test_both_kinds_are_inherited(shared: Shared, kind: str) -> None:
    shared("lib/liba.so", "libd.so")
    shared("lib/libd.so")
    root = shared("root.so", "liba.so", **{kind: "$ORIGIN/lib"})
    assert agree(root) == (["lib/liba.so", "lib/libd.so"], [])


def test_a_runpath_in_between_does_not_block(shared: Shared) -> None:
    shared("lib/liba.so", "libd.so", runpath="$ORIGIN/nothing")
    shared("lib/libd.so")
    assert agree(shared("root.so", "liba.so", runpath="$ORIGIN/lib"))[0] == ["lib/liba.so", "lib/libd.so"]


def test_the_nearest_path_wins(shared: Shared) -> None:
    shared("lib/liba.so", "libd.so", runpath="$ORIGIN/near")
    shared("lib/near/libd.so")
    shared("lib/libd.so")
    root = shared("root.so", "liba.so", rpath="$ORIGIN/lib")
    assert agree(root)[0] == ["lib/liba.so", "lib/near/libd.so"]


@pytest.mark.parametrize("kind", ["rpath", "runpath"])
def test_ld_library_path_comes_first(shared: Shared, tmp_path: Path, kind: str) -> None:
    shared("own/libd.so")
    shared("env/libd.so")
    root = shared("root.so", "libd.so", **{kind: "$ORIGIN/own"})
    assert agree(root, [str(tmp_path / "env")])[0] == ["env/libd.so"]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("${ORIGIN}/lib", True),
        ("$ORIGIN/lib/../lib", True),
        ("$ORIGIN/nonexistent/../lib", False),
        ("$ORIGINAL/lib", False),  # $ORIGIN, and AL behind it
        ("$ORIGIN-x/../real/lib", False),
        ("$ORIGIN/lib:$LIB", False),  # an unknown token spoils the whole path
        ("$ORIGIN/lib:/x/${PLATFORM}", False),
        (":$ORIGIN/lib:", True),
        ("/nothing\n$ORIGIN/lib", True),
        ("lib", False),
    ],
)
def test_elements_and_tokens(shared: Shared, path: str, found: bool) -> None:
    shared("lib/libd.so")
    assert bool(agree(shared("root.so", "libd.so", runpath=path))[0]) == found


def test_origin_ends_where_it_ends(shared: Shared, tmp_path: Path) -> None:
    root = shared("root.so", "libd.so", runpath="$ORIGINAL/lib")
    shutil.copytree(shared("lib/libd.so").parent, Path(f"{tmp_path}AL") / "lib")
    assert agree(root)[1] == []


def test_loaded_by_the_name_that_was_asked_for(shared: Shared) -> None:
    shared("lib/libfile.so", soname="libname.so")
    shared("b/libb.so", "libfile.so")
    root = shared("root.so", "libfile.so", "libb.so", runpath="$ORIGIN/lib:$ORIGIN/b")
    assert agree(root) == (["lib/libfile.so", "b/libb.so"], [])


def test_a_soname_is_no_name(shared: Shared) -> None:
    shared("lib/libfile.so", soname="libname.so")
    root = shared("root.so", "libfile.so", "libname.so", runpath="$ORIGIN/lib")
    assert agree(root) == (["lib/libfile.so"], ["libname.so"])


def test_a_second_name_of_a_file_is_searched_each_time(shared: Shared, tmp_path: Path) -> None:
    shared("lib/libd.so.1")
    (tmp_path / "lib/libd.so").symlink_to("libd.so.1")
    root = shared("root.so", "libd.so.1", "libd.so", runpath="$ORIGIN/lib")
    assert agree(root) == (["lib/libd.so.1"], [])


def test_a_file_that_was_opened_by_its_path_gets_its_own_name(shared: Shared, tmp_path: Path) -> None:
    library = shared("lib/libd.so.1")
    (tmp_path / "lib/libd.so").symlink_to("libd.so.1")
    root = shared("root.so", str(library), "libd.so", "libd.so.1", runpath="$ORIGIN/lib")
    assert agree(root) == (["lib/libd.so.1"], [])


def test_tokens_in_a_name_are_no_tokens(shared: Shared) -> None:
    shared("lib/libd.so")
    assert agree(shared("root.so", "$ORIGIN/lib/libd.so"))[1] == ["$ORIGIN/lib/libd.so"]


def test_filters_are_unknown(shared: Shared) -> None:
    shared("lib/libimpl.so")
    shared("lib/liba.so", flags=("-Wl,-F,libimpl.so", "-Wl,-z,nodlopen"))
    assert agree(shared("root.so", "liba.so", runpath="$ORIGIN/lib"))[0] == ["lib/liba.so"]


def test_the_walk_is_breadth_first(shared: Shared) -> None:
    for name, needs in {"1": "34", "2": "5", "3": "6", "4": "", "5": "", "6": "2"}.items():
        shared(f"lib/lib{name}.so", *(f"lib{n}.so" for n in needs))
    root = shared("root.so", "lib1.so", "lib2.so", runpath="$ORIGIN/lib")
    assert agree(root)[0] == [f"lib/lib{n}.so" for n in "123456"]


@pytest.mark.parametrize(
    "name", ["libc.so", "libc.so.6", "libpthread.so.0", "libdl.so.2", "libm.so.6", "librt.so.1"]
)
def test_names_of_the_c_library_are_the_loader_itself(shared: Shared, name: str) -> None:
    shared(f"lib/{name}")
    (mapped,) = agree(shared("root.so", name, runpath="$ORIGIN/lib"))[0]
    assert os.path.basename(mapped) == os.path.basename(os.path.realpath(MUSL))


@pytest.mark.parametrize("name", ["libcx.so", "libmath.so", "libresolv.so.2", "libc-1234abcd.so"])
def test_names_that_only_begin_like_one_are_searched_for(shared: Shared, name: str) -> None:
    shared(f"lib/{name}")
    assert agree(shared("root.so", name, runpath="$ORIGIN/lib"))[0] == [f"lib/{name}"]


def test_all_that_is_missing_is_told(shared: Shared) -> None:
    shared("lib/liba.so", "libdeep.so")
    root = shared("root.so", "libgone.so", "liba.so", runpath="$ORIGIN/lib")
    assert agree(root) == (["lib/liba.so"], ["libgone.so", "libdeep.so"])


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda p: p.write_text("INPUT(libd.so.1)\n" * 99), id="text"),
        pytest.param(lambda p: (p.unlink(), p.mkdir()), id="folder"),
    ],
)
def test_what_is_found_first_ends_the_search(shared: Shared, spoil: Callable[[Path], object]) -> None:
    spoil(shared("bad/libd.so"))
    shared("lib/libd.so")
    assert agree(shared("root.so", "libd.so", runpath="$ORIGIN/bad:$ORIGIN/lib"))[1] == ["libd.so"]
