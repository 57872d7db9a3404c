"""Real wheels: those of the manifest, or with WHEELFIX_TEST_WHEELS=ci its small part. One that is absent is an error."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def _fetch() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "wheelfix_tests_fetch", Path(__file__).with_name("fetch.py")
    )
    if spec is None or spec.loader is None:
        raise ImportError("tests/real/fetch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FETCH = _fetch()
ENTRIES: list[dict[str, Any]] = FETCH.wheels(only_ci=os.environ.get("WHEELFIX_TEST_WHEELS") == "ci")

CERTIFIED = [w for w in ENTRIES if "auditwheel" in w]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``real_wheel`` stands for each wheel, ``healthy_wheel`` for each healthy one, ``certified_wheel`` for each with a tag
    of auditwheel's."""
    groups = {
        "real_wheel": ENTRIES,
        "healthy_wheel": [w for w in ENTRIES if w["healthy"]],
        "certified_wheel": CERTIFIED,
        "torch_wheel": [w for w in ENTRIES if w["name"] == "torch"],
    }
    for name, entries in groups.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, entries, ids=[w["file"] for w in entries])


@pytest.fixture
def real_path() -> Callable[[dict[str, Any]], Path]:
    """Where a wheel of the manifest lies."""

    def path(wheel: dict[str, Any]) -> Path:
        found: Path = FETCH.cache() / wheel["file"]
        if not found.is_file():
            pytest.fail(f"{found} is not there: run `make real`, or python tests/real/fetch.py")
        return found

    return path


@pytest.fixture
def certified_wheels() -> list[dict[str, Any]]:
    return CERTIFIED
