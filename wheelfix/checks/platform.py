"""The platform tag: does each object keep what the tag promises of processor, C library and versions?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from wheelfix.checks.linkflags import blocks, link_flags
from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Subject
from wheelfix.model.elf import PT_LOAD, ElfFacts
from wheelfix.model.finding import Finding
from wheelfix.model.policy import PlatformPolicy
from wheelfix.model.wheel import Member
from wheelfix.policy.drivers import is_libpython
from wheelfix.policy.platform import candidates

TOO_NEW = Rule(
    id="symbol-version-too-new",
    group="platform",
    severity="error",
    what="An object needs a symbol version that is newer than the oldest machine of its tag.",
    why=(
        "pip installs the wheel on every machine that the tag allows. On the older ones the loader stops before the"
        " first line of Python runs: ``version `GLIBC_2.34' not found``. It never shows on the machine that built"
        " the wheel, which has the newer library."
    ),
    fix=(
        "Build on the oldest system that you support (a manylinux image), or promise less: give the wheel the tag"
        " that is true. `wheelfix repair` chooses it."
    ),
    example="The tag is `manylinux_2_17_x86_64`, `pkg/_ext.so` calls `arc4random@GLIBC_2.36`.",
    remedy="Build in the manylinux image of the tag, or retag the wheel (wheelfix repair does).",
)
PRIVATE = Rule(
    id="symbol-version-private",
    group="platform",
    severity="error",
    what="An object uses a symbol that a system library keeps for itself.",
    why=(
        "GLIBC_PRIVATE symbols change and vanish between two releases, even between two builds: no tag can"
        " promise them. The loader refuses the object where the symbol is gone."
    ),
    fix="Link against the public interface; the symbol mostly comes from a static archive of another glibc.",
    example="`pkg/_ext.so` needs `__inet_aton_exact@GLIBC_PRIVATE`.",
    remedy="Call the public function instead, or stop linking parts of glibc statically.",
)
WRONG_MACHINE = Rule(
    id="wrong-machine",
    group="platform",
    severity="error",
    what="An object is for another processor than the tag.",
    why=(
        "The loader passes over it or stops with `wrong ELF class` or `cannot open shared object file`: on every"
        " machine that the tag names, the object cannot be loaded."
    ),
    fix="Check that cross-compilation used one toolchain for all parts, prebuilt libraries included.",
    example="The tag is `linux_x86_64`, `pkg/lib/libaccel.so` is for aarch64.",
    remedy="Build or fetch the object for the tag's architecture, or leave it out.",
)
LIBC_MIXED = Rule(
    id="libc-mixed",
    group="platform",
    severity="error",
    what="The wheel needs two C libraries, or another one than its tag names.",
    why=(
        "One process has one C library. Objects for musl cannot be loaded on a glibc system, nor the reverse: part"
        " of the wheel fails on every machine."
    ),
    fix="Build all parts of a wheel in one image: manylinux for glibc, musllinux for musl.",
    example="`pkg/_ext.so` needs `libc.so.6`, `pkg/_fast.so` needs `libc.musl-x86_64.so.1`.",
    remedy="Build every object for the C library of the tag.",
)
ISA = Rule(
    id="isa-too-new",
    group="platform",
    severity="error",
    what="An object is marked as needing a newer x86-64 level than the tag promises.",
    why=(
        "An x86_64 tag covers every 64-bit PC processor. glibc 2.33 and later refuse the object on an older one"
        " (`CPU ISA level is lower than required`); older loaders run into an illegal instruction."
    ),
    fix=(
        "Compile for the baseline and choose faster code at run time (function multiversioning), or put the"
        " library into `glibc-hwcaps/x86-64-v3/` beside a baseline one. For the baseline:\n\n"
        + blocks(
            cmake="target_compile_options(_ext PRIVATE -march=x86-64)",
            setuptools="Extension('pkg._ext', sources, extra_compile_args=['-march=x86-64'])",
            meson="py.extension_module('_ext', sources, install: true, subdir: 'pkg',\n  c_args: ['-march=x86-64'])",
            bazel="cc_binary(name = '_ext.so', srcs = sources, linkshared = True, copts = ['-march=x86-64'])",
        )
    ),
    example="`pkg/_ext.so` was linked with `-z x86-64-v3`.",
    remedy="Compile without -march=x86-64-v2/v3/v4 and link without -z x86-64-v3.",
)
LIBPYTHON = Rule(
    id="libpython-linked",
    group="platform",
    severity="error",
    what="An object needs libpython.",
    why=(
        "Most interpreters are built without a shared libpython (PEP 513 forbids to rely on it): the library is not"
        " there, or a second interpreter is loaded beside the running one. An extension module gets the C"
        " API from the process that imports it."
    ),
    fix=(
        "Do not link extension modules against Python:\n\n"
        + blocks(
            cmake="find_package(Python COMPONENTS Development.Module)    # not Development, Development.Embed\n"
            "python_add_library(_ext MODULE ext.c)",
            setuptools="Extension('pkg._ext', sources)    # no libraries=['python3.11']",
            meson="py.extension_module('_ext', sources)    # no py.dependency(embed: true)",
            bazel="cc_binary(name = '_ext.so', srcs = sources, linkshared = True,\n"
            "          deps = ['@rules_python//python/cc:current_py_cc_headers'])    # not current_py_cc_libs",
        )
    ),
    example="`pkg/_ext.so` lists `libpython3.11.so.1.0` in DT_NEEDED.",
    remedy="Link the extension without -lpython; wheelfix repair removes the entry from extensions.",
)
PAGE_ALIGN = Rule(
    id="elf-page-align",
    group="platform",
    severity="warning",
    what="Segments are aligned to less than the largest page of the architecture.",
    why=(
        "aarch64, ppc64le and loongarch64 kernels may use pages of 64 KiB (RHEL and its kin do). There the loader"
        " stops with `ELF load command alignment not page-aligned`."
    ),
    fix="Link with 64 KiB pages (the default of current binutils on these architectures):\n\n"
    + link_flags("-Wl,-z,max-page-size=0x10000"),
    example="An aarch64 object whose PT_LOAD has p_align 0x1000.",
    remedy="Link with -Wl,-z,max-page-size=0x10000.",
)
RULES = (TOO_NEW, PRIVATE, WRONG_MACHINE, LIBC_MIXED, ISA, LIBPYTHON, PAGE_ALIGN)

_LARGE_PAGES = {"aarch64", "ppc64le", "ppc64", "loongarch64"}
_MUSL = re.compile(r"(libc\.musl-.*|ld-musl-.*)\.so(\.\d+)?|libc\.so")
# glibc's markers of features, and the release that brought each (sysdeps and elf/Versions in glibc).
_MARKERS = {
    "ABI_DT_RELR": (2, 36),
    "ABI_DT_X86_64_PLT": (2, 42),
    "ABI_GNU_TLS": (2, 42),
    "ABI_GNU2_TLS": (2, 42),
}
# GNU_PROPERTY_X86_ISA_1_* bits above the baseline, which is bit 0 (x86-64 psABI, "Program Property").
_LEVELS = {1 << 1: "x86-64-v2", 1 << 2: "x86-64-v3", 1 << 3: "x86-64-v4"}
_EF_ARM_SOFT, _EF_ARM_HARD = 0x200, 0x400


def check(subject: Subject) -> Iterator[Finding]:
    """Every object against every platform of the file name, each apart."""
    for member, elf in subject.wheel.objects:
        yield from _machine(subject, member, elf)
        yield from _versions(subject, member, elf)
        yield from _denied(subject, member, elf)
        yield from _isa(subject, member, elf)
        yield from _libpython(member, elf)
        yield from _pages(member, elf)
    yield from _libc(subject)


def needed_versions(elf: ElfFacts) -> dict[tuple[str, str], list[str]]:
    """(file, version) that the object needs at load -> the symbols that use it, weak needs left out."""
    using: dict[tuple[str | None, str | None], list[str]] = {}
    for symbol in elf.symbols:
        if symbol.version_file is not None:
            using.setdefault((symbol.version_file, symbol.version), []).append(symbol.name)
    return {
        (need.file, version.name): using.get((need.file, version.name), [])
        for need in elf.verneed
        for version in need.versions
        if not version.weak
    }


def lacks_version(platform: PlatformPolicy, version: str) -> bool:
    """Whether the oldest machine of the tag does not have a version node, as far as the policy tells.

    Prefixes that no policy caps (a bundled library's own nodes) are never lacking; a plain ``linux_*`` tag caps none,
    and musl has none.
    """
    prefix, _, number = version.partition("_")
    if version == "GLIBC_PRIVATE" or prefix not in platform.versions:
        return False
    if number in _MARKERS:
        return platform.libc_version < _MARKERS[number]
    return number not in platform.versions[prefix]


def _versions(subject: Subject, member: Member, elf: ElfFacts) -> Iterator[Finding]:
    own = _sonames(subject)
    needs = needed_versions(elf)
    for (file, version), symbols in needs.items():
        if version == "GLIBC_PRIVATE":
            yield PRIVATE.finding(
                f"{member.path} uses {_some(symbols)} of {file}, which glibc keeps for itself"
                " (version GLIBC_PRIVATE)",
                member=member.path,
                library=file,
                symbol=symbols[0] if symbols else None,
                evidence={"symbols": symbols},
            )
    for platform in subject.platforms:
        for (file, version), symbols in needs.items():
            if file not in own and lacks_version(platform, version):
                yield _too_new(member, platform, file, version, symbols, needs)
        marked = any(version == "GLIBC_ABI_DT_RELR" for _, version in needs)
        old = platform.capped and platform.libc == "glibc" and platform.libc_version < _MARKERS["ABI_DT_RELR"]
        if elf.relr and not marked and old:
            yield TOO_NEW.finding(
                f"{member.path} has relative relocations in DT_RELR, which glibc reads since 2.36;"
                f" {platform.tag} promises glibc {_dotted(platform.libc_version)}. It lacks the marker"
                " GLIBC_ABI_DT_RELR, so that older loaders crash instead of refusing it",
                member=member.path,
                library="libc.so.6",
                evidence={"tag": platform.tag, "relr": True},
                remedy="Link without -z pack-relative-relocs.",
            )


def _denied(subject: Subject, member: Member, elf: ElfFacts) -> Iterator[Finding]:
    """Symbols of a promised library that the policy denies all the same: builds of it differ in them."""
    wanted = {s.name for s in elf.symbols if not s.defined and s.lookups and not s.weak}
    told: set[tuple[str, ...]] = set()
    for platform in subject.platforms:
        for library, names in platform.denied_symbols.items():
            used = tuple(sorted(wanted & names)) if library in elf.needed else ()
            if used and (library, *used) not in told:
                told.add((library, *used))
                yield PRIVATE.finding(
                    f"{member.path} uses {_some(used)} of {library}, which {platform.tag} does not promise:"
                    " builds of the library differ in its internal symbols",
                    member=member.path,
                    library=library,
                    symbol=used[0],
                    evidence={"symbols": list(used), "tag": platform.tag},
                )


def _too_new(
    member: Member,
    platform: PlatformPolicy,
    file: str,
    version: str,
    symbols: list[str],
    needs: Mapping[tuple[str, str], list[str]],
) -> Finding:
    prefix, _, number = version.partition("_")
    numbers = platform.versions[prefix]
    promised = f"{prefix}_{max(numbers, key=_ordered)} at most" if numbers else f"no version of {prefix}"
    true = next(
        (p.tag for p in candidates(platform.arch, "glibc") if not any(lacks_version(p, v) for _, v in needs)),
        None,
    )
    why = f" because of {_some(symbols)}" if symbols else ""
    if number in _MARKERS:
        promised = f"{prefix} {_dotted(platform.libc_version)} at most"
        why = f" (glibc {_dotted(_MARKERS[number])} or later)"
    return TOO_NEW.finding(
        f"{member.path} needs {version} of {file}{why}; {platform.tag} promises {promised}",
        member=member.path,
        library=file,
        symbol=symbols[0] if symbols else None,
        evidence={
            "version": version,
            "symbols": sorted(symbols),
            "tag": platform.tag,
            "lowest-true-tag": true,
        },
        remedy=TOO_NEW.remedy + (f" The lowest tag that this object keeps is {true}." if true else ""),
    )


def _sonames(subject: Subject) -> frozenset[str | None]:
    """Libraries that the wheel or what was given brings: their versions are their own."""
    wheels = (subject.wheel, *subject.given)
    return frozenset(elf.soname for w in wheels for _, elf in w.objects)


def _machine(subject: Subject, member: Member, elf: ElfFacts) -> Iterator[Finding]:
    promised = {p.arch for p in subject.platforms}
    if not promised or "any" in subject.wheel.platforms:
        return
    wrong = None
    if elf.arch not in promised:
        wrong = elf.arch or f"e_machine {elf.machine}, {elf.bits} bits"
    elif elf.arch == "armv7l" and elf.abi_flags & (_EF_ARM_SOFT | _EF_ARM_HARD) == _EF_ARM_SOFT:
        wrong = "armv7l with the soft-float ABI"
    if wrong is not None:
        yield WRONG_MACHINE.finding(
            f"{member.path} is for {wrong}; the tag promises {', '.join(sorted(promised))}",
            member=member.path,
            evidence={"found": wrong, "promised": sorted(promised)},
        )


def _libc(subject: Subject) -> Iterator[Finding]:
    users: dict[str, list[str]] = {"glibc": [], "musl": []}
    for member, elf in subject.wheel.objects:
        interpreter = (elf.interpreter or "").rpartition("/")[2]
        names = (*elf.needed, interpreter)
        if any(_MUSL.fullmatch(n) for n in names):
            users["musl"].append(member.path)
        if "libc.so.6" in names or interpreter.startswith(("ld-linux", "ld64.so")):
            users["glibc"].append(member.path)
    promised = {p.libc for p in subject.platforms}
    if users["glibc"] and users["musl"]:
        fewer, more = sorted(("glibc", "musl"), key=lambda c: len(users[c]))
        yield LIBC_MIXED.finding(
            f"{_some(users[fewer])} needs {fewer}, {_some(users[more])} needs {more}: no process has both",
            member=users[fewer][0],
            evidence={"glibc": users["glibc"], "musl": users["musl"]},
        )
        return
    for libc in ("glibc", "musl"):
        if users[libc] and promised and libc not in promised:
            yield LIBC_MIXED.finding(
                f"{_some(users[libc])} needs {libc}, the tag promises {' and '.join(sorted(promised))}",
                member=users[libc][0],
                evidence={libc: users[libc], "promised": sorted(promised)},
            )


def _isa(subject: Subject, member: Member, elf: ElfFacts) -> Iterator[Finding]:
    levels = [name for bit, name in _LEVELS.items() if elf.x86_isa_needed & bit]
    if not levels or "glibc-hwcaps/" in member.path:
        return
    tags = [p.tag for p in subject.platforms if p.arch in ("x86_64", "i686")]
    if tags:
        yield ISA.finding(
            f"{member.path} is marked as needing {levels[-1]} (GNU_PROPERTY_X86_ISA_1_NEEDED); {tags[0]} promises"
            " the baseline only",
            member=member.path,
            evidence={"needed": levels, "tag": tags[0]},
        )


def _libpython(member: Member, elf: ElfFacts) -> Iterator[Finding]:
    for library in dict.fromkeys(elf.needed):
        if is_libpython(library):
            program = elf.is_program
            what = "a program that embeds the interpreter" if program else "an object of a Python process"
            yield LIBPYTHON.finding(
                f"{member.path}, {what}, needs {library}; interpreters without a shared libpython do not have it",
                member=member.path,
                library=library,
                evidence={"program": program},
                remedy="Ship the program's own interpreter or start it through the running one; the entry cannot"
                " be removed from a program that embeds Python."
                if program
                else None,
            )


def _pages(member: Member, elf: ElfFacts) -> Iterator[Finding]:
    if elf.arch not in _LARGE_PAGES:
        return
    aligns = [s.align for s in elf.segments if s.kind == PT_LOAD and s.memsz]
    if aligns and min(aligns) < 0x10000:
        yield PAGE_ALIGN.finding(
            f"{member.path} has a segment aligned to {min(aligns):#x}; {elf.arch} kernels with pages of 64 KiB"
            " cannot map it",
            member=member.path,
            evidence={"align": min(aligns)},
        )


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    if len(listed) <= 3:
        return ", ".join(listed) or "no named symbol"
    return f"{', '.join(listed[:3])} and {len(listed) - 3} more"


def _ordered(number: str) -> tuple[int, ...]:
    return tuple(int(p) for p in number.split(".")) if number.replace(".", "").isdigit() else ()


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
