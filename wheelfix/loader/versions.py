"""The versions that objects need of files, checked when they are loaded and before any symbol is looked up.

glibc: ``elf/dl-version.c``, ``_dl_check_map_versions``. musl has no such check.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Literal, NamedTuple

from wheelfix.model.resolution import Load, Node, World

VersionTrouble = Literal["missing", "orphan", "unversioned"]


class VersionError(NamedTuple):
    """One version that an object needs of a file, and why that fails.

    ``missing``: the file lacks the version, and loading stops with ``version ... not found``. ``orphan``: no
    loaded object goes by the file's name, and ld.so aborts the process on a failed assertion.
    ``unversioned``: the file holds the symbol and has no versions at all; ld.so aborts as well.
    """

    root: str
    object: str
    file: str
    version: str
    trouble: VersionTrouble
    provider: str | None = None  # the loaded object that goes by the file's name


def loaded_by_name(world: World, load: Load) -> Mapping[str, Node]:
    """The loaded objects by every name that the loader knows them under.

    glibc (``_dl_name_match_p``) compares with the names that were asked for and with the path, and takes
    up a SONAME only when somebody asks for it.
    """
    nodes = {n.path: n for n in load.scope}
    names: dict[str, Node] = {}
    for node in () if load.root.elf is not None and load.root.elf.is_program else world.interpreter:
        soname = node.elf.soname if node.elf is not None else None
        names.setdefault(soname or posixpath.basename(node.location), node)
    for edge in load.edges:
        if edge.path in nodes:
            names.setdefault(edge.needed, nodes[edge.path])
    for node in load.scope:
        names.setdefault(node.location, node)
    return names


def version_errors(world: World, load: Load) -> tuple[VersionError, ...]:
    """Every version that an object of the load needs and that the file which verneed names cannot give.

    A weak need (VER_FLG_WEAK) may fail, and a file without verdef passes. Nothing is said about files of
    which only the name is known, whose data may be older than the machine, or that stay missing.
    """
    if world.libc == "musl":
        return ()
    names = loaded_by_name(world, load)
    asked = {e.needed for e in load.edges}
    errors = []
    for node in load.scope:
        for need in node.elf.verneed if node.elf is not None else ():
            provider = names.get(need.file)
            if provider is None:
                if need.file not in asked:
                    errors += [
                        VersionError(load.root.path, node.path, need.file, v.name, "orphan")
                        for v in need.versions
                    ]
                continue
            elf = provider.elf
            if elf is None or not elf.complete or elf.open_ended or not elf.verdef:
                continue
            given = {d.name for d in elf.verdef}
            errors += [
                VersionError(load.root.path, node.path, need.file, v.name, "missing", provider.path)
                for v in need.versions
                if v.name not in given and not v.weak
            ]
    return tuple(errors)
