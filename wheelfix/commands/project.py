"""``[tool.wheelfix]`` of the nearest pyproject.toml that has it; the command line wins.

A command line without such a file costs a look at each folder upwards and no import of a TOML reader.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wheelfix.audit import Options
    from wheelfix.policy.load import PolicyError
    from wheelfix.policy.project import Project

_FILE = "pyproject.toml"


def with_project(asked: Options, wheels: Sequence[Path]) -> Options:
    """The options with what the project asks for where the command line says nothing.

    What only other wheels than these (none: any) are judged with need not be there.
    Raises ``PolicyErrors`` with everything that is wrong with the section.
    """
    try:
        here = Path.cwd()
    except FileNotFoundError:  # a working directory that was removed lies in no project
        return asked
    found = find(here, asked.limits.policy)
    if found is None:
        return asked
    from wheelfix.audit import named_platforms
    from wheelfix.checks import RULES
    from wheelfix.policy.load import PolicyErrors
    from wheelfix.policy.project import read_project

    path, section = found
    label = os.path.relpath(path, here)
    project, errors = read_project(section, path.parent, label, RULES)
    given = {"policies": asked.policies, "with": asked.with_, "exclude": asked.exclude}
    project = project.without([key for key, values in given.items() if values])
    if wheels:
        project = project.needed(named_platforms(wheel.name) for wheel in wheels)
    errors += _missing(project, path.parent, label)
    if errors:
        raise PolicyErrors(errors)
    return replace(asked, project=project)


def find(start: Path, most: int) -> tuple[Path, object] | None:
    """The nearest pyproject.toml at ``start`` or above that has the section, and the section.

    Raises ``PolicyErrors`` for one that speaks of wheelfix and cannot be read (or has more bytes than ``most``):
    to pass over a project's contract in silence would be worse than to stop.
    """
    for folder in (start, *start.parents):
        path = folder / _FILE
        if not os.path.isfile(path) or not _speaks_of_us(path):
            continue
        from wheelfix.policy.load import PolicyErrors, read_toml

        errors: list[PolicyError] = []
        data = read_toml(path, os.path.relpath(path, start), most, errors)
        if data is None:
            raise PolicyErrors(errors)
        tool = data.get("tool")
        if isinstance(tool, dict) and "wheelfix" in tool:
            return path, tool["wheelfix"]
    return None


def _speaks_of_us(path: Path) -> bool:
    try:
        return b"wheelfix" in path.read_bytes()
    except OSError:
        return True  # nobody knows; whoever reads it says why it cannot be read


def _missing(project: Project, folder: Path, label: str) -> Iterator[PolicyError]:
    from wheelfix.policy.load import PolicyError

    for key, wishes in project.each():
        for index, path in enumerate(wishes.with_ or ()):
            if not os.path.exists(path):
                shown = os.path.relpath(path, folder)
                yield PolicyError(label, f"{key}.with[{index}]", f"there is no file or folder {shown!r}")
