"""The C++ runtime rules, on literal facts."""

from __future__ import annotations

import pytest

from wheelfix.checks.cxx import check, is_runtime
from wheelfix.checks.subject import Scene, Subject
from wheelfix.model.elf import (
    LOOKUP_COPY,
    STB_GNU_UNIQUE,
    STB_WEAK,
    STT_OBJECT,
    STT_TLS,
    ElfFacts,
    Segment,
    Symbol,
    VersionDef,
)
from wheelfix.model.finding import Finding
from wheelfix.model.policy import CxxRuntime, PlatformPolicy, Policy
from wheelfix.model.resolution import Edge, Load, Node, World
from wheelfix.model.wheel import Member, WheelFacts

STOCK = frozenset({"libc.so.6", "libstdc++.so.6", "libgcc_s.so.1"})
TAG = PlatformPolicy("manylinux_2_28_x86_64", "x86_64", "glibc", (2, 28), STOCK, {})
READ = (Segment(1, 5, 0, 0, 4096, 4096, 4096),)
# libstdc++ has both; the second since GCC 11 only, so that the promised machine lacks it.
CORE, LATER = "__cxa_throw", "_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv"
RUNTIME = {"libstdc++.so.6": frozenset({CORE, LATER}), "libgcc_s.so.1": frozenset({"_Unwind_Resume"})}
VERSION = {"verdef": (VersionDef("CXXABI_1.3", 2),), "versioned": True}


def node(path: str, *symbols: Symbol, owner: str = "wheel", of: str | None = None, **facts: object) -> Node:
    elf = ElfFacts(symbols=symbols, segments=READ, **facts)  # type: ignore[arg-type]
    return Node(path, f"/{path}", elf, owner, of or owner, f"/{path}")  # type: ignore[arg-type]


def gives(name: str, **more: object) -> Symbol:
    return Symbol(name, section=7, value=0x1000, **more)  # type: ignore[arg-type]


def wants(name: str) -> Symbol:
    return Symbol(name, lookups=2)


LIBSTDCXX = node(
    "host:libstdc++.so.6",
    gives(CORE, version="CXXABI_1.3", version_index=2),
    owner="host",
    soname="libstdc++.so.6",
    **VERSION,
)


def judged(*scope: Node, policy: CxxRuntime | None = None, platform: PlatformPolicy = TAG) -> list[Finding]:
    """The findings on a wheel whose root needs the rest of the scope."""
    root = scope[0]
    edges = tuple(Edge(root.path, root.path, n.path.rpartition("/")[2], "found", n.path) for n in scope[1:])
    world = World(
        {n.location: n for n in scope}, frozenset(), host={"libstdc++.so.6": LIBSTDCXX}, libc_version=(2, 28)
    )
    members = tuple(Member(n.path, n.path, content="elf", elf=n.elf) for n in scope if n.owner == "wheel")
    return list(
        check(
            Subject(
                WheelFacts("x.whl", members=members),
                (platform,),
                (Scene(platform, world, (Load(root, scope, edges),)),),
                Policy(cxx_runtime=(policy,) if policy else ()),
                cxx_runtime_symbols=RUNTIME,
            )
        )
    )


STATIC = CxxRuntime("p:cxx-runtime[0]", linkage="static")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("libstdc++.so.6", True),
        ("libstdc++-a1b2c3d4.so.6.0.32", True),
        ("libgcc_s-0cd532bd.so.1", True),
        ("libc++abi.so.1", True),
        ("libstdcxx.so", False),
        ("libc.so.6", False),
        ("libgcc.so", False),
    ],
)
def test_names_of_runtime_libraries(name: str, is_one: bool) -> None:
    assert is_runtime(name) == is_one


@pytest.mark.rule("cxx-runtime-dynamic", fires=True)
def test_shared_runtime_under_a_static_policy_is_an_error() -> None:
    (finding,) = judged(node("pkg/x.so", needed=("libstdc++.so.6", "libc.so.6")), policy=STATIC)
    assert (finding.rule, finding.severity, finding.library, finding.policy) == (
        "cxx-runtime-dynamic",
        "error",
        "libstdc++.so.6",
        "p:cxx-runtime[0]",
    )


@pytest.mark.rule("cxx-runtime-dynamic", fires=False)
@pytest.mark.parametrize(
    ("needed", "policy"),
    [
        ("libstdc++.so.6", None),
        ("libstdc++.so.6", CxxRuntime("k", linkage="any")),
        ("libstdc++.so.6", CxxRuntime("k", linkage="static", objects=("other/**",))),
        ("libgcc_s.so.1", STATIC),  # libgcc = "any"
        ("libc.so.6", STATIC),
    ],
)
def test_shared_runtime_that_no_policy_forbids_is_right(needed: str, policy: CxxRuntime | None) -> None:
    assert judged(node("pkg/x.so", needed=(needed,)), policy=policy) == []


@pytest.mark.rule("cxx-runtime-dynamic", fires=True)
def test_shared_libgcc_counts_where_the_policy_says_so() -> None:
    policy = CxxRuntime("k", linkage="static", libgcc="static")
    (finding,) = judged(node("pkg/x.so", needed=("libgcc_s.so.1",)), policy=policy)
    assert (finding.rule, finding.library) == ("cxx-runtime-dynamic", "libgcc_s.so.1")


HOST = CxxRuntime("k", linkage="host")


@pytest.mark.rule("cxx-runtime-static", fires=True)
@pytest.mark.parametrize("hidden", [False, True])
def test_own_runtime_under_a_host_policy_is_an_error(hidden: bool) -> None:
    own = {"local_names": frozenset({CORE})} if hidden else {}
    found = judged(node("pkg/x.so", *(() if hidden else (gives(CORE),)), **own), policy=HOST)
    assert "cxx-runtime-static" in [f.rule for f in found]


@pytest.mark.rule("cxx-runtime-static", fires=False)
def test_shared_runtime_under_a_host_policy_is_right() -> None:
    root = node("pkg/x.so", wants(CORE), needed=("libstdc++.so.6",), local_names=frozenset({CORE}))
    assert judged(root, LIBSTDCXX, policy=HOST) == []


@pytest.mark.rule("cxx-runtime-missing", fires=True)
def test_runtime_symbols_without_a_runtime_are_one_error() -> None:
    (finding,) = judged(node("pkg/x.so", wants(CORE), wants("_Unwind_Resume"), wants("unrelated")))
    assert (finding.rule, finding.severity, finding.evidence["count"]) == ("cxx-runtime-missing", "error", 2)
    assert "needs no C++ runtime library" in finding.message


@pytest.mark.rule("cxx-runtime-missing", fires=True)
def test_unversioned_symbol_that_the_promised_runtime_lacks_is_an_error() -> None:
    (finding,) = judged(node("pkg/x.so", wants(LATER), needed=("libstdc++.so.6",)), LIBSTDCXX)
    assert finding.rule == "cxx-runtime-missing"
    assert "older on the promised machine" in finding.message


@pytest.mark.rule("cxx-runtime-missing", fires=False)
@pytest.mark.rule("cxx-runtime-borrowed", fires=False)
def test_symbols_of_the_hosts_runtime_are_right() -> None:
    assert judged(node("pkg/x.so", wants(CORE)), LIBSTDCXX) == []


@pytest.mark.rule("cxx-runtime-missing", fires=False)
def test_nothing_is_claimed_where_a_library_was_not_given() -> None:
    unknown = Node("libx.so", "/external/libx.so", ElfFacts(complete=False), "external")
    assert judged(node("pkg/x.so", wants(LATER)), unknown) == []


@pytest.mark.rule("cxx-runtime-borrowed", fires=True)
def test_runtime_symbol_of_another_distribution_is_an_error() -> None:
    lender = node("torch/lib/libt.so", gives(LATER), gives(CORE), owner="given", of="torch")
    (finding,) = judged(node("pkg/x.so", wants(LATER), wants(CORE)), lender, LIBSTDCXX)
    assert (finding.rule, finding.severity, finding.library) == (
        "cxx-runtime-borrowed",
        "error",
        "torch/lib/libt.so",
    )
    assert finding.evidence["host-lacks"] == [LATER]


@pytest.mark.rule("cxx-runtime-borrowed", fires=True)
@pytest.mark.parametrize(("policy", "severity"), [(None, "info"), (STATIC, "error")])
def test_runtime_symbol_of_the_same_wheel_is_a_note_unless_the_policy_says_static(
    policy: CxxRuntime | None, severity: str
) -> None:
    lender = node("pkg/liblender.so", gives(LATER))
    (finding,) = judged(node("pkg/x.so", wants(LATER)), lender, policy=policy)
    assert (finding.rule, finding.severity) == ("cxx-runtime-borrowed", severity)
    assert finding.policy == (policy.key if policy else None)


@pytest.mark.rule("cxx-runtime-borrowed", fires=False)
@pytest.mark.parametrize("soname", ["libstdc++.so.6", "libstdc++-1a2b.so.6", "libgcc_s-1a2b.so.1"])
def test_runtime_libraries_lend_nothing(soname: str) -> None:
    library = node(f"pkg.libs/{soname}", gives(LATER), soname=soname)
    found = judged(node("pkg/x.so", wants(LATER)), library)
    assert "cxx-runtime-borrowed" not in [f.rule for f in found]


@pytest.mark.rule("cxx-runtime-bundled", fires=True)
@pytest.mark.parametrize("name", ["libstdc++.so.6", "libgcc_s.so.1"])
def test_runtime_under_its_stock_name_is_an_error(name: str) -> None:
    found = judged(node(f"pkg/lib/{name}", soname=name))
    assert [(f.rule, f.library) for f in found] == [("cxx-runtime-bundled", name)]


@pytest.mark.rule("cxx-runtime-bundled", fires=False)
def test_renamed_runtime_and_one_that_no_tag_promises_are_right() -> None:
    assert judged(node("pkg.libs/libstdc++-1a2b.so.6", soname="libstdc++-1a2b.so.6")) == []
    musl = PlatformPolicy("musllinux_1_2_x86_64", "x86_64", "musl", (1, 2), frozenset({"libc.so"}), {})
    assert judged(node("pkg.libs/libstdc++.so.6", soname="libstdc++.so.6"), platform=musl) == []


@pytest.mark.rule("cxx-runtime-exported", fires=True)
@pytest.mark.parametrize("needed", [(), ("libstdc++.so.6",)])
def test_exported_runtime_is_a_warning(needed: tuple[str, ...]) -> None:
    (finding,) = judged(node("pkg/x.so", gives(CORE), needed=needed))
    assert (finding.rule, finding.severity, finding.symbol) == ("cxx-runtime-exported", "warning", CORE)


@pytest.mark.rule("cxx-runtime-exported", fires=False)
@pytest.mark.parametrize(
    "symbol",
    [
        gives(LATER),  # what compilers for older systems put into each object
        gives(
            "_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_",
            bind=STB_WEAK,
        ),
        gives(CORE, lookups=LOOKUP_COPY),  # a program's copy of a variable, such as std::cout
        gives(CORE, visibility=2),
    ],
)
def test_what_is_no_exported_runtime(symbol: Symbol) -> None:
    assert "cxx-runtime-exported" not in [f.rule for f in judged(node("pkg/x.so", symbol))]


@pytest.mark.rule("cxx-runtime-exported", fires=True)
def test_a_policy_that_forbids_exports_forbids_leftovers_too() -> None:
    policy = CxxRuntime("k", exports="forbid")
    (finding,) = judged(node("pkg/x.so", gives(LATER), needed=("libstdc++.so.6",)), policy=policy)
    assert (finding.rule, finding.severity, finding.policy) == ("cxx-runtime-exported", "error", "k")


def unique(size: int, kind: int = STT_OBJECT) -> Symbol:
    return gives("_ZN8RegistryIiE5tableE", bind=STB_GNU_UNIQUE, kind=kind, size=size)


@pytest.mark.rule("gnu-unique-clash", fires=True)
@pytest.mark.parametrize("other", [unique(128), unique(64, STT_TLS)])
def test_unique_symbols_of_another_size_or_kind_are_an_error(other: Symbol) -> None:
    (finding,) = judged(node("pkg/a.so", unique(64)), node("pkg/b.so", other))
    assert (finding.rule, finding.severity, finding.symbol) == (
        "gnu-unique-clash",
        "error",
        "_ZN8RegistryIiE5tableE",
    )


@pytest.mark.rule("gnu-unique-clash", fires=False)
def test_equal_unique_symbols_and_those_of_others_are_right() -> None:
    assert judged(node("pkg/a.so", unique(64)), node("pkg/b.so", unique(64))) == []
    given = (node("t/a.so", unique(64), owner="given"), node("t/b.so", unique(128), owner="given"))
    assert judged(node("pkg/x.so"), *given) == []
    unknown = node("host:libx.so", unique(0), owner="host")
    assert judged(node("pkg/a.so", unique(64)), unknown) == []


def test_the_last_entry_that_matches_an_object_counts() -> None:
    from wheelfix.checks.cxx import entry_for

    entries = (
        CxxRuntime("first", linkage="static"),
        CxxRuntime("second", objects=("pkg/x*",), linkage="any"),
    )
    subject = Subject(WheelFacts("x.whl"), (TAG,), (), Policy(cxx_runtime=entries))
    assert [e.key for p in ("pkg/x.so", "pkg/y.so") if (e := entry_for(subject, p))] == ["second", "first"]
