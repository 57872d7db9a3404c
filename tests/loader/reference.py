"""The search of both loaders once more: slow, in the order of the rules of DESIGN section 3, and nothing shared.

A world is a plain list of files with absolute places; what each rule says stands in one place, so that it can be read
beside its source: ld.so(8), elf/dl-load.c and elf/dl-deps.c of glibc, ldso/dynlink.c of musl.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

LAST = "the host's cache and default folders"


@dataclass(frozen=True)
class File:
    """A file and what the search can see in it. ``kind``: library, program (a PIE), alien (another machine), text."""

    place: str
    kind: str = "library"
    needed: tuple[str, ...] = ()
    soname: str | None = None
    rpath: str | None = None
    runpath: str | None = None
    nodeflib: bool = False
    walked: bool = True  # False: a library of which only the name is known


@dataclass(frozen=True)
class Scenery:
    """Files of the disk, further folders, and what stands outside: by the name that is asked for."""

    libc: str
    files: tuple[File, ...]
    folders: frozenset[str] = frozenset()
    library_path: tuple[str, ...] = ()
    host: dict[str, File] = field(default_factory=dict)
    preloaded: dict[str, File] = field(default_factory=dict)
    externals: dict[str, File] = field(default_factory=dict)
    interpreter: tuple[File, ...] = ()
    subfolders: tuple[str, ...] = ()

    def is_folder(self, place: str) -> bool:
        every = [f.place for f in self.files]
        return place == "/" or place in self.folders or any(p.startswith(place + "/") for p in every)

    def file(self, place: str | None) -> File | None:
        return next((f for f in self.files if f.place == place), None)


@dataclass
class Opened:
    """One object of the process, and the names by which the loader knows it."""

    file: File
    names: list[str]


#: What became of one name: object, name, status, place, rule, whose entry, files tried.
Outcome = tuple[str, str, str, "str | None", "str | None", "str | None", tuple[str, ...]]


def load(world: Scenery, root: File) -> tuple[list[str], list[Outcome]]:
    """The places of the scope in order, and the outcome of every name."""
    glibc = world.libc == "glibc"
    program = root.kind == "program" and root.soname is None
    process: list[Opened] = []
    for index, file in enumerate((root,) if program else world.interpreter):
        if index == 0:  # the kernel mapped it: it has no name but its SONAME
            process.append(Opened(File("(the program)"), []))
            if glibc and file.soname is not None:
                process[0] = Opened(file, [file.soname])
        else:
            _know(process, file, file.place.rpartition("/")[2], glibc)
    if not program:
        _know(process, root, None, glibc)
    scope, loader, outcomes = [root], {root.place: None}, []
    for requester in scope:  # grows while it is walked: breadth first
        if not requester.walked:
            continue
        chain = [requester]
        while loader[chain[-1].place] is not None:
            chain.append(loader[chain[-1].place])
        if not program:
            chain += world.interpreter[:1]
        for name in dict.fromkeys(requester.needed):
            status, found, rule, via, tried = _one(world, name, chain, process, program)
            place = found.place if found is not None else None
            outcomes.append((requester.place, name, status, place, rule, via, tried))
            if found is not None and found.place not in loader:
                scope.append(found)
                loader[found.place] = requester
    return [f.place for f in scope], outcomes


def _one(
    world: Scenery, name: str, chain: list[File], process: list[Opened], program: bool
) -> tuple[str, File | None, str | None, str | None, tuple[str, ...]]:
    glibc = world.libc == "glibc"
    asked = _expanded(name, chain[0]) if glibc else name
    for one in process:
        if asked in one.names:
            outside = [*world.host.values(), *world.interpreter]
            if one.file in outside:
                return "host", one.file, "soname-loaded", None, ()
            if one.file in world.externals.values():
                return "external", one.file, None, None, ()
            return "already-loaded", one.file, "soname-loaded", None, ()
    status, found, rule, via, tried = _searched(world, name, asked, chain, program)
    if found is not None:
        if glibc and found.kind == "program" and not any(o.file.place == found.place for o in process):
            return "missing", None, None, None, tried
        _know(process, found, asked, glibc)
    return status, found, rule, via, tried


def _know(process: list[Opened], file: File, name: str | None, glibc: bool) -> None:
    """The object is in the process, and was asked for by this name (None: opened by its path)."""
    known = next((o for o in process if o.file.place == file.place), None)
    first = known is None
    if known is None:
        known = Opened(file, [])
        process.append(known)
    if glibc:
        known.names += [n for n in (name, file.soname, file.place) if n is not None]
    elif name is not None and "/" not in name and not known.names:
        # One name for ever: that of the search, or its own for a file that was opened by its path before.
        known.names.append(name if first else file.place.rpartition("/")[2])


def _searched(
    world: Scenery, name: str, asked: str, chain: list[File], program: bool
) -> tuple[str, File | None, str | None, str | None, tuple[str, ...]]:
    if "/" in asked:
        file = world.file(_reached(world, asked)) if asked.startswith("/") else None
        fit = file is not None and file.kind in ("library", "program")
        return ("found", file, None, None, (name,)) if fit else ("missing", None, None, None, (name,))
    if world.libc == "musl" and asked.split(".")[0] in (
        *("libc", "libpthread", "librt", "libm", "libdl", "libutil", "libxnet"),
    ):
        return "host", world.host["libc.so"], "default", None, ()
    tried = []
    for rule, via, folder in _folders(world, chain):
        for inner in (*world.subfolders, "."):
            inside = _reached(world, f"{folder}/{inner}/.")
            place = _reached(world, f"{folder}/{inner}/{asked}")
            if inside is None or not world.is_folder(inside) or place is None:
                continue
            tried.append(place)
            file = world.file(place)
            if file is not None and file.kind == "alien" and world.libc == "glibc":
                continue
            if file is not None and file.kind in ("library", "program"):
                return "found", file, rule, via, tuple(tried)
            if file is not None or world.is_folder(place):
                return "missing", None, rule, via, tuple(tried)
    tried.append(LAST)
    closed = world.libc == "glibc" and chain[0].nodeflib
    if asked in world.host and not closed:
        return "host", world.host[asked], "default", None, tuple(tried)
    last = chain[-1]
    if asked in world.preloaded and not (program or (last.kind == "program" and last.soname is None)):
        return "already-loaded", world.preloaded[asked], "soname-loaded", None, tuple(tried)
    if asked in world.externals:
        return "external", world.externals[asked], None, None, tuple(tried)
    return "missing", None, None, None, tuple(tried)


def _folders(world: Scenery, chain: list[File]) -> Iterator[tuple[str, str | None, str]]:
    requester = chain[0]
    if world.libc == "musl":
        for folder in world.library_path:
            yield "ld-library-path", None, folder
        for file in chain:
            if file.runpath is not None:
                yield from _entries(file, "runpath", file.runpath, musl=True)
            elif file.rpath is not None:
                yield from _entries(file, "rpath", file.rpath, musl=True)
        return
    if requester.runpath is None:
        for file in chain:
            if file.rpath is not None and file.runpath is None:
                yield from _entries(file, "rpath", file.rpath)
    for folder in world.library_path:
        yield "ld-library-path", None, folder
    if requester.runpath is not None:
        yield from _entries(requester, "runpath", requester.runpath)


def _entries(file: File, rule: str, path: str, musl: bool = False) -> Iterator[tuple[str, str, str]]:
    if not musl:
        expanded = [_expanded(entry, file) for entry in path.split(":")]
    else:
        origin = file.place.rpartition("/")[0]
        text = path.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
        if "$" in text:
            return
        expanded = text.replace("\n", ":").split(":")
    for folder in expanded:
        if folder.startswith("/"):
            yield rule, file.place, folder


def _expanded(text: str, file: File) -> str:
    """glibc's dynamic string tokens; without braces a token ends where an identifier would."""
    values = {"ORIGIN": file.place.rpartition("/")[0], "LIB": "lib64", "PLATFORM": "x86_64"}
    done = ""
    while text:
        for token, value in values.items():
            braced, bare = "${" + token + "}", "$" + token
            after = text[len(bare) : len(bare) + 1]
            if text.startswith(braced):
                done, text = done + value, text[len(braced) :]
                break
            if text.startswith(bare) and not (after.isalnum() or after == "_"):
                done, text = done + value, text[len(bare) :]
                break
        else:
            done, text = done + text[0], text[1:]
    return done


def _reached(world: Scenery, path: str) -> str | None:
    """Where the kernel's walk ends, component by component; each but the last must be a folder."""
    at: list[str] = []
    for part in path.split("/")[1:]:
        if not world.is_folder("/" + "/".join(at)):
            return None
        if part == "..":
            at = at[:-1]
        elif part not in ("", "."):
            at.append(part)
    return "/" + "/".join(at)
