"""Changes the rules and the loader in small ways and counts what the tests notice: ``python -m tests.mutation``.

A mutant is one change of behaviour in one place of ``wheelfix/checks`` or ``wheelfix/loader`` (see
``mutants.py``). The sample is drawn from all of them with a seed. The tests of a mutant run in steps, the
nearest first; the first that fails kills it. A mutant that takes five times as long as the tests do on the
unchanged code counts as killed. What survives is explained in ``survivors.toml``: a survivor that is not
there makes the exit status 1.

Work is done in a copy of the tree, so the tree may be edited meanwhile. One process imports what the tests
import from elsewhere and forks for each mutant.
"""

from __future__ import annotations

import argparse
import collections
import gc
import importlib
import json
import os
import pkgutil
import random
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.mutation.mutants import Mutant, of_files

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("wheelfix/checks", "wheelfix/loader")
_COPIED = (
    "wheelfix",
    "tests",
    "policies",
    "sample_wheels",
    "docs",
    "pyproject.toml",
    "CHANGELOG.md",
    "README.md",
)

#: Whole wheels and the command line; the slowest, so the last.
_WHOLE = (
    "tests/checks",
    "tests/test_rules.py",
    "tests/test_sample_wheels.py",
    "tests/test_audit.py",
    "tests/oracle/test_rules.py",
)
_LOADER = (
    "test_lookup.py",
    "test_binding.py",
    "test_binding_open_ended.py",
    "test_versions.py",
    "test_search.py",
    "test_closure.py",
    "test_roots_apart.py",
    "test_paths.py",
)
_COMPILED = ("test_against_glibc.py", "test_against_musl.py")
_SEARCH = ("closure", "paths", "search")  # what is compared with tests/loader/reference.py


def steps(file: str, near: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names of the steps for a mutant of one file, each with its tests."""
    path = Path(file)
    if path.parent.name == "checks":
        own = f"tests/checks/test_{path.name}"
        if (ROOT / own).exists():
            yield "own", (own,)
        yield "checks", ("tests/checks",)
    else:
        yield "own", tuple(f"tests/loader/{name}" for name in _LOADER)
        yield "compiled", tuple(f"tests/loader/{name}" for name in _COMPILED)
        later = "test_search_reference.py" if path.stem in _SEARCH else "test_together.py"
        yield "compared", (f"tests/loader/{later}",)
    if not near:
        yield "whole", _WHOLE


class _Watch:
    """A plugin that tells the first test that fails."""

    failed = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    pytest_collectreport = pytest_runtest_logreport


def _child(tree: Path, tests: Sequence[str], answer: int) -> None:
    """Run tests in this process, which is a fork, and write [status, first failure] to ``answer``."""
    import pytest

    os.setpgid(0, 0)
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    os.chdir(tree)
    sys.path[:] = [str(tree), *(p for p in sys.path if p not in ("", str(ROOT)))]
    os.environ.update(PYTHONPATH=str(tree), PYTHONDONTWRITEBYTECODE="1")
    sys.dont_write_bytecode = True
    watch = _Watch()
    options = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "-m", "not real"]
    status: object = "died"
    try:
        status = int(pytest.main([*options, *tests], [watch]))
        module = sys.modules.get("wheelfix")
        if module is not None and not str(module.__file__).startswith(str(tree)):
            status = f"imported {module.__file__}"
    finally:
        os.write(answer, json.dumps([status, watch.failed]).encode())
        os._exit(0)


def run(tree: Path, tests: Sequence[str], seconds: float) -> tuple[object, str]:
    """pytest's status and the first test that failed; ("late", "") after so many seconds, and whole groups end."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(out)
        _child(tree, tests, into)
    os.close(into)
    got: tuple[object, str] = ("late", "")
    if select.select([out], [], [], seconds)[0]:
        words = os.read(out, 65536)
        got = tuple(json.loads(words)) if words else ("died", "")
    os.close(out)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return got


def import_others() -> None:
    """Import all of wheelfix, and forget it: what it imports from elsewhere stays for the forks."""
    for name in ("pytest", "hypothesis", "xdist", "elftools.elf.elffile", "yaml", "wheelfix"):
        importlib.import_module(name)
    for found in pkgutil.walk_packages(sys.modules["wheelfix"].__path__, "wheelfix."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    for name in [n for n in sys.modules if n.split(".")[0] in ("wheelfix", "tests")]:
        if name != "__main__":
            del sys.modules[name]
    gc.freeze()


def copy_tree(tree: Path) -> None:
    for name in _COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, symlinks=True)
        else:
            shutil.copy2(ROOT / name, tree / name)


def kill(tree: Path, mutant: Mutant, times: dict[tuple[str, ...], float], near: bool) -> tuple[str, str]:
    """The step that killed a mutant and the test (or how it ended); ("", "") for a survivor."""
    path = tree / mutant.file
    before, stat = path.read_bytes(), path.stat()
    path.write_text(mutant.source(), "utf-8")
    os.utime(path, (1, 1))  # never the time that its byte code was made for
    try:
        for step, tests in steps(mutant.file, near):
            status, failed = run(tree, tests, 5 * times[tests] + 5)
            if status == 0:
                continue
            if status not in (1, 2, 3, "late", "died"):
                raise SystemExit(f"{mutant.file}, {step}: pytest ended with {status}")
            return step, failed or str(status)
        return "", ""
    finally:
        path.write_bytes(before)
        os.utime(path, (stat.st_atime, stat.st_mtime))


def explained() -> dict[tuple[str, str, str, str], str]:
    """The survivors that were judged, with the reason."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    found = tomllib.loads(Path(__file__).with_name("survivors.toml").read_text("utf-8"))["survivor"]
    return {(s["file"], s["function"], s["was"], s["now"]): s["why"] for s in found}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="mutants; 0 for all")
    parser.add_argument("--seed", default="1")
    parser.add_argument(
        "--only", default="", help="of the sample, the mutants of files whose path holds this"
    )
    parser.add_argument("--near", action="store_true", help="leave out the last step, whole wheels")
    parser.add_argument("--record", type=Path, help="a file that gets one line of JSON for each mutant")
    args = parser.parse_args()
    files = [f for t in TARGETS for f in (ROOT / t).glob("*.py")]
    everything = of_files(ROOT, files)
    sample = random.Random(args.seed).sample(everything, min(args.count or len(everything), len(everything)))
    sample = [m for m in sample if args.only in m.file]
    print(f"{len(sample)} of {len(everything)} mutants, seed {args.seed}", flush=True)
    import_others()
    start = time.monotonic()
    by_step: collections.Counter[str] = collections.Counter()
    survivors: list[Mutant] = []
    with tempfile.TemporaryDirectory(prefix="wheelfix-mutation-") as folder:
        tree = Path(folder)
        copy_tree(tree)
        times: dict[tuple[str, ...], float] = {}
        for tests in {tests for m in sample for _, tests in steps(m.file, args.near)}:
            began = time.monotonic()
            status, failed = run(tree, tests, 600)
            times[tests] = time.monotonic() - began
            if status != 0:
                raise SystemExit(f"the unchanged code fails: {failed or status}")
        for number, mutant in enumerate(sample, 1):
            began = time.monotonic()
            step, by = kill(tree, mutant, times, args.near)
            by_step[step] += 1
            if not step:
                survivors.append(mutant)
                print(
                    f"survived: {mutant.file} {mutant.function}: {mutant.was}  ->  {mutant.now}", flush=True
                )
            if args.record:
                with args.record.open("a") as record:
                    took = round(time.monotonic() - began, 1)
                    line = {**mutant._asdict(), "source": "", "step": step, "by": by, "seconds": took}
                    record.write(json.dumps(line) + "\n")
            if number % 50 == 0:
                print(f"{number}: {len(survivors)} survived, {time.monotonic() - start:.0f} s", flush=True)
    killed = len(sample) - len(survivors)
    why = explained()
    told = [m for m in survivors if (m.file, m.function, m.was, m.now) in why]
    steps_told = ", ".join(f"{count} by {step}" for step, count in by_step.most_common() if step)
    print(
        f"killed {killed} of {len(sample)} ({100 * killed / max(1, len(sample)):.1f} %): {steps_told}; "
        f"{len(survivors)} survived, {len(told)} of them explained; {time.monotonic() - start:.0f} s"
    )
    return 0 if len(told) == len(survivors) else 1


if __name__ == "__main__":
    sys.exit(main())
