"""This machine's loader, as it shows itself when it works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from wheelfix.host import machine


def search_path(*options: str, **environment: str) -> list[str]:
    """The folders that the loader says it searches for a library that is nowhere."""
    node = machine.interpreter()
    assert node is not None
    assert node.elf is not None
    command = [node.elf.interpreter or "", *options, "--preload", "libnowhere-at-all.so", "/bin/true"]
    said = subprocess.run(
        command, capture_output=True, text=True, env={"LD_DEBUG": "libs", **environment}
    ).stderr
    lines = said.partition("find library=libnowhere-at-all.so")[2].splitlines()
    found = [line.partition("search path=")[2].split("\t")[0] for line in lines if "search path=" in line]
    return found[0].split(":")


def test_subfolders_are_those_that_the_loader_tries_in_its_order() -> None:
    seen = search_path(LD_LIBRARY_PATH="/nothing")
    assert seen == [f"/nothing/{s}" for s in machine.subfolders()] + ["/nothing"]


def test_system_folders_are_those_that_the_loader_searches_last() -> None:
    seen = search_path()
    plain = [f for f in seen if not any(f.endswith(f"/{s}") for s in machine.subfolders())]
    assert plain == [*machine.system_folders()]


def test_version_of_glibc() -> None:
    said = subprocess.run(["ldd", "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    assert machine.libc_version() == tuple(int(n) for n in said.split()[-1].split(".")[:2])


def test_the_interpreter_is_the_program_of_this_process() -> None:
    node = machine.interpreter()
    assert node is not None
    assert (node.path, node.owner) == ("interpreter", "interpreter")
    assert node.location == os.readlink("/proc/self/exe")
    said = subprocess.run(["readelf", "-d", node.location], capture_output=True, text=True).stdout
    assert node.elf is not None
    assert all(f"[{name}]" in said for name in node.elf.needed)
    assert Path(sys.executable).samefile(node.location)
