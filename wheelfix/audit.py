"""The one pipeline: a wheel, the policies and the options in; facts, world and findings out.

Reading takes other modules than judging; the latter are imported where they are used, so that it happens
while other processes read (``_import_judges``).
"""

from __future__ import annotations

import datetime
import fnmatch
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from wheelfix.archive.metadata import parse_file_name
from wheelfix.archive.reader import Inspected, Unreadable, read_wheel
from wheelfix.elf.read import ElfRead, begin, complete, start
from wheelfix.elf.stream import NotHeld, Sparse, Stream
from wheelfix.model.finding import GRAVITY, Finding, Report, Severity, WheelReport
from wheelfix.model.limits import Limits
from wheelfix.model.wheel import Member, WheelFacts
from wheelfix.stages import stage

if TYPE_CHECKING:
    from wheelfix.checks.subject import Scene, Subject
    from wheelfix.model.policy import PlatformPolicy, Policy
    from wheelfix.policy.project import Project, Wishes
    from wheelfix.world import Surroundings

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for; see ``wheelfix verify --help`` for the meaning of each."""

    policies: tuple[str, ...] = ()
    with_: tuple[Path, ...] = ()
    env: Path | None = None
    baseline: Literal["tag", "host"] = "tag"
    ld_library_path: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    plat: str | None = None
    jobs: int = 1
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    today: datetime.date | None = None
    limits: Limits = field(default_factory=Limits)
    severities: tuple[tuple[str, Severity | Literal["off"]], ...] = ()  # of rules, over those of the policies
    project: Project | None = None  # whose wishes for the wheel's platform come on top


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same for every wheel of a run: the policy in force and the world around the wheel."""

    options: Options
    policy: Policy | None  # None: manylinux or musllinux, by the tag
    given: tuple[WheelFacts, ...] = ()
    environment: Surroundings | None = None
    # What the project asks for on one platform or another, read: by the names of policies, by the paths of wheels.
    policies: Mapping[tuple[str, ...], Policy | None] = field(default_factory=dict)
    wheels: Mapping[tuple[Path, ...], tuple[WheelFacts, ...]] = field(default_factory=dict)


@stage("policies, given wheels")
def prepare(options: Options) -> Setting:
    """Read the policies and the given wheels, once for a run: those of every platform, since what is wrong with one
    must end the run before it starts.

    Raises ``PolicyErrors`` for a policy that does not validate, ``Unreadable`` for a given wheel that
    is none, ``OSError`` for one that is not there.
    """
    project = options.project
    if project is not None:
        options = _with_wishes(options, project.base)
    asked = [
        options,
        *(_with_wishes(options, wishes) for _, wishes in (project.overrides if project else ())),
    ]
    policies = _policies((o.policies for o in asked), options.limits)
    folders = {o.with_: tuple(_wheels_of(o.with_)) for o in asked}
    facts = {
        p: _read(p, frozenset(), options, {}) for p in dict.fromkeys(p for f in folders.values() for p in f)
    }
    wheels = {with_: tuple(facts[p] for p in paths) for with_, paths in folders.items()}
    environment = None
    if options.env is not None:
        from wheelfix.host.environment import read_environment
        from wheelfix.world import Surroundings

        environment = Surroundings(*read_environment(options.env))
    return Setting(options, policies[options.policies], wheels[options.with_], environment, policies, wheels)


def read(path: Path, setting: Setting, known: Mapping[str, Member] | None = None) -> WheelFacts:
    """The facts of one wheel; ``known`` as in ``read_wheel``.

    Raises ``Unreadable`` where it cannot be read as a wheel.
    """
    strings = frozenset(r.string for r in setting.policy.registrations) if setting.policy else frozenset()
    return _read(path, strings, setting.options, known or {})


def for_wheel(path: Path, setting: Setting) -> Setting:
    """The setting for one wheel: with what the project asks for its platform, by the tags of its file name."""
    project = setting.options.project
    if project is None:
        return setting
    options = _with_wishes(setting.options, project.wishes(named_platforms(path.name)))
    return replace(
        setting,
        options=replace(options, project=None),
        policy=setting.policies[options.policies],
        given=setting.wheels[options.with_],
    )


def named_platforms(file_name: str) -> tuple[str, ...]:
    """The platform tags in a wheel's file name; none where it is no wheel's name."""
    try:
        return tuple(dict.fromkeys(tag.rsplit("-", 1)[1] for tag in parse_file_name(file_name).tags))
    except Unreadable:
        return ()


def _with_wishes(options: Options, wishes: Wishes) -> Options:
    """The options with the project's lists in place of theirs where it has some."""
    return replace(
        options,
        policies=options.policies if wishes.policies is None else wishes.policies,
        with_=options.with_ if wishes.with_ is None else wishes.with_,
        exclude=options.exclude if wishes.exclude is None else wishes.exclude,
        severities=tuple({**dict(options.severities), **dict(wishes.severity)}.items()),
    )


def subject_of(path: Path, setting: Setting) -> Subject:
    """Everything that is known of one wheel. Raises ``Unreadable`` where it cannot be read as a wheel."""
    setting = for_wheel(path, setting)
    return subject_from(read(path, setting), setting)


@stage("world, search")
def subject_from(wheel: WheelFacts, setting: Setting) -> Subject:
    """The subject that the checks judge, from the facts of a wheel: of one that exists or of a planned one."""
    from wheelfix.checks.subject import Subject
    from wheelfix.policy.baseline import cxx_runtime_symbols
    from wheelfix.policy.system import system_library
    from wheelfix.world import distribution_of, required_distributions

    options = setting.options
    judged = _platforms(wheel, setting)
    policy = setting.policy or _policy(_policies_by_tag(judged), options.limits)
    policy = replace(policy, severities={**policy.severities, **dict(options.severities)})
    required, all_known = required_distributions(wheel, setting.given)
    elsewhere = setting.environment.distributions if setting.environment else frozenset()
    return Subject(
        wheel=wheel,
        platforms=judged,
        scenes=tuple(_scene(wheel, p, policy, setting) for p in _strictest(judged)),
        policy=policy,
        given=setting.given,
        given_distributions=elsewhere.union(distribution_of(w) for w in setting.given),
        required_distributions=required if all_known else None,
        exclude=options.exclude,
        baseline=options.baseline,
        today=options.today or datetime.date.today(),
        system_library=system_library,
        cxx_runtime_symbols=cxx_runtime_symbols(judged[0].arch) if judged else {},
    )


def findings_of(subject: Subject, options: Options, jobs: int = 1) -> tuple[Finding, ...]:
    """All findings, after policies, --select and --ignore; errors first, then by rule and member.

    With more than one of ``jobs`` a second process helps, and nothing is kept of the bindings.
    """
    from wheelfix.checks import shared
    from wheelfix.checks.waivers import apply_policy

    unique: dict[tuple[str | None, ...], Finding] = {}
    with stage("rules"):
        found = shared.run(subject, jobs)
    for finding in apply_policy(found, subject.policy, subject.today):
        key = (finding.rule, finding.member, finding.library, finding.symbol, finding.message)
        unique.setdefault(key, finding)
    chosen = (f for f in unique.values() if _chosen(f.rule, options))
    return tuple(sorted(chosen, key=lambda f: (GRAVITY[f.severity], f.rule, f.member or "", f.library or "")))


def report_on(subject: Subject, path: Path, options: Options, jobs: int = 1) -> WheelReport:
    """The verdict on a subject; ``jobs`` as in ``findings_of``."""
    findings = findings_of(subject, options, jobs)
    wheel = subject.wheel
    return WheelReport(
        path=str(path),
        name=wheel.name,
        version=wheel.version,
        tags=wheel.tags,
        policies=subject.policy.names,
        verdict="fail" if any(f.severity == "error" for f in findings) else "pass",
        findings=findings,
    )


def audit_wheel(path: Path, setting: Setting) -> WheelReport:
    """Read one wheel and judge it; one that cannot be read as a wheel gets the verdict "unreadable".

    A fault of wheelfix itself ends neither the run nor the report: the other wheels are still judged.
    """
    return _judged(path, setting, _nothing)[0]


def _judged(path: Path, setting: Setting, look: Callable[[Subject], T]) -> tuple[WheelReport, T | None]:
    """The verdict, and what ``look`` takes from a wheel that could be read."""
    try:
        subject = subject_of(path, setting)
        # A look may ask for the bindings that the rules have asked for.
        jobs = setting.options.jobs if look is _nothing else 1
        return report_on(subject, path, setting.options, jobs), look(subject)
    except Unreadable as reason:
        return unreadable(path, str(reason)), None
    except Exception as bug:
        if os.environ.get("WHEELFIX_TRACEBACK"):
            raise
        return _broken_down(path, bug), None


def _nothing(subject: Subject) -> None:
    """What a report that is content with findings takes from a subject."""


def unreadable(path: Path, reason: str) -> WheelReport:
    """The report on an input that is no wheel at all."""
    from wheelfix.checks.archive import UNREADABLE

    finding = UNREADABLE.finding(f"{path.name} cannot be read as a wheel: {reason}")
    return WheelReport(str(path), None, None, (), (), "unreadable", (finding,))


def _broken_down(path: Path, bug: Exception) -> WheelReport:
    """The report on a wheel on which wheelfix itself failed (exit status 5)."""
    from wheelfix.checks.archive import INTERNAL_ERROR

    finding = INTERNAL_ERROR.finding(f"wheelfix failed on {path.name}: {type(bug).__name__}: {bug}")
    return WheelReport(str(path), None, None, (), (), "unreadable", (finding,))


def audit_wheels(paths: Sequence[Path], setting: Setting, done: Callable[[], None] = lambda: None) -> Report:
    """Judge several wheels, each in a process of its own with ``jobs`` at a time; the order is kept.

    ``done`` is called after each.

    LIEF never releases the GIL, so threads would gain nothing.
    """
    return audit_and_look(paths, setting, _nothing, done)[0]


def audit_and_look(
    paths: Sequence[Path],
    setting: Setting,
    look: Callable[[Subject], T],
    done: Callable[[], None] = lambda: None,
) -> tuple[Report, tuple[T | None, ...]]:
    """As ``audit_wheels``, for a report that shows more than findings: with what ``look`` takes from each wheel, None
    where one could not be read.

    It runs in the process that judged the wheel, which alone has the subject; function and answer must be picklable.
    """
    jobs = min(setting.options.jobs, len(paths))
    if jobs <= 1:
        judged = tuple(_told(map(partial(_judged, setting=setting, look=look), paths), done))
    else:
        import multiprocessing

        single = replace(setting, options=replace(setting.options, jobs=1))
        # The largest first, so that no process is left alone with a large one at the end.
        order = sorted(range(len(paths)), key=lambda i: -_size(paths[i]))
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            each = pool.imap(partial(_judged, setting=single, look=look), [paths[i] for i in order])
            found = dict(zip(order, _told(each, done), strict=True))
        judged = tuple(found[i] for i in range(len(paths)))
    return Report(tuple(report for report, _ in judged)), tuple(seen for _, seen in judged)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0  # judging it will say so


def _told(judged: Iterable[T], done: Callable[[], None]) -> Iterator[T]:
    for one in judged:
        done()
        yield one


@stage("inflate, hash, look")
def _read(path: Path, strings: frozenset[str], options: Options, known: Mapping[str, Member]) -> WheelFacts:
    limits = options.limits
    inspect = partial(_inspect, strings=strings, limits=limits)
    # A string may stand anywhere in an object's data.
    return read_wheel(
        path,
        inspect=inspect,
        settle=_settle,
        hold=partial(Stream, whole=bool(strings), limits=limits),
        jobs=options.jobs,
        limits=limits,
        meanwhile=_import_judges,
        known=known,
    )


def _import_judges(elf: bool) -> None:
    """What ``subject_from`` and ``findings_of`` import, and what reading an ELF object takes."""
    if elf:
        with stage("import LIEF"):
            start()
    with stage("import rules"):
        import wheelfix.checks.waivers
        import wheelfix.loader.closure
        import wheelfix.policy.baseline
        import wheelfix.policy.load
        import wheelfix.policy.system
        import wheelfix.world  # noqa: F401


def _policies(lists: Iterable[tuple[str, ...]], limits: Limits) -> dict[tuple[str, ...], Policy | None]:
    """The policy that each list makes; an empty list makes none. Raises ``PolicyErrors`` with the errors of all."""
    found: dict[tuple[str, ...], Policy | None] = {(): None}
    asked = [names for names in dict.fromkeys(lists) if names]
    if not asked:
        return found
    from wheelfix.policy.load import PolicyError, PolicyErrors

    errors: dict[PolicyError, None] = {}  # each once, in order: one file may stand in several lists
    for names in asked:
        try:
            found[names] = _policy(names, limits)
        except PolicyErrors as wrong:
            errors |= dict.fromkeys(wrong.errors)
    if errors:
        raise PolicyErrors(tuple(errors))
    return found


def _policy(names: Sequence[str], limits: Limits) -> Policy:
    from wheelfix.checks import RULES
    from wheelfix.policy.load import load_policies

    return load_policies(names, known_rules=RULES, limits=limits)


def _inspect(name: str, data: bytes | Sparse, strings: frozenset[str], limits: Limits) -> Inspected | None:
    try:
        seen = begin(data, name=name, strings=strings, limits=limits)
    except NotHeld:
        return None
    return Inspected(seen.content, seen.facts, seen.faults, seen.image)


@stage("parse (LIEF)")
def _settle(seen: Inspected) -> Inspected:
    """With what LIEF reads of an object."""
    whole = complete(ElfRead(seen.content, seen.elf, seen.faults, seen.rest))
    return Inspected(whole.content, whole.facts, whole.faults)


def _wheels_of(paths: Iterable[Path]) -> Iterable[Path]:
    """The wheels that ``--with`` names: files, or every wheel of a folder."""
    for path in paths:
        if path.is_dir():
            yield from sorted(path.glob("*.whl"))
        else:
            yield path


def _platforms(wheel: WheelFacts, setting: Setting) -> tuple[PlatformPolicy, ...]:
    """The platforms that the wheel is judged against: --plat, else the policy's floor, else the file name's.

    A wheel for any platform that holds ELF objects is judged as a plain linux wheel of their architecture.
    """
    from wheelfix.policy import platform as platforms

    if setting.options.plat is not None:
        named: list[str] = [setting.options.plat]
    elif setting.policy is not None and setting.policy.tag is not None:
        floor = setting.policy.tag
        named = [f"{floor}_{a}" for a in dict.fromkeys(_arch(p) for p in wheel.platforms) if a]
    else:
        named = list(wheel.platforms)
    found = [p for p in map(platforms.for_platform, named) if p is not None]
    if not found:
        archs = dict.fromkeys(m.elf.arch for m in wheel.elves if m.elf is not None)
        found = [p for p in (platforms.for_platform(f"linux_{a}") for a in archs if a) if p is not None]
    return tuple({p.tag: p for p in found}.values())


def _arch(platform: str) -> str | None:
    from wheelfix.policy.platform import for_platform

    policy = for_platform(platform)
    return policy.arch if policy else None


def _strictest(judged: Iterable[PlatformPolicy]) -> tuple[PlatformPolicy, ...]:
    """For each C library and architecture the oldest machine: what loads there loads on the newer ones."""
    oldest: dict[tuple[str, str], PlatformPolicy] = {}
    for policy in judged:
        key = (policy.libc, policy.arch)
        if key not in oldest or policy.libc_version < oldest[key].libc_version:
            oldest[key] = policy
    return tuple(oldest.values())


def _policies_by_tag(judged: Iterable[PlatformPolicy]) -> tuple[str, ...]:
    libcs = {p.libc for p in judged} or {"glibc"}
    return tuple(n for n, libc in (("manylinux", "glibc"), ("musllinux", "musl")) if libc in libcs)


def _scene(wheel: WheelFacts, platform: PlatformPolicy, policy: Policy, setting: Setting) -> Scene:
    from wheelfix.checks.subject import Scene
    from wheelfix.loader.closure import loads
    from wheelfix.world import build_world, wheel_nodes

    world = build_world(
        wheel,
        platform,
        given=setting.given,
        environment=setting.environment,
        providers=policy.providers,
        exclude=setting.options.exclude,
        library_path=setting.options.ld_library_path,
        baseline=setting.options.baseline,
    )
    own = [n for n in wheel_nodes(wheel, "wheel") if n.elf is not None and n.elf.machine == world.machine]
    return Scene(platform, world, loads(world, own))


def _chosen(rule: str, options: Options) -> bool:
    if any(fnmatch.fnmatchcase(rule, g) for g in options.ignore):
        return False
    return not options.select or any(fnmatch.fnmatchcase(rule, g) for g in options.select)
