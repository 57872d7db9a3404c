"""What is built of the last commit: the same bytes each time, and all that is needed away from the checkout."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from tests import dist
from wheelfix import cli

ROOT = Path(__file__).resolve().parent.parent
pytestmark = [
    pytest.mark.xdist_group("packaging"),
    pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs the checkout"),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dist.clone(tmp_path_factory.mktemp("clone") / "tree")


@pytest.fixture(scope="module")
def made(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The sdist, and the wheel that is built from it."""
    return dist.build(tree, tmp_path_factory.mktemp("dist"))


@pytest.fixture
def built(made: dict[str, bytes], tmp_path: Path) -> Path:
    (wheel,) = (tmp_path / name for name in made if name.endswith(".whl"))
    wheel.write_bytes(made[wheel.name])
    return wheel


def test_two_builds_of_a_commit_are_equal_and_the_sdist_gives_the_wheel_of_the_tree(
    made: dict[str, bytes], tmp_path: Path
) -> None:
    """In another folder, with another umask, and with files of another age."""
    other = dist.clone(tmp_path / "elsewhere")
    for path in other.rglob("*.py"):
        os.utime(path, (0, time.time() - 1e8))
    assert dist.build(other, tmp_path / "out", "--sdist", "--wheel", umask=0o077) == made
    assert sorted(Path(name).suffix for name in made) == [".gz", ".whl"]


def test_a_build_sees_what_the_commit_holds(tree: Path, made: dict[str, bytes], tmp_path: Path) -> None:
    """The other half of the test above: another content makes other archives."""
    page = tree / "wheelfix" / "cli.py"
    before = page.read_bytes()
    page.write_bytes(before + b"#\n")
    again = dist.build(tree, tmp_path / "out")
    page.write_bytes(before)
    assert not set(again.values()) & set(made.values())


def test_the_version_is_that_of_the_tag(tmp_path: Path) -> None:
    tree = dist.clone(tmp_path / "tree")
    subprocess.run(["git", "tag", "v7.8.9"], cwd=tree, check=True)
    assert sorted(dist.build(tree, tmp_path / "out")) == [
        "wheelfix-7.8.9-py3-none-any.whl",
        "wheelfix-7.8.9.tar.gz",
    ]


def test_an_unpacked_sdist_keeps_its_version_and_a_bare_tree_is_built_too(
    tree: Path, made: dict[str, bytes], tmp_path: Path
) -> None:
    sdist, wheel = sorted(made, key=lambda name: name.endswith(".whl"))
    with tarfile.open(fileobj=io.BytesIO(made[sdist])) as archive:
        archive.extractall(tmp_path, filter="data")
    unpacked = tmp_path / sdist.removesuffix(".tar.gz")
    assert dist.build(unpacked, tmp_path / "out", "--wheel") == {wheel: made[wheel]}
    (unpacked / "PKG-INFO").unlink()
    assert list(dist.build(unpacked, tmp_path / "bare", "--wheel")) == ["wheelfix-0.0-py3-none-any.whl"]


def test_an_archive_made_by_git_knows_the_tag(tmp_path: Path) -> None:
    tree = dist.clone(tmp_path / "tree")
    subprocess.run(["git", "tag", "v7.8.9"], cwd=tree, check=True)
    (tmp_path / "archive").mkdir()
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=tree, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(tmp_path / "archive", filter="data")
    names = dist.build(tmp_path / "archive", tmp_path / "out", "--wheel")
    assert list(names) == ["wheelfix-7.8.9-py3-none-any.whl"]


def test_the_version_costs_no_look_at_what_is_installed() -> None:
    code = "import sys, wheelfix.cli; print('importlib.metadata' in sys.modules, 'subprocess' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_wheelfix_finds_nothing_in_its_own_wheel(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["verify", "--format", "json", str(built)]) == 0
    (said,) = json.loads(capsys.readouterr().out)["wheels"]
    assert (said["verdict"], said["findings"]) == ("pass", [])


def test_the_wheel_holds_every_policy_and_the_data_of_the_baseline(tree: Path, built: Path) -> None:
    with zipfile.ZipFile(built) as wheel:
        names = set(wheel.namelist())
    for path in (tree / "policies").rglob("*"):
        if path.suffix in (".toml", ".zip", ".gz"):
            assert f"wheelfix/policies/{path.relative_to(tree / 'policies')}" in names
    assert not [n for n in names if n.startswith(("tests/", "sample_wheels/", "docs/"))]


def test_the_installed_command_runs_away_from_the_checkout(
    tree: Path, built: Path, sample_wheels: Path, tmp_path: Path
) -> None:
    command = dist.installed(built, tmp_path / "venv")

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        done = subprocess.run(
            [command, *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin"},
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    assert run("--version") == (0, f"wheelfix {built.name.split('-')[1]}\n", "")
    status, out, err = run("policy", "list")
    assert (status, err) == (0, "")
    for path in (tree / "policies").glob("*.toml"):
        assert path.stem in out
    wheel = next(sample_wheels.glob("sample_dynamic_runtime-*"))
    status, out, err = run("verify", "--format", "json", "--policy", "static-cxx-runtime", wheel)
    assert (status, err) == (1, "")
    assert [f["rule"] for f in json.loads(out)["wheels"][0]["findings"]] == ["cxx-runtime-dynamic"]
    assert run("verify", wheel)[0] == 0
