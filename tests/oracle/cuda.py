"""Hold the reader of NVIDIA's device code against cuobjdump: ``python -m tests.oracle.cuda WHEEL...``.

cuobjdump is taken from $CUOBJDUMP or PATH (the package nvidia-cuda-cuobjdump has it). Compared are, for each
object, the kinds, the architectures with their suffix and the number of entries, and the size of cubins that
are not compressed. Exit code 1 where anything differs.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

from wheelfix import audit
from wheelfix.model.elf import DeviceCode

KINDS = {
    "elf": ("cubin", "sm_"),
    "cubin": ("cubin", "sm_"),
    "ptx": ("ptx", "compute_"),
    "relocatable ptx": ("ptx", "compute_"),
    "nvvm": ("lto", "lto_"),
    "tile ir": ("tile", "sm_"),
}
ENTRY = re.compile(r"^Fatbin (.+) code:\n=+\narch = sm_(\w+)\n((?:.+\n)*)", re.MULTILINE)
NONE = "does not contain device code"

Row = tuple[str, str]  # kind and architecture
Entry = tuple[str, str, bool]  # the same and: compressed


class Failed(Exception):
    """cuobjdump could not read an object to its end; holds what it says."""


def listed(path: Path, cuobjdump: str) -> list[Entry]:
    """Every entry that cuobjdump finds in an object, in its order. Raises ``Failed``."""
    # Without -all it passes over relocatable code in an object that has executable code, too.
    done = subprocess.run([cuobjdump, "-all", str(path)], capture_output=True, text=True)
    if done.returncode and NONE not in done.stdout + done.stderr:
        raise Failed((done.stderr or done.stdout).strip()[:200])
    found = []
    for name, number, rest in ENTRY.findall(done.stdout):
        kind, prefix = KINDS.get(name, ("other", "sm_"))
        found.append((kind, f"{prefix}{number}", "\ncompressed" in f"\n{rest}"))
    return found


def sizes(path: Path, entries: list[Entry], cuobjdump: str) -> Counter[Row]:
    """Bytes of the cubins of each architecture of which none is compressed, as cuobjdump extracts them."""
    packed = {(kind, name) for kind, name, compressed in entries if compressed}
    cubins = [(kind, name) for kind, name, _ in entries if kind == "cubin"]
    total: Counter[Row] = Counter()
    if all(row in packed for row in cubins):
        return total
    with tempfile.TemporaryDirectory() as folder:
        command = [cuobjdump, "-all", "-xelf", "all", str(path.resolve())]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        # "name.12.sm_90.cubin": numbered in the order of the list.
        files = sorted(Path(folder).iterdir(), key=lambda p: int(p.name.split(".")[-3]))
        for row, file in zip(cubins, files, strict=True):
            if row not in packed:
                total[row] += file.stat().st_size
    return total


def differences(rows: tuple[DeviceCode, ...], path: Path, cuobjdump: str) -> list[str]:
    """What cuobjdump says otherwise."""
    try:
        entries = listed(path, cuobjdump)
    except Failed as reason:
        return [f"not compared: {reason}"]
    theirs = Counter((kind, name) for kind, name, _ in entries)
    packed = {(kind, name) for kind, name, compressed in entries if compressed}
    bytes_ = sizes(path, entries, cuobjdump)
    ours: dict[Row, DeviceCode] = {(r.kind, r.architecture): r for r in rows if r.kind != "hip"}
    found = []
    for row in sorted({*theirs, *ours}):
        mine, what = ours.get(row), " ".join(row)
        if (mine.entries if mine else 0) != theirs[row]:
            found.append(f"{what}: {mine.entries if mine else 0} entries, cuobjdump has {theirs[row]}")
        elif mine and mine.compressed != (row in packed):
            found.append(f"{what}: compressed {mine.compressed}, cuobjdump says {row in packed}")
        # A payload is filled up to 8 bytes.
        elif mine and row in bytes_ and not 0 <= mine.size - bytes_[row] < 8 * mine.entries:
            found.append(f"{what}: {mine.size} bytes, cuobjdump extracts {bytes_[row]}")
    return found


def compare(wheel: Path, cuobjdump: str) -> int:
    """Print the table of a wheel and what differs; the number of differences."""
    count = 0
    facts = audit.read(wheel, audit.prepare(audit.Options()))
    print(wheel.name)
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        for member in facts.elves:
            rows = member.elf.device_code if member.elf is not None else ()
            path = Path(archive.extract(member.path, folder))
            found = differences(rows, path, cuobjdump)
            path.unlink()
            for row in rows:
                print(
                    f"  {member.path} | {row.architecture} | {row.kind}{'*' if row.compressed else ''}"
                    f" | {row.entries} | {row.size / 1e6:.2f} MB"
                )
            for line in found:
                print(f"  DIFFERS {member.path}: {line}")
            count += len(found)
    print(f"  {len(facts.elves)} objects, {count} differences")
    return count


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.oracle.cuda", description="Compare with cuobjdump."
    )
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    options = parser.parse_args()
    cuobjdump = os.environ.get("CUOBJDUMP", "cuobjdump")
    return int(sum([compare(wheel, cuobjdump) for wheel in options.wheels]) > 0)


if __name__ == "__main__":
    sys.exit(main())
