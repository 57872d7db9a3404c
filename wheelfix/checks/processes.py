"""What happens when one process loads all of it: libraries that exclude or shadow each other, and dlopen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheelfix.checks.linkflags import blocks
from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Subject
from wheelfix.model.finding import Finding
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.policy.drivers import is_driver_library, is_libpython
from wheelfix.policy.system import packaged_stem

CLASH = Rule(
    id="soname-clash",
    group="loader",
    severity="error",
    what="Two different libraries have one SONAME, and one process can load both.",
    why=(
        "The loader knows libraries by their SONAME: the one that is loaded first serves everybody who asks for the"
        " name later. Which package breaks depends on the order of the imports."
    ),
    fix="Give each bundled library a name of its own; `wheelfix repair` adds a hash of the content.",
    example="`libx.so.1` with different content in two wheels that are used together.",
    remedy="Rename the bundled library with its SONAME (wheelfix repair does when it grafts).",
)
DLOPEN = Rule(
    id="dlopen-target-missing",
    group="loader",
    severity="warning",
    what="An object that opens libraries by name holds a name that nobody supplies.",
    why="The call to dlopen fails at run time; what depends on it is silently missing or raises an error late.",
    fix="Ship the library beside the object under exactly that name, with a path that leads to it.",
    example="`libouter.so.1` opens `libinner.so.1`, which was not copied along.",
    remedy="Ship the library under that name, or ignore the rule where the library is optional.",
)
OPENMP = Rule(
    id="openmp-duplicate",
    group="loader",
    severity="warning",
    what="One process loads two OpenMP runtimes.",
    why=(
        "Each has its own threads: cores are used twice, settings reach only one of them, and some pairs"
        " (libiomp5 with libgomp) stop with an error or deadlock."
    ),
    fix="Build all parts with one compiler, so against one OpenMP runtime, and ship it once:\n\n"
    + blocks(
        cmake="find_package(OpenMP REQUIRED)\ntarget_link_libraries(_ext PRIVATE OpenMP::OpenMP_CXX)",
        setuptools="Extension('pkg._ext', sources,\n          extra_compile_args=['-fopenmp'], extra_link_args=['-fopenmp'])",
        meson="py.extension_module('_ext', sources, install: true, subdir: 'pkg',\n  dependencies: dependency('openmp'))",
        bazel="cc_binary(name = '_ext.so', srcs = sources, linkshared = True,\n"
        "          copts = ['-fopenmp'], linkopts = ['-fopenmp'])",
    ),
    example="`pkg/_a.so` loads `libgomp.so.1`, `pkg/_b.so` loads `libiomp5.so`.",
    remedy="Link all objects against the same OpenMP runtime.",
)
RULES = (CLASH, DLOPEN, OPENMP)

_OPENMP = re.compile(r"lib(gomp|iomp5|omp)(-[0-9a-f]{6,})?\.so(\.\d+)*")


def check(subject: Subject) -> Iterator[Finding]:
    """Clashes between all that the wheel and the given wheels ship, and names that dlopen will not find."""
    yield from _clashes(subject)
    yield from _openmp(subject)
    yield from _dlopen(subject)


def _clashes(subject: Subject) -> Iterator[Finding]:
    wheels = (subject.wheel, *subject.given)
    # Objects for another machine than the tag's are opened by nobody.
    loadable = {n.path for scene in subject.scenes for load in scene.loads for n in load.scope}
    # A library that is only ever opened by its path is never taken for another of its SONAME (dl-load.c,
    # _dl_map_object compares the name that is asked for). Those of two machines never meet.
    asked = {n for wheel in wheels for _, elf in wheel.objects for n in elf.needed}
    by_name: dict[tuple[str | None, int], list[tuple[WheelFacts, Member]]] = {}
    for wheel in wheels:
        for member, elf in wheel.objects:
            if wheel is subject.wheel and subject.scenes and member.path not in loadable:
                continue
            # Extension modules are opened by path, and never asked for by name.
            if elf.soname in asked and member.sha256 and not elf.is_program and not elf.python_modules:
                by_name.setdefault((elf.soname, elf.machine), []).append((wheel, member))
    for (soname, _), holders in by_name.items():
        owner, mine = holders[0]  # those of the wheel itself come first
        others = [(w, m) for w, m in holders if m.sha256 != mine.sha256]
        if owner is subject.wheel and others:
            wheel, other = others[0]
            whose = "" if wheel is subject.wheel else f" of {wheel.name}"
            yield CLASH.finding(
                f"{mine.path} and {other.path}{whose} both have the SONAME {soname} and differ in content: in one"
                " process the first that is loaded serves both",
                member=mine.path,
                library=soname,
                evidence={"files": [m.path for _, m in holders]},
            )


def _openmp(subject: Subject) -> Iterator[Finding]:
    for scene in subject.scenes:
        runtimes = {
            n.identity or n.path: (n.path, load.root.path)
            for load in scene.loads
            for n in load.scope
            if n.owner in ("wheel", "given") and _OPENMP.fullmatch(n.path.rpartition("/")[2])
        }
        if len(runtimes) > 1:
            listed = sorted(runtimes.values())
            yield OPENMP.finding(
                f"a process that imports the whole package loads {len(runtimes)} OpenMP runtimes:"
                f" {', '.join(path for path, _ in listed)}",
                member=listed[0][1],
                library=listed[0][0].rpartition("/")[2],
                evidence={"runtimes": [p for p, _ in listed], "roots": [r for _, r in listed]},
            )


def _dlopen(subject: Subject) -> Iterator[Finding]:
    supplied: set[str | None] = set()
    for wheel in (subject.wheel, *subject.given):
        supplied.update(member.path.rpartition("/")[2] for member in wheel.members)
        supplied.update(elf.soname for _, elf in wheel.objects)
    promised = {name for p in subject.platforms for name in p.libraries}
    for member, elf in subject.wheel.objects:
        stems = [name.partition(".so")[0] for name in elf.library_names]
        for name in elf.library_names:
            if name in supplied or name in promised or name in elf.needed:
                continue
            if is_driver_library(name) or is_libpython(name) or packaged_stem(name):
                continue
            # A name without a version, or one of several for one library, is mostly an attempt that may fail.
            stem, _, version = name.partition(".so")
            optional = not version or stems.count(stem) > 1
            yield DLOPEN.finding(
                f"{member.path} opens libraries at run time and holds the name {name}, which nobody supplies",
                member=member.path,
                library=name,
                severity="info" if optional else None,
            )
