"""What the interpreter of a tag supplies, against what CPython's documentation and real interpreters say."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from wheelfix.model.elf import STT_FUNC, STT_OBJECT, ElfFacts
from wheelfix.policy.python_api import interpreter_node, stable_abi, version_of


def facts(python: str, abi: str) -> ElfFacts:
    elf = interpreter_node(python, abi).elf
    assert elf is not None
    return elf


def kinds(python: str, abi: str) -> dict[str, int]:
    return {s.name: s.kind for s in facts(python, abi).symbols}


@pytest.mark.parametrize("tag", ["cp38", "cp39", "cp310", "cp311", "cp312", "cp313", "cp314", "cp315"])
def test_the_api_of_one_version_is_known_whole(tag: str) -> None:
    assert facts(tag, tag).complete
    known = kinds(tag, tag)
    assert len(known) > 1500
    assert known["PyList_New"] == STT_FUNC
    assert known["_Py_NoneStruct"] == STT_OBJECT


@pytest.mark.parametrize(
    ("name", "there", "not_there"),
    [
        ("PyType_GetModuleByDef", "cp311", "cp310"),  # documented as new in 3.11
        ("PyFrame_GetVar", "cp312", "cp311"),  # new in 3.12
        ("PyDict_GetItemRef", "cp313", "cp312"),  # new in 3.13
        ("PyUnicodeWriter_Create", "cp314", "cp313"),  # new in 3.14
        ("_PyGen_Send", "cp39", "cp311"),  # private, gone
        ("PyAST_Check", "cp38", "cp39"),  # removed in 3.9
    ],
)
def test_names_come_and_go_with_the_version(name: str, there: str, not_there: str) -> None:
    assert name in kinds(there, there)
    assert name not in kinds(not_there, not_there)


def test_the_running_interpreter_exports_what_the_list_of_its_version_says() -> None:
    """The list of a version is the union of several builds: nothing public of this one may be missing."""
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    places = [Path(sys.executable).resolve()]
    library = Path(sysconfig.get_config_var("LIBDIR") or "/") / str(sysconfig.get_config_var("INSTSONAME"))
    if library.is_file():
        places.append(library)
    real: set[str] = set()
    for place in places:
        shown = subprocess.run(
            ["readelf", "--dyn-syms", "-W", str(place)], check=True, capture_output=True, text=True
        ).stdout
        real |= set(re.findall(r" (?:FUNC|OBJECT) +(?:GLOBAL|WEAK) +DEFAULT +\d+ (_?Py\w+)", shown))
    public = {n for n in real if not n.startswith("_")}
    assert len(public) > 500
    assert not public - set(kinds(tag, tag))


@pytest.mark.parametrize(
    ("python", "abi"),
    [
        ("py3", "none"),  # a program or a library for ctypes: some Python, of any version
        ("cp311", "none"),
        ("pp310", "pypy310_pp73"),
        ("cp399", "cp399"),
        ("cp313", "cp313t"),  # no free-threaded build could be had
        ("cp311", "cp311d"),
        ("", ""),
    ],
)
def test_without_a_list_nothing_is_known_and_the_answer_is_undecided(python: str, abi: str) -> None:
    assert not facts(python, abi).complete
    assert facts(python, abi).symbols == ()


def test_the_flag_m_of_older_tags_names_the_ordinary_build() -> None:
    assert facts("cp38", "cp38m").symbols == facts("cp38", "cp38").symbols != ()


def test_the_stable_abi_is_that_of_the_tags_version() -> None:
    assert "PyType_GetName" in kinds("cp311", "abi3")  # stable since 3.11
    assert "PyType_GetName" not in kinds("cp310", "abi3")
    assert "PyUnicode_New" not in kinds("cp311", "abi3")
    assert kinds("cp39", "abi3")["PyExc_ValueError"] == STT_OBJECT
    # Private, and yet part of it: macros of the limited API call them.
    assert "_Py_Dealloc" in kinds("cp39", "abi3")


def test_a_name_outside_the_stable_abi_is_undecided_since_later_pythons_may_have_it() -> None:
    assert not facts("cp39", "abi3").complete


def test_names_of_windows_and_of_debug_builds_are_not_stable_on_linux() -> None:
    stable = stable_abi()
    assert "PyErr_SetFromWindowsErr" not in stable
    assert "_Py_RefTotal" not in stable
    assert stable["PyOS_AfterFork_Child"] == (3, 7)


def test_every_stable_name_is_exported_by_the_interpreters_of_its_version() -> None:
    """abi3info against real interpreters: two sources that do not know of each other."""
    # CPython 3.9 has it as a macro only, against its own promise.
    exceptions = {(9, "PyCFunction_New")}
    for minor in range(8, 15):
        tag = f"cp3{minor}"
        stable = {n for n, version in stable_abi().items() if version <= (3, minor)}
        assert {(minor, n) for n in stable - set(kinds(tag, tag))} <= exceptions


@pytest.mark.parametrize(
    ("tag", "version"),
    [("cp39", (3, 9)), ("cp311", (3, 11)), ("cp27", (2, 7)), ("py3", None), ("pp310", None)],
)
def test_versions_of_cpython_tags(tag: str, version: tuple[int, int] | None) -> None:
    assert version_of(tag) == version
