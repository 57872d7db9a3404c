"""What one process loads, on literal facts: SONAMEs that clash, OpenMP runtimes, names for dlopen."""

from __future__ import annotations

import pytest

from tests.checks.loading import brief, library, module, subject, told, wheel
from wheelfix.checks import processes
from wheelfix.model.finding import Finding
from wheelfix.model.wheel import Member, WheelFacts


def findings(rule: str, *members: Member, given: tuple[WheelFacts, ...] = ()) -> list[Finding]:
    return told(processes, subject(wheel(*members), *given), rule)


def user(path: str, *needed: str) -> Member:
    return module(path, *needed, runpath="$ORIGIN/lib:$ORIGIN")


@pytest.mark.rule("soname-clash", fires=True)
def test_two_files_of_one_soname_in_one_wheel() -> None:
    (finding,) = findings(
        "soname-clash",
        user("a/x.so", "liba.so.1"),
        user("b/y.so", "liba.so.1"),
        library("a/lib/liba.so.1"),
        library("b/lib/liba.so.1"),
    )
    assert brief([finding]) == [("soname-clash", "error", "a/lib/liba.so.1", "liba.so.1")]
    assert finding.evidence["files"] == ["a/lib/liba.so.1", "b/lib/liba.so.1"]


@pytest.mark.rule("soname-clash", fires=True)
def test_two_files_of_one_soname_in_two_wheels() -> None:
    other = wheel(user("b/y.so", "liba.so.1"), library("b/lib/liba.so.1"), name="other")
    (finding,) = findings(
        "soname-clash", user("a/x.so", "liba.so.1"), library("a/lib/liba.so.1"), given=(other,)
    )
    assert (finding.member, finding.library) == ("a/lib/liba.so.1", "liba.so.1")
    assert "of other" in finding.message


@pytest.mark.rule("soname-clash", fires=False)
def test_two_copies_of_one_content_do_no_harm() -> None:
    members = (
        user("a/x.so", "liba.so.1"),
        user("b/y.so", "liba.so.1"),
        library("a/lib/liba.so.1", sha256="same"),
        library("b/lib/liba.so.1", sha256="same"),
    )
    assert findings("soname-clash", *members) == []


@pytest.mark.rule("soname-clash", fires=False)
def test_names_with_a_hash_do_not_clash() -> None:
    members = (
        user("a/x.so", "liba-11111111.so.1"),
        user("b/y.so", "liba-22222222.so.1"),
        library("a/lib/liba-11111111.so.1"),
        library("b/lib/liba-22222222.so.1"),
    )
    assert findings("soname-clash", *members) == []


@pytest.mark.rule("soname-clash", fires=False)
def test_libraries_for_two_machines_never_meet() -> None:
    members = (
        user("a/x.so", "liba.so.1"),
        library("a/lib/liba.so.1"),
        library("arm/liba.so.1", machine=183),
    )
    assert findings("soname-clash", *members) == []


@pytest.mark.rule("openmp-duplicate", fires=True)
def test_two_openmp_runtimes_of_one_package() -> None:
    (finding,) = findings(
        "openmp-duplicate",
        user("pkg/a.so", "libgomp-a1b2c3d4.so.1"),
        user("pkg/b.so", "libiomp5.so"),
        library("pkg/lib/libgomp-a1b2c3d4.so.1"),
        library("pkg/lib/libiomp5.so"),
    )
    assert finding.severity == "warning"
    assert finding.evidence["runtimes"] == ["pkg/lib/libgomp-a1b2c3d4.so.1", "pkg/lib/libiomp5.so"]


@pytest.mark.rule("openmp-duplicate", fires=False)
def test_one_openmp_runtime_for_two_modules() -> None:
    members = (
        user("pkg/a.so", "libgomp-a1b2c3d4.so.1"),
        user("pkg/b.so", "libgomp-a1b2c3d4.so.1"),
        library("pkg/lib/libgomp-a1b2c3d4.so.1"),
    )
    assert findings("openmp-duplicate", *members) == []


@pytest.mark.rule("dlopen-target-missing", fires=True)
def test_a_name_for_dlopen_that_nobody_supplies() -> None:
    opener = library("pkg/liba.so", library_names=("libinner-of-nobody.so.1",))
    (finding,) = findings("dlopen-target-missing", opener)
    assert brief([finding]) == [
        ("dlopen-target-missing", "warning", "pkg/liba.so", "libinner-of-nobody.so.1")
    ]


@pytest.mark.rule("dlopen-target-missing", fires=True)
@pytest.mark.parametrize(
    "names", [("libplugin-of-nobody.so",), ("libx-of-nobody.so.2", "libx-of-nobody.so.1")]
)
def test_an_attempt_that_may_fail_is_an_information(names: tuple[str, ...]) -> None:
    found = findings("dlopen-target-missing", library("pkg/liba.so", library_names=names))
    assert {f.severity for f in found} == {"info"}


@pytest.mark.rule("dlopen-target-missing", fires=False)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("libinner.so.1", id="a file of the wheel"),
        pytest.param("libother.so.3", id="a SONAME of a given wheel"),
        pytest.param("libpthread.so.0", id="promised by the tag"),
        pytest.param("libcuda.so.1", id="the driver's"),
        pytest.param("libpython3.11.so.1.0", id="the interpreter's"),
        pytest.param("liba.so", id="the object itself"),
    ],
)
def test_a_name_that_somebody_supplies(name: str) -> None:
    other = wheel(library("other/file.so", soname="libother.so.3"), name="other")
    members = library("pkg/liba.so", library_names=(name,)), library("pkg/libinner.so.1")
    assert findings("dlopen-target-missing", *members, given=(other,)) == []
