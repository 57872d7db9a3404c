"""``tree``: the edges of the sample wheels, as readelf -d and the loader's rules give them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from wheelfix.model.resolution import Edge, Load, Node
from wheelfix.report.tree import as_text, told

Run = Callable[..., tuple[int, str, str]]


def test_every_edge_says_how_it_was_found(wheelfix: Run, sample_wheels: Path) -> None:
    status, out, _ = wheelfix("tree", "--json", next(sample_wheels.glob("sample_healthy-*")))
    said = json.loads(out)
    edges = {(e["object"], e["needed"]): e for e in said["edges"]}
    helper = edges["sample_healthy/_ext.abi3.so", "libhelper.so"]
    assert status == 0
    assert said["schema"] == "wheelfix/tree/1"
    assert said["roots"] == ["sample_healthy/_ext.abi3.so"]
    assert {k: helper[k] for k in ("root", "status", "path", "rule", "via", "entry", "platform")} == {
        "root": "sample_healthy/_ext.abi3.so",
        "status": "found",
        "path": "sample_healthy/libhelper.so",
        "rule": "runpath",
        "via": "sample_healthy/_ext.abi3.so",
        "entry": "$ORIGIN",
        "platform": "manylinux_2_35_x86_64",
    }
    assert edges["sample_healthy/_ext.abi3.so", "libc.so.6"]["status"] == "host"


def test_a_missing_library_tells_where_it_was_looked_for(wheelfix: Run, sample_wheels: Path) -> None:
    status, out, _ = wheelfix("tree", next(sample_wheels.glob("sample_helper_missing-*")))
    assert status == 0
    assert "libhelper.so: missing; looked in sample_helper_missing/libhelper.so" in " ".join(
        out.replace("│", " ").split()
    )


def test_a_lone_elf_file_is_read_as_well(wheelfix: Run, sample_wheels: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(next(sample_wheels.glob("sample_helper_missing-*"))) as wheel:
        (tmp_path / "_ext.so").write_bytes(wheel.read("sample_helper_missing/_ext.abi3.so"))
    status, out, _ = wheelfix("tree", "--json", tmp_path / "_ext.so")
    assert status == 0
    assert [(e["object"], e["needed"], e["status"]) for e in json.loads(out)["edges"]] == [
        ("_ext.so", "libhelper.so", "missing")
    ]
    (tmp_path / "_ext.so").write_bytes(b"\x7fELF")
    assert wheelfix("tree", tmp_path / "_ext.so")[0] == 3


def test_a_circle_is_drawn_once_and_a_hostile_name_is_escaped() -> None:
    a = Node("a.so", "/a.so", None)
    edges = (
        Edge("a.so", "a.so", "b\x1b[2J.so", "found", "b.so", "rpath", "a.so", (), "$ORIGIN"),
        Edge("a.so", "b.so", "a.so", "already-loaded", "a.so", "soname-loaded"),
    )
    text = as_text([("manylinux_2_28_x86_64", [Load(a, (a,), edges)])])
    assert text.count("b.so") == 1
    assert "\x1b" not in text
    assert "a.so -> a.so (already loaded)" in text


@pytest.mark.parametrize("width", [20, 40, 80, 10_000])
def test_a_chain_of_2000_libraries_is_drawn_whole_at_any_width(width: int) -> None:
    a = Node("l0", "/l0", None)
    edges = tuple(Edge("l0", f"l{n}", f"l{n + 1}", "found", f"l{n + 1}") for n in range(2000))
    lines = as_text([("x", [Load(a, (a,), edges)])], width=width).splitlines()
    assert max(map(len, lines)) <= width
    drawn = " ".join(" ".join(line.strip("│├└─ ") for line in lines).split())
    assert all(f"l{n} -> l{n}" in drawn for n in range(1, 2001))


def test_a_branch_that_leaves_no_room_is_drawn_below() -> None:
    """What hangs on it stands in a tree of its own, headed by its path; a leaf needs none."""
    a = Node("a", "/a", None)
    asked = [("a", "b"), ("b", "c"), ("b", "d"), ("c", "e"), ("e", "f")]
    edges = tuple(Edge("a", of, name, "found", name) for of, name in asked)
    text = as_text([("x", [Load(a, (a,), edges)])], width=20)
    assert [line.rstrip() for line in text.splitlines()] == [
        "on x",
        "a",
        "└── b -> b",
        "    ├── c -> c ...",
        "    │   below",
        "    └── d -> d",
        "c",
        "└── e -> e",
        "    └── f -> f",
    ]


def test_an_edge_in_words() -> None:
    edge = Edge("r", "o", "l", "found", "p/l", "rpath", "r", (), "$ORIGIN/x")
    assert told(edge) == "l -> p/l (RPATH $ORIGIN/x of r)"
