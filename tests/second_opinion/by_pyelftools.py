"""An object as pyelftools reads it: by section headers wherever wheelfix goes by the dynamic segment."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elftools.elf import enums
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

from tests.second_opinion.table import Facts
from wheelfix.model.elf import LOOKUP_COPY, LOOKUP_DATA, LOOKUP_PLT

#: Relocations of an object beyond which pyelftools, some ten microseconds each, leaves them to readelf.
MOST_RELOCATIONS = 3000

# (none, relative, jump slot, copy), from the psABIs as elf.h spells them.
_RELOCATIONS = {"EM_X86_64": (0, 8, 7, 5), "EM_AARCH64": (0, 1027, 1026, 1024)}


def by_pyelftools(path: Path) -> Facts:
    """Everything that pyelftools tells. Facts of tables that the object does not have are the empty ones."""
    with path.open("rb") as file:
        elf = ELFFile(file)
        found = {
            **_header(elf, path.stat().st_size),
            **_dynamic(elf),
            **_tables(elf),
            **_notes(elf),
        }
        relocations = [
            s for s in elf.iter_sections() if isinstance(s, RelocationSection) and s["sh_flags"] & 2
        ]
        if sum(s.num_relocations() for s in relocations) <= MOST_RELOCATIONS:
            found["lookups"] = _lookups(elf, relocations)
        return found


def _number(value: Any, *names: Mapping[str, Any]) -> int:
    """pyelftools hands out a name where it knows one, and the number where not."""
    if isinstance(value, int):
        return value
    return int(next(table[value] for table in names if value in table))


def _header(elf: ELFFile, size: int) -> dict[str, object]:
    kinds = (enums.ENUM_P_TYPE_BASE, enums.ENUM_P_TYPE_AARCH64)
    segments = tuple(
        (
            _number(p["p_type"], *kinds),
            *(p[f"p_{key}"] for key in ("flags", "offset", "vaddr", "filesz", "memsz", "align")),
        )
        for p in (s.header for s in elf.iter_segments())
    )
    shapes = (enums.ENUM_SH_TYPE_BASE, enums.ENUM_SH_TYPE_AMD64, enums.ENUM_SH_TYPE_AARCH64)
    sections = tuple(
        (
            s.name,
            _number(s["sh_type"], *shapes),
            *(s[f"sh_{key}"] for key in ("flags", "addr", "offset", "size")),
        )
        for s in elf.iter_sections()
    )
    interpreter = next((s for s in elf.iter_segments() if s["p_type"] == "PT_INTERP"), None)
    return {
        "bits": elf.elfclass,
        "big-endian": not elf.little_endian,
        "type": _number(elf["e_type"], enums.ENUM_E_TYPE),
        "machine": _number(elf["e_machine"], enums.ENUM_E_MACHINE),
        "abi-flags": elf["e_flags"],
        "size": size,
        "interpreter": interpreter.get_interp_name() if interpreter is not None else None,
        "segments": segments,
        "stack-flags": next(
            (s["p_flags"] for s in elf.iter_segments() if s["p_type"] == "PT_GNU_STACK"), None
        ),
        "tls-size": next((s["p_memsz"] for s in elf.iter_segments() if s["p_type"] == "PT_TLS"), 0),
        "sections": sections[1:],
    }


def _dynamic(elf: ELFFile) -> dict[str, object]:
    segment = next((s for s in elf.iter_segments() if s["p_type"] == "PT_DYNAMIC"), None)
    found: dict[str, list[Any]] = defaultdict(list)
    for tag in segment.iter_tags() if segment is not None else ():
        text = next(
            (getattr(tag, a) for a in ("needed", "soname", "rpath", "runpath") if hasattr(tag, a)), None
        )
        found[tag.entry.d_tag].append(tag.entry.d_val if text is None else text)

    def last(tag: str, otherwise: object = None) -> Any:
        return found[tag][-1] if found[tag] else otherwise

    flags = last("DT_FLAGS", 0)
    arrays = ("SHT_INIT_ARRAY", "SHT_PREINIT_ARRAY")
    constructors = sum(s["sh_size"] for s in elf.iter_sections() if s["sh_type"] in arrays)
    return {
        "dynamic": segment is not None,
        "soname": last("DT_SONAME"),
        "needed": tuple(found["DT_NEEDED"]),
        "rpath": last("DT_RPATH"),
        "runpath": last("DT_RUNPATH"),
        "filters": tuple(found["DT_FILTER"]),
        "auxiliaries": tuple(found["DT_AUXILIARY"]),
        "flags": flags,
        "flags-1": last("DT_FLAGS_1", 0),
        "symbolic": bool(found["DT_SYMBOLIC"]) or bool(flags & enums.ENUM_DT_FLAGS["DF_SYMBOLIC"]),
        "textrel": bool(found["DT_TEXTREL"]) or bool(flags & enums.ENUM_DT_FLAGS["DF_TEXTREL"]),
        "relr": bool(found["DT_RELR"]),
        "versioned": bool(found["DT_VERSYM"]),
        "constructors": constructors // (elf.elfclass // 8),
    }


def _tables(elf: ELFFile) -> dict[str, object]:
    """verneed, verdef, and the dynamic symbols with the versions that those name."""
    names: dict[int, tuple[str, str | None]] = {}
    verneed, verdef = [], []
    needs, defs = elf.get_section_by_name(".gnu.version_r"), elf.get_section_by_name(".gnu.version_d")
    for version, wanted in needs.iter_versions() if needs is not None else ():
        for v in wanted:
            index = v["vna_other"] & 0x7FFF
            verneed.append((version.name, v.name, index, bool(v["vna_flags"] & 2)))
            names[index] = (v.name, version.name)
    for version, parts in defs.iter_versions() if defs is not None else ():
        name, base = next(iter(parts)).name, bool(version["vd_flags"] & 1)
        verdef.append((name, version["vd_ndx"], base, bool(version["vd_flags"] & 2)))
        if not base:
            names[version["vd_ndx"]] = (name, None)
    table, versym = elf.get_section_by_name(".dynsym"), elf.get_section_by_name(".gnu.version")
    symbols = tuple(_symbols(table)) if table is not None else ()
    raw = array("H", versym.data()) if versym is not None else array("H", [1] * (len(symbols) + 1))
    indexes = tuple((entry & 0x7FFF, entry > 0x7FFF) for entry in raw[1:])
    return {
        "verneed": tuple(verneed),
        "verdef": tuple(verdef),
        "symbols": symbols,
        "versym": indexes if symbols else (),
        "version-names": tuple(
            (s[0], *(names.get(index, (None, None)) if index > 1 else (None, None)))
            for s, (index, _) in zip(symbols, indexes, strict=True)
        )
        if symbols
        else (),
    }


def _symbols(table: Any) -> Iterator[tuple[object, ...]]:
    for number in range(1, table.num_symbols()):
        s = table.get_symbol(number)
        info, where = s["st_info"], s["st_shndx"]
        yield (
            s.name,
            # pyelftools calls 10 by its generic name: STB_GNU_UNIQUE and STT_GNU_IFUNC.
            _number(info["bind"], enums.ENUM_ST_INFO_BIND),
            _number(info["type"], enums.ENUM_ST_INFO_TYPE),
            _number(s["st_other"]["visibility"], enums.ENUM_ST_VISIBILITY),
            _number(where, enums.ENUM_ST_SHNDX),
            s["st_value"],
            s["st_size"],
        )


def _notes(elf: ELFFile) -> dict[str, object]:
    build_id, isa = None, 0
    for segment in elf.iter_segments():
        if segment["p_type"] != "PT_NOTE":
            continue
        for note in segment.iter_notes():
            if note["n_type"] == "NT_GNU_BUILD_ID":
                build_id = note["n_desc"]
            elif note["n_type"] == "NT_GNU_PROPERTY_TYPE_0":
                for item in note["n_desc"]:
                    if item["pr_type"] in ("GNU_PROPERTY_X86_ISA_1_NEEDED", 0xC0008002):
                        isa |= _number(item["pr_data"])
    return {"build-id": build_id, "x86-isa-needed": isa}


def _lookups(elf: ELFFile, sections: list[RelocationSection]) -> tuple[tuple[int, int], ...]:
    none, relative, jump_slot, copy = _RELOCATIONS[elf["e_machine"]]
    found: dict[int, int] = defaultdict(int)
    for section in sections:
        for r in section.iter_relocations():
            kind, symbol = r["r_info_type"], r["r_info_sym"]
            if symbol and kind not in (none, relative):
                found[symbol] |= {jump_slot: LOOKUP_PLT, copy: LOOKUP_COPY}.get(kind, LOOKUP_DATA)
    return tuple(sorted(found.items()))
