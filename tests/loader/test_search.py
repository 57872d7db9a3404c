"""What the search answers beyond the files on a disk, on literal facts: the host, imports, absent distributions."""

from __future__ import annotations

import pytest

from wheelfix.loader.closure import chain_of, load, loads, roots
from wheelfix.loader.search import found_by_itself, search
from wheelfix.model.elf import DF_1_NODEFLIB, DF_1_PIE, ET_EXEC, ElfFacts, Symbol
from wheelfix.model.resolution import SITE, Node, World

INIT = (Symbol("PyInit_x", section=7, value=4096),)


def node(path: str, *needed: str, owner: str = "wheel", **facts: object) -> Node:
    elf = ElfFacts(needed=needed, **{"soname": path.rpartition("/")[2], **facts})  # type: ignore[arg-type]
    return Node(path, f"{SITE}/{path}", elf, owner, None, f"{SITE}/{path}")  # type: ignore[arg-type]


def named(name: str, owner: str, **facts: object) -> dict[str, Node]:
    """A library that stands outside of the files, by its name."""
    location = f"/{owner}/{name}"
    return {name: Node(f"{owner}:{name}", location, ElfFacts(soname=name, **facts), owner, None, location)}  # type: ignore[arg-type]


def world(*nodes: Node, folders: tuple[str, ...] = (), **more: object) -> World:
    known = {"/", "/prefix", "/prefix/lib", "/prefix/lib/python3", SITE, *folders}
    for one in nodes:
        parts = one.location.split("/")
        known |= {"/".join(parts[:i]) for i in range(2, len(parts))}
    return World({n.location: n for n in nodes}, frozenset(known), **more)  # type: ignore[arg-type]


ROOT = node("pkg/x.so", "liba.so", runpath="$ORIGIN/lib:$ORIGIN/none")
HOST, PRELOADED, EXTERNAL = named("liba.so", "host"), named("liba.so", "given"), named("liba.so", "external")


def test_each_place_answers_only_where_those_before_it_do_not() -> None:
    own = node("pkg/lib/liba.so")
    answers = {"host": HOST, "preloaded": PRELOADED, "externals": EXTERNAL}
    found = [search(world(ROOT, own, **answers), "liba.so", (ROOT,))]
    for place in list(answers):
        found.append(search(world(ROOT, **answers), "liba.so", (ROOT,)))
        answers.pop(place)
    found.append(search(world(ROOT), "liba.so", (ROOT,)))
    assert [(h.status, h.rule) for h in found] == [
        ("found", "runpath"),
        ("host", "default"),
        ("already-loaded", "soname-loaded"),
        ("external", None),
        ("missing", None),
    ]
    assert (found[0].via, found[0].entry) == (ROOT, "$ORIGIN/lib")


@pytest.mark.parametrize(
    "facts", [{"type": ET_EXEC}, {"soname": None, "interpreter": "/lib64/ld-linux-x86-64.so.2"}]
)
def test_no_import_comes_before_a_program_or_what_it_needs(facts: dict[str, object]) -> None:
    program, helper = node("pkg/bin/tool", "libb.so", **facts), node("pkg/libb.so", "liba.so")
    hit = search(world(program, helper, preloaded=PRELOADED), "liba.so", (helper, program))
    assert hit.status == "missing"


def test_the_places_that_were_tried_are_told_as_people_read_them() -> None:
    requester = node("pkg/x.so", rpath="$ORIGIN/lib:$ORIGIN/../../../../lib:$ORIGIN/none:/opt/lib")
    folders = (f"{SITE}/pkg", f"{SITE}/pkg/lib", "/opt/lib", "/opt")
    hit = search(world(folders=folders, library_path=("/prefix/bin",)), "liba.so", (requester,))
    assert hit.tried == (
        "pkg/lib/liba.so",
        "data:lib/liba.so",
        "/opt/lib/liba.so",
        "the host's cache and default folders",
    )


def test_a_file_that_was_passed_over_is_told_with_what_was_found_after_it() -> None:
    other = node("pkg/lib/liba.so", machine=183)
    hit = search(world(ROOT, other, host=HOST), "liba.so", (ROOT,))
    assert (hit.status, hit.detail) == ("host", "pkg/lib/liba.so is for another machine (aarch64)")


def test_a_text_ends_the_search_though_the_host_has_the_library() -> None:
    text = Node("pkg/lib/liba.so", f"{SITE}/pkg/lib/liba.so", None)
    hit = search(world(ROOT, text, host=HOST), "liba.so", (ROOT,))
    assert (hit.status, hit.detail) == ("missing", "pkg/lib/liba.so is no ELF object (invalid ELF header)")


@pytest.mark.parametrize(
    ("location", "found"),
    [
        ("/host/liba.so", False),  # a promised machine's
        ("/lib/x86_64-linux-gnu/liba.so", False),
        ("/usr/lib64/liba.so", False),
        ("/usr/local/lib/liba.so", True),  # only the cache leads there
        ("/opt/vendor/lib/liba.so", True),
    ],
)
def test_nodeflib_closes_default_folders_and_not_the_rest_of_the_cache(location: str, found: bool) -> None:
    requester = node("pkg/x.so", flags_1=DF_1_NODEFLIB)
    host = {"liba.so": Node("host:liba.so", location, ElfFacts(soname="liba.so"), "host")}
    assert (search(world(host=host), "liba.so", (requester,)).status == "host") == found
    assert search(world(host=host, libc="musl"), "liba.so", (requester,)).status == "host"


def test_an_empty_element_is_the_working_directory_which_is_never_ours() -> None:
    here = node("liba.so")
    assert search(world(here), "liba.so", (node("x.so", runpath=":.:"),)).status == "missing"


def test_the_program_that_opens_the_root_is_the_end_of_the_chain() -> None:
    deep, library = node("deep/libd.so"), node("pkg/liba.so", "libd.so")
    python = Node("interpreter", "/prefix/bin/python", ElfFacts(rpath=f"{SITE}/deep"), "interpreter")
    root = node("pkg/x.so", "liba.so", rpath="$ORIGIN")
    opened = load(world(root, library, deep, interpreter=(python,)), root)
    assert [n.path for n in opened.scope] == ["pkg/x.so", "pkg/liba.so", "deep/libd.so"]
    assert (opened.edges[-1].via, opened.edges[-1].rule) == ("interpreter", "rpath")
    assert load(world(root, library, deep), root).edges[-1].status == "missing"


def test_whether_the_own_path_would_do_though_it_is_loaded() -> None:
    library = node("pkg/lib/liba.so")
    unpathed, pathed = node("pkg/y.so"), node("pkg/z.so", rpath="$ORIGIN/lib")
    one = world(library, unpathed, pathed, host=named("libm.so.6", "host"))
    assert not found_by_itself(one, "liba.so", (unpathed,))
    assert found_by_itself(one, "liba.so", (pathed,))
    assert found_by_itself(one, "liba.so", (unpathed, pathed)), "an inherited RPATH"
    assert found_by_itself(one, "libm.so.6", (unpathed,))


def test_the_chain_of_an_object_leads_up_to_the_root_and_ends_in_circles() -> None:
    nodes = [
        node("a.so", "b.so", rpath="$ORIGIN"),
        node("b.so", "c.so", rpath="$ORIGIN"),
        node("c.so", "a.so", "b.so", rpath="$ORIGIN"),
    ]
    opened = load(world(*nodes), nodes[0])
    assert [n.path for n in chain_of(opened, "c.so")] == ["c.so", "b.so", "a.so"]
    assert [n.path for n in chain_of(opened, "a.so")] == ["a.so"]


def test_a_closure_2000_deep() -> None:
    nodes = [node(f"pkg/lib{i}.so", f"lib{i + 1}.so", rpath="$ORIGIN") for i in range(2000)]
    nodes.append(node("pkg/lib2000.so"))
    opened = load(world(*nodes), nodes[0])
    assert [n.path for n in opened.scope] == [n.path for n in nodes]
    assert len(chain_of(opened, "pkg/lib2000.so")) == 2001


def test_a_library_that_was_not_given_ends_the_walk() -> None:
    opened = load(
        world(ROOT, externals=named("liba.so", "external", needed=("libb.so",), complete=False)), ROOT
    )
    assert [(e.needed, e.status) for e in opened.edges] == [("liba.so", "external")]
    assert [n.path for n in opened.scope] == ["pkg/x.so", "external:liba.so"]


def test_an_edge_that_is_known_again_says_so() -> None:
    root = node("x.so", "liba.so", "libb.so", "libm.so.6", rpath="$ORIGIN")
    libraries = node("liba.so"), node("libb.so", "liba.so", "libm.so.6")
    opened = load(world(root, *libraries, host=named("libm.so.6", "host")), root)
    assert [(e.object, e.needed, e.status, e.rule) for e in opened.edges] == [
        ("x.so", "liba.so", "found", "rpath"),
        ("x.so", "libb.so", "found", "rpath"),
        ("x.so", "libm.so.6", "host", "default"),
        ("libb.so", "liba.so", "already-loaded", "soname-loaded"),
        ("libb.so", "libm.so.6", "host", "soname-loaded"),
    ]


# Roots.


def paths(*nodes: Node) -> list[str]:
    return [n.path for n in roots(world(*nodes), nodes)]


def test_extension_modules_and_programs_are_roots_and_what_they_reach_is_not() -> None:
    extension = node("x.so", "liba.so", rpath="$ORIGIN", soname=None, symbols=INIT)
    old = node("tool", type=ET_EXEC, soname=None)
    pie = node("pie", flags_1=DF_1_PIE, soname=None)
    assert paths(node("liba.so"), pie, old, extension) == ["pie", "tool", "x.so"]


def test_an_extension_module_that_another_one_needs_is_a_root_still() -> None:
    first = node("a.so", "b.so", rpath="$ORIGIN", symbols=INIT)
    assert paths(first, node("b.so", symbols=INIT)) == ["a.so", "b.so"]


def test_a_library_that_no_root_reaches_is_one() -> None:
    assert paths(node("plugin.so", "libb.so", rpath="$ORIGIN"), node("libb.so")) == ["plugin.so"]


def test_of_a_circle_that_nothing_reaches_the_first_is_a_root() -> None:
    circle = node("b.so", "c.so", rpath="$ORIGIN"), node("c.so", "b.so", rpath="$ORIGIN")
    assert paths(*circle) == ["b.so"]
    assert paths(*circle, node("a.so", "c.so", rpath="$ORIGIN")) == ["a.so"]


def test_the_order_of_roots_is_that_of_their_paths_however_they_come() -> None:
    nodes = [node(f"{n}.so", symbols=INIT) for n in "dacb"]
    assert paths(*nodes) == paths(*reversed(nodes)) == ["a.so", "b.so", "c.so", "d.so"]


def test_texts_are_no_roots() -> None:
    assert paths(Node("liba.so", f"{SITE}/liba.so", None)) == []


def test_each_root_opens_a_process_of_its_own() -> None:
    first = node("a/x.so", "liba.so", rpath="$ORIGIN", symbols=INIT)
    second = node("b/y.so", "liba.so", symbols=INIT)
    opened = loads(world(first, second, node("a/liba.so")), (first, second))
    assert [[e.status for e in one.edges] for one in opened] == [["found"], ["missing"]]
