"""The promised hosts: what they have and lack, after the history that glibc, GCC, zlib and musl wrote down."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from wheelfix.model.elf import Symbol, VersionDef
from wheelfix.model.policy import PlatformPolicy
from wheelfix.policy.baseline import (
    cut,
    cxx_runtime_internals,
    cxx_runtime_symbols,
    glibc_symbols,
    host_libraries,
)
from wheelfix.policy.data import data_folder
from wheelfix.policy.exports import Exports
from wheelfix.policy.platform import candidates, for_platform

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ARCHES = ("x86_64", "i686", "aarch64", "armv7l", "ppc64le", "s390x", "riscv64", "loongarch64")


def policy(tag: str) -> PlatformPolicy:
    found = for_platform(tag)
    assert found is not None
    return found


def some(promised: tuple[PlatformPolicy, ...]) -> tuple[PlatformPolicy, ...]:
    """The oldest, the newest and one between."""
    return (promised[0], promised[len(promised) // 2], promised[-1])


def symbols(tag: str, library: str, name: str) -> set[tuple[str | None, bool]]:
    """Version and hidden bit of each definition of a name on the promised machine."""
    elf = host_libraries(policy(tag))[library].elf
    assert elf is not None
    return {(s.version, s.hidden) for s in elf.symbols if s.name == name}


# -- the cut ----------------------------------------------------------------------------------------------

CAPPED = PlatformPolicy("t", "x86_64", "glibc", (2, 5), frozenset(), {"A": frozenset({"1", "1.5"})})
NODES = (
    VersionDef("liba.so.1", 1, base=True),
    VersionDef("A_1", 2),
    VersionDef("A_1.5", 3),
    VersionDef("A_2", 4),
    VersionDef("A_PRIVATE", 5),
    VersionDef("B_9", 6),
)


def given(name: str, version: str | None, *, hidden: bool = False) -> Symbol:
    index = next((n.index for n in NODES if n.name == version), 1)
    return Symbol(name, section=1, value=1, version=version, version_index=index, hidden=hidden)


def left(*given_symbols: Symbol, nodes: tuple[VersionDef, ...] = NODES) -> list[tuple[str, str | None, bool]]:
    whole = Exports("liba.so.1", (), nodes, given_symbols)
    return [(s.name, s.version, s.hidden) for s in cut(whole, CAPPED).symbols]


def test_versions_above_the_cap_go_and_their_nodes_with_them() -> None:
    assert left(given("f", "A_1"), given("g", "A_2")) == [("f", "A_1", False)]
    assert [d.name for d in cut(Exports("liba.so.1", (), NODES, ()), CAPPED).verdef] == [
        "liba.so.1",
        "A_1",
        "A_1.5",
        "A_PRIVATE",
        "B_9",
    ]


def test_the_newest_version_that_remains_is_the_default() -> None:
    assert left(given("f", "A_1", hidden=True), given("f", "A_1.5", hidden=True), given("f", "A_2")) == [
        ("f", "A_1", True),
        ("f", "A_1.5", False),
    ]


def test_a_default_that_remains_keeps_the_older_ones_hidden() -> None:
    assert left(given("f", "A_1", hidden=True), given("f", "A_1.5"), given("g", "A_2")) == [
        ("f", "A_1", True),
        ("f", "A_1.5", False),
    ]


def test_a_hidden_symbol_stays_hidden_where_the_cut_takes_nothing() -> None:
    assert left(given("f", "A_1", hidden=True), nodes=NODES[:3]) == [("f", "A_1", True)]


def test_a_name_without_any_default_gets_none() -> None:
    # __cpu_model@GCC_4.8.0 of libgcc_s: there for old programs, and nothing links with it.
    assert left(given("f", "A_1", hidden=True), given("g", "A_2")) == [("f", "A_1", True)]


def test_private_versions_and_those_of_which_the_policy_does_not_speak_stay() -> None:
    assert left(given("p", "A_PRIVATE"), given("b", "B_9"), given("u", None)) == [
        ("p", "A_PRIVATE", False),
        ("b", "B_9", False),
        ("u", None, False),
    ]


def test_a_symbol_that_the_policy_denies_is_not_promised() -> None:
    denying = replace(CAPPED, denied_symbols={"liba.so.1": frozenset({"f"})})
    for nodes in (NODES, NODES[:3]):
        whole = Exports("liba.so.1", (), nodes, (given("f", "A_1"), given("g", "A_1")))
        assert [s.name for s in cut(whole, denying).symbols] == ["g"]


# -- what the promised machines have ----------------------------------------------------------------------


def test_memcpy_is_the_old_one_where_glibc_is_older_than_2_14() -> None:
    # glibc 2.14 NEWS: memcpy@GLIBC_2.14 on x86-64.
    assert symbols("manylinux_2_12_x86_64", "libc.so.6", "memcpy") == {("GLIBC_2.2.5", False)}
    assert symbols("manylinux_2_17_x86_64", "libc.so.6", "memcpy") == {
        ("GLIBC_2.2.5", True),
        ("GLIBC_2.14", False),
    }


@pytest.mark.parametrize("arch", [a for a in ARCHES if a not in ("riscv64", "loongarch64")])
def test_dlopen_and_pthread_create_moved_into_libc_with_glibc_2_34(arch: str) -> None:
    before, after = f"manylinux_2_28_{arch}", f"manylinux_2_34_{arch}"
    for library, name in (("libdl.so.2", "dlopen"), ("libpthread.so.0", "pthread_create")):
        assert symbols(before, library, name)
        assert not symbols(before, "libc.so.6", name)
        assert not symbols(after, library, name)
        assert symbols(after, "libc.so.6", name)


@pytest.mark.parametrize("arch", [a for a in ARCHES if a not in ("riscv64", "loongarch64")])
def test_pthread_mutex_lock_was_in_both_libraries_before_glibc_2_34(arch: str) -> None:
    # nptl/forward.c: libc had stubs for programs that do not load libpthread.
    assert symbols(f"manylinux_2_28_{arch}", "libc.so.6", "pthread_mutex_lock")
    assert symbols(f"manylinux_2_28_{arch}", "libpthread.so.0", "pthread_mutex_lock")


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_the_exception_pointer_functions_of_gcc_11_are_not_promised_by_2_28(arch: str) -> None:
    # libstdc++'s config/abi/pre/gnu.ver: exception_ptr::_M_addref since CXXABI_1.3.13 (GCC 11).
    name = "_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv"
    assert not symbols(f"manylinux_2_28_{arch}", "libstdc++.so.6", name)
    assert symbols(f"manylinux_2_39_{arch}", "libstdc++.so.6", name) == {("CXXABI_1.3.13", False)}


@pytest.mark.parametrize("tag", ["manylinux_2_5", "manylinux_2_17", "manylinux_2_28", "manylinux_2_31"])
def test_older_policies_are_taken_from_the_time_before_the_merge(tag: str) -> None:
    assert symbols(f"{tag}_x86_64", "libdl.so.2", "dlopen") == {("GLIBC_2.2.5", False)}


def test_zlib_functions_that_the_policy_denies_are_not_there() -> None:
    # crc32_combine_gen came with zlib 1.2.12; the policies up to 2_36 deny it.
    assert not symbols("manylinux_2_36_x86_64", "libz.so.1", "crc32_combine_gen")
    assert symbols("manylinux_2_39_x86_64", "libz.so.1", "crc32_combine_gen") == {("ZLIB_1.2.12", False)}
    assert symbols("manylinux_2_36_x86_64", "libz.so.1", "deflate")


@pytest.mark.parametrize("arch", ARCHES)
def test_no_version_above_the_caps_is_left_on_any_policy(arch: str) -> None:
    for promised in some(candidates(arch, "glibc")):
        hosts = host_libraries(promised)
        for library in ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"):
            elf = hosts[library].elf
            assert elf is not None
            assert elf.complete
            assert not elf.open_ended
            nodes = {d.name for d in elf.verdef if not d.base}
            assert {s.version for s in elf.symbols if s.version} <= nodes
            for node in nodes:
                prefix, _, version = node.partition("_")
                assert version in promised.versions[prefix] | {"PRIVATE"}, (promised.tag, library, node)


@pytest.mark.parametrize("arch", ARCHES)
def test_each_name_has_one_default_at_most(arch: str) -> None:
    for promised in some(candidates(arch, "glibc")):
        elf = host_libraries(promised)["libc.so.6"].elf
        assert elf is not None
        defaults = [s.name for s in elf.symbols if not s.hidden]
        assert len(defaults) == len(set(defaults))


@pytest.mark.parametrize("arch", ARCHES)
def test_the_program_interpreter_is_always_promised(arch: str) -> None:
    for libc in ("glibc", "musl"):
        for promised in candidates(arch, libc):  # type: ignore[arg-type]
            assert any(n.startswith(("ld-", "ld64")) for n in host_libraries(promised)), promised.tag


def test_what_host_libraries_need_is_promised_too() -> None:
    hosts = host_libraries(policy("manylinux_2_28_x86_64"))
    elf = hosts["libstdc++.so.6"].elf
    assert elf is not None
    assert set(elf.needed) == {"libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2", "libgcc_s.so.1"}
    for name in hosts:
        facts = hosts[name].elf
        assert facts is not None
        assert set(facts.needed) <= set(hosts)


def test_libraries_are_read_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def exports(arch: str, library: str, column: str) -> Exports:
        made.append(library)
        return Exports(library)

    monkeypatch.setattr("wheelfix.policy.baseline.exports", exports)
    hosts = host_libraries(policy("manylinux_2_28_x86_64"))
    assert "libc.so.6" in hosts
    assert "libx.so.1" not in hosts
    assert made == []
    assert hosts["libm.so.6"] is hosts["libm.so.6"]
    assert made == ["libm.so.6"]


# -- where the data do not reach ---------------------------------------------------------------------------


def test_a_promised_library_without_data_is_there_and_incomplete() -> None:
    promised = replace(policy("manylinux_2_28_x86_64"), libraries=frozenset({"libnew.so.1"}))
    elf = host_libraries(promised)["libnew.so.1"].elf
    assert elf is not None
    assert (elf.complete, elf.soname, elf.symbols) == (False, "libnew.so.1", ())


def test_an_architecture_without_data_has_its_libraries_and_knows_nothing_of_them() -> None:
    hosts = host_libraries(policy("manylinux_2_17_ppc64"))
    assert "ld64.so.1" in hosts
    elf = hosts["libc.so.6"].elf
    assert elf is not None
    assert not elf.complete
    assert elf.arch == "ppc64"


def test_a_plain_linux_tag_has_the_newest_data_uncut_and_open_ended() -> None:
    elf = host_libraries(policy("linux_x86_64"))["libc.so.6"].elf
    assert elf is not None
    assert elf.complete
    assert elf.open_ended
    # glibc 2.42 is newer than every policy's cap.
    assert any(d.name == "GLIBC_2.42" for d in elf.verdef)


def test_a_policy_for_a_newer_glibc_than_the_data_is_open_ended() -> None:
    promised = replace(policy("manylinux_2_39_x86_64"), libc_version=(2, 99))
    elf = host_libraries(promised)["libc.so.6"].elf
    assert elf is not None
    assert elf.open_ended


# -- musl --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHES)
def test_musl_is_one_file_under_all_its_names(arch: str) -> None:
    hosts = host_libraries(policy(f"musllinux_1_2_{arch}"))
    names = [n for n in hosts if n == "libc.so" or "musl" in n]
    assert len(names) >= 3
    assert len({hosts[n].location for n in names}) == 1
    elf = hosts["libc.so"].elf
    assert elf is not None
    assert elf.complete
    given_names = {s.name for s in elf.symbols}
    assert {"malloc", "pthread_create", "dlopen"} <= given_names
    # Never in musl; the last is gone since 1.2.4 and an alias before.
    assert not {"__cxa_thread_atexit_impl", "backtrace", "__memcpy_chk"} & given_names


def test_alpine_spells_some_architectures_in_its_own_way() -> None:
    assert "libc.musl-x86.so.1" in host_libraries(policy("musllinux_1_2_i686"))
    assert "libc.musl-armv7.so.1" in host_libraries(policy("musllinux_1_2_armv7l"))


def test_another_builds_zlib_stands_for_alpines_where_it_has_the_symbol_and_decides_nothing_else() -> None:
    elf = host_libraries(policy("musllinux_1_2_x86_64"))["libz.so.1"].elf
    assert elf is not None
    assert "deflate" in {s.name for s in elf.symbols}
    assert not elf.complete


# -- the C++ runtime ---------------------------------------------------------------------------------------


def test_a_runtime_symbol_is_what_any_release_of_the_runtime_exports() -> None:
    runtime = cxx_runtime_symbols("x86_64")
    assert "_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv" in runtime["libstdc++.so.6"]
    assert "__cxa_throw" in runtime["libstdc++.so.6"]
    assert "_Unwind_Resume" in runtime["libgcc_s.so.1"]
    assert "PyInit_x" not in runtime["libstdc++.so.6"]
    assert cxx_runtime_symbols("ppc64") == {}


def test_internals_are_what_the_runtimes_own_sources_define() -> None:
    internals = cxx_runtime_internals("x86_64")
    # src/c++98/locale.cc, libsupc++/eh_throw.cc
    assert {"_ZNSt6locale7classicEv", "__cxa_throw", "__cxa_allocate_exception"} <= internals


def test_instantiations_that_a_module_may_hold_are_no_internals(tmp_path: Path) -> None:
    """What g++ puts into an object that uses the library's templates must not count as a copy of the runtime."""
    (tmp_path / "a.cc").write_text(
        "#include <string>\n#include <vector>\n#include <map>\n#include <sstream>\n#include <regex>\n#include <thread>\n"
        "#include <memory>\n#include <stdexcept>\n#include <locale>\n"
        "template class std::basic_string<char>; template class std::vector<std::string>;\n"
        "struct E : std::runtime_error { using std::runtime_error::runtime_error; };\n"
        "std::string f(int x){ std::ostringstream o; o << x; std::map<std::string,int> m; m[o.str()]=x;\n"
        " if (x) throw E(o.str()); std::regex r(\"a*\"); std::thread t([]{}); t.join();\n"
        " auto p = std::make_shared<std::string>(o.str()); return *p; }\n"
    )  # fmt: skip
    subprocess.run(["g++", "-O1", "-fPIC", "-shared", "a.cc", "-o", "a.so"], check=True, cwd=tmp_path)
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", "a.so"], check=True, capture_output=True, text=True, cwd=tmp_path
    ).stdout
    defined = {line.split()[-1].partition("@")[0] for line in shown.splitlines()}
    assert len(defined) > 100
    assert not defined & cxx_runtime_internals("x86_64")


def test_glibcs_names_are_those_of_all_its_libraries() -> None:
    names = glibc_symbols("x86_64")
    assert {"malloc", "dlopen", "pthread_create", "sin", "__cxa_thread_atexit_impl", "shm_open"} <= names
    assert "_ZNSt6locale7classicEv" not in names


# -- the data against this machine's own libraries ---------------------------------------------------------


@pytest.mark.parametrize("library", ["libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"])
def test_the_cut_at_this_machines_glibc_is_this_machines_library(library: str) -> None:
    """Other releases of Debian gave the data; cut at the versions of this machine they must give its own symbols."""
    major, _, minor = platform.libc_ver()[1].partition(".")
    promised = policy(f"manylinux_{major}_{minor}_{platform.machine()}")
    path = printed("gcc", f"-print-file-name={library}").strip()
    real = set()
    for name, at, version in re.findall(
        r" (?:FUNC|OBJECT|IFUNC|TLS|NOTYPE) +(?:GLOBAL|WEAK|UNIQUE) +DEFAULT +\d+ (\w+)(@@?)(\S+)",
        printed("readelf", "--dyn-syms", "-W", path),
    ):
        prefix, _, number = version.partition("_")
        if number in promised.versions.get(prefix, ()):
            real.add((name, version, at == "@"))
    elf = host_libraries(promised)[library].elf
    assert elf is not None
    ours = {(s.name, s.version or "", s.hidden) for s in elf.symbols if "PRIVATE" not in (s.version or "")}
    assert len(ours) > 90
    assert not {s[:2] for s in real} ^ {s[:2] for s in ours}
    if (int(major), int(minor)) == promised.libc_version:
        # Names that a later glibc retired (no default any more) cannot be told from names that never had one.
        retired = {s[0] for s in ours} - {s[0] for s in ours if not s[2]}
        assert {s for s in ours if s[0] not in retired} == {s for s in real if s[0] not in retired}
        assert len(retired) < len(ours) / 4


def printed(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_sources_name_every_package_of_every_column() -> None:
    folder = data_folder() / "baseline"
    sources = tomllib.loads((folder / "SOURCES.toml").read_text())
    for release in ("bullseye", "trixie", "sid"):
        assert sources[release]["amd64"]["libc6"]["version"]
    assert sum(path.stat().st_size for path in folder.glob("*.zip")) < 3_000_000
