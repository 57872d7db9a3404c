"""``[tool.wheelfix]`` of a pyproject.toml: what a project asks for each time, so that nobody has to type it."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from wheelfix.model.finding import Severity
from wheelfix.policy.load import PolicyError, absent, place
from wheelfix.policy.schema import SEVERITIES, Reader, Wrong, closest, quoted, text, texts

_KEYS = ("policies", "with", "exclude", "severity")


@dataclass(frozen=True, slots=True)
class Wishes:
    """What one table asks for; None where it says nothing. Paths are absolute, those of shipped policies too."""

    policies: tuple[str, ...] | None = None
    with_: tuple[Path, ...] | None = None
    exclude: tuple[str, ...] | None = None
    severity: tuple[tuple[str, Severity | Literal["off"]], ...] = ()

    def over(self, base: Wishes) -> Wishes:
        """These on top of others: a list replaces a list, severities are merged."""
        return Wishes(
            base.policies if self.policies is None else self.policies,
            base.with_ if self.with_ is None else self.with_,
            base.exclude if self.exclude is None else self.exclude,
            tuple({**dict(base.severity), **dict(self.severity)}.items()),
        )


@dataclass(frozen=True, slots=True)
class Project:
    """The section of one file: its wishes, and those for platforms that match a glob, later ones on top."""

    base: Wishes = Wishes()
    overrides: tuple[tuple[str, Wishes], ...] = ()

    def wishes(self, platforms: Sequence[str]) -> Wishes:
        """What is asked for a wheel with these platform tags; an override counts where it matches one of them."""
        found = self.base
        for glob, more in self.overrides:
            if _matches(platforms, glob):
                found = more.over(found)
        return found

    def each(self) -> Iterator[tuple[str, Wishes]]:
        """Every table with the path of its key."""
        yield "tool.wheelfix", self.base
        for index, (_, wishes) in enumerate(self.overrides):
            yield f"tool.wheelfix.override[{index}]", wishes

    def without(self, lists: Collection[str]) -> Project:
        """Without these lists, by their keys, in any table: something else was asked for instead."""

        def rest(wishes: Wishes) -> Wishes:
            return replace(
                wishes,
                policies=None if "policies" in lists else wishes.policies,
                with_=None if "with" in lists else wishes.with_,
                exclude=None if "exclude" in lists else wishes.exclude,
            )

        return Project(rest(self.base), tuple((glob, rest(wishes)) for glob, wishes in self.overrides))

    def needed(self, wheels: Iterable[Sequence[str]]) -> Project:
        """Without the ``with`` of tables that none of the wheels (by their platform tags) gets it from."""
        used = {self._gives_with(platforms) for platforms in wheels}
        overrides = tuple(
            (glob, wishes if index in used else replace(wishes, with_=None))
            for index, (glob, wishes) in enumerate(self.overrides)
        )
        return Project(self.base if None in used else replace(self.base, with_=None), overrides)

    def _gives_with(self, platforms: Sequence[str]) -> int | None:
        """The override whose ``with`` counts; None: the section's own."""
        found = None
        for index, (glob, wishes) in enumerate(self.overrides):
            if wishes.with_ is not None and _matches(platforms, glob):
                found = index
        return found


@dataclass(slots=True)
class _Reading:
    file: str
    folder: Path
    known_rules: Collection[str]
    errors: list[PolicyError] = field(default_factory=list)

    def wrong(self, key: str, message: str) -> None:
        self.errors.append(PolicyError(self.file, key, message))


def read_project(
    section: object, folder: Path, file: str, known_rules: Collection[str]
) -> tuple[Project, list[PolicyError]]:
    """What the section of a file in a folder asks for, and everything that is wrong with it.

    Whether the wheels of ``with`` are there is not looked at: what the command line replaces, and what is for
    another platform, need not be.
    """
    reading = _Reading(file, folder, known_rules)
    top = "tool.wheelfix"
    if not isinstance(section, dict):
        reading.wrong(top, "must be a table: [tool.wheelfix]")
        return Project(), reading.errors
    base = _wishes(section, top, "override", reading)
    overrides = section.get("override", [])
    if not isinstance(overrides, list) or not all(isinstance(o, dict) for o in overrides):
        reading.wrong(f"{top}.override", "must be an array of tables: [[tool.wheelfix.override]]")
        overrides = []
    made = [_override(table, f"{top}.override[{i}]", reading) for i, table in enumerate(overrides)]
    return Project(base, tuple(made)), reading.errors


def _matches(platforms: Sequence[str], glob: str) -> bool:
    return any(fnmatch.fnmatchcase(platform, glob) for platform in platforms)


def _override(table: Mapping[str, Any], key: str, reading: _Reading) -> tuple[str, Wishes]:
    if "platform" not in table:
        reading.wrong(f"{key}.platform", 'is required: a glob over platform tags, like "musllinux_*"')
    glob = _value(table.get("platform", "*"), text, f"{key}.platform", reading)
    return glob or "*", _wishes(table, key, "platform", reading)


def _wishes(table: Mapping[str, Any], above: str, beside: str, reading: _Reading) -> Wishes:
    """The four keys of a table in which a fifth, ``beside``, may stand too."""
    for key in table:
        if key not in (*_KEYS, beside):
            reading.wrong(f"{above}.{quoted(key)}", f"unknown key{closest(key, (*_KEYS, beside))}")
    lists = {k: _value(table[k], texts, f"{above}.{k}", reading) for k in _KEYS[:3] if k in table}
    policies, given = lists.get("policies"), lists.get("with")
    return Wishes(
        policies=None if policies is None else tuple(_policies(policies, f"{above}.policies", reading)),
        with_=None if given is None else tuple(reading.folder / path for path in given),
        exclude=lists.get("exclude"),
        severity=tuple(_severities(table.get("severity", {}), f"{above}.severity", reading)),
    )


def _policies(names: Iterable[str], key: str, reading: _Reading) -> Iterator[str]:
    for index, name in enumerate(names):
        path = place(name, reading.folder)
        if path is None:
            reading.wrong(f"{key}[{index}]", absent(name))
        else:
            yield str(path)


def _severities(value: Any, key: str, reading: _Reading) -> Iterator[tuple[str, Severity | Literal["off"]]]:
    if not isinstance(value, dict):
        reading.wrong(key, f"must be a table of rules and severities: [{key}]")
        return
    for rule, severity in value.items():
        if rule not in reading.known_rules:
            near = closest(rule, reading.known_rules)
            reading.wrong(f"{key}.{quoted(rule)}", f"there is no rule {rule!r}{near}")
        if severity not in SEVERITIES:
            reading.wrong(f"{key}.{quoted(rule)}", f"must be one of {', '.join(SEVERITIES)}")
        else:
            yield rule, severity


def _value(value: Any, reader: Reader, key: str, reading: _Reading) -> Any:
    try:
        return reader(value)
    except Wrong as wrong:
        reading.wrong(key, str(wrong))
        return None
