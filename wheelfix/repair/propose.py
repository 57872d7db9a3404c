"""Which tag, which plan: drafts for every tag that may be had, judged by the loader simulation before a byte changes."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from wheelfix import audit
from wheelfix.checks.subject import Subject
from wheelfix.model.elf import ElfFacts
from wheelfix.model.finding import Finding
from wheelfix.model.plan import Blocked, Plan
from wheelfix.model.policy import PlatformPolicy
from wheelfix.model.resolution import SITE, EdgeStatus
from wheelfix.model.wheel import WheelFacts
from wheelfix.policy import platform as platforms
from wheelfix.repair.plan import Draft, Wishes, draft, with_tags
from wheelfix.repair.predict import planned_wheel
from wheelfix.repair.supply import Find, Place, Sources
from wheelfix.repair.survey import Survey, alike, survey
from wheelfix.repair.tags import fits, platform_tags
from wheelfix.repair.unused import unused_needs
from wheelfix.world import providers_of

# Errors that a newer tag may cure: the machine that it promises has more.
_CURED_BY_A_NEWER_TAG = frozenset(
    {
        "symbol-version-too-new",
        "symbol-version-missing",
        "symbol-version-private",
        "needed-not-allowed",
        "cxx-runtime-missing",
        "musl-forbidden-symbol",
        "undefined-symbol",
    }
)


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """What ``wheelfix repair`` asks for, beside the world of ``audit.Options``."""

    plat: str = "auto"
    only_plat: bool = False
    update_tags: bool = True
    lib_sdir: str = ".libs"
    strip: bool = False
    no_verify: bool = False
    allow_pure: bool = False


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan that may be carried out, and what the simulation says of the wheel that it makes."""

    plan: Plan
    grafted: Mapping[str, ElfFacts]  # facts of the grafts before any change, by content
    findings: tuple[Finding, ...]

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity == "error")


def propose(
    wheel: WheelFacts,
    setting: audit.Setting,
    options: RepairOptions,
    finder: Callable[[PlatformPolicy], Find],
    installed: Mapping[str, tuple[Place, ...]],
) -> Proposal | Blocked:
    """The best plan for a wheel, or every reason why there is none.

    ``finder`` makes the search of the build host for one platform (architecture and C library), ``installed`` are the
    libraries of ``--env`` by file name. The tag is the
    oldest one that is true with as few grafts as possible; ``options.plat`` is one that must be true.
    """
    if not wheel.elves:
        return _without_objects(wheel, options)
    choice = _candidates(wheel, setting, options)
    if isinstance(choice, Blocked):
        return choice
    candidates, requested = choice
    seen = survey(_judged(wheel, setting, candidates[-1].tag))
    seen = replace(seen, given={**installed, **seen.given})
    find = finder(candidates[-1])
    wishes = Wishes(options.lib_sdir, options.strip)
    drafts = [(c, _draft(seen, c, setting, find, wishes)) for c in candidates]
    ranked = _ranked(seen, drafts, requested)
    if not ranked:
        target = requested or candidates[-1]
        return Blocked(
            wheel.filename, (f"no tag up to {target.tag} is true for it", *_versions(seen, target))
        )
    first: Proposal | Blocked | None = None
    for platform, sketch in ranked:
        result = _judge(seen, platform, requested, sketch, setting, options, find)
        if isinstance(result, Proposal):
            return result
        reasons, curable = result
        first = first or Blocked(wheel.filename, reasons)
        if not curable:
            break
    return first or Blocked(wheel.filename, ("no platform tag is true for it",))


def _without_objects(wheel: WheelFacts, options: RepairOptions) -> Proposal | Blocked:
    if not options.allow_pure:
        return Blocked(
            wheel.filename,
            ("it holds no ELF object (--allow-pure-python-wheel copies such a wheel as it is)",),
        )
    plan = Plan(wheel.filename, wheel.filename, "any")
    return Proposal(plan, {}, ())


def _candidates(
    wheel: WheelFacts, setting: audit.Setting, options: RepairOptions
) -> tuple[tuple[PlatformPolicy, ...], PlatformPolicy | None] | Blocked:
    """The platforms that the result may be tagged with, oldest first, and the one that was asked for."""
    named = [p for p in map(platforms.for_platform, wheel.platforms) if p is not None]
    archs = {p.arch for p in named} or {m.elf.arch for m in wheel.elves if m.elf is not None and m.elf.arch}
    if len(archs) != 1 or archs == {None}:
        return Blocked(wheel.filename, (f"it is for {_listed(archs) or 'no architecture that a tag names'}",))
    arch = next(a for a in archs if a)
    libcs = {p.libc for p in named if p.capped}
    libc = "musl" if libcs == {"musl"} or (not libcs and _needs_musl(wheel)) else "glibc"
    known = platforms.candidates(arch, libc)
    if not known:
        return Blocked(wheel.filename, (f"no policy covers {libc} on {arch}",))
    wanted = options.plat
    if wanted == "auto" and setting.policy is not None and setting.policy.tag is not None:
        wanted = setting.policy.tag
    if wanted == "auto":
        if libc == "musl":
            # musl has no symbol versions: a tag older than the one that the build claims could not be proven.
            oldest = min(p.libc_version for p in named) if libcs else known[-1].libc_version
            known = tuple(p for p in known if p.libc_version >= oldest)
        return known, None
    requested = platforms.for_platform(wanted if wanted.endswith(f"_{arch}") else f"{wanted}_{arch}")
    if requested is None or requested.libc != libc or requested.arch != arch or not requested.capped:
        return Blocked(wheel.filename, (f"--plat {options.plat} is no tag for {libc} on {arch}",))
    if options.only_plat:
        return (requested,), requested
    return tuple(p for p in known if p.libc_version <= requested.libc_version), requested


def _needs_musl(wheel: WheelFacts) -> bool:
    return any(
        n.startswith(("libc.musl-", "ld-musl-"))
        for m in wheel.elves
        if m.elf is not None
        for n in m.elf.needed
    )


def _listed(names: Iterable[str | None]) -> str:
    return ", ".join(sorted(n for n in names if n))


def _judged(wheel: WheelFacts, setting: audit.Setting, tag: str | None) -> Subject:
    return audit.subject_from(wheel, replace(setting, options=replace(setting.options, plat=tag)))


def _draft(
    seen: Survey,
    platform: PlatformPolicy,
    setting: audit.Setting,
    find: Find,
    wishes: Wishes,
) -> Draft:
    providers = setting.policy.providers if setting.policy else ()

    def left(name: str) -> bool:
        excluded = any(fnmatch.fnmatchcase(name, g) for g in setting.options.exclude)
        return excluded or bool(providers_of(name, providers))

    sources = Sources(platform.libraries, seen.places, seen.given, left, find)
    return draft(seen, platform, sources, providers, wishes)


def _ranked(
    seen: Survey, drafts: Sequence[tuple[PlatformPolicy, Draft]], requested: PlatformPolicy | None
) -> list[tuple[PlatformPolicy, Draft]]:
    """The drafts that are worth judging, best first: fewest grafts (as the newest or the requested tag needs), then
    the oldest tag whose versions suffice."""
    fewest = min(
        (len(d.plan.grafts) for p, d in drafts if requested is None or p.tag == requested.tag), default=0
    )
    own = [m.elf for m in seen.objects.values() if m.elf is not None]
    fitting = [
        (p, d) for p, d in drafts if len(d.plan.grafts) <= fewest and fits([*own, *d.grafted.values()], p)
    ]
    if requested is not None and not any(p.tag == requested.tag for p, _ in fitting):
        return []
    return fitting


def _versions(seen: Survey, target: PlatformPolicy) -> tuple[str, ...]:
    from wheelfix.repair.tags import too_new

    reasons = []
    for path, member in sorted(seen.objects.items()):
        if member.elf is not None:
            missing = sorted({v for _, v in too_new(member.elf, target, target.libraries)})
            if missing:
                reasons.append(f"{path} needs {', '.join(missing)}, which {target.tag} does not promise")
    return tuple(reasons)


def _judge(
    seen: Survey,
    platform: PlatformPolicy,
    requested: PlatformPolicy | None,
    sketch: Draft,
    setting: audit.Setting,
    options: RepairOptions,
    find: Find,
) -> Proposal | tuple[tuple[str, ...], bool]:
    """The proposal for one platform; else the reasons against it and whether a newer tag may cure them all."""
    wheel = seen.wheel
    chosen = [platform] if requested in (None, platform) else [platform, requested]

    def planned(made: Draft, wishes: Wishes) -> tuple[Draft, Subject]:
        nonlocal seen
        while True:
            finished = _finish(seen, made, chosen, options)
            subject = _judged(planned_wheel(wheel, finished.plan, finished.grafted), setting, None)
            wider = _with_new_misses(seen, subject)
            if wider is seen:
                return finished, subject
            seen = wider
            made = _draft(seen, platform, setting, find, wishes)

    wishes = Wishes(options.lib_sdir, options.strip)
    finished, subject = planned(sketch, wishes)
    if finished.direct or finished.unserved:
        wishes = replace(wishes, drop=unused_needs(finished, subject))
        if wishes.drop:
            finished, subject = planned(_draft(seen, platform, setting, find, wishes), wishes)
    findings = audit.findings_of(subject, setting.options)
    reach = _provided(findings, setting)
    if reach:
        wishes = replace(wishes, reach=reach)
        finished, subject = planned(_draft(seen, platform, setting, find, wishes), wishes)
        findings = audit.findings_of(subject, setting.options)
    errors = [f for f in findings if f.severity == "error"]
    if setting.policy is not None and setting.policy.tag is not None:
        # The policy's floor was judged; a better tag must be true as well.
        better = _judged(planned_wheel(wheel, finished.plan, finished.grafted), setting, platform.tag)
        told = audit.findings_of(better, setting.options)
        errors += [f for f in told if f.severity == "error" and f not in errors]
    if (errors or finished.problems) and not options.no_verify:
        known = frozenset(finished.unserved)
        others = (f for f in errors if f.rule != "needed-missing" or (f.member, f.library) not in known)
        reasons = dict.fromkeys([*finished.problems, *(_sentence(f) for f in others)])
        return tuple(reasons), all(f.rule in _CURED_BY_A_NEWER_TAG for f in errors)
    return Proposal(finished.plan, finished.grafted, findings)


def _with_new_misses(seen: Survey, subject: Subject) -> Survey:
    """The survey with what objects miss in the planned wheel alone; the same one where that is nothing.

    A root that did not find a library does so now, and in its process nothing else has loaded what that library needs.
    """
    found = {
        key
        for scene in subject.scenes
        for load in scene.loads
        for edge in load.edges
        if edge.status == "missing"
        for key in [(edge.object, edge.needed)]
        if "missing" not in seen.statuses.get(key, {"missing"})
    }
    if not found:
        return seen
    added: frozenset[EdgeStatus] = frozenset({"missing"})
    statuses = {k: s | added if k in found else s for k, s in seen.statuses.items()}
    return replace(seen, statuses=alike(statuses, seen.objects))


def _provided(findings: Sequence[Finding], setting: audit.Setting) -> frozenset[tuple[str, str]]:
    """(object, folder) for each library that a provider rule places where no path of the object leads."""
    providers = setting.policy.providers if setting.policy is not None else ()
    return frozenset(
        (f.member, f"{SITE}/{p.path}")
        for f in findings
        if f.rule == "needed-unreachable" and f.member is not None and f.library is not None
        for p in providers_of(f.library, providers)[:1]
        if p.loads == "by-path"
    )


def _finish(seen: Survey, sketch: Draft, chosen: Sequence[PlatformPolicy], options: RepairOptions) -> Draft:
    """The draft with the tags of its result."""
    wheel = seen.wheel
    if not options.update_tags:
        return sketch
    best = chosen[0]
    tags = platform_tags(wheel, chosen, {t for t in wheel.platforms if _still_true(t, best, seen)})
    why = f"{best.tag} is the oldest tag that is true for every object"
    return replace(sketch, plan=with_tags(sketch.plan, seen, tags, why))


def _still_true(tag: str, best: PlatformPolicy, seen: Survey) -> bool:
    """Whether an old tag may stay beside the best one.

    Of the same C library: those that promise no less. Of the other one: only where no object asks a host for anything.
    """
    policy = platforms.for_platform(tag)
    if policy is None or not policy.capped or policy.arch != best.arch:
        return False
    if policy.libc == best.libc:
        return policy.libc_version >= best.libc_version
    return not any("host" in s or "missing" in s for s in seen.statuses.values())


def _sentence(finding: Finding) -> str:
    where = f"{finding.member}: " if finding.member and finding.member not in finding.message else ""
    return f"{where}{finding.message} [{finding.rule}]"
