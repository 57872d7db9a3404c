"""What standard output can show, held against a real pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import zipfile
from collections import Counter
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


#: Each command that tells people something of wheels; SICK and SOUND stand for two of them.
TOLD = {
    "verify": ["verify", "-v", "SICK"],
    "several": ["verify", "SICK", "SOUND"],
    "show": ["show", "SICK"],
    "tree": ["tree", "SOUND"],
    "symbols": ["symbols", "SOUND"],
    "diff": ["diff", "SICK", "SOUND"],
    "plan": ["repair", "-v", "--dry-run", "SOUND"],
    "blocked": ["repair", "--dry-run", "SICK"],
    "explain": ["explain", "needed-missing"],
    "rules": ["explain"],
    "policies": ["policy", "list"],
    "policy": ["policy", "show", "executorch-cuda"],
}


@pytest.mark.parametrize("case", TOLD)
def test_a_terminal_of_40_columns_gets_every_letter(sample_wheels: Path, case: str) -> None:
    """Lines break elsewhere, columns may stand below each other; nothing is cut off, left out or replaced by dots."""
    wheels = {"SICK": "sample_helper_missing-*", "SOUND": "sample_healthy-*"}
    command = [str(next(sample_wheels.glob(wheels[w]))) if w in wheels else w for w in TOLD[case]]
    wide, narrow = (on_terminal(n, *command, env={"NO_COLOR": "1"}) for n in (250, 40))
    assert "Traceback" not in narrow
    assert "…" not in narrow
    assert letters(narrow) == letters(wide)


def letters(seen: str) -> Counter[str]:
    """The letters and digits that stay on the terminal: what stood on a line before it was erased is gone."""
    lasting = "".join(line.rpartition("\r\x1b[K")[2] for line in seen.replace("\r\n", "\n").split("\n"))
    return Counter(c for c in lasting if c.isalnum())


def test_what_is_being_done_fits_on_a_line_and_leaves_it(sample_wheels: Path) -> None:
    """Of a line that wraps only the last row could be taken back."""
    seen = on_terminal(40, "repair", "--dry-run", next(sample_wheels.glob("sample_healthy-*")))
    stages = seen.split("\r\x1b[K")[1:-1]
    assert stages
    assert all(stage.endswith(" ...") and "sample" in stage for stage in stages if stage)
    assert max(map(len, stages)) < 40


def test_a_name_is_made_plain_while_its_wheel_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x\x1b[2J\ny-1.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x-1.0.dist-info/WHEEL", "")
    seen = on_terminal(200, "repair", "--dry-run", path)
    assert "\x1b[2J" not in seen
    assert "x\\x1b[2J\\ny-1.0-" in seen.partition("reading")[0]


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
