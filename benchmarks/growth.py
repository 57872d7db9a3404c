"""How the cost of ``wheelfix verify`` grows with objects, symbols and wheels.

    python benchmarks/growth.py [--runs N]

Each input is made here with gcc. What a run costs before it sees the first byte (the interpreter, imports) is that of
the smallest input and is taken off. The exponent is the slope of cost over size on logarithmic scales: 1.0 is a cost
that grows as the input does.
"""

from __future__ import annotations

import argparse
import math
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import Cost, cost_of, median, tool
from wheel.wheelfile import WheelFile

OBJECTS = (1, 10, 30, 100, 300, 1_000)
SYMBOLS = (1, 1_000, 10_000, 100_000, 1_000_000)
WHEELS = (1, 3, 10, 30, 100)
#: The largest exponent that counts as linear.
LINEAR = 1.1


def gcc(folder: Path, name: str, source: str, *flags: str) -> bytes:
    """A shared object without the C library, from C (or assembly, ``name`` in .s)."""
    text = folder / name
    text.write_text(source)
    command = ["gcc", "-shared", "-fPIC", "-O1", "-nostdlib", "-w", str(text), "-o", str(folder / "made.so")]
    subprocess.run([*command, "-Wl,--enable-new-dtags", *flags], check=True)
    return (folder / "made.so").read_bytes()


def wheel(path: Path, members: dict[str, bytes]) -> Path:
    """A wheel of these members with its dist-info; the name of the file gives name and version."""
    name, version = path.name.split("-")[:2]
    tag = path.stem.split("-", 2)[2]
    with WheelFile(str(path), "w") as made:
        for member, data in members.items():
            made.writestr(member, data)
        made.writestr(
            f"{name}-{version}.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        )
        made.writestr(
            f"{name}-{version}.dist-info/WHEEL",
            f"Wheel-Version: 1.0\nGenerator: growth\nRoot-Is-Purelib: false\nTag: {tag}\n",
        )
    return path


def modules(folder: Path, count: int) -> dict[str, bytes]:
    """Extension modules in folders of their own, and the library that all of them need."""
    library = gcc(folder, "own.c", "int own(void) { return 1; }", "-Wl,-soname,libown.so")
    (folder / "libown.so").write_bytes(library)
    source = 'const char id[] = "number_0000"; int own(void); int PyInit_ext(void) { return own(); }'
    module = gcc(folder, "ext.c", source, str(folder / "libown.so"), "-Wl,-rpath,$ORIGIN/../lib")
    made = {f"pkg/d{n:04}/ext.so": module.replace(b"number_0000", b"number_%04d" % n) for n in range(count)}
    return {**made, "pkg/lib/libown.so": library}


def with_objects(folder: Path, count: int) -> list[Path]:
    return [
        wheel(folder / f"objects{count}-1.0-cp311-cp311-manylinux_2_17_x86_64.whl", modules(folder, count))
    ]


def with_symbols(folder: Path, count: int) -> list[Path]:
    """A library that defines so many functions, and a module that wants a tenth of them."""
    names = [f"a_function_with_the_number_{n}" for n in range(count)]
    text = '.section .note.GNU-stack,"",@progbits\n.text\n' + "".join(
        f".globl {n}\n.type {n}, @function\n{n}:\n nop\n" for n in names
    )
    library = gcc(folder, "many.s", text, "-Wl,-soname,libmany.so")
    (folder / "libmany.so").write_bytes(library)
    calls = "".join(f"void {n}(void);" for n in names[::10]) + "void PyInit_ext(void) {"
    calls += "".join(f"{n}();" for n in names[::10]) + "}"
    module = gcc(folder, "ext.c", calls, str(folder / "libmany.so"), "-Wl,-rpath,$ORIGIN")
    members = {"pkg/ext.so": module, "pkg/libmany.so": library}
    return [wheel(folder / f"symbols{count}-1.0-cp311-cp311-manylinux_2_17_x86_64.whl", members)]


def with_wheels(folder: Path, count: int) -> list[Path]:
    members = modules(folder, 10)
    return [
        wheel(folder / f"wheel{n}-1.0-cp311-cp311-manylinux_2_17_x86_64.whl", members) for n in range(count)
    ]


def costs(make: Callable[[Path, int], list[Path]], sizes: Sequence[int], runs: int) -> dict[int, Cost]:
    """What each size costs: the median of some runs."""
    found = {}
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="growth.") as folder:
            command = [tool("wheelfix"), "verify", "-q", *map(str, make(Path(folder), size))]
            rounds = [cost_of(command) for _ in range(runs)]
            if any(cost.status for cost in rounds):
                raise SystemExit(f"exit status {rounds[0].status}: {' '.join(command)[:200]}")
            found[size] = median(rounds)
    return found


def exponent(points: dict[int, float]) -> float:
    """The slope of the line through (log size, log cost), by least squares."""
    xs, ys = [math.log(n) for n in points], [math.log(max(c, 1e-3)) for c in points.values()]
    return statistics.linear_regression(xs, ys).slope


def curve(name: str, found: dict[int, Cost]) -> float:
    """Print a curve; its exponent, of the CPU time: by the clock small inputs hide behind the start of LIEF."""
    first, *rest = found
    base = found[first].cpu
    print(f"\n{name:<12}{'wall s':>9}{'CPU s':>9}{'ms of CPU a unit':>19}")
    for size, cost in found.items():
        a_unit = f"{1000 * (cost.cpu - base) / size:>19.4f}" if size != first else ""
        print(f"{size:<12}{cost.wall:>9.2f}{cost.cpu:>9.2f}{a_unit}")
    # A tenth of what is taken off is noise: smaller differences say nothing.
    points = {n: found[n].cpu - base for n in rest if found[n].cpu - base > base / 10}
    slope = exponent(points) if len(points) > 1 else 0.0
    print(f"exponent {slope:.2f}")
    return slope


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    slopes = [
        curve("objects", costs(with_objects, OBJECTS, runs)),
        curve("symbols", costs(with_symbols, SYMBOLS, runs)),
        curve("wheels", costs(with_wheels, WHEELS, runs)),
    ]
    return 0 if max(slopes) < LINEAR else 1


if __name__ == "__main__":
    raise SystemExit(main())
