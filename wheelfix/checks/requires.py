"""Requires-Dist against what the loader takes from other distributions: none asked for, or only wrong versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Subject
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Provider
from wheelfix.model.resolution import Node
from wheelfix.model.wheel import WheelFacts
from wheelfix.world import distribution_of, providers_of

if TYPE_CHECKING:
    from packaging.specifiers import Specifier, SpecifierSet

REQUIRES = Rule(
    id="requires-dist-missing",
    group="loader",
    severity="warning",
    what="A library comes from a distribution that Requires-Dist does not ask for, or only in versions without it.",
    why=(
        "`pip install` of the wheel alone does not bring the library, or brings one of another major under another"
        " SONAME: the import fails in a fresh environment."
    ),
    fix=(
        "Ask for the versions that hold the SONAME:\n\n"
        '```toml\n[project]\ndependencies = ["nvidia-cuda-runtime>=13,<14"]\n```'
    ),
    example=(
        "`pkg/_ext.so` needs `libcudart.so.13` of nvidia-cuda-runtime; METADATA requires nothing. Or it needs"
        " `libcudnn.so.8`, and METADATA requires `nvidia-cudnn-cu12>=9`."
    ),
    remedy="Add the distribution to the project's dependencies, in versions that hold the library.",
)
RULES = (REQUIRES,)

#: Markers whose value a tag does not tell.
_UNTOLD = re.compile(r"platform_release|platform_version|python_full_version|implementation_version")
_OLDEST_PYTHON, _NEWEST_PYTHON = 8, 15  # 3.8 to 3.15: what a wheel without a bound may meet


@dataclass(frozen=True, slots=True)
class _Asked:
    """What Requires-Dist says of one distribution: the lines, and the versions in each environment of the tags."""

    lines: tuple[str, ...]
    versions: tuple[SpecifierSet, ...]


def check(subject: Subject) -> Iterator[Finding]:
    """Libraries that given distributions hold, or provider rules name; each with its distribution once."""
    asked = _asked(subject.wheel)
    told: set[tuple[str, str | None]] = set()
    for scene in subject.scenes:
        for load in scene.loads:
            nodes: dict[str | None, Node] = {n.path: n for n in load.scope}
            for edge in load.edges:
                holder = nodes.get(edge.path)
                if holder is None or nodes[edge.object].owner != "wheel":
                    continue
                if holder.owner not in ("given", "external") or (edge.needed, holder.distribution) in told:
                    continue
                told.add((edge.needed, holder.distribution))
                yield from _unasked(subject, edge.object, edge.needed, holder)
                yield from _without(subject, edge.object, edge.needed, holder, asked)


def _unasked(subject: Subject, member: str, library: str, holder: Node) -> Iterator[Finding]:
    asked, name = subject.required_distributions, holder.distribution
    if asked is not None and name is not None and name not in asked:
        yield REQUIRES.finding(
            f"{member} needs {library} of {name}, which Requires-Dist does not ask for",
            member=member,
            library=library,
            evidence={"distribution": name, "asked": sorted(asked)},
        )


def _without(
    subject: Subject, member: str, library: str, holder: Node, asked: Mapping[str, _Asked]
) -> Iterator[Finding]:
    """The wheel asks for a distribution that holds the library, in versions none of which does."""
    homes: dict[str, list[Provider]] = {}
    for provider in providers_of(library, subject.policy.providers):
        homes.setdefault(canonicalize_name(provider.distribution), []).append(provider)
    if not homes.keys() <= asked.keys() and not _surely_absent(subject, homes.keys() - asked.keys()):
        return
    named = [name for name in homes if name in asked]
    given = holder.distribution if holder.owner == "given" else None
    if given is not None and (given not in named or _allows(subject, given, asked[given])):
        return
    if not named or any(_may_hold(homes[name], asked[name]) for name in named):
        return
    name = named[0]
    versions = " or ".join(dict.fromkeys(p.versions for p in homes[name] if p.versions))
    lines = "; ".join(asked[name].lines)
    yield REQUIRES.finding(
        f"{member} needs {library}, which {name} holds in its versions {versions}; Requires-Dist asks for {lines!r}:"
        " no version is both",
        member=member,
        library=library,
        policy=homes[name][0].key,
        evidence={"distribution": name, "versions": versions, "requires": list(asked[name].lines)},
        remedy=f"Ask for {name} in versions {versions}, or link with the library of the version that is asked for.",
    )


def _surely_absent(subject: Subject, names: set[str]) -> bool:
    """Whether installing the wheel brings none of these distributions."""
    return subject.required_distributions is not None and not names & subject.required_distributions


def _allows(subject: Subject, name: str, asked: _Asked) -> bool:
    """Whether the requirement takes the given wheel in which the loader found the library."""
    given = next((w for w in subject.given if distribution_of(w) == name), None)
    if given is None or given.version is None:
        return True
    return any(s.contains(given.version, prereleases=True) for s in asked.versions)


def _may_hold(providers: list[Provider], asked: _Asked) -> bool:
    """Whether some environment of the tags may get a version that holds the library."""
    from packaging.specifiers import SpecifierSet

    if not asked.versions:
        return True
    return any(
        p.versions is None or may_meet(SpecifierSet(p.versions), wanted)
        for p in providers
        for wanted in asked.versions
    )


def _asked(wheel: WheelFacts) -> dict[str, _Asked]:
    """The distributions of Requires-Dist. Without versions where they cannot be told: a URL, a marker that the
    tags do not decide, an environment without the requirement."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.specifiers import SpecifierSet

    environments = _environments(wheel)
    lines: dict[str, list[str]] = {}
    sets: dict[str, list[SpecifierSet | None]] = {}
    untold: set[str] = set()
    for text in wheel.requires_dist:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        name = canonicalize_name(requirement.name)
        marker = requirement.marker
        holds = [marker is None or marker.evaluate(dict(e)) for e in environments]
        if not any(holds):  # of an extra, or of another platform
            continue
        if requirement.url or _UNTOLD.search(str(marker)):
            untold.add(name)
        lines.setdefault(name, []).append(text)
        known = sets.setdefault(name, [None] * len(environments))
        for at, applies in enumerate(holds):
            if applies:
                known[at] = (known[at] or SpecifierSet()) & requirement.specifier
    found: dict[str, _Asked] = {}
    for distribution, texts in lines.items():
        versions = tuple(s for s in sets[distribution] if s is not None)
        whole = distribution not in untold and len(versions) == len(environments)
        found[distribution] = _Asked(tuple(texts), tuple(dict.fromkeys(versions)) if whole else ())
    return found


def _environments(wheel: WheelFacts) -> tuple[Mapping[str, str], ...]:
    """The environments for markers (PEP 508) in which the tags of a wheel are installed: CPython on Linux."""
    found: dict[tuple[int, str], Mapping[str, str]] = {}
    for tag in wheel.tags:
        interpreter, abi, platform = tag.split("-")
        if interpreter.startswith(("py2", "cp2")):
            continue
        match = re.fullmatch(r"(?:cp|py)3(\d*)", interpreter)
        machine = re.fullmatch(r"(?:many|musl)?linux(?:\d+|_\d+_\d+)?_(\w+)", platform)
        if match is None or machine is None:
            return ()
        architecture = machine[1]
        least = int(match[1] or _OLDEST_PYTHON)
        exact = abi.startswith("cp")
        for minor in range(least, least + 1 if exact else max(_NEWEST_PYTHON, least) + 1):
            found[minor, architecture] = {
                "os_name": "posix",
                "sys_platform": "linux",
                "platform_system": "Linux",
                "platform_machine": architecture,
                "platform_python_implementation": "CPython",
                "implementation_name": "cpython",
                "python_version": f"3.{minor}",
                "python_full_version": f"3.{minor}.0",
                "extra": "",
            }
    return tuple(found.values())


def may_meet(one: SpecifierSet, other: SpecifierSet) -> bool:
    """Whether some version satisfies both. True, too, where pre-releases and the like leave it open.

    Each set is a union of intervals that begin at 0, at a version that a specifier names, or just above one; so
    does what they have in common, and those points are tried.
    """
    specifiers = [*one, *other]
    exact = next((s.version for s in specifiers if s.operator == "==" and not s.version.endswith(".*")), None)
    if exact is not None:
        return one.contains(exact, prereleases=True) and other.contains(exact, prereleases=True)
    known: list[tuple[int, ...]] = []
    for specifier in specifiers:
        release = _release(specifier)
        if release is None:
            return True
        known.append(release)
    starts = {(0,), *known, *((*r[:at], r[at] + 1) for r in known for at in range(len(r)))}
    width = max(map(len, starts))
    points = starts | {(*s, *(0,) * width, 1) for s in starts}
    texts = [".".join(map(str, p)) for p in points]
    return any(one.contains(t) and other.contains(t) for t in texts)


def _release(specifier: Specifier) -> tuple[int, ...] | None:
    """The numbers of the version that a specifier names; None where it is more than numbers, or ===."""
    text = specifier.version.removesuffix(".*")
    if specifier.operator == "===" or not re.fullmatch(r"\d+(?:\.\d+)*", text):
        return None
    return tuple(map(int, text.split(".")))
