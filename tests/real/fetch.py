#!/usr/bin/env python3
"""Download the wheels of manifest.toml: fetch.py [--ci].

They go to $WHEELFIX_TEST_CACHE/wheels (default ~/.cache/wheelfix-tests/wheels). pip checks every hash; what is there
already and has the right one is left alone.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MANIFEST = Path(__file__).with_name("manifest.toml")


def cache() -> Path:
    """The folder of the downloaded wheels."""
    root = os.environ.get("WHEELFIX_TEST_CACHE") or Path.home() / ".cache" / "wheelfix-tests"
    return Path(root) / "wheels"


def wheels(*, only_ci: bool = False) -> list[dict[str, Any]]:
    """The entries of the manifest."""
    entries: list[dict[str, Any]] = tomllib.loads(MANIFEST.read_text("utf-8"))["wheel"]
    return [w for w in entries if w["ci"] or not only_ci]


def whole(path: Path, sha256: str) -> bool:
    """Whether the file is there and has that hash."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest() == sha256


def fetch(wheel: dict[str, Any], folder: Path) -> None:
    """Download one wheel for the tags of its file name, whatever machine this is."""
    python, abi, platforms = wheel["file"].removesuffix(".whl").split("-")[-3:]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--python-version", "3.11", "--implementation", "cp" if python.startswith("cp") else "py"]
    command += ["--abi", abi, "--dest", str(folder)]
    for platform in platforms.split("."):
        command += ["--platform", platform]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as wanted:
        wanted.write(f"{wheel['name']}=={wheel['version']} --hash=sha256:{wheel['sha256']}\n")
        wanted.flush()
        subprocess.run([*command, "-r", wanted.name], check=True)


def main() -> None:
    """Fetch what is not there yet, and check all."""
    folder = cache()
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in wheels(only_ci="--ci" in sys.argv[1:]):
        path = folder / wheel["file"]
        if not whole(path, wheel["sha256"]):
            print(f"fetching {path.name} ({wheel['megabytes']} MB)", flush=True)
            path.unlink(missing_ok=True)
            fetch(wheel, folder)
        if not whole(path, wheel["sha256"]):
            sys.exit(f"{path} does not have the hash of the manifest")


if __name__ == "__main__":
    main()
