"""The contract rules on literal facts: what a policy asks for, and the key in every finding."""

from __future__ import annotations

import pytest

from tests.checks.literal import MODULE, member, subject_of, wheel_of
from wheelfix.checks.contract import check
from wheelfix.model.elf import LOOKUP_PLT, ElfFacts, Symbol
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


@pytest.mark.rule("contract-file", fires=True)
@pytest.mark.rule("contract-file", fires=False)
@pytest.mark.parametrize(
    ("path", "fires"), [("pkg/lib*.so", False), ("lib*.so", True), ("**/libown.so", False)]
)
def test_required_files(path: str, fires: bool) -> None:
    found = rules(Policy(require_files=(RequireFile("p:require-file[0]", path),)))
    assert found == ([("contract-file", "p:require-file[0].path")] if fires else [])


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


def test_an_import_that_is_undecided_is_not_reported() -> None:
    alone = member(MODULE, ElfFacts(needed=("libabsent.so",), symbols=(Symbol("f", lookups=LOOKUP_PLT),)))
    policy = Policy(imports=(SymbolContract("p:import[0]", "pkg/_ext*", "f", "libabsent.so"),))
    assert rules(policy, alone) == []


@pytest.mark.rule("contract-export", fires=True)
@pytest.mark.rule("contract-export", fires=False)
@pytest.mark.parametrize(("symbol", "fires"), [("*getCallerStream*", False), ("*Guard*", True)])
def test_exports(symbol: str, fires: bool) -> None:
    found = rules(Policy(exports=(SymbolContract("p:export[0]", "pkg/libown.so", symbol),)))
    assert found == ([("contract-export", "p:export[0].symbol")] if fires else [])


def test_a_symbol_that_became_local_is_named() -> None:
    local = member("pkg/libown.so", ElfFacts(local_names=frozenset({"hidden_now"})))
    (finding,) = judged(Policy(exports=(SymbolContract("p:export[0]", "pkg/libown.so", "hidden*"),)), local)
    assert "local symbol" in finding.message


SOLE = Policy(sole_definers=(SymbolContract("p:sole-definer[0]", "pkg/libown.so", "*getCallerStream*"),))


@pytest.mark.rule("contract-sole-definer", fires=False)
def test_one_owner_is_right() -> None:
    assert rules(SOLE) == []


@pytest.mark.rule("contract-sole-definer", fires=True)
def test_a_second_definer_is_told_also_in_a_given_wheel_and_none_at_all() -> None:
    other = wheel_of(member("other/libown.so", OWNER), name="other")
    (finding,) = judged(SOLE, given=(other,))
    assert (finding.rule, finding.member) == ("contract-sole-definer", "other/libown.so")
    assert rules(SOLE, member(MODULE, USER)) == [("contract-sole-definer", "p:sole-definer[0]")]


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
    found = rules(Policy(rpaths=(rule,)), member(MODULE, ElfFacts(runpath=path)))
    assert [key for _, key in found] == keys


@pytest.mark.rule("contract-size", fires=True)
@pytest.mark.rule("contract-size", fires=False)
@pytest.mark.parametrize(
    ("wheel", "one", "keys"), [(100, 50, []), (101, 51, ["p:size.wheel-max", "p:size.member-max"])]
)
def test_sizes(wheel: int, one: int, keys: list[str]) -> None:
    policy = Policy(size=Size("p:size", 100, 50))
    found = rules(policy, member(MODULE, ElfFacts(), size=one), file_size=wheel)
    assert [key for _, key in found] == keys
