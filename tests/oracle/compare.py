"""Hold our simulation against the real loader, over whole wheels: ``python -m tests.oracle WHEEL...``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle.observe import observe
from tests.oracle.simulate import compare
from wheelfix.loader.binding import Indexes


@dataclass
class Tally:
    """What was compared, over all roots of one wheel or folder."""

    name: str
    roots: int = 0
    loading: int = 0
    bindings: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.roots} roots, {self.loading} load, {self.bindings} bindings, "
            f"{len(self.problems)} differ"
        )


def install(wheel: Path, folder: Path) -> None:
    """Put one wheel alone into an empty folder, as an installer does."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
        "--target",
        folder,
        wheel,
    ]
    subprocess.run([str(c) for c in command], check=True, capture_output=True)


def objects(folder: Path) -> Iterator[Path]:
    """The 64-bit x86 ELF objects below a folder, without symbolic links."""
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                head = file.read(20)
            if head[:6] == b"\x7fELF\x02\x01" and head[16:20] in (b"\x02\0\x3e\0", b"\x03\0\x3e\0"):
                yield path


def compare_folder(folder: Path, name: str, interpreter: str = sys.executable) -> Tally:
    """Open every object of a folder as a root of its own and compare.

    Libraries are opened as roots too: being opened as a root or as a dependency changes providers.
    """
    tally = Tally(name)
    indexes = Indexes()
    with ThreadPoolExecutor(2) as pool:
        for seen in pool.map(lambda path: observe(path, interpreter), objects(folder)):
            bindings, problems = compare(seen, indexes)
            tally.roots += 1
            tally.loading += seen.loads
            tally.bindings += bindings
            tally.problems += problems
    return tally


def compare_wheel(wheel: Path, interpreter: str = sys.executable) -> Tally:
    """Install a wheel alone, and compare every object in it."""
    with tempfile.TemporaryDirectory() as folder:
        install(wheel, Path(folder))
        return compare_folder(Path(folder), wheel.name, interpreter)
