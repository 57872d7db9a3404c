"""The plan for one tag, from literal facts: what goes in, what is renamed, which path each object gets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wheelfix.model.elf import DF_1_PIE, ElfFacts
from wheelfix.model.plan import ElfChange
from wheelfix.model.policy import PlatformPolicy, Provider
from wheelfix.model.resolution import SITE
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.repair.plan import Draft, Wishes, draft, with_tags
from wheelfix.repair.supply import HostLibrary, Place, Sources
from wheelfix.repair.survey import Survey

SHA = "ab" * 32
TAG = PlatformPolicy("manylinux_2_28_x86_64", "x86_64", "glibc", (2, 28), frozenset({"libc.so.6"}), {})


def member(path: str, **facts: object) -> Member:
    name = path
    for scheme in ("scripts", "data"):
        name = name.replace(f"{scheme}:", f"x-1.0.data/{scheme}/")
    return Member(name, path, mode=0o755, content="elf", elf=ElfFacts(**facts))  # type: ignore[arg-type]


def survey_of(
    *members: Member,
    statuses: Mapping[tuple[str, str], str] | None = None,
    embedded: Sequence[str] = (),
    outward: Sequence[str] = (),
    places: Mapping[str, tuple[Place, ...]] | None = None,
    given: Mapping[str, tuple[Place, ...]] | None = None,
    loaders: Mapping[str, tuple[str, ...]] | None = None,
    platforms: str = "linux_x86_64",
    **wheel: object,
) -> Survey:
    tags = tuple(f"cp311-cp311-{p}" for p in platforms.split("."))
    folders = {f"{SITE}/{m.path}".rpartition("/")[0] for m in members if ":" not in m.path}
    return Survey(
        wheel=WheelFacts(
            f"x-1.0-cp311-cp311-{platforms}.whl",
            tags=tags,
            wheel_tags=tags,
            members=members,
            **wheel,  # type: ignore[arg-type]
        ),
        objects={m.path: m for m in members},
        statuses={k: frozenset({v}) for k, v in (statuses or {}).items()},  # type: ignore[dict-item]
        loaders=loaders or {},
        embedded=frozenset(embedded),
        outward=frozenset(outward),
        places=places or {},
        given=given or {},
        alive=frozenset(folders),
        lib_token="lib64",
        platform_token="x86_64",
    )


def plan_for(
    seen: Survey,
    libraries: Mapping[str, ElfFacts] | None = None,
    providers: tuple[Provider, ...] = (),
    wishes: Wishes | None = None,
    left: Sequence[str] = (),
    hashes: Mapping[str, str] | None = None,
) -> Draft:
    """The draft where the build host holds ``libraries``, each with a hash of its own."""
    found = {}
    for index, (name, facts) in enumerate((libraries or {}).items()):
        sha = (hashes or {}).get(name) or f"{index:08x}" + "0" * 56
        found[name] = HostLibrary(f"/usr/lib/{name}", sha, facts, ("/usr/lib",), 1000, 0o644)
    sources = Sources(
        TAG.libraries,
        seen.places,
        seen.given,
        lambda name: name in left,
        lambda name, askers: found.get(name.rpartition("/")[2]),
    )
    return draft(seen, TAG, sources, providers, wishes or Wishes())


def changes(made: Draft) -> dict[str, ElfChange]:
    return {c.member: c.change for c in made.plan.changes}


def test_a_missing_library_goes_into_the_wheel_and_its_name_and_path_follow() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("libz.so.1", "libc.so.6")),
        statuses={("pkg/_e.so", "libz.so.1"): "missing", ("pkg/_e.so", "libc.so.6"): "host"},
    )
    made = plan_for(seen, {"libz.so.1": ElfFacts(soname="libz.so.1", needed=("libc.so.6",))})
    (graft,) = made.plan.grafts
    assert graft.member == "x.libs/libz-00000000.so.1"
    assert graft.source == "/usr/lib/libz.so.1"
    assert changes(made) == {
        "pkg/_e.so": ElfChange(
            rename_needed=(("libz.so.1", "libz-00000000.so.1"),), path="$ORIGIN/../x.libs"
        ),
        "x.libs/libz-00000000.so.1": ElfChange(soname="libz-00000000.so.1"),
    }
    assert made.problems == ()


def test_what_only_a_newer_host_promises_goes_in_as_well() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("libmvec.so.1",)), statuses={("pkg/_e.so", "libmvec.so.1"): "host"}
    )
    assert len(plan_for(seen, {"libmvec.so.1": ElfFacts()}).plan.grafts) == 1


def test_a_healthy_wheel_needs_nothing() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("libh.so", "libc.so.6"), runpath="$ORIGIN"),
        member("pkg/libh.so", soname="libh.so"),
        statuses={("pkg/_e.so", "libh.so"): "found", ("pkg/_e.so", "libc.so.6"): "host"},
        platforms="manylinux_2_28_x86_64",
    )
    assert plan_for(seen).plan.empty


def test_grafts_that_need_grafts_look_beside_themselves() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("liba.so.1",)), statuses={("pkg/_e.so", "liba.so.1"): "missing"}
    )
    libraries = {
        "liba.so.1": ElfFacts(soname="liba.so.1", needed=("libb.so.1",), runpath="/usr/lib/private"),
        "libb.so.1": ElfFacts(soname="libb.so.1", rpath="/usr/lib/private"),
    }
    made = changes(plan_for(seen, libraries))
    assert made["x.libs/liba-00000000.so.1"] == ElfChange(
        soname="liba-00000000.so.1",
        rename_needed=(("libb.so.1", "libb-00000001.so.1"),),
        path="$ORIGIN",
        path_kind="runpath",
    )
    assert made["x.libs/libb-00000001.so.1"] == ElfChange(soname="libb-00000001.so.1", path="")


def test_two_libraries_of_one_soname_and_two_contents_are_two_grafts() -> None:
    one = HostLibrary("/one/libz.so.1", "1" * 64, ElfFacts(soname="libz.so.1"))
    two = HostLibrary("/two/libz.so.1", "2" * 64, ElfFacts(soname="libz.so.1"))
    seen = survey_of(
        member("pkg/a.so", needed=("libz.so.1",), rpath="/one"),
        member("pkg/b.so", needed=("libz.so.1",), rpath="/two"),
        statuses={("pkg/a.so", "libz.so.1"): "missing", ("pkg/b.so", "libz.so.1"): "missing"},
    )
    sources = Sources(
        TAG.libraries,
        {},
        {},
        lambda name: False,
        lambda name, askers: one if askers[0].facts.rpath == "/one" else two,
    )
    made = draft(seen, TAG, sources, (), Wishes())
    assert [g.member for g in made.plan.grafts] == ["x.libs/libz-11111111.so.1", "x.libs/libz-22222222.so.1"]
    assert changes(made)["pkg/a.so"].rename_needed == (("libz.so.1", "libz-11111111.so.1"),)
    assert changes(made)["pkg/b.so"].rename_needed == (("libz.so.1", "libz-22222222.so.1"),)


def test_a_name_that_code_opens_is_kept() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("libouter.so.1",)), statuses={("pkg/_e.so", "libouter.so.1"): "missing"}
    )
    libraries = {
        "libouter.so.1": ElfFacts(soname="libouter.so.1", library_names=("libinner.so.1",)),
        "libinner.so.1": ElfFacts(soname="libinner.so.1"),
    }
    made = plan_for(seen, libraries)
    assert [g.member for g in made.plan.grafts] == ["x.libs/libinner.so.1", "x.libs/libouter-00000000.so.1"]
    assert changes(made)["x.libs/libouter-00000000.so.1"] == ElfChange(
        soname="libouter-00000000.so.1", path="$ORIGIN"
    )
    assert "x.libs/libinner.so.1" not in changes(made)


def test_two_contents_cannot_keep_one_name() -> None:
    first = HostLibrary("/one/libi.so", "1" * 64, ElfFacts(soname="libi.so"), ("/one",))
    second = HostLibrary("/two/libi.so", "2" * 64, ElfFacts(soname="libi.so"), ("/two",))
    outer = {
        n: HostLibrary(
            f"/{n}/lib{n}.so", n * 32, ElfFacts(soname=f"lib{n}.so", filters=("libi.so",)), (f"/{n}",)
        )
        for n in ("aa", "bb")
    }

    def find(name: str, askers: Sequence[object]) -> HostLibrary | None:
        if name == "libi.so":
            return first if askers[0].folders == ("/aa",) else second  # type: ignore[attr-defined]
        return outer.get(name[3:5])

    seen = survey_of(
        member("pkg/_e.so", needed=("libaa.so", "libbb.so")),
        statuses={("pkg/_e.so", "libaa.so"): "missing", ("pkg/_e.so", "libbb.so"): "missing"},
    )
    made = draft(seen, TAG, Sources(frozenset(), {}, {}, lambda n: False, find), (), Wishes())
    assert any("libi.so" in p and "/one/" in p and "/two/" in p for p in made.problems)


def test_a_library_that_the_wheel_holds_gets_a_path_and_no_graft() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("libh.so",), runpath="/build/lib"),
        member("pkg/lib/libh.so", soname="libh.so"),
        statuses={("pkg/_e.so", "libh.so"): "missing"},
        places={"libh.so": (Place(f"{SITE}/pkg/lib", "libh.so"),)},
    )
    made = plan_for(seen, {"libh.so": ElfFacts()})
    assert not made.plan.grafts
    assert changes(made) == {"pkg/_e.so": ElfChange(path="$ORIGIN/lib", path_kind="runpath")}


def test_a_file_found_by_its_soname_is_needed_under_its_file_name() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("libd.so.1",), runpath="$ORIGIN/lib"),
        member("pkg/lib/libd.so.1.2", soname="libd.so.1"),
        statuses={("pkg/_e.so", "libd.so.1"): "missing"},
        places={"libd.so.1": (Place(f"{SITE}/pkg/lib", "libd.so.1.2"),)},
    )
    assert changes(plan_for(seen)) == {
        "pkg/_e.so": ElfChange(rename_needed=(("libd.so.1", "libd.so.1.2"),), path_kind="runpath")
    }


def test_inner_entries_stay_and_the_new_one_comes_behind_them() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("libz.so.1",), runpath="$ORIGIN/../core"),
        member("core/libh.so"),
        statuses={("pkg/_e.so", "libz.so.1"): "missing"},
    )
    made = changes(plan_for(seen, {"libz.so.1": ElfFacts()}))
    assert made["pkg/_e.so"].path == "$ORIGIN/../core:$ORIGIN/../x.libs"
    assert made["pkg/_e.so"].path_kind == "runpath"


def test_entries_that_lead_out_of_the_installation_go_even_where_nothing_is_grafted() -> None:
    paths = "$ORIGIN:/opt/conda/lib::lib:C:\\x:$ORIGIN/../../../../../../../../usr/lib"
    seen = survey_of(member("pkg/_e.so", rpath=paths))
    assert changes(plan_for(seen)) == {"pkg/_e.so": ElfChange(path="$ORIGIN")}


def test_a_dead_entry_alone_is_no_reason_to_change_an_object() -> None:
    seen = survey_of(member("pkg/_e.so", runpath="$ORIGIN:$ORIGIN/gone"))
    assert not plan_for(seen).plan.changes
    seen = survey_of(member("pkg/_e.so", runpath="$ORIGIN:$ORIGIN/gone:/abs"))
    assert changes(plan_for(seen))["pkg/_e.so"].path == "$ORIGIN"


def test_entries_to_other_distributions_stay_where_one_may_serve_a_library() -> None:
    entry = "$ORIGIN/../nvidia/cublas/lib"
    alone = survey_of(member("pkg/_e.so", runpath=f"/abs:{entry}"))
    assert changes(plan_for(alone))["pkg/_e.so"].path == ""
    outward = survey_of(member("pkg/_e.so", runpath=f"/abs:{entry}"), outward=("pkg/_e.so",))
    assert changes(plan_for(outward))["pkg/_e.so"].path == entry
    provider = Provider("k", "libcublas.so*", "nvidia-cublas", "nvidia/cublas/lib")
    assert changes(plan_for(alone, providers=(provider,)))["pkg/_e.so"].path == entry


def test_the_hop_to_the_grafts_counts_the_installed_folders() -> None:
    path = "acme/core/deep/leaf/_e.so"
    seen = survey_of(member(path, needed=("libz.so.1",)), statuses={(path, "libz.so.1"): "missing"})
    made = changes(plan_for(seen, {"libz.so.1": ElfFacts()}))
    assert made[path].path == "$ORIGIN/../../../../x.libs"


def test_an_absolute_needed_becomes_a_name() -> None:
    name = "/build/out/libnosoname.so"
    seen = survey_of(member("pkg/_e.so", needed=(name,)), statuses={("pkg/_e.so", name): "found"})
    made = plan_for(seen, {"libnosoname.so": ElfFacts()})
    assert changes(made) == {
        "pkg/_e.so": ElfChange(rename_needed=((name, "libnosoname-00000000.so"),), path="$ORIGIN/../x.libs")
    }


def test_libpython_leaves_an_extension_and_stays_in_a_program() -> None:
    python = "libpython3.11.so.1.0"
    seen = survey_of(
        member("pkg/_e.so", needed=(python,)),
        member("scripts:t", needed=(python,), flags_1=DF_1_PIE),
        statuses={("pkg/_e.so", python): "external", ("scripts:t", python): "external"},
        embedded=("scripts:t",),
    )
    assert changes(plan_for(seen)) == {"pkg/_e.so": ElfChange(remove_needed=(python,))}


def test_what_is_excluded_or_of_the_driver_is_left_and_the_driver_is_told() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("libcuda.so.1", "libbig.so.5")),
        statuses={("pkg/_e.so", "libcuda.so.1"): "external", ("pkg/_e.so", "libbig.so.5"): "external"},
    )
    made = plan_for(seen, {"libcuda.so.1": ElfFacts(), "libbig.so.5": ElfFacts()}, left=("libbig.so.5",))
    assert made.plan.empty
    assert any("libcuda.so.1" in n for n in made.plan.notes)


def test_what_nobody_has_is_a_problem_that_names_the_object() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("libz.so.1",)), statuses={("pkg/_e.so", "libz.so.1"): "missing"}
    )
    made = plan_for(seen)
    assert made.unserved == (("pkg/_e.so", "libz.so.1"),)
    (problem,) = made.problems
    assert "pkg/_e.so" in problem
    assert "libz.so.1" in problem


def test_a_dropped_need_is_removed_and_nothing_is_grafted_for_it() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("libz.so.1",)), statuses={("pkg/_e.so", "libz.so.1"): "missing"}
    )
    wishes = Wishes(drop=frozenset({("pkg/_e.so", "libz.so.1")}))
    made = plan_for(seen, {"libz.so.1": ElfFacts()}, wishes=wishes)
    assert changes(made) == {"pkg/_e.so": ElfChange(remove_needed=("libz.so.1",))}
    assert not made.plan.grafts


def test_a_script_program_that_needs_a_graft_moves_into_site_packages() -> None:
    seen = survey_of(
        member("scripts:t", needed=("libz.so.1",), flags_1=DF_1_PIE),
        statuses={("scripts:t", "libz.so.1"): "missing"},
    )
    made = plan_for(seen, {"libz.so.1": ElfFacts()})
    (move,) = made.plan.shims
    assert (move.script, move.program, move.location) == (
        "x-1.0.data/scripts/t",
        "x.scripts/t",
        "x.scripts/t",
    )
    assert changes(made)["x.scripts/t"].path == "$ORIGIN/../x.libs"


def test_an_object_of_the_data_scheme_cannot_reach_grafts() -> None:
    seen = survey_of(
        member("data:lib/libd.so", needed=("libz.so.1",)),
        statuses={("data:lib/libd.so", "libz.so.1"): "missing"},
    )
    made = plan_for(seen, {"libz.so.1": ElfFacts()})
    assert any("data:lib/libd.so" in p for p in made.problems)


def test_a_program_without_exec_bit_gets_it_and_a_library_does_not() -> None:
    program = Member("pkg/bin/t", "pkg/bin/t", mode=0o644, content="elf", elf=ElfFacts(flags_1=DF_1_PIE))
    library = Member("pkg/l.so", "pkg/l.so", mode=0o644, content="elf", elf=ElfFacts(soname="l.so"))
    made = plan_for(survey_of(program, library))
    assert [(m.member, m.mode) for m in made.plan.modes] == [("pkg/bin/t", 0o755)]


def test_strip_reaches_every_object_and_graft() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("libz.so.1",)),
        member("pkg/other.so"),
        statuses={("pkg/_e.so", "libz.so.1"): "missing"},
    )
    made = changes(plan_for(seen, {"libz.so.1": ElfFacts()}, wishes=Wishes(strip=True)))
    assert all(c.strip for c in made.values())
    assert set(made) == {"pkg/_e.so", "pkg/other.so", "x.libs/libz-00000000.so.1"}


def test_the_folder_for_grafts_is_asked_for() -> None:
    seen = survey_of(
        member("pkg/_e.so", needed=("libz.so.1",)), statuses={("pkg/_e.so", "libz.so.1"): "missing"}
    )
    made = plan_for(seen, {"libz.so.1": ElfFacts()}, wishes=Wishes(lib_sdir=".here"))
    assert made.plan.grafts[0].member.startswith("x.here/")
    assert changes(made)["pkg/_e.so"].path == "$ORIGIN/../x.here"


def test_new_tags_change_the_file_name_and_a_pure_root_becomes_platlib() -> None:
    seen = survey_of(member("pkg/_e.so"), platforms="any", root_is_purelib=True)
    plan = with_tags(plan_for(seen).plan, seen, ("manylinux_2_28_x86_64",), "why")
    assert plan.filename == "x-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert plan.retag is not None
    assert plan.retag.new == ("cp311-cp311-manylinux_2_28_x86_64",)
    assert plan.retag.platlib


def test_tags_that_stay_are_no_step_of_the_plan() -> None:
    seen = survey_of(member("pkg/_e.so"), platforms="manylinux_2_28_x86_64")
    assert with_tags(plan_for(seen).plan, seen, ("manylinux_2_28_x86_64",), "why").empty
