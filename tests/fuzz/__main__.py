"""Feeds mutated wheels, objects and policies to wheelfix: ``python -m tests.fuzz --count 200000 --jobs 2``.

Inputs are numbered, and each is made from the seed, the target and its number alone: what is found is made
again with ``--target T --first N --count 1``, and kept with ``--keep``. Work is done in processes that may
die (a parser of another project is among what is tested); one that says nothing for half a minute is killed.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

SHARES = {"elf": 45, "archive": 30, "verify": 13, "policy": 8, "commands": 2, "repair": 2}
_CHUNK = {"elf": 2000, "archive": 1000, "verify": 200, "policy": 1000, "commands": 50, "repair": 25}
_MEMORY = 3 << 30  # bytes of address space
_SECONDS = 10  # for one input
_SILENCE = 30


def work(target: str, seed: str, first: int, count: int, folder: Path, keep: bool) -> int:
    """Run one chunk; prints what is found, and returns how many."""
    from tests.fuzz.targets import TARGETS

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {_SECONDS} s")

    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, late)
    found = 0
    for number in range(first, first + count):
        (folder / "at").write_text(str(number))
        inside = folder / "inside"
        inside.mkdir()
        signal.setitimer(signal.ITIMER_REAL, _SECONDS)
        try:
            TARGETS[target](random.Random(f"{seed}:{target}:{number}"), inside)
        except Exception:
            found += 1
            print(f"FOUND {target} {number}: {traceback.format_exc(limit=-6)}", flush=True)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if keep:
            print(f"kept in {inside}")
        else:
            shutil.rmtree(inside)
    beside = {p.name for p in folder.iterdir()} - {"at", "inside"}
    if beside:
        found += 1
        print(f"FOUND {target} {first}..{first + count - 1}: written outside: {sorted(beside)}", flush=True)
    return found


def chunks(total: int, only: str | None, first: int) -> Iterator[tuple[str, int, int]]:
    """Target, first number and count of every piece of work."""
    for target, share in SHARES.items():
        if only not in (None, target):
            continue
        end = first + (total if only else total * share // 100)
        for start in range(first, end, _CHUNK[target]):
            yield target, start, min(_CHUNK[target], end - start)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000, help="inputs, over all targets")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--first", type=int, default=0, help="number of the first input of each target")
    parser.add_argument("--target", choices=list(SHARES))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--keep", action="store_true", help="leave the files of the inputs")
    parser.add_argument("--chunk", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.chunk is not None:
        return min(
            1, work(options.target, options.seed, options.first, options.count, options.chunk, options.keep)
        )
    started = time.monotonic()
    waiting = list(chunks(options.count, options.target, options.first))
    running: list[tuple[subprocess.Popen[bytes], Path, tuple[str, int, int]]] = []
    done: collections.Counter[str] = collections.Counter()
    found = 0
    while waiting or running:
        while waiting and len(running) < options.jobs:
            target, first, count = waiting.pop(0)
            folder = Path(tempfile.mkdtemp(prefix="fuzz."))
            command = [sys.executable, "-m", "tests.fuzz", "--chunk", str(folder), "--target", target]
            command += ["--seed", options.seed, "--first", str(first), "--count", str(count)]
            command += ["--keep"] if options.keep else []
            running.append((subprocess.Popen(command), folder, (target, first, count)))
        for one in list(running):
            process, folder, (target, first, count) = one
            at = folder / "at"
            silent = time.time() - (at.stat().st_mtime if at.exists() else folder.stat().st_mtime)
            if process.poll() is None and silent > _SILENCE:
                process.kill()
                process.wait()
            status = process.poll()
            if status is None:
                continue
            running.remove(one)
            reached = int(at.read_text()) if at.exists() else first
            if status < 0 or status > 1:
                found += 1
                why = f"signal {-status}" if status < 0 else f"exit {status}"
                print(f"FOUND {target} {reached}: {why}", flush=True)
                rest = first + count - reached - 1
                if rest > 0 and reached > first:
                    waiting.insert(0, (target, reached + 1, rest))
            found += status == 1
            done[target] += reached - first + 1
            if not options.keep:
                shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.05)
    mix = ", ".join(f"{n} {t}" for t, n in done.items())
    print(
        f"{sum(done.values())} inputs ({mix}) in {time.monotonic() - started:.0f} s: {found or 'nothing'} found"
    )
    return min(found, 1)


if __name__ == "__main__":
    sys.exit(main())
