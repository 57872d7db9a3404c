"""Every command of the pages runs: with the exit status that is stated, and the output that is shown.

A page's blocks run in order in one folder that holds ``sample_wheels/`` and, as a build leaves it, ``dist/`` with a
healthy wheel and one that repair can mend.

* ``console``: each line that starts with ``$ `` is a command, the lines after it are its output; a line ``...`` stands
  for any lines. Without output, anything may be printed.
* ``sh``: a script, with ``STAND_INS`` for the reader's files.
* ``<!-- exit 1 -->`` before a block: the exit status of its last command. ``<!-- no-run: REASON -->``: left alone.

The pages of rules are made by docs/make.py, whose runs are real; their other snippets are for the reader's own build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    p
    for p in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    if "rules" not in p.parts and re.search(r"^ *```(console|sh)$", p.read_text("utf-8"), re.MULTILINE)
)
BLOCK = re.compile(
    r"(?:^ *<!-- (?:exit (?P<exit>\d)|no-run: (?P<reason>.+?)) -->\n+)?"
    r"^(?P<indent> *)```(?P<kind>console|sh)\n(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
#: What a page calls a file of the reader's -> what stands for it here.
STAND_INS = {
    r"\b(my|old|big)\.whl": "dist/sample_healthy-*.whl",
    r"torch-2\.14\.1-cp311-cp311-manylinux_2_28_x86_64\.whl": "dist/sample_helper_no_origin-*.whl",
    r"\bci/(wheel-)?contract\.toml": "sample_wheels/contract.toml",
    r"(?<=--env )\.venv": sys.prefix,
}

#: Blocks that may stay out of the run, by page: what fetches from an index, or is a step of .ci/run itself, or would tag the checkout.
LEFT_ALONE = {
    "README.md": 2,
    "borrowed-symbol.md": 1,
    "releasing.md": 1,
    "torch-cuda-extension.md": 1,
    "tutorial.md": 1,
}


@dataclass(frozen=True, slots=True)
class Command:
    """A command, the exit status that it must have, and its output where the page shows it."""

    text: str
    status: int
    output: str | None


def commands(page: str) -> Iterator[Command]:
    """The commands of a page in order."""
    for block in BLOCK.finditer(page):
        if block["reason"]:
            continue
        last = int(block["exit"] or 0)
        lines = [line.removeprefix(block["indent"]) for line in block["text"].splitlines()]
        if block["kind"] == "sh":
            script = "\n".join(lines)
            for name, real in STAND_INS.items():
                script = re.sub(name, real, script)
            yield Command(f"set -e\n{script}", last, None)
            continue
        parts = re.split(r"^\$ ", "\n".join(lines), flags=re.MULTILINE)[1:]
        assert parts, "a console block without a command"
        for number, part in enumerate(parts, 1):
            text, _, output = part.partition("\n")
            yield Command(text, last if number == len(parts) else 0, output.strip("\n") or None)


def matches(shown: str, printed: str) -> bool:
    """Whether the output is what the page shows."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + r"[ \t]*\n"
        for line in shown.splitlines()
    )
    return re.fullmatch(pattern, printed.strip("\n") + "\n") is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_commands_of_a_page_do_what_it_says(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "sample_wheels", tmp_path / "sample_wheels")
    (tmp_path / "dist").mkdir()
    for name in ("sample_healthy", "sample_helper_no_origin"):
        shutil.copy(next((ROOT / "sample_wheels").glob(f"{name}-*")), tmp_path / "dist")
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "WHEELFIX_TRACEBACK", "FORCE_COLOR")}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    for command in commands(page.read_text("utf-8")):
        done = subprocess.run(
            ["bash", "-c", command.text],
            cwd=tmp_path,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        said = f"$ {command.text}\n{done.stdout}"
        assert done.returncode == command.status, said
        assert command.output is None or matches(command.output, done.stdout), said


def test_blocks_that_do_not_run_are_few_and_say_why() -> None:
    left = {p.name: sum(bool(b["reason"]) for b in BLOCK.finditer(p.read_text("utf-8"))) for p in PAGES}
    assert {name: count for name, count in left.items() if count} == LEFT_ALONE


def test_a_shown_output_matches_only_what_is_printed() -> None:
    assert matches("one\n...\nfour", "one\ntwo\nthree\nfour\n")
    assert not matches("one\nfour", "one\ntwo\nfour\n")
    assert not matches("one\n...", "zero\none\n")
