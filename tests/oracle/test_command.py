"""``symbols --baseline host`` says of whole wheels what the real loader does: the command, not our own world."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.oracle.compare import install, objects
from tests.oracle.observe import observe
from tests.oracle.simulate import cached_libraries
from tests.oracle.test_real import CACHE


def real_path(path: str, folder: Path) -> str:
    """Where a file of the command's answer lies on this machine."""
    if path == "interpreter":
        return os.path.realpath(sys.executable)
    if path.startswith("host:"):
        return os.path.realpath(cached_libraries()[path[5:]])
    return os.path.realpath(path if path.startswith("/") else folder / path)


@pytest.mark.real
@pytest.mark.parametrize(
    "pattern", ["psycopg2_binary-*-manylinux*_x86_64.whl", "numpy-*-manylinux*_x86_64.whl"]
)
def test_the_command_agrees_with_the_loader(pattern: str, tmp_path: Path) -> None:
    (wheel,) = CACHE.glob(pattern)
    install(wheel, tmp_path)
    command = [sys.executable, "-m", "wheelfix", "symbols", "--json", "--baseline", "host", str(wheel)]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["bindings"]
    roots = {row["root"] for row in rows}
    compared = 0
    for path in objects(tmp_path):
        name = str(path.relative_to(tmp_path))
        if name not in roots:
            continue  # a dependency, which the command lists under its roots
        seen = observe(path)
        assert seen.loads
        for row in rows:
            if row["root"] != name:
                continue
            theirs = seen.bindings.get((real_path(row["object"], tmp_path), row["symbol"], row["version"]))
            if theirs is not None:
                ours = {real_path(p, tmp_path) for p in (row["provider"], row.get("also")) if p}
                assert ours == set(theirs), row
                compared += 1
            else:
                assert row["status"] in ("weak-unbound", "unreferenced"), row
    assert compared > 2000
