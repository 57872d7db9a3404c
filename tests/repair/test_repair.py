"""Whole repairs of small real wheels: the result is installed and loaded by a fresh interpreter.

Every library that stands for one of the build host lies in a folder that is moved away before the result is
judged, so that nothing of this machine can help.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile

TAG = "manylinux_2_5_x86_64"


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def read(wheel: Path, member: str) -> bytes:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(member)


def dynamic(wheel: Path, member: str) -> dict[str, list[str]]:
    """NEEDED, RPATH, RUNPATH and SONAME as pyelftools reads them."""
    section = ELFFile(io.BytesIO(read(wheel, member))).get_section_by_name(".dynamic")
    assert isinstance(section, DynamicSection)
    found: dict[str, list[str]] = {}
    for tag in section.iter_tags():
        for kind in ("needed", "rpath", "runpath", "soname"):
            if hasattr(tag, kind):
                found.setdefault(kind, []).append(getattr(tag, kind))
    return found


def module_name(forge: Any, name: str = "_e") -> str:
    return f"pkg/{name}{forge.suffix}"


def package(forge: Any, value: str, *flags: str, name: str = "x", **more: Any) -> Path:
    """A wheel with one extension module pkg._e whose f() gives ``value``."""
    extension = forge.module(f"_e{forge.suffix}", value, *flags)
    members = {module_name(forge): extension, "pkg/__init__.py": "", **more.pop("members", {})}
    return forge.wheel(name, members, **more)


IMPORT = "import pkg._e; print(pkg._e.f())"


def test_a_library_of_the_build_host_is_grafted_and_the_module_loads_without_it(forge: Any) -> None:
    library = forge.library("ext/libbig.so.5", "big", "41")
    fixed = forge.repaired(package(forge, "big() + 1", str(library)), away="ext")
    assert forge.run(forge.install(fixed), IMPORT) == "42\n"
    sha = hashlib.sha256((forge.folder / "ext.away/libbig.so.5").read_bytes()).hexdigest()
    grafted = f"libbig-{sha[:8]}.so.5"
    assert f"x.libs/{grafted}" in names(fixed)
    assert dynamic(fixed, f"x.libs/{grafted}")["soname"] == [grafted]
    extension = dynamic(fixed, module_name(forge))
    assert grafted in extension["needed"]
    assert extension["rpath"] == ["$ORIGIN/../x.libs"]


def test_the_tag_tells_the_truth_in_name_and_metadata(forge: Any) -> None:
    fixed = forge.repaired(package(forge, "3"))
    platforms = fixed.stem.rsplit("-", 1)[1].split(".")
    assert "linux_x86_64" not in platforms
    told = [
        line.rsplit("-", 1)[1]
        for line in read(fixed, "x-1.0.dist-info/WHEEL").decode().split("\n")
        if line.startswith("Tag: ")
    ]
    assert sorted(told) == sorted(platforms)


def test_grafts_of_grafts_are_found_beside_each_other(forge: Any) -> None:
    forge.library("ext/libdeep.so.1", "deep", "30")
    forge.library("ext/libmid.so.1", "mid", "deep() + 1", str(forge.folder / "ext/libdeep.so.1"))
    wheel = package(forge, "mid() + 1", str(forge.folder / "ext/libmid.so.1"), "-Wl,--allow-shlib-undefined")
    fixed = forge.repaired(wheel, away="ext")
    assert forge.run(forge.install(fixed), IMPORT) == "32\n"
    (mid,) = (n for n in names(fixed) if "libmid-" in n)
    assert dynamic(fixed, mid)["rpath"] == ["$ORIGIN"]


def test_a_versioned_library_keeps_its_versions_under_its_new_name(forge: Any) -> None:
    (forge.folder / "v.map").write_text("V_1 { global: ver; local: *; };")
    library = forge.library("ext/libver.so.1", "ver", "7", f"-Wl,--version-script={forge.folder}/v.map")
    fixed = forge.repaired(package(forge, "ver()", str(library)), away="ext")
    assert forge.run(forge.install(fixed), IMPORT) == "7\n"


def test_the_wheels_own_library_is_reached_and_not_grafted(forge: Any) -> None:
    library = forge.library("libh.so", "h", "5")
    wheel = package(
        forge, "h()", str(library), "-Wl,-rpath,/build/tree", members={"pkg/lib/libh.so": library}
    )
    fixed = forge.repaired(wheel)
    assert forge.run(forge.install(fixed), IMPORT) == "5\n"
    assert dynamic(fixed, module_name(forge))["runpath"] == ["$ORIGIN/lib"]
    assert not any(".libs/" in n for n in names(fixed))


def test_an_absolute_entry_is_removed_and_the_kind_of_path_is_kept(forge: Any) -> None:
    library = forge.library("libh.so", "h", "5")
    for dtags, kind in (("--enable-new-dtags", "runpath"), ("--disable-new-dtags", "rpath")):
        wheel = package(
            forge,
            "h()",
            str(library),
            f"-Wl,{dtags},-rpath,$ORIGIN:/opt/ci/lib",
            members={"pkg/libh.so": library},
            name=f"x{kind}",
            folder=kind,
        )
        code, text = forge.repair(wheel, "-w", forge.folder / f"out-{kind}")
        assert code == 0, text
        (fixed,) = (forge.folder / f"out-{kind}").iterdir()
        assert dynamic(fixed, module_name(forge))[kind] == ["$ORIGIN"]


def test_a_library_that_is_opened_by_name_goes_along_under_that_name(forge: Any) -> None:
    forge.library("ext/libinner.so.1", "inner", "77")
    source = """
    #include <dlfcn.h>
    long outer(void) {
        void *h = dlopen("libinner.so.1", RTLD_NOW);
        return h ? ((long (*)(void))dlsym(h, "inner"))() : -1;
    }"""
    outer = forge.compile("ext/libouter.so.1", source, "-Wl,-soname,libouter.so.1")
    fixed = forge.repaired(package(forge, "outer()", str(outer)), away="ext")
    assert "x.libs/libinner.so.1" in names(fixed)
    assert forge.run(forge.install(fixed), IMPORT) == "77\n"


def test_a_filter_brings_its_implementation(forge: Any) -> None:
    forge.library("ext/libimpl.so.1", "filt", "64")
    filt = forge.library("ext/libfilt.so.1", "filt", "-1", "-Wl,-F,libimpl.so.1")
    fixed = forge.repaired(package(forge, "filt()", str(filt)), away="ext")
    assert forge.run(forge.install(fixed), IMPORT) == "64\n"


def test_an_unused_library_is_dropped_not_grafted(forge: Any) -> None:
    library = forge.library("ext/libidle.so.10", "idle", "1")
    fixed = forge.repaired(package(forge, "3", "-Wl,--no-as-needed", str(library)), away="ext")
    assert forge.run(forge.install(fixed), IMPORT) == "3\n"
    assert "libidle.so.10" not in dynamic(fixed, module_name(forge))["needed"]
    assert not any("libidle" in n for n in names(fixed))


def test_an_unused_library_whose_loading_runs_code_is_grafted(forge: Any) -> None:
    source = "static long n; __attribute__((constructor)) static void c(void) { n = 1; } long idle(void) { return n; }"
    library = forge.compile("ext/libidle.so.10", source, "-Wl,-soname,libidle.so.10")
    fixed = forge.repaired(package(forge, "3", "-Wl,--no-as-needed", str(library)), away="ext")
    assert any("x.libs/libidle-" in n for n in names(fixed))


def test_a_program_of_scripts_moves_and_runs_from_a_shim(forge: Any) -> None:
    library = forge.library("ext/libscr.so.5", "scr", "4")
    source = '#include <stdio.h>\nextern long scr(void);\nint main(int c, char **v) { printf("%ld %s\\n", scr(), v[1]); return 3; }'
    program = forge.compile("tool", source, "-no-shared", "-fPIE", "-pie", str(library))
    wheel = forge.wheel("x", {"x-1.0.data/scripts/tool": program, "pkg/__init__.py": ""})
    fixed = forge.repaired(wheel, away="ext")
    site = forge.install(fixed)
    done = subprocess.run(
        [str(site / "bin/tool"), "a b"],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert (done.stdout, done.returncode) == ("4 a b\n", 3)


def test_a_second_repair_changes_nothing(forge: Any) -> None:
    library = forge.library("ext/libbig.so.5", "big", "41")
    fixed = forge.repaired(package(forge, "big()", str(library)), away="ext")
    code, text = forge.repair(fixed, "-w", forge.folder / "again")
    assert code == 0, text
    (again,) = (forge.folder / "again").iterdir()
    assert again.name == fixed.name
    assert again.read_bytes() == fixed.read_bytes()


def test_the_same_input_gives_the_same_bytes_and_the_input_stays(forge: Any) -> None:
    library = forge.library("ext/libbig.so.5", "big", "41")
    wheel = package(forge, "big()", str(library))
    before = wheel.read_bytes()
    outputs = []
    for folder in ("one", "two"):
        code, text = forge.repair(
            wheel, "-w", forge.folder / folder, LD_LIBRARY_PATH=str(forge.folder / "ext")
        )
        assert code == 0, text
        (made,) = (forge.folder / folder).iterdir()
        outputs.append((made.name, made.read_bytes()))
    assert outputs[0] == outputs[1]
    assert wheel.read_bytes() == before


def test_members_that_do_not_change_keep_their_bytes_dates_and_modes(forge: Any) -> None:
    library = forge.library("ext/libbig.so.5", "big", "41")
    data = {"pkg/data.txt": "text" * 1000, "pkg/other.sh": "#!/bin/sh\n"}
    wheel = package(forge, "big()", str(library), members=data, modes={"pkg/other.sh": 0o750})
    fixed = forge.repaired(wheel, away="ext")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(fixed) as new:
        for member in data:
            was, now = old.getinfo(member), new.getinfo(member)
            for field in ("CRC", "compress_size", "date_time", "external_attr"):
                assert getattr(was, field) == getattr(now, field), (member, field)
        assert new.namelist()[-1] == "x-1.0.dist-info/RECORD"


def test_record_tells_every_member_with_its_hash(forge: Any) -> None:
    import base64
    import csv

    library = forge.library("ext/libbig.so.5", "big", "41")
    fixed = forge.repaired(package(forge, "big()", str(library)), away="ext")
    rows = {r[0]: r for r in csv.reader(io.StringIO(read(fixed, "x-1.0.dist-info/RECORD").decode()))}
    assert set(rows) == {n for n in names(fixed) if not n.endswith("/")}
    for member, (_, digest, size) in rows.items():
        if not member.endswith("/RECORD"):
            data = read(fixed, member)
            told = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={told}", str(len(data)))


def test_the_list_of_grafts_is_in_the_wheel(forge: Any) -> None:
    library = forge.library("ext/libbig.so.5", "big", "41")
    sha = hashlib.sha256(library.read_bytes()).hexdigest()
    fixed = forge.repaired(package(forge, "big()", str(library)), away="ext")
    told = json.loads(read(fixed, "x-1.0.dist-info/sboms/wheelfix.cdx.json"))
    (component,) = told["components"]
    assert component["hashes"] == [{"alg": "SHA-256", "content": sha}]
    assert {"name": "wheelfix:package", "value": "unknown"} in component["properties"]


@pytest.mark.parametrize("extra", [(), ("--dry-run",)])
def test_a_missing_library_blocks_says_why_and_leaves_nothing(forge: Any, extra: tuple[str, ...]) -> None:
    library = forge.library("gone/libgone.so.1", "gone", "1")
    wheel = package(forge, "gone()", str(library))
    library.unlink()
    code, text = forge.repair(wheel, *extra)
    assert code == 4
    assert "libgone.so.1" in text
    assert not (forge.folder / "out").exists()


def test_no_verify_lets_a_missing_library_pass(forge: Any) -> None:
    library = forge.library("gone/libgone.so.1", "gone", "1")
    wheel = package(forge, "gone()", str(library))
    library.unlink()
    fixed = forge.repaired(wheel, "--no-verify")
    assert "libgone.so.1" in dynamic(fixed, module_name(forge))["needed"]


def test_an_excluded_library_stays_by_name(forge: Any) -> None:
    library = forge.library("ext/libbig.so.5", "big", "41")
    fixed = forge.repaired(package(forge, "big()", str(library)), "--exclude", "libbig.so.*", away="ext")
    assert "libbig.so.5" in dynamic(fixed, module_name(forge))["needed"]
    assert not any("libbig" in n for n in names(fixed))


def test_ldpaths_takes_the_place_of_the_library_path(forge: Any) -> None:
    forge.library("one/libbig.so.5", "big", "1")
    library = forge.library("two/libbig.so.5", "big", "2")
    wheel = package(forge, "big()", str(library))
    fixed = forge.repaired(
        wheel, "--ldpaths", forge.folder / "one", LD_LIBRARY_PATH=str(forge.folder / "two")
    )
    assert forge.run(forge.install(fixed), IMPORT) == "1\n"


def test_the_absolute_path_of_the_object_itself_counts_on_the_build_host(forge: Any) -> None:
    library = forge.library("own/libbig.so.5", "big", "9")
    wheel = package(forge, "big()", str(library), f"-Wl,-rpath,{forge.folder}/own")
    fixed = forge.repaired(wheel)
    (forge.folder / "own").rename(forge.folder / "own.away")
    assert forge.run(forge.install(fixed), IMPORT) == "9\n"


def test_strip_takes_symbols_and_the_module_still_loads(forge: Any) -> None:
    library = forge.library("ext/libbig.so.5", "big", "41", "-g")
    fixed = forge.repaired(package(forge, "big()", str(library), "-g"), "--strip", away="ext")
    (graft,) = (n for n in names(fixed) if "x.libs/libbig-" in n)
    for member in (graft, module_name(forge)):
        assert ELFFile(io.BytesIO(read(fixed, member))).get_section_by_name(".symtab") is None
    assert forge.run(forge.install(fixed), IMPORT) == "41\n"


def test_the_folder_of_grafts_can_be_named(forge: Any) -> None:
    library = forge.library("ext/libbig.so.5", "big", "41")
    fixed = forge.repaired(package(forge, "big()", str(library)), "-L", ".own", away="ext")
    assert any(n.startswith("x.own/libbig-") for n in names(fixed))


def test_no_update_tags_keeps_the_file_name(forge: Any) -> None:
    library = forge.library("ext/libbig.so.5", "big", "41")
    wheel = package(forge, "big()", str(library))
    fixed = forge.repaired(wheel, "--no-update-tags", away="ext")
    assert fixed.name == wheel.name
    assert forge.run(forge.install(fixed), IMPORT) == "41\n"


def test_plat_adds_the_tag_asked_for_beside_the_best_one(forge: Any) -> None:
    best = forge.repaired(package(forge, "3")).stem.rsplit("-", 1)[1].split(".")
    code, text = forge.repair(
        package(forge, "3"), "--plat", "manylinux_2_41_x86_64", "-w", forge.folder / "p"
    )
    assert code == 0, text
    (made,) = (forge.folder / "p").iterdir()
    assert sorted(made.stem.rsplit("-", 1)[1].split(".")) == sorted({*best, "manylinux_2_41_x86_64"})


def test_only_plat_gives_that_tag_alone(forge: Any) -> None:
    fixed = forge.repaired(package(forge, "3"), "--plat", "manylinux_2_41", "--only-plat")
    assert fixed.stem.endswith("-manylinux_2_41_x86_64")


def test_plat_of_the_environment_counts(forge: Any) -> None:
    fixed = forge.repaired(package(forge, "3"), "--only-plat", AUDITWHEEL_PLAT="manylinux_2_41_x86_64")
    assert fixed.stem.endswith("-manylinux_2_41_x86_64")


def test_a_tag_that_is_not_true_blocks_and_names_the_version(forge: Any) -> None:
    # arc4random is GLIBC_2.36 in glibc's own list of versions (sysdeps/unix/sysv/linux/x86_64/64/libc.abilist).
    source = "#include <stdlib.h>\nlong h(void) { return arc4random() & 1; }"
    library = forge.compile("libh.so", source, "-Wl,-soname,libh.so")
    wheel = package(forge, "h()", str(library), "-Wl,-rpath,$ORIGIN", members={"pkg/libh.so": library})
    code, text = forge.repair(wheel, "--plat", "manylinux_2_17_x86_64")
    assert code == 4
    assert "GLIBC_2.36" in text
    assert not (forge.folder / "out").exists()
    fixed = forge.repaired(wheel)
    assert fixed.stem.endswith("-manylinux_2_36_x86_64")


def test_an_untrue_tag_is_removed(forge: Any) -> None:
    source = "#include <stdlib.h>\nlong h(void) { return arc4random() & 1; }"
    library = forge.compile("libh.so", source, "-Wl,-soname,libh.so")
    tag = f"py3-none-{TAG}.manylinux1_x86_64"
    fixed = forge.repaired(forge.wheel("x", {"pkg/libh.so": library}, tag=tag))
    assert fixed.name.endswith("-py3-none-manylinux_2_36_x86_64.whl")


def test_the_output_folder_may_be_the_inputs_folder(forge: Any) -> None:
    library = forge.library("ext/libbig.so.5", "big", "41")
    wheel = package(forge, "big()", str(library))
    before = wheel.read_bytes()
    code, text = forge.repair(wheel, "-w", wheel.parent, LD_LIBRARY_PATH=str(forge.folder / "ext"))
    assert code == 0, text
    assert wheel.read_bytes() == before
    assert len(list(wheel.parent.iterdir())) == 2


def test_a_repaired_wheel_over_itself_stays_as_it_is(forge: Any) -> None:
    fixed = forge.repaired(package(forge, "3"))
    before = fixed.read_bytes()
    code, text = forge.repair(fixed, "-w", fixed.parent)
    assert code == 0, text
    assert [f.name for f in fixed.parent.iterdir()] == [fixed.name]
    assert fixed.read_bytes() == before


def test_a_wheel_without_objects_is_blocked_unless_allowed(forge: Any) -> None:
    wheel = forge.wheel("x", {"pkg/__init__.py": ""}, tag="py3-none-any", purelib=True)
    assert forge.repair(wheel)[0] == 4
    copied = forge.repaired(wheel, "--allow-pure-python-wheel")
    assert copied.name == wheel.name
    assert copied.read_bytes() == wheel.read_bytes()


def test_one_bad_wheel_does_not_hide_the_others(forge: Any) -> None:
    bad = forge.folder / "dist/bad-1.0-py3-none-any.whl"
    good = package(forge, "3")
    bad.write_bytes(b"no archive")
    code, text = forge.repair(bad, good)
    assert code == 3
    assert "bad-1.0" in text
    assert len(list((forge.folder / "out").iterdir())) == 1


def test_the_dry_run_tells_the_plan_and_writes_nothing(forge: Any) -> None:
    library = forge.library("ext/libbig.so.5", "big", "41")
    wheel = package(forge, "big()", str(library))
    code, text = forge.repair(wheel, "--dry-run", "--json", LD_LIBRARY_PATH=str(forge.folder / "ext"))
    assert code == 0, text
    told = json.loads(text)
    assert told["schema"] == "wheelfix/plan/1"
    (entry,) = told["wheels"]
    assert entry["status"] == "planned"
    kinds = [a["action"] for a in entry["actions"]]
    assert kinds == ["graft", "rename-needed", "set-rpath", "set-soname", "add-file", "retag"]
    graft = entry["actions"][0]
    assert graft["source"] == str(library)
    assert graft["sha256"] == hashlib.sha256(library.read_bytes()).hexdigest()
    assert not (forge.folder / "out").exists()


def test_a_library_of_a_given_distribution_gets_a_path_and_no_graft(forge: Any) -> None:
    library = forge.library("lib/libprov.so.1", "prov", "8")
    provider = forge.wheel("prov", {"prov/lib/libprov.so.1": library, "prov/__init__.py": ""})
    wheel = package(forge, "prov()", str(library), requires=("prov",))
    fixed = forge.repaired(wheel, "--with", provider, LD_LIBRARY_PATH=str(forge.folder / "lib"))
    assert dynamic(fixed, module_name(forge))["rpath"] == ["$ORIGIN/../prov/lib"]
    assert not any("libprov" in n for n in names(fixed))
    (forge.folder / "lib").rename(forge.folder / "lib.away")
    forge.install(provider)
    assert forge.run(forge.install(fixed), IMPORT) == "8\n"


def test_a_library_of_an_installed_environment_gets_a_path_and_no_graft(forge: Any) -> None:
    library = forge.library("lib/libprov.so.1", "prov", "8")
    provider = forge.wheel("prov", {"prov/lib/libprov.so.1": library, "prov/__init__.py": ""})
    env = forge.install(provider, "env/lib/python3/site-packages").parents[2]
    fixed = forge.repaired(package(forge, "prov()", str(library)), "--env", env)
    assert dynamic(fixed, module_name(forge))["rpath"] == ["$ORIGIN/../prov/lib"]
    assert not any("libprov" in n for n in names(fixed))


def test_a_signature_of_record_goes_since_record_changes(forge: Any) -> None:
    wheel = package(forge, "3", members={"x-1.0.dist-info/RECORD.jws": "{}"})
    assert "x-1.0.dist-info/RECORD.jws" not in names(forge.repaired(wheel))


def test_source_date_epoch_is_the_time_of_new_members(forge: Any) -> None:
    library = forge.library("ext/libbig.so.5", "big", "41")
    fixed = forge.repaired(package(forge, "big()", str(library)), away="ext", SOURCE_DATE_EPOCH="1600000000")
    with zipfile.ZipFile(fixed) as archive:
        dates = {i.filename: i.date_time for i in archive.infolist()}
    (graft,) = (n for n in dates if "libbig" in n)
    assert dates[graft] == (2020, 9, 13, 12, 26, 40)  # date -u -d @1600000000
    assert dates["pkg/__init__.py"] == (2020, 1, 1, 0, 0, 0)
    told = json.loads(read(fixed, "x-1.0.dist-info/sboms/wheelfix.cdx.json"))
    assert told["metadata"]["timestamp"] == "2020-09-13T12:26:40+00:00"


def test_a_source_date_that_is_no_number_is_wrong_usage(forge: Any) -> None:
    code, text = forge.repair(package(forge, "3"), SOURCE_DATE_EPOCH="yesterday")
    assert code == 2
    assert "SOURCE_DATE_EPOCH" in text


def test_an_unwritable_output_is_told_and_the_next_wheel_is_still_planned(forge: Any) -> None:
    (forge.folder / "file").write_text("")
    code, text = forge.repair(package(forge, "3"), "-w", forge.folder / "file")
    assert code == 4
    assert "file" in text


def test_a_policys_floor_is_the_tag_asked_for(forge: Any) -> None:
    (forge.folder / "p.toml").write_text('schema = 1\nname = "p"\n[platform]\ntag = "manylinux_2_41"\n')
    fixed = forge.repaired(package(forge, "3"), "--policy", forge.folder / "p.toml")
    assert "manylinux_2_41_x86_64" in fixed.stem


def test_a_provider_rule_gives_a_path_to_a_distribution_that_is_not_at_hand(forge: Any) -> None:
    library = forge.library("lib/libprov.so.1", "prov", "8")
    policy = forge.folder / "p.toml"
    policy.write_text(
        'schema = 1\nname = "p"\nextends = ["manylinux"]\n[[provider]]\nlibrary = "libprov.so.*"\n'
        'distribution = "prov"\npath = "prov/lib"\n'
    )
    wheel = package(forge, "prov()", str(library), "-Wl,-rpath,/abs", requires=("prov",))
    fixed = forge.repaired(wheel, "--policy", policy, away="lib")
    assert dynamic(fixed, module_name(forge))["runpath"] == ["$ORIGIN/../prov/lib"]
    assert not any("libprov" in n for n in names(fixed))
    provider = forge.folder / "lib.away/libprov.so.1"
    forge.install(forge.wheel("prov", {"prov/lib/libprov.so.1": provider, "prov/__init__.py": ""}))
    assert forge.run(forge.install(fixed), IMPORT) == "8\n"


def test_a_path_into_an_environment_is_kept_when_another_entry_goes(forge: Any) -> None:
    library = forge.library("lib/libprov.so.1", "prov", "8")
    provider = forge.wheel("prov", {"prov/lib/libprov.so.1": library, "prov/__init__.py": ""})
    env = forge.install(provider, "env/lib/python3/site-packages").parents[2]
    wheel = package(forge, "prov()", str(library), "-Wl,-rpath,$ORIGIN/../prov/lib:/abs")
    fixed = forge.repaired(wheel, "--env", env)
    assert dynamic(fixed, module_name(forge))["runpath"] == ["$ORIGIN/../prov/lib"]
