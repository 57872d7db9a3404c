"""The contract rules on literal facts: what a policy asks for, and the key in every finding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.checks.literal import MODULE, member, subject_of, wheel_of
from wheelfix.checks.contract import check
from wheelfix.model.elf import LOOKUP_PLT, STB_WEAK, ElfFacts, Symbol
from wheelfix.model.finding import Finding
from wheelfix.model.policy import (
    Deny,
    Policy,
    Registration,
    RequireFile,
    RequireNeeded,
    RpathRule,
    Size,
    SymbolContract,
)
from wheelfix.model.resolution import Node
from wheelfix.model.wheel import Member, WheelFacts

STREAM = "_ZN10executorch9extension4cuda15getCallerStreamEv"
OWNER = ElfFacts(soname="libown.so", symbols=(Symbol(STREAM, section=1),))
USER = ElfFacts(
    needed=("libown.so",),
    runpath="$ORIGIN",
    symbols=(Symbol("PyInit__ext", section=1), Symbol(STREAM, lookups=LOOKUP_PLT)),
)


def judged(
    policy: Policy, *members: Member, given: tuple[WheelFacts, ...] = (), **facts: int
) -> list[Finding]:
    wheel = wheel_of(*(members or (member(MODULE, USER), member("pkg/libown.so", OWNER))), **facts)
    return list(check(subject_of(wheel, policy=policy, given=given)))


def rules(policy: Policy, *members: Member, **facts: int) -> list[tuple[str, str | None]]:
    return [(f.rule, f.policy) for f in judged(policy, *members, **facts)]


NOBODY = "pkg/nobody*"


@pytest.mark.parametrize(
    ("rule", "entry"),
    [
        ("needed", {"require_needed": (RequireNeeded("p:e[0]", NOBODY, "*"),)}),
        ("import", {"imports": (SymbolContract("p:e[0]", NOBODY, "*"),)}),
        ("export", {"exports": (SymbolContract("p:e[0]", NOBODY, "*"),)}),
        ("registration", {"registrations": (Registration("p:e[0]", NOBODY, "x"),)}),
        ("sole-definer", {"sole_definers": (SymbolContract("p:e[0]", NOBODY, "nothing"),)}),
    ],
)
def test_an_entry_that_speaks_of_no_object_is_told_once(rule: str, entry: dict[str, Any]) -> None:
    key = "p:e[0]" if rule == "sole-definer" else "p:e[0].object"
    other, same = RequireFile("p:require-file[0]", MODULE), RequireFile("p:require-file[1]", NOBODY)
    assert rules(Policy(**entry)) == [(f"contract-{rule}", key)]
    assert rules(Policy(require_files=(other,), **entry)) == [(f"contract-{rule}", key)]
    assert rules(Policy(require_files=(other, same), **entry)) == [
        ("contract-file", "p:require-file[1].path")
    ]


@pytest.mark.rule("contract-file", fires=True)
@pytest.mark.rule("contract-file", fires=False)
@pytest.mark.parametrize(
    ("path", "fires"), [("pkg/lib*.so", False), ("lib*.so", True), ("**/libown.so", False)]
)
def test_required_files(path: str, fires: bool) -> None:
    found = rules(Policy(require_files=(RequireFile("p:require-file[0]", path),)))
    assert found == ([("contract-file", "p:require-file[0].path")] if fires else [])


@pytest.mark.rule("contract-file", fires=True)
def test_a_folder_is_no_file() -> None:
    folder = Member("pkg/data/", "pkg/data", content="directory")
    policy = Policy(require_files=(RequireFile("p:require-file[0]", "pkg/data"),))
    assert rules(policy, folder) == [("contract-file", "p:require-file[0].path")]


@pytest.mark.rule("contract-needed", fires=True)
@pytest.mark.rule("contract-needed", fires=False)
@pytest.mark.parametrize(
    ("object_", "library", "key"),
    [
        ("pkg/_ext*.so", "libown*", None),
        ("pkg/_ext*.so", "libother*", "p:require-needed[0]"),
        ("pkg/nobody*", "libown*", "p:require-needed[0].object"),
    ],
)
def test_required_dependencies(object_: str, library: str, key: str | None) -> None:
    found = rules(Policy(require_needed=(RequireNeeded("p:require-needed[0]", object_, library),)))
    assert found == ([("contract-needed", key)] if key else [])


@pytest.mark.rule("contract-needed", fires=False)
@pytest.mark.rule("contract-needed", fires=True)
def test_one_of_several_dependencies_is_enough_and_what_is_there_is_told() -> None:
    one = member(MODULE, ElfFacts(needed=("libm.so.6", "libown.so")))
    wanted = tuple(RequireNeeded(f"p:require-needed[{n}]", MODULE, n) for n in ("libown*", "libz*"))
    (finding,) = judged(Policy(require_needed=wanted), one)
    assert finding.message == "pkg/_ext.so does not need libz*; it needs libm.so.6, libown.so"
    (finding,) = judged(Policy(require_needed=wanted[:1]), member(MODULE, ElfFacts()))
    assert finding.message == "pkg/_ext.so does not need libown*; it needs nothing"


CHAIN = (
    member(
        MODULE, ElfFacts(needed=("liba.so",), rpath="$ORIGIN", symbols=(Symbol("PyInit__ext", section=1),))
    ),
    member("pkg/liba.so", ElfFacts(soname="liba.so", needed=("libcudart.so.13",))),
)


@pytest.mark.rule("contract-deny", fires=True)
def test_a_denied_library_is_found_through_others_and_the_way_is_told() -> None:
    (finding,) = judged(Policy(deny=(Deny("p:deny[0]", "pkg/_ext*", "libcudart*"),)), *CHAIN)
    assert (finding.rule, finding.policy, finding.library) == (
        "contract-deny",
        "p:deny[0]",
        "libcudart.so.13",
    )
    assert finding.evidence["chain"] == [MODULE, "pkg/liba.so", "libcudart.so.13"]
    assert "needs libcudart.so.13 through pkg/liba.so; " in finding.message


def chains(object_: str, *members: Member) -> list[tuple[list[str], str]]:
    """The chains to libcudart, and how each message begins."""
    found = judged(Policy(deny=(Deny("p:deny[0]", object_, "libcudart*"),)), *members)
    return [(f.evidence["chain"], f.message.partition(";")[0]) for f in found]  # type: ignore[misc]


def module_(path: str, *needed: str) -> Member:
    return member(path, ElfFacts(needed=needed, rpath="$ORIGIN", symbols=(Symbol("PyInit_x", section=1),)))


def library(name: str, *needed: str) -> Member:
    return member(f"pkg/{name}", ElfFacts(soname=name, needed=needed))


CUDART = "libcudart.so.13"


@pytest.mark.rule("contract-deny", fires=True)
def test_the_chain_has_every_object_on_the_shortest_way() -> None:
    members = (
        module_(MODULE, "liba.so", "libd.so"),
        library("liba.so", "libb.so", "libd.so"),
        library("libb.so", "libc.so"),
        library("libc.so", CUDART),
        library("libd.so", CUDART, "liba.so"),
        module_("pkg/_z.so", "libb.so"),
    )
    assert chains(MODULE, *members) == [
        ([MODULE, "pkg/libd.so", CUDART], f"{MODULE} needs {CUDART} through pkg/libd.so")
    ]
    assert chains("pkg/_z.so", *members) == [
        (
            ["pkg/_z.so", "pkg/libb.so", "pkg/libc.so", CUDART],
            f"pkg/_z.so needs {CUDART} through pkg/libb.so -> pkg/libc.so",
        )
    ]
    direct = module_(MODULE, "liba.so", CUDART), library("liba.so", CUDART)
    assert chains(MODULE, *direct) == [([MODULE, CUDART], f"{MODULE} needs {CUDART}")]


@pytest.mark.rule("contract-deny", fires=True)
def test_an_object_that_is_no_root_is_walked_under_one_that_reaches_it() -> None:
    members = (
        module_("pkg/_a.so", "libother.so"),
        # The loader comes to libdeep before libtop, which needs it as well.
        module_("pkg/_b.so", "libdeep.so", "libtop.so"),
        library("libother.so"),
        library("libdeep.so", CUDART),
        library("libtop.so", "libdeep.so"),
    )
    assert [chain for chain, _ in chains("pkg/libtop.so", *members)] == [
        ["pkg/libtop.so", "pkg/libdeep.so", CUDART]
    ]


@pytest.mark.rule("contract-deny", fires=False)
def test_what_the_roots_around_an_object_need_is_not_its_own() -> None:
    members = (
        module_("pkg/_a.so", "_ext.so", CUDART),  # loads the object, which is a root itself
        module_(MODULE, "liba.so"),
        module_("pkg/_z.so", CUDART),
        library("liba.so"),
    )
    assert chains(MODULE, *members) == chains("pkg/liba.so", *members) == []


@pytest.mark.rule("contract-deny", fires=True)
def test_a_root_is_walked_as_it_is_opened_by_itself() -> None:
    # Opened through _a.so it would get the liba.so that is loaded already, which needs nothing.
    through = ElfFacts(
        needed=("liba.so", "_ext.so"),
        rpath="$ORIGIN/other:$ORIGIN",
        symbols=(Symbol("PyInit_x", section=1),),
    )
    members = (
        member("pkg/_a.so", through),
        member("pkg/other/liba.so", ElfFacts(soname="liba.so")),
        module_(MODULE, "liba.so"),
        library("liba.so", CUDART),
    )
    assert [chain for chain, _ in chains(MODULE, *members)] == [[MODULE, "pkg/liba.so", CUDART]]


def test_without_a_machine_to_judge_only_the_object_itself_is_known() -> None:
    policy = Policy(deny=(Deny("p:deny[0]", MODULE, CUDART), Deny("p:deny[1]", "pkg/liba.so", CUDART)))
    subject = subject_of(wheel_of(*CHAIN), policy=policy, platforms=())
    assert [f.policy for f in check(subject)] == ["p:deny[1]"]


@pytest.mark.rule("contract-deny", fires=False)
def test_direct_reach_looks_at_the_object_alone() -> None:
    assert rules(Policy(deny=(Deny("p:deny[0]", "pkg/_ext*", "libcudart*", "direct"),)), *CHAIN) == []
    assert rules(Policy(deny=(Deny("p:deny[0]", "pkg/_ext*", "liba*", "direct"),)), *CHAIN) == [
        ("contract-deny", "p:deny[0]")
    ]


@pytest.mark.rule("contract-import", fires=True)
@pytest.mark.rule("contract-import", fires=False)
@pytest.mark.parametrize(
    ("object_", "symbol", "provider", "key"),
    [
        ("pkg/_ext*", "*getCallerStream*", None, None),
        ("pkg/_ext*", "*cuda::getCallerStream*", None, None),
        ("pkg/_ext*", "_ZN10executorch*", None, None),
        ("pkg/_ext*", "*getCallerStream*", "libown.so", None),
        ("pkg/_ext*", "*getCallerStream*", "libother.so", "p:import[0].from"),
        ("pkg/_ext*", "*other*", None, "p:import[0].symbol"),
        ("pkg/libown*", "*getCallerStream*", None, "p:import[0].symbol"),
        ("pkg/nobody*", "*", None, "p:import[0].object"),
    ],
)
def test_imports_and_where_they_bind(
    object_: str, symbol: str, provider: str | None, key: str | None
) -> None:
    found = rules(Policy(imports=(SymbolContract("p:import[0]", object_, symbol, provider),)))
    assert found == ([("contract-import", key)] if key else [])


@pytest.mark.rule("contract-import", fires=True)
def test_an_object_that_defines_what_it_should_import() -> None:
    policy = Policy(imports=tuple(SymbolContract("p:import[0]", "pkg/libown*", s) for s in (STREAM, "f")))
    assert [f.message for f in judged(policy)] == [
        f"pkg/libown.so refers to no symbol that matches {STREAM}; it defines {STREAM} itself",
        "pkg/libown.so refers to no symbol that matches f",
    ]


def from_libown(*members: Member, **world: Any) -> list[str]:
    """Of an import of "f" by the module that must come from libown.so: the messages."""
    policy = Policy(imports=(SymbolContract("p:import[0]", MODULE, "f", "libown.so"),))
    found = list(check(subject_of(wheel_of(*members), policy=policy, world=world)))
    assert {f.policy for f in found} <= {"p:import[0].from"}
    return [f.message.partition(";")[0] for f in found]


def wanting(path: str, *needed: str, names: tuple[str, ...] = ("f",), **more: Any) -> Member:
    wanted = tuple(Symbol(n, lookups=more.pop("lookups", LOOKUP_PLT), **more) for n in names)
    return member(
        path, ElfFacts(needed=needed, rpath="$ORIGIN", symbols=(Symbol("PyInit_x", section=1), *wanted))
    )


def giving(name: str, *names: str, needed: tuple[str, ...] = ()) -> Member:
    symbols = tuple(Symbol(n, section=1) for n in names)
    return member(f"pkg/{name}", ElfFacts(soname=name, needed=needed, symbols=symbols))


@pytest.mark.rule("contract-import", fires=False)
def test_only_the_symbol_of_the_object_that_the_entry_speaks_of_counts() -> None:
    found = from_libown(
        wanting("pkg/_a.so", "libother.so"),  # takes f from elsewhere
        wanting(MODULE, "libown.so", "libother.so", names=("g", "f")),  # takes g from elsewhere
        giving("libown.so", "f"),
        giving("libother.so", "g", "f"),
    )
    assert found == []


@pytest.mark.rule("contract-import", fires=True)
def test_each_symbol_from_elsewhere_is_told_once_whatever_the_roots() -> None:
    inner = member(
        "pkg/libin.so",
        ElfFacts(soname="libin.so", symbols=tuple(Symbol(n, lookups=LOOKUP_PLT) for n in ("f", "f2"))),
    )
    roots = [wanting(f"pkg/_{n}.so", "libown.so", "libin.so", f"lib{n}.so", names=()) for n in "ab"]
    given = giving("liba.so", "f", "f2"), giving("libb.so", "f", "f2")
    policy = Policy(imports=(SymbolContract("p:import[0]", "pkg/libin.so", "f*", "libown.so"),))
    found = judged(policy, *roots, inner, *given, giving("libown.so"))
    assert [(f.symbol, f.evidence["provider"]) for f in found] == [
        ("f", "pkg/liba.so"),
        ("f2", "pkg/liba.so"),
    ]


@pytest.mark.rule("contract-import", fires=True)
def test_a_symbol_from_elsewhere_under_one_root_of_two() -> None:
    inner = member("pkg/libin.so", ElfFacts(soname="libin.so", symbols=(Symbol("f", lookups=LOOKUP_PLT),)))
    roots = [wanting(f"pkg/_{n}.so", "libin.so", f"lib{n}.so", names=()) for n in ("own", "z")]
    policy = Policy(imports=(SymbolContract("p:import[0]", "pkg/libin.so", "f", "libown.so"),))
    (finding,) = judged(policy, *roots, inner, giving("libown.so", "f"), giving("libz.so", "f"))
    assert finding.evidence == {"provider": "pkg/libz.so", "status": "bound", "root": "pkg/_z.so"}


@pytest.mark.rule("contract-import", fires=True)
def test_a_symbol_from_nobody_and_one_from_the_machine() -> None:
    others = wanting("pkg/_a.so", names=("g",)), wanting(MODULE, names=("g", "f"))
    assert from_libown(*others) == [f"{MODULE} gets f from nobody (missing)"]
    machine = Node("host:libx.so", "/host/libx.so", ElfFacts(symbols=(Symbol("f", section=1),)), "host")
    assert from_libown(wanting(MODULE), interpreter=(machine,)) == [
        f"{MODULE} gets f from host:libx.so (bound)"
    ]


@pytest.mark.rule("contract-import", fires=False)
def test_a_library_of_the_machine_goes_by_its_name() -> None:
    machine = Node("host:libown.so", "/host/libown.so", ElfFacts(symbols=(Symbol("f", section=1),)), "host")
    assert from_libown(wanting(MODULE), interpreter=(machine,)) == []


def absent(name: str) -> dict[str, Node]:
    return {name: Node(name, f"/external/{name}", ElfFacts(soname=name, complete=False), "external")}


@pytest.mark.rule("contract-import", fires=False)
def test_what_is_not_decided_is_not_claimed() -> None:
    assert from_libown(wanting(MODULE, "libown.so"), externals=absent("libown.so")) == []
    assert from_libown(wanting(MODULE, "liby.so"), externals=absent("liby.so")) == []  # undecided
    # Bound to another, unless libown.so, which stands before it and was not given, has it.
    both = wanting(MODULE, "libown.so", "libz.so"), giving("libz.so", "f")
    assert from_libown(*both, externals=absent("libown.so")) == []
    assert from_libown(wanting(MODULE, lookups=0)) == []  # no relocation names it
    assert from_libown(wanting(MODULE, bind=STB_WEAK)) == []  # an optional hook


@pytest.mark.rule("contract-export", fires=True)
@pytest.mark.rule("contract-export", fires=False)
@pytest.mark.parametrize(("symbol", "fires"), [("*getCallerStream*", False), ("*Guard*", True)])
def test_exports(symbol: str, fires: bool) -> None:
    found = rules(Policy(exports=(SymbolContract("p:export[0]", "pkg/libown.so", symbol),)))
    assert found == ([("contract-export", "p:export[0].symbol")] if fires else [])


def test_a_symbol_that_became_local_is_named() -> None:
    many = frozenset(f"hidden{n:02}" for n in range(11))
    # .symtab names imports as well; they are not what became local.
    imported = Symbol("hidden00", lookups=LOOKUP_PLT)
    local = member("pkg/libown.so", ElfFacts(local_names=many | {"another"}, symbols=(imported,)))
    policy = Policy(exports=(SymbolContract("p:export[0]", "pkg/libown.so", "hidden*"),))
    (finding,) = judged(policy, local)
    assert finding.message.endswith("; it defines hidden01, but as a local symbol")
    assert finding.evidence == {"local": [f"hidden{n:02}" for n in range(1, 11)]}


def test_of_many_symbols_that_became_local_ten_are_listed() -> None:
    local = member("pkg/libown.so", ElfFacts(local_names=frozenset(f"hidden{n:02}" for n in range(12))))
    policy = Policy(exports=(SymbolContract("p:export[0]", "pkg/libown.so", "hidden*"),))
    (finding,) = judged(policy, local)
    assert finding.evidence == {"local": [f"hidden{n:02}" for n in range(10)]}


SOLE = Policy(sole_definers=(SymbolContract("p:sole-definer[0]", "pkg/libown.so", "*getCallerStream*"),))


@pytest.mark.rule("contract-sole-definer", fires=False)
def test_one_owner_is_right() -> None:
    assert rules(SOLE) == []


@pytest.mark.rule("contract-sole-definer", fires=True)
def test_a_second_definer_is_told_also_in_a_given_wheel_and_none_at_all() -> None:
    other = wheel_of(member("other/libown.so", OWNER), name="other")
    (finding,) = judged(SOLE, given=(other,))
    assert (finding.rule, finding.member) == ("contract-sole-definer", "other/libown.so")
    assert finding.message.startswith("other/libown.so of other defines ")
    assert rules(SOLE, member(MODULE, USER)) == [("contract-sole-definer", "p:sole-definer[0]")]


@pytest.mark.rule("contract-sole-definer", fires=True)
def test_a_second_definer_in_the_wheel_and_the_owners_path_in_another() -> None:
    required = replace(SOLE, require_files=(RequireFile("p:require-file[0]", "pkg/libown.so"),))
    owner, copy = member("pkg/libown.so", OWNER), member("pkg/libcopy.so", OWNER)
    for policy in (SOLE, required):
        (finding,) = judged(policy, owner, copy)
        assert (finding.rule, finding.member) == ("contract-sole-definer", "pkg/libcopy.so")
        assert finding.message.startswith("pkg/libcopy.so defines ")
    (finding,) = judged(SOLE, owner, given=(wheel_of(owner, name="other"),))
    assert finding.evidence == {"distribution": "other"}


@pytest.mark.rule("contract-registration", fires=True)
@pytest.mark.rule("contract-registration", fires=False)
@pytest.mark.parametrize("there", [True, False])
def test_registrations(there: bool) -> None:
    elf = ElfFacts(strings=frozenset({"CudaBackend"} if there else ()), constructors=1)
    policy = Policy(registrations=(Registration("p:registration[0]", "pkg/_ext*", "CudaBackend"),))
    found = judged(policy, member(MODULE, elf))
    assert [f.policy for f in found] == ([] if there else ["p:registration[0].string"])
    assert all(f.evidence["constructors"] == 1 for f in found)


@pytest.mark.rule("contract-rpath", fires=True)
@pytest.mark.rule("contract-rpath", fires=False)
@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("$ORIGIN", []),
        ("${ORIGIN}/", []),
        ("$ORIGIN:$ORIGIN/../lib", []),
        ("$ORIGIN:/opt/lib", ["p:rpath[0].allowed"]),
        (None, ["p:rpath[0].required"]),
    ],
)
def test_search_paths(path: str | None, keys: list[str]) -> None:
    rule = RpathRule("p:rpath[0]", ("pkg/**",), ("$ORIGIN",), ("$ORIGIN", "${ORIGIN}", "$ORIGIN/**"))
    for kind in ("runpath", "rpath"):
        found = rules(Policy(rpaths=(rule,)), member(MODULE, ElfFacts(**{kind: path})))
        assert [key for _, key in found] == keys


@pytest.mark.rule("contract-rpath", fires=True)
def test_only_dynamic_objects_that_the_rule_names_are_asked_for_a_path() -> None:
    rule = RpathRule("p:rpath[0]", ("pkg/**",), ("$ORIGIN",))
    members = (
        member("other/_ext.so", ElfFacts(runpath="/x")),
        member("pkg/bin/static", ElfFacts(dynamic=False)),
        member(MODULE, ElfFacts(runpath="/x")),
    )
    (finding,) = judged(Policy(rpaths=(rule,)), *members)
    assert finding.message == "pkg/_ext.so lacks $ORIGIN in its RUNPATH; it has /x"


@pytest.mark.rule("contract-rpath", fires=False)
def test_any_path_where_the_policy_names_none_and_empty_elements_are_another_rules() -> None:
    for allowed, path in ((None, "$ORIGIN:/x"), (("$ORIGIN",), "$ORIGIN::")):
        rule = RpathRule("p:rpath[0]", ("pkg/**",), ("$ORIGIN",), allowed)
        assert rules(Policy(rpaths=(rule,)), member(MODULE, ElfFacts(runpath=path))) == []


@pytest.mark.rule("contract-size", fires=True)
@pytest.mark.rule("contract-size", fires=False)
@pytest.mark.parametrize(
    ("wheel", "one", "keys"), [(100, 50, []), (101, 51, ["p:size.wheel-max", "p:size.member-max"])]
)
def test_sizes(wheel: int, one: int, keys: list[str]) -> None:
    policy = Policy(size=Size("p:size", 100, 50))
    found = rules(policy, member(MODULE, ElfFacts(), size=one), file_size=wheel)
    assert [key for _, key in found] == keys


@pytest.mark.rule("contract-size", fires=True)
@pytest.mark.parametrize(
    ("limits", "key"), [((100, None), "p:size.wheel-max"), ((None, 50), "p:size.member-max")]
)
def test_one_limit_of_the_two(limits: tuple[int | None, int | None], key: str) -> None:
    policy = Policy(size=Size("p:size", *limits))
    found = rules(policy, member(MODULE, ElfFacts(), size=51), file_size=101)
    assert [told for _, told in found] == [key]
