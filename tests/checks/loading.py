"""Wheels as literal facts, judged as the pipeline judges them: world, loads and policy are made by wheelfix.audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

from wheelfix.audit import Options, Setting, subject_from
from wheelfix.checks.subject import Subject
from wheelfix.model.elf import LOOKUP_PLT, ElfFacts, Segment, Symbol
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Policy, Provider
from wheelfix.model.wheel import Member, WheelFacts

READ = (Segment(1, 5, 0, 0, 4096, 4096, 4096),)  # what tells facts of a file from facts of data
TAG = "cp311-cp311-manylinux_2_28_x86_64"


def library(path: str, *needed: str, sha256: str = "", **facts: object) -> Member:
    """A shared object; its SONAME is its file name unless ``soname`` says otherwise."""
    facts = {"soname": path.rpartition("/")[2], **facts}
    elf = ElfFacts(needed=needed, segments=READ, **facts)  # type: ignore[arg-type]
    return Member(path, path, content="elf", elf=elf, sha256=sha256 or f"hash of {path}")


def module(path: str, *needed: str, symbols: tuple[Symbol, ...] = (), **facts: object) -> Member:
    """A Python extension module. It calls a function that none of the libraries here defines."""
    own = (Symbol("PyInit_x", section=7, value=4096), Symbol("of_some_library", lookups=LOOKUP_PLT))
    return library(path, *needed, symbols=(*own, *symbols), **{"soname": None, **facts})


def script(path: str, *ctypes_names: str) -> Member:
    return Member(path, path, content="text", ctypes_names=ctypes_names)


def wheel(*members: Member, name: str = "pkg", tag: str = TAG, requires: Sequence[str] = ()) -> WheelFacts:
    return WheelFacts(
        f"{name}-1-{tag}.whl",
        name,
        "1",
        tags=(tag,),
        wheel_tags=(tag,),
        members=members,
        requires_dist=tuple(requires),
    )


def provider(name: str, distribution: str, path: str, loads: str = "by-path") -> Policy:
    return Policy(providers=(Provider("test:provider[0]", name, distribution, path, loads),))  # type: ignore[arg-type]


def subject(
    judged: WheelFacts, *given: WheelFacts, policy: Policy | None = None, **options: object
) -> Subject:
    setting = Setting(Options(**options), policy or Policy(), given)  # type: ignore[arg-type]
    return subject_from(judged, setting)


def told(checks: ModuleType, one: Subject, rule: str | None = None) -> list[Finding]:
    """The findings of one module of checks, each once, of one rule or of all."""
    check: Callable[[Subject], Iterator[Finding]] = checks.check
    return [*{repr(f): f for f in check(one) if rule in (None, f.rule)}.values()]


def brief(findings: Sequence[Finding]) -> list[tuple[str, str, str | None, str | None]]:
    return [(f.rule, f.severity, f.member, f.library) for f in findings]
