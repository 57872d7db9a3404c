#!/usr/bin/env python3
"""Write the pages that are made from the code (docs/rules/, docs/reference/commands.md): make.py [FOLDER], which is docs/ where none is given."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(1, str(Path(__file__).resolve().parents[1]))  # of tests/elf/handmade.py

from examples import shown

from wheelfix import cli
from wheelfix.checks import RULES
from wheelfix.report.rules import index, markdown


def pages() -> dict[str, str]:
    """Every page that is made, by its path below docs/."""
    made = {"rules/index.md": index(RULES.values())}
    for rule in RULES.values():
        made[f"rules/{rule.id}.md"] = markdown(rule) + shown(rule.id)
    made["reference/commands.md"] = commands()
    return made


def commands() -> str:
    """What ``--help`` says of every command, as it stands on a terminal of 80 columns."""
    os.environ["COLUMNS"] = "80"
    text = "# Commands\n\nMade by `make docs`: what `--help` prints.\n"
    policy = [["policy", part] for part in ("list", "show", "check", "init")]
    for command in [[], *([name] for name in cli.COMMANDS), *policy]:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
            cli.main([*command, "--help"])
        name = " ".join(["wheelfix", *command])
        text += f"\n## {name}\n\n```text\n{said.getvalue().rstrip()}\n```\n"
    return text


def write(folder: Path) -> None:
    """Write every page below the folder; a page of a rule that is no more goes."""
    made = pages()
    for name, text in made.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    for path in (folder / "rules").glob("*.md"):
        if f"rules/{path.name}" not in made:
            path.unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
