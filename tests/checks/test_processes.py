"""What one process loads, on literal facts: SONAMEs that clash, OpenMP runtimes, names for dlopen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks.loading import READ, brief, library, module, subject, told, wheel
from wheelfix.checks import processes
from wheelfix.checks.subject import Scene, Subject
from wheelfix.model.elf import ET_EXEC, ElfFacts, Symbol
from wheelfix.model.finding import Finding
from wheelfix.model.policy import PlatformPolicy, Policy
from wheelfix.model.resolution import Load, Node, World
from wheelfix.model.wheel import Member, WheelFacts

PYTHON = Symbol("PyInit_liba", section=7, value=4096)


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
    assert "a/lib/liba.so.1 and b/lib/liba.so.1 both have" in finding.message


@pytest.mark.rule("soname-clash", fires=True)
def test_two_files_of_one_soname_in_two_wheels() -> None:
    other = wheel(user("b/y.so", "liba.so.1"), library("b/lib/liba.so.1"), name="other")
    (finding,) = findings(
        "soname-clash", user("a/x.so", "liba.so.1"), library("a/lib/liba.so.1"), given=(other,)
    )
    assert (finding.member, finding.library) == ("a/lib/liba.so.1", "liba.so.1")
    assert "b/lib/liba.so.1 of other both have" in finding.message


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
    assert findings("soname-clash", library("arm/b/liba.so.1", machine=183), *members) == []
    other = wheel(library("arm/liba.so.1", machine=183), name="other")
    assert findings("soname-clash", *members, given=(other,)) == []
    # Where no tag could be judged, which machine it is for is not known.
    arm = (library(f"{n}/liba.so.1", "liba.so.1", machine=183) for n in "ab")
    found = processes.check(Subject(wheel(*arm, library("x/liba.so.1")), (), (), Policy()))
    assert [f.evidence["files"] for f in found] == [["a/liba.so.1", "b/liba.so.1"]]


@pytest.mark.rule("soname-clash", fires=False)
@pytest.mark.parametrize(
    "other",
    [
        pytest.param(library("b/lib/liba.so.1", sha256="-"), id="that is never asked for by name"),
        pytest.param(library("b/lib/liba.so.1", type=ET_EXEC), id="that is a program"),
        pytest.param(library("b/lib/liba.so.1", symbols=(PYTHON,)), id="that is an extension module"),
        pytest.param(library("b/lib/libb.so.1", soname=None), id="without a SONAME"),
        pytest.param(
            Member(
                "b/liba.so.1", "b/liba.so.1", content="elf", elf=ElfFacts(soname="liba.so.1", segments=READ)
            ),
            id="whose content was not read",
        ),
    ],
)
def test_a_second_file_of_the_soname_does_no_harm(other: Member) -> None:
    asked = ("liba.so.1",) if other.sha256 != "-" else ()
    assert findings("soname-clash", user("a/x.so", *asked), library("a/lib/liba.so.1"), other) == []


@pytest.mark.rule("soname-clash", fires=False)
def test_two_given_wheels_that_clash_are_no_fault_of_this_one() -> None:
    others = tuple(
        wheel(user(f"{n}/y.so", "liba.so.1"), library(f"{n}/lib/liba.so.1"), name=n) for n in ("b", "c")
    )
    assert findings("soname-clash", user("a/x.so"), given=others) == []


@pytest.mark.rule("soname-clash", fires=True)
def test_each_soname_is_told_with_the_first_file_that_differs() -> None:
    members = [
        user("a/x.so", "liba.so.1", "libb.so.1", "libn.so.1"),
        user("b/y.so", "liba.so.1", "libb.so.1"),
    ]
    members += [library(f"{folder}/lib/{n}.so.1") for n in ("liba", "libb") for folder in "ab"]
    members += [library("a/lib/libn.so.1"), library("c/liba.so.1", sha256="hash of a/lib/liba.so.1")]
    found = findings("soname-clash", *members)
    assert [(f.member, f.library) for f in found] == [
        ("a/lib/liba.so.1", "liba.so.1"),
        ("a/lib/libb.so.1", "libb.so.1"),
    ]
    assert all("a/lib/lib" in f.message and " and b/lib/lib" in f.message for f in found)


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
    assert finding.evidence["roots"] == ["pkg/a.so", "pkg/b.so"]
    assert (finding.member, finding.library) == ("pkg/a.so", "libgomp-a1b2c3d4.so.1")


@pytest.mark.rule("openmp-duplicate", fires=True)
def test_an_openmp_runtime_of_another_wheel_counts_and_the_hosts_does_not() -> None:
    other = wheel(library("other/lib/libomp.so.5"), name="other")
    ours = library("pkg/lib/libgomp-a1b2c3d4.so.1"), user("pkg/a.so", "libgomp-a1b2c3d4.so.1")
    theirs = module("pkg/b.so", "libomp.so.5", runpath="$ORIGIN/../other/lib")
    (finding,) = findings("openmp-duplicate", *ours, theirs, given=(other,))
    assert finding.evidence["runtimes"] == ["other/lib/libomp.so.5", "pkg/lib/libgomp-a1b2c3d4.so.1"]
    names = ("libomptarget.so", "libgompx.so.1")
    harmless = [library(f"pkg/lib/{n}") for n in names]
    assert findings("openmp-duplicate", *ours, user("pkg/b.so", *names), *harmless) == []


@pytest.mark.parametrize(
    ("identities", "told"), [(("", ""), True), (("dev:1", "dev:1"), False), (("dev:1", "dev:2"), True)]
)
def test_two_names_of_one_file_are_one_runtime(identities: tuple[str, str], told: bool) -> None:
    root = Node("pkg/a.so", "/s/pkg/a.so", ElfFacts())
    runtimes = [
        Node(f"pkg/{n}/libgomp.so.1", f"/s/pkg/{n}/libgomp.so.1", ElfFacts(), "wheel", None, identity)
        for n, identity in zip("xy", identities, strict=True)
    ]
    platform = PlatformPolicy("t", "x86_64", "glibc", (2, 28), frozenset(), {})
    scene = Scene(platform, World({}, frozenset()), (Load(root, (root, *runtimes), ()),))
    found = processes.check(Subject(WheelFacts("x.whl"), (platform,), (scene,), Policy()))
    assert [f.rule for f in found] == (["openmp-duplicate"] if told else [])
    hosts = [replace(n, owner="host") for n in runtimes]
    scene = replace(scene, loads=(Load(root, (root, *hosts), ()),))
    assert list(processes.check(Subject(WheelFacts("x.whl"), (platform,), (scene,), Policy()))) == []


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
    assert [f.library for f in found] == list(names)


@pytest.mark.rule("dlopen-target-missing", fires=True)
def test_a_name_that_somebody_supplies_does_not_hide_those_behind_it() -> None:
    names = ("libinner.so.1", "libcuda.so.1", "libx-of-nobody.so.2")
    opener = library("pkg/liba.so", library_names=names)
    found = findings("dlopen-target-missing", opener, library("pkg/libinner.so.1"))
    assert [f.library for f in found] == ["libx-of-nobody.so.2"]


@pytest.mark.rule("dlopen-target-missing", fires=False)
def test_a_library_that_only_the_tag_promises() -> None:
    name = "libpromised-of-nobody.so.1"
    opener = wheel(library("pkg/liba.so", library_names=(name,)))
    tag = PlatformPolicy("t", "x86_64", "glibc", (2, 28), frozenset({name}), {})
    assert list(processes.check(Subject(opener, (tag,), (), Policy()))) == []
    assert len(list(processes.check(Subject(opener, (), (), Policy())))) == 1


@pytest.mark.rule("dlopen-target-missing", fires=True)
def test_names_of_two_libraries_are_no_attempts_of_one() -> None:
    names = ("libx-of-nobody.so.2", "liby-of-nobody.so.2")
    found = findings("dlopen-target-missing", library("pkg/liba.so", library_names=names))
    assert [(f.severity, f.library) for f in found] == [("warning", n) for n in names]


@pytest.mark.rule("dlopen-target-missing", fires=False)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("libinner.so.1", id="a file of the wheel"),
        pytest.param("libother.so.3", id="a SONAME of a given wheel"),
        pytest.param("libpthread.so.0", id="promised by the tag"),
        pytest.param("libcuda.so.1", id="the driver's"),
        pytest.param("libpython3.11.so.1.0", id="the interpreter's"),
        pytest.param("libpython3.99.so.1.0", id="an interpreter's that no distribution has"),
        pytest.param("liba.so", id="the object itself"),
        pytest.param("libneeded-of-nobody.so.1", id="what the object needs anyway"),
        pytest.param("libother.file.so.2", id="a file of a given wheel"),
        pytest.param("libsoname.so.4", id="a SONAME of the wheel"),
        pytest.param("libnuma.so.1", id="a distribution's package"),
    ],
)
def test_a_name_that_somebody_supplies(name: str) -> None:
    other = wheel(
        library("other/file.so", soname="libother.so.3"),
        library("other/libother.file.so.2", soname=None),
        name="other",
    )
    members = (
        library("pkg/liba.so", "libneeded-of-nobody.so.1", library_names=(name,)),
        library("pkg/libinner.so.1"),
        library("pkg/x.so", soname="libsoname.so.4"),
    )
    assert findings("dlopen-target-missing", *members, given=(other,)) == []
