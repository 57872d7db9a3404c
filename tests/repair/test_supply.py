"""Who may serve a library, and what a graft brings along. The build host is a literal."""

from collections.abc import Sequence

from wheelfix.model.elf import ElfFacts, VersionNeed, VersionRef
from wheelfix.repair.supply import Asker, HostLibrary, Place, Sources, Supply, Want, closure, supply

LIBS = "/prefix/lib/python3/site-packages/x.libs"


def host(**libraries: ElfFacts) -> dict[str, HostLibrary]:
    """Libraries of a build host; underscores of the keyword stand for ``.so.`` (libz_1)."""
    named = {k.replace("_", ".so."): v for k, v in libraries.items()}
    return {n: HostLibrary(f"/usr/lib/{n}", f"sha-of-{n}", f, ("/usr/lib",)) for n, f in named.items()}


def sources(
    libraries: dict[str, HostLibrary],
    promised: Sequence[str] = ("libc.so.6",),
    wheel: dict[str, tuple[Place, ...]] | None = None,
    given: dict[str, tuple[Place, ...]] | None = None,
    left: Sequence[str] = (),
) -> Sources:
    return Sources(
        promised=frozenset(promised),
        wheel=wheel or {},
        given=given or {},
        left=lambda name: name in left,
        find=lambda name, askers: libraries.get(name.rpartition("/")[2]),
    )


def ask(name: str, **kwargs: object) -> Supply:
    return supply(name, "/s/pkg", (), sources(host(libz_1=ElfFacts(), libcuda_1=ElfFacts()), **kwargs))  # type: ignore[arg-type]


def test_what_nobody_else_holds_is_grafted() -> None:
    served = ask("libz.so.1")
    assert served.kind == "graft"
    assert served.library is not None
    assert served.library.path == "/usr/lib/libz.so.1"


def test_what_the_tag_promises_is_left() -> None:
    assert ask("libz.so.1", promised=("libz.so.1",)).kind == "left"


def test_a_gpu_driver_library_is_left_even_where_this_machine_has_one() -> None:
    assert ask("libcuda.so.1").kind == "left"


def test_libpython_is_left() -> None:
    assert ask("libpython3.11.so.1.0").kind == "left"
    assert ask("libpython3.so").kind == "left"


def test_the_program_interpreter_is_left() -> None:
    assert ask("ld-linux-x86-64.so.2").kind == "left"
    assert ask("ld64.so.2").kind == "left"


def test_what_an_exclusion_or_a_provider_rule_names_is_left() -> None:
    assert ask("libz.so.1", left=("libz.so.1",)).kind == "left"


def test_the_wheels_own_file_goes_before_this_machines() -> None:
    place = Place("/s/pkg/lib", "libz.so.1")
    assert ask("libz.so.1", wheel={"libz.so.1": (place,)}) == Supply("wheel", place=place)


def test_what_a_given_distribution_holds_is_not_grafted() -> None:
    place = Place("/s/torch/lib", "libz.so.1")
    assert ask("libz.so.1", given={"libz.so.1": (place,)}) == Supply("given", place=place)


def test_of_several_files_the_one_of_that_very_name_then_the_nearest_serves() -> None:
    by_soname = Place("/s/pkg", "libz.so.1.2.3")
    far, near = Place("/s/other/deep/lib", "libz.so.1"), Place("/s/other/lib", "libz.so.1")
    served = ask("libz.so.1", wheel={"libz.so.1": (by_soname, far, near)})
    assert served.place == near


def test_an_absolute_name_is_served_under_its_last_part() -> None:
    place = Place("/s/pkg/lib", "libz.so.1")
    assert ask("/build/libz.so.1", wheel={"libz.so.1": (place,)}).place == place
    assert ask("/build/libz.so.1").kind == "graft"


def test_a_part_of_glibc_itself_cannot_be_grafted() -> None:
    private = ElfFacts(verneed=(VersionNeed("libc.so.6", (VersionRef("GLIBC_PRIVATE"),)),))
    served = supply("libanl.so.1", "/s", (), sources(host(libanl_1=private)))
    assert served.kind == "missing"
    assert "private" in served.reason


def want(library: HostLibrary, name: str, keep: bool = False) -> Want:
    return Want(library, name, keep, "pkg/x.so", ())


def test_grafts_bring_their_own_needs_breadth_first_and_each_content_once() -> None:
    libraries = host(
        liba_1=ElfFacts(needed=("libb.so.1", "libc.so.6")),
        libb_1=ElfFacts(needed=("libd.so.1", "liba.so.1")),
        libd_1=ElfFacts(),
    )
    found = closure([want(libraries["liba.so.1"], "liba.so.1")], LIBS, sources(libraries))
    assert [lib.path for lib in found.libraries.values()] == [
        "/usr/lib/liba.so.1",
        "/usr/lib/libb.so.1",
        "/usr/lib/libd.so.1",
    ]
    assert not found.kept


def test_filter_targets_go_along_under_their_own_name() -> None:
    libraries = host(libfilt_1=ElfFacts(filters=("libimpl.so.1",)), libimpl_1=ElfFacts())
    found = closure([want(libraries["libfilt.so.1"], "libfilt.so.1")], LIBS, sources(libraries))
    assert found.kept == {"sha-of-libimpl.so.1": ["libimpl.so.1"]}


def test_a_missing_auxiliary_target_is_no_fault() -> None:
    libraries = host(libaux_1=ElfFacts(auxiliaries=("libfast.so.1",)))
    found = closure([want(libraries["libaux.so.1"], "libaux.so.1")], LIBS, sources(libraries))
    assert not found.supplies


def test_names_that_a_graft_may_open_go_along_where_this_machine_has_them() -> None:
    opener = ElfFacts(library_names=("libinner.so.1", "libgone.so.1", "libcuda.so.1", "libc.so.6"))
    libraries = host(libouter_1=opener, libinner_1=ElfFacts(), libcuda_1=ElfFacts())
    found = closure([want(libraries["libouter.so.1"], "libouter.so.1")], LIBS, sources(libraries))
    assert found.kept == {"sha-of-libinner.so.1": ["libinner.so.1"]}
    assert found.absent == [("/usr/lib/libouter.so.1", "libgone.so.1")]
    assert "sha-of-libcuda.so.1" not in found.libraries


def test_two_names_of_one_content_are_one_graft() -> None:
    libraries = host(liba_1=ElfFacts(needed=("libz.so", "libz.so.1")))
    same = HostLibrary("/usr/lib/libz.so.1.2", "sha-of-z", ElfFacts())
    libraries |= {"libz.so": same, "libz.so.1": same}
    found = closure([want(libraries["liba.so.1"], "liba.so.1")], LIBS, sources(libraries))
    assert found.requested["sha-of-z"] == ["libz.so", "libz.so.1"]
    assert len(found.libraries) == 2


def test_the_search_for_a_grafts_need_knows_the_graft_and_its_loaders() -> None:
    seen: list[tuple[str, int]] = []
    libraries = host(
        liba_1=ElfFacts(needed=("libb.so.1",)), libb_1=ElfFacts(needed=("libd.so.1",)), libd_1=ElfFacts()
    )

    def find(name: str, askers: Sequence[Asker]) -> HostLibrary | None:
        seen.append((name, len(askers)))
        return libraries.get(name)

    wanted = Want(libraries["liba.so.1"], "liba.so.1", False, "pkg/x.so", (Asker(ElfFacts()),))
    closure([wanted], LIBS, Sources(frozenset(), {}, {}, lambda name: False, find))
    assert seen == [("libb.so.1", 2), ("libd.so.1", 3)]
