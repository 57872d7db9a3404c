"""A repair that is stopped leaves the input as it was, and an output that is whole or not there."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def slow(forge: Any) -> Path:
    """A wheel whose repair takes a while."""
    source: Path = forge.wheel_to_graft(24)
    return source


def started(forge: Any, source: Path, out: Path) -> subprocess.Popen[bytes]:
    command = forge.command_to_graft(source, out)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_for_scratch(out: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while not any(out.glob(".wheelfix-*")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_writing_leaves_nothing(
    forge: Any, slow: Path, tmp_path: Path, number: signal.Signals
) -> None:
    before = slow.read_bytes()
    out = tmp_path / "out"
    process = started(forge, slow, out)
    wait_for_scratch(out, process)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == -number
    assert b"Traceback" not in err
    assert not out.exists()
    assert slow.read_bytes() == before


def test_killed_at_any_moment_there_is_no_partial_wheel(forge: Any, slow: Path, tmp_path: Path) -> None:
    before = slow.read_bytes()
    moments = random.Random(os.getpid())
    killed = 0
    for number in range(12):
        out = tmp_path / f"out{number}"
        process = started(forge, slow, out)
        if number % 2:
            wait_for_scratch(out, process)
        time.sleep(moments.uniform(0, 1.0))
        process.kill()
        process.communicate(timeout=60)
        killed += process.returncode == -signal.SIGKILL
        for wheel in out.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                assert archive.testzip() is None
    assert killed
    assert slow.read_bytes() == before
