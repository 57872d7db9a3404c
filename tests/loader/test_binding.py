"""The rules of binding on literal facts; tests/oracle holds the same rules against the real loader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from wheelfix.loader.binding import bind, relocation_order
from wheelfix.loader.together import bind_all, every
from wheelfix.model.elf import (
    ET_EXEC,
    LOOKUP_COPY,
    LOOKUP_DATA,
    LOOKUP_PLT,
    SHN_ABS,
    SHN_UNDEF,
    STB_GNU_UNIQUE,
    STB_LOCAL,
    STB_WEAK,
    STT_GNU_IFUNC,
    STT_SECTION,
    STT_TLS,
    STV_HIDDEN,
    ElfFacts,
    Segment,
    Symbol,
    VersionDef,
)
from wheelfix.model.resolution import Binding, Edge, Load, Node, World

READ = (Segment(1, 5, 0, 0, 4096, 4096, 4096),)  # what tells facts of a file from facts of data


def node(path: str, *symbols: Symbol, owner: str = "wheel", **facts: object) -> Node:
    elf = ElfFacts(soname=path.rpartition("/")[2], symbols=symbols, segments=READ, **facts)  # type: ignore[arg-type]
    return Node(path, f"/{path}", elf, owner, None, f"/{path}")  # type: ignore[arg-type]


def gives(name: str, version: str | None = None, index: int = 1, **more: object) -> Symbol:
    return Symbol(name, section=7, value=0x1000, version=version, version_index=index, **more)  # type: ignore[arg-type]


def wants(name: str, version: str | None = None, file: str | None = None, **more: object) -> Symbol:
    return Symbol(name, version=version, version_file=file, **{"lookups": LOOKUP_PLT, **more})  # type: ignore[arg-type]


def opened(*scope: Node, missing: Sequence[str] = ()) -> Load:
    """A load in which the root needs everything else."""
    root = scope[0]
    edges = [Edge(root.path, root.path, n.path.rpartition("/")[2], "found", n.path) for n in scope[1:]]
    edges += [Edge(root.path, root.path, name, "missing") for name in missing]
    return Load(root, scope, tuple(edges))


def world(*interpreter: Node, **more: object) -> World:
    return World(files={}, folders=(), interpreter=interpreter, libc_version=(2, 36), **more)  # type: ignore[arg-type]


def only(bindings: Sequence[Binding]) -> Binding:
    (binding,) = bindings
    return binding


ROOT = node("root.so", wants("g"))


def test_first_definition_in_scope_wins_though_weak() -> None:
    weak, strong = node("a.so", gives("g", bind=STB_WEAK)), node("b.so", gives("g"))
    binding = only(bind(world(), opened(ROOT, weak, strong)))
    assert (binding.status, binding.provider, binding.unless) == ("bound", "a.so", ())


def test_global_scope_comes_first() -> None:
    python = node("interpreter", gives("g"), owner="interpreter")
    assert only(bind(world(python), opened(ROOT, node("a.so", gives("g"))))).provider == "interpreter"


def test_program_has_no_interpreter_around_it() -> None:
    program = node("tool", wants("g"), type=ET_EXEC)
    python = node("interpreter", gives("g"), owner="interpreter")
    assert only(bind(world(python), opened(program, node("a.so", gives("g"))))).provider == "a.so"


def test_what_the_process_relocated_before_is_not_bound_again() -> None:
    libc = node("libc.so.6", wants("unknown"), gives("g"), owner="host")
    assert [b.object for b in bind(world(libc), opened(ROOT, libc))] == ["root.so"]


@pytest.mark.parametrize(
    "definition",
    [
        gives("g", bind=STB_LOCAL),
        gives("g", visibility=STV_HIDDEN),
        gives("g", kind=STT_SECTION),
        Symbol("g", section=7, value=0),
    ],
)
def test_what_is_no_definition(definition: Symbol) -> None:
    assert only(bind(world(), opened(ROOT, node("a.so", definition)))).status == "missing"


def test_thread_local_symbol_at_offset_zero_is_a_definition() -> None:
    library = node("a.so", Symbol("g", kind=STT_TLS, section=7, value=0))
    assert only(bind(world(), opened(ROOT, library))).provider == "a.so"


@pytest.mark.parametrize(("libc", "status"), [((2, 27), "missing"), ((2, 28), "bound")])
def test_absolute_symbol_of_value_zero_counts_since_glibc_2_28(libc: tuple[int, int], status: str) -> None:
    library = node("a.so", Symbol("g", section=SHN_ABS, value=0))
    assert only(bind(replace(world(), libc_version=libc), opened(ROOT, library))).status == status


def test_facts_made_from_data_have_no_addresses() -> None:
    facts = ElfFacts(symbols=(Symbol("g", section=1, value=0),))
    host = Node("host:libc.so.6", "/host/libc.so.6", facts, "host")
    assert only(bind(world(), opened(ROOT, host))).provider == "host:libc.so.6"


def test_undefined_weak_is_no_failure() -> None:
    binding = only(bind(world(), opened(node("root.so", wants("g", bind=STB_WEAK)))))
    assert (binding.status, binding.weak) == ("weak-unbound", True)


def test_symbol_that_no_relocation_names_is_unreferenced() -> None:
    root = node("root.so", wants("g", lookups=0))
    assert only(bind(world(), opened(root, node("a.so", gives("g"))))).status == "unreferenced"


def test_hidden_reference_is_never_looked_up() -> None:
    root = node("root.so", wants("g", visibility=STV_HIDDEN))
    assert only(bind(world(), opened(root, node("a.so", gives("g"))))).status == "unreferenced"


V1 = (VersionDef("a.so", 1, base=True), VersionDef("V1", 2))
VERSIONED = {"versioned": True, "verdef": V1}


@pytest.mark.parametrize(
    ("definition", "facts", "accepted"),
    [
        (gives("g", "V1", 2), VERSIONED, True),
        (gives("g", "V1", 2, hidden=True), VERSIONED, True),  # hidden forbids only what asks without version
        (gives("g", "W1", 2), VERSIONED, False),
        (gives("g", None, 1), VERSIONED, True),
        (gives("g", None, 1, hidden=True), VERSIONED, False),
        (gives("g"), {}, True),  # no versions at all, and not the file that verneed names
    ],
)
def test_versioned_reference(definition: Symbol, facts: dict[str, object], accepted: bool) -> None:
    root = node("root.so", wants("g", "V1", "named.so"))
    last = node("named.so", gives("g", "V1", 2), **VERSIONED)
    binding = only(bind(world(), opened(root, node("a.so", definition, **facts), last)))
    assert binding.provider == ("a.so" if accepted else "named.so")


@pytest.mark.parametrize(
    ("definitions", "accepted"),
    [
        ([gives("g", "V1", 2, hidden=True), gives("g", "V2", 3)], "V1"),
        ([gives("g", "V2", 3)], "V2"),
        ([gives("g", "V2", 3, hidden=True), gives("g", "V3", 4)], "V3"),
        ([gives("g", "V2", 3, hidden=True)], None),
        ([gives("g", "V2", 3), gives("g", "V3", 4)], None),
    ],
)
def test_unversioned_reference(definitions: list[Symbol], accepted: str | None) -> None:
    library = node("a.so", *definitions, **VERSIONED)
    binding = only(bind(world(), opened(ROOT, library)))
    assert binding.status == ("bound" if accepted else "missing")


def test_named_file_without_any_versions_stops_the_process() -> None:
    root = node("root.so", wants("g", "V1", "a.so"))
    assert only(bind(world(), opened(root, node("a.so", gives("g"))))).status == "missing"
    # Of what is known by its name alone it is not known either that it has no versions.
    assert only(bind(world(), opened(root, node("a.so", gives("g"), complete=False)))).provider == "a.so"


@pytest.mark.parametrize(("libc", "provider"), [((2, 29), None), ((2, 30), "b.so")])
@pytest.mark.parametrize("weak", [False, True])
def test_glibc_before_2_30_stops_at_the_file_that_verneed_names(
    libc: tuple[int, int], provider: str | None, weak: bool
) -> None:
    root = node("root.so", wants("g", "V1", "a.so", bind=STB_WEAK if weak else 1))
    named, moved = node("a.so", **VERSIONED), node("b.so", gives("g", "V1", 2), **VERSIONED)
    binding = only(bind(replace(world(), libc_version=libc), opened(root, named, moved)))
    assert binding.provider == provider
    assert binding.status == ("bound" if provider else "missing")  # also where the reference is weak


def test_data_of_a_newer_glibc_do_not_stop_a_look_up() -> None:
    # pthread_self left libpthread.so.0 with glibc 2.32; data of a newer one stand for an older machine.
    pthread = Node(
        "host:libpthread.so.0", "/host/libpthread.so.0", ElfFacts(verdef=V1, versioned=True), "host"
    )
    root = node("root.so", wants("g", "V1", "libpthread.so.0"))
    load = opened(root, pthread, node("libc.so.6", gives("g", "V1", 2), **VERSIONED))
    load = replace(
        load, edges=(Edge("root.so", "root.so", "libpthread.so.0", "host", pthread.path), *load.edges)
    )
    assert only(bind(replace(world(), libc_version=(2, 17)), load)).provider == "libc.so.6"


def test_plt_entry_of_a_program_catches_data_but_no_calls() -> None:
    program = node(
        "interpreter", Symbol("g", section=SHN_UNDEF, value=0x401000), owner="interpreter", type=ET_EXEC
    )
    library = node("a.so", gives("g"))
    both = node("root.so", wants("g", lookups=LOOKUP_PLT | LOOKUP_DATA))
    binding = only(bind(world(program), opened(both, library)))
    assert (binding.provider, binding.also) == ("a.so", "interpreter")
    data = node("root.so", wants("g", lookups=LOOKUP_DATA))
    binding = only(bind(world(program), opened(data, library)))
    assert (binding.provider, binding.also) == ("interpreter", None)


def test_copy_relocation_passes_over_the_program_and_its_data_find_it() -> None:
    program = node("tool", gives("data", lookups=LOOKUP_COPY | LOOKUP_DATA), type=ET_EXEC)
    binding = only(bind(world(), opened(program, node("a.so", gives("data")))))
    assert (binding.provider, binding.also) == ("a.so", "tool")


def test_copy_relocation_without_a_definition_is_missing() -> None:
    program = node("tool", gives("data", lookups=LOOKUP_COPY), type=ET_EXEC)
    assert only(bind(world(), opened(program))).status == "missing"


def test_copy_relocation_may_be_supplied_by_an_unknown_library_before_but_not_by_the_program() -> None:
    program = node("tool", gives("data", lookups=LOOKUP_COPY), type=ET_EXEC, complete=False)
    unknown, after = node("unknown.so", complete=False), node("after.so", complete=False)
    binding = only(bind(world(), opened(program, unknown, node("a.so", gives("data")), after)))
    assert (binding.provider, binding.unless) == ("a.so", ("unknown.so",))


def test_unique_symbol_of_the_first_relocated_object_wins() -> None:
    unique = {"bind": STB_GNU_UNIQUE, "lookups": LOOKUP_DATA}
    root = node("root.so", wants("u", lookups=LOOKUP_DATA))
    first = node("a.so", gives("u", **unique))
    symbolic = node("b.so", gives("u", **unique), symbolic=True)
    load = Load(
        root,
        (root, first, symbolic),
        (
            Edge("root.so", "root.so", "a.so", "found", "a.so"),
            Edge("root.so", "a.so", "b.so", "found", "b.so"),
        ),
    )
    assert [n.path for n in relocation_order(load)] == ["b.so", "a.so", "root.so"]
    assert only(bind(world(), load)).provider == "b.so"
    plain = replace(symbolic, elf=replace(symbolic.elf, symbolic=False))
    assert only(bind(world(), replace(load, scope=(root, first, plain)))).provider == "a.so"


@pytest.mark.parametrize(("lookups", "kept"), [(LOOKUP_DATA, "b.so"), (LOOKUP_PLT, "a.so")])
def test_who_keeps_a_unique_symbol_is_found_as_its_first_look_up_finds_it(lookups: int, kept: str) -> None:
    # The program's PLT entry catches data and no calls: a.so, relocated first, keeps its own only by a call.
    program = node(
        "interpreter", Symbol("u", section=SHN_UNDEF, value=0x401000), owner="interpreter", type=ET_EXEC
    )
    root = node("root.so", wants("u"))
    first = node("a.so", gives("u", bind=STB_GNU_UNIQUE, lookups=lookups))
    symbolic = node("b.so", gives("u", bind=STB_GNU_UNIQUE, lookups=LOOKUP_DATA), symbolic=True)
    steps = (
        Edge("root.so", "root.so", "a.so", "found", "a.so"),
        Edge("root.so", "b.so", "a.so", "found", "a.so"),
    )
    load = Load(root, (root, first, symbolic), steps)
    assert [n.path for n in relocation_order(load)] == ["a.so", "b.so", "root.so"]
    assert [b.provider for b in bind(world(program), load) if b.object == "root.so"] == [kept]


def test_a_definition_that_is_not_unique_is_taken_as_it_is_found() -> None:
    unique = {"bind": STB_GNU_UNIQUE, "lookups": LOOKUP_DATA}
    root, plain = node("root.so", wants("u")), node("plain.so", gives("u"))
    first, symbolic = node("a.so", gives("u", **unique)), node("b.so", gives("u", **unique), symbolic=True)
    assert only(bind(world(), opened(root, plain, first, symbolic))).provider == "plain.so"
    assert only(bind(world(), opened(root, first, plain, symbolic))).provider == "b.so"


def test_a_copy_is_made_from_the_library_also_of_a_unique_symbol() -> None:
    program = node("tool", gives("u", bind=STB_GNU_UNIQUE, lookups=LOOKUP_COPY | LOOKUP_DATA), type=ET_EXEC)
    binding = only(bind(world(), opened(program, node("a.so", gives("u", bind=STB_GNU_UNIQUE)))))
    assert (binding.provider, binding.also) == ("a.so", "tool")


def test_one_definition_of_a_unique_symbol_is_kept_for_all_versions() -> None:
    # elf/dl-lookup.c, do_lookup_unique: the table knows names alone.
    root = node("root.so", wants("u", "V1"), wants("u", "V2"))
    first = node("a.so", gives("u", "V1", 2, bind=STB_GNU_UNIQUE), **VERSIONED)
    second = node("b.so", gives("u", "V2", 3, bind=STB_GNU_UNIQUE), **VERSIONED)
    assert [b.provider for b in bind(world(), opened(root, first, second))] == ["a.so", "a.so"]


def test_a_unique_symbol_that_a_look_up_misses_is_kept_by_nobody() -> None:
    unique = {"bind": STB_GNU_UNIQUE}
    root = node("root.so", wants("u", "V9"))
    libraries = [node(f"{n}.so", gives("u", "V1", 2, **unique), **VERSIONED) for n in "ab"]
    assert only(bind(world(), opened(root, *libraries))).status == "missing"


def test_what_is_missing_has_no_place_in_the_order_of_relocation() -> None:
    load = opened(node("root.so"), node("a.so"), missing=["libgone.so"])
    assert [n.path for n in relocation_order(load)] == ["a.so", "root.so"]
    elsewhere = Edge("root.so", "a.so", "libc.so.6", "host", "host:libc.so.6")  # loaded before the root
    load = replace(load, edges=(*load.edges, elsewhere))
    assert [n.path for n in relocation_order(load)] == ["a.so", "root.so"]


def test_a_file_that_is_no_object_supplies_nothing_though_verneed_names_it() -> None:
    text = Node("a.so", "/a.so", None)
    root = node("root.so", wants("g", "V1", "a.so"))
    binding = only(bind(world(), opened(root, text, node("b.so", gives("g", "V1", 2), **VERSIONED))))
    assert binding.provider == "b.so"
    assert bind(world(), opened(text)) == ()


UNKNOWN = Node("libx.so", "/external/libx.so", ElfFacts(soname="libx.so", complete=False), "external")


def test_incomplete_object_earlier_in_scope_may_come_first() -> None:
    binding = only(bind(world(), opened(ROOT, UNKNOWN, node("a.so", gives("g")))))
    assert (binding.status, binding.provider, binding.unless) == ("bound", "a.so", ("libx.so",))


def test_incomplete_object_later_in_scope_changes_nothing() -> None:
    binding = only(bind(world(), opened(ROOT, node("a.so", gives("g")), UNKNOWN)))
    assert (binding.provider, binding.unless) == ("a.so", ())


@pytest.mark.parametrize("bind_", [1, STB_WEAK])
def test_incomplete_object_makes_what_nobody_defines_undecided(bind_: int) -> None:
    binding = only(bind(world(), opened(node("root.so", wants("g", bind=bind_)), UNKNOWN)))
    assert (binding.status, binding.provider, binding.unless) == ("undecided", None, ("libx.so",))


def test_library_that_is_not_found_may_define_what_nobody_does() -> None:
    binding = only(bind(world(), opened(ROOT, missing=["libgone.so"])))
    assert (binding.status, binding.unless) == ("undecided", ("libgone.so",))


@pytest.mark.parametrize(
    ("name", "status"), [("PyList_New", "undecided"), ("_Py_Dealloc", "undecided"), ("g", "missing")]
)
def test_unknown_interpreter_can_only_define_the_c_api(name: str, status: str) -> None:
    python = Node("interpreter", "/interpreter", ElfFacts(complete=False), "interpreter")
    assert only(bind(world(python), opened(node("root.so", wants(name))))).status == status


def test_musl_ignores_versions_and_hidden_definitions() -> None:
    root = node("root.so", wants("g", "V1", "b.so"))
    load = opened(
        root, node("a.so", gives("g", "W1", 2, hidden=True), **VERSIONED), node("b.so", gives("g", "W2", 3))
    )
    assert only(bind(world(libc="musl"), load)).provider == "b.so"


@pytest.mark.parametrize("version", [(1, 1), (1, 2), (2, 36)])
def test_musl_does_not_stop_at_the_file_that_verneed_names_and_knows_no_absolute_symbols(
    version: tuple[int, int],
) -> None:
    musl = replace(world(libc="musl"), libc_version=version)
    root = node("root.so", wants("g", "V1", "a.so"))
    load = opened(root, node("a.so", **VERSIONED), node("b.so", gives("g")))
    assert only(bind(musl, load)).provider == "b.so"
    library = node("a.so", Symbol("g", section=SHN_ABS, value=0))
    assert only(bind(musl, opened(ROOT, library))).status == "missing"


def test_musl_takes_no_indirect_functions() -> None:
    library = node("a.so", gives("g", kind=STT_GNU_IFUNC))
    assert only(bind(world(libc="musl"), opened(ROOT, library))).status == "missing"
    assert only(bind(world(), opened(ROOT, library))).status == "bound"


@pytest.mark.parametrize(
    ("name", "status"), [("fopen64", "bound"), ("strlen64", "missing"), ("readdir64_r", "missing")]
)
def test_musl_answers_for_the_large_file_interface(name: str, status: str) -> None:
    libc = node("host:libc.so", gives("fopen"), gives("strlen"), owner="host")
    assert only(bind(world(libc="musl"), opened(node("root.so", wants(name)), libc))).status == status
    assert only(bind(world(), opened(node("root.so", wants(name)), libc))).status == "missing"


@pytest.mark.parametrize(
    ("owner", "provider"), [("host", "libx.so"), ("interpreter", "libx.so"), ("wheel", None), ("given", None)]
)
def test_only_musls_own_functions_answer_for_the_large_file_interface(
    owner: str, provider: str | None
) -> None:
    library = node("libx.so", gives("readdir_r"), owner=owner)
    root = node("root.so", wants("readdir64_r"))
    assert only(bind(world(libc="musl"), opened(root, library))).provider == provider
    own = node("liby.so", gives("readdir64_r"))
    assert only(bind(world(libc="musl"), opened(root, library, own))).provider == "liby.so"


def test_musl_knows_no_unique_symbols_and_no_symbolic_objects() -> None:
    unique = {"bind": STB_GNU_UNIQUE, "lookups": LOOKUP_DATA}
    root, first = node("root.so", wants("u", lookups=LOOKUP_DATA)), node("a.so", gives("u", **unique))
    symbolic = node("b.so", gives("u", **unique), symbolic=True)
    assert only(bind(world(libc="musl"), opened(root, first, symbolic))).provider == "a.so"


def test_bindings_of_several_roots_follow_each_other() -> None:
    library = node("a.so", gives("g"))
    other = node("other.so", wants("g"))
    bindings = list(every(bind_all(world(), [opened(ROOT, library), opened(other, library)])))
    assert [(b.root, b.object, b.provider) for b in bindings] == [
        ("root.so", "root.so", "a.so"),
        ("other.so", "other.so", "a.so"),
    ]


def test_a_symbolic_object_comes_first_and_not_a_copy_of_it() -> None:
    library = node("lib.so", wants("f"), gives("f"), symbolic=True)
    copy = replace(library, path="copy.so", location="/copy.so", identity="/copy.so")
    found = bind(world(), opened(node("root.so"), copy, library))
    assert [(b.object, b.provider) for b in found] == [("copy.so", "copy.so"), ("lib.so", "lib.so")]


def test_nothing_may_supply_what_a_symbolic_object_finds_in_itself() -> None:
    library = node("lib.so", wants("f"), gives("f"), symbolic=True)
    unknown = node("unknown.so", complete=False)
    binding = only(bind(world(), opened(node("root.so"), unknown, library)))
    assert (binding.provider, binding.unless) == ("lib.so", ())
