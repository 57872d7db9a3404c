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


@cache
def _packages() -> Mapping[str, str]:
    with gzip.open(data_folder() / "system-libraries.txt.gz", "rt", encoding="utf-8") as lines:
        pairs = (line.split(None, 1) for line in lines if not line.startswith("#"))
        return {name: package.strip() for name, package in pairs}
