"""The built wheel, installed into an empty environment away from the checkout, finds all that it needs."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _pip(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, arguments)]
    subprocess.run(command, check=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    _pip("wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_the_wheel_holds_every_policy_and_the_data_of_the_baseline(built: Path) -> None:
    with zipfile.ZipFile(built) as wheel:
        names = set(wheel.namelist())
    for path in (ROOT / "policies").rglob("*"):
        if path.suffix in (".toml", ".zip", ".gz"):
            assert f"wheelfix/policies/{path.relative_to(ROOT / 'policies')}" in names
    assert not [n for n in names if n.startswith(("tests/", "sample_wheels/", "docs/"))]


def test_the_installed_command_runs_away_from_the_checkout(
    built: Path, sample_wheels: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    _pip("--python", python, "install", built)

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        command = [tmp_path / "venv" / "bin" / "wheelfix", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, check=False
        )
        return done.returncode, done.stdout, done.stderr

    status, out, err = run("policy", "list")
    assert (status, err) == (0, "")
    for path in (ROOT / "policies").glob("*.toml"):
        assert path.stem in out
    wheel = next(sample_wheels.glob("sample_dynamic_runtime-*"))
    status, out, err = run("verify", "--format", "json", "--policy", "static-cxx-runtime", wheel)
    assert (status, err) == (1, "")
    assert [f["rule"] for f in json.loads(out)["wheels"][0]["findings"]] == ["cxx-runtime-dynamic"]
    assert run("verify", wheel)[0] == 0
