"""The rules of the platform tag on literal facts."""

from __future__ import annotations

import pytest

from tests.checks.literal import GLIBC, MANYLINUX, MODULE, member, subject_of, wheel_of
from wheelfix.checks.platform import check, lacks_version
from wheelfix.model.elf import (
    ET_EXEC,
    LOOKUP_PLT,
    PT_LOAD,
    STB_WEAK,
    ElfFacts,
    Segment,
    Symbol,
    VersionNeed,
    VersionRef,
)
from wheelfix.model.finding import Finding
from wheelfix.model.policy import PlatformPolicy

OLDER = PlatformPolicy(
    "manylinux_2_17_x86_64",
    "x86_64",
    "glibc",
    (2, 17),
    frozenset({"libc.so.6"}),
    {"GLIBC": frozenset({"2.2.5", "2.17"})},
)
LINUX = PlatformPolicy("linux_x86_64", "x86_64", "glibc", (2, 41), frozenset({"libc.so.6"}), {}, capped=False)


def judged(elf: ElfFacts, *platforms: PlatformPolicy, path: str = MODULE) -> list[Finding]:
    return list(check(subject_of(wheel_of(member(path, elf)), platforms=platforms or (MANYLINUX,))))


def needs(version: str, *symbols: str, file: str = "libc.so.6", weak: bool = False) -> ElfFacts:
    return ElfFacts(
        needed=(file,),
        verneed=(VersionNeed(file, (VersionRef(version, weak=weak),)),),
        symbols=tuple(Symbol(s, version=version, version_file=file, lookups=LOOKUP_PLT) for s in symbols),
    )


@pytest.mark.rule("symbol-version-too-new", fires=True)
def test_a_version_above_the_tag_names_file_symbol_version_and_the_true_tag() -> None:
    (finding,) = judged(needs("GLIBC_2.36", "arc4random"))
    assert (finding.rule, finding.library, finding.symbol) == (
        "symbol-version-too-new",
        "libc.so.6",
        "arc4random",
    )
    assert "GLIBC_2.36" in finding.message
    assert finding.evidence["lowest-true-tag"] == "manylinux_2_36_x86_64"


@pytest.mark.rule("symbol-version-too-new", fires=False)
@pytest.mark.parametrize(
    "elf",
    [
        needs("GLIBC_2.28", "f"),
        needs("GLIBC_2.36", "f", weak=True),
        needs("V9", "f", file="libown.so.1"),
    ],
)
def test_promised_weak_and_uncapped_versions_are_right(elf: ElfFacts) -> None:
    assert judged(elf) == []


@pytest.mark.parametrize("platforms", [(OLDER, MANYLINUX), (MANYLINUX, OLDER)])
def test_each_tag_of_the_file_name_is_judged_apart(platforms: tuple[PlatformPolicy, ...]) -> None:
    found = judged(needs("GLIBC_2.28", "f"), *platforms)
    assert [f.evidence["tag"] for f in found] == ["manylinux_2_17_x86_64"]


def test_a_plain_linux_tag_promises_no_version() -> None:
    assert judged(needs("GLIBC_2.99", "f"), LINUX) == []


def test_the_versions_of_a_library_of_the_wheel_are_its_own() -> None:
    own = ElfFacts(soname="libstdc++.so.6")
    wheel = wheel_of(
        member(MODULE, needs("GLIBCXX_3.4.99", "f", file="libstdc++.so.6")), member("pkg/l.so", own)
    )
    assert [f for f in check(subject_of(wheel)) if f.rule == "symbol-version-too-new"] == []


@pytest.mark.parametrize(
    ("version", "tag", "lacks"),
    [
        ("GLIBC_ABI_DT_RELR", MANYLINUX, True),
        ("GLIBC_ABI_DT_RELR", LINUX, False),
        ("GLIBC_PRIVATE", MANYLINUX, False),
        ("GLIBC_2.17", OLDER, False),
        ("GLIBC_2.28", OLDER, True),
    ],
)
def test_markers_and_caps(version: str, tag: PlatformPolicy, lacks: bool) -> None:
    assert lacks_version(tag, version) is lacks


def test_relative_relocations_without_the_marker_need_glibc_2_36_all_the_same() -> None:
    (finding,) = judged(ElfFacts(relr=True))
    assert (finding.rule, finding.evidence["relr"]) == ("symbol-version-too-new", True)
    newer = PlatformPolicy("manylinux_2_36_x86_64", "x86_64", "glibc", (2, 36), frozenset(), GLIBC)
    assert judged(ElfFacts(relr=True), newer) == []


@pytest.mark.rule("symbol-version-private", fires=True)
def test_private_symbols_and_denied_ones_are_told() -> None:
    (private,) = judged(needs("GLIBC_PRIVATE", "__x"), LINUX)
    assert (private.rule, private.symbol) == ("symbol-version-private", "__x")
    denying = PlatformPolicy(
        "t", "x86_64", "glibc", (2, 28), frozenset({"libz.so.1"}), {}, {"libz.so.1": frozenset({"_tr_init"})}
    )
    wants = ElfFacts(needed=("libz.so.1",), symbols=(Symbol("_tr_init", lookups=LOOKUP_PLT),))
    assert [f.rule for f in judged(wants, denying)] == ["symbol-version-private"]


@pytest.mark.rule("symbol-version-private", fires=False)
def test_a_weak_reference_to_a_denied_symbol_is_right() -> None:
    denying = PlatformPolicy(
        "t", "x86_64", "glibc", (2, 28), frozenset({"libc.so.6"}), {}, {"libc.so.6": frozenset({"hook"})}
    )
    hook = Symbol("hook", bind=STB_WEAK, lookups=LOOKUP_PLT)
    assert judged(ElfFacts(needed=("libc.so.6",), symbols=(hook,)), denying) == []


@pytest.mark.rule("wrong-machine", fires=True)
@pytest.mark.parametrize("elf", [ElfFacts(machine=183), ElfFacts(bits=32, machine=3), ElfFacts(machine=9999)])
def test_an_object_of_another_processor_is_told(elf: ElfFacts) -> None:
    assert [f.rule for f in judged(elf)] == ["wrong-machine"]


@pytest.mark.rule("wrong-machine", fires=False)
def test_an_object_of_the_tags_processor_is_right() -> None:
    assert judged(ElfFacts()) == []


@pytest.mark.rule("libc-mixed", fires=True)
def test_two_c_libraries_and_the_wrong_one_are_told() -> None:
    musl = ElfFacts(needed=("libc.musl-x86_64.so.1",))
    both = wheel_of(member(MODULE, ElfFacts(needed=("libc.so.6",))), member("pkg/_b.so", musl))
    assert [f.rule for f in check(subject_of(both))] == ["libc-mixed"]
    assert [f.rule for f in judged(musl)] == ["libc-mixed"]


@pytest.mark.rule("libc-mixed", fires=False)
def test_one_c_library_that_the_tag_names_is_right() -> None:
    assert judged(ElfFacts(needed=("libc.so.6",))) == []


@pytest.mark.rule("isa-too-new", fires=True)
def test_a_newer_processor_level_is_told() -> None:
    (finding,) = judged(ElfFacts(x86_isa_needed=0b111))
    assert (finding.rule, "x86-64-v3" in finding.message) == ("isa-too-new", True)


@pytest.mark.rule("isa-too-new", fires=False)
def test_the_baseline_and_hwcaps_folders_are_right() -> None:
    assert judged(ElfFacts(x86_isa_needed=1)) == []
    assert judged(ElfFacts(x86_isa_needed=4), path="pkg/glibc-hwcaps/x86-64-v3/libx.so") == []


@pytest.mark.rule("libpython-linked", fires=True)
@pytest.mark.parametrize("library", ["libpython3.11.so.1.0", "libpython3.so", "libpython3.13t.so.1.0"])
def test_libpython_is_told_for_extensions_and_programs(library: str) -> None:
    (extension,) = judged(ElfFacts(needed=(library,)))
    (program,) = judged(ElfFacts(needed=(library,), type=ET_EXEC))
    assert (extension.rule, extension.evidence["program"], program.evidence["program"]) == (
        "libpython-linked",
        False,
        True,
    )


@pytest.mark.rule("libpython-linked", fires=False)
def test_other_names_with_python_are_right() -> None:
    assert judged(ElfFacts(needed=("libpythonic.so.1", "libboost_python311.so.1"))) == []


@pytest.mark.rule("elf-page-align", fires=True)
@pytest.mark.rule("elf-page-align", fires=False)
@pytest.mark.parametrize(
    ("machine", "align", "fires"), [(183, 0x1000, True), (183, 0x10000, False), (62, 0x1000, False)]
)
def test_small_alignment_is_told_where_kernels_have_large_pages(
    machine: int, align: int, fires: bool
) -> None:
    policy = PlatformPolicy(
        "t", "aarch64" if machine == 183 else "x86_64", "glibc", (2, 28), frozenset(), GLIBC
    )
    elf = ElfFacts(machine=machine, segments=(Segment(PT_LOAD, 5, 0, 0, 10, 10, align),))
    assert [f.rule for f in judged(elf, policy)] == (["elf-page-align"] if fires else [])
