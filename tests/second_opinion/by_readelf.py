"""An object as binutils' readelf prints it: the bulk tables, which pyelftools takes minutes for in large objects."""

from __future__ import annotations

import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path

from tests.second_opinion.table import Facts
from wheelfix.model.elf import LOOKUP_COPY, LOOKUP_DATA, LOOKUP_PLT

_BIND = {"LOCAL": 0, "GLOBAL": 1, "WEAK": 2, "UNIQUE": 10}
_KIND = {"NOTYPE": 0, "OBJECT": 1, "FUNC": 2, "SECTION": 3, "FILE": 4, "COMMON": 5, "TLS": 6, "IFUNC": 10}
_VISIBILITY = {"DEFAULT": 0, "INTERNAL": 1, "HIDDEN": 2, "PROTECTED": 3}
_SECTION = {"UND": 0, "ABS": 0xFFF1, "COM": 0xFFF2}
_TYPE = {"REL": 1, "EXEC": 2, "DYN": 3, "CORE": 4}

#: "  12: 0000000000001139    22 FUNC    GLOBAL DEFAULT [VARIANT_PCS]   12 name@@VERSION"
_SYMBOL = re.compile(
    r"^ *\d+: ([0-9a-f]+) +(\w+) (\w+) +(\w+|<.+?>: \d+) +(\w+) +(?:\[[^\]]*\] +)?(\w+) ?(.*)$",
    re.MULTILINE,
)
#: What follows a name: @@ for the default version, @ for a hidden one; for a wanted one (of a COPY relocation too) @, and
#: its index in brackets.
_VERSION = re.compile(r"^(.*?)(?:(@@?)([^@ ]+)( \(\d+\))?)?$")
#: A relocation that names a symbol: the upper half of r_info is not zero.
_RELOCATION = re.compile(r"^[0-9a-f]{16}  (?!00000000)([0-9a-f]{8})[0-9a-f]{8} (R_\w+)", re.MULTILINE)
_ALLOCATED = re.compile(
    r"^ +\[ *\d+\] \S+ +RELA? +[0-9a-f]+ ([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ +\w*A", re.MULTILINE
)
_TABLE = re.compile(r"^Relocation section '.*' at offset 0x([0-9a-f]+) contains .*$", re.MULTILINE)
_STRING = re.compile(r"^ 0x[0-9a-f]+ \((NEEDED|SONAME|RPATH|RUNPATH)\) .*?\[(.*)\]$", re.MULTILINE)


def by_readelf(path: Path) -> Facts:
    """What readelf says of a 64-bit object's symbols, look-ups, dynamic strings and flags."""
    symbols = [_symbol(*found.groups()) for found in _SYMBOL.finditer(_said(path, "--dyn-syms"))][1:]
    dynamic = _said(path, "-d")
    strings: dict[str, list[str]] = defaultdict(list)
    for tag, text in _STRING.findall(dynamic):
        strings[tag].append(text)
    flags = " ".join(re.findall(r"\(FLAGS\) +(.*)", dynamic))
    flags_1 = " ".join(re.findall(r"\(FLAGS_1\) +Flags: (.*)", dynamic))
    header = _said(path, "-h", "-l")
    return {
        "bits": int(_one(r"Class: +ELF(\d\d)", header)),
        "type": _TYPE[_one(r"Type: +(\w+)", header)],
        "interpreter": (re.findall(r"Requesting program interpreter: (.*)\]", header) or [None])[0],
        "soname": (strings["SONAME"] or [None])[-1],
        "needed": tuple(strings["NEEDED"]),
        "rpath": (strings["RPATH"] or [None])[-1],
        "runpath": (strings["RUNPATH"] or [None])[-1],
        "textrel": "(TEXTREL)" in dynamic or "TEXTREL" in flags.split(),
        "symbolic": "(SYMBOLIC)" in dynamic or "SYMBOLIC" in flags.split(),
        "symbols": tuple(s for s, _ in symbols),
        "shown-versions": tuple(v for _, v in symbols),
        "lookups": _lookups(path),
        "flag-names": (*sorted(flags.split()), *sorted(flags_1.split())),
        "stack": _one(r"GNU_STACK(?: +0x[0-9a-f]+){5} ([RWE ]{3}) ", header, otherwise="none").replace(
            " ", ""
        ),
    }


def _said(path: Path, *options: str) -> str:
    command = ["readelf", "--wide", *options, str(path)]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "LC_ALL": "C"})
    return done.stdout.decode("utf-8", "backslashreplace")


def _one(pattern: str, text: str, otherwise: str | None = None) -> str:
    found: list[str] = re.findall(pattern, text)
    if not found and otherwise is not None:
        return otherwise
    return found[0]


def _symbol(
    value: str, size: str, kind: str, bind: str, visibility: str, section: str, shown: str
) -> tuple[tuple[object, ...], tuple[object, ...]]:
    match = _VERSION.match(shown)
    assert match is not None, shown
    name, at, version, wanted = match.groups()
    if kind == "SECTION":
        name = ""  # it has none; readelf prints that of the section
    where = _SECTION[section] if section in _SECTION else int(section)
    # STB_GNU_UNIQUE has no name for readelf where EI_OSABI is not that of GNU: "<OS specific>: 10".
    binding = _BIND[bind] if bind in _BIND else int(bind.rpartition(" ")[2])
    row = (name, binding, _KIND[kind], _VISIBILITY[visibility], where, int(value, 16), int(size, 0))
    return row, (name, version, at == "@" and wanted is None and where != 0)


def _lookups(path: Path) -> tuple[tuple[int, int], ...]:
    """From the relocation sections that are loaded: those of --emit-relocs are for tools."""
    loaded = {int(offset, 16) for offset in _ALLOCATED.findall(_said(path, "-S"))}
    said = _said(path, "-r")
    heads = list(_TABLE.finditer(said))
    found: dict[int, int] = defaultdict(int)
    ends = [*(head.start() for head in heads[1:]), len(said)]
    for head, end in zip(heads, ends, strict=False):  # no table: one end too many
        if int(head[1], 16) not in loaded:
            continue
        for r in _RELOCATION.finditer(said, head.end(), end):
            kind = r[2]  # cut off at 17 letters: R_AARCH64_JUMP_SL
            if not kind.endswith(("_NONE", "_RELATIVE", "_RELATIV")):
                bit = (
                    LOOKUP_PLT
                    if "_JUMP_SL" in kind
                    else LOOKUP_COPY
                    if kind.endswith("_COPY")
                    else LOOKUP_DATA
                )
                found[int(r[1], 16)] |= bit
    return tuple(sorted(found.items()))
