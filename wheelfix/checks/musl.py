"""What glibc has and musl has not: symbols that betray an object compiled for the other C library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Scene, Subject
from wheelfix.model.finding import Finding
from wheelfix.model.resolution import Node
from wheelfix.policy.baseline import glibc_symbols

FORBIDDEN = Rule(
    id="musl-forbidden-symbol",
    group="platform",
    severity="error",
    what="A wheel with a musllinux tag refers to a function that glibc has and musl does not export, and nothing else "
    "that is loaded supplies it. Weak references do not count.",
    why="musl has no symbol versions that would tell the two apart, so nothing complains until the object is loaded on "
    "Alpine: `Error relocating …: symbol not found`. The object, or a static library in it, was compiled against "
    "glibc's headers: `__cxa_thread_atexit_impl` comes from a libstdc++ for glibc, `__memcpy_chk` from "
    "`_FORTIFY_SOURCE`, `backtrace` from execinfo.h.",
    fix="Build every object of the wheel, static libraries included, in a musllinux image or with a compiler whose "
    "target is musl:\n\n"
    "```sh\ndocker run -v $PWD:/io quay.io/pypa/musllinux_1_2_x86_64 /io/build.sh\n```\n\n"
    "```toml\n[tool.cibuildwheel]\nbuild = '*-musllinux_*'\n```\n\n"
    "Code that can do without the function asks at configure time (`check_symbol_exists` in CMake, "
    "`cc.has_function` in meson), or declares it weak.",
    example="A library built with a compiler for `x86_64-linux-gnu`, linked with musl's libc: it wants "
    "`__cxa_thread_atexit_impl`, which musl never had.",
    remedy="Build the object, and every static library that goes into it, for musl (a musllinux image).",
)

RULES: tuple[Rule, ...] = (FORBIDDEN,)


def forbidden_symbols(scene: Scene) -> dict[str, tuple[str, ...]]:
    """For each object of the wheel the symbols that only glibc would supply; empty where the C library is glibc.

    A symbol counts that the loader misses under some root and that the baseline of glibc has for the architecture. An
    object none of whose symbols is named by a relocation does not tell which it uses: there its symbol table counts.
    """
    if scene.platform.libc != "musl":
        return {}
    known = glibc_symbols(scene.platform.arch)
    loads = {load.root.path: load for load in scene.loads}
    wheel = {node.path for load in scene.loads for node in load.scope if node.owner == "wheel"}
    telling = {b.object for b in scene.outcomes if b.status != "unreferenced"}
    found: dict[str, dict[str, None]] = {}
    for b in scene.outcomes:
        if b.weak or b.object not in wheel or b.symbol not in known:
            continue
        if b.status == "missing" or (
            b.object not in telling and not _may_supply(loads[b.root].scope, b.symbol)
        ):
            found.setdefault(b.object, {})[b.symbol] = None
    return {path: tuple(names) for path, names in found.items()}


def _may_supply(scope: Iterable[Node], symbol: str) -> bool:
    """Whether an object of the scope exports a name, or is known by its own name alone."""
    return any(
        node.elf is not None
        and (not node.elf.complete or any(s.name == symbol and s.exported for s in node.elf.symbols))
        for node in scope
    )


def check(subject: Subject) -> Iterator[Finding]:
    """One finding for each object."""
    for scene in subject.scenes:
        for path, symbols in forbidden_symbols(scene).items():
            shown = ", ".join(symbols[:3]) + (f" and {len(symbols) - 3} more" if len(symbols) > 3 else "")
            yield FORBIDDEN.finding(
                f"{path} needs {shown}, which glibc has and musl does not",
                member=path,
                symbol=symbols[0],
                evidence={"symbols": list(symbols), "tag": scene.platform.tag},
            )
