"""Command line of the oracle."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.oracle.compare import compare_folder, compare_wheel

parser = argparse.ArgumentParser(prog="python -m tests.oracle", description="Compare with the real loader.")
parser.add_argument("paths", nargs="+", type=Path, metavar="WHEEL|FOLDER")
parser.add_argument("--interpreter", default=sys.executable, help="who opens the extension modules")
options = parser.parse_args()
tallies = [
    compare_folder(path, str(path), options.interpreter)
    if path.is_dir()
    else compare_wheel(path, options.interpreter)
    for path in options.paths
]
for tally in tallies:
    for problem in tally.problems[:20]:
        print(problem)
    print(tally)
print(
    f"total: {sum(t.roots for t in tallies)} roots, {sum(t.bindings for t in tallies)} bindings, {sum(len(t.problems) for t in tallies)} differ"
)
sys.exit(any(t.problems for t in tallies))
