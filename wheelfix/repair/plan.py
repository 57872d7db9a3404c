"""From what the loader says of a wheel to everything that must change for one platform tag. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from wheelfix.model.elf import ElfFacts
from wheelfix.model.plan import ElfChange, Graft, ModeChange, ObjectChange, Plan, Retag, Shim
from wheelfix.model.policy import PlatformPolicy, Provider
from wheelfix.model.resolution import PREFIX, SITE
from wheelfix.model.wheel import Member
from wheelfix.policy.drivers import is_driver_library, is_libpython
from wheelfix.repair import runpath
from wheelfix.repair.names import graft_name, libs_folder, scripts_folder
from wheelfix.repair.supply import Asker, Grafts, Sources, Supply, Want, closure, is_loader, supply
from wheelfix.repair.survey import Survey, inside_site
from wheelfix.repair.tags import filename_for, tags_for


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line asks of the plan itself."""

    lib_sdir: str = ".libs"
    strip: bool = False
    drop: frozenset[tuple[str, str]] = frozenset()  # (object, library) that it needs and does not use
    reach: frozenset[tuple[str, str]] = (
        frozenset()
    )  # (object, location of a folder that its path must lead to)


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan, the facts of its grafts before any change by their content, and what it could not mend.

    ``direct`` names the graft that serves an object of the wheel, ``unserved`` the (object, library) pairs that
    nobody serves.
    """

    plan: Plan
    grafted: Mapping[str, ElfFacts]
    problems: tuple[str, ...] = ()
    direct: Mapping[tuple[str, str], str] = field(default_factory=dict)
    unserved: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Edit:
    """The change of one object while it is being put together."""

    rename: dict[str, str] = field(default_factory=dict)
    remove: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)  # locations that its path must lead to
    why: list[str] = field(default_factory=list)


def draft(
    survey: Survey,
    platform: PlatformPolicy,
    sources: Sources,
    providers: tuple[Provider, ...],
    wishes: Wishes,
) -> Draft:
    """The plan that makes the wheel right for ``platform``; its tags are left to ``with_tags``.

    ``sources.promised`` are the libraries of the platform. What nobody serves is among the problems.
    """
    wheel = survey.wheel
    problems: list[str] = []
    notes: dict[str, None] = {}
    wanted, unserved = _wanted(survey, sources, wishes, problems, notes)
    wants = [
        Want(s.library, name, _is_filter(survey.objects[path], name), path, _askers(survey, path))
        for (path, name), s in wanted.items()
        if s.library is not None
    ]
    folder = f"{SITE}/{libs_folder(wheel.filename, wishes.lib_sdir)}"
    grafts = closure(wants, folder, sources)
    names = _graft_names(grafts, problems)

    edits: dict[str, _Edit] = {path: _Edit() for path in survey.objects}
    for (path, name), served in wanted.items():
        _apply(edits[path], name, served, names, folder)
    for path, name in _libpython(survey):
        edits[path].remove.append(name)
        edits[path].why.append(f"the interpreter itself supplies what {name} would (PEP 513)")
    for path, name in wishes.drop:
        if path in edits:
            edits[path].remove.append(name)
            edits[path].why.append(f"{name} is needed and nothing of it is used")

    for path, location in sorted(wishes.reach):
        if path in edits:
            edits[path].folders.append(location)
            edits[path].why.append("a provider rule says where another distribution installs what it needs")

    changes: list[ObjectChange] = []
    shims: list[Shim] = []
    for path in sorted(edits):
        _finish(survey, path, edits[path], providers, wishes, changes, shims, problems)
    changes += _graft_changes(grafts, names, folder, wishes, problems)
    for source, name in grafts.absent:
        notes[f"{posixpath.basename(source)} may open {name}, which is not on this machine"] = None
    libs = folder.removeprefix(SITE + "/")
    plan = Plan(
        wheel=wheel.filename,
        filename=wheel.filename,
        platform=platform.tag,
        grafts=tuple(
            Graft(
                source=library.path,
                sha256=key,
                requested=tuple(grafts.requested[key]),
                member=f"{libs}/{names[key]}",
                why=f"{grafts.reasons[key]} needs {grafts.requested[key][0]}, which {platform.tag} does not promise",
                mode=library.mode | 0o200,
                size=library.size,
            )
            for key, library in sorted(grafts.libraries.items(), key=lambda kv: names[kv[0]])
        ),
        shims=tuple(shims),
        changes=tuple(changes),
        modes=tuple(_modes(survey, shims)),
        notes=tuple(notes),
    )
    return Draft(
        plan,
        {k: v.facts for k, v in grafts.libraries.items()},
        tuple(dict.fromkeys(problems)),
        {
            pair: f"{libs}/{names[s.library.sha256]}"
            for pair, s in wanted.items()
            if s.library is not None and not _is_filter(survey.objects[pair[0]], pair[1])
        },
        tuple(unserved),
    )


def with_tags(plan: Plan, survey: Survey, platforms: tuple[str, ...], why: str) -> Plan:
    """The plan with the tags of its result; without a retag where they stay as they are.

    The file name is what installers go by: where WHEEL names other platforms, it follows. Other Pythons or ABIs
    in WHEEL are nothing that repair could decide.
    """
    wheel = survey.wheel
    stems = {t.rsplit("-", 1)[0] for t in wheel.tags}
    if {t.rsplit("-", 1)[0] for t in wheel.wheel_tags} != stems:
        return plan
    # What is compiled belongs into platlib, where installers of split layouts look for it (PEP 427).
    platlib = wheel.root_is_purelib and any(
        ":" not in p and ".data/" not in m.name for p, m in survey.objects.items()
    )
    if platforms == wheel.platforms and set(wheel.wheel_tags) == set(wheel.tags) and not platlib:
        return plan
    name = filename_for(wheel, platforms)
    tags = tags_for(wheel, platforms)
    return replace(plan, filename=name, retag=Retag(wheel.tags, tags, name, why, platlib))


def _wanted(
    survey: Survey, sources: Sources, wishes: Wishes, problems: list[str], notes: dict[str, None]
) -> tuple[dict[tuple[str, str], Supply], list[tuple[str, str]]]:
    """Who serves each name that the loader does not find for an object of the wheel; and which ones nobody serves."""
    wanted: dict[tuple[str, str], Supply] = {}
    unserved: list[tuple[str, str]] = []
    for path, member in survey.objects.items():
        facts = member.elf
        if facts is None:
            continue
        for name in dict.fromkeys((*facts.needed, *facts.filters, *facts.auxiliaries)):
            if is_driver_library(name):
                notes[f"{name} belongs to the GPU driver of the machine and is never grafted"] = None
            if is_libpython(name) or (path, name) in wishes.drop or not _unmet(survey, path, name, sources):
                continue
            served = supply(name, survey.folder(path), _askers(survey, path), sources)
            if served.kind == "missing":
                if name not in facts.auxiliaries:
                    problems.append(f"{path} needs {name}, {served.reason}")
                    unserved.append((path, name))
            elif served.kind != "left":
                wanted[path, name] = served
    return wanted, unserved


def _unmet(survey: Survey, path: str, name: str, sources: Sources) -> bool:
    """Some root does not find it, or only a host that promises more than the tag does."""
    statuses = survey.statuses.get((path, name), frozenset())
    if "missing" in statuses or "/" in name:
        return True
    return "host" in statuses and name not in sources.promised and not is_loader(name)


def _askers(survey: Survey, path: str) -> tuple[Asker, ...]:
    chain = (path, *survey.loaders.get(path, ()))
    members = (survey.objects.get(p) for p in chain)
    return tuple(Asker(m.elf) for m in members if m is not None and m.elf is not None)


def _is_filter(member: Member, name: str) -> bool:
    return member.elf is not None and name in (*member.elf.filters, *member.elf.auxiliaries)


def _libpython(survey: Survey) -> Iterable[tuple[str, str]]:
    """libpython in what only an interpreter loads. A program that embeds it truly needs it: left, and blocked later."""
    for path, member in survey.objects.items():
        if member.elf is not None and path not in survey.embedded:
            for name in dict.fromkeys(member.elf.needed):
                if is_libpython(name):
                    yield path, name


def _graft_names(grafts: Grafts, problems: list[str]) -> dict[str, str]:
    """The file name of each graft: a name that code opens is kept, every other one gets the hash of the content."""
    names: dict[str, str] = {}
    taken: dict[str, str] = {}
    for key, library in grafts.libraries.items():
        kept = grafts.kept.get(key, [])
        soname = library.facts.soname or posixpath.basename(library.path)
        name = (soname if soname in kept else min(kept)) if kept else graft_name(soname, key)
        if taken.setdefault(name, key) != key:
            problems.append(
                f"two different libraries must keep the name {name}: {library.path} and {grafts.libraries[taken[name]].path}"
            )
        names[key] = name
    return names


def _apply(edit: _Edit, name: str, served: Supply, names: Mapping[str, str], folder: str) -> None:
    """Make an object find ``name``: under the name that the file has, by a path that leads there."""
    if served.library is not None:
        file = names[served.library.sha256]
        edit.folders.append(folder)
        edit.why.append(f"{name} goes into the wheel as {file}")
    elif served.place is not None:
        file = served.place.file
        edit.folders.append(served.place.folder)
        whose = "the wheel" if served.kind == "wheel" else "another distribution"
        edit.why.append(f"{name} lies in {whose}, where the object's path does not lead")
    else:
        return
    if file != name:
        edit.rename[name] = file


def _finish(
    survey: Survey,
    path: str,
    edit: _Edit,
    providers: tuple[Provider, ...],
    wishes: Wishes,
    changes: list[ObjectChange],
    shims: list[Shim],
    problems: list[str],
) -> None:
    """The change of one object of the wheel, and the move of a program that cannot reach its libraries from bin."""
    member = survey.objects[path]
    if member.elf is None:
        return
    name, folder = member.name, survey.folder(path)
    if edit.folders and not all(_fixed_distance(path, f) for f in edit.folders):
        if not (path.startswith("scripts:") and member.elf.is_program):
            problems.append(
                f"{path} needs a library in site-packages, and how far that is depends on where pip installs"
            )
            return
        script = posixpath.basename(path.partition(":")[2])
        location = f"{scripts_folder(survey.wheel.filename)}/{script}"
        shims.append(
            Shim(
                name,
                location,
                location,
                "scripts have no fixed distance to site-packages, so $ORIGIN cannot lead there",
            )
        )
        name, folder = location, f"{SITE}/{posixpath.dirname(location)}"
    new, reasons = _new_path(survey, member, folder, edit.folders, providers)
    change = ElfChange(
        rename_needed=tuple(edit.rename.items()),
        remove_needed=tuple(dict.fromkeys(edit.remove)),
        path=new,
        path_kind=runpath.kind_of(member.elf),
        strip=wishes.strip,
    )
    if change:
        why = [*edit.why, *reasons, *(["symbols stripped (--strip)"] if wishes.strip else [])]
        changes.append(ObjectChange(name, change, tuple(dict.fromkeys(why))))


def _fixed_distance(path: str, location: str) -> bool:
    """Whether an object and a folder keep their distance in every installation: both in site-packages, or one scheme."""
    scheme = path.partition(":")[0] if ":" in path else ""
    if scheme in ("scripts", "data", "headers"):
        roots = {"scripts": f"{PREFIX}/bin", "data": PREFIX, "headers": f"{PREFIX}/include"}
        return not inside_site(location) and location.startswith(roots[scheme])
    return inside_site(location)


def _new_path(
    survey: Survey,
    member: Member,
    folder: str,
    needed: list[str],
    providers: tuple[Provider, ...],
) -> tuple[str | None, list[str]]:
    """The object's new path, None where it stays as it is; and what was dropped from it and why.

    An object is changed for a folder that it must reach, or for an entry that leads out of the installation
    (absolute, relative to the working directory, or too many ``..``): whoever can write there decides what is loaded.
    """
    facts = member.elf
    if facts is None:
        return None, []
    old = survey.folder(member.path)
    kept: list[str] = []
    reached: set[str] = set()
    reasons: list[str] = []
    urgent = folder != old
    for entry in runpath.entries(facts):
        location = runpath.leads_to(entry, old, survey.lib_token, survey.platform_token)
        if not runpath.has_origin(entry) or location is None or not location.startswith(PREFIX):
            reasons.append(
                f"path entry {entry!r} leads out of the installation" if entry else "empty path entry"
            )
            urgent = True
        elif not _serves(survey, member.path, location, providers):
            reasons.append(f"path entry {entry!r} leads to no folder of the wheel")
        else:
            kept.append(entry if folder == old else runpath.hop(folder, location))
            reached.add(location)
    for location in dict.fromkeys(needed):
        if location not in reached:
            kept.append(runpath.hop(folder, location))
            urgent = True
    new = runpath.joined(kept)
    current = facts.search_path
    if not urgent or new == (current or ""):
        return None, []
    return new, reasons


def _serves(survey: Survey, path: str, location: str, providers: tuple[Provider, ...]) -> bool:
    if location in survey.alive or any(posixpath.normpath(f"{SITE}/{p.path}") == location for p in providers):
        return True
    return path in survey.outward and inside_site(location)


def _graft_changes(
    grafts: Grafts, names: Mapping[str, str], folder: str, wishes: Wishes, problems: list[str]
) -> list[ObjectChange]:
    """What changes in each graft: its SONAME, the names of grafts that it needs, and a path beside it if it needs any."""
    changes = []
    served: dict[str, dict[str, Supply]] = {}
    for (key, name), by in grafts.supplies.items():
        served.setdefault(key, {})[name] = by
    for key, library in sorted(grafts.libraries.items(), key=lambda kv: names[kv[0]]):
        facts, own = library.facts, names[key]
        edit = _Edit()
        for name, by in served.get(key, {}).items():
            if by.kind == "missing":
                problems.append(f"{library.path}, which must go into the wheel, needs {name}, {by.reason}")
            elif by.kind != "left":
                _apply(edit, name, by, names, folder)
        edit.remove += [n for n in facts.needed if is_libpython(n)]
        # A name that stands in code alone has no entry that could be renamed.
        written = {*facts.needed, *facts.filters, *facts.auxiliaries}
        edit.rename = {old: new for old, new in edit.rename.items() if old in written}
        path = runpath.joined(runpath.hop(folder, f) for f in edit.folders)
        current = facts.search_path
        change = ElfChange(
            soname=own if facts.soname not in (None, own) else None,
            rename_needed=tuple(edit.rename.items()),
            remove_needed=tuple(edit.remove),
            path=path if path != (current or "") else None,
            path_kind=runpath.kind_of(facts),
            strip=wishes.strip,
        )
        if change:
            member = f"{folder.removeprefix(SITE + '/')}/{own}"
            changes.append(ObjectChange(member, change, tuple(dict.fromkeys(edit.why))))
    return changes


def _modes(survey: Survey, shims: list[Shim]) -> Iterable[ModeChange]:
    """Programs that lost their exec bit; pip gives it to scripts by itself, but not to one that moves out of there."""
    moved = {s.script: s.program for s in shims}
    for path, member in sorted(survey.objects.items()):
        if member.elf is None or not member.elf.is_program:
            continue
        scripts = path.startswith("scripts:") and member.name not in moved
        if not scripts and member.mode is not None and not member.mode & 0o111:
            name = moved.get(member.name, member.name)
            yield ModeChange(name, 0o755, "a program that nobody may execute")
