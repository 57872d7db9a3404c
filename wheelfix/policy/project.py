"""``[tool.wheelfix]`` of a pyproject.toml: what a project asks for each time, so that nobody has to type it."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wheelfix.model.finding import Severity
from wheelfix.policy.load import PolicyError, PolicyErrors
from wheelfix.policy.schema import SEVERITIES, Reader, Wrong, closest, quoted, text, texts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FILE = "pyproject.toml"


@dataclass(frozen=True, slots=True)
class Wishes:
    """What one table asks for; None where it says nothing. Files are absolute, or names of shipped policies."""

    policies: tuple[str, ...] | None = None
    with_: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    severity: tuple[tuple[str, Severity], ...] = ()

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

    def wishes(self, platforms: Iterable[str]) -> Wishes:
        """What is asked for a wheel with these platform tags; an override counts where it matches one of them."""
        tags = tuple(platforms)
        found = self.base
        for glob, more in self.overrides:
            if any(fnmatch.fnmatchcase(tag, glob) for tag in tags):
                found = more.over(found)
        return found


@dataclass(slots=True)
class _Reading:
    folder: Path
    known_rules: Collection[str]
    errors: list[PolicyError] = field(default_factory=list)

    def wrong(self, key: str, message: str) -> None:
        self.errors.append(PolicyError(_FILE, ".".join(filter(None, ("tool.wheelfix", key))), message))


def find_project(start: Path, *, known_rules: Callable[[], Collection[str]], limit: int) -> Project | None:
    """The section of the nearest pyproject.toml at ``start`` or above it that has one; ``limit`` in bytes.

    Raises ``PolicyErrors`` where it does not validate. A file that is no TOML, or too large, is passed over, as is
    one without the section: it may belong to another tool.
    """
    for folder in (start, *start.parents):
        try:
            raw = (folder / _FILE).read_bytes() if (folder / _FILE).stat().st_size <= limit else b""
            section = tomllib.loads(raw.decode("utf-8")).get("tool", {}).get("wheelfix")
        except (OSError, ValueError, RecursionError, AttributeError) as error:
            if isinstance(error, OSError) or b"wheelfix" not in raw:
                continue
            raise PolicyErrors([PolicyError(_FILE, "", f"cannot be read: {error}")]) from error
        if section is not None:
            return _project(section, _Reading(folder, known_rules()))
    return None


def _project(section: Any, reading: _Reading) -> Project:
    if not isinstance(section, dict):
        reading.wrong("", "must be a table: [tool.wheelfix]")
        section = {}
    overrides = section.get("override", [])
    if not isinstance(overrides, list) or not all(isinstance(o, dict) for o in overrides):
        reading.wrong("override", "must be an array of tables: [[tool.wheelfix.override]]")
        overrides = []
    made = Project(
        _wishes({k: v for k, v in section.items() if k != "override"}, "", reading),
        tuple(_override(o, f"override[{i}]", reading) for i, o in enumerate(overrides)),
    )
    if reading.errors:
        raise PolicyErrors(reading.errors)
    return made


def _override(table: Mapping[str, Any], key: str, reading: _Reading) -> tuple[str, Wishes]:
    if "platform" not in table:
        reading.wrong(f"{key}.platform", 'is required: a glob over platform tags, like "musllinux_*"')
    glob = _value(table.get("platform", "*"), text, f"{key}.platform", reading)
    return glob or "*", _wishes({k: v for k, v in table.items() if k != "platform"}, key, reading)


def _wishes(table: Mapping[str, Any], above: str, reading: _Reading) -> Wishes:
    keys = ("policies", "with", "exclude", "severity")
    for key in table:
        if key not in keys:
            offered = (*keys, "platform") if above else (*keys, "override")
            reading.wrong(_under(above, quoted(key)), f"unknown key{closest(key, offered)}")
    lists = {k: _value(table[k], texts, _under(above, k), reading) for k in keys[:3] if k in table}
    policies, given = lists.get("policies"), lists.get("with")
    return Wishes(
        policies=None if policies is None else tuple(_policy(p, reading.folder) for p in policies),
        with_=None if given is None else tuple(_there(given, _under(above, "with"), reading)),
        exclude=lists.get("exclude"),
        severity=tuple(_severities(table.get("severity", {}), _under(above, "severity"), reading)),
    )


def _policy(name: str, folder: Path) -> str:
    return str(folder / name) if (folder / name).is_file() else name


def _there(paths: Iterable[str], key: str, reading: _Reading) -> Iterator[str]:
    for path in paths:
        place = reading.folder / path
        if not place.exists():
            reading.wrong(key, f"there is no file or folder {path!r} beside {_FILE}")
        yield str(place)


def _severities(value: Any, key: str, reading: _Reading) -> Iterator[tuple[str, Severity]]:
    if not isinstance(value, dict):
        reading.wrong(key, "must be a table of rules and severities")
        return
    for rule, severity in value.items():
        if rule not in reading.known_rules:
            reading.wrong(
                _under(key, quoted(rule)), f"there is no rule {rule!r}{closest(rule, reading.known_rules)}"
            )
        if severity not in SEVERITIES:
            reading.wrong(_under(key, quoted(rule)), f"must be one of {', '.join(SEVERITIES)}")
        else:
            yield rule, severity


def _value(value: Any, reader: Reader, key: str, reading: _Reading) -> Any:
    try:
        return reader(value)
    except Wrong as wrong:
        reading.wrong(key, str(wrong))
        return None


def _under(above: str, key: str) -> str:
    return f"{above}.{key}" if above else key
