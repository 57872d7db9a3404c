"""Certified wheels under a plain linux tag, repaired: the tag is as good as before, and every root loads in an empty environment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import parse_wheel_filename

from tests.oracle.compare import install
from tests.oracle.observe import observe
from tests.real.test_repair import best, plain_copy, repaired
from wheelfix.audit import Options, prepare, subject_of

pytestmark = pytest.mark.real


def is_static(file: Path) -> bool:
    """A program without a program interpreter and without a dynamic segment."""
    said = subprocess.run(["readelf", "-lW", file], capture_output=True, text=True, check=True).stdout
    return "INTERP" not in said and "DYNAMIC" not in said


def test_every_root_of_a_certified_wheel_loads_after_repair(
    certified_wheel: dict[str, Any],
    real_path: Callable[[dict[str, Any]], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = plain_copy(real_path(certified_wheel), tmp_path)
    result = repaired(plain, tmp_path / "out")
    certified = tuple(map(int, certified_wheel["auditwheel"].split("_")[1:3]))
    assert best(result) <= certified
    parse_wheel_filename(result.name)
    site = tmp_path / "site"
    install(result, site)
    (scene,) = subject_of(result, prepare(Options())).scenes
    for name in os.environ.keys() - {"PATH"}:
        monkeypatch.delenv(name)
    roots = [load.root.path for load in scene.loads if load.root.owner == "wheel"]
    assert roots
    refused = []
    for root in roots:
        scheme, _, name = root.rpartition(":")
        file = site / "bin" / name if scheme == "scripts" else site / name
        if is_static(file):  # no loader is asked: that it starts is all there is to see
            assert subprocess.run([file], env={}, capture_output=True, check=False).returncode in (0, 1)
            continue
        seen = observe(file)
        if not seen.loads:
            refused.append((root, seen.error))
    assert refused == []


def test_a_program_of_a_repaired_wheel_runs(
    real_path: Callable[[dict[str, Any]], Path], certified_wheels: list[dict[str, Any]], tmp_path: Path
) -> None:
    (ninja,) = (w for w in certified_wheels if w["name"] == "ninja")
    result = repaired(plain_copy(real_path(ninja), tmp_path), tmp_path / "out")
    install(result, tmp_path / "site")
    done = subprocess.run(
        [tmp_path / "site" / "bin" / "ninja", "--version"], env={}, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(ninja["version"])
