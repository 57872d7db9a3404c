"""Small objects, compiled and linked for one rule each."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Build = Callable[..., Path]

_OPENER = """
#include <dlfcn.h>
#include <stdio.h>
%(before)s
int main(int count, char **words) {
    %(inside)s
    void *handle = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    if (!handle) { fprintf(stderr, "%%s\\n", dlerror()); return 1; }
    fprintf(stderr, "does not define module export function\\n");
    return 0;
}
"""


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """``build("liba.so", source, *needed, flags=...)``: a shared object that needs the others, in that order."""

    def make(
        name: str,
        source: str,
        *needed: Path,
        flags: tuple[str, ...] = (),
        script: str | None = None,
        tool: str = "gcc",
        shared: bool = True,
    ) -> Path:
        target = tmp_path / name
        text = tmp_path / f"{name}.{'cc' if tool == 'g++' else 'c'}"
        text.write_text(source)
        command = [tool, "-O1", "-w", str(text), "-o", str(target), "-Wl,--no-as-needed,-z,lazy"]
        command += ["-shared", "-fPIC", f"-Wl,-soname,{name}"] if shared else []
        if script is not None:
            (tmp_path / f"{name}.map").write_text(script)
            command.append(f"-Wl,--version-script,{tmp_path / name}.map")
        command += [*map(str, needed), f"-Wl,-rpath,{tmp_path}", "-Wl,--allow-shlib-undefined", *flags]
        subprocess.run(command, check=True, capture_output=True)
        return target

    return make


@pytest.fixture
def opener(build: Build) -> Callable[..., Path]:
    """A program that opens its argument as an interpreter opens an extension module."""

    def make(
        *needed: Path, before: str = "", inside: str = "", flags: tuple[str, ...] = ("-pie", "-fPIE")
    ) -> Path:
        source = _OPENER % {"before": before, "inside": inside}
        return build("opener", source, *needed, flags=flags, shared=False)

    return make
