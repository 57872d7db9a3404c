"""What it costs to change the search path of one ELF object: in place, by patchelf, by LIEF.

    python benchmarks/elf_writers.py OBJECT|WHEEL [--member libtorch_cpu.so] [--runs 3]

Each writer runs in a process of its own. Told are the medians of wall time and peak memory, how much the file
grows, and how many of the mapped sections get another address. "In place" is wheelfix with a path that fits,
"edit" with one that does not (patchelf); both prove what they wrote, which "patchelf alone" and LIEF do not.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import zipfile
from pathlib import Path

from bench import cost_of
from elftools.elf.elffile import ELFFile

LONG = "$ORIGIN/../" + "a_folder_with_a_long_name/" * 20

_EDIT = """
import sys; from pathlib import Path; from wheelfix.elf.edit import edit; from wheelfix.model.plan import ElfChange
Path(sys.argv[2]).write_bytes(edit(Path(sys.argv[1]).read_bytes(), ElfChange(path=sys.argv[3])))
"""
_LIEF = """
import sys, lief
binary = lief.ELF.parse(sys.argv[1])
for tag in (lief.ELF.DynamicEntry.TAG.RPATH, lief.ELF.DynamicEntry.TAG.RUNPATH):
    binary.remove(tag) if binary.has(tag) else None
binary.add(lief.ELF.DynamicEntryRpath(sys.argv[3]))
binary.write(sys.argv[2])
"""
_PATCHELF = """
import shutil, subprocess, sys; from wheelfix.elf.edit import find_patchelf
shutil.copyfile(sys.argv[1], sys.argv[2])
subprocess.run([find_patchelf(), "--force-rpath", "--set-rpath", sys.argv[3], sys.argv[2]], check=True)
"""
WRITERS = {
    "in place": (_EDIT, "$ORIGIN"),
    "edit": (_EDIT, LONG),
    "patchelf alone": (_PATCHELF, LONG),
    "LIEF": (_LIEF, LONG),
}


def sections(path: Path) -> dict[str, int]:
    """Address of each section that is mapped (SHF_ALLOC), by name."""
    with path.open("rb") as file:
        return {s.name: s["sh_addr"] for s in ELFFile(file).iter_sections() if s["sh_flags"] & 2}


def measure(source: Path, runs: int) -> None:
    """Print one line for each writer."""
    size, before = source.stat().st_size, sections(source)
    print(f"{source.name}: {size / 1e6:.1f} MB, {len(before)} mapped sections; median of {runs}")
    print(f"{'writer':<15} {'seconds':>8} {'peak MB':>8} {'grows by KB':>12} {'sections moved':>15}")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "written"
        for name, (code, path) in WRITERS.items():
            command = [sys.executable, "-c", code, str(source), str(target), path]
            costs = [cost_of(command) for _ in range(runs)]
            if any(c.status for c in costs):
                print(f"{name:<15} failed")
                continue
            after = sections(target)
            moved = sum(after.get(s) != at for s, at in before.items())
            wall, peak = (statistics.median(getattr(c, f) for c in costs) for f in ("wall", "peak"))
            growth = (target.stat().st_size - size) / 1e3
            print(f"{name:<15} {wall:>8.2f} {peak:>8.0f} {growth:>12.1f} {moved:>15}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of changing one search path, by writer.")
    parser.add_argument("source", type=Path, metavar="OBJECT|WHEEL")
    parser.add_argument(
        "--member", default="libtorch_cpu.so", help="the object in the wheel, by its last name"
    )
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    if given.source.suffix != ".whl":
        measure(given.source, given.runs)
        return
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(given.source) as archive:
        name = next(n for n in archive.namelist() if n.endswith("/" + given.member))
        measure(Path(archive.extract(name, folder)), given.runs)


if __name__ == "__main__":
    main()
