"""What the search answers beyond the files on a disk, on literal facts: the host, imports, absent distributions."""

from __future__ import annotations

import pytest

from wheelfix.loader.closure import chain_of, load, loads, roots
from wheelfix.loader.search import found_by_itself, search
from wheelfix.model.elf import DF_1_NODEFLIB, DF_1_PIE, ET_EXEC, ET_REL, ElfFacts, Symbol
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


@pytest.mark.parametrize(
    ("facts", "reason", "glibc_goes_on", "musl_goes_on"),
    [
        ({"machine": 9999}, "is for another machine (e_machine 9999)", True, False),
        ({"machine": 3}, "is for another machine (e_machine 3)", True, False),
        ({"machine": 3, "bits": 32}, "is for another machine (i686)", True, False),
        ({"bits": 32}, "is for another machine (e_machine 62)", True, False),
        ({"big_endian": True}, "has the other byte order", False, False),
        ({"type": ET_REL}, "is no shared object (only ET_DYN and ET_EXEC can be loaded)", False, False),
    ],
)
def test_a_file_that_does_not_fit_ends_the_search_or_is_passed_over(
    facts: dict[str, object], reason: str, glibc_goes_on: bool, musl_goes_on: bool
) -> None:
    # elf/dl-load.c, open_verify: class and machine let the search go on; musl opens the first file of the name.
    bad = node("pkg/lib/liba.so", **facts)
    for libc, goes_on in (("glibc", glibc_goes_on), ("musl", musl_goes_on)):
        hit = search(world(ROOT, bad, host=HOST, libc=libc), "liba.so", (ROOT,))
        assert (hit.status, hit.detail) == ("host" if goes_on else "missing", f"pkg/lib/liba.so {reason}")
        assert hit.rule == ("default" if goes_on else "runpath")
        assert hit.tried[0] == "pkg/lib/liba.so"
        assert (len(hit.tried) == 1) is not goes_on
        if not goes_on:
            assert (hit.via, hit.entry) == (ROOT, "$ORIGIN/lib")


@pytest.mark.parametrize("facts", [{"type": ET_EXEC}, {"complete": False, "machine": 3, "bits": 32}])
def test_programs_and_what_is_known_by_name_alone_are_found_by_the_search(facts: dict[str, object]) -> None:
    assert search(world(ROOT, node("pkg/lib/liba.so", **facts)), "liba.so", (ROOT,)).status == "found"


def test_a_folder_of_the_name_ends_the_search() -> None:
    folders = (f"{SITE}/pkg/lib", f"{SITE}/pkg/lib/liba.so")
    hit = search(world(ROOT, host=HOST, folders=folders), "liba.so", (ROOT,))
    assert (hit.status, hit.detail) == ("missing", "pkg/lib/liba.so is a folder")


def test_an_object_that_is_none_has_no_paths() -> None:
    text = Node("pkg/x.so", f"{SITE}/pkg/x.so", None)
    above = node("pkg/y.so", rpath="$ORIGIN/lib")
    own = node("pkg/lib/liba.so")
    for libc in ("glibc", "musl"):
        assert search(world(own, libc=libc), "liba.so", (text,)).status == "missing"
        assert search(world(own, host=HOST, libc=libc), "liba.so", (text,)).status == "host"
        assert search(world(own, libc=libc), "liba.so", (text, above)).status == "found"
        assert search(world(own, libc=libc), "liba.so", (above, text)).status == "found"


@pytest.mark.parametrize(
    ("chain", "glibc", "musl"),
    [
        # Each object as (DT_RPATH, DT_RUNPATH); the answer is the folder.
        ([("a", None)], "a", "a"),
        ([(None, "a")], "a", "a"),
        ([("a", "b")], "b", "b"),  # DT_RUNPATH makes DT_RPATH void
        ([("a", None), ("b", None)], "a", "a"),
        ([("none", None), ("b", None)], "b", "b"),
        ([(None, None), (None, "b")], None, "b"),  # glibc: DT_RUNPATH is for the object's own needs
        ([(None, "none"), ("b", None)], None, "b"),  # and closes what is inherited
        ([(None, None), ("a", "none"), ("b", None)], "b", "b"),
        ([("none", None), (None, "a"), ("b", None)], "b", "a"),
    ],
)
def test_whose_path_counts(
    chain: list[tuple[str | None, str | None]], glibc: str | None, musl: str | None
) -> None:
    places = {name: node(f"pkg/{name}/liba.so") for name in "ab"}
    objects = tuple(
        node(f"pkg/{i}.so", rpath=old and f"$ORIGIN/{old}", runpath=new and f"$ORIGIN/{new}")
        for i, (old, new) in enumerate(chain)
    )
    for libc, folder in (("glibc", glibc), ("musl", musl)):
        hit = search(world(*places.values(), libc=libc, folders=(f"{SITE}/pkg/none",)), "liba.so", objects)
        assert hit.node == (places[folder] if folder else None)


def test_ld_library_path_stands_between_rpath_and_runpath_and_in_musl_before_both() -> None:
    own, other = node("pkg/lib/liba.so"), node("env/liba.so")
    old, new = node("pkg/x.so", rpath="$ORIGIN/lib"), node("pkg/x.so", runpath="$ORIGIN/lib")
    found = []
    for libc in ("glibc", "musl"):
        for requester in (old, new):
            around = world(own, other, libc=libc, library_path=(f"{SITE}/env",))
            hit = search(around, "liba.so", (requester,))
            found.append((hit.rule, hit.entry, hit.via))
    env = ("ld-library-path", "env", None)
    assert found == [("rpath", "$ORIGIN/lib", old), env, env, env]


@pytest.mark.parametrize(
    ("name", "itself"),
    [
        ("libc.so", True),
        ("libpthread.so.0", True),
        ("libm.so.6", True),
        ("libxnet.so", True),
        ("libcrypt.so", False),
        ("libz.so", False),
    ],
)
def test_musl_is_itself_the_c_library_under_its_reserved_names(name: str, itself: bool) -> None:
    # ldso/dynlink.c, load_library: the names of `reserved`, before any folder is searched.
    own = {**named("libother.so.1", "host"), **named("libc.so", "host")}
    inside = node(f"pkg/lib/{name}")
    hit = search(world(ROOT, inside, host=own, libc="musl"), name, (ROOT,))
    assert (hit.status, hit.node) == (("host", own["libc.so"]) if itself else ("found", inside))
    assert search(world(ROOT, inside, host=own), name, (ROOT,)).status == "found"
    # Where the machine's C library is not known the name is searched like any other.
    without = world(ROOT, inside, host=named("libother.so.1", "host"), libc="musl")
    assert search(without, name, (ROOT,)).status == "found"


def test_of_musls_names_the_very_one_comes_first() -> None:
    both = {**named("libm.so.1", "host"), **named("libpthread.so.0", "host")}
    hit = search(world(ROOT, host=both, libc="musl"), "libpthread.so.0", (ROOT,))
    assert (hit.rule, hit.node) == ("default", both["libpthread.so.0"])


def test_the_fitting_subfolders_of_a_folder_come_first() -> None:
    plain, fitting = node("pkg/lib/liba.so"), node("pkg/lib/glibc-hwcaps/x86-64-v3/liba.so")
    subfolders = ("glibc-hwcaps/x86-64-v4", "glibc-hwcaps/x86-64-v3")
    hit = search(world(ROOT, plain, fitting, subfolders=subfolders), "liba.so", (ROOT,))
    assert (hit.node, hit.tried) == (fitting, (fitting.path,))
    hit = search(world(ROOT, plain, subfolders=subfolders), "liba.so", (ROOT,))
    assert (hit.node, hit.tried) == (plain, (plain.path,))


def test_a_name_with_a_slash_is_opened_as_it_is_and_a_relative_one_never_leads_anywhere() -> None:
    own, text = node("pkg/lib/liba.so"), Node("pkg/t.so", f"{SITE}/pkg/t.so", None)
    around = world(ROOT, own, text, host=HOST)
    hit = search(around, own.location, (ROOT,))
    assert (hit.status, hit.node, hit.rule, hit.tried) == ("found", own, None, (own.location,))
    assert search(around, "$ORIGIN/lib/liba.so", (ROOT,)).tried == ("$ORIGIN/lib/liba.so",)
    for name in ("lib/liba.so", "pkg/lib/liba.so", f"{SITE}/pkg/none.so", f"{SITE}/none/../pkg/lib/liba.so"):
        hit = search(around, name, (ROOT,))
        assert (hit.status, hit.tried, hit.detail) == ("missing", (name,), None)
    hit = search(around, text.location, (ROOT,))
    assert (hit.status, hit.detail) == ("missing", "pkg/t.so is no ELF object (invalid ELF header)")
    musl = search(world(ROOT, own, libc="musl"), "$ORIGIN/lib/liba.so", (ROOT,))
    assert musl.status == "missing"  # musl takes the name as it is


def test_nodeflib_is_a_flag_of_the_requester_alone() -> None:
    above = node("pkg/y.so", flags_1=DF_1_NODEFLIB)
    assert search(world(host=HOST), "liba.so", (ROOT, above)).status == "host"
    assert search(world(host=HOST), "liba.so", (node("pkg/x.so", flags_1=1),)).status == "host"


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
