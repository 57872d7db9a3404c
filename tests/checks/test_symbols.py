"""Undefined symbols and missing versions, on literal facts."""

from __future__ import annotations

import pytest

from wheelfix.checks.subject import Scene, Subject
from wheelfix.checks.symbols import check
from wheelfix.model.elf import STV_HIDDEN, ElfFacts, Segment, Symbol, VersionDef, VersionNeed, VersionRef
from wheelfix.model.finding import Finding
from wheelfix.model.policy import PlatformPolicy, Policy
from wheelfix.model.resolution import Edge, Load, Node, World
from wheelfix.model.wheel import Member, WheelFacts

TAG = PlatformPolicy(
    "manylinux_2_28_x86_64",
    "x86_64",
    "glibc",
    (2, 28),
    frozenset({"libc.so.6", "libstdc++.so.6"}),
    {"GLIBC": frozenset({"2.17", "2.28"})},
)
READ = (Segment(1, 5, 0, 0, 4096, 4096, 4096),)


def node(path: str, *symbols: Symbol, owner: str = "wheel", **facts: object) -> Node:
    elf = ElfFacts(symbols=symbols, segments=READ, **facts)  # type: ignore[arg-type]
    return Node(path, f"/{path}", elf, owner, owner, f"/{path}")  # type: ignore[arg-type]


def gives(name: str, **more: object) -> Symbol:
    return Symbol(name, section=7, value=0x1000, **more)  # type: ignore[arg-type]


def wants(name: str, version: str | None = None, file: str | None = None) -> Symbol:
    return Symbol(name, lookups=2, version=version, version_file=file)


def loaded(*scope: Node, gone: tuple[str, ...] = ()) -> Load:
    """A load whose root needs the rest of the scope."""
    root = scope[0]
    edges = [Edge(root.path, root.path, n.path.rpartition("/")[2], "found", n.path) for n in scope[1:]]
    edges += [Edge(root.path, root.path, name, "missing") for name in gone]
    return Load(root, scope, tuple(edges))


def judged(
    *scope: Node,
    beside: tuple[Node, ...] = (),
    gone: tuple[str, ...] = (),
    baseline: str = "tag",
    platforms: tuple[PlatformPolicy, ...] = (TAG,),
    others: tuple[Load, ...] = (),
) -> list[Finding]:
    """The findings on a wheel whose root needs the rest of the scope; ``beside`` is installed and not loaded.

    ``others`` are loads of more roots.
    """
    loads = (loaded(*scope, gone=gone), *others)
    files = {n.location: n for n in (*beside, *(n for one in loads for n in one.scope))}
    scene = Scene(TAG, World(files, frozenset(), libc_version=(2, 28)), loads)
    members = tuple(
        Member(n.path, n.path, content="elf", elf=n.elf) for n in files.values() if n.owner == "wheel"
    )
    runtime = {"libstdc++.so.6": frozenset({"__cxa_throw"})}
    return list(
        check(
            Subject(
                WheelFacts("x.whl", members=members),
                platforms,
                (scene,),
                Policy(),
                baseline=baseline,  # type: ignore[arg-type]
                cxx_runtime_symbols=runtime,
            )
        )
    )


@pytest.mark.rule("undefined-symbol", fires=True)
def test_symbol_that_nobody_defines_is_an_error() -> None:
    (finding,) = judged(node("pkg/x.so", wants("g")), node("pkg/liba.so", gives("other")))
    assert (finding.rule, finding.severity, finding.member, finding.symbol) == (
        "undefined-symbol",
        "error",
        "pkg/x.so",
        "g",
    )
    assert "nearest" not in finding.evidence
    assert finding.message == "pkg/x.so: nothing that it loads defines g"
    assert finding.evidence == {"symbols": [{"symbol": "g"}], "count": 1, "version": None, "root": "pkg/x.so"}


@pytest.mark.rule("undefined-symbol", fires=True)
def test_what_is_bound_and_what_is_anothers_hides_nothing() -> None:
    others = node("other/libo.so", wants("h"), owner="given")
    root = node("pkg/x.so", wants("f"), wants("g"), wants("g"))  # g twice in the symbol table
    helper = node("pkg/liba.so", gives("f"), wants("i"))
    found = judged(root, others, helper)
    assert [(f.member, f.symbol, f.evidence["count"]) for f in found] == [
        ("pkg/x.so", "g", 1),
        ("pkg/liba.so", "i", 1),
    ]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["g0", "g1", "g2"], "g0, g1, g2"),
        (["g0", "g1", "g2", "g3"], "g0, g1, g2 and 1 more"),
        (["g0", "_Z1fi"], "g0, _Z1fi (f(int))"),
    ],
)
def test_three_symbols_are_named_those_of_cxx_in_words(names: list[str], words: str) -> None:
    (finding,) = judged(node("pkg/x.so", *map(wants, names)))
    assert finding.message == f"pkg/x.so: nothing that it loads defines {words}"
    assert finding.symbol == "g0"
    assert finding.evidence["symbols"] == [
        {"symbol": n, "demangled": "f(int)"} if n == "_Z1fi" else {"symbol": n} for n in names
    ]


@pytest.mark.rule("undefined-symbol", fires=False)
def test_symbol_that_a_library_defines_is_right() -> None:
    assert judged(node("pkg/x.so", wants("g")), node("pkg/liba.so", gives("g"))) == []


@pytest.mark.rule("undefined-symbol", fires=False)
def test_nothing_is_claimed_where_a_library_was_not_given() -> None:
    unknown = Node("libx.so", "/external/libx.so", ElfFacts(complete=False), "external")
    assert judged(node("pkg/x.so", wants("g")), unknown) == []


@pytest.mark.rule("undefined-symbol", fires=False)
def test_nothing_is_claimed_where_a_library_is_missing() -> None:
    assert judged(node("pkg/x.so", wants("g")), gone=("libgone.so",)) == []


@pytest.mark.rule("undefined-symbol", fires=False)
def test_objects_of_other_distributions_are_not_judged() -> None:
    assert judged(node("pkg/x.so"), node("other/liba.so", wants("g"), owner="given")) == []


@pytest.mark.rule("undefined-symbol", fires=False)
def test_runtime_symbols_are_told_by_the_runtime_rules() -> None:
    assert judged(node("pkg/x.so", wants("__cxa_throw"))) == []


NEW = "_ZN4fc103ErrC1ENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
OLD = "_ZN4fc103ErrC1ESs"
# With a second argument the two manglings differ in more than the spelling of the first (substitutions).
NEW_TWICE = "_ZN1a1fERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES6_"
OLD_TWICE = "_ZN1a1fERKSsS1_"


@pytest.mark.parametrize(
    ("wanted", "given", "ours"), [(NEW, OLD, "new"), (OLD, NEW, "old"), (NEW_TWICE, OLD_TWICE, "new")]
)
def test_the_other_string_abi_is_the_nearest_match(wanted: str, given: str, ours: str) -> None:
    (finding,) = judged(node("pkg/x.so", wants(wanted)), node("other/libo.so", gives(given), owner="given"))
    assert finding.evidence["nearest"] == {"kind": "string-abi", "library": "other/libo.so", "symbol": given}
    assert f"compiled for the {ours} one" in finding.message
    assert finding.library == "other/libo.so"


def test_another_function_with_the_other_string_is_no_match() -> None:
    (finding,) = judged(node("pkg/x.so", wants(NEW)), node("pkg/liba.so", gives("_ZN4fc103ErrC1ESsi")))
    assert "nearest" not in finding.evidence


def test_a_local_symbol_is_named() -> None:
    library = node("pkg/liba.so", local_names=frozenset({"g"}))
    (finding,) = judged(node("pkg/x.so", wants("g")), library)
    assert finding.evidence["nearest"] == {"kind": "local", "library": "pkg/liba.so", "symbol": "g"}


def test_a_sibling_outside_the_scope_is_named() -> None:
    (finding,) = judged(node("pkg/x.so", wants("g")), beside=(node("pkg/liba.so", gives("g")),))
    assert finding.evidence["nearest"] == {"kind": "outside-scope", "library": "pkg/liba.so", "symbol": "g"}


def test_another_version_is_named() -> None:
    library = node(
        "pkg/liba.so",
        gives("g", version="V3", version_index=3, hidden=True),
        versioned=True,
        verdef=(VersionDef("V2", 2), VersionDef("V3", 3)),
    )
    (finding,) = judged(node("pkg/x.so", wants("g")), library)
    assert finding.evidence["nearest"] == {"kind": "version", "library": "pkg/liba.so", "symbol": "g"}
    assert "version V3" in finding.message


def test_two_explanations_make_two_findings_also_of_one_library() -> None:
    library = node(
        "pkg/liba.so",
        gives("g", version="V3", version_index=3, hidden=True),
        local_names=frozenset({"l", "m"}),
        versioned=True,
        verdef=(VersionDef("V2", 2), VersionDef("V3", 3)),
    )
    found = judged(node("pkg/x.so", wants("l"), wants("g"), wants("m")), library)
    assert [f.evidence["nearest"] for f in found] == [
        {"kind": "local", "library": "pkg/liba.so", "symbol": "l"},
        {"kind": "version", "library": "pkg/liba.so", "symbol": "g"},
    ]


def test_symbols_with_one_explanation_make_one_finding() -> None:
    (finding,) = judged(node("pkg/x.so", *(wants(f"g{i}") for i in range(50))))
    assert finding.evidence["count"] == 50
    assert len(finding.evidence["symbols"]) == 20  # type: ignore[arg-type]


def needs(file: str, *versions: str) -> dict[str, object]:
    refs = tuple(VersionRef(v, i) for i, v in enumerate(versions, start=2))
    return {"verneed": (VersionNeed(file, refs),), "versioned": True}


V1 = {"verdef": (VersionDef("V1", 2),), "versioned": True}


@pytest.mark.rule("symbol-version-missing", fires=True)
@pytest.mark.rule("undefined-symbol", fires=False)
def test_version_that_the_bundled_library_lacks_is_one_error() -> None:
    root = node("pkg/x.so", wants("g", "V2", "liba.so"), **needs("liba.so", "V1", "V2"))
    library = node("pkg/liba.so", gives("g", version="V1", version_index=2), **V1)
    (finding,) = judged(root, library)
    assert (finding.rule, finding.library, finding.evidence["versions"]) == (
        "symbol-version-missing",
        "liba.so",
        ["V2"],
    )
    assert finding.evidence["provider"] == "pkg/liba.so"


@pytest.mark.rule("symbol-version-missing", fires=False)
def test_version_that_the_bundled_library_has_is_right() -> None:
    root = node("pkg/x.so", wants("g", "V1", "liba.so"), **needs("liba.so", "V1"))
    assert judged(root, node("pkg/liba.so", gives("g", version="V1", version_index=2), **V1)) == []


@pytest.mark.rule("symbol-version-missing", fires=True)
@pytest.mark.rule("undefined-symbol", fires=True)
def test_a_version_error_explains_its_own_symbols_alone() -> None:
    verneed = (VersionNeed("liba.so", (VersionRef("V1"),)), VersionNeed("libb.so", (VersionRef("V2", 3),)))
    symbols = wants("g", "V1", "liba.so"), wants("g", "V2", "libb.so"), wants("h")
    root = node("pkg/x.so", *symbols, verneed=verneed, versioned=True)
    libraries = (
        node(f"pkg/{n}.so", gives("g", version="V1", version_index=2), **V1) for n in ("liba", "libb")
    )
    found = judged(root, *libraries)
    assert [(f.rule, f.library, f.symbol) for f in found] == [
        ("symbol-version-missing", "libb.so", None),
        ("undefined-symbol", None, "h"),
    ]


@pytest.mark.rule("symbol-version-missing", fires=True)
def test_a_version_is_told_once_with_the_first_root_and_what_is_loaded_there() -> None:
    helper = node("pkg/libh.so", **needs("liba.so", "V2", "V2", "V3"))
    v3 = node("pkg/one/liba.so", verdef=(VersionDef("V1", 2), VersionDef("V3", 3)), versioned=True)
    first = node("pkg/one.so"), v3, helper
    others = (loaded(node(f"pkg/{n}.so"), node(f"pkg/{n}/liba.so", **V1), helper) for n in ("two", "three"))
    (finding,) = judged(*first, others=tuple(others))
    assert finding.evidence == {
        "file": "liba.so",
        "versions": ["V2", "V3"],
        "root": "pkg/one.so",
        "provider": "pkg/one/liba.so",
    }


@pytest.mark.rule("symbol-version-missing", fires=True)
def test_the_versions_that_other_distributions_lack_are_not_told() -> None:
    others = node("other/libo.so", owner="given", **needs("liba.so", "V2"))
    helper = node("pkg/libh.so", **needs("liba.so", "V3"))
    (finding,) = judged(node("pkg/x.so"), node("pkg/liba.so", **V1), others, helper)
    assert (finding.member, finding.evidence["versions"]) == ("pkg/libh.so", ["V3"])


LATER = PlatformPolicy(
    "manylinux_2_34_x86_64",
    "x86_64",
    "glibc",
    (2, 34),
    frozenset({"libc.so.6"}),
    {"GLIBC": frozenset({"2.17", "2.28", "2.34"})},
)


@pytest.mark.rule("symbol-version-missing", fires=True)
@pytest.mark.rule("symbol-version-missing", fires=False)
@pytest.mark.parametrize(
    ("version", "platforms", "fires"),
    [
        ("GLIBC_2.28", (TAG,), True),
        ("GLIBC_2.34", (TAG,), False),  # symbol-version-too-new tells
        ("GLIBC_2.34", (LATER, TAG), False),
        ("GLIBC_2.34", (LATER,), True),
        ("GLIBC_PRIVATE", (TAG,), False),  # symbol-version-private tells
    ],
)
def test_versions_of_glibc_that_a_library_of_the_wheel_lacks(
    version: str, platforms: tuple[PlatformPolicy, ...], fires: bool
) -> None:
    root = node("pkg/x.so", **needs("liba.so", version, "V3"))
    (finding,) = judged(root, node("pkg/liba.so", **V1), platforms=platforms)
    assert finding.evidence["versions"] == ([version, "V3"] if fires else ["V3"])


@pytest.mark.rule("symbol-version-missing", fires=True)
@pytest.mark.rule("undefined-symbol", fires=True)
def test_named_library_without_any_versions_is_an_error() -> None:
    root = node("pkg/x.so", wants("g", "V1", "liba.so"), wants("h"), **needs("liba.so", "V1"))
    libraries = node("pkg/libfirst.so", versioned=True), node("pkg/liba.so", gives("g"), gives("other"))
    finding, undefined = judged(root, *libraries)
    assert finding.rule == "symbol-version-missing"
    assert "no versions at all" in finding.message
    assert (undefined.rule, undefined.symbol) == ("undefined-symbol", "h")


@pytest.mark.rule("undefined-symbol", fires=True)
@pytest.mark.parametrize(
    "facts",
    [
        {"versioned": True},
        {"verneed": (VersionNeed("libc.so.6", ()),)},
        {"verdef": (VersionDef("V1", 2),)},
    ],
)
def test_a_named_library_with_versions_of_any_kind_has_the_symbol_in_another(
    facts: dict[str, object],
) -> None:
    root = node("pkg/x.so", wants("g", "V1", "liba.so"), **needs("liba.so", "V1"))
    library = node("pkg/liba.so", gives("g", version="V3", version_index=3), **facts)
    (finding,) = judged(root, library)
    assert finding.evidence["nearest"] == {"kind": "version", "library": "pkg/liba.so", "symbol": "g"}


@pytest.mark.rule("undefined-symbol", fires=True)
@pytest.mark.parametrize("symbol", [gives("g", visibility=STV_HIDDEN), gives("h")])
def test_a_named_library_without_versions_that_does_not_export_the_symbol(symbol: Symbol) -> None:
    root = node("pkg/x.so", wants("g", "V1", "liba.so"), **needs("liba.so", "V1"))
    found = judged(root, node("pkg/liba.so", symbol, gives("other")))
    assert [f.rule for f in found] == ["undefined-symbol"]


@pytest.mark.rule("symbol-version-missing", fires=False)
@pytest.mark.rule("undefined-symbol", fires=False)
@pytest.mark.parametrize("version", ["GLIBC_2.34", "GLIBC_2.28", "GLIBC_PRIVATE"])
def test_versions_of_the_promised_machine_are_judged_by_the_tag(version: str) -> None:
    # 2.34 is too new for the tag; 2.28 is promised, whatever the data of the library say.
    root = node("pkg/x.so", wants("g", version, "libc.so.6"), **needs("libc.so.6", version))
    libc = node("libc.so.6", owner="host", verdef=(VersionDef("GLIBC_2.17", 2),), versioned=True)
    assert judged(root, libc) == []


@pytest.mark.rule("symbol-version-missing", fires=True)
def test_versions_of_this_machine_are_judged_where_it_is_asked_for() -> None:
    root = node("pkg/x.so", **needs("libc.so.6", "GLIBC_2.28"))
    libc = node("libc.so.6", owner="host", verdef=(VersionDef("GLIBC_2.17", 2),), versioned=True)
    assert [f.rule for f in judged(root, libc, baseline="host")] == ["symbol-version-missing"]


@pytest.mark.rule("verneed-orphan", fires=True)
def test_versions_of_a_file_that_nothing_loads_are_an_error() -> None:
    (finding,) = judged(node("pkg/x.so", **needs("libz.so.1", "ZLIB_1.2.9")), node("pkg/libz-1a2b.so.1"))
    assert (finding.rule, finding.severity, finding.library) == ("verneed-orphan", "error", "libz.so.1")
    assert finding.evidence == {"file": "libz.so.1", "versions": ["ZLIB_1.2.9"], "root": "pkg/x.so"}


@pytest.mark.rule("verneed-orphan", fires=True)
@pytest.mark.parametrize("version", ["GLIBC_2.28", "GLIBC_2.34", "GLIBC_PRIVATE"])
def test_an_orphan_is_one_whatever_the_version(version: str) -> None:
    (finding,) = judged(node("pkg/x.so", **needs("libc.so.6", version)))
    assert (finding.rule, finding.evidence["versions"]) == ("verneed-orphan", [version])


@pytest.mark.rule("verneed-orphan", fires=False)
def test_versions_of_a_file_that_is_loaded_or_missing_are_no_orphans() -> None:
    root = node("pkg/x.so", **needs("liba.so", "V1"))
    assert judged(root, node("pkg/liba.so", **V1)) == []
    assert judged(root, gone=("liba.so",)) == []
