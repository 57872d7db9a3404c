"""Real wheels: those of the manifest, or with WHEELFIX_TEST_WHEELS=ci its small part. One that is absent is an error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.real.wheels import ENTRIES, parametrize, path_of

CERTIFIED = [w for w in ENTRIES if "auditwheel" in w]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``real_wheel`` stands for each wheel, ``healthy_wheel`` for each healthy one, ``certified_wheel`` for each with a tag
    of auditwheel's."""
    parametrize(
        metafunc,
        {
            "real_wheel": ENTRIES,
            "healthy_wheel": [w for w in ENTRIES if w["healthy"]],
            "certified_wheel": CERTIFIED,
            "torch_wheel": [w for w in ENTRIES if w["name"] == "torch"],
        },
    )


@pytest.fixture
def real_path() -> Callable[[dict[str, Any]], Path]:
    """Where a wheel of the manifest lies."""
    return path_of


@pytest.fixture
def certified_wheels() -> list[dict[str, Any]]:
    return CERTIFIED
