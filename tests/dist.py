"""`make dist`: the sdist and the wheel of the last commit, built twice, compared, and judged by the wheel itself.

Build is hatchling's default, reproducible mode: what stands in the archives has one date, two modes and one order.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def clone(folder: Path) -> Path:
    """The last commit with its tags, without what git does not know."""
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", ROOT, folder], check=True)
    return folder


def build(tree: Path, out: Path, *kinds: str, umask: int = 0o022) -> dict[str, bytes]:
    """Name and bytes of what ``python -m build`` makes of a tree; without ``kinds`` the wheel is made from the sdist."""
    env = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", out, *kinds, tree]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env, umask=umask)
    return {p.name: p.read_bytes() for p in out.iterdir()}


def installed(wheel: Path, folder: Path) -> Path:
    """The command ``wheelfix`` of a wheel that is installed into an empty environment."""
    venv.create(folder, with_pip=False)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "-q",
        "--disable-pip-version-check",
        "--python",
        folder / "bin/python",
    ]
    subprocess.run([*pip, "install", wheel], check=True)
    return folder / "bin" / "wheelfix"


def main(out: Path) -> int:
    """Put both archives into ``out``, where nothing else is left."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = build(clone(folder / "one"), folder / "first")
        again = build(clone(folder / "two"), folder / "second", "--sdist", "--wheel", umask=0o077)
        if made != again:
            print(f"two builds of one commit differ: {sorted(made)}, {sorted(again)}", file=sys.stderr)
            return 1
        (wheel,) = (folder / "first").glob("*.whl")
        subprocess.run(
            [installed(wheel, folder / "venv"), "verify", "--fail-on", "warning", wheel], check=True
        )
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(folder / "first", out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
