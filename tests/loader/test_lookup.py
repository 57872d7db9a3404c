"""What one object offers to look-ups, on literal facts: names, versions, and musl's names for large files."""

from __future__ import annotations

import pytest

from wheelfix.loader.lookup import accepted, accepted_by_musl, index, plain_name
from wheelfix.model.elf import (
    LOOKUP_COPY,
    LOOKUP_PLT,
    SHN_ABS,
    STB_GNU_UNIQUE,
    STB_LOCAL,
    STB_WEAK,
    STT_FUNC,
    STT_GNU_IFUNC,
    STT_NOTYPE,
    STT_OBJECT,
    STT_SECTION,
    STT_TLS,
    STV_DEFAULT,
    STV_HIDDEN,
    STV_INTERNAL,
    STV_PROTECTED,
    ElfFacts,
    Segment,
    Symbol,
    VersionDef,
    VersionNeed,
    VersionRef,
)
from wheelfix.policy.baseline import host_libraries
from wheelfix.policy.platform import for_platform

READ = (Segment(1, 5, 0, 0, 4096, 4096, 4096),)  # what tells facts of a file from facts of data
STT_FILE, STT_COMMON = 4, 5  # gABI, chapter 4, "Symbol Table"


def gives(name: str = "g", **more: object) -> Symbol:
    return Symbol(name, **{"section": 7, "value": 0x1000, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_musl_has_a_plain_name_for_each_of_its_names_for_large_files(arch: str) -> None:
    """The names are those that musl's libc before 1.2.4 exports beside their plain ones."""
    platform = for_platform(f"musllinux_1_1_{arch}")
    assert platform is not None
    libc = host_libraries(platform)["libc.so"].elf
    assert libc is not None
    names = {s.name for s in libc.symbols if s.defined}
    large = {n for n in names if n.endswith("64") and n[:-2] in names}
    assert {"fopen64", "lseek64", "__xstat64"} <= large
    assert {n: p for n in names if (p := plain_name(n)) is not None} == {
        **{n: n[:-2] for n in large},
        "readdir64_r": "readdir_r",
    }


@pytest.mark.parametrize("name", ["fopen", "strlen64", "fopen6464", "64", "readdir_r", "fopen46"])
def test_other_names_have_no_plain_one(name: str) -> None:
    assert plain_name(name) is None


@pytest.mark.parametrize(
    ("symbol", "offered"),
    [
        (gives(), True),
        (gives(bind=STB_WEAK), True),
        (gives(bind=STB_GNU_UNIQUE), True),
        (gives(bind=STB_LOCAL), False),
        (gives(visibility=STV_DEFAULT), True),
        (gives(visibility=STV_PROTECTED), True),
        (gives(visibility=STV_INTERNAL), False),
        (gives(visibility=STV_HIDDEN), False),
        *[(gives(kind=k), True) for k in (STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_COMMON, STT_TLS, STT_GNU_IFUNC)],
        *[(gives(kind=k), False) for k in (STT_SECTION, STT_FILE, 7, 13)],
        (gives(value=0), False),
        (gives(value=0, kind=STT_TLS), True),
        (gives(value=0, section=SHN_ABS), True),
        (gives(value=1), True),
        (gives(section=0), False),
    ],
)  # fmt: skip
def test_what_an_object_offers(symbol: Symbol, offered: bool) -> None:
    # elf/dl-lookup.c: ALLOWED_STT and check_match; do_lookup_x for the binding.
    made = index(ElfFacts(symbols=(symbol,), segments=READ))
    assert made.definitions == ({"g": (symbol,)} if offered else {})
    unique = offered and symbol.bind == STB_GNU_UNIQUE
    assert made.unique == ({"g"} if unique else set())


def test_an_absolute_symbol_of_value_zero_counts_where_the_loader_says_so() -> None:
    for section in (SHN_ABS, 7):
        facts = ElfFacts(symbols=(gives(value=0, section=section),), segments=READ)
        assert index(facts, absolute_zero=False).definitions == {}
    assert index(ElfFacts(symbols=(gives(value=0),))).definitions != {}  # data have no addresses


def test_an_undefined_symbol_with_a_value_is_an_entry_and_every_undefined_one_is_wanted() -> None:
    entry, plain = Symbol("f", value=0x401000), Symbol("h", lookups=LOOKUP_PLT)
    copied, given = gives("data", lookups=LOOKUP_COPY), gives("own", lookups=LOOKUP_PLT)
    local = Symbol("l", bind=STB_LOCAL)
    made = index(ElfFacts(symbols=(entry, plain, copied, given, local), segments=READ))
    assert made.entries == {"f": (entry,)}
    assert made.definitions == {"data": (copied,), "own": (given,)}
    assert made.wants == (entry, plain, copied, local)


def test_symbols_of_one_name_keep_the_order_of_the_table() -> None:
    symbols = tuple(gives(version_index=i) for i in (3, 2, 4))
    entries = tuple(Symbol("f", value=v) for v in (9, 8, 7))
    made = index(ElfFacts(symbols=(*symbols, *entries), segments=READ))
    assert made.definitions == {"g": symbols}
    assert made.entries == {"f": entries}


@pytest.mark.parametrize(
    ("facts", "versioned"),
    [
        (ElfFacts(), False),
        (ElfFacts(versioned=True), True),
        (ElfFacts(verdef=(VersionDef("V1", 2),)), True),
        (ElfFacts(verneed=(VersionNeed("a.so", (VersionRef("V1", 2),)),)), True),
    ],
)
def test_an_object_has_versions_by_any_of_their_tables(facts: ElfFacts, versioned: bool) -> None:
    assert index(facts).versioned is versioned


def test_what_is_known_of_an_object_is_told() -> None:
    assert (index(ElfFacts()).complete, index(ElfFacts(complete=False)).complete) == (True, False)
    assert (index(ElfFacts()).measured, index(ElfFacts(segments=READ)).measured) == (False, True)


def of(version: str | None, at: int, hidden: bool = False) -> Symbol:
    return gives(version=version, version_index=at, hidden=hidden)


@pytest.mark.parametrize(
    ("candidates", "version", "versioned", "taken"),
    [
        ([of("V2", 3, True), of("V1", 2)], "V9", False, 0),  # without versions whatever comes first
        ([of("V2", 3), of("V1", 2)], "V1", True, 1),
        ([of("V1", 2, True)], "V1", True, 0),
        ([of(None, 1), of("V1", 2)], "V1", True, 0),
        ([of(None, 1, True), of("V1", 2)], "V1", True, 1),
        ([of("V2", 3)], "V1", True, None),
        ([of("V2", 3), of("V1", 2, True)], None, True, 1),  # index 2 is the oldest version
        ([of("V2", 3), of(None, 1)], None, True, 1),
        ([of("V2", 3), of(None, 0)], None, True, 1),
        ([of("V2", 3, True), of("V3", 4)], None, True, 1),
        ([of("V2", 3, True)], None, True, None),
        ([of("V2", 3), of("V3", 4)], None, True, None),
    ],
)
def test_the_definition_that_glibc_takes(
    candidates: list[Symbol], version: str | None, versioned: bool, taken: int | None
) -> None:
    found = accepted(tuple(candidates), version, versioned)
    assert found == (None if taken is None else candidates[taken])


def test_musl_takes_the_first_that_is_neither_hidden_nor_indirect() -> None:
    hidden, indirect = of("V1", 2, True), gives(kind=STT_GNU_IFUNC)
    last, second = of("V2", 3), of("V3", 4)
    assert accepted_by_musl((hidden, indirect, last, second)) == last
    assert accepted_by_musl((hidden, indirect)) is None


@pytest.mark.parametrize(
    "passed",
    [
        Symbol("before", section=7, value=0x1000, bind=STB_LOCAL),
        Symbol("before", section=7, value=0x1000, visibility=STV_HIDDEN),
        Symbol("before", section=7, value=0x1000, kind=STT_SECTION),
        Symbol("before"),
        Symbol("before", value=0x1000),
        Symbol("before", section=7, value=0),
    ],
)
def test_what_comes_behind_a_symbol_that_is_no_definition_is_seen(passed: Symbol) -> None:
    found = index(
        ElfFacts(
            symbols=(passed, Symbol("f", section=7, value=0x1000)),
            segments=(Segment(1, 5, 0, 0, 4096, 4096, 4096),),
        )
    )
    assert list(found.definitions) == ["f"]
