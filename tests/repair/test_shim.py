"""The shim as an installer leaves it: run by a real interpreter in folders laid out like installations."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from wheelfix.repair.shim import shim


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "{text} $*"\n')
    path.chmod(0o755)


def script(path: Path, python: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    body = shim("x.scripts/tool")
    assert body.startswith(b"#!python\n")
    path.write_bytes(f"#!{python}\n".encode() + body.split(b"\n", 1)[1])
    path.chmod(0o755)
    return path


def run(path: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {"PATH": "/usr/bin:/bin", **env}
    return subprocess.run([str(path), *args], capture_output=True, text=True, env=clean, cwd="/", check=False)


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=False)
    return folder


def platlib(environment: Path) -> Path:
    base = {"base": str(environment), "platbase": str(environment)}
    return Path(
        sysconfig.get_path(
            "platlib", "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix", base
        )
    )


def test_in_a_virtual_environment_the_program_is_in_platlib(environment: Path) -> None:
    program(platlib(environment) / "x.scripts" / "tool", "venv")
    tool = script(environment / "bin" / "tool", str(environment / "bin" / "python"))
    done = run(tool, "a b", "--c")
    assert (done.returncode, done.stdout) == (0, "venv a b --c\n")


def test_beside_target_the_copy_of_the_target_wins_over_an_installed_one(
    environment: Path, tmp_path: Path
) -> None:
    program(platlib(environment) / "x.scripts" / "tool", "venv")
    program(tmp_path / "x.scripts" / "tool", "target")
    tool = script(tmp_path / "bin" / "tool", str(environment / "bin" / "python"))
    assert run(tool).stdout == "target \n"


def test_in_a_user_installation_the_users_copy_is_found(tmp_path: Path) -> None:
    base = tmp_path / "user"
    scheme = {"userbase": str(base)}
    name = sysconfig.get_preferred_scheme("user")
    program(Path(sysconfig.get_path("platlib", name, scheme)) / "x.scripts" / "tool", "user")
    tool = script(
        Path(sysconfig.get_path("scripts", name, scheme)) / "tool", os.path.realpath(sys.executable)
    )
    assert run(tool, PYTHONUSERBASE=str(base)).stdout == "user \n"


def test_a_missing_program_is_told_and_fails(environment: Path, tmp_path: Path) -> None:
    tool = script(tmp_path / "bin" / "tool", sys._base_executable)
    done = run(tool)
    assert done.returncode == 1
    assert "x.scripts/tool" in done.stderr
