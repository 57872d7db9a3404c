"""Objects to read: compiled ones, and hand-made ones."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.elf.handmade import make_elf

Compile = Callable[..., Path]
Make = Callable[..., bytes]


@pytest.fixture
def compiled(tmp_path: Path) -> Compile:
    """``compiled("x.so", source, *flags)``: a shared object, or whatever the flags make of it."""

    def build(name: str, source: str, *flags: str, tool: str = "gcc", shared: bool = True) -> Path:
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        text = tmp_path / f"{target.name}.{'cpp' if tool == 'g++' else 'c'}"
        text.write_text(source)
        command = [tool, "-O1", "-fPIC", "-w", *(["-shared"] if shared else []), str(text), "-o", str(target)]
        subprocess.run([*command, *flags], check=True, capture_output=True, cwd=tmp_path)
        return target

    return build


@pytest.fixture
def make() -> Make:
    return make_elf
