"""Long work says what it is doing, on a terminal alone, and leaves no trace there."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

CODE = """
import time
from wheelfix.commands.output import progress
with progress("judging", 3) as done:
    done(); time.sleep(1.6)
print("the answer")
"""


def on_a_terminal(code: str) -> str:
    """What a terminal is sent through standard error."""
    leader, follower = pty.openpty()
    env = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-c", code], stderr=follower, stdout=subprocess.DEVNULL, env=env
    )
    os.close(follower)
    said = b""
    while True:
        try:
            piece = os.read(leader, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        said += piece
    os.close(leader)
    assert process.wait() == 0
    return said.decode()


def test_after_a_second_a_terminal_sees_what_is_done() -> None:
    said = on_a_terminal(CODE)
    assert "judging 1 of 3 done ... 1 s" in said
    assert said.endswith("\r\x1b[K"), "the line is taken away again"


def test_short_work_says_nothing() -> None:
    assert "judging" not in on_a_terminal(CODE.replace("1.6", "0.1"))


def test_a_pipe_sees_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("the answer\n", "")
