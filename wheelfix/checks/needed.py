"""DT_NEEDED: which libraries an object asks for, and whether anything will be there to answer."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field

from wheelfix.checks.linkflags import blocks, search_path
from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Scene, Subject
from wheelfix.model.finding import Finding
from wheelfix.model.resolution import Edge
from wheelfix.policy.drivers import is_driver_library, is_libpython
from wheelfix.policy.globs import matches_name

MISSING = Rule(
    id="needed-missing",
    group="loader",
    severity="error",
    what="A library that an object needs is nowhere: not in the wheel, not given, not promised by the tag.",
    why=(
        "The loader stops with `cannot open shared object file: No such file or directory`, so the import fails for"
        " everybody who does not happen to have the library. The build machine had it."
    ),
    fix="Run `wheelfix repair` on the machine that built the wheel: it copies the library in. A folder that the loader does"
    " not search there is named by LD_LIBRARY_PATH:\n\n"
    "```sh\nLD_LIBRARY_PATH=/opt/helper/lib wheelfix repair dist/*.whl\n```\n\n"
    "Or pack a library of your own build beside the module, and let `$ORIGIN` lead to it:\n\n"
    + blocks(
        cmake="install(TARGETS _ext helper LIBRARY DESTINATION pkg)\n"
        'set_target_properties(_ext PROPERTIES INSTALL_RPATH "$ORIGIN")',
        setuptools="# libhelper.so is put into pkg/ before the build\n"
        "setup(packages=['pkg'], package_data={'pkg': ['libhelper.so']}, ext_modules=[\n"
        "    Extension('pkg._ext', sources, library_dirs=['pkg'], libraries=['helper'],\n"
        "              extra_link_args=['-Wl,-rpath,$ORIGIN'])])",
        meson="helper = shared_library('helper', 'helper.cpp', install: true,\n"
        "  install_dir: py.get_install_dir() / 'pkg')\n"
        "py.extension_module('_ext', sources, install: true, subdir: 'pkg',\n"
        "  link_with: helper, install_rpath: '$ORIGIN')",
        bazel="# A cc_library becomes a part of the module itself.\n"
        "cc_library(name = 'helper', srcs = ['helper.cpp'])\n"
        "cc_binary(name = '_ext.so', srcs = sources, linkshared = True, deps = [':helper'])",
    )
    + "\n\nOr link it statically: give the linker `libhelper.a`, compiled with `-fPIC`.",
    example="`pkg/_ext.so` needs `libhelper.so`, which only the build tree holds.",
    remedy="Run wheelfix repair where the library is, with its folder on LD_LIBRARY_PATH; or pack it beside the object with"
    " -Wl,-rpath,'$ORIGIN', or link it statically.",
)
NOT_ALLOWED = Rule(
    id="needed-not-allowed",
    group="loader",
    severity="error",
    what="An object needs a system library that the tag does not promise.",
    why=(
        "Distributions package the library, but not every machine that the tag allows has it, or has that version."
        " The import fails in a minimal container and works on a desktop."
    ),
    fix="Run `wheelfix repair`, which copies the library into the wheel under a name of its own.",
    example="`pkg/_ext.so` needs `libpng16.so.16` under a manylinux tag.",
    remedy="Run wheelfix repair to copy the library into the wheel, or link it statically.",
)
UNREACHABLE = Rule(
    id="needed-unreachable",
    group="loader",
    severity="error",
    what="The library is there, and no path of the object or its loaders leads to it.",
    why=(
        "The loader looks where DT_RUNPATH and DT_RPATH point, and a RUNPATH is not inherited by dependencies. The"
        " file beside the object is not found unless `$ORIGIN` says so; nor is one under another file name."
    ),
    fix=("Give the object that needs the library the path to it:\n\n" + search_path("$ORIGIN")),
    example="`pkg/_ext.so` needs `libhelper.so`, which is `pkg/libhelper.so`; its RUNPATH is `/build/lib`.",
    remedy="Link with -Wl,-rpath,'$ORIGIN...' to the folder of the library; wheelfix repair does.",
)
HAS_SLASH = Rule(
    id="needed-has-slash",
    group="loader",
    severity="error",
    what="DT_NEEDED holds a path instead of a name.",
    why=(
        "A name with a slash is opened as it is, without any search: the build machine's folder, or one relative"
        " to the working directory. It happens when a library without SONAME is linked by its path."
    ),
    fix="Give the library a SONAME when it is linked, then link the object again. CMake does for a `SHARED` library without"
    " `NO_SONAME`, meson for every `shared_library`; elsewhere it is a flag of the library's own link line, "
    "`-Wl,-soname,libname.so.1`:\n\n```python\n# Bazel\ncc_binary(name = 'libname.so.1', srcs = sources, linkshared = True,\n"
    "          linkopts = ['-Wl,-soname,libname.so.1'])\n```",
    example="`pkg/_ext.so` needs `/build/out/libnosoname.so`.",
    remedy="Give the library a SONAME (-Wl,-soname) and link again; wheelfix repair rewrites the entry.",
)
EXTERNAL = Rule(
    id="needed-external",
    group="loader",
    severity="warning",
    what="Only another distribution, which was not given, can hold the library.",
    why=(
        "Whether it is there, and whether its symbols fit, was not checked. If the other distribution moves or"
        " renames the library, the import fails."
    ),
    fix="Give the other distribution: `wheelfix verify x.whl --with torch-2.14.1-...whl` or `--env .venv`.",
    example="`pkg/_ext.so` needs `libtorch_cpu.so`; Requires-Dist asks for torch.",
    remedy="Verify again with --with WHEEL (or --env) for the distribution that holds it.",
)
DUPLICATE = Rule(
    id="needed-duplicate",
    group="loader",
    severity="warning",
    what="DT_NEEDED lists a library twice.",
    why="The loader does not mind; tools that edit the object may remove or rename one of the two only.",
    fix="Link the library once; some versions of patchelf leave a second entry behind.",
    example="`pkg/_ext.so` lists `libm.so.6` twice.",
    remedy="Remove the second entry where the object is linked or patched.",
)
DRIVER = Rule(
    id="driver-lib",
    group="loader",
    severity="warning",
    what="An object needs a library of the GPU's driver.",
    why=(
        "It must match the machine's kernel module: no wheel can carry it and no tag promises it. On a machine"
        " without the driver the import fails."
    ),
    fix="Open the library with dlopen when a GPU is asked for, or split what needs it into a module of its own.",
    example="`pkg/_ext.so` needs `libcuda.so.1`.",
    remedy="Open the driver's library at run time, or name it in a provider rule to say that it is meant.",
)
UNUSED = Rule(
    id="needed-unused",
    group="loader",
    severity="info",
    what="An object needs a library of which it uses no symbol.",
    why="The library must be there all the same, or the import fails for nothing.",
    fix="Link with `-Wl,--as-needed`, before the libraries on the command line:\n\n"
    + blocks(
        cmake="target_link_options(_ext PRIVATE -Wl,--as-needed)",
        setuptools="# extra_link_args come after the libraries, the environment's flags before them:\n"
        "# LDFLAGS=-Wl,--as-needed pip wheel .",
        meson="project('pkg', 'c', default_options: ['b_asneeded=true'])  # the default",
        bazel="cc_binary(name = '_ext.so', srcs = sources, linkshared = True,\n"
        "          linkopts = ['-Wl,--as-needed', '-lname'])",
    ),
    example="`pkg/_ext.so` lists `libcurand.so.10` and imports nothing of it.",
    remedy="Link with -Wl,--as-needed, or drop the library from the link line.",
)
EXCLUDE_UNUSED = Rule(
    id="exclude-unused",
    group="loader",
    severity="warning",
    what="An --exclude pattern matches no DT_NEEDED of the wheel.",
    why="What was meant to stay out is copied into the wheel, mostly because the SONAME has a version.",
    fix="Write the SONAME or a glob: `--exclude 'libbig.so*'`.",
    example="`--exclude libbig.so`, and the objects need `libbig.so.5`.",
    remedy="Correct the pattern, or remove it.",
)
RULES = (
    MISSING,
    NOT_ALLOWED,
    UNREACHABLE,
    HAS_SLASH,
    EXTERNAL,
    DUPLICATE,
    DRIVER,
    UNUSED,
    EXCLUDE_UNUSED,
)


@dataclass(slots=True)
class _Want:
    """One object's DT_NEEDED over all roots of a scene."""

    edges: list[Edge] = field(default_factory=list)

    def first(self, *statuses: str) -> Edge | None:
        return next((e for e in self.edges if e.status in statuses), None)


def check(subject: Subject) -> Iterator[Finding]:
    """Every DT_NEEDED, DT_FILTER and DT_AUXILIARY of the wheel's own objects, each told once."""
    for scene in subject.scenes:
        own = {n.path for load in scene.loads for n in load.scope if n.owner == "wheel"}
        wants: dict[tuple[str, str], _Want] = {}
        for load in scene.loads:
            for edge in load.edges:
                if edge.object in own:
                    wants.setdefault((edge.object, edge.needed), _Want()).edges.append(edge)
        for (member, library), want in wants.items():
            yield from _judged(subject, scene, member, library, want)
        yield from _unused(subject, scene, wants)
    for wheel_member, elf in subject.wheel.objects:
        for library in dict.fromkeys(n for n in elf.needed if elf.needed.count(n) > 1):
            yield DUPLICATE.finding(
                f"{wheel_member.path} lists {library} {elf.needed.count(library)} times in DT_NEEDED",
                member=wheel_member.path,
                library=library,
            )
    yield from _exclusions(subject)


def excluded(subject: Subject, library: str) -> bool:
    """Whether --exclude says that the library comes from elsewhere."""
    return any(matches_name(library, g) for g in subject.exclude)


def _judged(subject: Subject, scene: Scene, member: str, library: str, want: _Want) -> Iterator[Finding]:
    if "/" in library:
        yield HAS_SLASH.finding(
            f"{member} needs {library!r}, a path: the loader opens it as it is and searches nowhere",
            member=member,
            library=library,
        )
        return
    if is_driver_library(library):
        meant = excluded(subject, library) or any(
            matches_name(library, p.library) for p in subject.policy.providers
        )
        yield DRIVER.finding(
            f"{member} needs {library}, which only the GPU's driver installs",
            member=member,
            library=library,
            severity="info" if meant else None,
        )
        return
    if excluded(subject, library) or is_libpython(library):
        return
    lost = want.first("missing")
    if lost is not None:
        yield from _missing(subject, scene, member, library, lost)
    elif (absent := want.first("external")) is not None:
        yield _external(scene, member, library, absent)


def _missing(subject: Subject, scene: Scene, member: str, library: str, edge: Edge) -> Iterator[Finding]:
    if edge.detail and "is no ELF object" in edge.detail:
        return  # told as not-elf
    evidence: dict[str, object] = {"root": edge.root, "tried": list(edge.tried)}
    where = f" (opened through {edge.root})" if edge.root != member else ""
    detail = f"; {edge.detail}" if edge.detail else ""
    holders = [member for member, _ in subject.holders.get(library, ())]
    if holders:
        holder = holders[0]
        hop = origin_hop(member, holder.path)
        renamed = holder.path.rpartition("/")[2] != library
        if renamed:
            fix = f"Ship the file as {library}: its SONAME is that, its name is {holder.path.rpartition('/')[2]}."
        else:
            fix = f"Give {member} the RUNPATH {hop} (-Wl,-rpath,'{hop}'); wheelfix repair does."
        name = f", under the name {holder.path.rpartition('/')[2]}" if renamed else ""
        yield UNREACHABLE.finding(
            f"{member} needs {library}{where}; {holder.path} is there{name}, but no path of the object or of its"
            f" loaders leads to it{detail}",
            member=member,
            library=library,
            evidence={**evidence, "held-by": [n.path for n in holders]},
            remedy=fix,
        )
        return
    package = subject.system_library(library)
    if package is not None and library not in scene.platform.libraries:
        yield NOT_ALLOWED.finding(
            f"{member} needs {library}{where}, a system library (Debian: {package}) that"
            f" {scene.platform.tag} does not promise",
            member=member,
            library=library,
            evidence={**evidence, "package": package},
        )
        return
    yield MISSING.finding(
        f"{member} needs {library}{where}, which is neither in the wheel nor given nor promised by"
        f" {scene.platform.tag}{detail}",
        member=member,
        library=library,
        evidence=evidence,
    )


def _external(scene: Scene, member: str, library: str, edge: Edge) -> Finding:
    holder = scene.world.externals.get(library)
    distribution = holder.distribution if holder is not None else None
    whose = f"of {distribution}" if distribution is not None else "of another distribution"
    return EXTERNAL.finding(
        f"{member} needs {library}, a library {whose}, which was not given: not verified",
        member=member,
        library=library,
        evidence={"root": edge.root, "distribution": distribution},
    )


def origin_hop(member: str, target: str) -> str:
    """The shortest ``$ORIGIN`` path from one installed object to the folder of another."""
    here, there = member.split("/")[:-1], target.split("/")[:-1]
    common = 0
    while common < min(len(here), len(there)) and here[common] == there[common]:
        common += 1
    return "/".join(["$ORIGIN", *[".."] * (len(here) - common), *there[common:]])


def _unused(subject: Subject, scene: Scene, wants: dict[tuple[str, str], _Want]) -> Iterator[Finding]:
    """Libraries of the wheel or of nobody of which the object uses no symbol; the host's do no harm."""
    candidates = {
        key: want
        for key, want in wants.items()
        if (scene.share is None or key[0] in scene.share)  # of the others no use is told here
        and not any(e.status == "host" for e in want.edges)
        and not is_libpython(key[1])
        and "/" not in key[1]
    }
    members = {member for member, _ in candidates}
    uses: dict[str, set[str | None]] = {}
    # An optional hook (weak, and nobody has it) is no use: no library is linked for it. Thousands of symbols have few homes.
    for member, provider, unless, also in {
        (b.object, b.provider, b.unless, b.also)
        for b in scene.outcomes
        if b.object in members and not (b.weak and b.provider is None)
    }:
        uses.setdefault(member, set()).update(unless, (provider, also))
    facts = {m.path: elf for m, elf in subject.wheel.objects}
    for (member, library), want in candidates.items():
        elf = facts[member]
        if library not in elf.needed or any(n.file == library for n in elf.verneed):
            continue
        path = next((e.path for e in want.edges if e.path is not None), None)
        if uses.get(member, set()) & ({library, path} - {None}):
            continue
        yield UNUSED.finding(
            f"{member} needs {library} and uses no symbol of it",
            member=member,
            library=library,
            evidence={"path": path},
        )


def _exclusions(subject: Subject) -> Iterator[Finding]:
    needed = sorted({n for _, elf in subject.wheel.objects for n in elf.needed})
    for pattern in subject.exclude:
        if not any(matches_name(n, pattern) for n in needed):
            closest = next(iter(difflib.get_close_matches(pattern, needed)), None)
            hint = f"; the closest is {closest}" if closest is not None else ""
            yield EXCLUDE_UNUSED.finding(
                f"--exclude {pattern} matches no library that the wheel needs{hint}",
                library=closest,
                evidence={"pattern": pattern, "needed": needed[:50]},
            )
