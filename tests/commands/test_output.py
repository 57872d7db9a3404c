"""What standard output can show, held against a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from wheelfix.commands.options import UsageError
from wheelfix.commands.output import Look, look, write


def on_terminal(columns: int, *arguments: str | Path, env: dict[str, str] | None = None) -> str:
    """What a terminal of that width gets to see."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    clean = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-m", "wheelfix", *map(str, arguments)],
        stdin=side,
        stdout=side,
        stderr=side,
        env={**clean, "TERM": "xterm", **(env or {})},
    )
    os.close(side)
    seen = b""
    try:
        while piece := os.read(main, 65536):
            seen += piece
    except OSError:  # Linux: EIO once the other side is closed
        pass
    os.close(main)
    process.wait(timeout=60)
    return seen.decode()


def test_a_terminal_gets_colours_unless_they_are_not_wanted(sample_wheels: Path) -> None:
    wheel = next(sample_wheels.glob("sample_helper_missing-*"))
    assert "\x1b[1;31mFAIL" in on_terminal(100, "verify", wheel)
    assert "\x1b" not in on_terminal(100, "verify", wheel, env={"NO_COLOR": "1"})
    assert "\x1b" not in on_terminal(100, "verify", wheel, env={"TERM": "dumb"})


@pytest.mark.parametrize("columns", [40, 120])
def test_text_is_as_wide_as_the_terminal(sample_wheels: Path, columns: int) -> None:
    wheel = next(sample_wheels.glob("sample_helper_missing-*"))
    lines = on_terminal(columns, "verify", wheel, env={"NO_COLOR": "1"}).replace("\r", "").splitlines()
    prose = [line for line in lines if line.startswith("      ") and "/" not in line]
    assert max(map(len, prose)) <= columns
    assert max(map(len, prose)) > columns - 16  # it is used, too


@pytest.mark.parametrize("command", [["explain", "needed-missing"], ["--help"]])
def test_every_text_is_whole_on_a_terminal(command: list[str]) -> None:
    seen = on_terminal(80, *command)
    assert "Traceback" not in seen
    assert "needed-missing" in seen


def test_a_pipe_or_file_gets_80_columns_and_no_colours(capsys: pytest.CaptureFixture[str]) -> None:
    assert look() == Look(80, False)
    assert look(Path("report.txt")) == Look(80, False)


def test_a_file_that_cannot_be_written_is_wrong_usage(tmp_path: Path) -> None:
    write("größe \udcff\n", tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_bytes() == "größe \\udcff\n".encode()
    with pytest.raises(UsageError, match="cannot write"):
        write("x", tmp_path)
