"""What repair promises, on wheels drawn at random: the oracle is the loader of this machine.

A repair that succeeds gives a wheel that verifies and whose every root the real loader opens, with each library taken from
where the plan said; it gives the same bytes whatever the number of processes, and has nothing to do a second
time. One that does not succeed writes nothing. Both leave the input as it is.
"""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, event, given, settings

from tests.repair.conftest import Forge
from tests.repair.drawn import BUILD, NEIGHBOUR, Case, Kind, Library, Module, Pool, cases, closure
from wheelfix import audit, cli
from wheelfix.model.plan import Blocked
from wheelfix.model.resolution import Load
from wheelfix.repair import owner, work
from wheelfix.repair.predict import planned_wheel
from wheelfix.repair.propose import Proposal

pytestmark = pytest.mark.xdist_group("repair-property")  # the objects are made once


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Pool:
    return Pool(tmp_path_factory.mktemp("pool").resolve())


def _command(*words: object, **environ: str) -> tuple[int, str]:
    """Exit status and output of the command, in this process."""
    clean = {k: v for k, v in os.environ.items() if "LIBRARY_PATH" not in k and k != "SOURCE_DATE_EPOCH"}
    said = StringIO()
    with (
        mock.patch.dict(os.environ, {**clean, **environ, "WHEELFIX_TRACEBACK": "1"}, clear=True),
        # No package manager knows the objects, and each takes a quarter of a second to say so.
        mock.patch.object(owner, "owner", return_value=None),
        redirect_stdout(said),
        redirect_stderr(said),
    ):
        try:
            status = cli.main([str(w) for w in words])
        finally:
            gc.enable()
    return status, said.getvalue()


def _files(folder: Path) -> dict[str, str]:
    """Every file below a folder with the hash of its content, except what repair is asked to write."""
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in folder.rglob("*")
        if p.is_file() and p.relative_to(folder).parts[0] not in ("one", "two", "again")
    }


def _loads(facts: audit.WheelFacts, setting: audit.Setting) -> tuple[Load, ...]:
    """What the simulation says of each root; the one machine of these wheels' tags is one scene."""
    (scene,) = audit.subject_from(facts, setting).scenes
    return scene.loads


def _told(loads: tuple[Load, ...]) -> list[tuple[object, ...]]:
    """Who loads whom, by which rule, and the order of symbols' look-up."""
    return [(load.edges, [n.path for n in load.scope]) for load in loads]


def _judge(pool: Pool, case: Case, folder: Path) -> str:
    """Repair the wheel of a case and hold all promises against what happened; gives how it ended."""
    wheel, beside, machine = pool.lay_out(case, folder)
    forge = Forge(folder)
    installed = forge.unpack(beside, "env/lib/python3/site-packages").parents[2]
    where = {"--with": [beside], "--env": [installed]}.get(case.given or "", [])
    flags = [*([case.given] if case.given else []), *where, *case.options]
    # What verify needs to be told as well.
    same = ("--with", "--env", "--exclude", "--ld-library-path")
    world = [word for name in same for word in _taken(flags, name)]
    environ = {}
    if case.told == "--ldpaths":
        flags += ["--ldpaths", pool.build]
    elif case.told is not None:
        environ[case.told] = str(pool.build)
    before = _files(folder), _files(pool.build)

    proposals: list[tuple[Proposal | Blocked, audit.WheelFacts, audit.Setting]] = []

    def noted(wheel: audit.WheelFacts, setting: audit.Setting, *more: object) -> Proposal | Blocked:
        proposals.append((propose(wheel, setting, *more), wheel, setting))
        return proposals[-1][0]

    propose = work.propose
    with mock.patch.object(work, "propose", noted):
        status, text = _command("repair", "-j", 1, "-w", folder / "one", *flags, wheel, **environ)
    again = _command("repair", "-j", 2, "-w", folder / "two", *flags, wheel, **environ)
    assert (status, text) == (again[0], again[1].replace(f"{folder}/two", f"{folder}/one"))
    assert (_files(folder), _files(pool.build)) == before
    assert "a fault of wheelfix" not in text, text
    proposal, facts, setting = proposals[0]
    if status:
        assert status == 4, text
        assert isinstance(proposal, Blocked), text  # an edit that fails its proof would come later
        assert not (folder / "one").exists()
        assert not (folder / "two").exists()
        assert not case.sure, text
        return "blocked"

    (fixed,) = (folder / "one").iterdir()
    (other,) = (folder / "two").iterdir()
    assert fixed.name == other.name
    assert fixed.read_bytes() == other.read_bytes()

    assert isinstance(proposal, Proposal)
    predicted = _loads(planned_wheel(facts, proposal.plan, proposal.grafted), setting)
    assert _told(_loads(audit.read(fixed, setting), setting)) == _told(predicted)

    shutil.rmtree(pool.build)
    status, text = _command("repair", "-w", folder / "again", *flags, fixed, **environ)
    assert status == 0, text
    (unchanged,) = (folder / "again").iterdir()
    assert unchanged.name == fixed.name
    assert unchanged.read_bytes() == fixed.read_bytes()
    if "--no-verify" in case.options:
        return "unverified"

    status, text = _command("verify", *world, fixed)
    assert status == 0, text
    site = forge.unpack(fixed, "site").resolve()
    forge.unpack(beside, "site")
    shutil.rmtree(folder / "dist")
    for load in predicted:
        if not _open_ended(load, case):
            _opens(pool, case, load, site, machine)
    return "open-ended" if any(_open_ended(load, case) for load in predicted) else "repaired"


def _open_ended(load: Load, case: Case) -> bool:
    """A library is left to a distribution that was not given, by a path that leads into its folder."""
    return bool({e.needed for e in load.edges if e.status == "external"} - {*case.options})


def _taken(options: Sequence[object], name: str) -> list[object]:
    """The option and its value, where it is among them."""
    return [*options[options.index(name) :][:2]] if name in options else []


def _opens(pool: Pool, case: Case, load: Load, site: Path, machine: Path) -> None:
    """The real loader opens a root and takes each library of the installation from where the simulation said."""
    command = [str(pool.opener), str(site / load.root.path)]
    folders = [machine, *(site / f for f in _taken(case.options, "--ld-library-path")[1:])]
    around = {"LD_LIBRARY_PATH": ":".join(map(str, folders))}
    done = subprocess.run(command, env=around, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, (load.root.path, done.stdout + done.stderr)
    # Breadth first, as symbols are looked up; what was asked for by way of ".." is written so.
    taken = [os.path.normpath(p) for p in done.stdout.splitlines()]
    ours = [str(site / n.path) for n in load.scope if n.owner in ("wheel", "given")]
    assert [p for p in taken if p.startswith(f"{site}/")] == ours


def _judged(pool: Pool, case: Case) -> str:
    with tempfile.TemporaryDirectory(dir=pool.forge.folder) as folder:
        return _judge(pool, case, Path(folder))


@pytest.fixture(scope="module")
def outcomes() -> Iterator[Counter[str]]:
    """How the drawn repairs ended: a property that none of them reaches would hold for nothing."""
    seen: Counter[str] = Counter()
    yield seen
    if seen.total() >= 30:
        assert seen["repaired"] >= 0.1 * seen.total(), seen
        assert seen["blocked"] >= 0.1 * seen.total(), seen


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=cases())
def test_what_repair_writes_loads_as_planned_and_what_it_cannot_repair_it_leaves(
    pool: Pool, outcomes: Counter[str], case: Case
) -> None:
    outcome = _judged(pool, case)
    event(outcome)
    outcomes[outcome] += 1


def _case(*needs: str, path: tuple[Kind, str] | None = None, folder: str = "pkg", **more: Any) -> Case:
    """One module, and each library that it needs in the build folder unless ``more`` says otherwise."""
    libraries = {n: Library(build=True) for n in closure(needs)} | more.pop("libraries", {})
    return Case((Module(folder, needs, more.pop("idle", None), path),), libraries, **more)


APART = Library(("pkg/lib",))
KINDS = {
    "a chain and a diamond of the build host": ("repaired", _case("top")),
    "a cycle of the build host": ("repaired", _case("ring")),
    "names that are not ASCII, of the build host": ("repaired", _case("odd", folder="my pkg/ö")),
    "a path for a name, of the build host": ("repaired", _case("plain")),
    "a path for a name, in the wheel": ("repaired", _case("plain", libraries={"plain": APART})),
    "the path of the build in the object alone": (
        "repaired",
        _case("top", path=("runpath", BUILD), told=None),
    ),
    "the path of the build beside one that holds": (
        "repaired",
        _case("base", path=("runpath", f"{BUILD}:$ORIGIN/lib"), libraries={"base": APART}),
    ),
    "in the wheel, no path leads there": ("repaired", _case("base", libraries={"base": APART})),
    "in the wheel, where an inherited path leads": (
        "repaired",
        _case("left", path=("rpath", "$ORIGIN/lib"), libraries={"left": APART, "base": APART}),
    ),
    "in the wheel, where a path leads that is not inherited": (
        "repaired",
        _case("left", path=("runpath", "$ORIGIN/lib"), libraries={"left": APART, "base": APART}),
    ),
    "in the wheel, needing one that another root of it has loaded before": (
        "repaired",
        Case(
            (
                Module("pkg", ("left", "base"), path=("runpath", "$ORIGIN")),
                Module("pkg/deep/er", ("left",)),
            ),
            {"left": Library(("pkg",), path=("runpath", "$ORIGIN/nowhere")), "base": Library(("pkg",))},
        ),
    ),
    "in the wheel, needing one of the build host": ("repaired", _case("left", libraries={"left": APART})),
    "of the build host, needing one in the wheel": ("repaired", _case("left", libraries={"base": APART})),
    "in the wheel under another file name": (
        "repaired",
        _case("odd", libraries={"odd": Library(("pkg/lib",), named="file")}),
    ),
    "in the wheel twice": (
        "repaired",
        _case("base", libraries={"base": Library(("pkg/lib", "my pkg/ö"))}),
    ),
    "of another distribution": (
        "repaired",
        _case("base", libraries={"base": Library(neighbour=True)}, given="--with"),
    ),
    "of another distribution, installed": (
        "repaired",
        _case("base", libraries={"base": Library(neighbour=True)}, given="--env"),
    ),
    "in the wheel under two names": (
        "repaired",
        _case("base", libraries={"base": Library(("pkg/lib",), named="both")}),
    ),
    "in the wheel under two names, one of which its own cycle loads": (
        "repaired",
        Case(
            (Module("", ("back",)),),
            {
                "back": Library(("pkg/lib",), path=("runpath", "$ORIGIN")),
                "ring": Library(("pkg/lib",), named="both"),
            },
        ),
    ),
    "in the wheel, where LD_LIBRARY_PATH leads": (
        "repaired",
        _case("left", libraries={"left": APART, "base": APART}, options=("--ld-library-path", "pkg/lib")),
    ),
    "of the build host, where the path leads to a folder of the wheel that repair makes": (
        "repaired",
        _case("ver", path=("runpath", "$ORIGIN/../x.libs")),
    ),
    "where a path leads into a distribution that is not given": (
        "open-ended",
        _case("ver", path=("runpath", f"$ORIGIN/../{NEIGHBOUR}")),
    ),
    "left to the machine": ("repaired", _case("left", options=("--exclude", "libbase.so.1"))),
    "linked and not used, nowhere": ("repaired", _case("base", idle="ver")),
    "of a newer C library than the tag says": ("repaired", _case("new", tag="manylinux_2_17_x86_64")),
    "of a newer C library than is asked for": (
        "blocked",
        _case("new", options=("--plat", "manylinux_2_17_x86_64")),
    ),
    "nowhere": ("blocked", _case("base", libraries={"base": Library()})),
    "needed by one of the build host, nowhere": ("blocked", _case("left", libraries={"base": Library()})),
    "of a distribution that is not given": (
        "blocked",
        _case("base", libraries={"base": Library(neighbour=True)}),
    ),
    "two builds of one name, which one process can load": (
        "blocked",
        Case(
            (
                Module("pkg", ("base",), path=("runpath", "$ORIGIN")),
                Module("pkg/lib", ("base",), path=("runpath", "$ORIGIN")),
            ),
            {"base": Library(("pkg", "pkg/lib"), twin=True)},
        ),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_need_ends_as_it_must(pool: Pool, kind: str) -> None:
    """The kinds that the drawn wheels are made of, so that none depends on chance."""
    expected, case = KINDS[kind]
    assert _judged(pool, case) == expected
