"""What opening an object loads, on literal facts: filters, what is refused, and the names that are known again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.loader.test_search import INIT, named, node, world
from wheelfix.loader.closure import load, loads
from wheelfix.model.elf import DF_1_NOOPEN, DF_1_PIE, ET_EXEC, ElfFacts
from wheelfix.model.resolution import Load, Node, World

HERE = {"rpath": "$ORIGIN"}


def scope(root: Node, *others: Node, **more: object) -> list[str]:
    return [n.path for n in load(world(root, *others, **more), root).scope]


def edges(done: Load) -> list[tuple[str, str, str, str | None]]:
    return [(e.object, e.needed, e.status, e.path) for e in done.edges]


def test_what_is_needed_is_loaded_level_by_level_and_each_once() -> None:
    root = node("x.so", "a.so", "b.so", "a.so", **HERE)
    others = node("a.so", "c.so", "b.so"), node("b.so", "c.so", "x.so"), node("c.so")
    done = load(world(root, *others), root)
    assert [n.path for n in done.scope] == ["x.so", "a.so", "b.so", "c.so"]
    assert edges(done) == [
        ("x.so", "a.so", "found", "a.so"),
        ("x.so", "b.so", "found", "b.so"),
        ("a.so", "c.so", "found", "c.so"),
        ("a.so", "b.so", "already-loaded", "b.so"),
        ("b.so", "c.so", "already-loaded", "c.so"),
        ("b.so", "x.so", "already-loaded", "x.so"),
    ]


# elf/dl-deps.c: a filtee goes right before its filter; an auxiliary one may be missing; musl knows neither.


def test_filtees_stand_before_their_filter_in_their_own_order() -> None:
    root, last = node("x.so", "a.so", "b.so", **HERE), node("b.so")
    a = node("a.so", "d.so", filters=("f.so", "g.so"), auxiliaries=("h.so", "none.so"))
    others = a, last, *(node(f"{n}.so") for n in "dfgh")
    assert scope(root, *others) == ["x.so", "f.so", "g.so", "h.so", "a.so", "b.so", "d.so"]
    assert scope(root, *others, libc="musl") == ["x.so", "a.so", "b.so", "d.so"]


def test_the_dependencies_of_a_filtee_are_loaded_too() -> None:
    root = node("x.so", "a.so", **HERE)
    others = node("a.so", filters=("f.so",)), node("f.so", "e.so"), node("e.so")
    assert scope(root, *others) == ["x.so", "f.so", "a.so", "e.so"]


def test_a_filtee_that_is_loaded_already_is_moved_to_the_front_and_never_to_the_back() -> None:
    a, f = node("a.so", filters=("f.so",)), node("f.so")
    assert scope(node("x.so", "a.so", "b.so", "f.so", **HERE), a, f, node("b.so")) == [
        "x.so", "f.so", "a.so", "b.so"
    ]  # fmt: skip
    assert scope(node("x.so", "f.so", "a.so", "b.so", **HERE), a, f, node("b.so")) == [
        "x.so", "f.so", "a.so", "b.so"
    ]  # fmt: skip
    assert scope(node("f.so", "a.so", **HERE), a) == ["f.so", "a.so"]


def test_an_object_that_names_itself_as_its_filtee_stays_where_it_is() -> None:
    a = node("a.so", filters=("a.so", "f.so"))
    assert scope(node("x.so", "a.so", **HERE), a, node("f.so")) == ["x.so", "f.so", "a.so"]


def test_the_filter_of_the_root_stands_behind_its_filtee() -> None:
    assert scope(node("x.so", filters=("f.so",), **HERE), node("f.so")) == ["f.so", "x.so"]


def test_a_missing_filtee_is_an_error_and_a_missing_auxiliary_one_is_none() -> None:
    root = node("x.so", filters=("f.so",), auxiliaries=("h.so",))
    assert edges(load(world(root), root)) == [("x.so", "f.so", "missing", None)]


def test_a_name_that_is_needed_and_filtered_is_one_edge() -> None:
    root = node("x.so", "f.so", filters=("f.so",), auxiliaries=("f.so",), **HERE)
    assert edges(load(world(root, node("f.so")), root)) == [("x.so", "f.so", "found", "f.so")]


# elf/dl-load.c, _dl_map_object_from_fd: what the loader finds and does not take.


@pytest.mark.parametrize(
    ("facts", "glibc", "musl"),
    [
        ({"type": ET_EXEC}, "is a program,", "is a program,"),
        ({"dynamic": False}, "has no dynamic section", "has no dynamic section"),
        ({"flags_1": DF_1_PIE}, "is a position-independent program,", None),
        ({"flags_1": DF_1_NOOPEN}, "forbids being opened", None),
        ({"flags_1": 1}, None, None),
        ({"complete": False, "dynamic": False}, None, None),
    ],
)
def test_what_the_loader_refuses(facts: dict[str, object], glibc: str | None, musl: str | None) -> None:
    root, library = node("x.so", "a.so", **HERE), node("a.so", "b.so", **facts)
    for libc, reason in (("glibc", glibc), ("musl", musl)):
        (edge, *_) = load(world(root, library, libc=libc), root).edges
        assert (edge.status, edge.path) == (("missing", None) if reason else ("found", "a.so"))
        assert edge.tried == ("a.so",) if reason is None else edge.tried[0] == "a.so"
        assert (edge.detail or "").startswith(f"a.so {reason}" if reason else "")


def test_a_program_may_start_with_a_library_that_cannot_be_opened() -> None:
    program = node("tool", "a.so", type=ET_EXEC, **HERE)
    assert scope(program, node("a.so", flags_1=DF_1_NOOPEN)) == ["tool", "a.so"]
    assert scope(program, node("a.so", type=ET_EXEC)) == ["tool"]


def test_what_is_loaded_already_is_not_refused() -> None:
    python = Node("interpreter", "/prefix/bin/python", ElfFacts(), "interpreter")
    libc = node("c.so", owner="host", flags_1=DF_1_NOOPEN)
    root = node("x.so", "c.so", "other.so", **HERE)
    link = replace(libc, path="other.so", location=root.location.replace("x.so", "other.so"))
    done = load(world(root, link, interpreter=(python, libc)), root)
    assert [(e.needed, e.status, e.path) for e in done.edges] == [
        ("c.so", "host", "c.so"),
        ("other.so", "found", "c.so"),
    ]


# The names under which objects are known again.


def test_the_loader_of_a_program_is_there_before_its_libraries() -> None:
    program = node(
        "tool", "ld-linux-x86-64.so.2", type=ET_EXEC, interpreter="/lib64/ld-linux-x86-64.so.2", soname=None
    )
    host = named("ld-linux-x86-64.so.2", "host")
    (edge,) = load(world(program, host=host), program).edges
    assert (edge.status, edge.rule) == ("host", "soname-loaded")
    other = replace(program, elf=replace(program.elf, interpreter=None))
    (edge,) = load(world(other, host=host), other).edges
    assert (edge.status, edge.rule) == ("host", "default")


def process(*rest: Node, **facts: object) -> dict[str, object]:
    return {"interpreter": (Node("python", "/prefix/bin/python", ElfFacts(**facts), "interpreter"), *rest)}  # type: ignore[arg-type]


def test_the_interpreter_is_known_by_its_soname_alone_and_its_libraries_by_their_files_too() -> None:
    root = node("x.so", "python", "libpython.so", "file.so", "libz.so")
    library = Node("z", "/usr/lib/file.so", ElfFacts(soname="libz.so"), "host")
    done = load(world(root, **process(library, soname="libpython.so")), root)
    assert [(e.needed, e.status) for e in done.edges] == [
        ("python", "missing"),
        ("libpython.so", "host"),
        ("file.so", "host"),
        ("libz.so", "host"),
    ]
    done = load(world(root, libc="musl", **process(library, soname="libpython.so")), root)
    assert [e.status for e in done.edges] == ["missing", "missing", "host", "missing"]


@pytest.mark.parametrize(
    ("owner", "status", "rule"),
    [
        ("host", "host", "soname-loaded"),
        ("interpreter", "host", "soname-loaded"),
        ("external", "external", None),
        ("given", "already-loaded", "soname-loaded"),
        ("wheel", "already-loaded", "soname-loaded"),
    ],
)
def test_an_object_that_is_known_again_is_told_by_whose_it_is(
    owner: str, status: str, rule: str | None
) -> None:
    root, again = node("x.so", "a.so", "b.so", **HERE), node("b.so", "a.so")
    (*_, edge) = load(world(root, node("a.so", owner=owner), again), root).edges
    assert (edge.object, edge.status, edge.rule, edge.path) == ("b.so", status, rule, "a.so")


def test_glibc_knows_a_library_by_its_soname_and_musl_does_not() -> None:
    root = node("x.so", "file.so", "b.so", **HERE)
    others = node("file.so", soname="liba.so"), node("b.so", "liba.so")
    for libc, status in (("glibc", "already-loaded"), ("musl", "missing")):
        (*_, edge) = load(world(root, *others, libc=libc), root).edges
        assert (edge.needed, edge.status) == ("liba.so", status)


def test_glibc_knows_an_object_by_the_path_that_it_was_opened_by() -> None:
    # dl-load.c, _dl_map_object: l_name is compared first. musl expands no token in a name, and opens a path.
    root = node("x.so", "b.so", **HERE)
    itself = node("b.so", "$ORIGIN/b.so", root.location)
    for libc, statuses in (("glibc", ["already-loaded"] * 2), ("musl", ["missing", "found"])):
        (_, *edges) = load(world(root, itself, libc=libc), root).edges
        assert [e.status for e in edges] == statuses
        assert edges[1].path == "x.so"


def test_glibc_knows_the_root_by_its_soname_and_musl_by_no_name() -> None:
    root = node("x.so", "b.so", runpath="$ORIGIN")
    for libc, status in (("glibc", "already-loaded"), ("musl", "missing")):
        (*_, edge) = load(world(root, node("b.so", "x.so", runpath="/none"), libc=libc), root).edges
        # musl inherits the path of the root, and finds the same file by it.
        expected = "found" if libc == "musl" else status
        assert (edge.needed, edge.status, edge.path) == ("x.so", expected, "x.so")


def test_a_file_that_is_found_by_another_name_is_the_same_object() -> None:
    first = replace(node("a.so"), identity="inode 7")
    link = replace(node("link.so", soname="a.so"), identity="inode 7")
    root = node("x.so", "a.so", "link.so", "b.so", **HERE)
    done = load(world(root, first, link, node("b.so", "link.so")), root)
    assert [n.path for n in done.scope] == ["x.so", "a.so", "b.so"]
    assert [(e.needed, e.status, e.path) for e in done.edges] == [
        ("a.so", "found", "a.so"),
        ("link.so", "found", "a.so"),
        ("b.so", "found", "b.so"),
        ("link.so", "already-loaded", "a.so"),
    ]


def musl(root: Node, *others: Node) -> list[tuple[str, str]]:
    return [(e.needed, e.status) for e in load(world(root, *others, libc="musl"), root).edges]


def test_musl_names_a_library_once_and_by_the_search_that_found_it() -> None:
    # ldso/dynlink.c, load_library: `shortname` is set by the first search; a path sets none.
    first, link = (replace(node(n, runpath="/none"), identity="inode 7") for n in ("a.so", "link.so"))
    root = node("x.so", "a.so", "link.so", "b.so", runpath="$ORIGIN")
    assert musl(root, first, link, node("b.so", "a.so", "link.so"))[3:] == [
        ("a.so", "already-loaded"),
        ("link.so", "found"),
    ]


def test_what_musl_opened_by_a_path_gets_the_name_of_its_file_from_the_first_search() -> None:
    first, link = (replace(node(n), identity="inode 7") for n in ("a.so", "link.so"))
    root = node("x.so", f"{first.location}", "b.so", "link.so", "c.so", runpath="$ORIGIN")
    others = node("b.so", "a.so", runpath="$ORIGIN"), node("c.so", "a.so", "link.so", runpath="$ORIGIN")
    found = musl(root, first, link, *others)
    assert found[0] == (first.location, "found")
    assert found[4:] == [("a.so", "already-loaded"), ("a.so", "already-loaded"), ("link.so", "found")]


def test_of_libraries_without_a_root_those_come_first_that_nothing_needs() -> None:
    def opened(*nodes: Node, **more: object) -> list[str]:
        around: World = world(*nodes, **more)
        return [one.root.path for one in loads(around, nodes)]

    circle = node("a.so", "b.so", **HERE), node("b.so", "a.so", **HERE)
    assert opened(*circle, node("c.so", "b.so", **HERE)) == ["c.so"]
    assert opened(*circle, node("c.so")) == ["a.so", "c.so"]
    assert opened(node("b.so", "c.so", **HERE), node("c.so"), node("a.so", symbols=INIT)) == ["a.so", "b.so"]
    tool = node("tool", "c.so", type=ET_EXEC, soname=None, **HERE)
    assert opened(tool, node("c.so", "d.so", **HERE), node("d.so")) == ["tool"]


def statuses(around: World, *roots: Node) -> list[list[str]]:
    """The edges of one library, which needs libd.so, under each root."""
    return [[e.status for e in one.edges if e.object == "lib/liba.so"] for one in loads(around, roots)]


def test_what_the_paths_of_the_roots_decide_is_searched_under_each_root() -> None:
    first = node("x.so", "liba.so", runpath="$ORIGIN/lib:$ORIGIN/deep", symbols=INIT)
    second = node("y.so", "liba.so", runpath="$ORIGIN/lib", symbols=INIT)
    library, deep = node("lib/liba.so", "libd.so", runpath="$ORIGIN/none"), node("deep/libd.so")
    # musl takes the paths of all who lead to an object; in glibc its DT_RUNPATH closes those above.
    assert statuses(world(first, second, library, deep, libc="musl"), first, second) == [
        ["found"],
        ["missing"],
    ]
    assert statuses(world(first, second, library, deep), first, second) == [["missing"], ["missing"]]
    old = [
        replace(n, elf=replace(n.elf, rpath=n.elf.runpath, runpath=None)) for n in (first, second) if n.elf
    ]
    plain = node("lib/liba.so", "libd.so")
    assert statuses(world(*old, plain, deep), *old) == [["found"], ["missing"]]


def test_what_an_import_has_loaded_is_there_for_modules_and_not_for_programs() -> None:
    module = node("x.so", "liba.so", runpath="$ORIGIN/lib", symbols=INIT)
    tool = node("tool", "liba.so", runpath="$ORIGIN/lib", type=ET_EXEC, soname=None)
    library = node("lib/liba.so", "libd.so", runpath="$ORIGIN")
    around = world(module, tool, library, preloaded=named("libd.so", "given"))
    assert statuses(around, module, tool) == [["missing"], ["already-loaded"]]


def test_a_library_needs_two_names_of_its_own_path() -> None:
    module = node("x.so", "liba.so", runpath="$ORIGIN/lib", symbols=INIT)
    library = node("lib/liba.so", "libd.so", "libe.so", runpath="$ORIGIN")
    assert statuses(world(module, library, node("lib/libe.so")), module) == [["missing", "found"]]


def test_musl_gives_a_library_no_second_name() -> None:
    link = {"libz.so.1": Node("z", "/usr/lib/libz.so.1.3", ElfFacts(soname="libz.so.1"), "host")}
    root, second = (
        node("x.so", "libz.so.1", "b.so", rpath="$ORIGIN"),
        node("b.so", "libz.so.1", "libz.so.1.3"),
    )
    done = load(world(root, second, host=link, libc="musl"), root)
    assert [(e.needed, e.status) for e in done.edges if e.object == "b.so"] == [
        ("libz.so.1", "host"),
        ("libz.so.1.3", "missing"),
    ]


def test_the_paths_of_the_interpreter_do_not_count_for_a_program() -> None:
    program, module = node("tool", "libd.so", type=ET_EXEC), node("x.so", "libd.so")
    around = world(
        program, module, node("deep/libd.so"), **process(rpath="/prefix/lib/python3/site-packages/deep")
    )
    assert [e.status for e in load(around, program).edges] == ["missing"]
    assert [e.status for e in load(around, module).edges] == ["found"]
