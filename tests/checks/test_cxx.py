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
RETHROW, CAST = "__cxa_rethrow", "__dynamic_cast"
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


def judged(
    *scope: Node,
    policy: CxxRuntime | None = None,
    platform: PlatformPolicy = TAG,
    host: Node | None = LIBSTDCXX,
    interpreter: tuple[Node, ...] = (),
) -> list[Finding]:
    """The findings on a wheel whose root needs the rest of the scope; ``host`` is the promised libstdc++."""
    root = scope[0]
    edges = tuple(Edge(root.path, root.path, n.path.rpartition("/")[2], "found", n.path) for n in scope[1:])
    world = World(
        {n.location: n for n in scope},
        frozenset(),
        host={"libstdc++.so.6": host} if host is not None else {},
        libc_version=(2, 28),
        interpreter=interpreter,
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
        ("libc++abi-1a2b.so.1", True),
        ("libc++.so.1.0", True),
        ("libc++-1a2b.so.1", True),
        ("libgcc_s.so.1", True),
        ("libunwind.so.8", True),
        ("libunwind-1a2b.so.8", True),
        ("libunwinder.so.8", False),
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


def test_every_runtime_that_is_needed_is_told_once() -> None:
    names = ("libstdc++.so.6", "libgcc_s.so.1", "libc++abi.so.1", "libstdc++.so.6")
    (plain,) = judged(node("pkg/x.so", needed=names), policy=STATIC)
    assert plain.evidence == {"needed": ["libstdc++.so.6", "libc++abi.so.1"]}
    assert plain.library == "libstdc++.so.6"
    assert plain.message.startswith("pkg/x.so needs libstdc++.so.6 and libc++abi.so.1;")
    (strict,) = judged(
        node("pkg/x.so", needed=names), policy=CxxRuntime("k", linkage="static", libgcc="static")
    )
    assert strict.evidence == {"needed": ["libstdc++.so.6", "libgcc_s.so.1", "libc++abi.so.1"]}


@pytest.mark.rule("cxx-runtime-dynamic", fires=False)
@pytest.mark.parametrize(
    ("needed", "policy"),
    [
        ("libstdc++.so.6", None),
        ("libstdc++.so.6", CxxRuntime("k", linkage="any")),
        ("libstdc++.so.6", CxxRuntime("k", linkage="static", objects=("other/**",))),
        ("libgcc_s.so.1", STATIC),  # libgcc = "any"
        ("libc.so.6", STATIC),
        ("libstdc++.so.6", CxxRuntime("k", linkage="host")),
    ],
)
def test_shared_runtime_that_no_policy_forbids_is_right(needed: str, policy: CxxRuntime | None) -> None:
    assert judged(node("pkg/x.so", needed=(needed,)), policy=policy) == []


@pytest.mark.rule("cxx-runtime-dynamic", fires=True)
def test_shared_libgcc_counts_where_the_policy_says_so() -> None:
    policy = CxxRuntime("k", linkage="static", libgcc="static")
    (finding,) = judged(node("pkg/x.so", needed=("libgcc_s.so.1",)), policy=policy)
    assert (finding.rule, finding.library) == ("cxx-runtime-dynamic", "libgcc_s.so.1")


@pytest.mark.rule("cxx-runtime-dynamic", fires=False)
@pytest.mark.parametrize(
    ("path", "soname"),
    [
        ("pkg.libs/libc++.so.1", "libc++.so.1"),
        ("pkg.libs/libc++-1a2b.so.1", None),
        ("pkg/r.so", "libc++-1a2b.so.1"),
        ("pkg/libc++-1a2b.so.1", "libr.so"),
    ],
)
def test_a_runtime_library_may_need_and_hold_a_runtime(path: str, soname: str | None) -> None:
    library = node(path, gives(CORE), soname=soname, needed=("libc++abi.so.1", "libgcc_s.so.1"))
    policy = CxxRuntime("k", linkage="static", libgcc="static", exports="forbid")
    assert judged(library, policy=policy) == []
    bare = node(path, gives(CORE), soname=soname)
    assert judged(bare, policy=CxxRuntime("k", linkage="host", exports="forbid")) == []


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


@pytest.mark.rule("cxx-runtime-static", fires=False)
@pytest.mark.parametrize("policy", [HOST, STATIC])
def test_an_object_without_a_runtime_of_its_own_is_right(policy: CxxRuntime) -> None:
    plain = node("pkg/x.so", gives("f"), local_names=frozenset({"f", "g", LATER}))
    assert judged(plain, policy=policy) == []


@pytest.mark.rule("cxx-runtime-static", fires=False)
def test_an_own_runtime_is_right_where_the_policy_asks_for_it_or_for_nothing() -> None:
    hidden = node("pkg/x.so", local_names=frozenset({CORE}))
    for policy in (STATIC, CxxRuntime("k"), CxxRuntime("k", linkage="host", objects=("other/**",)), None):
        assert judged(hidden, policy=policy) == []


@pytest.mark.rule("cxx-runtime-static", fires=True)
def test_what_an_object_holds_of_the_runtime_is_told_exported_names_first() -> None:
    host = node("host:libstdc++.so.6", *(gives(n) for n in (CORE, CAST, RETHROW)), owner="host")
    exporting = node("pkg/x.so", gives(RETHROW), local_names=frozenset({RETHROW, CORE, CAST}))
    (finding,) = [f for f in judged(exporting, policy=HOST, host=host) if f.rule == "cxx-runtime-static"]
    assert [s["symbol"] for s in finding.evidence["symbols"]] == [RETHROW, CORE, CAST]  # type: ignore[attr-defined]
    assert (finding.evidence["count"], finding.policy) == (3, "k")
    leftover = node("pkg/x.so", gives(LATER), local_names=frozenset({CORE}))
    (finding,) = judged(leftover, policy=HOST)
    assert finding.evidence["symbols"] == [{"symbol": CORE}]
    shared = node("pkg/x.so", local_names=frozenset({CORE}), needed=("libstdc++.so.6",))
    assert judged(shared, policy=HOST) == []
    wanted = node("pkg/x.so", wants(CORE), local_names=frozenset({CORE}))  # .symtab names imports too
    assert judged(wanted, LIBSTDCXX, policy=HOST) == []


@pytest.mark.rule("cxx-runtime-missing", fires=True)
def test_runtime_symbols_without_a_runtime_are_one_error() -> None:
    (finding,) = judged(node("pkg/x.so", wants(CORE), wants("_Unwind_Resume"), wants("unrelated")))
    assert (finding.rule, finding.severity, finding.evidence["count"]) == ("cxx-runtime-missing", "error", 2)
    assert "needs no C++ runtime library" in finding.message
    assert (finding.symbol, finding.evidence["root"]) == (CORE, "pkg/x.so")
    assert "Link with g++" in finding.remedy


@pytest.mark.rule("cxx-runtime-missing", fires=True)
def test_unversioned_symbol_that_the_promised_runtime_lacks_is_an_error() -> None:
    for name in ("libstdc++.so.6", "libc++.so.1"):
        (finding,) = judged(node("pkg/x.so", wants(LATER), needed=("libc.so.6", name)), LIBSTDCXX)
        assert finding.rule == "cxx-runtime-missing"
        assert "older on the promised machine" in finding.message
        assert "compiler of the tag's image" in finding.remedy
    (finding,) = judged(node("pkg/x.so", wants(LATER), needed=("libgcc_s.so.1",)), LIBSTDCXX)
    assert "needs no C++ runtime library" in finding.message


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
    assert finding.message == (
        "pkg/x.so takes 2 symbols of the C++ runtime from torch/lib/libt.so of torch, which is no C++ runtime and "
        "leaks a copy; the libstdc++ of manylinux_2_28_x86_64 lacks 1 of them"
    )
    assert finding.evidence["lenders"] == {"torch/lib/libt.so": [LATER, CORE]}
    assert (finding.evidence["count"], finding.symbol, finding.policy) == (2, LATER, None)


@pytest.mark.parametrize(
    "host",
    [
        None,
        Node("host:libstdc++.so.6", "/host/libstdc++.so.6", ElfFacts(complete=False), "host"),
        Node("host:libstdc++.so.6", "/host/libstdc++.so.6", None, "host"),
        node("host:libstdc++.so.6", gives(LATER), owner="host"),
    ],
)
def test_only_a_runtime_that_is_known_is_said_to_lack_a_symbol(host: Node | None) -> None:
    lender = node("torch/lib/libt.so", gives(LATER), owner="given", of="torch")
    (finding,) = judged(node("pkg/x.so", wants(LATER)), lender, host=host)
    assert finding.evidence["host-lacks"] == []
    assert finding.message.endswith(
        "takes 1 symbol of the C++ runtime from torch/lib/libt.so of torch, which is no C++ runtime and leaks a copy"
    )


@pytest.mark.rule("cxx-runtime-borrowed", fires=True)
def test_lenders_of_other_distributions_are_told_one_by_one_and_those_of_the_wheel_together() -> None:
    lenders = [node(f"{of}/lib.so", gives(n), owner="given", of=of) for of, n in (("t", LATER), ("u", CORE))]
    found = judged(node("pkg/x.so", wants(LATER), wants(CORE)), *lenders)
    assert [(f.library, f.severity) for f in found] == [("t/lib.so", "error"), ("u/lib.so", "error")]
    own = [node(f"pkg/{i}.so", gives(n)) for i, n in enumerate((LATER, CORE))]
    (together,) = [
        f for f in judged(node("pkg/x.so", wants(LATER), wants(CORE)), *own) if "borrowed" in f.rule
    ]
    assert (together.library, together.severity) == ("pkg/0.so", "info")
    assert "from pkg/0.so and 1 more of the wheel, which" in together.message
    assert together.evidence["lenders"] == {"pkg/0.so": [LATER], "pkg/1.so": [CORE]}


@pytest.mark.rule("cxx-runtime-borrowed", fires=False)
@pytest.mark.parametrize(
    "symbol",
    [
        pytest.param(wants("not_of_the_runtime"), id="another symbol"),
        pytest.param(gives(LATER, lookups=LOOKUP_COPY), id="its own"),
    ],
)
def test_what_is_no_loan(symbol: Symbol) -> None:
    lender = node("t/lib.so", gives(LATER), gives("not_of_the_runtime"), owner="given", of="t")
    assert judged(node("pkg/x.so", symbol), lender) == []


@pytest.mark.rule("cxx-runtime-borrowed", fires=True)
def test_symbols_that_are_no_loan_do_not_hide_those_behind_them() -> None:
    lender = node("t/lib.so", gives(LATER), gives("f"), owner="given", of="t")
    (finding,) = judged(node("pkg/x.so", wants("f"), wants(LATER)), lender)
    assert finding.evidence["lenders"] == {"t/lib.so": [LATER]}


@pytest.mark.rule("cxx-runtime-borrowed", fires=False)
def test_the_process_and_the_machine_lend_nothing_and_loans_of_others_are_their_own() -> None:
    root = node("pkg/x.so", wants(LATER))
    process = node("interpreter", gives(LATER), owner="interpreter")
    assert judged(root, interpreter=(process,)) == []
    assert judged(root, node("host:libm.so.6", gives(LATER), owner="host")) == []
    borrower = node("t/lib.so", wants(LATER), owner="given", of="t")
    assert judged(node("pkg/x.so"), borrower, node("t/b.so", gives(LATER), owner="given", of="t")) == []


@pytest.mark.rule("cxx-runtime-borrowed", fires=True)
@pytest.mark.parametrize(("policy", "severity"), [(None, "info"), (STATIC, "error")])
def test_runtime_symbol_of_the_same_wheel_is_a_note_unless_the_policy_says_static(
    policy: CxxRuntime | None, severity: str
) -> None:
    lender = node("pkg/liblender.so", gives(LATER))
    (finding,) = judged(node("pkg/x.so", wants(LATER)), lender, policy=policy)
    assert (finding.rule, finding.severity) == ("cxx-runtime-borrowed", severity)
    assert finding.policy == (policy.key if policy else None)
    assert "from pkg/liblender.so, which is no C++ runtime" in finding.message
    (plain,) = judged(node("pkg/x.so", wants(LATER)), lender, policy=CxxRuntime("k", linkage="any"))
    assert (plain.severity, plain.policy) == ("info", None)


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
    assert found[0].evidence == {"soname": name, "tags": ["manylinux_2_28_x86_64"]}
    for path, soname in (
        (f"pkg/lib/{name}", None),
        ("pkg/lib/other.so", name),
        (f"pkg/lib/{name}", "libgcc_s-1a.so.1"),
    ):
        (finding,) = [f for f in judged(node(path, soname=soname)) if f.rule == "cxx-runtime-bundled"]
        assert (finding.library, finding.evidence["soname"]) == (name, soname)


@pytest.mark.rule("cxx-runtime-bundled", fires=False)
def test_renamed_runtime_and_one_that_no_tag_promises_are_right() -> None:
    assert judged(node("pkg.libs/libc.so.6", soname="libc.so.6")) == []  # promised, and no C++ runtime
    assert judged(node("pkg.libs/libstdc++-1a2b.so.6", soname="libstdc++-1a2b.so.6")) == []
    musl = PlatformPolicy("musllinux_1_2_x86_64", "x86_64", "musl", (1, 2), frozenset({"libc.so"}), {})
    assert judged(node("pkg.libs/libstdc++.so.6", soname="libstdc++.so.6"), platform=musl) == []


@pytest.mark.rule("cxx-runtime-exported", fires=True)
@pytest.mark.parametrize("needed", [(), ("libstdc++.so.6",)])
def test_exported_runtime_is_a_warning(needed: tuple[str, ...]) -> None:
    (finding,) = judged(node("pkg/x.so", gives(CORE), needed=needed))
    assert (finding.rule, finding.severity, finding.symbol) == ("cxx-runtime-exported", "warning", CORE)
    assert ("needs no shared one" in finding.message) is (needed == ())
    assert finding.policy is None


def test_an_export_is_told_with_all_that_the_object_exports() -> None:
    symbols = (
        wants("f"),
        gives("g", visibility=2),
        gives(RETHROW),
        gives(CORE),
        gives("u", bind=STB_GNU_UNIQUE),
    )
    host = node("host:libstdc++.so.6", gives(CORE), gives(RETHROW), owner="host")
    hidden = gives("v", bind=STB_GNU_UNIQUE, visibility=2)
    (finding,) = judged(node("pkg/x.so", *symbols, hidden), host=host)
    assert (finding.symbol, finding.evidence["count"]) == (RETHROW, 2)
    assert (finding.evidence["exported"], finding.evidence["unique"]) == (3, 1)
    assert finding.message.startswith("pkg/x.so exports 2 internals of the C++ runtime and needs")
    assert finding.message.endswith("(3 exported symbols, 1 of them unique)")


@pytest.mark.parametrize(
    ("in_host", "leaks"),
    [
        pytest.param(gives(LATER), True, id="what the host has"),
        pytest.param(gives(LATER, bind=STB_WEAK), False, id="a weak one every object may hold"),
        pytest.param(gives(LATER, visibility=2), False, id="the host hides it"),
        pytest.param(wants(LATER), False, id="the host wants it"),
    ],
)
def test_what_is_core_the_promised_libstdcxx_tells(in_host: Symbol, leaks: bool) -> None:
    host = node("host:libstdc++.so.6", in_host, owner="host")
    assert bool(judged(node("pkg/x.so", gives(LATER)), host=host)) is leaks


@pytest.mark.parametrize(
    "host", [None, Node("host:libstdc++.so.6", "/host/libstdc++.so.6", ElfFacts(complete=False), "host")]
)
def test_all_that_is_known_is_core_where_the_promised_libstdcxx_is_not(host: Node | None) -> None:
    assert [f.rule for f in judged(node("pkg/x.so", gives(LATER)), host=host)] == ["cxx-runtime-exported"]


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
    assert judged(node("pkg/x.so", gives("own")), policy=policy) == []
    allowing = CxxRuntime("k", exports="allow")
    assert judged(node("pkg/x.so", gives(LATER), needed=("libstdc++.so.6",)), policy=allowing) == []
    (core,) = judged(node("pkg/x.so", gives(CORE)), policy=allowing)
    assert (core.severity, core.policy) == ("warning", None)


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
    assert judged(unknown, node("pkg/a.so", unique(64))) == []
    for other in (
        unique(128)._replace(bind=1),
        unique(128)._replace(visibility=2),
        unique(128)._replace(section=0),
    ):
        assert judged(node("pkg/a.so", unique(64)), node("pkg/b.so", other)) == []
    assert judged(node("pkg/a.so", unique(64)), Node("pkg/text", "/pkg/text", None)) == []


def test_the_wheels_own_object_is_told_first_and_each_pair_once() -> None:
    theirs = node("t/lib.so", unique(128), unique(8)._replace(name="other"), owner="given")
    ours = node("pkg/a.so", unique(64), unique(16, STT_TLS)._replace(name="other"))
    root = node("pkg/x.so")
    (finding,) = judged(root, theirs, ours)
    assert (finding.member, finding.library) == ("pkg/a.so", "t/lib.so")
    assert finding.evidence["count"] == 2
    table, other = finding.evidence["symbols"]  # type: ignore[misc]
    assert table == {
        "symbol": "_ZN8RegistryIiE5tableE",
        "size": 64,
        "other-size": 128,
        "kind": STT_OBJECT,
        "other-kind": STT_OBJECT,
    }
    assert (other["size"], other["other-size"], other["kind"]) == (16, 8, STT_TLS)
    assert "2 unique symbol(s) differently" in finding.message
    assert "has 64 and 128 bytes" in finding.message
    assert finding.symbol == "_ZN8RegistryIiE5tableE"
    (behind,) = judged(
        root,
        node("pkg/a.so", unique(64)),
        node("pkg/b.so", unique(64)),
        node("t/c.so", unique(9), owner="given"),
    )[:1]
    assert (behind.member, behind.library) == ("pkg/a.so", "t/c.so")
    (turned,) = judged(root, ours, theirs)
    assert (turned.member, turned.library) == ("pkg/a.so", "t/lib.so")


def test_the_last_entry_that_matches_an_object_counts() -> None:
    from wheelfix.checks.cxx import entry_for

    entries = (
        CxxRuntime("first", linkage="static"),
        CxxRuntime("second", objects=("pkg/x*",), linkage="any"),
    )
    subject = Subject(WheelFacts("x.whl"), (TAG,), (), Policy(cxx_runtime=entries))
    assert [e.key for p in ("pkg/x.so", "pkg/y.so") if (e := entry_for(subject, p))] == ["second", "first"]
