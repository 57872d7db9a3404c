"""The rules of the platform tag on literal facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.checks.literal import GLIBC, MANYLINUX, MODULE, member, subject_of, wheel_of
from wheelfix.checks.platform import check, lacks_version
from wheelfix.model.elf import (
    ET_EXEC,
    LOOKUP_PLT,
    MACHINES,
    PT_LOAD,
    PT_NOTE,
    STB_WEAK,
    ElfFacts,
    Segment,
    Symbol,
    VersionNeed,
    VersionRef,
)
from wheelfix.model.finding import Finding
from wheelfix.model.policy import PlatformPolicy
from wheelfix.model.wheel import WheelFacts

OLDER = PlatformPolicy(
    "manylinux_2_17_x86_64",
    "x86_64",
    "glibc",
    (2, 17),
    frozenset({"libc.so.6"}),
    {"GLIBC": frozenset({"2.2.5", "2.17"})},
)
MUSL = PlatformPolicy("musllinux_1_2_x86_64", "x86_64", "musl", (1, 2), frozenset({"libc.so"}), {})
ARM = PlatformPolicy("manylinux_2_28_aarch64", "aarch64", "glibc", (2, 28), frozenset(), GLIBC)
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


@pytest.mark.parametrize(
    ("count", "listed"),
    [
        (0, ""),
        (1, " because of f0"),
        (3, " because of f0, f1, f2"),
        (4, " because of f0, f1, f2 and 1 more"),
    ],
)
def test_three_of_the_symbols_that_use_a_version_are_told_and_the_number_of_the_others(
    count: int, listed: str
) -> None:
    names = [f"f{i}" for i in range(count)]
    (finding,) = judged(needs("GLIBC_2.36", *names))
    assert f"needs GLIBC_2.36 of libc.so.6{listed}; manylinux_2_28_x86_64 promises" in finding.message
    assert (finding.symbol, finding.evidence["symbols"]) == (names[0] if names else None, names)


def of_libc(*version: int, **versions: frozenset[str]) -> PlatformPolicy:
    return PlatformPolicy("t", "x86_64", "glibc", (version[0], version[1]), frozenset(), versions or GLIBC)


@pytest.mark.parametrize(
    ("version", "has", "told"),
    [
        # By number, not by letter; what is no number at all comes last.
        ("CXXABI_1.3.13", {"TM_1", *(f"1.3.{i}" for i in range(1, 12))}, "promises CXXABI_1.3.11 at most"),
        ("CXXABI_1.3.13", {"FLOAT128", "1.3"}, "promises CXXABI_1.3 at most"),
        ("LIBATOMIC_1.0", set(), "promises no version of LIBATOMIC"),  # in manylinux_2_5 of auditwheel's data
        ("GLIBC_ABI_DT_RELR", {"2.28"}, "(glibc 2.36 or later); t promises GLIBC 2.28 at most"),
    ],
)
def test_the_newest_version_of_the_tag_is_told(version: str, has: set[str], told: str) -> None:
    tag = of_libc(2, 28, **{version.partition("_")[0]: frozenset(has)})
    (finding,) = [f for f in judged(needs(version, "f"), tag) if f.rule == "symbol-version-too-new"]
    assert finding.message.endswith(told)


def test_the_lowest_true_tag_has_every_version_that_the_object_needs() -> None:
    elf = ElfFacts(verneed=(VersionNeed("libc.so.6", (VersionRef("GLIBC_2.36"), VersionRef("GLIBC_2.38"))),))
    found = judged(elf)
    assert [f.evidence["version"] for f in found] == ["GLIBC_2.36", "GLIBC_2.38"]
    assert {f.evidence["lowest-true-tag"] for f in found} == {"manylinux_2_38_x86_64"}
    assert all("The lowest tag that this object keeps is manylinux_2_38_x86_64." in f.remedy for f in found)
    (none,) = judged(needs("GLIBC_2.999", "f"))
    assert none.evidence["lowest-true-tag"] is None
    assert "lowest tag" not in none.remedy


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
        ("GLIBC_2.28", MUSL, False),  # musl has no versions
        ("OWN_1", OLDER, False),  # a prefix that the policy does not cap
    ],
)
def test_markers_and_caps(version: str, tag: PlatformPolicy, lacks: bool) -> None:
    assert lacks_version(tag, version) is lacks


@pytest.mark.parametrize(
    ("marker", "minor"),
    [("ABI_DT_RELR", 36), ("ABI_DT_X86_64_PLT", 42), ("ABI_GNU_TLS", 42), ("ABI_GNU2_TLS", 42)],
)
def test_each_marker_has_its_release_of_glibc(marker: str, minor: int) -> None:
    assert lacks_version(of_libc(2, minor - 1), f"GLIBC_{marker}")
    assert not lacks_version(of_libc(2, minor), f"GLIBC_{marker}")


def test_relative_relocations_without_the_marker_need_glibc_2_36_all_the_same() -> None:
    (finding,) = judged(ElfFacts(relr=True))
    assert (finding.rule, finding.evidence["relr"]) == ("symbol-version-too-new", True)
    assert "promises glibc 2.28." in finding.message
    assert len(judged(ElfFacts(relr=True), of_libc(2, 35))) == 1
    for newer in (of_libc(2, 36), LINUX, replace(LINUX, libc_version=(2, 31)), MUSL):
        assert judged(ElfFacts(relr=True), newer) == []


def test_relative_relocations_with_the_marker_are_told_as_its_version_alone() -> None:
    (finding,) = judged(replace(needs("GLIBC_ABI_DT_RELR"), relr=True))
    assert finding.evidence["version"] == "GLIBC_ABI_DT_RELR"


@pytest.mark.rule("symbol-version-private", fires=True)
def test_private_symbols_and_denied_ones_are_told() -> None:
    (private,) = judged(needs("GLIBC_PRIVATE", "__x", "__y"), LINUX)
    assert (private.rule, private.symbol) == ("symbol-version-private", "__x")
    wants = ElfFacts(needed=("libz.so.1",), symbols=(Symbol("_tr_init", lookups=LOOKUP_PLT),))
    assert [f.rule for f in judged(wants, denying("libz.so.1", "_tr_init"))] == ["symbol-version-private"]


def test_a_private_version_without_a_symbol_of_it_is_told_with_its_file() -> None:
    (private,) = judged(needs("GLIBC_PRIVATE"), LINUX)
    assert (private.library, private.symbol) == ("libc.so.6", None)
    assert "uses no named symbol of libc.so.6" in private.message


def denying(library: str, *names: str, tag: str = "t") -> PlatformPolicy:
    return PlatformPolicy(
        tag, "x86_64", "glibc", (2, 28), frozenset({library}), {}, {library: frozenset(names)}
    )


def test_denied_symbols_of_two_tags_are_told_once_in_order() -> None:
    calls = tuple(Symbol(n, lookups=LOOKUP_PLT) for n in ("_tr_b", "_tr_a", "other"))
    tags = (denying("libz.so.1", "_tr_a", "_tr_b"), denying("libz.so.1", "_tr_a", "_tr_b", tag="u"))
    (finding,) = judged(ElfFacts(needed=("libz.so.1",), symbols=calls), *tags)
    assert (finding.symbol, finding.library) == ("_tr_a", "libz.so.1")
    assert finding.evidence == {"symbols": ["_tr_a", "_tr_b"], "tag": "t"}


@pytest.mark.parametrize(
    "elf",
    [
        pytest.param(ElfFacts(symbols=(Symbol("_tr_init", lookups=LOOKUP_PLT),)), id="of another library"),
        pytest.param(
            ElfFacts(
                needed=("libz.so.1",), symbols=(Symbol("_tr_init", section=1, value=1, lookups=LOOKUP_PLT),)
            ),
            id="the object's own",
        ),
        pytest.param(
            ElfFacts(needed=("libz.so.1",), symbols=(Symbol("_tr_init"),)), id="that no relocation names"
        ),
    ],
)
def test_a_denied_name_that_the_object_does_not_take_from_the_library_is_right(elf: ElfFacts) -> None:
    assert judged(elf, denying("libz.so.1", "_tr_init")) == []


@pytest.mark.rule("symbol-version-private", fires=False)
def test_a_weak_reference_to_a_denied_symbol_is_right() -> None:
    hook = Symbol("hook", bind=STB_WEAK, lookups=LOOKUP_PLT)
    assert judged(ElfFacts(needed=("libc.so.6",), symbols=(hook,)), denying("libc.so.6", "hook")) == []


@pytest.mark.rule("wrong-machine", fires=True)
@pytest.mark.parametrize("elf", [ElfFacts(machine=183), ElfFacts(bits=32, machine=3), ElfFacts(machine=9999)])
def test_an_object_of_another_processor_is_told(elf: ElfFacts) -> None:
    assert [f.rule for f in judged(elf)] == ["wrong-machine"]


def test_no_processor_is_wrong_where_no_tag_names_one() -> None:
    arm = wheel_of(member(MODULE, ElfFacts(machine=183)))
    assert list(check(subject_of(arm, platforms=()))) == []
    both = replace(arm, tags=("py3-none-any", "py3-none-manylinux_2_28_x86_64"))
    assert list(check(subject_of(both))) == []


@pytest.mark.parametrize(
    ("flags", "wrong"),
    [(0, False), (0x200, True), (0x400, False), (0x600, False), (0x5000201, True), (0x5000000, False)],
)
def test_the_soft_float_abi_of_arm_is_another_processor(flags: int, wrong: bool) -> None:
    # elf.h: EF_ARM_ABI_FLOAT_SOFT is 0x200, EF_ARM_ABI_FLOAT_HARD 0x400; tags for armv7l mean the second.
    tag = PlatformPolicy("t", "armv7l", "glibc", (2, 31), frozenset(), GLIBC)
    found = judged(ElfFacts(machine=40, bits=32, abi_flags=flags), tag)
    assert [(f.rule, f.evidence["found"]) for f in found] == (
        [("wrong-machine", "armv7l with the soft-float ABI")] if wrong else []
    )
    assert judged(ElfFacts(abi_flags=flags)) == []  # bits of another processor mean something else


def test_a_processor_is_told_by_its_name_or_where_no_tag_has_one_by_its_number() -> None:
    (named,) = judged(ElfFacts(machine=22, big_endian=True), MANYLINUX, ARM)
    assert "is for s390x; the tag promises aarch64, x86_64" in named.message
    (finding,) = judged(ElfFacts(machine=9999), MANYLINUX, ARM)
    assert "is for e_machine 9999, 64 bits; the tag promises aarch64, x86_64" in finding.message


@pytest.mark.rule("wrong-machine", fires=False)
def test_an_object_of_the_tags_processor_is_right() -> None:
    assert judged(ElfFacts()) == []


@pytest.mark.rule("libc-mixed", fires=True)
def test_two_c_libraries_and_the_wrong_one_are_told() -> None:
    musl = ElfFacts(needed=("libc.musl-x86_64.so.1",))
    both = wheel_of(member(MODULE, ElfFacts(needed=("libc.so.6",))), member("pkg/_b.so", musl))
    assert [f.rule for f in check(subject_of(both))] == ["libc-mixed"]
    assert [f.rule for f in judged(musl)] == ["libc-mixed"]


def users(**needed: str) -> WheelFacts:
    return wheel_of(*(member(f"pkg/{n}.so", ElfFacts(needed=(lib,))) for n, lib in needed.items()))


def test_the_objects_of_the_rarer_c_library_are_told_first() -> None:
    musl, glibc = "libc.musl-x86_64.so.1", "libc.so.6"
    (finding,) = check(subject_of(users(a=glibc, b=glibc, c=musl)))
    assert "pkg/c.so needs musl, pkg/a.so, pkg/b.so needs glibc" in finding.message
    assert finding.member == "pkg/c.so"
    (finding,) = check(subject_of(users(a=musl, b=glibc, c=musl)))
    assert "pkg/b.so needs glibc, pkg/a.so, pkg/c.so needs musl" in finding.message
    assert finding.evidence == {"glibc": ["pkg/b.so"], "musl": ["pkg/a.so", "pkg/c.so"]}
    (finding,) = check(subject_of(users(a=musl, b=musl, c=glibc, d=glibc)))
    assert finding.member == "pkg/c.so"


def test_the_first_object_of_the_wrong_c_library_is_told() -> None:
    (finding,) = check(subject_of(users(a="libc.musl-x86_64.so.1", b="libc.so")))
    assert finding.member == "pkg/a.so"
    assert finding.evidence == {"musl": ["pkg/a.so", "pkg/b.so"], "promised": ["glibc"]}


@pytest.mark.parametrize(
    ("needed", "interpreter", "libc"),
    [
        ((), "/lib64/ld-linux-x86-64.so.2", "glibc"),
        ((), "/lib/ld-linux.so.2", "glibc"),
        ((), "/lib64/ld64.so.2", "glibc"),  # ppc64le
        ((), "/lib/ld-musl-x86_64.so.1", "musl"),
        (("libc.so.6",), None, "glibc"),
        (("libm.so.6", "libc.musl-aarch64.so.1"), None, "musl"),
        (("libc.so",), None, "musl"),
        (("libc.so.7",), None, None),
        (("libm.so.6",), None, None),
    ],
)
def test_an_object_needs_a_c_library_by_name_or_by_its_interpreter(
    needed: tuple[str, ...], interpreter: str | None, libc: str | None
) -> None:
    elf = ElfFacts(needed=needed, interpreter=interpreter)
    for tag in (MANYLINUX, MUSL):
        found = [f for f in judged(elf, tag) if f.rule == "libc-mixed"]
        assert bool(found) is (libc not in (None, tag.libc))
    assert judged(elf, MANYLINUX, MUSL) == []


def test_no_c_library_is_wrong_where_no_tag_is_judged() -> None:
    assert list(check(subject_of(users(a="libc.so.6"), platforms=()))) == []


@pytest.mark.rule("libc-mixed", fires=False)
def test_one_c_library_that_the_tag_names_is_right() -> None:
    assert judged(ElfFacts(needed=("libc.so.6",))) == []


@pytest.mark.rule("isa-too-new", fires=True)
def test_a_newer_processor_level_is_told() -> None:
    (finding,) = judged(ElfFacts(x86_isa_needed=0b111))
    assert (finding.rule, "x86-64-v3" in finding.message) == ("isa-too-new", True)


@pytest.mark.parametrize(
    ("bits", "levels"),
    [
        (0b0010, ["x86-64-v2"]),
        (0b0101, ["x86-64-v3"]),
        (0b1111, ["x86-64-v2", "x86-64-v3", "x86-64-v4"]),
        (0b10000, []),
    ],
)
def test_the_highest_level_is_told_with_the_first_tag(bits: int, levels: list[str]) -> None:
    found = judged(ElfFacts(x86_isa_needed=bits), OLDER, MANYLINUX)
    assert [f.evidence for f in found] == ([{"needed": levels, "tag": OLDER.tag}] if levels else [])
    assert all(f"needing {levels[-1]} (" in f.message for f in found)


def test_levels_are_a_matter_of_tags_for_x86_alone() -> None:
    intel = PlatformPolicy("t", "i686", "glibc", (2, 28), frozenset(), GLIBC)
    assert [f.rule for f in judged(ElfFacts(machine=3, bits=32, x86_isa_needed=4), intel)] == ["isa-too-new"]
    assert judged(ElfFacts(machine=183, x86_isa_needed=4), ARM) == []


@pytest.mark.rule("isa-too-new", fires=False)
def test_the_baseline_and_hwcaps_folders_are_right() -> None:
    assert judged(ElfFacts(x86_isa_needed=1)) == []
    for folder in ("x86-64-v3", "own"):
        assert judged(ElfFacts(x86_isa_needed=4), path=f"pkg/glibc-hwcaps/{folder}/libx.so") == []


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


def test_libpython_is_told_once_for_each_name_and_what_to_do_depends_on_the_object() -> None:
    elf = ElfFacts(needed=("libpython3.11.so.1.0", "libm.so.6", "libpython3.11.so.1.0"))
    (extension,) = judged(elf)
    (program,) = judged(replace(elf, type=ET_EXEC))
    assert "an object of a Python process" in extension.message
    assert "without -lpython" in extension.remedy
    assert "a program that embeds the interpreter" in program.message
    assert "the program's own interpreter" in program.remedy


@pytest.mark.rule("elf-page-align", fires=True)
@pytest.mark.rule("elf-page-align", fires=False)
@pytest.mark.parametrize("align", [0x1000, 0x8000, 0xFFFF, 0x10000])
@pytest.mark.parametrize("arch", MACHINES)
def test_small_alignment_is_told_where_kernels_have_large_pages(arch: str, align: int) -> None:
    # Linux: CONFIG_ARM64_64K_PAGES, CONFIG_PPC_64K_PAGES, CONFIG_PAGE_SIZE_64KB of LoongArch; no other one has it.
    large = arch in ("aarch64", "ppc64le", "ppc64", "loongarch64")
    machine, bits, big_endian = MACHINES[arch]
    elf = ElfFacts(machine=machine, bits=bits, big_endian=big_endian, segments=(loaded(align),))
    tag = PlatformPolicy("t", arch, "glibc", (2, 28), frozenset(), GLIBC)
    assert [f.rule for f in judged(elf, tag)] == (["elf-page-align"] if large and align < 0x10000 else [])


def loaded(align: int, size: int = 10, kind: int = PT_LOAD) -> Segment:
    return Segment(kind, 5, 0, 0, size, size, align)


def test_the_smallest_alignment_of_what_is_mapped_counts() -> None:
    (finding,) = judged(
        ElfFacts(machine=183, segments=(loaded(0x10000), loaded(0x4000), loaded(0x2000))), ARM
    )
    assert finding.evidence == {"align": 0x2000}
    unmapped = (loaded(0x10000), loaded(0x1000, size=0), loaded(8, kind=PT_NOTE))
    assert judged(ElfFacts(machine=183, segments=unmapped), ARM) == []
    assert judged(ElfFacts(machine=183, segments=(loaded(8, kind=PT_NOTE),)), ARM) == []
