"""The algebra of DT_RPATH and DT_RUNPATH: where an entry leads, what is wrong with it, the shortest one to a folder.

ld.so(8): entries are separated by colons, an empty one is the working directory, ``$ORIGIN`` is the
folder of the object. Locations are absolute and normalised, in the virtual file system of the installed wheel.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from wheelfix.model.elf import ElfFacts
from wheelfix.model.plan import PathKind

_TOKEN = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))")


def entries(facts: ElfFacts) -> tuple[str, ...]:
    """The entries that count: those of DT_RUNPATH, else of DT_RPATH (dl-load.c ignores RPATH beside RUNPATH)."""
    text = facts.search_path
    return tuple(text.split(":")) if text is not None else ()


def kind_of(facts: ElfFacts) -> PathKind:
    """The kind to keep; DT_RPATH for an object without any path.

    A new DT_RUNPATH would make the object deaf to the RPATH that it inherits from its loaders, and
    LD_LIBRARY_PATH would go before it; a new DT_RPATH only adds a place to look at.
    """
    return "runpath" if facts.runpath is not None else "rpath"


def leads_to(entry: str, folder: str, lib: str, platform: str) -> str | None:
    """The location that an entry of an object in ``folder`` names; None for one relative to the working directory."""
    values = {"ORIGIN": folder, "LIB": lib, "PLATFORM": platform}
    text = _TOKEN.sub(lambda m: values[m[1] or m[2]], entry)
    return posixpath.normpath(text) if text.startswith("/") else None


def has_origin(entry: str) -> bool:
    """Whether the entry is relative to the object: it begins with ``$ORIGIN`` (the only place where it is of use)."""
    match = _TOKEN.match(entry)
    return bool(
        match and (match[1] or match[2]) == "ORIGIN" and entry[match.end() : match.end() + 1] in ("", "/")
    )


def hop(folder: str, target: str) -> str:
    """The shortest ``$ORIGIN`` entry that leads from one folder to another."""
    relative = posixpath.relpath(target, folder)
    return "$ORIGIN" if relative == "." else f"$ORIGIN/{relative}"


def joined(parts: Iterable[str]) -> str:
    """The entries as one DT_RPATH or DT_RUNPATH, each once, the first one kept."""
    return ":".join(dict.fromkeys(parts))
