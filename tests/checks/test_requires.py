"""Requires-Dist against the distributions that hold what the loader takes from them, on literal facts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from tests.checks.loading import brief, library, module, provider, subject, told, wheel
from wheelfix.audit import Options, Setting, subject_from
from wheelfix.checks import requires
from wheelfix.checks.requires import may_meet
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Policy, Provider
from wheelfix.model.resolution import SITE, Node
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.world import Surroundings

NVIDIA = provider("libcudart.so.13", "nvidia-cuda-runtime", "nvidia/cu13/lib")
USER = module("pkg/x.so", "libcudart.so.13", runpath="$ORIGIN/../nvidia/cu13/lib")
OTHER = wheel(library("other/lib/liba.so"), name="other")


def findings(
    *members: Member,
    given: tuple[WheelFacts, ...] = (),
    policy: Policy | None = None,
    requires_dist: tuple[str, ...] = (),
    tag: str = "cp311-cp311-manylinux_2_28_x86_64",
) -> list[Finding]:
    judged = wheel(*members, requires=requires_dist, tag=tag)
    return told(requires, subject(judged, *given, policy=policy), "requires-dist-missing")


@pytest.mark.rule("requires-dist-missing", fires=True)
def test_a_providers_distribution_that_nobody_asks_for() -> None:
    (finding,) = findings(USER, policy=NVIDIA)
    assert brief([finding]) == [("requires-dist-missing", "warning", "pkg/x.so", "libcudart.so.13")]
    assert finding.evidence["distribution"] == "nvidia-cuda-runtime"


@pytest.mark.rule("requires-dist-missing", fires=True)
def test_a_given_distribution_that_nobody_asks_for() -> None:
    root = module("pkg/x.so", "liba.so", runpath="$ORIGIN/../other/lib")
    (finding,) = findings(root, given=(OTHER,))
    assert finding.evidence["distribution"] == "other"


@pytest.mark.rule("requires-dist-missing", fires=True)
def test_each_library_is_told_once_though_others_miss_theirs_or_have_their_own() -> None:
    path = "$ORIGIN:$ORIGIN/../nvidia/cu13/lib"
    roots = [
        module(f"pkg/{n}.so", "/a/path.so", "liba.so", "libgone.so", "libcudart.so.13", runpath=path)
        for n in "xyz"
    ]
    found = findings(*roots, library("pkg/liba.so"), policy=NVIDIA)
    assert brief(found) == [("requires-dist-missing", "warning", "pkg/x.so", "libcudart.so.13")]


@pytest.mark.rule("requires-dist-missing", fires=True)
def test_one_name_in_two_distributions_is_two_libraries() -> None:
    given = tuple(wheel(library(f"{n}/liba.so"), name=n) for n in ("one", "two"))
    roots = (module(f"pkg/{n}.so", "liba.so", runpath=f"$ORIGIN/../{n}") for n in ("one", "two"))
    found = findings(*roots, given=given)
    assert [(f.member, f.evidence["distribution"]) for f in found] == [
        ("pkg/one.so", "one"),
        ("pkg/two.so", "two"),
    ]


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_what_another_distribution_needs_it_asks_for_itself() -> None:
    lib = library("torch/libtorch.so", "libcudart.so.13", runpath="$ORIGIN/../nvidia/cu13/lib")
    root = module("pkg/x.so", "libtorch.so", runpath="$ORIGIN/../torch")
    assert findings(root, given=(wheel(lib, name="torch"),), policy=NVIDIA, requires_dist=("torch",)) == []


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_a_library_of_nobody_known() -> None:
    assert findings(module("pkg/x.so", "liba.so", runpath="$ORIGIN/../other/lib")) == []


@pytest.mark.rule("requires-dist-missing", fires=False)
@pytest.mark.parametrize(
    "asked", ["nvidia-cuda-runtime>=13", "NVIDIA_CUDA_Runtime", "nvidia.cuda.runtime; python_version > '3'"]
)
def test_a_distribution_that_is_asked_for(asked: str) -> None:
    assert findings(USER, policy=NVIDIA, requires_dist=(asked,)) == []


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_a_distribution_that_a_given_requirement_asks_for() -> None:
    torch = wheel(library("torch/lib/libtorch.so"), name="torch", requires=["other"])
    root = module("pkg/x.so", "liba.so", runpath="$ORIGIN/../other/lib")
    assert findings(root, given=(OTHER, torch), requires_dist=("torch",)) == []


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_what_an_absent_requirement_brings_is_not_known() -> None:
    assert findings(USER, policy=NVIDIA, requires_dist=("torch",)) == []


def cudnn(*rows: tuple[str, str | None]) -> Policy:
    """Provider rules for libcudnn.so.8: a distribution, and the versions that hold it."""
    return Policy(
        providers=tuple(
            Provider(f"test:provider[{n}]", "libcudnn.so.8", name, "nvidia/cudnn/lib", versions=versions)
            for n, (name, versions) in enumerate(rows)
        )
    )


WRONG = "nvidia-cudnn-cu12>=9"
LINUX = "manylinux_2_28_x86_64"
CUDNN = cudnn(("nvidia-cudnn-cu12", ">=8,<9"))
NEEDS_8 = module("pkg/x.so", "libcudnn.so.8", runpath="$ORIGIN/../nvidia/cudnn/lib")


@pytest.mark.rule("requires-dist-missing", fires=True)
@pytest.mark.parametrize(
    "asked",
    [
        "nvidia-cudnn-cu12>=9",
        "nvidia-cudnn-cu12==9.1.0.70",
        "nvidia-cudnn-cu12==9.*",
        "nvidia-cudnn-cu12~=9.1",
        "nvidia_cudnn_cu12<8",
        "nvidia-cudnn-cu12>9; platform_system == 'Linux' and platform_machine == 'x86_64'",
    ],
)
def test_versions_none_of_which_holds_the_soname(asked: str) -> None:
    (finding,) = findings(NEEDS_8, policy=CUDNN, requires_dist=(asked,))
    assert brief([finding]) == [("requires-dist-missing", "warning", "pkg/x.so", "libcudnn.so.8")]
    assert finding.evidence == {
        "distribution": "nvidia-cudnn-cu12",
        "versions": ">=8,<9",
        "requires": [asked],
    }
    assert finding.policy == "test:provider[0]"


@pytest.mark.rule("requires-dist-missing", fires=False)
@pytest.mark.parametrize(
    "asked",
    [
        "nvidia-cudnn-cu12",
        "nvidia-cudnn-cu12>=8.9",
        "nvidia-cudnn-cu12<9.1",
        "nvidia-cudnn-cu12==8.9.7.29",
        "nvidia-cudnn-cu12!=8.9.7.29,<9",
        "nvidia-cudnn-cu12 @ https://example.org/nvidia_cudnn_cu12-9.1.0.70-py3-none-any.whl",
        "nvidia-cudnn-cu12>=9; platform_release != 'of nobody'",
    ],
)
def test_versions_that_may_hold_the_soname(asked: str) -> None:
    assert findings(NEEDS_8, policy=CUDNN, requires_dist=(asked,)) == []


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_a_copy_of_the_wheels_own() -> None:
    own = library("nvidia/cudnn/lib/libcudnn.so.8")
    assert findings(NEEDS_8, own, policy=CUDNN, requires_dist=(WRONG,)) == []


@pytest.mark.rule("requires-dist-missing", fires=True)
def test_several_lines_are_asked_together_what_does_not_concern_is_passed_over() -> None:
    lines = ("no requirement!", "nvidia-cudnn-cu12<9; extra == 'old'", WRONG, "nvidia-cudnn-cu12<10")
    (finding,) = findings(NEEDS_8, policy=CUDNN, requires_dist=lines)
    assert finding.evidence["requires"] == [WRONG, "nvidia-cudnn-cu12<10"]


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_a_wheel_by_its_address_may_be_of_any_version() -> None:
    at = "nvidia-cudnn-cu12 @ https://example.org/nvidia_cudnn_cu12-8.9.7.29-py3-none-any.whl"
    assert findings(NEEDS_8, policy=CUDNN, requires_dist=(at, WRONG)) == []


@pytest.mark.rule("requires-dist-missing", fires=True)
def test_each_python_of_the_tag_gets_versions_without_the_library() -> None:
    lines = (f"{WRONG}; python_version < '3.12'", "nvidia-cudnn-cu12<8; python_version >= '3.12'")
    (finding,) = findings(NEEDS_8, policy=CUDNN, requires_dist=lines, tag=f"cp39-abi3-{LINUX}")
    assert finding.evidence["requires"] == list(lines)


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_versions_that_no_rule_tells() -> None:
    policy = cudnn(("nvidia-cudnn-cu12", None))
    assert findings(NEEDS_8, policy=policy, requires_dist=("nvidia-cudnn-cu12>=9",)) == []


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_another_home_of_the_library_that_is_asked_for_too_or_may_be_brought() -> None:
    policy = cudnn(("nvidia-cudnn-cu12", ">=8,<9"), ("nvidia-cudnn-cu11", ">=8,<9"))
    wrong = "nvidia-cudnn-cu12>=9"
    assert findings(NEEDS_8, policy=policy, requires_dist=(wrong, "nvidia-cudnn-cu11")) == []
    assert findings(NEEDS_8, policy=policy, requires_dist=(wrong, "torch")) == []


CUDNN_9 = wheel(library("nvidia/cudnn9/lib/libcudnn.so.9"), name="nvidia-cudnn-cu12")


@pytest.mark.rule("requires-dist-missing", fires=True)
def test_other_homes_that_surely_nobody_brings() -> None:
    policy = cudnn(("nvidia-cudnn-cu12", ">=8,<9"), ("nvidia-cudnn-cu11", ">=8,<9"))
    (finding,) = findings(NEEDS_8, given=(CUDNN_9,), policy=policy, requires_dist=(WRONG,))
    assert finding.evidence["distribution"] == "nvidia-cudnn-cu12"


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_another_home_that_a_given_requirement_brings() -> None:
    brings = replace(CUDNN_9, requires_dist=("nvidia-cudnn-cu11",))
    brought = wheel(library("elsewhere/libx.so"), name="nvidia-cudnn-cu11")
    policy = cudnn(*((f"nvidia-cudnn-cu{n}", ">=8,<9") for n in (12, 11, 10)))
    assert findings(NEEDS_8, given=(brings, brought), policy=policy, requires_dist=(WRONG,)) == []


@pytest.mark.rule("requires-dist-missing", fires=True)
def test_of_two_homes_in_the_wrong_versions_the_first_is_named() -> None:
    policy = cudnn(("nvidia-cudnn-cu12", ">=8,<9"), ("nvidia-cudnn-cu11", "<9"))
    (finding,) = findings(NEEDS_8, policy=policy, requires_dist=(WRONG, "nvidia-cudnn-cu11>=9"))
    assert (finding.evidence["distribution"], finding.policy) == ("nvidia-cudnn-cu12", "test:provider[0]")


@pytest.mark.rule("requires-dist-missing", fires=True)
def test_two_folders_of_one_distribution_neither_in_the_versions_asked_for() -> None:
    policy = cudnn(("nvidia-cudnn-cu12", "<8.5"), ("nvidia-cudnn-cu12", ">=8.5,<9"))
    (finding,) = findings(NEEDS_8, policy=policy, requires_dist=("nvidia-cudnn-cu12>=9",))
    assert finding.evidence["versions"] == "<8.5 or >=8.5,<9"
    assert finding.policy == "test:provider[0]"


@pytest.mark.rule("requires-dist-missing", fires=False)
@pytest.mark.parametrize("tag", ["cp39-abi3-manylinux_2_28_x86_64", "py3-none-manylinux_2_28_x86_64"])
def test_a_python_of_the_tag_that_gets_versions_with_the_library(tag: str) -> None:
    asked = ("nvidia-cudnn-cu12>=9; python_version >= '3.12'", "nvidia-cudnn-cu12<9; python_version < '3.12'")
    assert findings(NEEDS_8, policy=CUDNN, requires_dist=asked, tag=tag) == []


@pytest.mark.rule("requires-dist-missing", fires=True)
def test_the_lines_for_the_python_of_the_tag_decide() -> None:
    asked = ("nvidia-cudnn-cu12>=9; python_version < '3.12'", "nvidia-cudnn-cu12<9; python_version >= '3.12'")
    (finding,) = findings(NEEDS_8, policy=CUDNN, requires_dist=asked)
    assert finding.evidence["requires"] == [asked[0]]


def unfit(asked: str, marker: str, tag: str, *tags: str) -> bool:
    """Whether versions without the library are told where Requires-Dist has a marker; other lines are free."""
    judged = wheel(NEEDS_8, requires=(f"{asked}; {marker}",), tag=tag)
    judged = replace(judged, tags=tags or judged.tags)
    return told(requires, subject(judged, policy=CUDNN), "requires-dist-missing") != []


@pytest.mark.rule("requires-dist-missing", fires=True)
@pytest.mark.rule("requires-dist-missing", fires=False)
@pytest.mark.parametrize(
    ("python", "marker", "fires"),
    [
        ("cp311-cp311", "python_version == '3.11'", True),
        ("cp311-cp311", "python_version != '3.11'", False),
        ("cp311-cp311", "python_full_version >= '3.11.4'", False),  # which 3.11 is not told
        # A wheel for every Python from 3.9 on is installed on 3.9 to 3.15, as far as anybody knows.
        ("cp39-abi3", "python_version >= '3.9'", True),
        ("cp39-abi3", "python_version >= '3.10'", False),
        ("cp39-abi3", "python_version < '3.16'", True),
        ("cp39-abi3", "python_version < '3.15'", False),
        ("cp316-abi3", "python_version == '3.16'", True),
        # py3 says nothing of the oldest: 3.8.
        ("py3-none", "python_version >= '3.8'", True),
        ("py3-none", "python_version >= '3.9'", False),
        ("pp310-pypy310_pp73", "python_version >= '3'", False),  # markers of another implementation
    ],
)
def test_the_pythons_of_a_tag(python: str, marker: str, fires: bool) -> None:
    assert unfit(WRONG, marker, f"{python}-{LINUX}") == fires


@pytest.mark.rule("requires-dist-missing", fires=True)
@pytest.mark.rule("requires-dist-missing", fires=False)
@pytest.mark.parametrize(
    ("first", "marker", "fires"),
    [
        (f"py2-none-{LINUX}", "python_version >= '3'", True),  # nobody installs it on Python 2 any more
        (f"cp27-cp27mu-{LINUX}", "python_version >= '3'", True),
        (f"pp310-pypy310_pp73-{LINUX}", "python_version >= '3'", False),
        ("cp311-cp311-macosx_11_0_x86_64", "python_version >= '3'", False),
        ("cp311-cp311-manylinux_2_28_aarch64", "platform_machine == 'x86_64'", False),
        ("cp311-cp311-manylinux_2_28_aarch64", "platform_machine != 's390x'", True),
        ("cp310-cp310-manylinux2014_x86_64", "python_version >= '3.11'", False),
        ("cp310-cp310-linux_x86_64", "python_version >= '3.10'", True),
    ],
)
def test_a_wheel_of_two_tags_is_for_both(first: str, marker: str, fires: bool) -> None:
    second = f"cp311-cp311-{LINUX}"
    assert unfit(WRONG, marker, second, first, second) == fires


HOLDS_8 = wheel(library("nvidia/cudnn/lib/libcudnn.so.8"), name="nvidia-cudnn-cu12")  # version 1


@pytest.mark.rule("requires-dist-missing", fires=True)
@pytest.mark.rule("requires-dist-missing", fires=False)
@pytest.mark.parametrize(
    ("version", "asked", "fires"),
    [
        ("1", "<2", False),
        ("1", ">=9", True),  # the wheel that was given is not the one that would be installed
        ("9.1rc1", ">=9", False),
        (None, ">=9", False),
    ],
)
def test_a_given_wheel_that_holds_the_library_whatever_the_rule_says(
    version: str | None, asked: str, fires: bool
) -> None:
    given = OTHER, replace(HOLDS_8, version=version)
    found = findings(NEEDS_8, given=given, policy=CUDNN, requires_dist=(f"nvidia-cudnn-cu12{asked}",))
    assert [f.rule for f in found] == ["requires-dist-missing"] * fires


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_a_given_wheel_that_is_asked_for_on_one_python_of_the_tag() -> None:
    asked = (
        "nvidia-cudnn-cu12>=9; python_version >= '3.12'",
        "nvidia-cudnn-cu12<1.1; python_version < '3.12'",
    )
    policy = cudnn(("nvidia-cudnn-cu12", ">=8,<9"))
    for lines in (asked, asked[::-1]):
        found = findings(
            NEEDS_8, given=(HOLDS_8,), policy=policy, requires_dist=lines, tag=f"cp39-abi3-{LINUX}"
        )
        assert found == []


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_another_given_distribution_that_holds_the_library() -> None:
    other = wheel(library("nvidia/cudnn/lib/libcudnn.so.8"), name="other")
    assert findings(NEEDS_8, given=(other,), policy=CUDNN, requires_dist=(WRONG, "other")) == []


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_a_version_in_an_environment_is_not_known() -> None:
    held = Node(
        "nvidia/cudnn/lib/libcudnn.so.8",
        f"{SITE}/nvidia/cudnn/lib/libcudnn.so.8",
        HOLDS_8.members[0].elf,
        "given",
        "nvidia-cudnn-cu12",
    )
    folders = {f"{SITE}/{f}" for f in ("nvidia", "nvidia/cudnn", "nvidia/cudnn/lib")}
    around = Surroundings({held.location: held}, folders, frozenset({"nvidia-cudnn-cu12"}), {})
    setting = Setting(Options(), CUDNN, (), around)
    judged = subject_from(wheel(NEEDS_8, requires=(WRONG,)), setting)
    assert [e.path for load in judged.scenes[0].loads for e in load.edges] == [held.path]
    assert told(requires, judged) == []


NUMBERS = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(lambda n: ".".join(map(str, n)))
PLAIN = st.builds("{}{}".format, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), NUMBERS)
PREFIX = st.builds("{}{}.*".format, st.sampled_from(["==", "!="]), NUMBERS)
COMPATIBLE = NUMBERS.map("~={}.1".format)
SETS = st.lists(st.one_of(PLAIN, PREFIX, COMPATIBLE), min_size=1, max_size=3).map(",".join).map(SpecifierSet)


@settings(max_examples=500, deadline=None)
@given(one=SETS, other=SETS)
def test_sets_that_packaging_finds_unsatisfiable_together_have_no_version(
    one: SpecifierSet, other: SpecifierSet
) -> None:
    both = one & other
    if not hasattr(both, "is_unsatisfiable"):
        pytest.skip("packaging before 26.1")
    if not may_meet(one, other):
        assert both.is_unsatisfiable() or _only_beside_releases(both)
    if both.is_unsatisfiable():
        assert not may_meet(one, other)


def _only_beside_releases(both: SpecifierSet) -> bool:
    """Whether none of a dense grid of final releases satisfies the set: only pre- or post-releases do."""
    texts = (f"{a}.{b}.{c}.{d}" for a in range(5) for b in range(5) for c in range(5) for d in range(3))
    return not any(both.contains(t) for t in texts)


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("", "", True),
        ("", "<1", True),  # 0
        ("<1", ">=1", False),
        ("<=1", ">=1", True),
        (">1", "<1.0.1", True),  # 1.0.0.1
        (">1", "<=1", False),
        ("!=1.2.*,>=1.2", "<1.3.1", True),  # 1.3
        ("!=1.2.*,>=1.2", "<1.3", False),
        ("==9.*", "<9", False),
        ("==9.*", ">9.0", True),
        ("~=9.1", "<9.1", False),
        ("~=9.1", ">=9.7,<10", True),
        ("~=9.1", ">=10", False),
        ("==9.1", "==9.1.0", True),
        ("==9.1", "<9", False),
        ("<9", "==9.1", False),
        ("==9.1", ">=9", True),
        ("==9.1rc1", "<9", False),
        ("<9", "==9.1rc1", False),
        ("==9.1rc1", ">=9", True),
        (">=9", "==9.1rc1", True),
    ],
)
def test_whether_a_version_is_in_two_sets(one: str, other: str, meet: bool) -> None:
    assert may_meet(SpecifierSet(one), SpecifierSet(other)) is meet


@pytest.mark.parametrize("left_open", [">1.0.dev1,<1.0.dev3", ">=1.0a1,<1.0", "===x", "===1.0"])
def test_what_is_more_than_numbers_is_left_open(left_open: str) -> None:
    assert may_meet(SpecifierSet(left_open), SpecifierSet(">=5"))
