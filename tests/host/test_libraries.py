"""Real files as nodes: by the loader's cache, and as a tree that is seen at another place."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.oracle.simulate import cached_libraries
from wheelfix.host.environment import read_environment
from wheelfix.host.libraries import CachedLibraries, RealFiles, RealFolders, real_node
from wheelfix.model.resolution import SITE


def library(place: Path, soname: str = "libx.so.1") -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", "-shared", "-nostdlib", "-x", "c", "/dev/null", "-o", place, f"-Wl,-soname,{soname}"]
    subprocess.run(command, check=True, capture_output=True)
    return place


def test_the_cache_leads_where_ldconfig_says() -> None:
    libraries, expected = CachedLibraries("x86_64"), cached_libraries()
    for name in ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"):
        assert libraries[name].location == expected[name]
        assert (libraries[name].path, libraries[name].owner) == (f"host:{name}", "host")


def test_a_name_that_the_machine_does_not_have() -> None:
    libraries = CachedLibraries("x86_64")
    assert "libnowhere-at-all.so" not in libraries
    with pytest.raises(KeyError):
        libraries["libnowhere-at-all.so"]


def test_libraries_of_another_architecture_are_not_this_ones() -> None:
    assert "libm.so.6" not in CachedLibraries("aarch64")


def test_identity_is_that_of_the_file(tmp_path: Path) -> None:
    one = library(tmp_path / "libx.so.1")
    (tmp_path / "soft.so").symlink_to(one.name)
    os.link(one, tmp_path / "hard.so")
    other = library(tmp_path / "other.so")
    nodes = [
        real_node(str(p), p.name, "host") for p in (one, tmp_path / "soft.so", tmp_path / "hard.so", other)
    ]
    found = [n.identity for n in nodes if n is not None]
    assert len(found) == 4
    assert found[0] == found[1] == found[2] != found[3]


def test_what_is_no_file_is_no_node(tmp_path: Path) -> None:
    assert real_node(str(tmp_path), "x", "host") is None
    assert real_node(str(tmp_path / "none"), "x", "host") is None
    (tmp_path / "loop").symlink_to("loop")
    assert real_node(str(tmp_path / "loop"), "x", "host") is None
    os.mkfifo(tmp_path / "pipe")  # is not opened, which would wait for a writer
    assert real_node(str(tmp_path / "pipe"), "x", "host") is None


def test_a_text_is_a_node_without_facts(tmp_path: Path) -> None:
    (tmp_path / "libx.so").write_text("INPUT(libx.so.1)")
    node = real_node(str(tmp_path / "libx.so"), "x", "host")
    assert node is not None
    assert node.elf is None


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    place = library(tmp_path / "libx.so", "liba.so")
    first = real_node(str(place), "x", "host")
    os.utime(library(place, "libb.so"), ns=(1, 1))
    second = real_node(str(place), "x", "host")
    assert [n.elf.soname for n in (first, second) if n is not None and n.elf is not None] == [
        "liba.so",
        "libb.so",
    ]


def test_a_tree_is_seen_where_the_wheel_is_installed(tmp_path: Path) -> None:
    library(tmp_path / "other/lib/libx.so.1")
    files = RealFiles(tmp_path, SITE, "given")
    node = files[f"{SITE}/other/lib/libx.so.1"]
    assert (node.path, node.location) == ("other/lib/libx.so.1", f"{SITE}/other/lib/libx.so.1")
    assert (node.owner, node.elf and node.elf.soname) == ("given", "libx.so.1")
    for absent in (f"{SITE}/other/lib", f"{SITE}/none", f"{SITE}x/other/lib/libx.so.1", str(tmp_path)):
        assert absent not in files
    folders = RealFolders(files)
    assert f"{SITE}/other/lib" in folders
    assert SITE in folders
    assert f"{SITE}/other/lib/libx.so.1" not in folders
    assert f"{SITE}/none" not in folders


def test_an_environment_is_its_newest_site_packages(tmp_path: Path) -> None:
    for version, names in {
        "3.9": ["old-1.dist-info"],
        "3.10": ["Zope.Interface-5.0.dist-info", "my_pkg-2.dist-info"],
    }.items():
        for name in names:
            (tmp_path / f"lib/python{version}/site-packages/{name}").mkdir(parents=True)
    library(tmp_path / "lib/python3.10/site-packages/other/libx.so.1")
    files, folders, distributions, _ = read_environment(tmp_path)
    assert distributions == {"zope-interface", "my-pkg"}
    assert f"{SITE}/other/libx.so.1" in files
    assert f"{SITE}/other" in folders


def test_a_site_packages_folder_is_an_environment_too(tmp_path: Path) -> None:
    (tmp_path / "x-1.dist-info").mkdir()
    assert read_environment(tmp_path)[2] == {"x"}


def test_a_folder_that_is_no_environment(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no environment"):
        read_environment(tmp_path)
