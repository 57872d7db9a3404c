from wheelfix.model.elf import ElfFacts, Section, Symbol, VersionNeed, VersionRef
from wheelfix.model.finding import Fault, Finding
from wheelfix.model.plan import AddFile, ElfChange, Graft, ModeChange, ObjectChange, Plan, Retag, Shim
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.repair.predict import changed, outcome, planned_wheel


def test_a_renamed_needed_takes_its_versions_and_symbols_with_it() -> None:
    before = ElfFacts(
        needed=("liba.so.1", "libb.so.1", "liba.so.1"),
        verneed=(
            VersionNeed("liba.so.1", (VersionRef("A_1"),)),
            VersionNeed("libb.so.1", (VersionRef("B_1"),)),
        ),
        symbols=(Symbol("f", version="A_1", version_file="liba.so.1"), Symbol("g")),
    )
    after = changed(before, ElfChange(rename_needed=(("liba.so.1", "liba-00.so.1"),)))
    assert after.needed == ("liba-00.so.1", "libb.so.1", "liba-00.so.1")
    assert [n.file for n in after.verneed] == ["liba-00.so.1", "libb.so.1"]
    assert [s.version_file for s in after.symbols] == ["liba-00.so.1", None]


def test_a_removed_needed_is_gone_wherever_it_stood() -> None:
    before = ElfFacts(needed=("a", "b", "a"))
    assert changed(before, ElfChange(remove_needed=("a",))).needed == ("b",)


def test_a_new_path_has_one_kind_and_an_empty_one_is_none() -> None:
    both = ElfFacts(rpath="/x", runpath="/y")
    as_rpath = changed(both, ElfChange(path="$ORIGIN", path_kind="rpath"))
    assert (as_rpath.rpath, as_rpath.runpath) == ("$ORIGIN", None)
    as_runpath = changed(both, ElfChange(path="$ORIGIN", path_kind="runpath"))
    assert (as_runpath.rpath, as_runpath.runpath) == (None, "$ORIGIN")
    gone = changed(both, ElfChange(path="", path_kind="runpath"))
    assert (gone.rpath, gone.runpath) == (None, None)


def test_no_change_leaves_every_fact() -> None:
    facts = ElfFacts(needed=("a",), runpath="$ORIGIN", soname="x", local_names=frozenset({"f"}))
    assert changed(facts, ElfChange()) == facts


def test_strip_takes_the_local_names_and_the_tables_that_hold_them() -> None:
    def section(name: str, kind: int, flags: int = 0) -> Section:
        return Section(name, kind, flags, 0, 0, 0)

    kept = (section(".dynsym", 11, 2), section(".dynstr", 3, 2), section(".shstrtab", 3))
    lost = (section(".symtab", 2), section(".strtab", 3), section(".debug_info", 1))
    facts = ElfFacts(local_names=frozenset({"f"}), sections=(*kept, *lost))
    after = changed(facts, ElfChange(strip=True))
    assert not list(after.local_names)
    assert after.sections == kept


WHEEL = WheelFacts(
    filename="x-1.0-cp311-cp311-linux_x86_64.whl",
    tags=("cp311-cp311-linux_x86_64",),
    wheel_tags=("cp311-cp311-linux_x86_64",),
    members=(
        Member("pkg/_e.so", "pkg/_e.so", mode=0o644, content="elf", elf=ElfFacts(needed=("libz.so.1",))),
        Member("x-1.0.data/scripts/t", "scripts:t", "scripts", mode=0o755, content="elf", elf=ElfFacts()),
    ),
    faults=(Fault("record-missing", "m"), Fault("record-hash", "h")),
)


def test_the_planned_wheel_holds_grafts_moves_scripts_and_keeps_what_does_not_change() -> None:
    plan = Plan(
        wheel=WHEEL.filename,
        filename="x-1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        platform="manylinux_2_28_x86_64",
        grafts=(Graft("/usr/lib/libz.so.1.2", "ab" * 32, ("libz.so.1",), "x.libs/libz-abababab.so.1", ""),),
        shims=(Shim("x-1.0.data/scripts/t", "x.scripts/t", "x.scripts/t", ""),),
        changes=(
            ObjectChange("pkg/_e.so", ElfChange(path="$ORIGIN/../x.libs")),
            ObjectChange("x.libs/libz-abababab.so.1", ElfChange(soname="libz-abababab.so.1")),
            ObjectChange("x.scripts/t", ElfChange(path="$ORIGIN/../x.libs")),
        ),
        modes=(ModeChange("pkg/_e.so", 0o755, ""),),
        retag=Retag(WHEEL.tags, ("cp311-cp311-manylinux_2_28_x86_64",), "n.whl", ""),
        files=(AddFile("x-1.0.dist-info/sboms/wheelfix.cdx.json", ""),),
    )
    planned = planned_wheel(WHEEL, plan, {"ab" * 32: ElfFacts(soname="libz.so.1")})
    members = {m.path: m for m in planned.members}
    extension = members["pkg/_e.so"]
    assert extension.mode == 0o755
    assert extension.elf is not None
    assert extension.elf.rpath == "$ORIGIN/../x.libs"
    graft = members["x.libs/libz-abababab.so.1"]
    assert graft.elf is not None
    assert graft.elf.soname == "libz-abababab.so.1"
    assert members["scripts:t"].elf is None
    assert members["scripts:t"].content == "text"
    program = members["x.scripts/t"]
    assert program.elf is not None
    assert (program.name, program.scheme, program.elf.rpath) == (
        "x.scripts/t",
        "platlib",
        "$ORIGIN/../x.libs",
    )
    assert planned.filename == "n.whl"
    assert planned.tags == planned.wheel_tags == ("cp311-cp311-manylinux_2_28_x86_64",)
    assert [f.rule for f in planned.faults] == ["record-hash"]


def test_an_empty_plan_leaves_the_facts() -> None:
    planned = planned_wheel(WHEEL, Plan(WHEEL.filename, WHEEL.filename, "any"), {})
    assert planned.members == WHEEL.members
    assert planned.tags == WHEEL.tags


def test_prediction_and_result_are_compared_without_remarks() -> None:
    error = Finding("r", "error", "text", member="m", library="l")
    assert outcome((error, Finding("i", "info", "text"))) == {("r", "error", "m", "l", None)}
