"""The wheels of the manifest, each a test of its own; with WHEELFIX_TEST_WHEELS=ci the small part."""

from __future__ import annotations

import pytest

from tests.real.wheels import ENTRIES, parametrize


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    parametrize(metafunc, {"real_wheel": ENTRIES})
