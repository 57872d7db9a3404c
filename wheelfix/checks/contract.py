"""What only a policy asks for: files, dependencies, symbols and their owners, registrations, paths, sizes.

Every finding names the key of the policy that asked for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheelfix.checks import waivers
from wheelfix.checks.demangle import demangled
from wheelfix.checks.linkflags import blocks, link_flags, search_path
from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Subject
from wheelfix.loader.paths import elements
from wheelfix.model.elf import ElfFacts, Symbol
from wheelfix.model.finding import Finding
from wheelfix.model.policy import Deny, SymbolContract
from wheelfix.model.resolution import Binding
from wheelfix.model.wheel import Member
from wheelfix.policy.globs import matches_any, matches_name, matches_path

FILE = Rule(
    id="contract-file",
    group="contract",
    severity="error",
    what="A file that the policy requires is not in the wheel.",
    why="A step of the build was skipped and nothing failed: users miss the part at run time.",
    fix="Look at the build's install rules for the file; the policy's `[[require-file]]` says which.",
    example="`pkg/libextension_cuda.so` is required; the CUDA part of the build was switched off.",
    remedy="Ship the file, or remove the entry from the policy.",
)
NEEDED = Rule(
    id="contract-needed",
    group="contract",
    severity="error",
    what="An object does not list a library in DT_NEEDED that the policy requires.",
    why=(
        "The linker drops libraries of which no symbol is used (`--as-needed`); what the library's constructors"
        " register, or what is looked up at run time, is then missing."
    ),
    fix="Keep the dependency where it must stay:\n\n"
    + link_flags("-Wl,--no-as-needed", "-lname", "-Wl,--as-needed"),
    example="`pkg/_portable_lib.so` must need `libextension_cuda.so`.",
    remedy="Link the object against the library, with --no-as-needed if it uses no symbol of it.",
)
DENY = Rule(
    id="contract-deny",
    group="contract",
    severity="error",
    what="An object needs a library that the policy forbids it.",
    why="On a machine without that library (a CPU-only machine, a minimal installation) the whole import fails.",
    fix="Move what needs the library into a plugin that is loaded when it is asked for.",
    example="`pkg/_core.so` may not need `libcudart*`, and does through a helper.",
    remedy="Remove the dependency from this object, or open the library at run time.",
)
IMPORT = Rule(
    id="contract-import",
    group="contract",
    severity="error",
    what="An object does not refer to a symbol that it must import, or gets it from elsewhere.",
    why=(
        "A component that must be shared is linked in a second time or bound to another copy: its state (streams,"
        " registries, caches) exists twice."
    ),
    fix="Link against the shared library that owns the symbol, and not against its static archive.",
    example="`pkg/_portable_lib.so` must import `getCallerStream` from `libextension_cuda.so`.",
    remedy="Link the object against the owner of the symbol.",
)
EXPORT = Rule(
    id="contract-export",
    group="contract",
    severity="error",
    what="An object does not export a symbol that the policy requires.",
    why="Others look it up there; a version script or hidden visibility took it away.",
    fix="Give the function default visibility, and list it in the version script.",
    example="`pkg/libextension_cuda.so` must export `getCallerStream`.",
    remedy="Export the symbol (visibility, version script, --export-dynamic-symbol).",
)
SOLE_DEFINER = Rule(
    id="contract-sole-definer",
    group="contract",
    severity="error",
    what="A symbol that must have one owner is defined by another object, too.",
    why=(
        "Which definition a caller gets depends on the order of loading; with two owners each has its own state."
    ),
    fix="Keep the definition in one shared library and link the others against it; hide copies.",
    example="`getCallerStream` is defined by `pkg/libextension_cuda.so` and by `pkg/_portable_lib.so`.",
    remedy="Link against the owner instead of compiling the component in again.",
)
REGISTRATION = Rule(
    id="contract-registration",
    group="contract",
    severity="error",
    what="The name that a component registers itself under is not in the object.",
    why=(
        "Nothing refers to a component that registers itself in a static constructor, so the linker leaves its"
        " archive member out, and the string with it. The wheel imports; the backend is not there."
    ),
    fix=(
        "Keep the archive whole:\n\n"
        + blocks(
            cmake='target_link_libraries(_ext PRIVATE "$<LINK_LIBRARY:WHOLE_ARCHIVE,backend>")',
            setuptools="Extension('pkg._ext', sources, extra_link_args=[\n"
            "    '-Wl,--whole-archive', 'libbackend.a', '-Wl,--no-whole-archive'])",
            meson="py.extension_module('_ext', sources, link_whole: backend)",
            bazel="cc_library(name = 'backend', srcs = ['backend.cpp'], alwayslink = True)",
        )
    ),
    example="`pkg/_portable_lib.so` holds no `CudaBackend`.",
    remedy="Link the archive between -Wl,--whole-archive and -Wl,--no-whole-archive.",
)
RPATH = Rule(
    id="contract-rpath",
    group="contract",
    severity="error",
    what="An object's RUNPATH or RPATH is not what the policy asks for.",
    why="An entry that is missing leaves a dependency to luck; one that is not allowed may find a stranger's file.",
    fix="Set it when linking:\n\n" + search_path("$ORIGIN"),
    example="`pkg/_ext.so` must have `$ORIGIN` in its RUNPATH.",
    remedy="Link with -Wl,-rpath,'$ORIGIN...' as the policy says.",
)
SIZE = Rule(
    id="contract-size",
    group="contract",
    severity="error",
    what="The wheel or one of its members is larger than the policy allows.",
    why="Indexes refuse uploads over their limit (PyPI: 100 MB a file by default), mostly late in a release.",
    fix="Strip debug information, drop GPU architectures that nobody uses, split the data off.",
    example="The wheel has 130 MB, the policy allows 100 MB.",
    remedy="Make it smaller (strip, fewer GPU architectures), or raise the limit in the policy.",
)
RULES = (FILE, NEEDED, DENY, IMPORT, EXPORT, SOLE_DEFINER, REGISTRATION, RPATH, SIZE, *waivers.RULES)


def check(subject: Subject) -> Iterator[Finding]:
    """Every entry of the policy against the wheel; waivers are judged after all findings are known."""
    yield from _files(subject)
    yield from _needed(subject)
    for deny in subject.policy.deny:
        yield from _denied(subject, deny)
    for contract in subject.policy.imports:
        yield from _imported(subject, contract)
    for contract in subject.policy.exports:
        yield from _exported(subject, contract)
    for contract in subject.policy.sole_definers:
        yield from _sole(subject, contract)
    yield from _registered(subject)
    yield from _paths(subject)
    yield from _sizes(subject)


def _objects(subject: Subject, pattern: str) -> list[tuple[Member, ElfFacts]]:
    return [(m, elf) for m, elf in subject.wheel.objects if matches_path(m.path, pattern)]


def _nobody(subject: Subject, rule: Rule, pattern: str, key: str) -> Iterator[Finding]:
    """An entry that speaks of no object of the wheel; told once, where [[require-file]] asks for the very same."""
    if all(entry.path != pattern for entry in subject.policy.require_files):
        yield rule.finding(
            f"no ELF object of the wheel matches {pattern}, of which the policy speaks", policy=key
        )


def _files(subject: Subject) -> Iterator[Finding]:
    for entry in subject.policy.require_files:
        if not any(
            matches_path(m.path, entry.path) for m in subject.wheel.members if m.content != "directory"
        ):
            yield FILE.finding(f"no member matches {entry.path}", policy=f"{entry.key}.path")


def _needed(subject: Subject) -> Iterator[Finding]:
    for entry in subject.policy.require_needed:
        objects = _objects(subject, entry.object)
        if not objects:
            yield from _nobody(subject, NEEDED, entry.object, f"{entry.key}.object")
        for member, elf in objects:
            if not any(matches_name(n, entry.library) for n in elf.needed):
                yield NEEDED.finding(
                    f"{member.path} does not need {entry.library}; it needs {', '.join(elf.needed) or 'nothing'}",
                    member=member.path,
                    library=entry.library,
                    policy=entry.key,
                    evidence={"needed": list(elf.needed)},
                )


def _denied(subject: Subject, deny: Deny) -> Iterator[Finding]:
    for member, elf in _objects(subject, deny.object):
        chains = {n: [member.path] for n in elf.needed}
        if deny.reach == "closure":
            chains = _reached(subject, member.path) | chains
        for library, chain in chains.items():
            if matches_name(library, deny.library):
                through = f" through {' -> '.join(chain[1:])}" if len(chain) > 1 else ""
                yield DENY.finding(
                    f"{member.path} needs {library}{through}; the policy forbids it {deny.library}",
                    member=member.path,
                    library=library,
                    policy=deny.key,
                    evidence={"chain": [*chain, library], "reach": deny.reach},
                )


def _reached(subject: Subject, path: str) -> dict[str, list[str]]:
    """Every library that opening the object asks for -> the objects on the way to it, the object first.

    An object that is no root is walked under a root that reaches it.
    """
    loads = [one for scene in subject.scenes for one in scene.loads if path in {n.path for n in one.scope}]
    edges = min(loads, key=lambda one: one.root.path != path).edges if loads else ()
    found: dict[str, list[str]] = {}
    ways = {path: [path]}
    waiting = [path]
    for at in waiting:  # grows on the way
        for edge in edges:
            if edge.object != at:
                continue
            found.setdefault(edge.needed, ways[at])
            if edge.path is not None and edge.path not in ways:
                ways[edge.path] = [*ways[at], edge.path]
                waiting.append(edge.path)
    return found


def _matches_symbol(name: str, pattern: str) -> bool:
    """Globs match the mangled name, or the demangled one where they hold ``::``."""
    return matches_name(demangled(name) if "::" in pattern else name, pattern)


def _matching(elf: ElfFacts, pattern: str, *, defined: bool) -> list[Symbol]:
    return [
        s
        for s in elf.symbols
        if (s.exported if defined else not s.defined) and _matches_symbol(s.name, pattern)
    ]


def _imported(subject: Subject, contract: SymbolContract) -> Iterator[Finding]:
    objects = _objects(subject, contract.object)
    if not objects:
        yield from _nobody(subject, IMPORT, contract.object, f"{contract.key}.object")
    for member, elf in objects:
        wanted = _matching(elf, contract.symbol, defined=False)
        if not wanted:
            own = _matching(elf, contract.symbol, defined=True)
            instead = f"; it defines {own[0].name} itself" if own else ""
            yield IMPORT.finding(
                f"{member.path} refers to no symbol that matches {contract.symbol}{instead}",
                member=member.path,
                symbol=contract.symbol,
                policy=f"{contract.key}.symbol",
            )
        elif contract.provider is not None:
            yield from _provided(subject, contract.key, contract.provider, member, {s.name for s in wanted})


def _provided(subject: Subject, key: str, library: str, member: Member, names: set[str]) -> Iterator[Finding]:
    told: set[str] = set()
    for scene in subject.scenes:
        for binding in scene.outcomes:
            if binding.object != member.path or binding.symbol not in names or binding.symbol in told:
                continue
            if not _elsewhere(binding, library):
                continue
            told.add(binding.symbol)
            yield IMPORT.finding(
                f"{member.path} gets {binding.symbol} from {binding.provider or 'nobody'} ({binding.status});"
                f" the policy wants it from {library}",
                member=member.path,
                library=library,
                symbol=binding.symbol,
                policy=f"{key}.from",
                evidence={"provider": binding.provider, "status": binding.status, "root": binding.root},
            )


def _elsewhere(binding: Binding, library: str) -> bool:
    """Whether it is decided that the symbol does not come from the library."""
    provider = (binding.provider or "").rpartition("/")[2].rpartition(":")[2]
    perhaps = (provider, *binding.unless)
    decided = binding.status not in ("undecided", "unreferenced", "weak-unbound")
    return decided and not any(matches_name(name, library) for name in perhaps)


def _exported(subject: Subject, contract: SymbolContract) -> Iterator[Finding]:
    objects = _objects(subject, contract.object)
    if not objects:
        yield from _nobody(subject, EXPORT, contract.object, f"{contract.key}.object")
    for member, elf in objects:
        if not _matching(elf, contract.symbol, defined=True):
            local = sorted(
                {n for n in elf.local_names if _matches_symbol(n, contract.symbol) and elf.hides(n)}
            )
            why = f"; it defines {local[0]}, but as a local symbol" if local else ""
            yield EXPORT.finding(
                f"{member.path} exports no symbol that matches {contract.symbol}{why}",
                member=member.path,
                symbol=contract.symbol,
                policy=f"{contract.key}.symbol",
                evidence={"local": local[:10]},
            )


def _sole(subject: Subject, contract: SymbolContract) -> Iterator[Finding]:
    owners = _objects(subject, contract.object)
    if not owners and any(entry.path == contract.object for entry in subject.policy.require_files):
        return  # told once, there
    if not any(_matching(elf, contract.symbol, defined=True) for _, elf in owners):
        yield SOLE_DEFINER.finding(
            f"no object that matches {contract.object} defines {contract.symbol}",
            symbol=contract.symbol,
            policy=contract.key,
        )
    for wheel in (subject.wheel, *subject.given):
        for member, elf in wheel.objects:
            if wheel is subject.wheel and matches_path(member.path, contract.object):
                continue
            for symbol in _matching(elf, contract.symbol, defined=True):
                whose = "" if wheel is subject.wheel else f" of {wheel.name}"
                yield SOLE_DEFINER.finding(
                    f"{member.path}{whose} defines {symbol.name}, which only {contract.object} may define",
                    member=member.path,
                    symbol=symbol.name,
                    policy=contract.key,
                    evidence={"distribution": wheel.name},
                )


def _registered(subject: Subject) -> Iterator[Finding]:
    for entry in subject.policy.registrations:
        objects = _objects(subject, entry.object)
        if not objects:
            yield from _nobody(subject, REGISTRATION, entry.object, f"{entry.key}.object")
        for member, elf in objects:
            if entry.string not in elf.strings:
                yield REGISTRATION.finding(
                    f"{member.path} does not hold the string {entry.string!r}: what registers itself under that"
                    " name was dropped by the linker",
                    member=member.path,
                    policy=f"{entry.key}.string",
                    evidence={"constructors": elf.constructors, "string": entry.string},
                )


def _paths(subject: Subject) -> Iterator[Finding]:
    for rule in subject.policy.rpaths:
        for member, elf in subject.wheel.objects:
            if not elf.dynamic or not matches_any(member.path, rule.objects):
                continue
            has = [e for e in elements(elf.search_path, "glibc") if e]
            for entry in rule.required:
                if not any(_same_entry(e, entry) for e in has):
                    yield RPATH.finding(
                        f"{member.path} lacks {entry} in its RUNPATH; it has {':'.join(has) or 'none'}",
                        member=member.path,
                        policy=f"{rule.key}.required",
                        evidence={"entries": has},
                    )
            for entry in has:
                if rule.allowed is not None and not matches_any(entry.rstrip("/"), rule.allowed):
                    yield RPATH.finding(
                        f"{member.path} has {entry} in its RUNPATH, which the policy does not allow",
                        member=member.path,
                        policy=f"{rule.key}.allowed",
                        evidence={"entries": has},
                    )


def _same_entry(one: str, other: str) -> bool:
    return one.replace("${ORIGIN}", "$ORIGIN").rstrip("/") == other.replace("${ORIGIN}", "$ORIGIN").rstrip(
        "/"
    )


def _sizes(subject: Subject) -> Iterator[Finding]:
    size = subject.policy.size
    if size is None:
        return
    total = subject.wheel.file_size
    if size.wheel_max is not None and total > size.wheel_max:
        yield SIZE.finding(
            f"the wheel has {total} bytes, the policy allows {size.wheel_max}",
            policy=f"{size.key}.wheel-max",
            evidence={"size": total, "limit": size.wheel_max},
        )
    for member in subject.wheel.members:
        if size.member_max is not None and member.size > size.member_max:
            yield SIZE.finding(
                f"{member.path} has {member.size} bytes, the policy allows {size.member_max}",
                member=member.path,
                policy=f"{size.key}.member-max",
                evidence={"size": member.size, "limit": size.member_max},
            )
