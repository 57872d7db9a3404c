from wheelfix.model.plan import (
    AddFile,
    Blocked,
    ElfChange,
    Graft,
    ModeChange,
    ObjectChange,
    Plan,
    Retag,
    Shim,
)
from wheelfix.repair.show import actions, as_json, as_text, megabytes

GRAFT = Graft(
    "/usr/lib/libz.so.1.3", "ab" * 32, ("libz.so.1",), "x.libs/libz-abababab.so.1", "why", size=120_000
)
PLAN = Plan(
    wheel="x-1.0-cp311-cp311-linux_x86_64.whl",
    filename="x-1.0-cp311-cp311-manylinux_2_28_x86_64.whl",
    platform="manylinux_2_28_x86_64",
    grafts=(GRAFT,),
    shims=(Shim("x-1.0.data/scripts/t", "x.scripts/t", "x.scripts/t", "w"),),
    changes=(
        ObjectChange(
            "pkg/_e.so",
            ElfChange(
                rename_needed=(("libz.so.1", "libz-abababab.so.1"),),
                remove_needed=("libq.so",),
                path="$ORIGIN/../x.libs",
                path_kind="runpath",
                strip=True,
            ),
            ("a", "b"),
        ),
        ObjectChange(GRAFT.member, ElfChange(soname="libz-abababab.so.1")),
    ),
    modes=(ModeChange("pkg/t", 0o755, "m"),),
    retag=Retag(("cp311-cp311-linux_x86_64",), ("cp311-cp311-manylinux_2_28_x86_64",), "n.whl", "r"),
    files=(
        AddFile("x-1.0.dist-info/sboms/wheelfix.cdx.json", "s"),
        AddFile("l", "lic", "/usr/share/doc/z/copyright"),
    ),
    notes=tuple(f"note {n}" for n in range(6)),
)


def test_actions_stand_in_the_order_in_which_they_are_done() -> None:
    assert [a["action"] for a in actions(PLAN)] == [
        "graft",
        "move-script",
        "strip",
        "rename-needed",
        "remove-needed",
        "set-rpath",
        "set-soname",
        "set-mode",
        "add-file",
        "add-file",
        "retag",
    ]


def test_each_action_has_its_documented_keys() -> None:
    found = {a["action"]: a for a in actions(PLAN)}
    assert found["graft"]["requested"] == ["libz.so.1"]
    assert found["rename-needed"] == {
        "action": "rename-needed",
        "member": "pkg/_e.so",
        "old": "libz.so.1",
        "new": "libz-abababab.so.1",
        "why": "a; b",
    }
    assert (found["set-rpath"]["kind"], found["set-rpath"]["path"]) == ("runpath", "$ORIGIN/../x.libs")
    assert found["set-mode"]["mode"] == "0755"
    assert found["retag"]["new"] == ["cp311-cp311-manylinux_2_28_x86_64"]


def test_json_tells_planned_unchanged_and_blocked_wheels() -> None:
    told = as_json([("a", PLAN), ("b", Plan("w", "w", "p")), ("c", Blocked("w", ("no",)))])
    assert told["schema"] == "wheelfix/plan/1"
    assert [(w["path"], w["status"]) for w in told["wheels"]] == [
        ("a", "planned"),
        ("b", "unchanged"),
        ("c", "blocked"),
    ]
    assert told["wheels"][2]["reasons"] == ["no"]


def test_the_text_names_graft_change_and_tags_and_counts_what_it_leaves_out() -> None:
    text = "\n".join(as_text(PLAN))
    assert "x.libs/libz-abababab.so.1 from /usr/lib/libz.so.1.3 (0.1 MB)" in text
    assert "RUNPATH $ORIGIN/../x.libs" in text
    assert "linux_x86_64 -> manylinux_2_28_x86_64" in text
    assert "1 licence texts" in text
    assert "note 5" not in text
    assert "note 5" in "\n".join(as_text(PLAN, verbose=True))


def test_a_plan_of_many_changes_still_fits_a_screen() -> None:
    many = tuple(ObjectChange(f"pkg/{n}.so", ElfChange(path="$ORIGIN")) for n in range(100))
    assert len(as_text(Plan("w", "w", "p", changes=many))) < 24
    assert len(as_text(Plan("w", "w", "p", changes=many), verbose=True)) == 100


def test_sizes_are_decimal() -> None:
    assert megabytes(1_500_000) == "1.5 MB"
    assert megabytes(1_500) == "1.5 kB"
