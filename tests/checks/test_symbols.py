"""Undefined symbols and missing versions, on literal facts."""

from __future__ import annotations

import pytest

from wheelfix.checks.subject import Scene, Subject
from wheelfix.checks.symbols import check
from wheelfix.model.elf import ElfFacts, Segment, Symbol, VersionDef, VersionNeed, VersionRef
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


def judged(
    *scope: Node, beside: tuple[Node, ...] = (), gone: tuple[str, ...] = (), baseline: str = "tag"
) -> list[Finding]:
    """The findings on a wheel whose root needs the rest of the scope; ``beside`` is installed and not loaded."""
    root = scope[0]
    edges = [Edge(root.path, root.path, n.path.rpartition("/")[2], "found", n.path) for n in scope[1:]]
    edges += [Edge(root.path, root.path, name, "missing") for name in gone]
    files = {n.location: n for n in (*scope, *beside)}
    scene = Scene(TAG, World(files, frozenset(), libc_version=(2, 28)), (Load(root, scope, tuple(edges)),))
    members = tuple(
        Member(n.path, n.path, content="elf", elf=n.elf) for n in (*scope, *beside) if n.owner == "wheel"
    )
    runtime = {"libstdc++.so.6": frozenset({"__cxa_throw"})}
    return list(
        check(
            Subject(
                WheelFacts("x.whl", members=members),
                (TAG,),
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
def test_named_library_without_any_versions_is_an_error() -> None:
    root = node("pkg/x.so", wants("g", "V1", "liba.so"), **needs("liba.so", "V1"))
    (finding,) = judged(root, node("pkg/liba.so", gives("g")))
    assert finding.rule == "symbol-version-missing"
    assert "no versions at all" in finding.message


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


@pytest.mark.rule("verneed-orphan", fires=False)
def test_versions_of_a_file_that_is_loaded_or_missing_are_no_orphans() -> None:
    root = node("pkg/x.so", **needs("liba.so", "V1"))
    assert judged(root, node("pkg/liba.so", **V1)) == []
    assert judged(root, gone=("liba.so",)) == []
