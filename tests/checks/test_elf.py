"""The rules on damaged objects and on files in their place, on literal facts."""

from __future__ import annotations

import pytest

from wheelfix.checks.elf import check
from wheelfix.checks.subject import Scene, Subject
from wheelfix.model.elf import ElfFacts
from wheelfix.model.finding import Fault, Finding
from wheelfix.model.policy import PlatformPolicy, Policy
from wheelfix.model.resolution import Edge, EdgeStatus, Load, Node, World
from wheelfix.model.wheel import Member, WheelFacts

LINUX = PlatformPolicy("manylinux_2_28_x86_64", "x86_64", "glibc", (2, 28), frozenset(), {})
LINUX_TAG, MAC_TAG = "cp311-cp311-manylinux_2_28_x86_64", "cp311-cp311-macosx_11_0_arm64"
EXTENSION = Member("pkg/_ext.so", "pkg/_ext.so", content="elf", elf=ElfFacts(needed=("libhelper.so",)))
SCRIPT = Member("pkg/lib/libhelper.so", "pkg/lib/libhelper.so", content="text")


def judged(
    *faults: Fault,
    tag: str = LINUX_TAG,
    more: tuple[str, ...] = (),
    members: tuple[Member, ...] = (EXTENSION, SCRIPT),
    status: EdgeStatus = "missing",
    detail: str | None = None,
) -> list[Finding]:
    node = Node("pkg/_ext.so", "/x/pkg/_ext.so", EXTENSION.elf)
    edge = Edge("pkg/_ext.so", "pkg/_ext.so", "libhelper.so", status, detail=detail)
    scene = Scene(LINUX, World({}, frozenset()), (Load(node, (node,), (edge,)),))
    wheel = WheelFacts("x.whl", tags=(tag, *more), members=members, faults=faults)
    return list(check(Subject(wheel, (LINUX,), (scene,), Policy())))


@pytest.mark.rule("not-elf", fires=True)
@pytest.mark.rule("elf-truncated", fires=True)
@pytest.mark.rule("elf-bad-alignment", fires=True)
@pytest.mark.rule("elf-limit", fires=True)
@pytest.mark.parametrize("rule", ["not-elf", "elf-truncated", "elf-bad-alignment", "elf-limit"])
def test_what_the_reader_saw_is_an_error_of_its_rule(rule: str) -> None:
    (finding,) = judged(Fault(rule, "it is broken", "pkg/x.so", {"size": 4}))
    assert (finding.rule, finding.severity, finding.member) == (rule, "error", "pkg/x.so")
    assert finding.message == "pkg/x.so: it is broken"
    assert finding.evidence == {"size": 4}


@pytest.mark.rule("not-elf", fires=False)
@pytest.mark.rule("elf-truncated", fires=False)
@pytest.mark.rule("elf-bad-alignment", fires=False)
@pytest.mark.rule("elf-limit", fires=False)
def test_faults_of_other_rules_are_other_checks_business() -> None:
    assert judged(Fault("zip-crc", "wrong", "pkg/x.so")) == []


def test_a_text_that_a_needed_leads_to_is_told_once_with_the_library() -> None:
    detail = "pkg/lib/libhelper.so is no ELF object"
    (finding,) = judged(Fault("not-elf", "is a linker script", "pkg/lib/libhelper.so"), detail=detail)
    assert (finding.rule, finding.member, finding.library) == (
        "not-elf",
        "pkg/lib/libhelper.so",
        "libhelper.so",
    )


def test_an_object_that_a_needed_leads_to_is_no_text() -> None:
    # As where it is for another machine: that is told of the edge.
    elf = Member("pkg/lib/libhelper.so", "pkg/lib/libhelper.so", content="elf", elf=ElfFacts(machine=183))
    detail = "pkg/lib/libhelper.so is for another machine (aarch64)"
    assert judged(members=(EXTENSION, elf), detail=detail) == []


def test_edges_that_lead_somewhere_do_not_hide_those_behind_them() -> None:
    node = Node("pkg/_ext.so", "/x/pkg/_ext.so", EXTENSION.elf)
    edges = tuple(
        Edge(node.path, node.path, name, status, detail=detail)
        for name, status, detail in (
            ("libm.so.6", "host", None),
            ("libgone.so", "missing", None),
            ("libhelper.so", "missing", "pkg/lib/libhelper.so is no ELF object"),
        )
    )
    scene = Scene(LINUX, World({}, frozenset()), (Load(node, (node,), edges),))
    wheel = WheelFacts("x.whl", tags=(LINUX_TAG,), members=(EXTENSION, SCRIPT))
    assert [f.library for f in check(Subject(wheel, (LINUX,), (scene,), Policy()))] == ["libhelper.so"]


def test_a_text_under_any_name_that_a_needed_leads_to_is_told() -> None:
    odd = Member("pkg/lib/libodd", "pkg/lib/libodd", content="text")
    (finding,) = judged(members=(EXTENSION, odd), detail="pkg/lib/libodd is no ELF object")
    assert finding.member == "pkg/lib/libodd"


@pytest.mark.parametrize(
    ("status", "detail"),
    [("missing", None), ("found", None), ("missing", "pkg/lib/libhelper.so.1 is for another machine")],
)
def test_a_library_that_is_missing_or_of_another_machine_is_no_text(
    status: EdgeStatus, detail: str | None
) -> None:
    assert judged(status=status, detail=detail) == []


def test_a_library_of_another_system_in_a_wheel_for_it_is_right() -> None:
    fault = Fault("not-elf", "is a Mach-O object", "pkg/_ext.so")
    assert judged(fault, tag=MAC_TAG, members=(SCRIPT,)) == []
    assert len(judged(fault, tag=LINUX_TAG, members=(SCRIPT,))) == 1
    assert len(judged(fault, tag="py3-none-any", members=(SCRIPT,))) == 1
    assert len(judged(fault, tag=MAC_TAG, more=(LINUX_TAG,), members=(SCRIPT,))) == 1
    # With an ELF object inside it is a wheel for Linux, whatever the tag says.
    assert len(judged(fault, tag=MAC_TAG, members=(SCRIPT, EXTENSION))) == 1


def test_a_broken_object_is_told_in_a_wheel_for_any_system_and_beside_other_findings() -> None:
    (finding,) = judged(Fault("elf-truncated", "is cut", "pkg/_ext.so"), tag=MAC_TAG, members=(SCRIPT,))
    assert finding.rule == "elf-truncated"
    fault = Fault("elf-truncated", "is cut", "pkg/lib/libhelper.so")
    found = judged(fault, detail="pkg/lib/libhelper.so is no ELF object")
    assert [f.rule for f in found] == ["not-elf", "elf-truncated"]


def test_the_first_object_that_is_led_to_a_text_is_told_and_folders_are_no_texts() -> None:
    detail = "pkg/lib/libhelper.so is no ELF object"
    other = Fault("zip-crc", "wrong", "pkg/x.so")
    assert [f.rule for f in judged(other, Fault("elf-limit", "is large", "pkg/y.so"))] == ["elf-limit"]
    (finding,) = judged(detail=detail)
    assert finding.evidence == {"object": "pkg/_ext.so", "content": "text"}
    folder = Member("pkg/lib/libhelper.so", "pkg/lib/libhelper.so", content="directory")
    assert judged(members=(EXTENSION, folder), detail="pkg/lib/libhelper.so is a folder") == []
    assert judged(status="found", detail=detail) == []
