"""The C++ runtime of each object: whose it is, and whether that is what the policy and the tag say.

What a runtime symbol is, the baseline data tell (what libstdc++.so.6 and libgcc_s.so.1 export), not the
look of a name.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from wheelfix.checks.linkflags import blocks, static_cxx_runtime
from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Scene, Subject
from wheelfix.checks.symbols import SHOWN, listed, missing_symbols
from wheelfix.model.elf import LOOKUP_COPY, STB_GLOBAL, STB_GNU_UNIQUE, ElfFacts, Symbol
from wheelfix.model.finding import Finding
from wheelfix.model.policy import CxxRuntime
from wheelfix.model.resolution import Node
from wheelfix.policy.baseline import cxx_runtime_internals
from wheelfix.policy.globs import matches_any

_STATIC_FLAGS = static_cxx_runtime()

DYNAMIC = Rule(
    id="cxx-runtime-dynamic",
    group="cxx-runtime",
    severity="error",
    what="An object needs the C++ runtime as a shared library, and the policy says that it carries its own.",
    why="The wheel was meant to be independent of the C++ runtime that the process has: a libstdc++ that is older than "
    "the compiler stops the import, and another one that was loaded first is used in its place. Flags on a link "
    "line prove nothing; a second `-lstdc++` after `-static-libstdc++` brings the shared one back. Only DT_NEEDED "
    "counts.",
    fix="Link with the C++ driver and look for libraries that bring `-lstdc++` themselves:\n\n"
    + _STATIC_FLAGS,
    example="`-static-libstdc++` is on the link line, and `pkg/_ext.so` lists `libstdc++.so.6` in DT_NEEDED.",
    remedy="Link with -static-libstdc++ (and -static-libgcc), and no -lstdc++ after it.",
)
STATIC = Rule(
    id="cxx-runtime-static",
    group="cxx-runtime",
    severity="error",
    what="An object carries a C++ runtime of its own, and the policy says that the host's is used.",
    why="Two runtimes in one process do not share exceptions, locales or type information. Where objects pass C++ "
    "types to each other they have to use one libstdc++, the one that the tag promises.",
    fix="Leave -static-libstdc++ and -static-libgcc out of the link line; a static library may bring them. Then these link the "
    "shared one:\n\n"
    + blocks(
        cmake="# no target_link_options(_ext PRIVATE -static-libstdc++)\n"
        "set_target_properties(_ext PROPERTIES LINKER_LANGUAGE CXX)",
        setuptools="Extension('pkg._ext', sources, language='c++')    # no extra_link_args=['-static-libstdc++']",
        meson="py.extension_module('_ext', 'ext.cpp', install: true, subdir: 'pkg')    # no link_args: '-static-libstdc++'",
        bazel="# .bazelrc: no BAZEL_LINKLIBS with -l%:libstdc++.a\n"
        "cc_binary(name = '_ext.so', srcs = sources, linkshared = True)",
    ),
    example="`pkg/_ext.so` needs no libstdc++ and holds `__cxa_throw` itself.",
    remedy="Link against the shared libstdc++ of the build image.",
)
MISSING = Rule(
    id="cxx-runtime-missing",
    group="cxx-runtime",
    severity="error",
    what="An object uses symbols of the C++ runtime that nothing in its scope supplies.",
    why="C++ code was linked with the C driver, or with a runtime newer than the promised one and without versions. "
    "The import fails with `undefined symbol`, unless something else in the process happens to have loaded a "
    "libstdc++ for everybody. A check for one well-known symbol does not see it: each object uses others.",
    fix="Link with g++ (or set the language), not gcc:\n\n"
    + blocks(
        cmake="set_target_properties(_ext PROPERTIES LINKER_LANGUAGE CXX)",
        setuptools="Extension('pkg._ext', sources, language='c++')",
        meson="project('pkg', 'c', 'cpp')\npy.extension_module('_ext', 'ext.cpp', link_language: 'cpp')",
        bazel="# The toolchain adds -lstdc++ unless BAZEL_LINKLIBS or a toolchain of your own says otherwise.\n"
        "cc_binary(name = '_ext.so', srcs = sources, linkshared = True, linkopts = ['-lstdc++'])",
    ),
    example="`pkg/_ext.so` refers to `__cxa_throw` and `typeinfo for std::exception`, and its DT_NEEDED holds libc alone.",
    remedy="Link with g++, which adds the runtime, not gcc: LINKER_LANGUAGE CXX in CMake, language='c++' in setuptools.",
)
BORROWED = Rule(
    id="cxx-runtime-borrowed",
    group="cxx-runtime",
    severity="error",
    what="Symbols of the C++ runtime that an object uses bind to a copy that leaks from a library which is no C++ runtime.",
    why="The lender linked its runtime statically and did not hide it. The object works by luck: the day the other "
    "library hides its copy, changes its compiler or is loaded later, the import fails or two halves of two "
    "runtimes meet. Inside one wheel it is a note; across distributions, or where the policy asks for a runtime "
    "of the object's own, an error.",
    fix="Give the object its own runtime, so that nothing is undefined:\n\n" + _STATIC_FLAGS + "\n\n"
    "The lender should hide its copy (`-Wl,--exclude-libs,ALL` or a version script).",
    example="`pkg/_ext.so` uses `std::__exception_ptr::exception_ptr::_M_addref()`, which the libstdc++ of manylinux_2_28 "
    "does not export; it binds to `torch/lib/libtorch_cpu.so`.",
    remedy="Link the C++ runtime into the object (-static-libstdc++), or build with the compiler of the tag's image.",
)
BUNDLED = Rule(
    id="cxx-runtime-bundled",
    group="cxx-runtime",
    severity="error",
    what="The wheel ships a C++ runtime under its stock name, which the tag promises of the host.",
    why="One process has one library of that SONAME: whoever loads it first decides for all. An older copy in the wheel "
    "breaks every extension that needs the host's newer one, and the reverse; which, depends on import order.",
    fix="Leave the library out; the tag promises it. If a newer one is needed, link it statically:\n\n"
    + _STATIC_FLAGS,
    example="`pkg.libs/libstdc++.so.6` with that SONAME in a manylinux_2_28 wheel.",
    remedy="Leave the library out of the wheel, or link the runtime statically.",
)
EXPORTED = Rule(
    id="cxx-runtime-exported",
    group="cxx-runtime",
    severity="warning",
    what="An object carries a C++ runtime and exports its internals.",
    why="Whatever is loaded after it, or looks symbols up globally, may bind its C++ runtime here: two runtimes then "
    "share locale ids, type information and unwinder state, and the process crashes later and far away. Others "
    "also start to depend on the copy (cxx-runtime-borrowed).",
    fix="Hide what comes from static libraries:\n\n"
    + _STATIC_FLAGS
    + "\n\nor export the module's own functions "
    "alone with a version script: `{ global: PyInit_*; local: *; };`",
    example="`pkg/_ext.so` was linked with -static-libstdc++ and exports `std::locale::classic()` and 4,300 more.",
    remedy="Link with -Wl,--exclude-libs,ALL, or with a version script.",
)
CLASH = Rule(
    id="gnu-unique-clash",
    group="cxx-runtime",
    severity="error",
    what="Two objects that one process can load define the same unique symbol (STB_GNU_UNIQUE) differently.",
    why="The loader keeps one definition of a unique symbol for the whole process, that of the object that was relocated "
    "first, whatever the scopes say and RTLD_LOCAL notwithstanding. The other object then works on memory of "
    "another size or kind.",
    fix="Give the two variables different names (a namespace of your own), hide them (`-fvisibility=hidden`), or compile "
    "with `-fno-gnu-unique`.",
    example="`Registry<int>::table` has 64 bytes in `pkg/_a.so` and 128 in `pkg/_b.so`.",
    remedy="Hide or rename the symbol in one of the objects.",
)
RULES: tuple[Rule, ...] = (DYNAMIC, STATIC, MISSING, BORROWED, BUNDLED, EXPORTED, CLASH)

_CXX = ("libstdc++.so*", "libstdc++-*.so*", "libc++.so*", "libc++-*.so*", "libc++abi.so*", "libc++abi-*.so*")
_GCC = ("libgcc_s.so*", "libgcc_s-*.so*", "libunwind.so*", "libunwind-*.so*")
_RUNTIME = (*_CXX, *_GCC)


def check(subject: Subject) -> Iterator[Finding]:
    """The runtime rules: those that the tables alone decide, then those that rest on bindings."""
    core, internals = core_symbols(subject), _internals(subject)
    for member, elf in subject.wheel.objects:
        entry = entry_for(subject, member.path)
        yield from _dynamic(member.path, elf, entry)
        yield from _own_copy(member.path, elf, entry, core, internals)
        yield from _bundled(subject, member.path, elf)
    for scene in subject.scenes:
        yield from _missing(subject, scene)
        yield from _borrowed(subject, scene)
        yield from _clashes(scene)


def entry_for(subject: Subject, path: str) -> CxxRuntime | None:
    """The policy's entry for an object: the last that matches it, as later files override earlier ones."""
    return next((e for e in reversed(subject.policy.cxx_runtime) if matches_any(path, e.objects)), None)


def _internals(subject: Subject) -> frozenset[str]:
    return frozenset[str]().union(*(cxx_runtime_internals(p.arch) for p in subject.platforms))


def core_symbols(subject: Subject) -> frozenset[str]:
    """The internals that the promised machine's own libstdc++ has too; all that are known where it has none.

    Compilers for older systems put what the system's libstdc++ lacks into each object (libstdc++_nonshared.a);
    those few leftovers stand in healthy objects and are no second runtime.
    """
    for scene in subject.scenes:
        symbols = _of_the_host(scene)
        if symbols is not None:
            return frozenset(s.name for s in symbols if s.bind == STB_GLOBAL and s.exported)
    return _internals(subject)


def _of_the_host(scene: Scene) -> Sequence[Symbol] | None:
    """What the promised machine's own libstdc++ holds; None where it has none or only the name is known."""
    library = scene.world.host.get("libstdc++.so.6")
    return library.elf.symbols if library is not None and library.elf and library.elf.complete else None


def is_runtime(name: str) -> bool:
    """Whether a SONAME or file name is that of a C++ runtime library, the hashed names of grafts included."""
    return any(fnmatch.fnmatchcase(name, glob) for glob in _RUNTIME)


def _is_runtime_library(path: str, elf: ElfFacts | None) -> bool:
    """By its SONAME or by its file name."""
    return any(is_runtime(n) for n in (elf.soname if elf else None, posixpath.basename(path)) if n)


def _dynamic(path: str, elf: ElfFacts, entry: CxxRuntime | None) -> Iterator[Finding]:
    if entry is None or entry.linkage != "static" or _is_runtime_library(path, elf):
        return
    globs = _RUNTIME if entry.libgcc == "static" else _CXX
    needed = [n for n in dict.fromkeys(elf.needed) if any(fnmatch.fnmatchcase(n, g) for g in globs)]
    if needed:
        yield DYNAMIC.finding(
            f"{path} needs {' and '.join(needed)}; the policy asks for a C++ runtime of its own",
            member=path,
            library=needed[0],
            evidence={"needed": needed},
            policy=entry.key,
        )


def _own_copy(
    path: str, elf: ElfFacts, entry: CxxRuntime | None, core: frozenset[str], internals: frozenset[str]
) -> Iterator[Finding]:
    """A runtime inside the object: not wanted at all, or wanted and not hidden."""
    if _is_runtime_library(path, elf):
        return
    exported = [s for s in elf.symbols if s.name in internals and s.exported and not s.lookups & LOOKUP_COPY]
    dynamic = any(is_runtime(n) for n in elf.needed)
    if entry is not None and entry.linkage == "host" and not dynamic:
        own = [s.name for s in exported if s.name in core] + sorted(
            n for n in core.intersection(elf.local_names) if elf.hides(n)
        )
        yield from _static(path, own, entry)
    forbids = entry if entry is not None and entry.exports == "forbid" else None
    leaked = [s.name for s in exported if forbids is not None or s.name in core]
    if leaked:
        total = sum(s.exported for s in elf.symbols)
        unique = sum(s.exported and s.bind == STB_GNU_UNIQUE for s in elf.symbols)
        yield EXPORTED.finding(
            f"{path} exports {len(leaked)} internals of the C++ runtime"
            + ("" if dynamic else " and needs no shared one: its own static copy leaks")
            + f" ({total} exported symbols, {unique} of them unique)",
            member=path,
            symbol=leaked[0],
            evidence={"symbols": listed(leaked), "count": len(leaked), "exported": total, "unique": unique},
            severity="error" if forbids is not None else None,
            policy=forbids.key if forbids is not None else None,
        )


def _static(path: str, own: Sequence[str], entry: CxxRuntime) -> Iterator[Finding]:
    if own:
        yield STATIC.finding(
            f"{path} holds a C++ runtime of its own ({len(own)} of its internals) and needs no shared one; the "
            "policy asks for the host's",
            member=path,
            evidence={"symbols": listed(own), "count": len(own)},
            policy=entry.key,
        )


def _bundled(subject: Subject, path: str, elf: ElfFacts) -> Iterator[Finding]:
    names = dict.fromkeys(
        n for n in (elf.soname, posixpath.basename(path)) if n is not None and is_runtime(n)
    )
    for name in names:
        tags = [p.tag for p in subject.platforms if name in p.libraries]
        if tags:
            yield BUNDLED.finding(
                f"{path} is a C++ runtime under its stock name {name}, which {tags[0]} promises of the host",
                member=path,
                library=name,
                evidence={"soname": elf.soname, "tags": tags},
            )
            return


def _missing(subject: Subject, scene: Scene) -> Iterator[Finding]:
    runtime = frozenset[str]().union(*subject.cxx_runtime_symbols.values())
    objects: dict[str, tuple[str, list[str]]] = {}
    for one in missing_symbols(scene):
        if one.symbol.name in runtime:
            objects.setdefault(one.object.path, (one.load.root.path, []))[1].append(one.symbol.name)
    needed = {member.path: elf.needed for member, elf in subject.wheel.objects}
    for path, (root, names) in objects.items():
        needs = any(n.startswith(("libstdc++", "libc++")) for n in needed[path])
        yield MISSING.finding(
            f"{path} uses {len(names)} symbols of the C++ runtime that nothing it loads defines"
            + (
                ": the runtime that it needs is older on the promised machine, and lacks them"
                if needs
                else ": it needs no C++ runtime library and has none of its own"
            ),
            member=path,
            symbol=names[0],
            evidence={"symbols": listed(names), "count": len(names), "root": root},
            remedy="Build with the compiler of the tag's image, or link with -static-libstdc++."
            if needs
            else None,
        )


def _borrowed(subject: Subject, scene: Scene) -> Iterator[Finding]:
    runtime = frozenset[str]().union(*subject.cxx_runtime_symbols.values())
    nodes = {n.path: n for load in scene.loads for n in (*scene.world.interpreter, *load.scope)}
    loans: dict[tuple[str, str], dict[str, None]] = {}
    for binding in scene.outcomes:
        if binding.symbol not in runtime or binding.provider is None:
            continue
        lender = nodes[binding.provider]
        if (
            nodes[binding.object].owner == "wheel"
            and lender.owner in ("wheel", "given")
            and lender.path != binding.object
            and not _is_runtime_library(lender.path, lender.elf)
        ):
            loans.setdefault((binding.object, lender.path), {})[binding.symbol] = None
    within: dict[str, dict[str, dict[str, None]]] = {}
    for (object_, lender_path), symbols in loans.items():
        foreign = nodes[lender_path].distribution != nodes[object_].distribution
        if foreign:
            whose = f"{lender_path} of {nodes[lender_path].distribution or 'another distribution'}"
            yield _loan(subject, scene, object_, whose, {lender_path: symbols}, foreign=True)
        else:
            within.setdefault(object_, {})[lender_path] = symbols
    # Inside a wheel the lender depends on the root; one finding tells of all.
    for object_, lenders in within.items():
        whose = next(iter(lenders)) + (
            f" and {len(lenders) - 1} more of the wheel" if len(lenders) > 1 else ""
        )
        yield _loan(subject, scene, object_, whose, lenders, foreign=False)


def _loan(
    subject: Subject,
    scene: Scene,
    object_: str,
    whose: str,
    lenders: Mapping[str, Mapping[str, None]],
    *,
    foreign: bool,
) -> Finding:
    entry = entry_for(subject, object_)
    static = entry if entry is not None and entry.linkage == "static" else None
    names = list(dict.fromkeys(name for symbols in lenders.values() for name in symbols))
    symbols = _of_the_host(scene)
    held = {s.name for s in symbols} if symbols is not None else set(names)
    lacking = [n for n in names if n not in held]
    return BORROWED.finding(
        f"{object_} takes {len(names)} symbol{'s' if len(names) > 1 else ''} of the C++ runtime from {whose}, "
        "which is no C++ runtime and leaks a copy"
        + (f"; the libstdc++ of {scene.platform.tag} lacks {len(lacking)} of them" if lacking else ""),
        member=object_,
        library=next(iter(lenders)),
        symbol=names[0],
        evidence={
            "symbols": listed(names),
            "count": len(names),
            "lenders": {path: list(symbols)[:SHOWN] for path, symbols in lenders.items()},
            "host-lacks": lacking[:SHOWN],
        },
        severity="error" if foreign or static is not None else "info",
        policy=static.key if static is not None else None,
    )


def _clashes(scene: Scene) -> Iterator[Finding]:
    """Unique symbols that two objects define with another size or kind; size 0 is unknown."""
    nodes: dict[str, Node] = {n.location: n for load in scene.loads for n in load.scope}
    unique: dict[str, list[tuple[Node, Symbol]]] = {}
    for node in nodes.values():
        for symbol in node.elf.symbols if node.elf is not None else ():
            if symbol.bind == STB_GNU_UNIQUE and symbol.exported:
                unique.setdefault(symbol.name, []).append((node, symbol))
    pairs: dict[tuple[str, str], list[Mapping[str, object]]] = {}
    for name, definitions in unique.items():
        for (one, first), (other, second) in combinations(definitions, 2):
            known = first.size and second.size
            if (first.kind == second.kind and (first.size == second.size or not known)) or "wheel" not in (
                one.owner,
                other.owner,
            ):
                continue
            ours, theirs = (
                ((one, first), (other, second)) if one.owner == "wheel" else ((other, second), (one, first))
            )
            pairs.setdefault((ours[0].path, theirs[0].path), []).append(
                {
                    "symbol": name,
                    "size": ours[1].size,
                    "other-size": theirs[1].size,
                    "kind": ours[1].kind,
                    "other-kind": theirs[1].kind,
                }
            )
    for (path, other_path), clashes in pairs.items():
        first_name = str(clashes[0]["symbol"])
        yield CLASH.finding(
            f"{path} and {other_path} define {len(clashes)} unique symbol(s) differently: {first_name} has "
            f"{clashes[0]['size']} and {clashes[0]['other-size']} bytes; the process keeps one of them",
            member=path,
            library=other_path,
            symbol=first_name,
            evidence={"symbols": clashes[:SHOWN], "count": len(clashes)},
        )
