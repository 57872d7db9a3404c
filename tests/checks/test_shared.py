"""The checks in two processes find what they find in one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks.literal import member, subject_of, wheel_of
from wheelfix import audit, checks
from wheelfix.checks import shared, symbols
from wheelfix.checks.subject import Subject
from wheelfix.model.elf import ElfFacts, Segment, Symbol
from wheelfix.model.finding import Finding

READ = (Segment(1, 5, 0, 0, 4096, 4096, 4096),)
OBJECTS = tuple(f"pkg/_{letter}.so" for letter in "abcde")


@pytest.fixture(autouse=True)
def _every_wheel_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_WORTH_A_FORK", 0)


def broken() -> Subject:
    """Five modules of which each wants a name that nobody has, and one of its neighbour that it does not load."""
    objects = [
        member(
            path,
            ElfFacts(
                symbols=(
                    Symbol(f"gone_{n}", lookups=2),
                    Symbol(f"has_{n + 1}", lookups=2),
                    Symbol(f"has_{n}", section=7, value=64),
                    Symbol(f"PyInit__{n}", section=7, value=64),
                ),
                segments=READ,
                needed=("libown.so",),
                runpath="$ORIGIN",
            ),
        )
        for n, path in enumerate(OBJECTS)
    ]
    own = member("pkg/libown.so", ElfFacts(symbols=(Symbol("own", section=7, value=64),), segments=READ))
    return subject_of(wheel_of(*objects, own), world={"libc_version": (2, 28)})


def found(subject: Subject, jobs: int) -> tuple[Finding, ...]:
    return audit.findings_of(subject, audit.Options(), jobs)


def test_two_processes_find_what_one_finds() -> None:
    alone, together = found(broken(), 1), found(broken(), 2)
    assert together == alone
    told = {(f.rule, f.member) for f in alone}
    assert {("undefined-symbol", path) for path in OBJECTS} <= told
    assert {("needed-unused", path) for path in OBJECTS} <= told


def test_a_library_that_is_used_is_not_called_unused_by_who_does_not_know() -> None:
    user = ElfFacts(
        symbols=(Symbol("own", lookups=2), Symbol("PyInit__a", section=7, value=64)),
        segments=READ,
        needed=("libown.so",),
        runpath="$ORIGIN",
    )
    own = ElfFacts(symbols=(Symbol("own", section=7, value=64),), segments=READ)
    members = [member(path, user) for path in OBJECTS]
    subject = subject_of(wheel_of(*members, member("pkg/libown.so", own)))
    assert "needed-unused" not in {f.rule for f in found(subject, 2)}


def test_each_process_asks_for_the_bindings_of_its_own_share_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    here: set[str] = set()
    other = os.getpid()

    def check(subject: Subject) -> Iterator[Finding]:
        if os.getpid() == other:
            here.update(b.object for scene in subject.scenes for b in scene.bindings)
        yield from ()

    monkeypatch.setattr(symbols, "check", check)
    shared.run(broken(), 2)
    assert here
    assert len(here) < len(OBJECTS)


def test_where_the_helper_fails_its_share_is_judged_here(monkeypatch: pytest.MonkeyPatch) -> None:
    here, check = os.getpid(), symbols.check

    def fails_elsewhere(subject: Subject) -> Iterator[Finding]:
        if os.getpid() != here:
            raise MemoryError
        return check(subject)

    alone = found(broken(), 1)
    monkeypatch.setattr(symbols, "check", fails_elsewhere)
    assert found(broken(), 2) == alone


def test_a_fault_of_a_check_comes_up_whoever_meets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(subject: Subject) -> Iterator[Finding]:
        if subject.scenes[0].share is None or OBJECTS[1] in subject.scenes[0].share:
            raise ZeroDivisionError
        yield from ()

    monkeypatch.setattr(symbols, "check", fails)
    with pytest.raises(ZeroDivisionError):
        shared.run(broken(), 2)


def test_bindings_that_are_known_are_not_made_again() -> None:
    subject = broken()
    known = subject.scenes[0].bound
    shared.run(subject, 2)
    assert subject.scenes[0].bound is known


def test_modules_that_ask_for_no_bindings_are_not_among_those_that_do() -> None:
    # What asks for outcomes outside BY_BINDINGS would see one share of them.
    subject = broken()
    for module in checks.MODULES:
        if module not in checks.BY_BINDINGS:
            list(module.check(subject))
    assert "bound" not in vars(subject.scenes[0])


def test_the_sample_wheels_get_the_same_findings_in_two_processes(sample_wheels: Path) -> None:
    setting = audit.prepare(audit.Options())
    paths = sorted(sample_wheels.glob("*.whl"))
    assert paths
    for path in paths:
        subject = audit.subject_of(path, setting)
        alone = found(subject, 1)
        assert found(audit.subject_of(path, setting), 2) == alone
