"""wheelfix: what the dynamic loader will do with a compiled wheel, what is wrong, and its repair.

``verify`` and the types of what it answers and raises are the whole API; see docs/api.md.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wheelfix.archive.limits import Unreadable
    from wheelfix.model.finding import Finding, Report, WheelReport
    from wheelfix.policy.load import PolicyErrors

    StrPath = str | os.PathLike[str]

__all__ = ["Finding", "PolicyErrors", "Report", "Unreadable", "WheelReport", "__version__", "verify"]

try:  # written by the build; importlib.metadata would cost more than all of `wheelfix --version`
    from wheelfix._version import __version__
except ImportError:
    __version__ = "0+unknown"

# Where the types lie: nothing is imported before it is asked for, since `wheelfix --version` imports this module.
_HOMES = {
    "Finding": "wheelfix.model.finding",
    "PolicyErrors": "wheelfix.policy.load",
    "Report": "wheelfix.model.finding",
    "Unreadable": "wheelfix.archive.limits",
    "WheelReport": "wheelfix.model.finding",
}


def verify(
    wheels: StrPath | Iterable[StrPath],
    *,
    policy: StrPath | Iterable[StrPath] = (),
    with_: StrPath | Iterable[StrPath] = (),
    plat: str | None = None,
    exclude: str | Iterable[str] = (),
    jobs: int = 1,
) -> Report:
    """Judge one wheel or several, as ``wheelfix verify`` does; the options mean what they mean there.

    ``policy`` holds names of shipped policies or policy files, ``with_`` wheels (or folders of them) that are
    installed beside, ``plat`` a platform tag to judge against, ``exclude`` globs of libraries that the machine supplies
    by other means, ``jobs`` the number of processes (more than one are forked from this one).

    A file that cannot be read as a wheel gets the verdict "unreadable"; it raises nothing. Raises
    ``FileNotFoundError`` where a wheel or a path of ``with_`` is not there, ``PolicyErrors`` for a policy that
    is not there or does not validate, ``Unreadable`` for a file of ``with_`` that is no wheel, ``ValueError`` for a ``plat`` that no
    policy covers.
    """
    from pathlib import Path

    from wheelfix import audit
    from wheelfix.policy.platform import for_platform

    paths = tuple(map(Path, _several(wheels)))
    given = tuple(map(Path, _several(with_)))
    for path in (*paths, *given):
        path.stat()
    if plat is not None and for_platform(plat) is None:
        raise ValueError(f"no policy covers the platform {plat!r}; name a tag like manylinux_2_28_x86_64")
    options = audit.Options(
        policies=tuple(os.fspath(p) for p in _several(policy)),
        with_=given,
        plat=plat,
        exclude=tuple(os.fspath(e) for e in _several(exclude)),
        jobs=jobs,
    )
    return audit.audit_wheels(paths, audit.prepare(options))


def _several(value: StrPath | Iterable[StrPath]) -> tuple[StrPath, ...]:
    """One path is a sequence of one: a text must not be taken for its letters."""
    return (value,) if isinstance(value, (str, os.PathLike)) else tuple(value)


if not TYPE_CHECKING:  # a type checker would take every misspelt name for one that this function knows

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            import importlib

            return getattr(importlib.import_module(_HOMES[name]), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
