"""Who supplies each symbol: the problems for people, ``wheelfix/symbols/1`` for programs. Pure."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from wheelfix import __version__
from wheelfix.model.resolution import Binding
from wheelfix.report.escape import plain

SCHEMA = "wheelfix/symbols/1"
_PROBLEMS = ("missing", "undecided")


def as_json(bindings: Iterable[tuple[str, Binding]]) -> str:
    """Every binding, one on a line (there can be hundreds of thousands), with the machine it holds for."""
    head = json.dumps({"schema": SCHEMA, "tool": {"name": "wheelfix", "version": __version__}})
    rows = ",\n".join(json.dumps(_row(tag, b)) for tag, b in bindings)
    return f'{head[:-1]}, "bindings": [\n{rows}\n]}}\n'


def as_text(
    bindings: Sequence[tuple[str, Binding]],
    *,
    everything: bool,
    demangled: Callable[[str], str],
    most: int | None = 10,
    width: int = 80,
) -> str:
    """Bindings by machine, root and object; without ``everything`` those that are missing or undecided.

    Of each kind under one object ``most`` names are listed and the rest is counted (None: all are listed).
    """
    lines: list[str] = []
    groups: dict[tuple[str, str, str], list[Binding]] = {}
    for tag, binding in bindings:
        # An optional hook (__gmon_start__) that stays open is no problem: the loader sets it to 0.
        if everything or (binding.status in _PROBLEMS and not binding.weak):
            groups.setdefault((tag, binding.root, binding.object), []).append(binding)
    for (tag, root, object_), members in groups.items():
        under = [] if root == object_ else [f"  under the root {plain(root)}"]
        lines += [
            f"{plain(object_)}",
            *under,
            f"  on {plain(tag)}",
            *_kinds(members, demangled, most, width),
            "",
        ]
    counts = _counts(b for _, b in bindings)
    return "\n".join([*lines, counts]) + "\n"


def _kinds(
    members: Sequence[Binding], demangled: Callable[[str], str], most: int | None, width: int
) -> Iterator[str]:
    kinds: dict[str, list[Binding]] = {}
    for binding in members:
        kinds.setdefault(_answer(binding), []).append(binding)
    for answer, group in kinds.items():
        yield from textwrap.wrap(
            plain(answer) + ":", width, initial_indent="  ", subsequent_indent="    ", break_long_words=False
        )
        shown = group if most is None else group[:most]
        for binding in shown:
            readable = demangled(binding.symbol)
            beside = f"  {readable}" if readable != binding.symbol else ""
            version = f"@{binding.version}" if binding.version else ""
            yield plain(f"    {binding.symbol}{version}{beside}")
        if len(shown) < len(group):
            yield f"    and {len(group) - len(shown)} more (-v lists all)"


def _answer(binding: Binding) -> str:
    """What became of a symbol, in words."""
    unless = " or ".join(binding.unless)
    if binding.status == "bound":
        also = f" (data relocations: {binding.also})" if binding.also else ""
        return f"supplied by {binding.provider}{also}" + (f", unless {unless} has it" if unless else "")
    return {
        "missing": "missing: nothing in scope supplies it",
        "undecided": f"undecided until this is given (--with, --env): {', '.join(binding.unless) or 'a library of another distribution'}",
        "weak-unbound": "weak and not supplied, which is no error",
        "unreferenced": "in the symbol table, but no relocation names it: never looked up",
    }[binding.status]


def _counts(bindings: Iterable[Binding]) -> str:
    counts: dict[str, int] = {}
    for binding in bindings:
        counts[binding.status] = counts.get(binding.status, 0) + 1
    order = ("bound", "missing", "undecided", "weak-unbound", "unreferenced")
    return ", ".join(f"{counts[s]} {s}" for s in order if s in counts) or "no undefined symbols"


def _row(tag: str, binding: Binding) -> dict[str, Any]:
    return {
        "root": binding.root,
        "object": binding.object,
        "symbol": binding.symbol,
        "version": binding.version,
        "weak": binding.weak,
        "status": binding.status,
        "provider": binding.provider,
        "unless": list(binding.unless),
        "also": binding.also,
        "platform": tag,
    }
