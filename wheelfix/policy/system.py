"""Libraries that distributions package, by name: what a machine may have and a tag need not promise."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import cache

from wheelfix.policy.data import data_folder


def system_library(name: str) -> str | None:
    """The Debian package that holds a library of this name, None for one that no package holds.

    The data are ``policies/system-libraries.txt.gz``, made by the script beside it.
    """
    return _packages().get(name)


def packaged_stem(name: str) -> bool:
    """Whether some package holds the library in any version: ``libnuma.so`` and ``libnuma.so.2`` are libnuma."""
    return name.partition(".so")[0] in _stems()


@cache
def _stems() -> frozenset[str]:
    return frozenset(name.partition(".so")[0] for name in _packages())


@cache
def _packages() -> Mapping[str, str]:
    with gzip.open(data_folder() / "system-libraries.txt.gz", "rt", encoding="utf-8") as lines:
        pairs = (line.split(None, 1) for line in lines if not line.startswith("#"))
        return {name: package.strip() for name, package in pairs}
