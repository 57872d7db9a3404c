"""Who loads whom, from where and by which rule, on random worlds: against a second writing of the rules, and on a disk
against the real loader."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.elf.conftest import make_elf
from tests.loader import reference
from tests.loader.conftest import _OPENER
from tests.loader.observed import agree
from tests.loader.reference import File, Scenery
from wheelfix.host import machine
from wheelfix.loader import closure
from wheelfix.model.elf import DF_1_NODEFLIB, DF_1_PIE, ElfFacts
from wheelfix.model.resolution import Node, Owner, World

NAMES = ("liba.so", "libb.so", "libd.so.1", "lib$PLATFORM.so", "libx86_64.so", "libm.so.6")
FOLDERS = ("/w", "/w/lib", "/w/lib/sub", "/w/lib64", "/w/opt", "/w/lib/hw")
ENTRIES = (
    *(
        "$ORIGIN",
        "${ORIGIN}",
        "$ORIGIN/lib",
        "${ORIGIN}/sub",
        "$ORIGIN/..",
        "$ORIGIN/../opt",
        "$ORIGIN/./lib/",
    ),
    *(
        "$ORIGIN/nowhere/..",
        "$ORIGIN/liba.so/..",
        "$ORIGIN/lib/../opt",
        "/w/opt",
        "/w//lib/sub/.",
        "/w/nowhere",
    ),
    *("", ".", "lib", "$ORIGINAL", "$ORIGIN0", "$ORIGIN/$LIB", "${ORIGIN", "/w/${LIB}", "$ORIGIN/$UNKNOWN"),
)
ODD_NAMES = (
    "/w/lib/liba.so",
    "$ORIGIN/libb.so",
    "${ORIGIN}/../lib/libb.so",
    "lib/liba.so",
    "$ORIGINAL/liba.so",
)

_names = st.sampled_from(NAMES)
_wanted = st.lists(st.one_of(_names, _names, _names, st.sampled_from(ODD_NAMES)), max_size=4).map(tuple)


def _path(separators: str) -> st.SearchStrategy[str | None]:
    parts = st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=3)
    joined = st.tuples(parts, st.sampled_from(separators)).map(lambda drawn: drawn[1].join(drawn[0]))
    return st.one_of(st.none(), st.none(), joined)


@st.composite
def _file(draw: st.DrawFn, place: str, kinds: tuple[str, ...], separators: str) -> File:
    kind = draw(st.sampled_from(("library",) * 6 + kinds))
    return File(
        place,
        kind,
        needed=draw(_wanted),
        soname=draw(st.one_of(st.none(), st.just(place.rpartition("/")[2]), _names)),
        rpath=draw(_path(separators)),
        runpath=draw(_path(separators)),
        nodeflib=draw(st.sampled_from((False, False, False, True))),
    )


@st.composite
def _files(draw: st.DrawFn, kinds: tuple[str, ...], separators: str = ":") -> tuple[File, ...]:
    """The first is the root; of the others few or many are there."""
    places = [f"{folder}/{name}" for folder in FOLDERS for name in NAMES if "$" not in name]
    chosen = draw(st.lists(st.sampled_from(places), min_size=1, max_size=9, unique=True))
    return (
        draw(_file("/w/root.so", (), separators)),
        *(draw(_file(place, kinds, separators)) for place in chosen),
    )


def _outside(where: str) -> st.SearchStrategy[dict[str, File]]:
    """Libraries by the name that is asked for; two names may lead to one file."""

    def made(names: dict[str, str | None]) -> dict[str, File]:
        files = {n: File(f"/{where}/{n}", soname=s, walked=where != "external") for n, s in names.items()}
        return files | {s: f for f in files.values() if (s := f.soname) is not None and s not in files}

    return st.dictionaries(_names, st.one_of(st.none(), _names), max_size=2).map(made)


@st.composite
def _sceneries(draw: st.DrawFn, libc: str) -> Scenery:
    host = draw(_outside("host"))
    interpreter: tuple[File, ...] = ()
    if libc == "musl":
        host["libc.so"] = File("/host/ld-musl.so")
        host = {n: f for n, f in host.items() if not n.startswith("libm.")}
    elif draw(st.booleans()):
        python = File("/w/python", soname=draw(st.sampled_from((None, "liba.so"))), rpath=draw(_path(":")))
        interpreter = (python, *(f for n, f in sorted(host.items()) if draw(st.booleans())))
    files = draw(_files(("text", "alien", "program"), ":\n" if libc == "musl" else ":"))
    if draw(st.sampled_from((False, False, True))):  # a program, which starts a process of its own
        files = (replace(files[0], kind="program", soname=None), *files[1:])
    taken = {f.place for f in files}
    extra = draw(st.sets(st.sampled_from((*FOLDERS, "/w/lib/liba.so")), max_size=4))
    return Scenery(
        libc,
        files,
        frozenset(part for e in extra - taken for part in _with_parents(e)) | {"/w"},
        tuple(draw(st.lists(st.sampled_from(("/w/opt", "/w/lib", "/w/lib/sub")), max_size=2, unique=True))),
        host,
        draw(_outside("preloaded")),
        draw(_outside("external")),
        interpreter,
        ("hw",) if libc == "glibc" and draw(st.booleans()) else (),
    )


def _with_parents(place: str) -> Iterator[str]:
    while place != "/":
        yield place
        place = place.rpartition("/")[0] or "/"


def _node(file: File, owner: Owner = "wheel") -> Node:
    facts = ElfFacts(
        machine=183 if file.kind == "alien" else 62,
        needed=file.needed,
        soname=file.soname,
        rpath=file.rpath,
        runpath=file.runpath,
        flags_1=(DF_1_PIE if file.kind == "program" else 0) | (DF_1_NODEFLIB if file.nodeflib else 0),
        complete=file.walked,
    )
    return Node(file.place, file.place, None if file.kind == "text" else facts, owner, None, file.place)


def _world(scenery: Scenery) -> World:
    folders = {"/", *scenery.folders}
    folders.update(part for f in scenery.files for part in _with_parents(f.place.rpartition("/")[0] or "/"))
    folders.update(("/host",))

    def nodes(files: dict[str, File], owner: Owner) -> dict[str, Node]:
        return {name: _node(file, owner) for name, file in files.items()}

    return World(
        {f.place: _node(f) for f in scenery.files},
        folders,
        host=nodes(scenery.host, "host"),
        preloaded=nodes(scenery.preloaded, "given"),
        externals=nodes(scenery.externals, "external"),
        interpreter=tuple(_node(f, "interpreter") for f in scenery.interpreter),
        libc=scenery.libc,  # type: ignore[arg-type]
        library_path=scenery.library_path,
        subfolders=scenery.subfolders,
    )


@pytest.mark.parametrize("libc", ["glibc", "musl"])
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_search_ends_where_the_rules_say(libc: str, data: st.DataObject) -> None:
    scenery = data.draw(_sceneries(libc))
    root = scenery.files[0]
    scope, outcomes = reference.load(scenery, root)
    ours = closure.load(_world(scenery), _node(root))
    assert [n.location for n in ours.scope] == scope
    told = [(e.object, e.needed, e.status, e.path, e.rule, e.via, e.tried) for e in ours.edges]
    assert told == outcomes


@pytest.fixture(scope="session")
def opens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that opens its argument as an interpreter opens an extension module."""
    folder = tmp_path_factory.mktemp("opens")
    (folder / "opens.c").write_text(_OPENER)
    subprocess.run(["gcc", "opens.c", "-o", "opens"], check=True, cwd=folder)
    return folder / "opens"


def _laid_out(files: tuple[File, ...], folders: frozenset[str], base: Path) -> None:
    """The files of a world below ``base`` in place of /w, as objects that the loader of this machine can map."""

    def here(text: str | None) -> str | None:
        return None if text is None else text.replace("/w", str(base))

    for folder in folders:
        Path(here(folder) or "").mkdir(parents=True, exist_ok=True)
    for file in files:
        place = Path(here(file.place) or "")
        place.parent.mkdir(parents=True, exist_ok=True)
        flags = (0x08000000 if file.kind == "program" else 0) | (0x800 if file.nodeflib else 0)
        data = make_elf(
            machine=183 if file.kind == "alien" else 62,
            needed=[here(n) or "" for n in file.needed],
            soname=file.soname,
            rpath=here(file.rpath),
            runpath=here(file.runpath),
            dynamic=[(0x6FFFFFFB, flags)] if flags else [],
        )
        place.write_bytes(b"INPUT(libb.so)\n" * 20 if file.kind == "text" else data)


_ON_DISK = _files(("text", "alien", "program")).map(
    # What the observation of the real loader cannot tell apart is left to the test above.
    lambda files: tuple(
        replace(f, needed=tuple(n for n in f.needed if "{" not in n and "P" not in n and "AL" not in n))
        for f in files
    )
)


_BY_ITS_OWN_PATH = (
    File("/w/root.so", needed=("libb.so", "liba.so"), runpath="$ORIGIN/lib"),
    File("/w/lib/libb.so", needed=("$ORIGIN/libb.so",)),
    File("/w/lib/liba.so", needed=("$ORIGIN/libb.so",)),
)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@example(files=_BY_ITS_OWN_PATH, library_path=[])
@example(
    files=(replace(_BY_ITS_OWN_PATH[0], runpath="$ORIGIN/lib/../lib"), *_BY_ITS_OWN_PATH[1:]), library_path=[]
)
@given(files=_ON_DISK, library_path=st.lists(st.sampled_from(FOLDERS), max_size=2, unique=True))
def test_every_search_ends_where_the_loader_of_this_machine_ends_it(
    opens: Path, files: tuple[File, ...], library_path: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder).resolve()
        _laid_out(files, frozenset(library_path), base)
        tokens = {"lib_token": machine.lib_token(), "platform_token": machine.platform_token()}
        agree(base / "root.so", opens, [p.replace("/w", str(base)) for p in library_path], **tokens)
