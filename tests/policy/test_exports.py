"""The tables of the baseline: what is written is what is read, by column."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from wheelfix.elf.read import read
from wheelfix.model.elf import (
    STB_GNU_UNIQUE,
    STB_WEAK,
    STT_FUNC,
    STT_GNU_IFUNC,
    STT_OBJECT,
    STT_TLS,
    Symbol,
    VersionDef,
)
from wheelfix.policy.exports import Exports, columns_of, exports_of, names_of, parse, render

NODES = (VersionDef("liba.so.1", 1, base=True), VersionDef("A_1", 2), VersionDef("A_2", 3))


def given(name: str, **facts: object) -> Symbol:
    return Symbol(name, section=1, value=1)._replace(**facts)  # type: ignore[arg-type]


SYMBOLS = (
    given("copy", version="A_1", version_index=2, hidden=True),
    given("copy", version="A_2", version_index=3),
    given("data", kind=STT_OBJECT, size=24, version="A_1", version_index=2),
    given("one", bind=STB_GNU_UNIQUE, kind=STT_OBJECT, size=1, version="A_2", version_index=3),
    given("plain"),
    given("thread", kind=STT_TLS, version="A_1", version_index=2),
    given("weak", bind=STB_WEAK, version="A_1", version_index=2),
    given("which", kind=STT_GNU_IFUNC, version="A_1", version_index=2),
)
OLD = Exports("liba.so.1", ("libc.so.6",), NODES, SYMBOLS)


def test_a_column_is_read_as_it_was_written() -> None:
    assert parse(render({"old": OLD}), "old") == OLD


def test_each_column_has_its_own_symbols_and_indexes() -> None:
    # The same node has another index in the newer release, and the old default is hidden there.
    nodes = (VersionDef("liba.so.1", 1, base=True), VersionDef("A_0", 2), VersionDef("A_1", 3))
    new = Exports(
        "liba.so.1",
        (),
        nodes,
        (given("data", kind=STT_OBJECT, size=24, version="A_1", version_index=3, hidden=True),),
    )
    text = render({"old": OLD, "new": new})
    assert columns_of(text) == ("old", "new")
    assert parse(text, "old") == OLD
    assert parse(text, "new") == new


def test_a_column_that_the_table_lacks_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        parse(render({"old": OLD}), "older")


def test_names_of_all_columns_are_told_with_their_kind() -> None:
    new = Exports("liba.so.1", (), NODES[:1], (given("later"),))
    told = dict(names_of(render({"old": OLD, "new": new})))
    assert told["later"] == "F"
    assert told["weak"] == "f"
    assert told["one"] == "U1"


def test_the_same_exports_give_the_same_bytes_in_any_order_of_symbols() -> None:
    turned = Exports(OLD.soname, OLD.needed, OLD.verdef, OLD.symbols[::-1])
    assert render({"old": turned}) == render({"old": OLD})


def test_what_is_read_from_a_library_is_what_its_symbol_table_shows(tmp_path: Path) -> None:
    (tmp_path / "a.map").write_text("A_1 { global: f; w; d; local: *; }; A_2 { global: f; } A_1;\n")
    (tmp_path / "a.c").write_text(
        '__asm__(".symver f1,f@A_1"); __asm__(".symver f2,f@@A_2");\n'
        "int f1(void){return 1;} int f2(void){return 2;}\n"
        "__attribute__((weak)) int w(void){return 0;} int d[6]; static int s; int *hidden(void){return &s;}\n"
    )
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname,liba.so.1", "-Wl,--version-script=a.map", "a.c", "-o", "a.so"],
        check=True,
        cwd=tmp_path,
    )  # fmt: skip
    facts = read(tmp_path / "a.so").facts
    assert facts is not None
    exports = exports_of(facts)
    assert exports.soname == "liba.so.1"
    assert {(s.name, s.version, s.hidden, s.bind == STB_WEAK, s.kind, s.size) for s in exports.symbols} == {
        ("f", "A_1", True, False, STT_FUNC, 0),
        ("f", "A_2", False, False, STT_FUNC, 0),
        ("w", "A_1", False, True, STT_FUNC, 0),
        ("d", "A_1", False, False, STT_OBJECT, 24),
    }
    assert parse(render({"x": exports}), "x").verdef == tuple(facts.verdef)
