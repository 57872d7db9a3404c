"""Binding of whole wheels, every object opened as a root: not one binding may differ from the real loader's."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.oracle.compare import compare_wheel

CACHE = Path(os.environ.get("WHEELFIX_TEST_CACHE", Path.home() / ".cache" / "wheelfix-tests")) / "wheels"
WHEELS = (
    "numpy-*-manylinux*_x86_64.whl",
    "psycopg2_binary-*-manylinux*_x86_64.whl",
    "h5py-*-manylinux*_x86_64.whl",
    "pyuwsgi-*-manylinux*_x86_64.whl",
    "pandas-*-manylinux*_x86_64.whl",
    "rasterio-*-manylinux*_x86_64.whl",
    "scikit_learn-*-manylinux*_x86_64.whl",
    "scipy-*-manylinux*_x86_64.whl",
    "pyarrow-*-manylinux*_x86_64.whl",
    "opencv_python_headless-*-manylinux*_x86_64.whl",
)
# Debian's interpreter is no PIE: its PLT entries catch data relocations.
INTERPRETERS = [sys.executable, *(["/usr/bin/python3"] if Path("/usr/bin/python3").exists() else [])]


@pytest.mark.real
@pytest.mark.parametrize("interpreter", INTERPRETERS)
@pytest.mark.parametrize("pattern", WHEELS)
def test_every_binding_is_the_real_loaders(pattern: str, interpreter: str) -> None:
    (wheel,) = CACHE.glob(pattern)
    tally = compare_wheel(wheel, interpreter)
    print(tally)
    assert tally.bindings > 400
    assert tally.problems == []
