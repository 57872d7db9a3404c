"""Each rule of binding, on compiled objects, against the loader of this machine.

``agree`` holds our answer against every line that the real loader prints; what a test asserts itself is
the real loader's own behaviour, so that the input is known to exercise the rule.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from tests.oracle.observe import Observation, observe
from tests.oracle.simulate import compare, load_of, world_of
from wheelfix.elf.edit import find_patchelf
from wheelfix.loader.binding import bind
from wheelfix.loader.versions import version_errors
from wheelfix.model.resolution import Binding

Build = Callable[..., Path]
VER_FLG_WEAK = 2


def agree(root: Path, **how: object) -> Observation:
    seen = observe(root, **how)  # type: ignore[arg-type]
    _, problems = compare(seen)
    assert problems == []
    return seen


def provider(seen: Observation, symbol: str, version: str | None = None, of: str | None = None) -> list[str]:
    """The file names of what the real loader bound the symbol to."""
    return [
        os.path.basename(path)
        for (name, wanted, at), paths in seen.bindings.items()
        if wanted == symbol
        and at == version
        and os.path.basename(name) == (of or os.path.basename(seen.root))
        for path in paths
    ]


def ours(seen: Observation, symbol: str) -> Binding:
    """Our binding of a symbol of the root."""
    return next(
        b for b in bind(world_of(seen), load_of(seen)) if b.symbol == symbol and b.object == seen.root
    )


USES_G = "int g(void); int f(void) { return g(); }"


def test_global_scope_comes_before_the_roots_own(build: Build, opener: Build) -> None:
    library = build("liba.so", "int g(void) { return 1; }")
    root = build("root.so", USES_G, library)
    program = opener(before="int g(void) { return 2; }", flags=("-pie", "-fPIE", "-rdynamic"))
    assert provider(agree(root, opener=program), "g") == ["opener"]


def test_scope_is_breadth_first(build: Build) -> None:
    deep = build("libdeep.so", "int g(void) { return 1; }")
    first = build("libfirst.so", "int x;", deep)
    second = build("libsecond.so", "int g(void) { return 2; }")
    root = build("root.so", USES_G, first, second)
    assert provider(agree(root), "g") == ["libsecond.so"]


def test_first_definition_wins_though_weak(build: Build) -> None:
    weak = build("libweak.so", "__attribute__((weak)) int g(void) { return 1; }")
    strong = build("libstrong.so", "int g(void) { return 2; }")
    root = build("root.so", USES_G, weak, strong)
    assert provider(agree(root), "g") == ["libweak.so"]


def test_undefined_weak_never_fails(build: Build) -> None:
    root = build("root.so", "__attribute__((weak)) int g(void); int f(void) { return g ? g() : 0; }")
    seen = agree(root)
    assert seen.loads
    assert ours(seen, "g").status == "weak-unbound"


def test_undefined_strong_fails(build: Build) -> None:
    seen = agree(build("root.so", USES_G))
    assert not seen.loads
    assert "undefined symbol: g" in seen.error
    assert ours(seen, "g").status == "missing"


def test_symbol_without_relocation_is_not_looked_up(build: Build) -> None:
    library = build("liba.so", "int g(void) { return 1; }")
    root = build("root.so", "int f(void) { return 1; }", library, flags=("-Wl,-u,g",))
    build("liba.so", "int x;")  # nobody supplies it any more
    seen = agree(root)
    assert seen.loads
    assert ours(seen, "g").status == "unreferenced"


def test_local_definitions_supply_nobody(build: Build) -> None:
    build("liba.so", "int g(void) { return 1; }")
    root = build("root.so", USES_G, build("liba.so", "int g(void) { return 1; }"))
    build("liba.so", "int g(void) { return 1; }", script="{ local: *; };")
    assert not agree(root).loads


VERSIONED = 'int g_%d(void) { return %d; } __asm__(".symver g_%d, g@%sV%d");'


def versions(*defaults: bool) -> tuple[str, str]:
    """A source that defines g under V1, V2, ...; True makes one the default. And its version script."""
    source = "".join(VERSIONED % (i, i, i, "@" if d else "", i) for i, d in enumerate(defaults, start=1))
    script = "".join(
        f"V{i} {{ global: g; }}{f' V{i - 1}' if i > 1 else ''};\n" for i in range(1, len(defaults) + 1)
    )
    return source, script


def test_versioned_reference_takes_its_version_from_any_file(build: Build) -> None:
    source, script = versions(True)
    named = build("libnamed.so", source, script=script)
    build("libother.so", "int x;")
    root = build("root.so", USES_G, build("libother.so", "int x;"), named)
    build("libother.so", source, script=script)
    assert provider(agree(root), "g", "V1") == ["libother.so"]


def test_versioned_reference_passes_another_version(build: Build) -> None:
    source, script = versions(True)
    named = build("libnamed.so", source, script=script)
    root = build("root.so", USES_G, build("libother.so", "int x;"), named)
    build("libother.so", "int g(void) { return 7; }", script="W1 { global: g; };")
    assert provider(agree(root), "g", "V1") == ["libnamed.so"]


def test_versioned_reference_takes_a_library_without_versions(build: Build) -> None:
    source, script = versions(True)
    named = build("libnamed.so", source, script=script)
    root = build("root.so", USES_G, build("libplain.so", "int x;"), named)
    build("libplain.so", "int g(void) { return 7; }", flags=("-nostdlib",))
    assert provider(agree(root), "g", "V1") == ["libplain.so"]


def test_versioned_reference_takes_a_definition_without_version_of_a_versioned_library(build: Build) -> None:
    source, script = versions(True)
    named = build("libnamed.so", source, script=script)
    root = build("root.so", USES_G, build("libbase.so", "int x;"), named)
    other = 'int g(void) { return 7; } int h_1(void) { return 1; } __asm__(".symver h_1, h@@W1");'
    build("libbase.so", other, script="W1 { global: h; };")
    said = subprocess.run(
        ["readelf", "-W", "--dyn-syms", root.parent / "libbase.so"], capture_output=True, text=True
    )
    assert any(line.split()[-1] == "g" for line in said.stdout.splitlines() if line.strip())
    assert provider(agree(root), "g", "V1") == ["libbase.so"]


def test_version_missing_from_the_named_file_stops_the_load(build: Build) -> None:
    source, script = versions(False, True)
    root = build("root.so", USES_G, build("liba.so", source, script=script))
    build("liba.so", versions(True)[0], script=versions(True)[1])
    seen = agree(root)
    assert "version `V2' not found" in seen.error
    assert [e[1:5] for e in version_errors(world_of(seen), load_of(seen))] == [
        (seen.root, "liba.so", "V2", "missing")
    ]


def test_weak_version_may_be_missing(build: Build) -> None:
    source, script = versions(False, True)
    root = build(
        "root.so",
        "__attribute__((weak)) int g(void); int f(void) { return g ? 1 : 0; }",
        build("liba.so", source, script=script),
    )
    patch_vernaux(root, "V2", flags=VER_FLG_WEAK)
    build("liba.so", versions(True)[0], script=versions(True)[1])
    seen = agree(root)
    assert seen.loads
    assert version_errors(world_of(seen), load_of(seen)) == ()


def patch_vernaux(path: Path, version: str, flags: int) -> None:
    """Set vna_flags of one needed version (elf.h, Elf64_Vernaux: hash 4, flags 2, other 2, name 4, next 4)."""
    data = bytearray(path.read_bytes())
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".gnu.version_r")
        at = section["sh_offset"]
        while True:
            _, count, _, aux, following = struct.unpack_from("<HHIII", data, at)
            place = at + aux
            for _ in range(count):
                name = section.stringtable.get_string(struct.unpack_from("<I", data, place + 8)[0])
                if name == version:
                    struct.pack_into("<H", data, place + 4, flags)
                place += struct.unpack_from("<I", data, place + 12)[0]
            if not following:
                break
            at += following
    path.write_bytes(data)


def test_named_file_without_versions_aborts_the_process(build: Build) -> None:
    source, script = versions(True)
    root = build("root.so", USES_G, build("liba.so", source, script=script))
    build("liba.so", "int g(void) { return 7; }", flags=("-nostdlib",))
    seen = agree(root)
    assert not seen.loads
    assert "Assertion" in seen.error
    assert ours(seen, "g").status == "missing"


def test_named_file_that_lost_its_verdef_serves_if_it_needs_versions_itself(build: Build) -> None:
    source, script = versions(True)
    root = build("root.so", USES_G, build("liba.so", source, script=script))
    build("liba.so", '#include <stdio.h>\nint g(void) { return printf("x"); }')
    assert provider(agree(root), "g", "V1") == ["liba.so"]


def test_verneed_of_a_file_that_nothing_loads_aborts(build: Build, tmp_path: Path) -> None:
    source, script = versions(True)
    root = build("root.so", USES_G, build("liba.so", source, script=script))
    rewrite(root, b"liba.so\0", b"libz.so\0")  # one string: DT_NEEDED and verneed
    shutil.copy(tmp_path / "liba.so", tmp_path / "libz.so")
    subprocess.run([find_patchelf(), "--remove-needed", "libz.so", root], check=True)
    seen = agree(root)
    assert "needed != NULL" in seen.error
    assert {e.trouble for e in version_errors(world_of(seen), load_of(seen))} == {"orphan"}


def rewrite(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


@pytest.mark.parametrize("requested", ["liba.so", "libother.so"])
def test_verneed_matches_the_names_that_were_asked_for(build: Build, tmp_path: Path, requested: str) -> None:
    source, script = versions(True)
    library = build("liba.so", source, script=script)
    root = build("root.so", USES_G, library)
    shutil.copy(library, tmp_path / "libother.so")  # SONAME liba.so
    # Only DT_NEEDED changes: verneed still says liba.so.
    helper = build("libhelper.so", "int h;", flags=(f"-L{tmp_path}", f"-l:{requested}"))
    subprocess.run([find_patchelf(), "--replace-needed", "liba.so", requested, helper], check=True)
    subprocess.run(
        [find_patchelf(), "--remove-needed", "liba.so", "--add-needed", "libhelper.so", root], check=True
    )
    seen = agree(root)
    assert seen.loads == (requested == "liba.so")


@pytest.mark.parametrize(
    ("defaults", "expected"),
    [
        ((False, True), "libversioned.so"),  # index 2, though hidden
        ((True,), "libversioned.so"),
    ],
)
def test_unversioned_reference_takes_the_oldest_version(
    build: Build, defaults: tuple[bool, ...], expected: str
) -> None:
    plain = build("libversioned.so", "int g(void) { return 1; }")
    root = build("root.so", USES_G, plain, build("liblast.so", "int g(void) { return 9; }"))
    source, script = versions(*defaults)
    build("libversioned.so", source, script=script)
    assert provider(agree(root), "g") == [expected]


SHIFTED = "V0 { global: other; };\n"


@pytest.mark.parametrize(
    ("defaults", "expected"),
    [
        ((False, True), "libversioned.so"),  # indexes 3 hidden, 4 public: the only public one
        ((True,), "libversioned.so"),
        ((False,), "liblast.so"),  # index 3 and hidden: not accepted
        ((False, False), "liblast.so"),
    ],
)
def test_unversioned_reference_beyond_index_two_takes_the_only_public_version(
    build: Build, defaults: tuple[bool, ...], expected: str
) -> None:
    plain = build("libversioned.so", "int g(void) { return 1; }")
    root = build("root.so", USES_G, plain, build("liblast.so", "int g(void) { return 9; }"))
    source, script = versions(*defaults)
    build("libversioned.so", source + " int other(void) { return 0; }", script=SHIFTED + script)
    assert provider(agree(root), "g") == [expected]


def test_non_pie_program_catches_addresses_but_no_calls(build: Build, opener: Build) -> None:
    library = build("liba.so", "int g(void) { return 1; }")
    program = opener(
        library,
        before="int g(void); int (*volatile taken)(void);",
        inside="taken = &g; g();",
        flags=("-no-pie", "-fno-pie", "-Wl,-z,lazy"),
    )
    both = "int g(void); int (*address)(void) = &g; int f(void) { return g(); }"
    seen = agree(build("root.so", both, library), opener=program)
    assert sorted(provider(seen, "g")) == ["liba.so", "opener"]
    assert os.path.basename(ours(seen, "g").provider or "") == "liba.so"
    assert os.path.basename(ours(seen, "g").also or "") == "opener"
    only_data = build("data.so", "int g(void); int (*address)(void) = &g;", library)
    assert provider(agree(only_data, opener=program), "g") == ["opener"]
    only_calls = build("calls.so", USES_G, library)
    assert provider(agree(only_calls, opener=program), "g") == ["liba.so"]


def test_copy_relocation_skips_the_program(build: Build) -> None:
    library = build("liba.so", "int data[64] = {1}; int *get(void) { return data; }")
    program = build(
        "program",
        "extern int data[64]; int *get(void); int main(void) { return data[0] + *get(); }",
        library,
        flags=("-no-pie", "-fno-pie"),
        shared=False,
    )
    seen = agree(program)
    assert provider(seen, "data") == ["liba.so"]
    assert provider(seen, "data", of="liba.so") == ["program"]


def test_thread_local_symbols_bind_alike(build: Build) -> None:
    library = build("liba.so", "__thread int t = 1;")
    root = build("root.so", "extern __thread int t; int f(void) { return t; }", library)
    assert provider(agree(root), "t") == ["liba.so"]


def test_indirect_functions_bind_alike(build: Build) -> None:
    source = 'static int one(void) { return 1; } static void *choose(void) { return one; } int g(void) __attribute__((ifunc("choose")));'
    root = build("root.so", USES_G, build("liba.so", source))
    assert provider(agree(root), "g") == ["liba.so"]


def test_protected_definitions_supply_others(build: Build) -> None:
    library = build("liba.so", '__attribute__((visibility("protected"))) int g(void) { return 1; }')
    assert provider(agree(build("root.so", USES_G, library)), "g") == ["liba.so"]


def test_absolute_symbol_of_value_zero_is_a_definition(build: Build) -> None:
    library = build("liba.so", "char zero;")
    root = build("root.so", "extern char zero; char *f(void) { return &zero; }", library)
    build("liba.so", "int x;", flags=("-Wl,--defsym=zero=0",))
    assert provider(agree(root), "zero") == ["liba.so"]


def test_filter_is_preceded_by_its_filtee(build: Build) -> None:
    filtee = build("libfiltee.so", "int g(void) { return 2; }")
    stub = build("libstub.so", "int g(void) { return 1; }", flags=("-Wl,--filter=libfiltee.so",))
    assert filtee.exists()
    assert provider(agree(build("root.so", USES_G, stub)), "g") == ["libfiltee.so"]


UNIQUE = """
template <class T> struct Holder { static int value; };
template <class T> int Holder<T>::value = %d;
int *%s() { return &Holder<int>::value; }
"""
HOLDER = "_ZN6HolderIiE5valueE"


def test_unique_symbols_bind_to_the_first_in_scope(build: Build) -> None:
    first = build("libfirst.so", UNIQUE % (1, "first"), tool="g++")
    second = build("libsecond.so", UNIQUE % (2, "second"), tool="g++")
    root = build(
        "root.so", "extern int " + HOLDER + "; int *f(void) { return &" + HOLDER + "; }", first, second
    )
    seen = agree(root)
    assert provider(seen, HOLDER) == ["libfirst.so"]
    assert provider(seen, HOLDER, of="libsecond.so") == ["libfirst.so"]


def test_unique_symbol_of_the_first_relocated_object_wins(build: Build) -> None:
    symbolic = build("libsymbolic.so", UNIQUE % (2, "second"), tool="g++", flags=("-Wl,-Bsymbolic",))
    first = build("libfirst.so", UNIQUE % (1, "first"), symbolic, tool="g++")
    root = build("root.so", "extern int " + HOLDER + "; int *f(void) { return &" + HOLDER + "; }", first)
    seen = agree(root)
    # libfirst.so stands earlier in the scope; libsymbolic.so is relocated earlier and looks into itself first.
    assert provider(seen, HOLDER) == ["libsymbolic.so"]


def test_symbolic_object_looks_into_itself_first(build: Build, opener: Build) -> None:
    root = build(
        "root.so",
        "int g(void) { return 1; } int (*address)(void) = &g; int f(void) { return g(); }",
        flags=("-Wl,-Bsymbolic",),
    )
    program = opener(before="int g(void) { return 2; }", flags=("-pie", "-fPIE", "-rdynamic"))
    assert "opener" not in provider(agree(root, opener=program), "g")


def test_library_without_gnu_hash_is_searched(build: Build) -> None:
    library = build("liba.so", "int g(void) { return 1; }", flags=("-Wl,--hash-style=sysv",))
    assert provider(agree(build("root.so", USES_G, library)), "g") == ["liba.so"]


def test_programs_have_a_scope_of_their_own(build: Build) -> None:
    library = build("liba.so", "int g(void) { return 1; }")
    program = build("program", "int g(void); int main(void) { return g(); }", library, shared=False)
    seen = agree(program)
    assert seen.loads
    assert provider(seen, "g") == ["liba.so"]
