"""Requires-Dist against the distributions that hold what the loader takes from them, on literal facts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from tests.checks.loading import brief, library, module, provider, subject, told, wheel
from wheelfix.checks import requires
from wheelfix.checks.requires import may_meet
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Policy, Provider
from wheelfix.model.wheel import Member, WheelFacts

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
        "nvidia-cudnn-cu12>=9; platform_release > '5'",
    ],
)
def test_versions_that_may_hold_the_soname(asked: str) -> None:
    assert findings(NEEDS_8, policy=CUDNN, requires_dist=(asked,)) == []


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


@pytest.mark.rule("requires-dist-missing", fires=True)
def test_two_folders_of_one_distribution_neither_in_the_versions_asked_for() -> None:
    policy = cudnn(("nvidia-cudnn-cu12", "<8.5"), ("nvidia-cudnn-cu12", ">=8.5,<9"))
    (finding,) = findings(NEEDS_8, policy=policy, requires_dist=("nvidia-cudnn-cu12>=9",))
    assert finding.evidence["versions"] == "<8.5 or >=8.5,<9"


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


@pytest.mark.rule("requires-dist-missing", fires=False)
def test_a_given_wheel_that_is_asked_for_and_holds_the_library_whatever_the_rule_says() -> None:
    other = wheel(library("nvidia/cudnn/lib/libcudnn.so.8"), name="nvidia-cudnn-cu12")  # version 1
    found = findings(NEEDS_8, given=(other,), policy=CUDNN, requires_dist=("nvidia-cudnn-cu12<2",))
    assert found == []


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


@pytest.mark.parametrize("left_open", [">1.0.dev1,<1.0.dev3", ">=1.0a1,<1.0", "===x"])
def test_what_is_more_than_numbers_is_left_open(left_open: str) -> None:
    assert may_meet(SpecifierSet(left_open), SpecifierSet(">=5"))
