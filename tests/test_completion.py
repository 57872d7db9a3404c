"""What a shell is told when somebody presses the tab key."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = Path(sys.executable).parent / "wheelfix"


def completed(line: str) -> list[str]:
    """As the function of ``register-python-argcomplete`` asks: the answer comes through descriptor 8."""
    read, write = os.pipe()
    env = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
    }
    script = f'exec "$0" 8>&{write} 9>/dev/null'
    subprocess.run(
        ["bash", "-c", script, str(COMMAND)],
        cwd=Path(__file__).resolve().parents[1],
        env=env,
        pass_fds=(write,),
        check=False,
        capture_output=True,
    )
    os.close(write)
    with os.fdopen(read) as answer:
        return answer.read().split("\n")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("wheelfix ver", ["verify"]),
        ("wheelfix verify --fail", ["--fail-on"]),
        ("wheelfix verify --fail-on ", ["error", "warning", "never"]),
        ("wheelfix repair --only", ["--only-plat"]),
        ("wheelfix policy ", ["list", "show", "check"]),
        ("wheelfix explain needed-m", ["needed-missing"]),
        ("wheelfix verify --select zip-slip,needed-m", ["zip-slip,needed-missing"]),
        ("wheelfix verify --policy ", ["manylinux", "static-cxx-runtime", "wheelfix/"]),
        ("wheelfix policy show exec", ["executorch-cuda"]),
    ],
)
def test_commands_options_and_choices_are_offered(line: str, offered: list[str]) -> None:
    found = [word.strip() for word in completed(line)]
    assert set(offered) <= set(found), found


def test_the_functions_for_three_shells_are_made(tmp_path: Path) -> None:
    register = Path(sys.executable).parent / "register-python-argcomplete"
    for shell in ("bash", "zsh", "fish"):
        made = subprocess.run(
            [register, "--shell", shell, "wheelfix"], capture_output=True, text=True, check=True
        )
        assert "wheelfix" in made.stdout
