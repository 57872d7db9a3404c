"""What the loader or the system may refuse for safety's sake: executable stacks, text relocations, static TLS."""

from __future__ import annotations

from collections.abc import Iterator

from wheelfix.checks.linkflags import blocks, link_flags
from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Subject
from wheelfix.model.elf import DF_STATIC_TLS, PF_X, PT_GNU_STACK, ElfFacts
from wheelfix.model.finding import Finding

EXECSTACK = Rule(
    id="execstack",
    group="hardening",
    severity="error",
    what="A shared object asks for an executable stack: its PT_GNU_STACK has the X flag, or (on x86, Arm and s390x) it "
    "has no PT_GNU_STACK at all.",
    why="glibc 2.41 and newer refuse to dlopen it: `cannot enable executable stack as shared object requires`. Older "
    "ones make the stack of the whole process executable, which SELinux forbids and which makes every overflow "
    "exploitable.",
    fix="One assembler file without a `.note.GNU-stack` section is enough. Add it to each:\n\n"
    '```asm\n.section .note.GNU-stack,"",%progbits\n```\n\nor tell the linker:\n\n'
    + link_flags("-Wl,-z,noexecstack"),
    example="An extension linked with `-z execstack`: `readelf -lW` shows `GNU_STACK … RWE`.",
    remedy="Link with -Wl,-z,noexecstack, and give each assembler file a .note.GNU-stack section.",
)
TEXTREL = Rule(
    id="textrel",
    group="hardening",
    severity="warning",
    what="An object has text relocations (DT_TEXTREL or DF_TEXTREL): the loader must write into its code.",
    why="SELinux and hardened kernels forbid it and the import fails with `cannot restore segment prot after reloc`; "
    "musl's loader does not support it well, and the pages cannot be shared between processes.",
    fix="Compile everything that goes into the object with `-fPIC` (static archives too), write assembler position-"
    "independently, and let the linker insist:\n\n"
    + link_flags("-Wl,-z,text")
    + "\n\nStatic archives of CMake get `-fPIC` by `set(CMAKE_POSITION_INDEPENDENT_CODE ON)`, those of meson by `pic: true`.",
    example="An assembler routine that holds `movabs $val, %rax`, linked with `-z notext`.",
    remedy="Compile with -fPIC and link with -Wl,-z,text to find the object file that is at fault.",
)
STATIC_TLS = Rule(
    id="static-tls",
    group="hardening",
    severity="warning",
    what="A shared object uses the initial-exec TLS model (DF_STATIC_TLS) with more thread-local bytes than glibc keeps "
    "in reserve for objects that are opened later.",
    why="The reserve is 1,664 bytes for all libraries that a process opens, 144 of them meant for the C library. What does "
    "not fit fails to import with `cannot allocate memory in static TLS block`, depending on what was "
    "imported before.",
    fix="Leave the TLS model to the compiler, or ask for the dynamic one:\n\n"
    + blocks(
        cmake="target_compile_options(_ext PRIVATE -ftls-model=global-dynamic)",
        setuptools="Extension('pkg._ext', sources, extra_compile_args=['-ftls-model=global-dynamic'])",
        meson="py.extension_module('_ext', sources, c_args: '-ftls-model=global-dynamic')",
        bazel="cc_library(name = 'ext', srcs = sources, copts = ['-ftls-model=global-dynamic'])",
    )
    + "\n\nLarge thread-local buffers belong behind a thread-local pointer.",
    example='`static __thread char buffer[8192] __attribute__((tls_model("initial-exec")))` in an extension module.',
    remedy="Compile with -ftls-model=global-dynamic, or move the large thread-local data to the heap.",
)

RULES: tuple[Rule, ...] = (EXECSTACK, TEXTREL, STATIC_TLS)

# e_machine of those architectures whose glibc takes a missing PT_GNU_STACK for an executable stack
# (DEFAULT_STACK_PERMS in sysdeps/*/stackinfo.h): i386, S/390, Arm, x86-64.
_EXECUTABLE_BY_DEFAULT = frozenset({3, 22, 40, 62})

# glibc, elf/dl-tls.c: the default surplus, and LIBC_IE_TLS, the part of it that is meant for libc.so.
_SURPLUS, _LIBC = 1664, 144


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each object and rule."""
    opened = {
        node.path
        for scene in subject.scenes
        if scene.platform.libc == "glibc"
        for load in scene.loads
        if load.root.elf is not None and not load.root.elf.is_program
        for node in load.scope
    }
    for member, facts in subject.wheel.objects:
        if not facts.dynamic:
            continue
        stack = _stack(facts, any(s.platform.libc == "glibc" for s in subject.scenes))
        if stack is not None and not facts.is_program:
            yield EXECSTACK.finding(
                f"{member.path} asks for an executable stack: {stack}",
                member=member.path,
                evidence={"reason": stack},
            )
        if facts.textrel:
            yield TEXTREL.finding(f"{member.path} has text relocations", member=member.path)
        if member.path in opened:
            yield from _static_tls(subject, member.path, facts)


def _stack(facts: ElfFacts, glibc: bool) -> str | None:
    """Why the loader makes the stack executable for this object; None if it does not."""
    header = next((s for s in facts.segments if s.kind == PT_GNU_STACK), None)
    if header is not None:
        return "its PT_GNU_STACK has the X flag" if header.flags & PF_X else None
    if glibc and facts.machine in _EXECUTABLE_BY_DEFAULT:
        return "it has no PT_GNU_STACK, and glibc takes that for one"
    return None


def _static_tls(subject: Subject, path: str, facts: ElfFacts) -> Iterator[Finding]:
    """Judged for the object alone: what else a process opened before is not known, only told as evidence."""
    if not facts.flags & DF_STATIC_TLS or facts.tls is None or facts.tls.memsz <= _SURPLUS - _LIBC:
        return
    size = facts.tls.memsz
    together = max(
        sum(
            n.elf.tls.memsz
            for n in load.scope
            if n.owner != "host" and n.elf and n.elf.flags & DF_STATIC_TLS and n.elf.tls
        )
        for scene in subject.scenes
        for load in scene.loads
        if any(n.path == path for n in load.scope)
    )
    yield STATIC_TLS.finding(
        f"{path} wants {size} bytes of static TLS; glibc keeps {_SURPLUS} for everything that is opened later",
        member=path,
        evidence={"bytes": size, "together": together, "surplus": _SURPLUS, "libc": _LIBC},
    )
