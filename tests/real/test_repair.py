"""Certified wheels under a plain linux tag: repair finds their tag again and changes nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def members(wheel: Path) -> dict[str, tuple[int, int]]:
    with zipfile.ZipFile(wheel) as archive:
        return {i.filename: (i.CRC, i.file_size) for i in archive.infolist()}


def run(*words: str | Path) -> str:
    done = subprocess.run([sys.executable, "-m", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def repaired(wheel: Path, folder: Path) -> Path:
    run("wheelfix", "repair", "-w", folder, wheel)
    (result,) = folder.glob("*.whl")
    return result


def plain_copy(wheel: Path, folder: Path) -> Path:
    """A copy of a wheel whose tag is linux_x86_64."""
    source = folder / wheel.name
    shutil.copy(wheel, source)
    run("wheel", "tags", "--platform-tag", "linux_x86_64", "--remove", source)
    (plain,) = folder.glob("*.whl")
    return plain


def best(wheel: Path) -> tuple[int, int]:
    """The glibc version of the best manylinux tag in a file name."""
    tags = wheel.stem.split("-")[-1].split(".")
    return min(tuple(map(int, t.split("_")[1:3])) for t in tags if t.startswith("manylinux_"))  # type: ignore[return-value]


@pytest.mark.real
def test_a_certified_wheel_gets_its_tag_back_and_nothing_else_changes(
    certified_wheel: dict[str, Any], real_path: Callable[[dict[str, Any]], Path], tmp_path: Path
) -> None:
    certified = real_path(certified_wheel)
    plain = plain_copy(certified, tmp_path)
    before = plain.read_bytes()
    result = repaired(plain, tmp_path / "one")
    assert best(result) <= best(certified)
    assert plain.read_bytes() == before
    old, new = members(plain), members(result)
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    # Entries that name the build machine are dropped from objects that have them, and nothing else changes.
    report = json.loads(run("wheelfix", "verify", "--format", "json", plain, "--plat", "linux_x86_64"))
    cleaned = {f["member"] for f in report["wheels"][0]["findings"] if f["rule"] == "rpath-absolute"}
    assert {name for name in changed if not name.endswith((".dist-info/WHEEL", "/RECORD"))} == cleaned
    run("wheelfix", "verify", result)
    assert repaired(plain, tmp_path / "two").read_bytes() == result.read_bytes()
    assert repaired(result, tmp_path / "three").read_bytes() == result.read_bytes()


@pytest.mark.real
def test_torch_repairs_to_its_own_tag_by_provider_rules_alone(
    torch_wheel: dict[str, Any], real_path: Callable[[dict[str, Any]], Path], tmp_path: Path
) -> None:
    """No --exclude: policies say which distribution brings each library of NVIDIA."""
    certified = real_path(torch_wheel)
    plain = tmp_path / certified.name.replace("manylinux_2_28_x86_64", "linux_x86_64")
    plain.symlink_to(certified)
    policies = [word for name in ("torch-extension", "nvidia-pypi") for word in ("--policy", name)]
    run("wheelfix", "repair", *policies, "-w", tmp_path / "out", plain)
    (result,) = (tmp_path / "out").iterdir()
    assert result.name == certified.name
    old, new = members(certified), members(result)
    info = f"torch-{torch_wheel['version']}.dist-info"
    assert {n for n in old.keys() | new.keys() if old.get(n) != new.get(n)} <= {
        f"{info}/WHEEL",
        f"{info}/RECORD",
    }
