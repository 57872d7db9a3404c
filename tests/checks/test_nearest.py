"""The nearest thing to a missing symbol, on literal facts: which explanation, of which object, in which words."""

from __future__ import annotations

import pytest

from wheelfix.checks.nearest import Nearest, nearest
from wheelfix.model.elf import STV_HIDDEN, ElfFacts, Symbol
from wheelfix.model.resolution import Load, Node, Owner, World

# Manglings of the Itanium C++ ABI, 5.1.10: Ss is std::string of the old ABI.
NEW_STRING = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"


def gives(name: str, **more: object) -> Symbol:
    return Symbol(name, section=7, value=0x1000, **more)  # type: ignore[arg-type]


def node(path: str, *symbols: Symbol, owner: Owner = "wheel", local: str = "") -> Node:
    return Node(path, f"/{path}", ElfFacts(symbols=symbols, local_names=frozenset({local} - {""})), owner)


TEXT = Node("pkg/libtext.so", "/pkg/libtext.so", None)


def found(
    wanted: str, *loaded: Node, beside: tuple[Node, ...] = (TEXT,), version: str | None = None
) -> Nearest | None:
    """What is nearest for a module that wants the symbol; ``beside`` is installed and not loaded."""
    symbol = Symbol(wanted, lookups=2, version=version)
    root = node("pkg/x.so", symbol)
    scope = (root, *loaded)
    world = World({n.location: n for n in (*scope, *beside)}, frozenset())
    return nearest(world, Load(root, scope, ()), symbol)


def kind(one: Nearest | None) -> tuple[str, str, str] | None:
    return (one.kind, one.path, one.symbol) if one is not None else None


@pytest.mark.parametrize(
    ("version", "words"), [("V2", "it is wanted in version V2"), (None, "it is wanted without a version")]
)
def test_the_version_that_is_there_and_the_one_that_is_wanted(version: str | None, words: str) -> None:
    one = found("g", node("pkg/liba.so", gives("g", version="V3", version_index=3)), version=version)
    assert kind(one) == ("version", "pkg/liba.so", "g")
    assert one is not None
    assert one.sentence == f"pkg/liba.so has it in version V3, {words}"


def test_what_is_no_elf_object_explains_nothing() -> None:
    assert found("g", TEXT) is None
    assert found("_Z1fSs", TEXT) is None


@pytest.mark.parametrize("owner", ["wheel", "given"])
def test_a_file_that_is_installed_and_not_loaded(owner: Owner) -> None:
    one = found("g", beside=(TEXT, node("other/liba.so", gives("g"), owner=owner)))
    assert kind(one) == ("outside-scope", "other/liba.so", "g")


@pytest.mark.parametrize("owner", ["host", "external", "interpreter"])
def test_a_file_of_the_machine_or_of_nobody_known_is_not_offered(owner: Owner) -> None:
    assert found("g", beside=(node("liba.so", gives("g"), owner=owner),)) is None


def test_a_library_that_keeps_the_name_local_also_where_it_is_not_loaded() -> None:
    hides = node("pkg/liba.so", local="g")
    assert kind(found("g", hides)) == kind(found("g", beside=(hides,))) == ("local", "pkg/liba.so", "g")


def test_what_is_loaded_explains_before_what_is_not() -> None:
    hides, exports = node("pkg/liba.so", local="g"), node("pkg/libb.so", gives("g"))
    assert kind(found("g", hides, beside=(exports,))) == ("local", "pkg/liba.so", "g")
    assert kind(found("g", beside=(hides, exports))) == ("outside-scope", "pkg/libb.so", "g")


# The shortest name that can be told: a function of one letter.
OLD, NEW = "_Z1fSs", f"_Z1f{NEW_STRING}"


@pytest.mark.parametrize(
    ("wanted", "given", "flag"),
    [
        (OLD, NEW, 1),
        (NEW, OLD, 0),
        ("_Z1fRKSt6vectorISsSaISsEE", f"_Z1fRKSt6vectorI{NEW_STRING}SaIS5_EE", 1),
        # A function that returns std::string is marked in the new ABI.
        (f"_ZN1a1fB5cxx11E{NEW_STRING}", "_ZN1a1fESs", 0),
        # _Float16 and a vector of four floats, which the demangler does not know.
        ("_ZN1a1fEDF16_Ss", f"_ZN1a1fEDF16_{NEW_STRING}", 1),
        (f"_ZN1a1fIDv4_fEEv{NEW_STRING}", "_ZN1a1fIDv4_fEEvSs", 0),
    ],
)
def test_the_same_function_with_the_other_string(wanted: str, given: str, flag: int) -> None:
    exports = node("pkg/liba.so", gives(given))
    for one in (found(wanted, exports), found(wanted, beside=(TEXT, exports))):
        assert kind(one) == ("string-abi", "pkg/liba.so", given)
        assert one is not None
        assert f"-D_GLIBCXX_USE_CXX11_ABI={flag} for the object" in one.remedy


@pytest.mark.parametrize(
    ("wanted", "given"),
    [
        # Another function; one more parameter; the other kind of constructor (C2, which only derived classes call).
        (NEW, "_Z1gSs"),
        (NEW, "_Z1fSsi"),
        (f"_ZN1a1bC1E{NEW_STRING}", "_ZN1a1bC2ESs"),
        ("_ZN1a1bC1ESs", f"_ZN1a1bC2E{NEW_STRING}"),
        # What stands before the first string is spelt alike on both sides, though these read alike.
        ("_ZN3std1fESs", f"_ZSt1f{NEW_STRING}"),
        # Both of the new ABI: one returns a string, one does not.
        (f"_ZN1a1fB5cxx11E{NEW_STRING}", f"_ZN1a1fE{NEW_STRING}"),
        # Members of std::string itself are of the runtime, not of the library that was linked.
        ("_ZNSs6appendEPKc", "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc"),
        # No C++ names.
        ("plainSs", f"plain{NEW_STRING}"),
        ("_Z1fi", f"_Z1fi{NEW_STRING}"),
    ],
)
def test_another_function_is_not_the_same_with_the_other_string(wanted: str, given: str) -> None:
    assert found(wanted, node("pkg/liba.so", gives(given))) is None


@pytest.mark.parametrize("symbol", [Symbol(OLD, lookups=2), gives(OLD, visibility=STV_HIDDEN)])
def test_only_what_is_exported_has_the_other_string(symbol: Symbol) -> None:
    assert found(NEW, node("pkg/liba.so", symbol)) is None
