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
from wheelfix.loader.paths import elements, expanded, folders_of
from wheelfix.loader.search import Searched, found_by_itself, looks_alone
from wheelfix.model.finding import Finding, Severity
from wheelfix.model.policy import Provider
from wheelfix.model.resolution import SITE, Edge, Load, Node
from wheelfix.policy.drivers import is_driver_library, is_libpython
from wheelfix.world import location_of, of_an_absent, providers_of

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
        searched: Searched = {}
        for load in scene.loads:
            yield from _found(subject, scene, load, searched)


def _entries(member: str, path: str | None) -> Iterator[Finding]:
    listed = elements(path, "glibc")  # none of an empty string as a whole (dl-load.c, decompose_rpath)
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
        path = elf.search_path
        origin = posixpath.dirname(location_of(member.path))
        for entry in elements(path, scene.world.libc):
            folder = expanded(entry, origin, scene.world) if "ORIGIN" in entry else None
            if folder is None:
                continue
            folder = posixpath.normpath(folder)
            if folder in scene.world.folders or folder in provided or of_an_absent(folder, scene.world):
                continue
            depends = member.path in lost
            yield DEAD.finding(
                f"{member.path} has the search path entry {entry!r}, which leads to no folder"
                + ("" if depends else "; nothing depends on it"),
                member=member.path,
                severity=None if depends else "info",
                evidence={"entry": entry, "path": path},
            )


def _found(subject: Subject, scene: Scene, load: Load, searched: Searched) -> Iterator[Finding]:
    """How the libraries of one root were found."""
    nodes = {n.path: n for n in load.scope}
    for edge in load.edges:
        if nodes[edge.object].owner != "wheel" or "/" in edge.needed:
            continue
        if edge.path is not None and edge.rule in ("rpath", "runpath"):
            if edge.path.startswith("data:") != edge.object.startswith("data:"):
                yield DATA_SCHEME.finding(
                    f"{edge.object} finds {edge.needed} through {edge.entry}, at {edge.path}: true in a virtual"
                    " environment, not with pip --target or other layouts",
                    member=edge.object,
                    library=edge.needed,
                    evidence={"entry": edge.entry, "path": edge.path},
                )
        elif edge.status == "already-loaded":
            if not _by_itself(scene, load, edge, nodes[edge.object], searched):
                yield _by_luck(scene, load, edge)
        elif edge.status == "external" and not excluded(subject, edge.needed):
            yield from _external(subject, scene, load, edge)


def _by_itself(scene: Scene, load: Load, edge: Edge, requester: Node, searched: Searched) -> bool:
    """Whether the search would have found the library, had nothing loaded it before."""
    chain = (requester,) if looks_alone(scene.world, requester) else chain_of(load, edge.object)
    return found_by_itself(scene.world, edge.needed, chain, searched)


def _by_luck(scene: Scene, load: Load, edge: Edge) -> Finding:
    imported = scene.world.preloaded.get(edge.needed)
    severity: Severity | None = None
    if imported is not None and imported.path == edge.path:
        how, severity = f"importing {imported.distribution} has loaded it", "info"
    else:
        first = next((e.object for e in _before(load, edge) if e.path == edge.path), load.root.path)
        how = f"{first} has loaded it before"
    return LOAD_ORDER.finding(
        f"{edge.object} has no path to {edge.needed} ({edge.path}); it is found because {how}",
        member=edge.object,
        library=edge.needed,
        severity=severity,
        evidence={"root": load.root.path, "path": edge.path},
    )


def _before(load: Load, edge: Edge) -> tuple[Edge, ...]:
    """What the loader looked for before."""
    return load.edges[: load.edges.index(edge)]


def _external(subject: Subject, scene: Scene, load: Load, edge: Edge) -> Iterator[Finding]:
    """A library of an absent distribution whose folder is known: does the requester's path lead there?"""
    if is_driver_library(edge.needed) or is_libpython(edge.needed):
        return
    providers = providers_of(edge.needed, subject.policy.providers)
    earlier = [e.object for e in _before(load, edge) if e.needed == edge.needed]
    if not providers:
        first = next((o for o in earlier if _reaches_elsewhere(scene, load, o)), None)
        if first is not None and not _reaches_elsewhere(scene, load, edge.object):
            yield _unpathed(edge, load, f"{first} has loaded it before")
        return
    if _reaches(scene, load, edge.object, providers):
        return
    # No import comes before a program; one that was given and loads the library would have put it into the world.
    imported = next(
        (
            p
            for p in providers
            if p.loads == "by-import"
            and not _starts_a_process(load)
            and canonicalize_name(p.distribution) not in subject.given_distributions
        ),
        None,
    )
    if imported is not None:
        yield _unpathed(edge, load, f"importing {imported.distribution} has loaded it", "info")
        return
    first = next((o for o in earlier if _reaches(scene, load, o, providers)), None)
    if first is not None:
        yield _unpathed(edge, load, f"{first} has loaded it before")
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


def _starts_a_process(load: Load) -> bool:
    return load.root.elf is not None and load.root.elf.is_program


def _importer(scene: Scene, load: Load, library: str, providers: tuple[Provider, ...]) -> Node | None:
    """What importing a required distribution loads before the root, and which finds the library by its own path."""
    if _starts_a_process(load):
        return None
    folders = {posixpath.normpath(f"{SITE}/{p.path}") for p in providers}
    for node in scene.world.preloaded.values():
        if node.elf is not None and library in node.elf.needed and folders & _search_folders(scene, (node,)):
            return node
    return None


def _unpathed(edge: Edge, load: Load, how: str, severity: Severity | None = None) -> Finding:
    return LOAD_ORDER.finding(
        f"{edge.object} has no path to {edge.needed}; it is found because {how}",
        member=edge.object,
        library=edge.needed,
        severity=severity,
        evidence={"root": load.root.path},
    )


def _reaches(scene: Scene, load: Load, path: str, providers: tuple[Provider, ...]) -> bool:
    """Whether the object's own path or an inherited one leads to the folder of one of the providers."""
    folders = _search_folders(scene, chain_of(load, path))
    return any(posixpath.normpath(f"{SITE}/{p.path}") in folders for p in providers)


def _reaches_elsewhere(scene: Scene, load: Load, path: str) -> bool:
    return any(of_an_absent(f, scene.world) for f in _search_folders(scene, chain_of(load, path)))


def _search_folders(scene: Scene, chain: tuple[Node, ...]) -> set[str]:
    """The folders that the paths of a chain lead its first object to, whether they exist or not.

    glibc: of those above, the RPATH where neither they nor the object have a RUNPATH. musl: the path of each.
    """
    (origin, own), *above = ((posixpath.dirname(n.location), n.elf) for n in chain if n.elf is not None)
    paths = [(origin, own.search_path)]
    if scene.world.libc == "musl":
        paths += [(o, elf.search_path) for o, elf in above]
    elif own.runpath is None:
        paths += [(o, elf.rpath) for o, elf in above if elf.runpath is None]
    folders = (f for origin, path in paths for _, f in folders_of(path, origin, scene.world))
    return {posixpath.normpath(folder) for folder in folders}
