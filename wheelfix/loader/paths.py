"""The path algebra of the loader: search lists, dynamic string tokens, and what the kernel makes of a path."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container, Iterator, Mapping

from wheelfix.model.resolution import PREFIX, SCRIPTS, SITE, World

# glibc elf/dl-load.c, is_dst: a token ends where an identifier could not go on, so $ORIGINAL is none.
_GLIBC_TOKEN = re.compile(r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))")
# musl ldso/dynlink.c, fixup_rpath: only ORIGIN, and whatever follows.
_MUSL_TOKEN = re.compile(r"\$(?:\{ORIGIN\}|ORIGIN)")
_MUSL_UNKNOWN = re.compile(r"\$(?!\{ORIGIN\}|ORIGIN)")


def elements(path: str | None, libc: str) -> list[str]:
    """The elements of a search path, empty ones kept; musl also splits at newlines."""
    if not path:
        return []
    return re.split("[:\n]", path) if libc == "musl" else path.split(":")


def expanded(element: str, origin: str, world: World) -> str | None:
    """One element with its tokens replaced, as an absolute folder that is not yet resolved.

    None for an element that depends on the working directory (empty, relative): it never leads anywhere
    here. ``origin`` is the folder of the object that holds the element.
    """
    if world.libc == "musl":
        folder = _MUSL_TOKEN.sub(lambda _: origin, element)
        if "$" in folder:
            return None
    else:
        folder = _glibc_expanded(element, origin, world)
    return folder if folder.startswith("/") else None


def _glibc_expanded(text: str, origin: str, world: World) -> str:
    values = {"ORIGIN": origin, "LIB": world.lib_token, "PLATFORM": world.platform_token}
    return _GLIBC_TOKEN.sub(lambda m: values[m[1] or m[2]], text)


def folders_of(path: str | None, origin: str, world: World) -> Iterator[tuple[str, str]]:
    """The elements of a DT_RPATH or DT_RUNPATH that lead somewhere, each as written and as an absolute folder.

    musl drops a path as a whole if any of it holds another token than ``$ORIGIN`` (fixup_rpath).
    """
    if world.libc == "musl" and path and _MUSL_UNKNOWN.search(path):
        return
    for entry in elements(path, world.libc):
        folder = expanded(entry, origin, world)
        if folder is not None:
            yield entry, folder


def needed_name(name: str, requester: str, world: World) -> str:
    """The name that DT_NEEDED asks for: glibc expands tokens in it before anything else is done with it.

    ``requester`` is the location of the object. elf/dl-deps.c, expand_dst; musl takes the name as it is.
    """
    if world.libc == "musl" or "$" not in name:
        return name
    return _glibc_expanded(name, posixpath.dirname(requester), world)


def resolved(path: str, folders: Container[str], links: Mapping[str, str]) -> str | None:
    """Where an absolute path leads: ``x/..`` needs a folder ``x``, as in the kernel's own walk.

    The last component may be anything; None where a folder on the way does not exist. ``links`` are those of ``World``.
    """
    parts = [p for p in path.split("/") if p not in ("", ".")]
    at = "/"
    for index, part in enumerate(parts):
        at = posixpath.dirname(links.get(at, at)) if part == ".." else posixpath.join(at, part)
        if index < len(parts) - 1 and at not in folders:
            return None
    return at


def readable(location: str) -> str:
    """A location as people read it: relative to site-packages, ``scripts:`` and ``data:`` for those schemes."""
    for root, prefix in ((SITE, ""), (SCRIPTS, "scripts:"), (PREFIX, "data:")):
        if location.startswith(root + "/"):
            return prefix + location[len(root) + 1 :]
    return location
