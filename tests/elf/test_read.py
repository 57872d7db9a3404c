"""What read() says of an object is what readelf, pyelftools and LIEF say, or what was built into it."""

from __future__ import annotations

import io
import re
import struct
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import lief
import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

from wheelfix.elf.read import looks_like_elf_name, read
from wheelfix.model.elf import LOOKUP_COPY, LOOKUP_DATA, LOOKUP_PLT, ElfFacts, Symbol, VersionNeed, VersionRef

Compile = Callable[..., Path]
Make = Callable[..., bytes]

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")


def facts(source: bytes | Path, **options: object) -> ElfFacts:
    found = read(source, **options)  # type: ignore[arg-type]
    assert found.faults == ()
    assert found.facts is not None
    return found.facts


def symbol(of: ElfFacts, name: str) -> Symbol:
    (found,) = (s for s in of.symbols if s.name == name)
    return found


# -- differential: pyelftools and readelf are the oracle ------------------------------------------

_BIND = {"STB_LOCAL": 0, "STB_GLOBAL": 1, "STB_WEAK": 2, "STB_LOOS": 10}
_KIND = {
    "STT_NOTYPE": 0, "STT_OBJECT": 1, "STT_FUNC": 2, "STT_SECTION": 3, "STT_FILE": 4, "STT_COMMON": 5,
    "STT_TLS": 6, "STT_LOOS": 10,
}  # fmt: skip
_VISIBILITY = {"STV_DEFAULT": 0, "STV_INTERNAL": 1, "STV_HIDDEN": 2, "STV_PROTECTED": 3}
_SECTION = {"SHN_UNDEF": 0, "SHN_ABS": 0xFFF1, "SHN_COMMON": 0xFFF2}


def by_pyelftools(data: bytes) -> dict[str, object]:
    """The facts of an x86-64 object with section headers, by sections where read() goes by the dynamic segment."""
    elf = ELFFile(io.BytesIO(data))
    segment = next(s for s in elf.iter_segments() if s.header.p_type == "PT_DYNAMIC")
    tags = list(segment.iter_tags())

    def text(name: str) -> list[str]:
        return [getattr(t, name) for t in tags if hasattr(t, name)]

    names: dict[int, tuple[str, str | None]] = {}
    verneed, verdef = [], []
    needs, defs = elf.get_section_by_name(".gnu.version_r"), elf.get_section_by_name(".gnu.version_d")
    for version, aux in needs.iter_versions() if needs else ():
        wanted = [(a.name, a["vna_other"] & 0x7FFF, bool(a["vna_flags"] & 2)) for a in aux]
        verneed.append((version.name, tuple(wanted)))
        names.update({index: (name, version.name) for name, index, _ in wanted})
    for version, aux in defs.iter_versions() if defs else ():
        name, base = next(iter(aux)).name, bool(version["vd_flags"] & 1)
        verdef.append((name, version["vd_ndx"], base, bool(version["vd_flags"] & 2)))
        if not base:
            names[version["vd_ndx"]] = (name, None)
    looked: dict[int, int] = defaultdict(int)
    for section in elf.iter_sections():
        if isinstance(section, RelocationSection) and section["sh_flags"] & 2:
            for r in section.iter_relocations():
                if r["r_info_sym"] and r["r_info_type"] not in (0, 8):
                    looked[r["r_info_sym"]] |= {7: LOOKUP_PLT, 5: LOOKUP_COPY}.get(
                        r["r_info_type"], LOOKUP_DATA
                    )
    table, versym = elf.get_section_by_name(".dynsym"), elf.get_section_by_name(".gnu.version")
    raw = struct.unpack(f"<{versym['sh_size'] // 2}H", versym.data()) if versym else ()
    symbols = []
    for i in range(1, table.num_symbols()):
        s = table.get_symbol(i)
        info, where = s["st_info"], s["st_shndx"]
        entry = raw[i] if raw else 1
        index = entry & 0x7FFF
        symbols.append(
            (
                s.name,
                _BIND[info["bind"]],
                _KIND[info["type"]],
                _VISIBILITY[s["st_other"]["visibility"]],
                _SECTION.get(where, where),
                s["st_value"],
                s["st_size"],
                *(names.get(index, (None, None)) if index > 1 else (None, None)),
                index,
                entry > 0x7FFF,
                looked[i],
            )
        )
    return {
        "needed": tuple(text("needed")),
        "soname": (text("soname") or [None])[-1],
        "rpath": (text("rpath") or [None])[-1],
        "runpath": (text("runpath") or [None])[-1],
        "verneed": tuple(verneed),
        "verdef": tuple(verdef),
        "symbols": tuple(symbols),
        "type": {"ET_DYN": 3, "ET_EXEC": 2}[elf["e_type"]],
        "segments": tuple(
            (p["p_flags"], p["p_offset"], p["p_vaddr"], p["p_filesz"], p["p_memsz"], p["p_align"])
            for p in (s.header for s in elf.iter_segments())
        ),
        "sections": tuple(
            (s.name, s["sh_flags"], s["sh_addr"], s["sh_offset"], s["sh_size"]) for s in elf.iter_sections()
        )[1:],
    }


def same_by_pyelftools(found: ElfFacts) -> dict[str, object]:
    return {
        "needed": found.needed,
        "soname": found.soname,
        "rpath": found.rpath,
        "runpath": found.runpath,
        "verneed": tuple((n.file, tuple(tuple(v) for v in n.versions)) for n in found.verneed),
        "verdef": tuple(map(tuple, found.verdef)),
        "symbols": tuple(map(tuple, found.symbols)),
        "type": found.type,
        "segments": tuple(tuple(s)[1:] for s in found.segments),
        "sections": tuple((s.name, s.flags, s.address, s.offset, s.size) for s in found.sections),
    }


@pytest.mark.parametrize(
    "name",
    [
        "libc.so.6",
        "libm.so.6",
        "libstdc++.so.6",
        "libgcc_s.so.1",
        "ld-linux-x86-64.so.2",
        "libdl.so.2",
        "libresolv.so.2",
    ],
)
def test_system_libraries_read_as_pyelftools_reads_them(name: str) -> None:
    path = (LIBRARIES / name).resolve()
    assert same_by_pyelftools(facts(path)) == by_pyelftools(path.read_bytes())


SOURCE = """
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
__thread int slot; int shared = 3; static volatile int local_data = 4; extern int absent __attribute__((weak));
__attribute__((noinline)) static int local_function(int i) { return i + local_data; }
__attribute__((constructor)) void first(void) { slot++; }
__attribute__((visibility("protected"))) int guarded(void) { return shared + (&absent ? absent : 0); }
int plain(int i) { printf("%p %f", dlopen("libnowhere.so.3", 2), cos(i)); return local_function(i) + slot; }
"""
VERSIONED = (
    SOURCE
    + """
int older(void) { return 1; } int newer(void) { return 2; }
__asm__(".symver older,both@V1"); __asm__(".symver newer,both@@V2");
"""
)
SCRIPT = "V1 { global: both; }; V2 { global: *; local: older; newer; } V1;"


@pytest.mark.parametrize("linker", ["bfd", "gold", "lld"])
@pytest.mark.parametrize("style", ["sysv", "gnu", "both"])
def test_compiled_objects_read_as_pyelftools_reads_them(
    compiled: Compile, tmp_path: Path, linker: str, style: str
) -> None:
    (tmp_path / "map").write_text(SCRIPT)
    path = compiled(
        "x.so", VERSIONED, f"-fuse-ld={linker}", f"-Wl,--hash-style={style}", "-Wl,--version-script=map",
        "-Wl,-soname,libx.so.1", "-Wl,-rpath,$ORIGIN/../lib", "-Wl,--no-as-needed", "-lm",
    )  # fmt: skip
    found = facts(path)
    assert same_by_pyelftools(found) == by_pyelftools(path.read_bytes())
    assert symbol(found, "guarded").visibility == 3
    assert {(s.version, s.hidden) for s in found.symbols if s.name == "both"} == {("V1", True), ("V2", False)}
    assert {"local_function", "local_data"} <= set(found.local_names)
    assert found.hides("local_function")
    assert not found.hides("local_functio")
    assert not found.hides("cal_function")
    assert not found.hides("plain"), "it is exported"


def test_a_name_that_is_the_end_of_another_is_found(compiled: Compile) -> None:
    source = "".join(
        f'__attribute__((noinline)) static int {name}(int x) {{ __asm__(""); return x; }}\n'
        for name in ("tail", "long_tail")
    )
    found = facts(compiled("x.so", source + "int f(int x) { return tail(x) + long_tail(x); }"))
    assert found.hides("tail")
    assert found.hides("long_tail")
    assert not found.hides("ong_tail")


@pytest.mark.parametrize("name", ["libstdc++.so.6", "libc.so.6", "libm.so.6"])
def test_the_small_image_gives_what_lief_finds_in_the_whole_file(name: str) -> None:
    path = (LIBRARIES / name).resolve()
    lief.logging.disable()
    whole = lief.ELF.parse(str(path))
    assert whole is not None
    found = facts(path)
    assert [(s.name, s.value, s.size, s.shndx) for s in list(whole.dynamic_symbols)[1:]] == [
        (s.name, s.value, s.size, s.section) for s in found.symbols
    ]
    assert [s.symbol_version.value for s in list(whole.dynamic_symbols)[1:]] == [
        s.version_index | (0x8000 if s.hidden else 0) for s in found.symbols
    ]
    named = {r.symbol.name for r in whole.relocations if r.has_symbol and r.symbol.name}
    assert {s.name for s in found.symbols if s.lookups} <= named
    assert found.build_id == next(
        bytes(n.description).hex() for n in whole.notes if n.type == lief.ELF.Note.TYPE.GNU_BUILD_ID
    )


def test_the_file_without_section_headers_says_the_same_of_the_loader(compiled: Compile) -> None:
    path = compiled("x.so", SOURCE, "-Wl,-soname,libx.so.1", "-lm")
    whole = facts(path)
    data = bytearray(path.read_bytes())
    struct.pack_into("<Q", data, 40, 0)  # e_shoff
    struct.pack_into("<HHH", data, 58, 0, 0, 0)  # e_shentsize, e_shnum, e_shstrndx
    bare = facts(bytes(data))
    assert bare.sections == ()
    for name in ("needed", "soname", "verneed", "verdef", "build_id", "constructors", "library_names"):
        assert getattr(bare, name) == getattr(whole, name)
    assert bare.symbols == whole.symbols


# -- facts that were built in -----------------------------------------------------------------------


def test_rpath_and_runpath_are_kept_apart(compiled: Compile) -> None:
    old = facts(compiled("a.so", "int a;", "-Wl,--disable-new-dtags,-rpath,/a:$ORIGIN"))
    new = facts(compiled("b.so", "int b;", "-Wl,--enable-new-dtags,-rpath,/b"))
    assert (old.rpath, old.runpath) == ("/a:$ORIGIN", None)
    assert (new.rpath, new.runpath) == (None, "/b")


def test_flags_of_the_linker_are_facts(compiled: Compile) -> None:
    found = facts(
        compiled(
            "x.so", "int x(void){return 1;} int y(void){return x();}",
            "-Wl,-Bsymbolic,-z,nodelete,-z,nodlopen,-z,now,-z,nodefaultlib",
        )
    )  # fmt: skip
    assert found.symbolic
    assert found.flags_1 & 0x8
    assert found.flags_1 & 0x40
    assert found.flags_1 & 0x800


def test_filter_and_auxiliary_are_facts(compiled: Compile) -> None:
    found = facts(compiled("x.so", "int x;", "-Wl,--filter=libfilter.so,--auxiliary=libaux.so"))
    assert (found.filters, found.auxiliaries) == (("libfilter.so",), ("libaux.so",))


def test_text_relocations_and_static_tls_are_facts(compiled: Compile) -> None:
    source = (
        '__thread int t __attribute__((tls_model("initial-exec"))); int f(void) { return t; }\n'
        '__asm__(".text\\n.globl tx\\ntx: movabs $tx, %rax\\nret");'
    )
    found = facts(compiled("x.so", source, "-Wl,-z,notext"))
    assert found.textrel
    assert found.flags & 0x10
    assert found.tls is not None
    assert found.tls.memsz == 4


def test_relr_is_a_fact(compiled: Compile) -> None:
    source = "extern int a[]; int a[4]; int *p[4] = {a, a + 1, a + 2, a + 3};"
    assert facts(compiled("x.so", source, "-Wl,-z,pack-relative-relocs", "-Wl,-Bsymbolic")).relr
    assert not facts(compiled("y.so", source, "-Wl,-Bsymbolic")).relr


@pytest.mark.parametrize(("level", "bits"), [("x86-64-v2", 2), ("x86-64-v3", 4), ("x86-64-v4", 8)])
def test_the_instruction_set_that_the_property_note_asks_for(
    compiled: Compile, level: str, bits: int
) -> None:
    assert facts(compiled("x.so", "int x;", f"-Wl,-z,{level}")).x86_isa_needed & bits


def test_a_program_has_an_interpreter_and_copy_relocations(compiled: Compile) -> None:
    library = compiled("libdata.so", "int data = 3; int call(void) { return 1; }")
    path = compiled(
        "program", "extern int data, call(void); int main(void) { return data + call(); }",
        "-fno-pic", "-no-pie", str(library), shared=False,
    )  # fmt: skip
    found = facts(path)
    assert found.interpreter == "/lib64/ld-linux-x86-64.so.2"
    assert found.is_program
    assert symbol(found, "data").lookups == LOOKUP_COPY
    assert symbol(found, "call").lookups == LOOKUP_PLT


def test_a_static_program_has_no_dynamic_segment(compiled: Compile) -> None:
    found = facts(compiled("program", "int main(void) { return 0; }", "-static", shared=False))
    assert not found.dynamic
    assert found.is_program
    assert found.symbols == ()


def test_an_undefined_symbol_without_relocation_is_never_looked_up(compiled: Compile) -> None:
    found = facts(compiled("x.so", 'int x; __asm__(".globl nobody");'))
    assert symbol(found, "nobody").lookups == 0
    assert not symbol(found, "nobody").defined


def test_constructors_beyond_the_c_runtime_count(compiled: Compile) -> None:
    none = facts(compiled("a.so", "int a;"))
    two = facts(
        compiled(
            "b.so",
            "int b; __attribute__((constructor)) void c(void){b++;} __attribute__((constructor)) void d(void){b++;}",
        )
    )
    assert two.constructors == none.constructors + 2


def test_extension_modules_are_known_by_their_init_function(compiled: Compile) -> None:
    found = facts(
        compiled(
            "x.so",
            'int PyInit_x(void){return 0;} int PyInit__y(void) __attribute__((visibility("hidden"))); int PyInit__y(void){return 0;}',
        )
    )
    assert found.python_modules == ("PyInit_x",)


def test_library_names_are_read_only_where_dlopen_is_imported(compiled: Compile) -> None:
    names = 'const char *n[] = {"libone.so", "libtwo.so.2.1", "/usr/lib/libpath.so", "see libthree.so", "libfour.so: %s"};'
    without = facts(compiled("a.so", names))
    opens = facts(
        compiled("b.so", f"#include <dlfcn.h>\n{names} void *f(void) {{ return dlopen(n[0], 1); }}")
    )
    assert without.library_names == ()
    assert set(opens.library_names) == {"libone.so", "libtwo.so.2.1"}


def test_needed_names_are_no_names_to_open(compiled: Compile) -> None:
    compiled("liba.so", "int a;", "-Wl,-soname,liba.so")
    found = facts(
        compiled(
            "x.so", "#include <dlfcn.h>\nextern int a; void *f(void) { return dlopen(0, a); }", "liba.so"
        )
    )
    assert "liba.so" in found.needed
    assert found.library_names == ()


# -- strings of a registration ----------------------------------------------------------------------

REGISTRATION = """
extern "C" void reg_add(const char *); struct R { R() { reg_add("demo_backend"); } }; static R r;
"""
REGISTRY = 'static long n; extern "C" __attribute__((visibility("hidden"))) void reg_add(const char *) { n++; } long f() { return n; }'


def test_a_registration_that_the_linker_dropped_has_dropped_its_string(
    compiled: Compile, tmp_path: Path
) -> None:
    (tmp_path / "bk.cpp").write_text(REGISTRATION)
    subprocess.run(["g++", "-fPIC", "-c", "bk.cpp", "-o", "bk.o"], check=True, cwd=tmp_path)
    subprocess.run(["ar", "rcs", "libbk.a", "bk.o"], check=True, cwd=tmp_path)
    wanted = frozenset({"demo_backend"})
    dropped = compiled("a.so", REGISTRY, "libbk.a", tool="g++")
    kept = compiled("b.so", REGISTRY, "-Wl,--whole-archive", "libbk.a", "-Wl,--no-whole-archive", tool="g++")
    assert facts(dropped, strings=wanted).strings == frozenset()
    assert facts(kept, strings=wanted).strings == wanted
    assert facts(kept, strings=wanted).constructors > facts(dropped, strings=wanted).constructors


def test_a_string_that_the_linker_merged_into_a_longer_one_stands_there(compiled: Compile) -> None:
    path = compiled("x.so", 'const char *a[] = {"the demo_backend", "demo_backend"};', "-Wl,-O2")
    assert path.read_bytes().count(b"demo_backend\0") == 1  # merged indeed
    assert facts(path, strings=frozenset({"demo_backend"})).strings == {"demo_backend"}


def test_names_of_symbols_types_and_libraries_are_no_registrations(compiled: Compile) -> None:
    source = """
    struct __attribute__((visibility("default"))) CudaBackend { virtual ~CudaBackend() {} virtual int f(); };
    int CudaBackend::f() { return 1; } extern "C" int XnnBackend(void) { return 2; } const char *s = "OtherBackendX";
    """
    path = compiled("x.so", source, "-Wl,-soname,SonameBackend", tool="g++")
    assert b"11CudaBackend\0" in path.read_bytes()
    wanted = frozenset({"CudaBackend", "XnnBackend", "OtherBackend", "SonameBackend"})
    assert facts(path, strings=wanted).strings == frozenset()


def test_strings_in_writable_data_count(compiled: Compile) -> None:
    assert facts(compiled("x.so", 'char n[] = "demo";'), strings=frozenset({"demo"})).strings == {"demo"}


# -- every class, byte order and machine -------------------------------------------------------------

# e_machine, class, byte order, REL instead of RELA, then the types: jump slot, copy, global data, relative.
MACHINES = {
    "x86_64": (62, 64, "<", True, 7, 5, 6, 8),
    "i686": (3, 32, "<", False, 7, 5, 6, 8),
    "aarch64": (183, 64, "<", True, 1026, 1024, 1025, 1027),
    "armv7l": (40, 32, "<", False, 22, 20, 21, 23),
    "ppc64le": (21, 64, "<", True, 21, 19, 20, 22),
    "ppc64": (21, 64, ">", True, 21, 19, 20, 22),
    "s390x": (22, 64, ">", True, 11, 9, 10, 12),
    "riscv64": (243, 64, "<", True, 5, 4, 2, 3),
    "loongarch64": (258, 64, "<", True, 5, 4, 2, 3),
}


@pytest.mark.parametrize("arch", MACHINES)
def test_any_machine_is_read_from_any_host(make: Make, arch: str, tmp_path: Path) -> None:
    machine, bits, order, rela, jump_slot, copy, data, relative = MACHINES[arch]
    blob = make(
        bits, order, machine,
        needed=("libc.so.6", "libm.so.6", "libc.so.6"),
        soname="libx.so.1",
        symbols=[("cos", 0x12, 0), ("environ", 0x21, 0), ("call", 0x12, 0), ("mine", 0xA1, 7), ("unused", 0x10, 0)],
        versym=[0, 3, 2, 1, 1, 4 | 0x8000],
        verneed=[("libc.so.6", [("GLIBC_2.17", 0, 2), ("GLIBC_2.34", 2, 4)]), ("libm.so.6", [("GLIBC_2.29", 0, 3)])],
        relocations=[(1, data), (2, copy), (3, data), (5, relative)],
        plt=[(1, jump_slot), (3, jump_slot)],
        rela=rela,
        wide_hash=arch == "s390x",
    )  # fmt: skip
    found = facts(blob)
    assert found.arch == arch
    assert found.needed == ("libc.so.6", "libm.so.6", "libc.so.6")
    assert found.soname == "libx.so.1"
    assert found.verneed == (
        VersionNeed("libc.so.6", (VersionRef("GLIBC_2.17", 2), VersionRef("GLIBC_2.34", 4, True))),
        VersionNeed("libm.so.6", (VersionRef("GLIBC_2.29", 3),)),
    )
    assert [(s.name, s.bind, s.kind, s.section, s.value, s.size) for s in found.symbols] == [
        ("cos", 1, 2, 0, 0x40, 4), ("environ", 2, 1, 0, 0x40, 4), ("call", 1, 2, 0, 0x40, 4),
        ("mine", 10, 1, 7, 0x40, 4), ("unused", 1, 0, 0, 0x40, 4),
    ]  # fmt: skip
    assert [(s.version, s.version_file, s.version_index, s.hidden) for s in found.symbols] == [
        ("GLIBC_2.29", "libm.so.6", 3, False), ("GLIBC_2.17", "libc.so.6", 2, False), (None, None, 1, False),
        (None, None, 1, False), ("GLIBC_2.34", "libc.so.6", 4, True),
    ]  # fmt: skip
    assert [s.lookups for s in found.symbols] == [
        LOOKUP_DATA | LOOKUP_PLT, LOOKUP_COPY, LOOKUP_DATA | LOOKUP_PLT, 0, 0,
    ]  # fmt: skip
    (tmp_path / "x.so").write_bytes(blob)
    shown = subprocess.run(
        ["readelf", "-dW", str(tmp_path / "x.so")], capture_output=True, text=True, check=True
    )
    assert tuple(re.findall(r"NEEDED.*\[(.*)\]", shown.stdout)) == found.needed


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("machine", [3, 8, 20, 21, 22, 40, 62, 183, 243, 258, 0xFFFF])
def test_a_class_that_does_not_go_with_the_machine_hides_nothing(
    make: Make, bits: int, order: str, machine: int
) -> None:
    # x32 is such a pair, and a real one; LIEF finds no dynamic entry in the others.
    found = facts(
        make(
            bits,
            order,
            machine,
            needed=["libc.so.6"],
            soname="libx.so",
            symbols=[("a", 0x12, 0)],
            wide_hash=bits == 64 and machine == 22,
        )
    )
    assert (found.needed, found.soname, len(found.symbols)) == (("libc.so.6",), "libx.so", 1)


def test_symbols_that_only_a_relocation_knows_are_counted(make: Make) -> None:
    blob = make(symbols=[("a", 0x12, 0), ("b", 0x12, 0)], relocations=[(2, 6)])
    # An object that defines nothing has a hash table that counts nothing: nchain is 0.
    at = blob.index(struct.pack("<II", 1, 3))
    assert [s.name for s in facts(blob[: at + 4] + bytes(4) + blob[at + 8 :]).symbols] == ["a", "b"]


def test_of_two_entries_for_one_tag_the_last_counts(make: Make) -> None:
    blob = make(
        soname="libfirst.so", needed=("libsecond.so",), dynamic=[(14, 1)]
    )  # string 1 is the first: libsecond.so
    assert facts(blob).soname == "libsecond.so"


def test_names_that_are_no_utf_8_are_escaped(make: Make) -> None:
    blob = (
        make(soname="lib????.so", needed=("nee?",))
        .replace(b"????", b"\xff\xfe\xc3(")
        .replace(b"nee?", b"nee\xff")
    )
    found = facts(blob)
    assert (found.soname, found.needed) == ("lib\\xff\\xfe\\xc3(.so", ("nee\\xff",))


def test_a_path_and_its_bytes_give_the_same(compiled: Compile) -> None:
    path = compiled("x.so", SOURCE, "-lm")
    assert read(path) == read(path.read_bytes(), name="x.so")


# -- names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["libx.so", "libx.so.1", "libx.so.1.2.3", "pkg/_x.cpython-311-x86_64-linux-gnu.so", "x.abi3.so"]
)
def test_names_of_shared_libraries(name: str) -> None:
    assert looks_like_elf_name(name)


@pytest.mark.parametrize(
    "name", ["x.py", "libx.a", "libx.so.py", "libx.so.debug", "also", "x.so.1a", "libx.so/readme"]
)
def test_names_of_other_files(name: str) -> None:
    assert not looks_like_elf_name(name)


def test_an_interrupt_while_lief_starts_is_told_when_it_has_started() -> None:
    # Out of the middle of it, the exception would end the process by std::terminate.
    script = """
import os, signal, sys
from wheelfix.elf import read

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "lief._lief":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
before = signal.getsignal(signal.SIGINT)
try:
    read.start()
except KeyboardInterrupt:
    assert signal.getsignal(signal.SIGINT) is before
    assert sys.modules["lief"].ELF.parse
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "interrupted\n"


def test_lief_starts_in_a_thread_too() -> None:
    script = """
import sys, threading
from wheelfix.elf import read

thread = threading.Thread(target=read.start)
thread.start()
thread.join()
assert sys.modules["lief"].ELF.parse
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
