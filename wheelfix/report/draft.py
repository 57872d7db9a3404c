"""A first policy from what a good wheel holds, each entry with where it was seen. Pure.

What is accidental today must be taken out by a person; what stays is a finding tomorrow when it is gone.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wheelfix.checks.subject import Subject
from wheelfix.model.policy import Provider
from wheelfix.model.wheel import Member
from wheelfix.policy.globs import matches_name
from wheelfix.policy.schema import SECTIONS
from wheelfix.report.escape import plain
from wheelfix.report.show import Object

Value = str | int | tuple[str, ...]

#: The sections that may stand several times.
ARRAYS = frozenset(name for name, table in SECTIONS.items() if table.array)
#: What a rebuild changes in a name: the interpreter's suffix, or (group 1) the hash of a graft.
_CHANGING = re.compile(r"\.(?:cpython-\d+\w*|abi3|pypy\d+\w*)(?:-[\w-]+)?(?=\.so\Z)|(-[0-9a-f]{8,})(?=[.-])")
_GLOB = re.compile(r"[\[*?]")
_MARGIN = 115  # per cent of today's size that are allowed tomorrow
_MOST_SEEN = 3
_OF_THE_MACHINE = ("host", "interpreter", "wheel")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a section, and why it is there."""

    section: str
    values: tuple[tuple[str, Value], ...]
    seen: str


def entries(
    subject: Subject,
    objects: Sequence[Object],
    extended: Sequence[Provider],
    backends: Mapping[str, Sequence[str]],
) -> Iterator[Entry]:
    """What the wheel holds, as the policy language says it.

    ``extended`` are the providers that the policy has without its own; ``backends`` are strings that look like
    registrations, by the object that holds them.
    """
    if len(tags := {p.tag.rpartition(f"_{p.arch}")[0] for p in subject.platforms if p.capped}) == 1:
        yield Entry("platform", (("tag", tags.pop()),), f"the file name {subject.wheel.filename}")
    yield from _runtimes(objects)
    for (pattern, _), members in _grouped(((path_glob(o.member.path), ""), o.member.path) for o in objects):
        yield Entry("require-file", (("path", pattern),), _seen(members))
    yield from _needs(subject, extended)
    yield from _imports(subject)
    for path, strings in sorted(backends.items()):
        for text in strings:
            yield Entry(
                "registration",
                (("object", path_glob(path)), ("string", text)),
                "beside calls of register_backend",
            )
    yield from _rpaths(objects)
    yield from _device_code(objects)
    largest = max((m.size for m in subject.wheel.members), default=0)
    sizes = (
        ("wheel-max", subject.wheel.file_size * _MARGIN // 100),
        ("member-max", largest * _MARGIN // 100),
    )
    yield Entry("size", sizes, f"{_MARGIN - 100} % more than today; bytes")


def as_toml(
    name: str, extends: Sequence[str], found: Iterable[Entry], source: str, *, left_out: Sequence[str] = ()
) -> str:
    """The policy file. Text from the wheel can end neither a comment nor a string."""
    lines = [
        f"# What {_comment(source)} holds. Take out what is accidental: what stays must be in every later wheel.",
        *(f"# Left out: {_comment(text)}" for text in left_out),
        "schema = 1",
        f"name = {_toml(name)}",
        f"extends = {_toml(tuple(extends))}",
    ]
    for entry in found:
        head = f"[[{entry.section}]]" if entry.section in ARRAYS else f"[{entry.section}]"
        lines += ["", f"{head}  # {_comment(entry.seen)}", *(f"{k} = {_toml(v)}" for k, v in entry.values)]
    return "\n".join(lines) + "\n"


def path_glob(path: str) -> str:
    """A glob that fits the same file of a later build: any interpreter, any hash; every other character is itself."""
    done, parts = 0, []
    for match in _CHANGING.finditer(path):
        parts += [_GLOB.sub(r"[\g<0>]", path[done : match.start()]), ".*" if match[1] is None else "-*"]
        done = match.end()
    return "".join(parts) + _GLOB.sub(r"[\g<0>]", path[done:])


def _runtimes(objects: Sequence[Object]) -> Iterator[Entry]:
    linkage = {"static": "static", "shared": "host"}
    groups: dict[str, list[str]] = defaultdict(list)
    for one in objects:
        if one.runtime in linkage:
            groups[linkage[one.runtime]].append(one.member.path)
    everything = len(groups) == 1
    for kind, paths in sorted(groups.items()):
        globs = ("**",) if everything else tuple(dict.fromkeys(map(path_glob, paths)))
        yield Entry("cxx-runtime", (("objects", globs), ("linkage", kind)), _seen(paths))


def _grafted(path: str) -> bool:
    """What a repair put there, and will put there again after its own fashion."""
    return path.partition("/")[0].endswith(".libs")


def _needs(subject: Subject, extended: Sequence[Provider]) -> Iterator[Entry]:
    """What objects need of each other and of other distributions; what the tag promises is left out."""
    own = {m.path for m in subject.wheel.elves if not _grafted(m.path)}
    held = {m.path for m in subject.wheel.elves}
    needs: list[tuple[tuple[str, str], str]] = []
    homes: dict[tuple[str, str, str], str] = {}
    for scene in subject.scenes:
        nodes = {n.path: n for load in scene.loads for n in load.scope}
        for edge in (
            e for load in scene.loads for e in load.edges if e.object in own and "/" not in e.needed
        ):
            node = nodes.get(edge.path or "")
            foreign = node if node is not None and node.owner not in _OF_THE_MACHINE else None
            provided = any(matches_name(edge.needed, p.library) for p in extended)
            if edge.path in held or foreign is not None or provided:
                needs.append(((path_glob(edge.object), path_glob(edge.needed)), edge.object))
            if foreign is not None and foreign.elf is not None and foreign.elf.complete and not provided:
                folder = foreign.path.rpartition("/")[0]
                if folder and foreign.owner != "wheel":
                    homes[edge.needed, foreign.owner, folder] = edge.object
    for (library, distribution, folder), user in sorted(homes.items()):
        values = (("library", path_glob(library)), ("distribution", distribution), ("path", folder))
        yield Entry("provider", values, f"needed by {user}")
    for (pattern, library), members in _grouped(needs):
        yield Entry("require-needed", (("object", pattern), ("library", library)), _seen(members))


def _imports(subject: Subject) -> Iterator[Entry]:
    """For each object and supplier in the wheel the first symbol that binds there under every root.

    One is enough to see that the two still belong together. The C++ runtime's own symbols say nothing: who
    supplies them changes with the compiler.
    """
    own = {m.path for m in subject.wheel.elves if not _grafted(m.path)}
    runtime = frozenset[str]().union(*subject.cxx_runtime_symbols.values())
    suppliers: dict[tuple[str, str], set[str | None]] = defaultdict(set)
    for scene in subject.scenes:
        for b in scene.outcomes:
            if b.object in own and b.symbol not in runtime and not b.symbol.startswith("_Unwind_"):
                suppliers[b.object, b.symbol].add(b.provider if b.status == "bound" else None)
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for (path, symbol), providers in suppliers.items():
        provider = next(iter(providers))
        if len(providers) == 1 and provider in own and provider != path and provider is not None:
            key = (path_glob(path), path_glob(provider.rpartition("/")[2]))
            first[key] = min(first.get(key, (symbol, path)), (symbol, path))
    for (pattern, supplier), (symbol, path) in sorted(first.items()):
        values = (
            ("object", pattern),
            ("symbol", _GLOB.sub(r"[\g<0>]", symbol)),
            ("from", supplier),
        )
        yield Entry("import", values, f"{path} binds it there")


def _rpaths(objects: Sequence[Object]) -> Iterator[Entry]:
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for one in objects:
        text = one.facts.search_path
        found = tuple(e for e in (text or "").split(":") if e)
        if found and not _grafted(one.member.path):
            groups[found].append(one.member.path)
    for found, paths in sorted(groups.items()):
        globs = tuple(dict.fromkeys(map(path_glob, paths)))
        yield Entry("rpath", (("objects", globs), ("required", found), ("allowed", found)), _seen(paths))


def _device_code(objects: Sequence[Object]) -> Iterator[Entry]:
    coded = [o for o in objects if o.facts.device_code]
    sets = {tuple(r.architecture for r in o.facts.device_code if r.kind == "cubin") for o in coded}
    values: list[tuple[str, Value]] = []
    if len(sets) == 1 and (only := sets.pop()):
        values.append(("architectures", only))
    if coded and all(any(r.kind == "ptx" for r in o.facts.device_code) for o in coded):
        values.append(("ptx", "newest"))
    elif coded and not any(r.kind == "ptx" for o in coded for r in o.facts.device_code):
        values.append(("ptx", "none"))
    if values:
        yield Entry("cuda", tuple(values), _seen([o.member.path for o in coded]))


def backend_strings(member: Member, data: bytes) -> tuple[str, ...]:
    """Names like CudaBackend that stand whole in an object which registers backends."""
    if member.elf is None or not any("register_backend" in s.name for s in member.elf.symbols):
        return ()
    found = re.findall(rb"(?<=\0)[A-Z][A-Za-z0-9]{2,40}Backend(?=\0)", data)
    return tuple(sorted({text.decode("ascii") for text in found}))


def _grouped(pairs: Iterable[tuple[tuple[str, str], str]]) -> list[tuple[tuple[str, str], list[str]]]:
    """Members by what is said of them, each once."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key, member in pairs:
        if member not in groups[key]:
            groups[key].append(member)
    return sorted(groups.items())


def _seen(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MOST_SEEN} more" if len(paths) > _MOST_SEEN else ""
    return ", ".join(paths[:_MOST_SEEN]) + more


def _comment(text: str) -> str:
    return " ".join(plain(text).split())


def _toml(value: Value) -> str:
    """A value as TOML: basic strings, in which control characters, quotes and backslashes are escaped."""
    if isinstance(value, int):
        return str(value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    text = value.encode("utf-8", "backslashreplace").decode("utf-8")
    body = "".join(
        f"\\{c}" if c in '"\\' else f"\\u{ord(c):04x}" if ord(c) < 32 or ord(c) == 127 else c for c in text
    )
    return f'"{body}"'
