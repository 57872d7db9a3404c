"""What all tests share."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

pytest.register_assert_rewrite("tests.report.renders")  # its assertions are those of the tests that call it

#: What a run of the command gives: exit status, standard output, standard error.
Ran = tuple[int, str, str]


@pytest.fixture(scope="session")
def sample_wheels() -> Path:
    """The folder of the prebuilt sample wheels."""
    return ROOT / "sample_wheels"


@pytest.fixture
def wheelfix() -> Callable[..., Ran]:
    """The command in a process of its own, as people start it: ``wheelfix("verify", path, env={...})``."""

    def run(*arguments: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "wheelfix", *map(str, arguments)],
            capture_output=True,
            text=True,
            errors="surrogateescape",
            cwd=cwd,
            env={**{k: v for k, v in os.environ.items() if k != "WHEELFIX_TRACEBACK"}, **(env or {})},
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run
