"""``wheelfix show``: what a wheel holds, which tags are true for it and why not a better one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfix.commands.options import add_exclude, add_jobs, add_limits, add_world, audit_options

if TYPE_CHECKING:
    from wheelfix.audit import Setting
    from wheelfix.checks.subject import Subject
    from wheelfix.model.elf import ElfFacts
    from wheelfix.model.policy import PlatformPolicy
    from wheelfix.model.wheel import WheelFacts
    from wheelfix.report.show import Object, Reach, Runtime, Shown

_EPILOG = """\
examples:
  wheelfix show my-1.0-cp311-cp311-linux_x86_64.whl    which manylinux tag could it have?
  wheelfix show --json dist/*.whl                      the same for programs (wheelfix/show/1)
  wheelfix show --cuda torch-2.14.1-*.whl              what each GPU architecture costs
"""
# A tag is a promise about the machine: what is wrong with the archive or a contract does not make it untrue.
_OF_THE_TAG = frozenset({"platform", "loader", "cxx-runtime", "symbols"})


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "show",
        help="what a wheel holds, which tags it can have and why not a better one",
        description="Shows each wheel: its tags, the best platform tag that is true for it, what stands against the\n"
        "next better one, and its ELF objects.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("wheels", metavar="WHEEL", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true", help="as JSON (wheelfix/show/1)")
    parser.add_argument("--cuda", action="store_true", help="device code by object and architecture, too")
    add_exclude(parser)
    add_jobs(parser)
    add_limits(parser)
    add_world(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Show every wheel; 3 where one cannot be read, which hides no other."""
    from wheelfix import audit
    from wheelfix.commands.output import look, write
    from wheelfix.report.escape import plain
    from wheelfix.report.show import as_json, as_text

    setting = audit.prepare(audit_options(options))
    wheels = [_shown(path, setting) for path in options.wheels]
    how = look()
    if options.json:
        write(as_json(wheels, cuda=options.cuda))
    else:
        write(as_text(wheels, cuda=options.cuda, width=how.width, colour=how.colour))
    for shown in wheels:
        if shown.error is not None:
            print(
                f"wheelfix: {plain(f'{shown.path} cannot be read as a wheel: {shown.error}')}",
                file=sys.stderr,
            )
    return 3 if any(shown.error is not None for shown in wheels) else 0


def reaches(subject: Subject, setting: Setting) -> Iterator[Reach]:
    """For each C library and architecture of the wheel the best true tag, and what stands against a better one."""
    from wheelfix.policy.platform import candidates, for_platform
    from wheelfix.report.show import Reach

    claimed = [p for p in map(for_platform, subject.wheel.platforms) if p is not None and p.capped]
    for libc, arch in dict.fromkeys((p.libc, p.arch) for p in (claimed or subject.platforms)):
        known = candidates(arch, libc)
        older: tuple[PlatformPolicy, ...] = ()
        if libc == "musl":
            # musl has no symbol versions: that objects run on an older one than the build claims cannot be shown.
            since = min((p.libc_version for p in claimed if p.libc == libc), default=known[-1].libc_version)
            older = tuple(p for p in known if p.libc_version < since)
            known = known[len(older) :]
        best, better, reasons = _best(subject.wheel, known, setting)
        if better is None and older and best is not None:
            better = older[-1].tag
            reasons = (
                f"musl has no symbol versions, so nothing shows that what was built for {best} runs there",
            )
        yield Reach(libc, arch, best, better, reasons)


def _best(
    wheel: WheelFacts, known: tuple[PlatformPolicy, ...], setting: Setting
) -> tuple[str | None, str | None, tuple[str, ...]]:
    """The oldest of the platforms that is true, the one before it and what stands against that one."""
    before: tuple[str | None, tuple[str, ...]] = (None, ())
    for platform in known:
        last = platform is known[-1]
        reasons = _too_new(wheel, platform)
        if not reasons or last:
            reasons = _against(wheel, platform, setting)
            if not reasons:
                return platform.tag, before[0], before[1]
        before = (platform.tag, reasons)
    return None, before[0], before[1]


def _too_new(wheel: WheelFacts, platform: PlatformPolicy) -> tuple[str, ...]:
    """The versions that the objects need and the machine lacks: what is cheap to know of every platform."""
    from wheelfix.checks.platform import lacks_version, needed_versions

    own = {m.elf.soname for m in wheel.elves if m.elf is not None}
    reasons = []
    for member in wheel.elves:
        if member.elf is not None:
            lacking = [
                f"{version} of {file}{f' ({symbols[0]})' if symbols else ''}"
                for (file, version), symbols in needed_versions(member.elf).items()
                if file not in own and lacks_version(platform, version)
            ]
            if lacking:
                reasons.append(f"{member.path} needs {', '.join(lacking)}")
    return tuple(reasons)


def _against(wheel: WheelFacts, platform: PlatformPolicy, setting: Setting) -> tuple[str, ...]:
    """Everything that makes the tag untrue, as ``verify --plat`` finds it."""
    from wheelfix import audit, checks

    judged = replace(setting, options=replace(setting.options, plat=platform.tag, select=(), ignore=()))
    found = audit.findings_of(audit.subject_from(wheel, judged), judged.options)
    return tuple(
        dict.fromkeys(
            f.message
            for f in found
            if f.severity == "error" and f.policy is None and checks.RULES[f.rule].group in _OF_THE_TAG
        )
    )


def _shown(path: Path, setting: Setting) -> Shown:
    from wheelfix import audit
    from wheelfix.archive.limits import Unreadable
    from wheelfix.report.show import Shown

    try:
        setting = audit.for_wheel(path, setting)
        subject = audit.subject_of(path, setting)
    except Unreadable as reason:
        return Shown(str(path), error=str(reason))
    return Shown(str(path), subject.wheel, tuple(objects_of(subject)), tuple(reaches(subject, setting)))


def objects_of(subject: Subject) -> Iterator[Object]:
    """The ELF objects of a wheel, each with what its version floor and its C++ runtime are."""
    from wheelfix.report.show import Object

    wheel = subject.wheel
    own = frozenset(m.elf.soname for m in wheel.elves if m.elf is not None and m.elf.soname is not None)
    for member in wheel.elves:
        if member.elf is not None:
            yield Object(member, member.elf, floor_of(member.elf, own), _runtime(member.elf, subject))


def floor_of(facts: ElfFacts, own: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The newest version of each kind (GLIBC, GLIBCXX, ...) that an object needs of libraries other than ``own``."""
    from wheelfix.checks.platform import needed_versions

    newest: dict[str, tuple[tuple[int, ...], str]] = {}
    for file, version in needed_versions(facts):
        kind, _, number = version.rpartition("_")
        if file not in own and kind and number.replace(".", "").isdigit():
            order = tuple(int(part) for part in number.split(".") if part)
            newest[kind] = max(newest.get(kind, ((), "")), (order, version))
    return tuple(version for _, (_, version) in sorted(newest.items()))


def _runtime(facts: ElfFacts, subject: Subject) -> Runtime:
    from wheelfix.checks.cxx import is_runtime

    names: frozenset[str] = frozenset().union(*subject.cxx_runtime_symbols.values())
    if any(is_runtime(n) and not n.startswith("libgcc_s") for n in facts.needed):
        return "shared"
    if facts.hides("__cxa_throw") or any(s.name == "__cxa_throw" and s.defined for s in facts.symbols):
        return "static"
    wanted = (s for s in facts.symbols if not s.defined and s.lookups and not s.weak)
    return (
        "absent"
        if any(s.name in names and s.name.startswith(("_Z", "__cxa_", "__gxx_")) for s in wanted)
        else "none"
    )
