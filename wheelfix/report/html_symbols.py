"""Who supplies each symbol, packed for a page that searches it: a wheel can have hundreds of thousands. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from wheelfix.model.resolution import Binding, BindStatus, Bound
from wheelfix.report.escape import plain

#: Of those that people have to read, so many C++ names are told in words: it takes a millisecond for each.
MOST_READABLE = 2000
_OPEN = frozenset({"missing", "undecided"})

#: What the symbols of one group have in common: object, version, weak, status, provider, unless, also.
_Fate = tuple[str, str | None, bool, BindStatus, str | None, tuple[str, ...], str | None]


def symbols(bound: Iterable[Bound], readable: Callable[[str], str]) -> dict[str, Any]:
    """Every binding, told once for all roots under which it is the same.

    ``names`` holds the symbols in order, one on a line; ``groups`` what became of them: the fields of ``_Fate`` and the
    roots as places in ``texts``, then the symbols as places in ``names``, each as its distance from the one
    before, which compresses to next to nothing. ``readable`` has the C++ names of those that are missing or undecided.
    """
    groups = _grouped(bound)
    names = sorted({name for members in groups.values() for name in members})
    places = {name: place for place, name in enumerate(names)}
    texts = _Texts()
    rows = []
    for (fate, roots), members in groups.items():
        object_, version, weak, status, provider, unless, also = fate
        at = sorted(places[name] for name in members)
        rows.append(
            [
                texts.place(object_),
                texts.place(version),
                int(weak),
                status,
                texts.place(provider),
                [texts.place(u) for u in unless],
                texts.place(also),
                [texts.place(r) for r in roots],
                [at[0], *(b - a for a, b in pairwise(at))],
            ]
        )
    return {
        "names": "\n".join(map(plain, names)),
        "texts": texts.all,
        "groups": rows,
        "readable": _in_words(groups, places, readable),
    }


class _Texts:
    """Texts that stand in many rows, each kept once; a row has its place, None stays None."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str | None) -> int | None:
        return None if text is None else self._places.setdefault(text, len(self._places))

    @property
    def all(self) -> list[str]:
        return [plain(text) for text in self._places]


def _grouped(bound: Iterable[Bound]) -> dict[tuple[_Fate, tuple[str, ...]], list[str]]:
    """The symbols by their fate and the roots under which they have it, in the order of the roots.

    Bindings that many roots share are walked once.
    """
    shared: dict[int, tuple[tuple[Binding, ...], list[str]]] = {}
    order: dict[str, int] = {}
    for one in bound:
        order.setdefault(one.root, len(order))
        shared.setdefault(id(one.bindings), (one.bindings, []))[1].append(one.root)
    blocks = list(shared.values())
    told: dict[tuple[str, _Fate], list[int]] = {}  # the blocks in which a symbol has a fate
    for number, (bindings, _) in enumerate(blocks):
        for _, object_, symbol, version, weak, status, provider, unless, also in bindings:
            key = symbol, (object_, version, weak, status, provider, unless, also)
            told.setdefault(key, []).append(number)

    @cache
    def roots_of(numbers: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(sorted({root for n in numbers for root in blocks[n][1]}, key=order.__getitem__))

    groups: dict[tuple[_Fate, tuple[str, ...]], list[str]] = {}
    for (symbol, fate), numbers in told.items():
        groups.setdefault((fate, roots_of(tuple(numbers))), []).append(symbol)
    return groups


def _in_words(
    groups: Mapping[tuple[_Fate, tuple[str, ...]], list[str]],
    places: Mapping[str, int],
    readable: Callable[[str], str],
) -> dict[int, str]:
    wanted = dict.fromkeys(n for (fate, _), members in groups.items() if fate[3] in _OPEN for n in members)
    told = {}
    for name in list(wanted)[:MOST_READABLE]:
        words = readable(name)
        if words != name:
            told[places[name]] = plain(words)
    return told
