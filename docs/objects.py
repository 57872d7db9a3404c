"""Examples whose fault lies in an object: in what it asks of the loader and of the machine, or in the code that it holds."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

from faults import Example, added, in_turn, patched, replaced

from tests.elf.handmade import make_elf

#: Objects that nvcc made, with device code for several architectures.
DEVICE_CODE = Path(__file__).resolve().parents[1] / "tests" / "elf" / "device_code"

_EHDR, _PHDR, _SYMBOL = 64, 56, 24  # bytes of the structures of a 64-bit object
_FUNCTION, _VARIABLE, _UNIQUE = (
    0x12,
    0x11,
    0xA1,
)  # st_info: global function, global variable, STB_GNU_UNIQUE variable


def _field(header: int, at: int, value: int) -> Callable[[bytes], bytes]:
    """Another value in a program header: at 8 stands p_offset, at 40 p_memsz, at 48 p_align."""
    start = _EHDR + _PHDR * header + at
    return lambda data: data[:start] + struct.pack("<Q", value) + data[start + 8 :]


def _flags(value: int) -> Callable[[bytes], bytes]:
    """DT_FLAGS in place of DT_RELACOUNT, which helps the loader and tells it nothing."""

    def change(data: bytes) -> bytes:
        at = data.index(struct.pack("<Q", 0x6FFFFFF9))
        return data[:at] + struct.pack("<QQ", 30, value) + data[at + 16 :]

    return change


def _kernels(policy: str, name: str, made_of: str) -> Example:
    """A library with device code, under a policy for it."""
    change = added("libkernels.so", (DEVICE_CODE / f"{name}.so").read_bytes())
    return Example(policy=policy, change=change, done=f"A library was added that nvcc compiled {made_of}.")


def _exports(soname: str, *names: str) -> bytes:
    """A library that defines functions of these names."""
    return make_elf(soname=soname, symbols=[(n, _FUNCTION, 1) for n in names])


def _program() -> bytes:
    """An object whose e_type is ET_EXEC."""
    data = make_elf()
    return data[:16] + b"\2" + data[17:]


# What a static copy of the C++ runtime leaks, of what the module of the sample without a runtime uses.
_LEAKED = (
    "__cxa_allocate_exception",
    "__cxa_begin_catch",
    "__cxa_end_catch",
    "__cxa_free_exception",
    "__cxa_throw",
    "__gxx_personality_v0",
)
_LEAKY = _exports("libleaky.so", *_LEAKED)
# .note.gnu.property with GNU_PROPERTY_X86_ISA_1_NEEDED (0xc0008002) = x86-64-v3, as in the x86-64 psABI.
_NEEDS_V3 = struct.pack("<III4sIIII", 4, 16, 5, b"GNU", 0xC0008002, 4, 4, 0)

OBJECTS: dict[str, Example] = {
    "abi3-violation": Example(
        change=replaced("_ext.abi3.so", lambda d: d.replace(b"PyModule_Create2", b"PyUnicode_AsUTF8")),
        done="The module uses `PyUnicode_AsUTF8` in place of `PyModule_Create2`.",
    ),
    "cuda-arch-missing": _kernels(
        '[cuda]\narchitectures = ["sm_80", "sm_90", "sm_120"]\n', "several", "for `sm_80` and `sm_120`"
    ),
    "cuda-arch-unexpected": _kernels(
        '[cuda]\narchitectures = ["sm_80"]\n', "several", "for `sm_80` and `sm_120`"
    ),
    "cuda-ptx-missing": _kernels(
        '[cuda]\nptx = "newest"\n', "relocatable", "for `sm_80` and to LTO code, without PTX"
    ),
    "cuda-major-mixed": Example(
        policy='[cuda]\nptx = "any"\n',
        change=patched("--add-needed", "libcudart.so.13", "--add-needed", "libcublas.so.12"),
        done="The module needs `libcudart.so.13` and `libcublas.so.12`, too.",
    ),
    "cxx-runtime-static": Example(
        policy='[cxx-runtime]\nlinkage = "host"\n',
        change=added("libleaky.so", _LEAKY),
        done="A library was added that holds functions of the C++ runtime.",
    ),
    "cxx-runtime-exported": Example(
        change=added("libleaky.so", _LEAKY),
        done="A library was added that exports functions of the C++ runtime.",
    ),
    "cxx-runtime-borrowed": Example(
        "no_runtime",
        policy='[cxx-runtime]\nlinkage = "static"\n',
        change=in_turn(
            lambda m: [*m, ("sample_no_runtime/libleaky.so", _LEAKY)],
            patched("--add-needed", "libleaky.so", "--set-rpath", "$ORIGIN"),
        ),
        done="The module needs a library, too, that exports functions of the C++ runtime.",
    ),
    "gnu-unique-clash": Example(
        change=in_turn(
            *(
                added(f"lib{n}.so", make_elf(soname=f"lib{n}.so", symbols=[("table", _UNIQUE, 1)], size=size))
                for n, size in (("one", 64), ("two", 128))
            ),
            patched("--add-needed", "libone.so", "--add-needed", "libtwo.so"),
        ),
        done="The module needs two libraries that define a unique variable `table` of 64 and of 128 bytes.",
    ),
    "dlopen-target-missing": Example(
        change=replaced(
            "_ext.abi3.so",
            lambda d: d.replace(b"\0gettext\0", b"\0dlopen\0\0").replace(
                b"terminate called recursively\n", b"libinner.so.1".ljust(29, b"\0")
            ),
        ),
        done="The module calls `dlopen` and holds the string `libinner.so.1`.",
    ),
    "elf-bad-alignment": Example(
        change=replaced("libhelper.so", _field(1, 8, 0x1010)),
        done="The second segment of `libhelper.so` has p_offset 0x1010 and p_vaddr 0x1000.",
    ),
    "elf-page-align": Example(
        change=lambda m: [(n, make_elf(machine=183, align=0x1000) if n.endswith(".so") else d) for n, d in m],
        name=lambda n: n.replace("x86_64", "aarch64"),
        done="The objects are for aarch64, and their segments are aligned to 4 KiB.",
    ),
    "exec-bit": Example(
        change=added("bin/tool", _program()),
        done="A program was added with mode 0644.",
    ),
    "isa-too-new": Example(
        change=added("libfast.so", make_elf(soname="libfast.so", notes=_NEEDS_V3)),
        done="A library was added that is marked as needing x86-64-v3.",
    ),
    "musl-forbidden-symbol": Example(
        name=lambda n: n.replace("manylinux_2_35", "musllinux_1_2"),
        change=patched(
            *("--replace-needed", "libc.so.6", "libc.musl-x86_64.so.1"),
            *("--remove-needed", "ld-linux-x86-64.so.2"),
        ),
        done="The file was renamed to a musllinux tag, and the module needs the C library of musl.",
    ),
    "needed-duplicate": Example(
        change=in_turn(
            patched("--add-needed", "libX.so.6"),
            replaced("_ext.abi3.so", lambda d: d.replace(b"libX.so.6", b"libc.so.6")),
        ),
        done="The module lists `libc.so.6` twice.",
    ),
    "static-tls": Example(
        change=replaced("_ext.abi3.so", lambda d: _flags(0x10)(_field(5, 40, 4096)(d))),
        done="The module has 4,096 thread-local bytes and DF_STATIC_TLS.",
    ),
    "symbol-version-missing": Example(
        change=added(
            "libmore.so",
            make_elf(
                soname="libmore.so",
                needed=["libhelper.so"],
                runpath="$ORIGIN",
                symbols=[("helper_value", 0x10, 0)],
                versym=[0, 2],
                verneed=[("libhelper.so", [("V2", 0, 2)])],
                plt=[(1, 7)],
            ),
        ),
        done="A library was added that needs version `V2` of `libhelper.so`.",
    ),
    "symbol-version-private": Example(
        change=added(
            "libmore.so",
            make_elf(
                soname="libmore.so",
                needed=["libc.so.6"],
                symbols=[("__inet_aton_exact", 0x10, 0)],
                versym=[0, 2],
                verneed=[("libc.so.6", [("GLIBC_PRIVATE", 0, 2)])],
                plt=[(1, 7)],
            ),
        ),
        done="A library was added that needs `__inet_aton_exact` in version `GLIBC_PRIVATE`.",
    ),
    "textrel": Example(
        change=replaced("libhelper.so", _flags(4)),
        done="`libhelper.so` has DF_TEXTREL.",
    ),
    "verneed-orphan": Example(
        "dynamic_runtime",
        change=patched("--remove-needed", "libstdc++.so.6"),
        done="DT_NEEDED of `libstdc++.so.6` was taken out of the module with patchelf.",
    ),
}
