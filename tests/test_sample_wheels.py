"""Each sample wheel has its one fault, prebuilt and built anew; what the real loader says of them was measured by import."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

FAULTS = {
    "sample-healthy": [],
    "sample-dynamic-runtime": ["cxx-runtime-dynamic"],
    "sample-no-runtime": ["cxx-runtime-missing"],
    "sample-helper-missing": ["needed-missing"],
    "sample-helper-no-origin": ["needed-unreachable"],
    "sample-registration-dropped": ["contract-registration"],
}


@pytest.mark.rule("cxx-runtime-dynamic", fires=True)
@pytest.mark.rule("cxx-runtime-dynamic", fires=False)
@pytest.mark.rule("cxx-runtime-missing", fires=True)
@pytest.mark.rule("cxx-runtime-missing", fires=False)
@pytest.mark.rule("needed-missing", fires=True)
@pytest.mark.rule("needed-missing", fires=False)
@pytest.mark.rule("needed-unreachable", fires=True)
@pytest.mark.rule("needed-unreachable", fires=False)
@pytest.mark.rule("contract-registration", fires=True)
@pytest.mark.rule("contract-registration", fires=False)
@pytest.mark.parametrize("built", [False, True], ids=["prebuilt", "built"])
def test_each_sample_has_exactly_its_fault(
    wheelfix: Callable[..., tuple[int, str, str]], sample_wheels: Path, tmp_path: Path, built: bool
) -> None:
    folder = sample_wheels
    if built:
        folder = tmp_path
        subprocess.run(
            [sys.executable, sample_wheels / "build.py", folder], check=True, stdout=subprocess.DEVNULL
        )
    wheels = sorted(folder.glob("*.whl"))
    status, out, err = wheelfix(
        "verify", "--format", "json", "--policy", sample_wheels / "contract.toml", *wheels
    )
    assert (status, err) == (1, "")
    found = {w["name"]: [f["rule"] for f in w["findings"]] for w in json.loads(out)["wheels"]}
    assert found == FAULTS


def test_the_loader_of_this_machine_agrees(sample_wheels: Path, tmp_path: Path) -> None:
    """Those that the rules say cannot be loaded cannot; the others import here."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "-q", "--python", python, "install", "--no-index", "--no-deps"]
    subprocess.run([*install, *sorted(sample_wheels.glob("*.whl"))], check=True)
    said = {}
    for name in FAULTS:
        module = name.replace("-", "_")
        done = subprocess.run(
            [python, "-c", f"import {module}; print({module}.value())"],
            capture_output=True,
            text=True,
            check=False,
        )
        said[name] = done.stdout.strip() or done.stderr.strip().splitlines()[-1].rpartition(": ")[2]
    assert said == {
        "sample-healthy": "9",
        "sample-dynamic-runtime": "5",
        "sample-no-runtime": "_ZTISt13runtime_error",
        "sample-helper-missing": "No such file or directory",
        "sample-helper-no-origin": "No such file or directory",
        "sample-registration-dropped": "0",
    }
