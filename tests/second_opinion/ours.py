"""wheelfix's facts of an object, in the form in which the other readers give theirs."""

from __future__ import annotations

from tests.second_opinion.table import Facts
from wheelfix.model.elf import PT_GNU_STACK, ElfFacts

# DT_FLAGS and DT_FLAGS_1 of elf.h, without the prefix.
_FLAGS = {0x1: "ORIGIN", 0x2: "SYMBOLIC", 0x4: "TEXTREL", 0x8: "BIND_NOW", 0x10: "STATIC_TLS"}
_FLAGS_1 = {0x1: "NOW", 0x2: "GLOBAL", 0x8: "NODELETE", 0x20: "INITFIRST", 0x40: "NOOPEN", 0x80: "ORIGIN"}
_FLAGS_1 |= {0x400: "INTERPOSE", 0x800: "NODEFLIB", 0x08000000: "PIE"}


def _names(flags: int, names: dict[int, str]) -> list[str]:
    """The bits that are set, by name; a bit without a name by its value."""
    bits = (1 << i for i in range(flags.bit_length()) if flags >> i & 1)
    return sorted(names.get(bit, hex(bit)) for bit in bits)


def by_wheelfix(elf: ElfFacts) -> Facts:
    """All facts that another reader may tell; numbers as the file has them."""
    stack = next((s.flags for s in elf.segments if s.kind == PT_GNU_STACK), None)
    return {
        "bits": elf.bits,
        "big-endian": elf.big_endian,
        "type": elf.type,
        "machine": elf.machine,
        "abi-flags": elf.abi_flags,
        "size": elf.size,
        "interpreter": elf.interpreter,
        "dynamic": elf.dynamic,
        "soname": elf.soname,
        "needed": elf.needed,
        "rpath": elf.rpath,
        "runpath": elf.runpath,
        "filters": elf.filters,
        "auxiliaries": elf.auxiliaries,
        "flags": elf.flags,
        "flags-1": elf.flags_1,
        "symbolic": elf.symbolic,
        "textrel": elf.textrel,
        "relr": elf.relr,
        "versioned": elf.versioned,
        "segments": tuple(tuple(s) for s in elf.segments),
        "stack-flags": stack,
        # As readelf prints them.
        "flag-names": (*_names(elf.flags, _FLAGS), *_names(elf.flags_1, _FLAGS_1)),
        "stack": "none"
        if stack is None
        else "".join(c for c, bit in (("R", 4), ("W", 2), ("E", 1)) if stack & bit),
        "tls-size": elf.tls.memsz if elf.tls else 0,
        "sections": tuple(tuple(s) for s in elf.sections),
        "verneed": tuple((need.file, v.name, v.index, v.weak) for need in elf.verneed for v in need.versions),
        "verdef": tuple(tuple(d) for d in elf.verdef),
        "constructors": elf.constructors,
        "build-id": elf.build_id,
        "x86-isa-needed": elf.x86_isa_needed,
        "symbols": tuple(tuple(s[:7]) for s in elf.symbols),
        "versym": tuple((s.version_index, s.hidden) for s in elf.symbols),
        "version-names": tuple((s.name, s.version, s.version_file) for s in elf.symbols),
        # readelf prints no file, no hidden bit of what is undefined, and no version behind the symbol that stands for one.
        "shown-versions": tuple(
            (s.name, None if s.name == s.version else s.version, s.defined and s.hidden) for s in elf.symbols
        ),
        # By number in .dynsym, in which the null symbol is 0.
        "lookups": tuple((i, s.lookups) for i, s in enumerate(elf.symbols, 1) if s.lookups),
    }
