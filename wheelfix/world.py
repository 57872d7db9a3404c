"""From wheels, a policy and options to the world that the loader sees.

With ``baseline`` "tag" the machine is the oldest that the platform policy promises: its libraries come
from ``policies/baseline``, the interpreter gives the C API of the tag's Python, and this machine plays
no part. With "host" it is this machine.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections import ChainMap
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from packaging.utils import canonicalize_name

from wheelfix.loader.closure import load
from wheelfix.model.elf import MACHINES, ElfFacts
from wheelfix.model.policy import PlatformPolicy, Provider
from wheelfix.model.resolution import PREFIX, SCRIPTS, SITE, Node, World
from wheelfix.model.wheel import WheelFacts
from wheelfix.policy.baseline import host_libraries
from wheelfix.policy.drivers import is_driver_library, is_libpython
from wheelfix.policy.python_api import interpreter_node
from wheelfix.policy.system import system_library

Baseline = Literal["tag", "host"]

_SCHEME_ROOTS = {"scripts": SCRIPTS, "data": PREFIX, "headers": f"{PREFIX}/include/site/python3"}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """An installed site-packages (``--env``): lazy views of its files, and the distributions in it."""

    files: Mapping[str, Node]
    folders: Container[str]
    distributions: frozenset[str]
    links: Mapping[str, str]


def location_of(path: str) -> str:
    """Where a member lies in the virtual file system, from its installed path (``scripts:tool``)."""
    scheme, colon, rest = path.partition(":")
    if colon and scheme in _SCHEME_ROOTS:
        return f"{_SCHEME_ROOTS[scheme]}/{rest}"
    return f"{SITE}/{path}"


def distribution_of(wheel: WheelFacts) -> str:
    """The normalised name of the distribution (PEP 503), from METADATA or else the file name."""
    return canonicalize_name(wheel.name or wheel.filename.split("-")[0])


def wheel_nodes(wheel: WheelFacts, owner: Literal["wheel", "given"]) -> Iterator[Node]:
    """The members of a wheel as files of the virtual file system; folders are not among them."""
    distribution = distribution_of(wheel)
    for member in wheel.members:
        if member.content != "directory":
            location = location_of(member.path)
            yield Node(member.path, location, member.elf, owner, distribution, location)


def build_world(
    wheel: WheelFacts,
    platform: PlatformPolicy,
    *,
    given: Sequence[WheelFacts] = (),
    environment: Surroundings | None = None,
    providers: Sequence[Provider] = (),
    exclude: Sequence[str] = (),
    library_path: Sequence[str] = (),
    baseline: Baseline = "tag",
) -> World:
    """The world in which ``wheel`` is loaded on the machine that ``platform`` promises (or on this one).

    Where two wheels install the same file, the judged one's counts. ``library_path`` holds folders of the
    virtual site-packages (relative) or of this machine (absolute).
    """
    files: dict[str, Node] = {}
    for other in given:
        files.update((n.location, n) for n in wheel_nodes(other, "given"))
    files.update((n.location, n) for n in wheel_nodes(wheel, "wheel"))
    known = {distribution_of(wheel)}.union(distribution_of(w) for w in given)
    seen: Mapping[str, Node] = files
    folders: Container[str] = _folders(files)
    links: Mapping[str, str] = {}
    if environment is not None:
        known |= environment.distributions
        seen = ChainMap(files, environment.files)  # type: ignore[arg-type]  # never written to
        folders = _Either(folders, environment.folders)
        links = environment.links
    machine, bits, big_endian = MACHINES.get(platform.arch, MACHINES["x86_64"])
    world = World(
        files=seen,
        folders=folders,
        links=links,
        libc=platform.libc,
        libc_version=platform.libc_version,
        machine=machine,
        bits=bits,
        big_endian=big_endian,
        library_path=tuple(
            p if p.startswith("/") else posixpath.normpath(f"{SITE}/{p}") for p in library_path
        ),
        platform_token=platform.arch,
        lib_token="lib64" if bits == 64 and platform.libc == "glibc" else "lib",
    )
    if baseline == "host":
        world = _on_this_machine(world, platform.arch)
    else:
        host = host_libraries(platform)
        world = replace(world, host=host, interpreter=_interpreter(wheel, platform, host))
    world = replace(
        world, externals=_externals(wheel, files.values(), world, known, platform, providers, exclude)
    )
    return replace(world, preloaded=_preloaded(wheel, given, world, providers))


def _on_this_machine(world: World, arch: str) -> World:
    """The same files on this machine: its cache and libraries, its loader, the interpreter that runs wheelfix."""
    from wheelfix.host import machine
    from wheelfix.host.libraries import CachedLibraries, RealFiles, RealFolders, RealLinks

    everything = RealFiles(Path("/"), "", "host")
    world = replace(
        world,
        files=ChainMap(world.files, everything),  # type: ignore[arg-type]  # never written to
        folders=_Either(world.folders, RealFolders(everything)),
        links=ChainMap(world.links, RealLinks(everything)),  # type: ignore[arg-type]  # never written to
        host=CachedLibraries(arch),
        libc_version=machine.libc_version() or world.libc_version,
        lib_token=machine.lib_token(),
        platform_token=machine.platform_token(),
        subfolders=machine.subfolders(),
    )
    running = machine.interpreter()
    if running is None:
        return world
    return replace(world, interpreter=load(world, running).scope)


# What every CPython on glibc needs itself: it cannot run without threads (mandatory since 3.7), dlopen and
# libm. From glibc 2.34 on the first two are part of libc, and these names are stubs.
_EVERY_INTERPRETER = ("libc.so.6", "libpthread.so.0", "libdl.so.2", "libm.so.6")


def _interpreter(wheel: WheelFacts, platform: PlatformPolicy, host: Mapping[str, Node]) -> tuple[Node, ...]:
    """The global scope before any root: the C API of the tag's Python, and the libraries that every interpreter loads."""
    python, abi = [*wheel.tags[0].split("-"), "", ""][:2] if wheel.tags else ("", "")
    libraries = ("libc.so",) if platform.libc == "musl" else _EVERY_INTERPRETER
    return (interpreter_node(python, abi), *(host[name] for name in libraries if name in host))


def _folders(files: Iterable[str]) -> frozenset[str]:
    """Every folder that an installation of these files makes, and those of the environment itself."""
    found = {"/"}
    for location in [f"{SITE}/x", f"{SCRIPTS}/x", *files]:
        folder = posixpath.dirname(location)
        while folder not in found:
            found.add(folder)
            folder = posixpath.dirname(folder)
    return frozenset(found)


class _Either:
    """A container that holds what either of two (perhaps lazy) ones holds."""

    def __init__(self, first: Container[str], second: Container[str]) -> None:
        self._both = (first, second)

    def __contains__(self, item: object) -> bool:
        return any(item in c for c in self._both)


def _externals(
    wheel: WheelFacts,
    nodes: Iterable[Node],
    world: World,
    known: Iterable[str],
    platform: PlatformPolicy,
    providers: Sequence[Provider],
    exclude: Sequence[str],
) -> Mapping[str, Node]:
    """Libraries that only somebody who was not given can supply, by the name in DT_NEEDED.

    The order is that of judgement: what was excluded, a GPU driver's library and libpython never come
    with a wheel; then a provider rule; a system library by name is nobody else's; then a requester whose
    path leads into another distribution's folder, or a distribution of Requires-Dist that was not given.
    """
    known = frozenset(known)
    wants: dict[str, list[Node]] = {}
    for node in nodes:
        if node.elf is not None:
            for name in (*node.elf.needed, *node.elf.filters, *node.elf.auxiliaries):
                wants.setdefault(name, []).append(node)
    absent = absent_requirements(wheel, known)
    found: dict[str, Node] = {}
    for name, requesters in wants.items():
        if "/" in name:
            continue
        holder: str | None = None
        holders = [canonicalize_name(p.distribution) for p in providers_of(name, providers)]
        if (
            any(fnmatch.fnmatchcase(name, g) for g in exclude)
            or is_driver_library(name)
            or is_libpython(name)
        ):
            pass
        elif holders:
            if known.issuperset(holders):
                continue
            holder = next((h for h in holders if h in absent), holders[0])
        elif (
            name in platform.libraries
            or not (absent or any(_leads_elsewhere(n, world) for n in requesters))
            or system_library(name) is not None
        ):
            continue
        elif len(absent) == 1:
            holder = absent[0]
        facts = ElfFacts(
            machine=world.machine,
            bits=world.bits,
            big_endian=world.big_endian,
            soname=name,
            complete=False,
        )
        found[name] = Node(name, f"/external/{name}", facts, "external", holder, f"/external/{name}")
    return found


def required_distributions(wheel: WheelFacts, given: Sequence[WheelFacts]) -> tuple[frozenset[str], bool]:
    """What installing the wheel brings, itself included, and whether all of that is known.

    Requires-Dist of the wheel, and of each given wheel that it leads to; the second value is False where a
    distribution on the way was not given.
    """
    by_name = {distribution_of(w): w for w in given}
    found: set[str] = set()
    waiting = [distribution_of(wheel)]
    by_name.setdefault(waiting[0], wheel)
    known = True
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        if name in by_name:
            waiting += requirements_of(by_name[name] if name != distribution_of(wheel) else wheel)
        else:
            known = False
    return frozenset(found), known


def requirements_of(wheel: WheelFacts) -> tuple[str, ...]:
    """The distributions of Requires-Dist, normalised, without those that only an extra asks for."""
    if not wheel.requires_dist:
        return ()
    from packaging.requirements import InvalidRequirement, Requirement

    names = []
    for text in wheel.requires_dist:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if "extra" not in str(requirement.marker or ""):
            names.append(canonicalize_name(requirement.name))
    return tuple(dict.fromkeys(names))


def _preloaded(
    wheel: WheelFacts, given: Sequence[WheelFacts], world: World, providers: Sequence[Provider]
) -> Mapping[str, Node]:
    """Libraries of required distributions that importing those loads, by file name and SONAME.

    An extension module of the distribution reaches it, one of its .py members names it where it uses ctypes, or
    a provider rule says ``loads = "by-import"``.
    """
    required, _ = required_distributions(wheel, given)
    found: dict[str, Node] = {}
    for other in given:
        if distribution_of(other) not in required:
            continue
        nodes = [
            n for n in wheel_nodes(other, "given") if n.elf is not None and n.elf.machine == world.machine
        ]
        opened = {name for m in other.members for name in m.ctypes_names}
        for node in nodes:
            name = node.path.rpartition("/")[2]
            by_import = any(p.loads == "by-import" for p in providers_of(name, providers))
            if node.elf is not None and (node.elf.python_modules or name in opened or by_import):
                for one in load(world, node).scope:
                    if one.owner == "given" and one.elf is not None and not one.elf.python_modules:
                        found.setdefault(one.path.rpartition("/")[2], one)
                        if one.elf.soname is not None:
                            found.setdefault(one.elf.soname, one)
    return found


def providers_of(library: str, providers: Sequence[Provider]) -> tuple[Provider, ...]:
    """The provider rules that name the library. Several are alternatives: one SONAME, more than one place."""
    return tuple(p for p in providers if fnmatch.fnmatchcase(library, p.library))


def absent_requirements(wheel: WheelFacts, known: Iterable[str]) -> tuple[str, ...]:
    """Distributions of Requires-Dist that were not given."""
    given = frozenset(known)
    return tuple(n for n in requirements_of(wheel) if n not in given)


def of_an_absent(folder: str, world: World) -> bool:
    """Whether a folder is below one of site-packages that nothing given has: another distribution's, perhaps."""
    top = folder.removeprefix(SITE + "/").partition("/")[0]
    return folder.startswith(SITE + "/") and f"{SITE}/{top}" not in world.folders


def _leads_elsewhere(node: Node, world: World) -> bool:
    """A path of the object leads to a folder inside site-packages that nothing given has.

    ``NAME.libs`` is nobody else's: the folder that repair makes for its own distribution, and may not have made yet.
    """
    if node.elf is None:
        return False
    origin = posixpath.dirname(node.location)
    for entry in (node.elf.runpath or node.elf.rpath or "").split(":"):
        for token in ("$ORIGIN", "${ORIGIN}"):
            if entry == token or entry.startswith(token + "/"):
                folder = posixpath.normpath(origin + entry[len(token) :])
                top = folder[len(SITE) + 1 :].split("/")[0]
                own = "." in top and canonicalize_name(top.rpartition(".")[0]) == node.distribution
                if of_an_absent(folder, world) and not own:
                    return True
    return False
