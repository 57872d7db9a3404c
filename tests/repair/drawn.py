"""Wheels drawn at random for repair: which libraries they need, where those lie, and how they are to be found.

The objects are compiled once for each kind of path; the path itself is written into the room that the link left
for it, as chrpath does.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hypothesis import strategies as st

from tests.repair.conftest import TAG, Forge, value_declarations

Kind = Literal["rpath", "runpath"]
#: Opens a root as an interpreter opens an extension module, and prints what is loaded then, in order.
OPENER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
static int told(struct dl_phdr_info *info, size_t size, void *no) { return puts(info->dlpi_name) < 0; }
int main(int count, char **words) {
    if (dlopen(words[1], RTLD_NOW | RTLD_LOCAL) == 0) { puts(dlerror()); return 1; }
    return dl_iterate_phdr(told, 0);
}
"""
ROOM = "P" * 250
BUILD = "BUILD"  # in a path: the folder of this machine in which the objects were linked
NEIGHBOUR = "prov/lib"  # where another distribution installs libraries


@dataclass(frozen=True)
class Sort:
    """One library of the pool: its file's name, its SONAME (None: it has none), what it calls and needs."""

    file: str
    soname: str | None
    needs: tuple[str, ...] = ()
    source: str = ""  # where a constant is not enough
    flags: tuple[str, ...] = ()

    def files(self, named: str) -> set[str]:
        """What it is called in a wheel."""
        soname = self.soname or self.file
        return {
            "file": {self.file},
            "soname": {soname},
            "both": {soname, f"{self.file.partition('.so')[0]}.so"},
        }[named]


SORTS = {
    "base": Sort("libbase.so.1", "libbase.so.1"),
    "ver": Sort("libver.so.2", "libver.so.2", flags=("-Wl,--version-script=ver.map",)),
    # A chain, and with ``top`` a diamond.
    "left": Sort("libleft.so.1", "libleft.so.1", ("base",)),
    "right": Sort("libright.so", "libright.so", ("base", "ver")),
    "top": Sort("libtop.so.5", "libtop.so.5", ("left", "right")),
    # A cycle.
    "ring": Sort("libring.so.1", "libring.so.1", ("back",)),
    "back": Sort("libback.so.1", "libback.so.1", ("ring",)),
    # The file is called otherwise than its SONAME, and not in ASCII.
    "odd": Sort("lib odd ö.so", "libödd-3.so.3"),
    # Without SONAME and linked by its path: that path stands in DT_NEEDED.
    "plain": Sort("libplain.so", None),
    # arc4random came with glibc 2.36 (sysdeps/unix/sysv/linux/x86_64/64/libc.abilist).
    "new": Sort(
        "libnew.so.1", "libnew.so.1", source="#include <stdlib.h>\nlong new(void) { return arc4random(); }"
    ),
}


@dataclass(frozen=True)
class Library:
    """Where copies of a library are: folders of the wheel, the build folder, another distribution.

    ``named``: the name of its file in the wheel; "both" are two files, as archives make of a symbolic link, one of
    them without a version. ``twin``: the second of two copies in the wheel is another build of it.
    """

    folders: tuple[str, ...] = ()
    build: bool = False
    neighbour: bool = False
    named: Literal["file", "soname", "both"] = "soname"
    twin: bool = False
    path: tuple[Kind, str] | None = None


@dataclass(frozen=True)
class Module:
    folder: str
    needs: tuple[str, ...]
    idle: str | None = None  # a library that it is linked with and does not use
    path: tuple[Kind, str] | None = None


@dataclass(frozen=True)
class Case:
    """A wheel, this machine, and the command line."""

    modules: tuple[Module, ...]
    libraries: Mapping[str, Library] = field(default_factory=dict)
    tag: str = "linux_x86_64"
    told: Literal["LD_LIBRARY_PATH", "AUDITWHEEL_LD_LIBRARY_PATH", "--ldpaths"] | None = "LD_LIBRARY_PATH"
    given: Literal["--with", "--env"] | None = None  # the other distribution
    options: tuple[str, ...] = ()

    @property
    def excluded(self) -> tuple[str, ...]:
        """The libraries that --exclude names."""
        return tuple(n for n, s in SORTS.items() if "--exclude" in self.options and s.soname in self.options)

    @property
    def sure(self) -> bool:
        """Whether every library that an object of the wheel needs is at hand, once, and no tag forbids it.

        Copies in several folders that need a path, each another one, are no copies any more: one may be loaded
        for the other (soname-clash).
        """
        found = all(
            (k.folders or k.build or (k.neighbour and self.given) or n in self.excluded)
            and not (len(k.folders) > 1 and (k.twin or k.path or SORTS[n].needs))
            for n in closure(self.libraries)
            for k in (self.libraries.get(n, Library()),)
        )
        tagged = "new" not in self.libraries or not {"--plat", "--no-update-tags"} & {*self.options}
        return found and tagged and self.told is not None


class Pool:
    """The objects, made when first asked for, and the program that opens them."""

    def __init__(self, folder: Path) -> None:
        self.forge = Forge(folder)
        self.build = folder / "build"
        self._made: dict[tuple[object, ...], bytes] = {}
        (folder / "ver.map").write_text("V_1 { global: *; };")
        (folder / "opener.c").write_text(OPENER)
        self.opener = folder / "opener"
        subprocess.run(["gcc", folder / "opener.c", "-o", self.opener], check=True)
        for name in ("base", "ver", "ring", "back", *SORTS):  # what each is linked with goes first
            sort = SORTS[name]
            self._link(f"build/{sort.file}", name, (n for n in sort.needs if self._stub(n).exists()), 1, None)
        shutil.copytree(self.build, folder / "stubs")

    def _stub(self, name: str) -> Path:
        """What an object is linked with: without SONAME by its path in the build folder, which is then its name."""
        folder = self.forge.folder / "stubs"
        if SORTS[name].soname is None or not folder.exists():
            folder = self.build
        return folder / SORTS[name].file

    def _link(self, output: str, name: str, needs: Iterable[str], value: int, kind: Kind | None) -> Path:
        sort = SORTS[name]
        needs = tuple(needs)
        calls = " + ".join([str(value), *(f"{n}()" for n in needs)])
        source = sort.source or f"{value_declarations(calls)}long {name}(void) {{ return {calls}; }}"
        soname = () if sort.soname is None else (f"-Wl,-soname,{sort.soname}",)
        return self.forge.compile(output, source, *soname, *sort.flags, *self._flags(needs, kind))

    def _flags(self, needs: Iterable[str], kind: Kind | None) -> Iterator[str]:
        yield "-Wl,--no-as-needed,--allow-shlib-undefined"
        yield from (str(self._stub(n)) for n in needs)
        if kind is not None:
            yield f"-Wl,--{'en' if kind == 'runpath' else 'dis'}able-new-dtags,-rpath,{ROOM}"

    def library(self, name: str, path: tuple[Kind, str] | None, value: int = 1) -> bytes:
        kind = path[0] if path else None
        key = (name, kind, value)
        if key not in self._made:
            self._made[key] = self._link("made.so", name, SORTS[name].needs, value, kind).read_bytes()
        return self._with_path(self._made[key], path)

    def module(self, name: str, module: Module) -> bytes:
        """An object that has the entry function of an extension module and calls its libraries.

        It uses nothing of the interpreter, so that a program without one can open it.
        """
        kind = module.path[0] if module.path else None
        key = (name, module.needs, module.idle, kind)
        if key not in self._made:
            calls = " + ".join(["0", *(f"{n}()" for n in module.needs)])
            source = f"{value_declarations(calls)}long f(void) {{ return {calls}; }} void *PyInit_{name}(void) {{ return 0; }}"
            linked = dict.fromkeys((*module.needs, *([module.idle] if module.idle else [])))
            # A library without SONAME must lie in the build folder to be linked by its path there.
            self._filled({n: Library(build=True) for n in SORTS})
            made = self.forge.compile("made.so", source, *self._flags(linked, kind))
            self._made[key] = made.read_bytes()
        return self._with_path(self._made[key], module.path)

    def _with_path(self, data: bytes, path: tuple[Kind, str] | None) -> bytes:
        if path is None:
            return data
        text = path[1].replace(BUILD, str(self.build)).encode()
        assert data.count(ROOM.encode()) == 1
        return data.replace(ROOM.encode(), text.ljust(len(ROOM), b"\0"))

    def _filled(self, libraries: Mapping[str, Library]) -> None:
        shutil.rmtree(self.build, ignore_errors=True)
        self.build.mkdir()
        for name, library in libraries.items():
            if library.build:
                (self.build / SORTS[name].file).write_bytes(self.library(name, library.path))
                if SORTS[name].soname not in (None, SORTS[name].file):
                    (self.build / str(SORTS[name].soname)).symlink_to(SORTS[name].file)

    def lay_out(self, case: Case, folder: Path) -> tuple[Path, Path, Path]:
        """The wheel of a case, the one of its neighbour, and a folder of what --exclude leaves to the machine.

        The build folder holds what the case says.
        """
        members: dict[str, bytes] = {"pkg/__init__.py": b""}
        for i, module in enumerate(case.modules):
            place = "/".join(filter(None, (module.folder, f"_m{i}{self.forge.suffix}")))
            members[place] = self.module(f"_m{i}", module)
        beside = {"prov/__init__.py": b""}
        for name, library in case.libraries.items():
            sort = SORTS[name]
            for i, place in enumerate(library.folders):
                value = 2 if library.twin and i else 1
                for file in sort.files(library.named):
                    members["/".join(filter(None, (place, file)))] = self.library(name, library.path, value)
            if library.neighbour:
                beside[f"{NEIGHBOUR}/{sort.soname or sort.file}"] = self.library(name, None)
        machine = folder / "machine"
        machine.mkdir(parents=True)
        for name in case.excluded:
            (machine / str(SORTS[name].soname)).write_bytes(self.library(name, None))
        self._filled(case.libraries)
        forge = Forge(folder)
        tag = f"{TAG}-{TAG}-{case.tag}"
        return forge.wheel("x", members, tag=tag), forge.wheel("prov", beside, folder="beside"), machine


FOLDERS = ("", "pkg", "pkg/lib", "pkg/deep/er", "x.libs", "my pkg/ö")
PATHS = (
    *("$ORIGIN", "$ORIGIN", "$ORIGIN/lib", "$ORIGIN/../lib", "$ORIGIN/../x.libs", "${ORIGIN}/../pkg/lib"),
    *("$ORIGIN/..", "$ORIGIN/nowhere", f"$ORIGIN/../{NEIGHBOUR}", BUILD, BUILD, ""),
)
#: At most one of each line.
OPTIONS: tuple[tuple[tuple[str, ...], ...], ...] = (
    ((), (), (), (), ("--strip",), ("-L", ".own"), ("-z", "0"), ("--no-verify",)),
    ((), (), (), ("--plat", "manylinux_2_17_x86_64"), ("--plat", "manylinux_2_41_x86_64", "--only-plat")),
    ((), (), (), (), ("--no-update-tags",)),
    ((), (), (), (), ("--exclude", "libbase.so.1"), ("--exclude", "libver.so.2")),
    ((), (), (), (), (), ("--ld-library-path", "pkg/lib")),
)

_paths = st.one_of(
    st.none(),
    st.tuples(
        st.sampled_from(("runpath", "runpath", "rpath")),
        st.lists(st.sampled_from(PATHS), min_size=1, max_size=2, unique=True).map(":".join),
    ),
)
_folders = st.sampled_from(FOLDERS)


@st.composite
def _modules(draw: st.DrawFn) -> Module:
    needs = draw(st.lists(st.sampled_from([*SORTS]), max_size=3, unique=True))
    idle = draw(st.sampled_from((None, None, None, "base", "ver", "left")))
    return Module(draw(_folders), tuple(needs), idle if idle not in needs else None, draw(_paths))


@st.composite
def _libraries(draw: st.DrawFn, excluded: bool, leaf: bool) -> Library:
    where = draw(
        st.sampled_from(("wheel",) * 12 + ("build",) * 16 + ("both",) * 4 + ("neighbour", "nowhere"))
    )
    in_wheel = where in ("wheel", "both") and not excluded
    count = draw(st.sampled_from((1,) * 7 + (2,))) if in_wheel else 0
    return Library(
        tuple(draw(st.lists(_folders, min_size=count, max_size=count, unique=True))),
        build=where in ("build", "both"),
        neighbour=where == "neighbour" and leaf,
        named=draw(st.sampled_from(("soname", "soname", "soname", "file", "both"))),
        twin=draw(st.sampled_from((False, False, True))),
        path=draw(_paths),
    )


def closure(names: Iterable[str]) -> tuple[str, ...]:
    """The libraries and what they need in turn."""
    found: dict[str, None] = {}
    waiting = [*names]
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found[name] = None
            waiting += SORTS[name].needs
    return tuple(found)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    modules = tuple(draw(st.lists(_modules(), min_size=1, max_size=5)))
    case = Case(
        modules,
        tag=draw(st.sampled_from(("linux_x86_64", "manylinux_2_17_x86_64.manylinux2014_x86_64"))),
        told=draw(
            st.sampled_from(("LD_LIBRARY_PATH",) * 4 + ("AUDITWHEEL_LD_LIBRARY_PATH", "--ldpaths", None))
        ),
        given=draw(st.sampled_from(("--with", "--env", None))),
        options=tuple(word for line in OPTIONS for word in draw(st.sampled_from(line))),
    )
    needed = closure(n for m in modules for n in (*m.needs, *([m.idle] if m.idle else [])))
    alone = draw(st.sampled_from((None, None, None, *SORTS)))  # in the wheel, though perhaps nobody needs it
    names = dict.fromkeys((*needed, *([alone] if alone else [])))
    libraries = {n: draw(_libraries(n in case.excluded, not SORTS[n].needs)) for n in names}
    return Case(case.modules, libraries, case.tag, case.told, case.given, case.options)
