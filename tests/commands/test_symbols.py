from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from wheelfix.model.resolution import Binding
from wheelfix.report.symbols import as_json, as_text

Run = Callable[..., tuple[int, str, str]]


def test_every_binding_is_an_object_of_the_documented_form(wheelfix: Run, sample_wheels: Path) -> None:
    status, out, _ = wheelfix("symbols", "--json", next(sample_wheels.glob("sample_healthy-*")))
    said = json.loads(out)
    rows = {b["symbol"]: b for b in said["bindings"]}
    assert status == 0
    assert said["schema"] == "wheelfix/symbols/1"
    assert rows["helper_value"] == {
        "root": "sample_healthy/_ext.abi3.so",
        "object": "sample_healthy/_ext.abi3.so",
        "symbol": "helper_value",
        "version": None,
        "weak": False,
        "status": "bound",
        "provider": "sample_healthy/libhelper.so",
        "unless": [],
        "also": None,
        "platform": "manylinux_2_35_x86_64",
    }
    assert rows["PyLong_FromLong"]["provider"] == "interpreter"
    assert (rows["_dl_find_object"]["provider"], rows["_dl_find_object"]["version"]) == (
        "host:libc.so.6",  # as LD_DEBUG=bindings says
        "GLIBC_2.35",
    )


def test_text_tells_problems_only_and_demangles(wheelfix: Run, sample_wheels: Path) -> None:
    status, out, _ = wheelfix("symbols", next(sample_wheels.glob("sample_no_runtime-*")))
    assert status == 0
    assert "missing: nothing in scope supplies it" in out
    assert "std::runtime_error" in out
    assert "PyLong_FromLong" not in out


@pytest.mark.parametrize("glob", ["PyLong_*", "helper_value"])
def test_a_glob_chooses_and_then_healthy_bindings_are_told_too(
    wheelfix: Run, sample_wheels: Path, glob: str
) -> None:
    _, out, _ = wheelfix("symbols", "--symbol", glob, next(sample_wheels.glob("sample_healthy-*")))
    names = {line.split()[0] for line in out.splitlines() if line.startswith("    ")}
    assert names == {glob.replace("*", "FromLong")}


def test_a_glob_with_colons_is_over_demangled_names(wheelfix: Run, sample_wheels: Path) -> None:
    wheel = next(sample_wheels.glob("sample_no_runtime-*"))
    _, out, _ = wheelfix("symbols", "--json", "--symbol", "std::runtime_error::*", wheel)
    assert {b["symbol"] for b in json.loads(out)["bindings"]} == {
        "_ZNSt13runtime_errorD1Ev",
        "_ZNSt13runtime_errorC1ERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    }


def test_long_lists_are_counted_and_hostile_names_escaped() -> None:
    rows = [("t", Binding("r", "r", f"s{n}\x1b[2J", None, False, "missing")) for n in range(12)]
    text = as_text(rows, everything=False, demangled=lambda n: n)
    assert "and 2 more (-v lists all)" in text
    assert "12 missing" in text
    assert "\x1b" not in text
    assert "\x1b" not in as_json(rows)
    assert len(json.loads(as_json(rows))["bindings"]) == 12


def test_an_undecided_symbol_names_what_to_give() -> None:
    row = ("t", Binding("r", "r", "s", None, False, "undecided", None, ("libtorch.so", "libc10.so")))
    assert "libtorch.so, libc10.so" in as_text([row], everything=False, demangled=lambda n: n)
