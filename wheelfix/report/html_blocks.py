"""What a page shows of one wheel beside the verdict, packed so that the page can carry it. Pure."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from wheelfix.checks.demangle import demangled
from wheelfix.checks.subject import Subject
from wheelfix.model.wheel import Member
from wheelfix.report.escape import plain
from wheelfix.report.html_graph import graph
from wheelfix.report.html_sizes import device, sizes
from wheelfix.report.html_symbols import symbols


class Blocks(NamedTuple):
    """The data of one wheel: JSON, deflated (RFC 1950), in base64. The page unpacks the second when it has drawn the first."""

    overview: str  # graphs, device code, sizes
    symbols: str


def blocks(subject: Subject) -> Blocks:
    """The data of a wheel that was judged; each machine that its tags promise has a graph and symbols of its own."""
    machines = [
        {"tag": plain(scene.platform.tag), **graph(scene.loads, () if number else _unloaded(subject))}
        for number, scene in enumerate(subject.scenes)
    ]
    wheel = subject.wheel
    overview = {"machines": machines, "device": device(wheel), "sizes": sizes(wheel)}
    return Blocks(packed(overview), packed([symbols(s.bound, demangled) for s in subject.scenes]))


def packed(value: object) -> str:
    """Any JSON value as text without a character that means something in HTML."""
    text = json.dumps(value, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")


def _unloaded(subject: Subject) -> Iterator[Member]:
    """The objects that stand in no load, such as those of another architecture."""
    loaded = {n.path for scene in subject.scenes for load in scene.loads for n in load.scope}
    return (m for m in subject.wheel.elves if m.path not in loaded)
