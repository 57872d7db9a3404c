"""What an extension module may ask of the interpreter: the promise of an abi3 tag."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator

from wheelfix.checks.linkflags import blocks
from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Subject
from wheelfix.model.finding import Finding
from wheelfix.policy.python_api import STABLE_ABIS, stable_abi, version_of

VIOLATION = Rule(
    id="abi3-violation",
    group="platform",
    severity="error",
    what="A wheel with an abi3 tag promises to work with every Python from the tag's version on, and does not keep to it: "
    "an object refers to a function or object of the C API that is not in the stable ABI of that version (PEP 384), or "
    "the file name of a module binds it to one Python.",
    why="A name that is not stable may be missing in another Python (`ImportError: undefined symbol: _PyX`), or mean "
    "something else there. A name that came later is missing in the older ones that the tag promises. And Python 3.12 "
    "does not look for `_ext.cpython-311-x86_64-linux-gnu.so`: the import fails with ModuleNotFoundError.",
    fix="Define `Py_LIMITED_API` as the oldest version that is promised, in every source file, and let the build name the "
    "module `_ext.abi3.so`:\n\n"
    + blocks(
        cmake="Python_add_library(_ext MODULE USE_SABI 3.9 WITH_SOABI ext.c)",
        setuptools="Extension('pkg._ext', ['ext.c'], py_limited_api=True,\n"
        "          define_macros=[('Py_LIMITED_API', '0x03090000')])\n# setup.cfg: [bdist_wheel] py_limited_api = cp39",
        meson="py.extension_module('_ext', 'ext.c', limited_api: '3.9')",
        bazel="cc_binary(name = '_ext.abi3.so', srcs = ['ext.c'], linkshared = True,\n"
        "          local_defines = ['Py_LIMITED_API=0x03090000'])",
    )
    + "\n\nIf the code needs more than that, give the wheel the tag of one version (cp311-cp311).",
    example="A wheel tagged `cp39-abi3` whose `_ext.abi3.so` calls `PyUnicode_New`.",
    remedy="Compile with Py_LIMITED_API set to the tag's Python and name the module .abi3.so, or tag the wheel for one version.",
)

RULES: tuple[Rule, ...] = (VIOLATION,)

# What CPython, PyPy and GraalPy put before ".so" for modules of one version (importlib.machinery.EXTENSION_SUFFIXES).
_ONE_VERSION = re.compile(r"\.((?:cpython-|pypy|graalpy)\d[\w-]*)\.so$")
_ANY_VERSION = (".so", ".abi3.so", ".abi3t.so")


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each object and reason: not stable at all, stable only later, named for one version."""
    promised = _promise(subject.wheel.tags)
    if promised is None:
        return
    tag, version = promised
    specific = {m.path for m, elf in subject.wheel.objects if elf.python_modules and _suffix(m.path)}
    paths = {m.path for m in subject.wheel.members}
    for path in sorted(specific):
        stem = path[: -len(_suffix(path)) - len("..so")]
        if not any(stem + ending in paths for ending in _ANY_VERSION):
            yield VIOLATION.finding(
                f"{path} is named for one Python (.{_suffix(path)}.so), and the tag {tag} promises every later one",
                member=path,
                evidence={"reason": "file-name", "tag": tag, "suffix": f".{_suffix(path)}.so"},
                remedy=f"Name the module {posixpath.basename(stem)}.abi3.so, or tag the wheel for that version.",
            )
    stable = stable_abi()
    for path, symbols in _wanted(subject).items():
        if path in specific:
            continue  # only the Python that it is named for opens it
        private = [s for s in symbols if s not in stable]
        later = [s for s in symbols if s in stable and stable[s] > version]
        if private:
            yield VIOLATION.finding(
                f"{path} uses {_some(private)}, not part of the stable ABI that {tag} promises to keep to",
                member=path,
                symbol=private[0],
                evidence={"reason": "not-stable", "tag": tag, "symbols": private},
            )
        if later:
            since = {s: ".".join(map(str, stable[s])) for s in later}
            newest = ".".join(map(str, max(stable[s] for s in later)))
            yield VIOLATION.finding(
                f"{path} uses {_some(later)}, in the stable ABI only since Python {newest}, and the tag {tag} promises "
                f"Python {version[0]}.{version[1]}",
                member=path,
                symbol=later[0],
                evidence={"reason": "later", "tag": tag, "symbols": later, "since": since},
            )


def _promise(tags: Iterable[str]) -> tuple[str, tuple[int, int]] | None:
    """The oldest tag with a stable ABI as ``cp39-abi3``, and its Python; None where the wheel has none."""
    found = []
    for tag in tags:
        python, _, rest = tag.partition("-")
        abi = rest.partition("-")[0]
        version = version_of(python)
        if abi in STABLE_ABIS and version is not None:
            found.append((version, f"{python}-{abi}"))
    if not found:
        return None
    version, tag = min(found)
    return tag, version


def _wanted(subject: Subject) -> dict[str, list[str]]:
    """For each object of the wheel the C API names that it asks the interpreter for, sorted.

    A name that the wheel itself or a given one supplies is not the interpreter's, one that no relocation names is never
    looked up, and a weak reference is a question, not a demand.
    """
    found: dict[str, set[str]] = {}
    for scene in subject.scenes:
        owners = {node.path: node.owner for load in scene.loads for node in load.scope}
        for b in scene.outcomes:
            if (
                b.symbol.startswith(("Py", "_Py"))
                and not b.weak
                and b.status in ("bound", "missing", "undecided")
                and owners.get(b.object) == "wheel"
                and owners.get(b.provider or "") not in ("wheel", "given")
            ):
                found.setdefault(b.object, set()).add(b.symbol)
    return {path: sorted(names) for path, names in sorted(found.items())}


def _suffix(path: str) -> str:
    """The part of a module's file name that binds it to one version, "" where there is none."""
    match = _ONE_VERSION.search(path)
    return match[1] if match else ""


def _some(symbols: list[str]) -> str:
    return ", ".join(symbols[:3]) + (f" and {len(symbols) - 3} more" if len(symbols) > 3 else "")
