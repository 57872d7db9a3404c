"""The search of the build host, against folders made for each test; the expected file is ld.so(8)'s."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from wheelfix.model.elf import ElfFacts
from wheelfix.repair.hostsearch import HostPaths, HostSearch, host_paths
from wheelfix.repair.supply import Asker


def put(folder: Path, name: str, needed: str = "", machine: int = 62) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"elf {machine} {needed}")
    return str(folder / name)


def read(path: Path) -> ElfFacts | None:
    """What stands for reading ELF objects: a file of words that begins with ``elf`` and e_machine."""
    words = path.read_text().split()
    if words[:1] != ["elf"]:
        return None
    return ElfFacts(machine=int(words[1]), needed=tuple(words[2:]))


def search(
    before: tuple[Path, ...] = (),
    after: tuple[Path, ...] = (),
    cache: Mapping[str, tuple[str, ...]] | None = None,
    libc: str = "glibc",
) -> HostSearch:
    paths = HostPaths(tuple(map(str, before)), cache or {}, tuple(map(str, after)))
    return HostSearch(paths, read, libc=libc)  # type: ignore[arg-type]


def where(find: HostSearch, name: str, *askers: Asker) -> str | None:
    found = find(name, askers)
    return found.path if found else None


def test_library_path_then_cache_then_configured_folders(tmp_path: Path) -> None:
    a, b, c = (put(tmp_path / d, "libx.so.1") for d in "abc")
    cache = {"libx.so.1": (b,)}
    folders = ((tmp_path / "a",), (tmp_path / "c",))
    assert where(search(*folders, cache), "libx.so.1") == a
    assert where(search((), folders[1], cache), "libx.so.1") == b
    assert where(search((), folders[1]), "libx.so.1") == c
    assert where(search(), "libx.so.1") is None


def test_rpath_goes_before_the_library_path_and_runpath_after_it(tmp_path: Path) -> None:
    env, own = put(tmp_path / "env", "libx.so.1"), put(tmp_path / "own", "libx.so.1")
    find = search((tmp_path / "env",))
    assert where(find, "libx.so.1", Asker(ElfFacts(rpath=f"{tmp_path}/own"))) == own
    assert where(find, "libx.so.1", Asker(ElfFacts(runpath=f"{tmp_path}/own"))) == env
    assert where(search(), "libx.so.1", Asker(ElfFacts(runpath=f"{tmp_path}/own"))) == own


def test_rpath_of_a_loader_is_inherited_unless_the_requester_has_a_runpath(tmp_path: Path) -> None:
    env, own = put(tmp_path / "env", "libx.so.1"), put(tmp_path / "own", "libx.so.1")
    loader = Asker(ElfFacts(rpath=f"{tmp_path}/own"))
    find = search((tmp_path / "env",))
    assert where(find, "libx.so.1", Asker(ElfFacts()), loader) == own
    assert where(find, "libx.so.1", Asker(ElfFacts(runpath="/nowhere")), loader) == env


def test_the_runpath_of_a_loader_is_the_last_resort(tmp_path: Path) -> None:
    conf, own = put(tmp_path / "conf", "libx.so.1"), put(tmp_path / "own", "libx.so.1")
    loader = Asker(ElfFacts(runpath=f"{tmp_path}/own"))
    assert where(search((), (tmp_path / "conf",)), "libx.so.1", Asker(ElfFacts()), loader) == conf
    assert where(search(), "libx.so.1", Asker(ElfFacts()), loader) == own


def test_origin_is_the_folder_of_a_library_of_this_machine_and_nothing_for_a_member(tmp_path: Path) -> None:
    inner = put(tmp_path / "lib" / "private", "libx.so.1")
    facts = ElfFacts(runpath="$ORIGIN/private")
    assert where(search(), "libx.so.1", Asker(facts, (f"{tmp_path}/lib",))) == inner
    assert where(search(), "libx.so.1", Asker(facts)) is None


def test_a_file_of_another_machine_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "a", "libx.so.1", machine=183)
    right = put(tmp_path / "b", "libx.so.1")
    assert where(search((tmp_path / "a", tmp_path / "b")), "libx.so.1") == right


def test_a_text_a_folder_and_a_dangling_link_are_passed_over(tmp_path: Path) -> None:
    for name in "tdl":
        (tmp_path / name).mkdir()
    (tmp_path / "t" / "libx.so").write_text("INPUT(libx.so.1)")
    (tmp_path / "d" / "libx.so").mkdir()
    (tmp_path / "l" / "libx.so").symlink_to("nowhere")
    right = put(tmp_path / "r", "libx.so")
    assert where(search(tuple(tmp_path / d for d in "tdlr")), "libx.so") == right


def test_a_library_for_the_other_c_library_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "a", "libx.so.1", "libc.so.6")
    right = put(tmp_path / "b", "libx.so.1", "libc.musl-x86_64.so.1")
    folders = (tmp_path / "a", tmp_path / "b")
    assert where(search(folders, libc="musl"), "libx.so.1") == right
    assert where(search(folders[::-1]), "libx.so.1") == str(tmp_path / "a" / "libx.so.1")


def test_a_variant_for_newer_processors_is_never_taken(tmp_path: Path) -> None:
    fast = put(tmp_path / "glibc-hwcaps" / "x86-64-v3", "libx.so.1")
    plain = put(tmp_path, "libx.so.1")
    assert where(search(cache={"libx.so.1": (fast, plain)}), "libx.so.1") == plain


def test_an_absolute_name_is_taken_where_it_is_and_else_searched_by_its_last_part(tmp_path: Path) -> None:
    there, other = put(tmp_path / "a", "libx.so"), put(tmp_path / "b", "libx.so")
    find = search((tmp_path / "b",))
    assert where(find, there) == there
    assert where(find, "/nowhere/libx.so") == other


def test_the_real_path_and_the_hash_of_the_whole_file_are_told(tmp_path: Path) -> None:
    real = put(tmp_path, "libx.so.1.2.3", "libc.so.6")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "libx.so.1").symlink_to(real)
    os.chmod(real, 0o640)
    found = search((tmp_path / "links",))("libx.so.1", ())
    assert found is not None
    assert found.path == real
    assert found.folders == (str(tmp_path / "links"), str(tmp_path))
    assert found.mode == 0o640
    assert found.size == len("elf 62 libc.so.6")
    assert found.sha256 == hashlib.sha256(Path(real).read_bytes()).hexdigest()


def test_an_unreadable_file_is_passed_over(tmp_path: Path) -> None:
    right = put(tmp_path / "b", "libx.so.1")
    assert where(search((tmp_path / "a" / ("n" * 300), tmp_path / "b")), "libx.so.1") == right


@pytest.mark.parametrize(
    ("environ", "ldpaths", "before", "after"),
    [
        (
            {"LD_LIBRARY_PATH": "/l", "AUDITWHEEL_LD_LIBRARY_PATH": "/a:/b"},
            None,
            ("/a", "/b", "/l"),
            ("/conf",),
        ),
        ({"LD_LIBRARY_PATH": "/l", "AUDITWHEEL_LD_LIBRARY_PATH": "/a"}, "/p:/q", ("/a",), ("/p", "/q")),
        ({"LD_LIBRARY_PATH": "/l"}, "", (), ()),
        ({}, None, (), ("/conf",)),
    ],
)
def test_ldpaths_takes_the_place_of_the_machines_own_search(
    environ: dict[str, str], ldpaths: str | None, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    paths = host_paths(environ, ldpaths, lambda: {"libx.so": ("/c/libx.so",)}, lambda: ["/conf"])
    assert (paths.before, paths.after) == (before, after)
    assert bool(paths.cache) == (ldpaths is None)
