"""What programs and libraries call the dynamic loader and the C library, by architecture."""

from __future__ import annotations

LIBC = "libc.so.6"
MUSL = "libc.so"  # as auditwheel's policies and musl's own build call it

# PT_INTERP's file name: glibc's sysdeps/*/ldsodefs and shlib-versions (armv7l: hard float; riscv64 and
# loongarch64: double float; ppc64le: ELFv2).
_GLIBC = {
    "x86_64": "ld-linux-x86-64.so.2",
    "i686": "ld-linux.so.2",
    "aarch64": "ld-linux-aarch64.so.1",
    "armv7l": "ld-linux-armhf.so.3",
    "ppc64": "ld64.so.1",
    "ppc64le": "ld64.so.2",
    "s390x": "ld64.so.1",
    "riscv64": "ld-linux-riscv64-lp64d.so.1",
    "loongarch64": "ld-linux-loongarch-lp64d.so.1",
}
# musl's arch/*/reloc.h (LDSO_ARCH), and how Alpine names the C library that objects ask for.
_MUSL = {
    "x86_64": ("x86_64", "x86_64"),
    "i686": ("i386", "x86"),
    "aarch64": ("aarch64", "aarch64"),
    "armv7l": ("armhf", "armv7"),
    "ppc64le": ("powerpc64le", "ppc64le"),
    "s390x": ("s390x", "s390x"),
    "riscv64": ("riscv64", "riscv64"),
    "loongarch64": ("loongarch64", "loongarch64"),
}


def interpreters_of(arch: str) -> tuple[str, ...]:
    """The names under which glibc's program interpreter can be asked for on an architecture."""
    return (_GLIBC[arch],) if arch in _GLIBC else ()


def musl_names(arch: str) -> tuple[str, ...]:
    """The names under which musl's C library, which is its program interpreter too, can be asked for."""
    if arch not in _MUSL:
        return (MUSL,)
    loader, alpine = _MUSL[arch]
    return (MUSL, f"libc.musl-{alpine}.so.1", f"ld-musl-{loader}.so.1")


def is_musl(name: str) -> bool:
    """Whether a name asks for musl's C library."""
    return name == MUSL or name.startswith(("libc.musl-", "ld-musl-"))
