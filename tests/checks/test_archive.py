"""The archive rules that look at members: faults of the reader become findings, places and modes are judged."""

from __future__ import annotations

import pytest

from tests.checks.literal import member, subject_of, wheel_of
from wheelfix.checks.archive import RULES, check
from wheelfix.model.elf import ET_EXEC, ElfFacts
from wheelfix.model.finding import Fault, Finding
from wheelfix.model.wheel import Member

PROGRAM = ElfFacts(type=ET_EXEC)
LIBRARY = ElfFacts(soname="libx.so.1")


def rules(
    *members: Member, tags: tuple[str, ...] = ("cp311-cp311-manylinux_2_28_x86_64",)
) -> list[tuple[str, str]]:
    return [(f.rule, f.severity) for f in check(subject_of(wheel_of(*members, tags=tags)))]


def only(*members: Member, tags: tuple[str, ...] = ("cp311-cp311-manylinux_2_28_x86_64",)) -> Finding:
    (finding,) = check(subject_of(wheel_of(*members, tags=tags)))
    return finding


@pytest.mark.parametrize("rule", [r.id for r in RULES])
def test_a_fault_of_the_reader_becomes_a_finding_of_its_rule(rule: str) -> None:
    wheel = wheel_of(faults=(Fault(rule, "text", "pkg/x", {"k": 1}),))
    (finding,) = check(subject_of(wheel))
    assert (finding.rule, finding.message, finding.member, finding.evidence) == (
        rule,
        "text",
        "pkg/x",
        {"k": 1},
    )
    assert finding.severity == next(r.severity for r in RULES if r.id == rule)


def test_faults_of_other_rules_are_other_checks_business() -> None:
    assert list(check(subject_of(wheel_of(faults=(Fault("elf-truncated", "text", "pkg/x"),))))) == []


@pytest.mark.rule("zip-slip", fires=False)
@pytest.mark.rule("zip-duplicate", fires=False)
@pytest.mark.rule("zip-symlink", fires=False)
@pytest.mark.rule("zip-local-central", fires=False)
@pytest.mark.rule("zip-crc", fires=False)
@pytest.mark.rule("zip-unsupported", fires=False)
@pytest.mark.rule("archive-limit", fires=False)
@pytest.mark.rule("record-missing", fires=False)
@pytest.mark.rule("record-hash", fires=False)
@pytest.mark.rule("record-path", fires=False)
@pytest.mark.rule("unreadable", fires=False)
def test_a_wheel_without_faults_has_no_findings() -> None:
    assert rules(member("pkg/x.so", LIBRARY), member("pkg/__init__.py", None)) == []


@pytest.mark.rule("unreadable", fires=True)
def test_what_is_no_wheel_is_told(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from wheelfix import audit

    path = tmp_path / "demo-1.0-py3-none-any.whl"
    path.write_bytes(b"nothing")
    report = audit.audit_wheel(path, audit.prepare(audit.Options()))
    assert (report.verdict, [f.rule for f in report.findings]) == ("unreadable", ["unreadable"])


@pytest.mark.rule("elf-in-purelib", fires=True)
def test_an_object_in_a_purelib_folder_is_an_error_and_a_wheel_that_is_pure_as_a_whole_a_warning() -> None:
    spread = member("x.so", LIBRARY, name="demo-1.0.data/purelib/x.so", scheme="purelib")
    assert rules(spread) == [("elf-in-purelib", "error")]
    text = member("pkg/__init__.py", None, scheme="purelib")
    assert rules(text, member("x.so", LIBRARY, scheme="purelib")) == [("elf-in-purelib", "warning")]
    messages = [
        only(member("x.so", LIBRARY, name=n, scheme="purelib")).message for n in (spread.name, "x.so")
    ]
    assert [m.rpartition(" ")[2] for m in messages] == ["(.data/purelib)", "true)"]
    assert "(Root-Is-Purelib: true)" in messages[1]


@pytest.mark.rule("elf-in-purelib", fires=False)
@pytest.mark.rule("any-tag-with-elf", fires=False)
def test_text_in_purelib_and_under_any_is_right() -> None:
    assert rules(member("x.py", None, scheme="purelib"), tags=("py3-none-any",)) == []


@pytest.mark.rule("any-tag-with-elf", fires=True)
def test_an_object_under_the_tag_any_is_told() -> None:
    tags = ("cp311-cp311-manylinux_2_28_x86_64", "py3-none-any")
    assert rules(member("x.so", LIBRARY), tags=tags) == [("any-tag-with-elf", "error")]


@pytest.mark.parametrize(
    ("elf", "what"), [(LIBRARY, " for x86_64"), (ElfFacts(machine=9999), ""), (None, "")]
)
def test_the_processor_of_an_object_under_any_is_told_where_it_is_known(
    elf: ElfFacts | None, what: str
) -> None:
    one = Member("x.so", "x.so", content="elf", elf=elf)  # without facts: an object that cannot be read
    assert only(one, tags=("py3-none-any",)).message.startswith(f"x.so is an ELF object{what}, but")


@pytest.mark.rule("exec-bit", fires=True)
def test_a_program_without_exec_bit_is_told() -> None:
    assert rules(member("pkg/bin/tool", PROGRAM, mode=0o644)) == [("exec-bit", "warning")]
    assert only(member("pkg/bin/tool", PROGRAM, mode=0o640)).evidence == {"mode": "0640"}
    assert only(member("pkg/bin/tool", PROGRAM, mode=0)).evidence == {"mode": "0000"}


@pytest.mark.rule("exec-bit", fires=False)
@pytest.mark.parametrize(
    "one",
    [
        member("pkg/bin/tool", PROGRAM, mode=0o755),
        member("pkg/bin/tool", PROGRAM, mode=0o700),
        member("pkg/bin/tool", PROGRAM, mode=0o610),
        member("pkg/bin/tool", PROGRAM, mode=0o601),
        member("pkg/bin/tool", PROGRAM, mode=None),
        member("pkg/x.so", LIBRARY, mode=0o644),
        member("scripts:tool", PROGRAM, mode=0o644, scheme="scripts"),
    ],
)
def test_libraries_scripts_and_unknown_modes_need_none(one: Member) -> None:
    assert rules(one) == []


@pytest.mark.rule("duplicate-elf", fires=True)
def test_equal_libraries_under_several_names_are_told_once() -> None:
    copies = [member(f"pkg/libx.so{v}", LIBRARY, sha256="same", size=7) for v in ("", ".1", ".1.2")]
    assert rules(*copies) == [("duplicate-elf", "warning")]
    finding = only(*copies[:2], member("pkg/liby.so", LIBRARY))
    assert (finding.member, finding.library) == ("pkg/libx.so", "libx.so.1")
    assert finding.evidence == {"members": ["pkg/libx.so", "pkg/libx.so.1"], "size": 7}


@pytest.mark.rule("duplicate-elf", fires=False)
def test_equal_programs_and_modules_are_no_duplicates() -> None:
    assert rules(*(member(f"pkg/{n}.so", ElfFacts(), sha256="same") for n in "ab")) == []


@pytest.mark.rule("duplicate-elf", fires=False)
def test_libraries_whose_bytes_were_not_read_are_not_called_equal() -> None:
    assert rules(*(member(f"pkg/{n}.so", LIBRARY, sha256="") for n in "ab")) == []
