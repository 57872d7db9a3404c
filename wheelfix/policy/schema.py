"""The policy language as tables: which keys stand where, and what each may hold."""

from __future__ import annotations

import datetime
import difflib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]i?B|B)")
_TAG = re.compile(r"(?:manylinux|musllinux)_\d+_\d+|manylinux(?:1|2010|2014)|linux")
_ARCHITECTURE = re.compile(r"sm_\d+[af]?|gfx\w+")


class Wrong(Exception):
    """A value that its key does not take; the text says what it takes."""


Reader = Callable[[Any], Any]


def closest(name: str, names: Collection[str]) -> str:
    """A half-sentence that offers the name that was probably meant, or nothing."""
    close = difflib.get_close_matches(name, list(names), 1)
    return f"; did you mean {close[0]}?" if close else ""


def quoted(key: str) -> str:
    """A key as a path of keys shows it."""
    return key if key.replace("-", "").replace("_", "").isalnum() and key.isascii() else repr(key)


def text(value: Any) -> str:
    """A string that is not empty."""
    if not isinstance(value, str) or not value:
        raise Wrong("must be a string that is not empty")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """An array of strings."""
    if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
        raise Wrong("must be an array of strings")
    return tuple(value)


def choice(*names: str) -> Reader:
    """One of a few words."""

    def read(value: Any) -> str:
        if value not in names:
            raise Wrong(f"must be one of {', '.join(names)}")
        return str(value)

    return read


def size(value: Any) -> int:
    """A number of bytes, as an integer or with a unit: "100 MB", "2 GiB"."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise Wrong('must be a number of bytes or a string like "100 MB" (B, KB, MB, GB, KiB, MiB, GiB)')
    return int(float(match[1]) * _UNITS[match[2]])


def date(value: Any) -> datetime.date:
    """A TOML date without time."""
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise Wrong("must be a date like 2027-06-30, without quotes")
    return value


def specifier(value: Any) -> str:
    """A version specifier of PEP 440, by its text: ">=12,<13"."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        if isinstance(value, str) and SpecifierSet(value):
            return value
    except InvalidSpecifier:
        pass
    raise Wrong('must be a version specifier like ">=12,<13"')


def platform_tag(value: Any) -> str:
    """A platform tag without its architecture."""
    if not isinstance(value, str) or not _TAG.fullmatch(value):
        raise Wrong('must be a platform without architecture, like "manylinux_2_28" or "musllinux_1_2"')
    return value


def architectures(value: Any) -> tuple[str, ...]:
    """GPU architectures by name."""
    names = texts(value)
    wrong = [n for n in names if not _ARCHITECTURE.fullmatch(n)]
    if wrong:
        raise Wrong(f'{wrong[0]!r} is no architecture like "sm_90" or "sm_90a"')
    return names


@dataclass(frozen=True, slots=True)
class Table:
    """One section: its keys with their readers, which of them must be there, and how often it may stand."""

    keys: Mapping[str, Reader]
    required: frozenset[str] = frozenset()
    array: bool = True  # an array of tables ([[deny]]); else one table
    single_ok: bool = False  # [cxx-runtime] is read as one entry


SECTIONS: Mapping[str, Table] = {
    "platform": Table({"tag": platform_tag}, array=False),
    "cxx-runtime": Table(
        {
            "objects": texts,
            "linkage": choice("static", "host", "any"),
            "libgcc": choice("static", "any"),
            "exports": choice("forbid", "allow"),
        },
        single_ok=True,
    ),
    "require-file": Table({"path": text}, frozenset({"path"})),
    "require-needed": Table({"object": text, "library": text}, frozenset({"object", "library"})),
    "deny": Table(
        {"object": text, "library": text, "reach": choice("closure", "direct")},
        frozenset({"object", "library"}),
    ),
    "import": Table({"object": text, "symbol": text, "from": text}, frozenset({"object", "symbol"})),
    "export": Table({"object": text, "symbol": text}, frozenset({"object", "symbol"})),
    "sole-definer": Table({"object": text, "symbol": text}, frozenset({"object", "symbol"})),
    "registration": Table({"object": text, "string": text}, frozenset({"object", "string"})),
    "provider": Table(
        {
            "library": text,
            "distribution": text,
            "path": text,
            "loads": choice("by-path", "by-import"),
            "versions": specifier,
        },
        frozenset({"library", "distribution", "path"}),
    ),
    "rpath": Table({"objects": texts, "required": texts, "allowed": texts}),
    "cuda": Table({"architectures": architectures, "ptx": choice("newest", "none", "any")}, array=False),
    "size": Table({"wheel-max": size, "member-max": size}, array=False),
    "waive": Table(
        {"rule": text, "member": text, "library": text, "symbol": text, "reason": text, "until": date},
        frozenset({"rule", "reason"}),
    ),
}
TOP = ("schema", "name", "extends", "severity", *SECTIONS)
SEVERITIES = ("error", "warning", "info", "off")
