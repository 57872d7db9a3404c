"""musl-forbidden-symbol on literal facts and the real baseline of musl."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wheelfix.checks.musl import check, forbidden_symbols
from wheelfix.checks.subject import Scene, Subject
from wheelfix.model.elf import LOOKUP_PLT, STB_WEAK, ElfFacts, Symbol
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Policy
from wheelfix.model.resolution import Edge, Load, Node, World
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.policy.baseline import host_libraries
from wheelfix.policy.platform import for_platform


def wants(*names: str) -> tuple[Symbol, ...]:
    return tuple(Symbol(n, lookups=LOOKUP_PLT) for n in names)


def scene(tag: str, symbols: tuple[Symbol, ...], *others: ElfFacts) -> Scene:
    platform = for_platform(tag)
    assert platform is not None
    hosts = host_libraries(platform)
    libc = hosts["libc.so" if platform.libc == "musl" else "libc.so.6"]
    root = Node("pkg/a.so", "/x/pkg/a.so", ElfFacts(symbols=symbols))
    more = tuple(Node(f"pkg/lib{i}.so", f"/x/pkg/lib{i}.so", f) for i, f in enumerate(others))
    edges = tuple(Edge(root.path, root.path, n.path.rpartition("/")[2], "found", n.path) for n in more)
    world = World({}, frozenset(), host=hosts, libc=platform.libc, libc_version=platform.libc_version)
    return Scene(platform, world, (Load(root, (root, *more, libc), edges),))


def judged(tag: str, symbols: tuple[Symbol, ...], *others: ElfFacts) -> list[Finding]:
    one = scene(tag, symbols, *others)
    members = tuple(Member(n.path, n.path, content="elf", elf=n.elf) for n in one.loads[0].scope)
    return list(check(Subject(WheelFacts("x.whl", members=members), (one.platform,), (one,), Policy())))


@pytest.mark.rule("musl-forbidden-symbol", fires=True)
def test_what_only_glibc_has_is_an_error_with_all_symbols() -> None:
    (finding,) = judged("musllinux_1_2_x86_64", wants("malloc", "__cxa_thread_atexit_impl", "backtrace"))
    assert (finding.rule, finding.severity, finding.member) == ("musl-forbidden-symbol", "error", "pkg/a.so")
    assert finding.evidence["symbols"] == ["__cxa_thread_atexit_impl", "backtrace"]
    assert (finding.symbol, finding.evidence["tag"]) == ("__cxa_thread_atexit_impl", "musllinux_1_2_x86_64")


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, " and 1 more")])
def test_three_of_the_symbols_are_told_and_the_number_of_the_others(count: int, more: str) -> None:
    names = ("backtrace", "backtrace_symbols", "mallinfo", "gnu_get_libc_version")[:count]
    (finding,) = judged("musllinux_1_2_x86_64", wants(*names))
    assert finding.message == (
        f"pkg/a.so needs backtrace, backtrace_symbols, mallinfo{more}, which glibc has and musl does not"
    )


def test_it_is_judged_on_every_architecture() -> None:
    for arch in ("x86_64", "i686", "aarch64", "armv7l", "ppc64le", "s390x", "riscv64", "loongarch64"):
        assert judged(f"musllinux_1_2_{arch}", wants("__cxa_thread_atexit_impl"))
        assert not judged(f"musllinux_1_2_{arch}", wants("malloc", "pthread_create", "dlopen", "stat"))


@pytest.mark.rule("musl-forbidden-symbol", fires=False)
def test_a_weak_reference_is_fine() -> None:
    weak = Symbol("__cxa_thread_atexit_impl", bind=STB_WEAK, lookups=LOOKUP_PLT)
    assert judged("musllinux_1_2_x86_64", (weak,)) == []


def test_a_symbol_that_the_wheel_supplies_itself_is_fine() -> None:
    execinfo = ElfFacts(soname="libexecinfo.so.1", symbols=(Symbol("backtrace", section=1, value=1),))
    assert judged("musllinux_1_2_x86_64", wants("backtrace"), execinfo) == []


def test_where_a_library_is_known_by_name_alone_nothing_is_claimed() -> None:
    unknown = ElfFacts(soname="libgcompat.so.0", complete=False)
    assert judged("musllinux_1_2_x86_64", wants("backtrace"), unknown) == []


def test_a_name_that_glibc_has_not_either_is_another_rules_matter() -> None:
    assert judged("musllinux_1_2_x86_64", wants("no_such_function_anywhere")) == []


def test_the_large_file_names_are_musls_own_matter() -> None:
    # ldso/dynlink.c answers for fopen64 with fopen.
    assert judged("musllinux_1_2_x86_64", wants("fopen64", "stat64")) == []


def test_an_object_without_any_relocation_is_judged_by_its_symbol_table() -> None:
    unused = (Symbol("malloc"), Symbol("__cxa_thread_atexit_impl"))
    (finding,) = judged("musllinux_1_2_x86_64", unused)
    assert finding.evidence["symbols"] == ["__cxa_thread_atexit_impl"]
    own = ElfFacts(symbols=(Symbol("__cxa_thread_atexit_impl", section=1, value=1),))
    assert judged("musllinux_1_2_x86_64", unused, own) == []
    assert judged("musllinux_1_2_x86_64", unused, ElfFacts(complete=False)) == []
    weak = tuple(s._replace(bind=STB_WEAK) for s in unused)
    assert judged("musllinux_1_2_x86_64", weak) == []
    # What the other library only wants itself, or hides, it does not supply.
    for other in (Symbol("__cxa_thread_atexit_impl"), own.symbols[0]._replace(visibility=2)):
        assert judged("musllinux_1_2_x86_64", unused, ElfFacts(symbols=(other,))) != []


def test_what_is_no_matter_of_the_rule_does_not_hide_what_comes_behind() -> None:
    weak = Symbol("mallinfo", bind=STB_WEAK, lookups=LOOKUP_PLT)
    (finding,) = judged("musllinux_1_2_x86_64", (weak, *wants("no_such_function_anywhere", "backtrace")))
    assert finding.evidence["symbols"] == ["backtrace"]


def test_a_symbol_that_is_found_is_fine_in_an_object_that_is_not_told_of() -> None:
    # Bound to the one that the process has, by an object all of whose relocations name it.
    process = Node(
        "interpreter", "/python", ElfFacts(symbols=(Symbol("backtrace", section=1, value=1),)), "interpreter"
    )
    one = scene("musllinux_1_2_x86_64", wants("backtrace"))
    assert forbidden_symbols(one) != {}
    around = replace(one.world, interpreter=(process,))
    assert forbidden_symbols(Scene(one.platform, around, one.loads)) == {}
    text = Node("pkg/text", "/x/pkg/text", None)
    unused = scene("musllinux_1_2_x86_64", (Symbol("backtrace"),))
    load = replace(unused.loads[0], scope=(*unused.loads[0].scope, text))
    assert forbidden_symbols(replace(unused, loads=(load,))) == {"pkg/a.so": ("backtrace",)}


def test_a_symbol_that_no_relocation_names_is_fine_where_others_are_named() -> None:
    assert judged("musllinux_1_2_x86_64", (*wants("malloc"), Symbol("backtrace"))) == []


def test_the_rule_does_not_speak_of_glibc_wheels() -> None:
    one = scene("manylinux_2_5_x86_64", wants("__cxa_thread_atexit_impl"))
    assert forbidden_symbols(one) == {}


def test_what_a_given_wheel_misses_is_not_told_of_this_one() -> None:
    one = scene(
        "musllinux_1_2_x86_64", wants("malloc"), ElfFacts(soname="libx.so", symbols=wants("backtrace"))
    )
    root, other, libc = one.loads[0].scope
    load = replace(one.loads[0], scope=(root, replace(other, owner="given"), libc))
    assert forbidden_symbols(one) == {"pkg/lib0.so": ("backtrace",)}
    assert forbidden_symbols(replace(one, loads=(load,))) == {}
