"""Libraries that distributions package, by name: what a machine may have and a tag need not promise."""

from __future__ import annotations

import gzip
from functools import cache

from wheelfix.policy.data import data_folder


def system_library(name: str) -> str | None:
    """The Debian package that holds a library of this name, None for one that no package holds.

    The data are ``policies/system-libraries.txt.gz``, made by the script beside it: a line a library.
    """
    start = _lines().find(f"\n{name} ") + 1
    if not start or not name:
        return None
    lines = _lines()
    return lines[start + len(name) + 1 : lines.index("\n", start)]


def packaged_stem(name: str) -> bool:
    """Whether some package holds the library in any version: ``libnuma.so`` and ``libnuma.so.2`` are libnuma."""
    return f"\n{name.partition('.so')[0]}.so" in _lines()


@cache
def _lines() -> str:
    # One string that is searched: building a table of 20,000 names would cost more than all look-ups of a run.
    return gzip.decompress((data_folder() / "system-libraries.txt.gz").read_bytes()).decode("utf-8")
