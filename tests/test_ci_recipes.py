"""The recipes of docs/ci.md, action.yml and .pre-commit-hooks.yaml do what they say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib
from cibuildwheel.util.helpers import prepare_command

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
BIN = Path(sys.executable).parent


def blocks(kind: str, page: str = PAGE) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)


def shell(command: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, **env, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def dist(tmp_path: Path, sample_wheels: Path) -> Path:
    """A folder with ``dist/``: one healthy wheel, one that repair can mend."""
    (tmp_path / "dist").mkdir()
    for name in ("sample_healthy", "sample_helper_no_origin"):
        shutil.copy(next(sample_wheels.glob(f"{name}-*")), tmp_path / "dist")
    return tmp_path


def test_the_shell_recipe_repairs_and_lets_the_result_through(dist: Path) -> None:
    (recipe,) = blocks("sh")
    done = shell(f"set -e\n{recipe}", dist)
    assert done.returncode == 0, done.stderr
    report = json.loads((dist / "wheelfix.json").read_text("utf-8"))
    assert [w["verdict"] for w in report["wheels"]] == ["pass", "pass"]


@pytest.mark.parametrize("page", ["ci.md", "moving-from-auditwheel.md"])
def test_the_commands_of_cibuildwheel_repair_and_audit_a_wheel(dist: Path, page: str) -> None:
    """Templates are filled in and run as cibuildwheel does: its own function, and a shell."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    options = next(
        o for o in map(tomllib.loads, blocks("toml", text)) if "cibuildwheel" in o.get("tool", {})
    )["tool"]["cibuildwheel"]
    wheel = next((dist / "dist").glob("sample_helper_no_origin*"))
    repair = prepare_command(options["linux"]["repair-wheel-command"], wheel=wheel, dest_dir=dist / "out")
    assert shell(repair, dist).returncode == 0
    (repaired,) = (dist / "out").iterdir()
    audit = options["audit-command"]
    assert shell(prepare_command(audit, wheel=repaired), dist).returncode == 0
    assert shell(prepare_command(audit, wheel=wheel), dist).returncode == 1


def test_the_gitlab_recipe_writes_the_report_that_it_uploads(dist: Path) -> None:
    (job,) = (y["verify-wheels"] for y in map(yaml.safe_load, blocks("yaml")) if "verify-wheels" in y)
    done = shell("\n".join(s for s in job["script"] if not s.startswith("pip ")), dist)
    assert done.returncode == 1
    assert "<testsuite" in (dist / job["artifacts"]["reports"]["junit"]).read_text("utf-8")


def steps() -> dict[str, Any]:
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    return {s["name"]: s for s in action["runs"]["steps"] if "name" in s}


@pytest.mark.parametrize(("wheels", "status"), [("dist/sample_healthy*.whl", "0"), ("dist/*.whl", "1")])
def test_the_action_annotates_summarises_and_passes_the_status_on(
    dist: Path, wheels: str, status: str
) -> None:
    files = {
        "GITHUB_STEP_SUMMARY": str(dist / "summary.md"),
        "GITHUB_OUTPUT": str(dist / "output"),
        "RUNNER_TEMP": str(dist),
    }
    given = {"WHEELS": wheels, "POLICY": "manylinux", "WITH": "", "ARGUMENTS": "--select needed-*"}
    assert set(given) == set(steps()["Verify"]["env"])
    done = shell(f"set -eo pipefail\n{steps()['Verify']['run']}", dist, **files, **given)
    assert done.returncode == 0, done.stderr
    assert (dist / "output").read_text("utf-8") == f"status={status}\n"
    assert ("::error" in done.stdout) == (status == "1")
    assert "healthy" in (dist / "summary.md").read_text("utf-8")
    assert json.loads((dist / "wheelfix.sarif").read_text("utf-8"))["version"] == "2.1.0"
    assert shell(steps()["Verdict"]["run"], dist, STATUS=status).returncode == int(status)


def test_every_input_of_the_action_is_used() -> None:
    text = (ROOT / "action.yml").read_text("utf-8")
    for name in yaml.safe_load(text)["inputs"]:
        assert f"inputs.{name} " in text, name


def test_the_hooks_of_pre_commit_are_valid_and_judge_wheels(dist: Path) -> None:
    manifest = ROOT / ".pre-commit-hooks.yaml"
    subprocess.run([BIN / "pre-commit", "validate-manifest", manifest], check=True)
    (hook,) = yaml.safe_load(manifest.read_text("utf-8"))
    wheels = sorted(p for p in (dist / "dist").iterdir() if re.search(hook["files"], str(p)))
    assert len(wheels) == 2
    assert shell(f"{hook['entry']} {' '.join(map(str, wheels))}", dist).returncode == 1


def test_a_report_option_without_format_or_file_is_wrong_usage(dist: Path) -> None:
    for text in ("json", "json=", "=x", "pdf=x"):
        done = shell(f"wheelfix verify --report {text} dist/*.whl", dist)
        assert done.returncode == 2
        assert f"--report {text}" in done.stderr
