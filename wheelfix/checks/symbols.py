"""Symbols and versions that the loader does not find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from wheelfix.checks.demangle import demangled
from wheelfix.checks.linkflags import blocks
from wheelfix.checks.nearest import Nearest, nearest
from wheelfix.checks.platform import lacks_version
from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Scene, Subject
from wheelfix.loader.versions import VersionError, loaded_by_name, version_errors
from wheelfix.model.elf import Symbol
from wheelfix.model.finding import Finding
from wheelfix.model.resolution import Load, Node, Owner

UNDEFINED = Rule(
    id="undefined-symbol",
    group="symbols",
    severity="error",
    what="An object uses a symbol that nothing in its scope defines: not the interpreter, not the object itself, none "
    "of the libraries that it loads.",
    why="Extension modules are opened with RTLD_NOW, so that every symbol is looked up at import: `ImportError: "
    "undefined symbol`. That a library of the right name is there proves nothing; it must export this very name, "
    "in this very spelling and version. Whoever installs the wheel meets it, unless something else happens to be "
    "loaded first that has the symbol.",
    fix="Link the library that defines the symbol (it then stands in DT_NEEDED), and let the linker tell at build "
    "time what is missing:\n\n"
    + blocks(
        cmake="target_link_libraries(_ext PRIVATE helper)\n"
        "target_link_options(_ext PRIVATE -Wl,--no-undefined)  # not for symbols of the interpreter",
        setuptools="Extension('pkg._ext', sources, libraries=['helper'])",
        meson="py.extension_module('_ext', sources, dependencies: helper)",
        bazel="cc_binary(name = '_ext.so', srcs = sources, linkshared = True, deps = [':helper'])",
    )
    + "\n\nIf the name differs in `Ss` against `__cxx1112basic_string` alone, the two sides were compiled with "
    "different `_GLIBCXX_USE_CXX11_ABI`. If the library has the symbol but keeps it local, look at its version "
    "script or `-fvisibility=hidden`.",
    example="`pkg/_ext.so` calls `helper`, and the version script of `pkg/lib/libhelper.so` made it local.",
    remedy="Link the library that defines the symbol, in a build that exports it.",
)
VERSION_MISSING = Rule(
    id="symbol-version-missing",
    group="platform",
    severity="error",
    what="An object needs a symbol version of a library, and the library that is loaded under that name lacks it.",
    why="The loader compares all needed versions before it looks a single symbol up and stops: ``version `V2' not found "
    "(required by ...)``. If the library has no versions at all and holds the symbol, ld.so even ends the process "
    "on a failed assertion.",
    fix="Ship the build of the library that the object was linked against, or link the object against the one that "
    "is shipped. `readelf -V` shows both sides.",
    example="`pkg/_ext.so` needs `V2` of `libv.so.1`; the `pkg/libv.so.1` in the wheel is an older build that ends at `V1`.",
    remedy="Ship the library version that the object was linked against, or link again.",
)
ORPHAN = Rule(
    id="verneed-orphan",
    group="platform",
    severity="error",
    what="An object needs symbol versions of a file that no DT_NEEDED loads.",
    why="glibc looks the file up among the loaded objects by the names under which they were asked for. If there is "
    "none, it ends the process with `Assertion 'needed != NULL' failed`: no exception that Python could show.",
    fix="This is what a tool leaves behind that renames or removes a DT_NEEDED and not the file name in the version "
    "needs. Use patchelf 0.18 or later for the renaming, and do not remove an entry that is still referred to.",
    example="`pkg/_ext.so` lists `libz-1a2b3c.so.1` in DT_NEEDED and needs `ZLIB_1.2.9` of `libz.so.1`.",
    remedy="Rename the file in the version needs with the DT_NEEDED (wheelfix repair does), or link again.",
)
RULES: tuple[Rule, ...] = (UNDEFINED, VERSION_MISSING, ORPHAN)

#: Symbols that a finding lists; the rest is counted.
SHOWN = 20


@dataclass(frozen=True, slots=True)
class Missing:
    """A symbol that the loader does not find for an object of the wheel under at least one root."""

    load: Load
    object: Node
    symbol: Symbol


def missing_symbols(scene: Scene) -> Iterator[Missing]:
    """Each missing symbol of each object of the wheel once, with the first root under which it is missing.

    What a version error explains is left out: the loader stops there before any look-up.
    """
    loads = {load.root.path: load for load in scene.loads}
    seen: set[tuple[str, str, str | None]] = set()

    @cache
    def explained(root: str) -> frozenset[tuple[str, str]]:
        return frozenset((e.file, e.version) for e in version_errors(scene.world, loads[root]))

    for binding in scene.outcomes:
        key = (binding.object, binding.symbol, binding.version)
        if binding.status != "missing" or key in seen:
            continue
        load = loads[binding.root]
        node = next(n for n in load.scope if n.path == binding.object)
        if node.owner != "wheel" or node.elf is None:
            continue
        symbol = next(
            s for s in node.elf.symbols if s.name == binding.symbol and s.version == binding.version
        )
        if (symbol.version_file, symbol.version) in explained(binding.root):
            continue
        seen.add(key)
        yield Missing(load, node, symbol)


def check(subject: Subject) -> Iterator[Finding]:
    """Versions first, as the loader does; then the symbols that no C++ runtime rule tells of."""
    runtime = frozenset[str]().union(*subject.cxx_runtime_symbols.values())
    for scene in subject.scenes:
        yield from _versions(subject, scene)
        missing = [m for m in missing_symbols(scene) if m.symbol.name not in runtime]
        yield from _undefined(scene, missing)


def _versions(subject: Subject, scene: Scene) -> Iterator[Finding]:
    told: dict[tuple[str, str, str], list[VersionError]] = {}
    for load in scene.loads:
        owners: dict[str | None, Owner] = {n.path: n.owner for n in (*scene.world.interpreter, *load.scope)}
        for error in version_errors(scene.world, load):
            if owners[error.object] != "wheel":
                continue
            promised = owners.get(error.provider) == "host" and subject.baseline == "tag"
            too_new = any(lacks_version(p, error.version) for p in subject.platforms)
            if error.trouble == "missing" and (promised or too_new or error.version == "GLIBC_PRIVATE"):
                continue  # judged by the tag: symbol-version-too-new, symbol-version-private
            errors = told.setdefault((error.trouble, error.object, error.file), [])
            if error.version not in {e.version for e in errors}:
                errors.append(error)
    for (trouble, object_, file), errors in told.items():
        versions = [e.version for e in errors]
        evidence = {"file": file, "versions": versions, "root": errors[0].root}
        if trouble == "orphan":
            yield ORPHAN.finding(
                f"{object_} needs {_some(versions)} of {file}, and no DT_NEEDED loads a file of that name: ld.so "
                "ends the process",
                member=object_,
                library=file,
                evidence=evidence,
            )
        else:
            yield VERSION_MISSING.finding(
                f"{object_} needs {_some(versions)} of {file}; {errors[0].provider}, which is loaded under that "
                "name, does not have it",
                member=object_,
                library=file,
                evidence=evidence | {"provider": errors[0].provider},
            )


def _undefined(scene: Scene, missing: Sequence[Missing]) -> Iterator[Finding]:
    groups: dict[tuple[str, str | None, str | None], list[tuple[Missing, Nearest | None]]] = {}
    for one in missing:
        unversioned = _unversioned(scene, one)
        if unversioned is not None:
            yield unversioned
            continue
        near = nearest(scene.world, one.load, one.symbol)
        key = (one.object.path, near.kind if near else None, near.path if near else None)
        groups.setdefault(key, []).append((one, near))
    for (object_, _, library), group in groups.items():
        first, near = group[0]
        symbols = [m.symbol for m, _ in group]
        evidence = {
            "symbols": listed(s.name for s in symbols),
            "count": len(symbols),
            "version": first.symbol.version,
            "root": first.load.root.path,
        }
        if near is not None:
            evidence["nearest"] = {"kind": near.kind, "library": near.path, "symbol": near.symbol}
        yield UNDEFINED.finding(
            f"{object_}: nothing that it loads defines {_some(s.name for s in symbols)}"
            + (f"; {near.sentence}" if near is not None else ""),
            member=object_,
            library=library,
            symbol=symbols[0].name,
            evidence=evidence,
            remedy=near.remedy if near is not None else None,
        )


def _unversioned(scene: Scene, one: Missing) -> Finding | None:
    """The file that verneed names holds the symbol and has no versions: an assertion of check_match."""
    symbol = one.symbol
    loaded = loaded_by_name(scene.world, one.load).items()
    node = next((n for name, n in loaded if name == symbol.version_file), None)
    if node is None or node.elf is None or node.elf.verdef or node.elf.verneed or node.elf.versioned:
        return None
    if not any(s.name == symbol.name and s.exported for s in node.elf.symbols):
        return None
    return VERSION_MISSING.finding(
        f"{one.object.path} needs {symbol.name} in version {symbol.version} of {symbol.version_file}, and {node.path} "
        "has no versions at all: ld.so ends the process on a failed assertion",
        member=one.object.path,
        library=symbol.version_file,
        symbol=symbol.name,
        evidence={"file": symbol.version_file, "versions": [symbol.version], "provider": node.path},
    )


def listed(names: Iterable[str]) -> list[Mapping[str, str]]:
    """Symbols as evidence: each with its C++ name where it has one; at most the first ``SHOWN``."""
    told: list[Mapping[str, str]] = []
    for name in islice(names, SHOWN):
        plain = demangled(name)
        told.append({"symbol": name} if plain == name else {"symbol": name, "demangled": plain})
    return told


def _some(names: Iterable[str]) -> str:
    """The first three names, with the C++ name behind them, and how many more there are."""
    every = list(names)
    shown = [n if demangled(n) == n else f"{n} ({demangled(n)})" for n in every[:3]]
    return ", ".join(shown) + (f" and {len(every) - 3} more" if len(every) > 3 else "")
