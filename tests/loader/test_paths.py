"""Where a path leads, against the kernel's own walk over folders, files and symbolic links that are really there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.loader.conftest import Shared
from tests.loader.observed import agree
from wheelfix.host.libraries import RealFiles, RealFolders, RealLinks
from wheelfix.loader.paths import elements, expanded, resolved
from wheelfix.model.resolution import World

PARTS = ("..", "..", ".", "", "a", "b", "c", "file", "up", "over", "loop", "gone", "itself", "none")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders a/b/c and b, and links: to a folder above, into another branch, in a circle, to nothing, to a file."""
    base = tmp_path_factory.mktemp("tree").resolve()
    (base / "a/b/c").mkdir(parents=True)
    (base / "b").mkdir()
    (base / "a/file").write_text("")
    (base / "a/b/up").symlink_to("..")
    (base / "b/over").symlink_to("../a/b/c")
    (base / "a/over").symlink_to(base / "b")
    (base / "loop").symlink_to("loop")
    (base / "a/gone").symlink_to("nowhere/x")
    (base / "itself").symlink_to("a/file")
    return base


def _views(base: Path, seen: str) -> tuple[RealFolders, RealLinks, RealFiles]:
    files = RealFiles(base, seen, "given")
    return RealFolders(files), RealLinks(files), files


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.sampled_from(PARTS), max_size=7))
def test_a_path_leads_where_the_kernel_goes(tree: Path, parts: list[str]) -> None:
    folders, links, _ = _views(Path("/"), "")
    path = f"{tree}/{'/'.join(parts)}"
    led = resolved(path + "/.", folders, links)
    assert (led is not None and led in folders) == os.path.isdir(path)
    if led is not None and led in folders:
        assert os.path.samefile(led, path)


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(st.sampled_from(PARTS), max_size=6))
def test_a_folder_that_is_seen_elsewhere_keeps_its_links(tree: Path, parts: list[str]) -> None:
    """As an environment's site-packages; what leaves it is not followed."""
    if any(True for _ in _climbs_out(tree, parts)):
        return
    folders, links, files = _views(tree, "/seen/here")
    path = "/".join(parts)
    led = resolved(f"/seen/here/{path}/.", _And(folders, {"/", "/seen"}), links)
    assert (led is not None and led in folders) == os.path.isdir(f"{tree}/{path}")
    if led is not None and led in folders:
        assert os.path.samefile(files.real(led) or "", f"{tree}/{path}")


def _climbs_out(tree: Path, parts: list[str]) -> Iterator[str]:
    for count in range(len(parts) + 1):
        real = os.path.realpath(f"{tree}/{'/'.join(parts[:count])}")
        if real != str(tree) and not real.startswith(f"{tree}/"):
            yield real


class _And:
    def __init__(self, folders: RealFolders, more: set[str]) -> None:
        self._folders, self._more = folders, more

    def __contains__(self, item: object) -> bool:
        return item in self._more or item in self._folders


@given(
    origin=st.lists(st.sampled_from(("site", "pkg", "x.libs")), min_size=1, max_size=3).map(
        lambda parts: "/" + "/".join(parts)
    ),
    token=st.sampled_from(("$ORIGIN", "${ORIGIN}")),
    rest=st.lists(st.sampled_from(("..", ".", "", "pkg", "x.libs")), max_size=5),
)
def test_both_forms_of_origin_are_the_folder_of_the_object(origin: str, token: str, rest: list[str]) -> None:
    entry = "/".join([token, *rest])
    for libc in ("glibc", "musl"):
        world = World({}, frozenset(), libc=libc)  # type: ignore[arg-type]
        assert os.path.normpath(expanded(entry, origin, world) or "") == os.path.normpath(
            "/".join([origin, *rest])
        )


@settings(max_examples=300, deadline=None)
@given(
    start=st.lists(st.sampled_from("abc"), max_size=4),
    end=st.lists(st.sampled_from("abc"), max_size=4),
)
def test_a_relative_hop_leads_from_one_folder_to_the_other(start: list[str], end: list[str]) -> None:
    """The path that a repair would write from one folder of the wheel to another."""
    origin, target = "/".join(["/site", *start]), "/".join(["/site", *end])
    folders = {"/", "/site"}
    for chain in (start, end):
        folders |= {"/".join(["/site", *chain[:n]]) for n in range(len(chain) + 1)}
    entry = "$ORIGIN/" + os.path.relpath(target, origin)
    folder = expanded(entry, origin, World({}, folders)) or ""
    assert resolved(folder + "/.", folders, {}) == target


@pytest.mark.parametrize("entry", ["$ORIGIN/link/../lib", "$ORIGIN/link/../../lib", "$ORIGIN/far/up/lib"])
def test_behind_a_link_the_loader_goes_up_from_where_it_leads(
    shared: Shared, opener: object, tmp_path: Path, entry: str
) -> None:
    (tmp_path / "far/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("far/inner")
    (tmp_path / "far/up").symlink_to("../link/..")
    shared("far/lib/libd.so")
    shared("lib/libd.so")
    root = shared("root.so", "libd.so", runpath=entry)
    assert agree(root, opener()).opened  # type: ignore[operator]


def test_musl_parts_a_path_at_newlines_too() -> None:
    assert elements("/a:/b\n/c:", "musl") == ["/a", "/b", "/c", ""]
    assert elements("/a:/b\n/c:", "glibc") == ["/a", "/b\n/c", ""]
    assert elements(None, "musl") == elements("", "glibc") == []


@pytest.mark.parametrize(
    ("element", "glibc", "musl"),
    [
        ("/a/$LIB", "/a/lib64", None),  # ldso/dynlink.c, fixup_rpath: only ORIGIN
        ("/a/${PLATFORM}", "/a/x86_64", None),
        ("$ORIGINAL/a", None, "/oAL/a"),  # musl does not look at what follows
        ("${ORIGIN}AL", "/oAL", "/oAL"),
        ("a", None, None),
        ("", None, None),
    ],
)
def test_which_tokens_are_replaced(element: str, glibc: str | None, musl: str | None) -> None:
    assert expanded(element, "/o", World({}, frozenset())) == glibc
    assert expanded(element, "/o", World({}, frozenset(), libc="musl")) == musl
