"""wheelfix's answers on a wheel's tag, in the form in which auditwheel gives its own."""

from __future__ import annotations

from dataclasses import replace

from tests.second_opinion.table import Facts
from wheelfix.audit import Setting, subject_from
from wheelfix.checks import needed, platform
from wheelfix.checks.subject import Subject
from wheelfix.commands.show import reaches
from wheelfix.model.finding import Finding
from wheelfix.model.policy import PlatformPolicy
from wheelfix.model.wheel import WheelFacts
from wheelfix.policy.platform import candidates

#: The rules that speak of a library which neither the wheel holds nor the tag promises.
_EXTERNAL = {
    "needed-external", "needed-missing", "needed-not-allowed", "needed-unreachable", "driver-lib", "libpython-linked",
}  # fmt: skip


def by_wheelfix(wheel: WheelFacts, setting: Setting, their_tag: str) -> Facts:
    """Of the C library and architecture that the other tool took the wheel for."""
    libc, arch = ("musl" if their_tag.startswith("musllinux") else "glibc"), _architecture(their_tag)
    (reach,) = (r for r in reaches(subject_from(wheel, setting), setting) if (r.libc, r.arch) == (libc, arch))
    known = candidates(arch, "musl" if libc == "musl" else "glibc")
    own = {m.elf.soname for m in wheel.elves if m.elf is not None}
    needs = {need for m in wheel.elves if m.elf is not None for need in platform.needed_versions(m.elf)}
    found: dict[str, object] = {
        "tag": reach.best or f"linux_{arch}",
        "tag-by-versions": next(
            p.tag
            for p in known
            if not any(file not in own and platform.lacks_version(p, version) for file, version in needs)
        ),
        "versions": frozenset(f"{file} {version}" for file, version in needs),
    }
    for policy in known:
        subject = _as(policy, wheel, setting)
        external = frozenset(
            f.library for f in (*needed.check(subject), *platform.check(subject)) if f.rule in _EXTERNAL
        )
        found[f"external for {policy.tag}"] = external
        found[f"denied for {policy.tag}"] = frozenset(
            f"{f.library} {symbol}"
            for f in platform.check(subject)
            if f.rule == platform.PRIVATE.id and "tag" in f.evidence
            for symbol in _symbols(f)
        )
    # auditwheel's JSON tells the first of its oldest policy, and the second of any.
    found["external"] = found[f"external for {known[0].tag}"]
    found["isa-too-new"] = any(
        f.rule == platform.ISA.id for f in platform.check(_as(known[-1], wheel, setting))
    )
    return found


def _as(policy: PlatformPolicy, wheel: WheelFacts, setting: Setting) -> Subject:
    """The wheel as if its file name had that tag."""
    return subject_from(wheel, replace(setting, options=replace(setting.options, plat=policy.tag)))


def _symbols(finding: Finding) -> tuple[str, ...]:
    named = finding.evidence["symbols"]
    assert isinstance(named, list)
    return tuple(named)


def _architecture(tag: str) -> str:
    """x86_64 of manylinux_2_28_x86_64 and of linux_x86_64."""
    return tag.split("_", 1 if tag.startswith("linux") else 3)[-1]
