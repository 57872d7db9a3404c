"""The real wheels for tests: those of the manifest, or with WHEELFIX_TEST_WHEELS=ci its small part."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.real.fetch import cache, wheels

Entry = dict[str, Any]

ENTRIES: list[Entry] = wheels(only_ci=os.environ.get("WHEELFIX_TEST_WHEELS") == "ci")


def parametrize(metafunc: pytest.Metafunc, groups: Mapping[str, Sequence[Entry]]) -> None:
    """A test that asks for the name of a group runs once for each wheel of the group."""
    for name, entries in groups.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, entries, ids=[w["file"] for w in entries])


def path_of(wheel: Entry) -> Path:
    """Where a wheel of the manifest lies; one that is absent is a failure, not a skip."""
    found = cache() / wheel["file"]
    if not found.is_file():
        pytest.fail(f"{found} is not there: run `make real`, or python tests/real/fetch.py")
    return found
