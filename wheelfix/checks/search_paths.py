"""DT_RPATH and DT_RUNPATH: entries that lead nowhere, to the build machine, or only by luck."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from packaging.utils import canonicalize_name

from wheelfix.checks.linkflags import blocks, search_path
from wheelfix.checks.needed import UNREACHABLE, excluded, origin_hop
from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Scene, Subject
from wheelfix.loader.closure import chain_of
from wheelfix.loader.paths import elements, expanded
from wheelfix.loader.search import found_by_itself
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Provider
from wheelfix.model.resolution import SITE, Edge, Load, Node
from wheelfix.policy.drivers import is_driver_library, is_libpython
from wheelfix.world import location_of, providers_of

EMPTY = Rule(
    id="rpath-empty-element",
    group="loader",
    severity="error",
    what="A search path has an empty element.",
    why=(
        "The loader reads it as the working directory: whoever can write a file where the program is started"
        " decides which library is loaded."
    ),
    fix="Look for a variable that was empty in the link line: `-Wl,-rpath,$FOO:$ORIGIN` with FOO unset."
    " One entry that is whole:\n\n" + search_path("$ORIGIN"),
    example="The RUNPATH of `pkg/_ext.so` is `$ORIGIN::/opt/lib`.",
    remedy="Link again without the empty element; wheelfix repair drops it.",
)
ABSOLUTE = Rule(
    id="rpath-absolute",
    group="loader",
    severity="warning",
    what="A search path names a fixed folder, mostly of the build machine.",
    why=(
        "On users' machines the folder does not exist, or it is somebody else's: a library that stands there is"
        " loaded in place of the right one. It also tells the world how the build machine is laid out."
    ),
    fix=(
        "Let the build install with `$ORIGIN` paths only:\n\n"
        + blocks(
            cmake='set(CMAKE_INSTALL_RPATH "$ORIGIN")\nset(CMAKE_BUILD_WITH_INSTALL_RPATH ON)',
            setuptools="# Leave out runtime_library_dirs and -rpath with folders of the build.\n"
            "Extension('pkg._ext', sources, extra_link_args=['-Wl,-rpath,$ORIGIN'])",
            meson="py.extension_module('_ext', sources, install: true, install_rpath: '$ORIGIN')",
            bazel="cc_binary(name = '_ext.so', srcs = sources, linkshared = True,\n"
            "          linkopts = ['-Wl,-rpath,$$ORIGIN'])",
        )
    ),
    example="The RUNPATH of `pkg/_ext.so` is `$ORIGIN/lib:/home/ci/build/lib`.",
    remedy="Drop the entry where the object is linked; wheelfix repair does.",
)
DEAD = Rule(
    id="rpath-dead",
    group="loader",
    severity="warning",
    what="An `$ORIGIN` entry leads to no folder.",
    why="What was meant to be found there is not; the entry is a rest of another layout.",
    fix="Correct the number of `..` in the entry, or remove it. From a module in `pkg/` to `pkg.libs/` it is one:\n\n"
    + search_path("$ORIGIN/../pkg.libs"),
    example="`$ORIGIN/../lib`, and the wheel has no such folder.",
    remedy="Correct or remove the entry; wheelfix repair drops it.",
)
DATA_SCHEME = Rule(
    id="data-scheme-rpath",
    group="loader",
    severity="warning",
    what="A library is found only through the folder of another install scheme.",
    why=(
        "`.data/data` lands at the prefix of a virtual environment, but elsewhere with `pip install --target`, with"
        " `--user` on some systems, and in distributions' packages: the path from site-packages does not hold."
    ),
    fix="Ship the library inside the package, and point `$ORIGIN` there.",
    example="`$ORIGIN/../../../../lib` reaches `NAME.data/data/lib/libx.so`.",
    remedy="Move the library into the package's own folder.",
)
LOAD_ORDER = Rule(
    id="load-order-dependent",
    group="loader",
    severity="warning",
    what="A library is found only because another object has loaded it before.",
    why=(
        "The object itself has no path to the library. Opened alone (by ctypes, by another module, after a change of"
        " the import order) it fails with `cannot open shared object file`."
    ),
    fix="Give the object a path of its own:\n\n" + search_path("$ORIGIN/lib"),
    example="`pkg/libhelper.so` needs `libcudart.so.13`, has no RUNPATH, and loads after `pkg/_ext.so` found it.",
    remedy="Give the object its own RUNPATH to the library.",
)
RULES = (EMPTY, ABSOLUTE, DEAD, DATA_SCHEME, LOAD_ORDER)


def check(subject: Subject) -> Iterator[Finding]:
    """The entries of each object, then how each library of each root was found."""
    for member, elf in subject.wheel.objects:
        for path in (elf.rpath, elf.runpath):
            yield from _entries(member.path, path)
    for scene in subject.scenes:
        yield from _dead(subject, scene)
        for load in scene.loads:
            yield from _found(subject, scene, load)


def _entries(member: str, path: str | None) -> Iterator[Finding]:
    if not path:  # dl-load.c, decompose_rpath: an empty string as a whole is no path at all
        return
    listed = elements(path, "glibc")
    if "" in listed:
        yield EMPTY.finding(
            f"{member} has an empty element in its search path {path!r}: the loader reads it as the working"
            " directory",
            member=member,
            evidence={"path": path},
        )
    for entry in dict.fromkeys(e for e in listed if e and not e.startswith(("$ORIGIN", "${ORIGIN}"))):
        place = "a folder of the machine that built it" if entry[0] == "/" else "below the working directory"
        yield ABSOLUTE.finding(
            f"{member} has the search path entry {entry!r}, {place}",
            member=member,
            evidence={"entry": entry, "path": path},
        )


def _dead(subject: Subject, scene: Scene) -> Iterator[Finding]:
    """Entries inside the wheel that lead to no folder; the folders of absent distributions are unknown."""
    lost = {(e.object) for load in scene.loads for e in load.edges if e.status == "missing"}
    provided = {posixpath.normpath(f"{SITE}/{p.path}") for p in subject.policy.providers}
    for member, elf in subject.wheel.objects:
        path = elf.runpath if elf.runpath is not None else elf.rpath
        origin = posixpath.dirname(location_of(member.path))
        for entry in elements(path, scene.world.libc):
            folder = expanded(entry, origin, scene.world) if "ORIGIN" in entry else None
            if folder is None:
                continue
            folder = posixpath.normpath(folder)
            if folder in scene.world.folders or folder in provided:
                continue
            top = folder[len(SITE) + 1 :].partition("/")[0]
            if folder.startswith(SITE + "/") and f"{SITE}/{top}" not in scene.world.folders:
                continue  # another distribution's folder, which may be there
            depends = member.path in lost
            yield DEAD.finding(
                f"{member.path} has the search path entry {entry!r}, which leads to no folder"
                + ("" if depends else "; nothing depends on it"),
                member=member.path,
                severity=None if depends else "info",
                evidence={"entry": entry, "path": path},
            )


def _found(subject: Subject, scene: Scene, load: Load) -> Iterator[Finding]:
    nodes = {n.path: n for n in load.scope}
    for edge in load.edges:
        requester = nodes.get(edge.object)
        if requester is None or requester.owner != "wheel" or "/" in edge.needed:
            continue
        if edge.status == "found" and edge.path is not None and edge.rule in ("rpath", "runpath"):
            if edge.path.startswith("data:") != edge.object.startswith("data:"):
                yield DATA_SCHEME.finding(
                    f"{edge.object} finds {edge.needed} through {edge.entry}, at {edge.path}: true in a virtual"
                    " environment, not with pip --target or other layouts",
                    member=edge.object,
                    library=edge.needed,
                    evidence={"entry": edge.entry, "path": edge.path},
                )
        elif edge.status == "already-loaded":
            yield from _by_luck(scene, load, edge)
        elif edge.status == "external" and not excluded(subject, edge.needed):
            yield from _external(subject, scene, load, edge)


def _by_luck(scene: Scene, load: Load, edge: Edge) -> Iterator[Finding]:
    if edge.needed == edge.path or found_by_itself(scene.world, edge.needed, chain_of(load, edge.object)):
        return
    imported = scene.world.preloaded.get(edge.needed)
    by_import = imported is not None and imported.path == edge.path
    if by_import and imported is not None:
        how = f"importing {imported.distribution} has loaded it"
    else:
        first = next((e.object for e in load.edges if e.path == edge.path and e is not edge), load.root.path)
        how = f"{first} has loaded it before"
    yield LOAD_ORDER.finding(
        f"{edge.object} has no path to {edge.needed} ({edge.path}); it is found because {how}",
        member=edge.object,
        library=edge.needed,
        severity="info" if by_import else None,
        evidence={"root": load.root.path, "path": edge.path},
    )


def _external(subject: Subject, scene: Scene, load: Load, edge: Edge) -> Iterator[Finding]:
    """A library of an absent distribution whose folder is known: does the requester's path lead there?"""
    if is_driver_library(edge.needed) or is_libpython(edge.needed):
        return
    providers = providers_of(edge.needed, subject.policy.providers)
    if not providers:
        if _reaches_elsewhere(scene, load, edge.object):
            return
        earlier = [e.object for e in load.edges if e.needed == edge.needed and e is not edge]
        earlier = [o for o in earlier if _reaches_elsewhere(scene, load, o)]
        if earlier and load.root.path != edge.object:
            yield _unpathed(edge, load, f"{earlier[0]} has loaded it before", None)
        return
    if _reaches(scene, load, edge.object, providers):
        return
    # No import comes before a program; one that was given and loads the library would have put it into the world.
    program = load.root.elf is not None and load.root.elf.is_program
    imported = next(
        (
            p
            for p in providers
            if p.loads == "by-import"
            and not program
            and canonicalize_name(p.distribution) not in subject.given_distributions
        ),
        None,
    )
    if imported is not None:
        yield _unpathed(edge, load, f"importing {imported.distribution} has loaded it", "info")
        return
    earlier = [e.object for e in load.edges if e.needed == edge.needed and e.object != edge.object]
    first = next((o for o in earlier if _reaches(scene, load, o, providers)), None)
    if first is not None:
        yield _unpathed(edge, load, f"{first} has loaded it before", None)
        return
    importer = _importer(scene, load, edge.needed, providers)
    if importer is not None:
        yield _unpathed(edge, load, f"importing {importer.distribution} has loaded it", "info")
        return
    provider = providers[0]
    hop = origin_hop(edge.object, f"{provider.path}/x")
    yield UNREACHABLE.finding(
        f"{edge.object} needs {edge.needed}, which {provider.distribution} installs into {provider.path}; no path"
        " of the object or of its loaders leads there",
        member=edge.object,
        library=edge.needed,
        policy=provider.key,
        remedy=f"Give {edge.object} the RUNPATH {hop}.",
        evidence={"root": load.root.path, "hop": hop, "provider": provider.distribution},
    )


def _importer(scene: Scene, load: Load, library: str, providers: tuple[Provider, ...]) -> Node | None:
    """What importing a required distribution loads before the root, and which finds the library by its own path."""
    if load.root.elf is not None and load.root.elf.is_program:
        return None
    folders = {posixpath.normpath(f"{SITE}/{p.path}") for p in providers}
    for node in scene.world.preloaded.values():
        if node.elf is not None and library in node.elf.needed and folders & _search_folders(scene, (node,)):
            return node
    return None


def _unpathed(edge: Edge, load: Load, how: str, severity: str | None) -> Finding:
    return LOAD_ORDER.finding(
        f"{edge.object} has no path to {edge.needed}; it is found because {how}",
        member=edge.object,
        library=edge.needed,
        severity="info" if severity == "info" else None,
        evidence={"root": load.root.path},
    )


def _reaches(scene: Scene, load: Load, path: str, providers: tuple[Provider, ...]) -> bool:
    """Whether the object's own path or an inherited one leads to the folder of one of the providers."""
    folders = _search_folders(scene, chain_of(load, path))
    return any(posixpath.normpath(f"{SITE}/{p.path}") in folders for p in providers)


def _reaches_elsewhere(scene: Scene, load: Load, path: str) -> bool:
    for folder in _search_folders(scene, chain_of(load, path)):
        top = folder[len(SITE) + 1 :].partition("/")[0]
        if folder.startswith(SITE + "/") and f"{SITE}/{top}" not in scene.world.folders:
            return True
    return False


def _search_folders(scene: Scene, chain: tuple[Node, ...]) -> set[str]:
    """The folders that the loader searches for the first object of a chain, whether they exist or not."""
    found: set[str] = set()
    own = chain[0].elf
    for node in chain:
        if node.elf is None:
            continue
        inherited = node is not chain[0]
        if inherited and scene.world.libc == "glibc" and own is not None and own.runpath is not None:
            break
        path = node.elf.runpath if node.elf.runpath is not None else node.elf.rpath
        if inherited and scene.world.libc == "glibc" and node.elf.runpath is not None:
            continue
        for entry in elements(path, scene.world.libc):
            folder = expanded(entry, posixpath.dirname(node.location), scene.world)
            if folder is not None:
                found.add(posixpath.normpath(folder))
    return found
