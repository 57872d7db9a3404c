"""What the real loader did with one root, in its own words (LD_DEBUG=libs,files,scopes), and ours held against it.

The world is what lies on the disk: ``tests.oracle.simulate`` shows it without the package's own view of a machine.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.oracle.simulate import HOST, Cache, Disk, Folders, Links, node_at
from wheelfix.loader.closure import load
from wheelfix.model.resolution import Load, World

_NEEDED = re.compile(r"file=(.+?) \[0\];  (?:needed by|dynamically loaded by) (.+?) \[0\]$")
_SCOPE = re.compile(r" scope (\d+): (.*)$")
_TRYING = "  trying file="


@dataclass
class Searched:
    """One search of the real loader: who asked, for what, and the files that it tried, in order."""

    requester: str
    name: str
    tried: list[str] = field(default_factory=list)


@dataclass
class Observed:
    """Locations as the loader wrote them, except ``scope`` and ``process``, which are real paths."""

    opened: bool
    said: str
    process: tuple[str, ...]
    scope: tuple[str, ...]
    searches: list[Searched]

    def searched(self, requester: Path) -> dict[str, str | None]:
        """What each name that this object asked for led to: the last file tried, None where none was."""
        real = os.path.realpath(requester)
        return {
            s.name: (s.tried[-1] if s.tried else None)
            for s in self.searches
            if os.path.realpath(s.requester) == real
        }


def observe(root: Path, opener: Path | None, library_path: Sequence[str] = ()) -> Observed:
    """Open a root with ``opener``, or start it as a program, in an empty environment and in ``/``."""
    command = [str(opener), str(root)] if opener is not None else [str(root)]
    environment = {"LD_DEBUG": "libs,files,scopes"}
    if library_path:
        environment["LD_LIBRARY_PATH"] = ":".join(library_path)
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", cwd="/", env=environment)
    program = command[0]
    lines = [line.partition(":\t")[2] for line in done.stderr.splitlines()]
    plain = [raw for raw in done.stderr.splitlines() if ":\t" not in raw]
    seen = Observed(
        opened=done.returncode == 0,
        said=(done.stdout + "\n".join(plain)).strip(),
        process=(),
        scope=(),
        searches=[],
    )
    real_root = os.path.realpath(root)
    current = ""
    for line in lines:
        if line.startswith("object="):
            current = os.path.realpath(line[7:].partition(" [")[0] or program)
        elif match := _SCOPE.match(line):
            names = tuple(os.path.realpath(program if n == "<main" else n) for n in match[2].split())
            names = tuple(n for n in names if not n.endswith("program>"))
            if current == os.path.realpath(program) and match[1] == "0":
                seen.process = seen.process or names
            if current == real_root and real_root in names:
                seen.scope = names
        elif match := _NEEDED.match(line):
            requester = program if match[2] == "<main program>" else match[2]
            if os.path.realpath(match[1]) != real_root or "/" not in match[1]:
                seen.searches.append(Searched(requester, match[1]))
        elif line.startswith(_TRYING) and seen.searches:
            seen.searches[-1].tried.append(line[len(_TRYING) :])
    return seen


def world_of(seen: Observed, program: bool, library_path: Sequence[str], **more: object) -> World:
    """This machine's files, the process that opens the root, and the tokens and subfolders handed in."""
    return World(
        files=Disk(),
        folders=Folders(),  # type: ignore[arg-type]
        links=Links(),
        host=Cache(),
        interpreter=() if program else tuple(node_at(p) for p in seen.process),
        libc_version=HOST,  # type: ignore[arg-type]
        library_path=tuple(library_path),
        **more,  # type: ignore[arg-type]
    )


def differences(seen: Observed, ours: Load) -> list[str]:
    """Every point in which our load of a root differs from the real one, as sentences.

    The real loader stops at the first library that is missing; only what came before can be compared. A
    library that it knows again it does not search for, and says nothing.
    """
    problems = []
    missing = next((e for e in ours.edges if e.status == "missing"), None)
    if seen.opened == (missing is not None):
        problems.append(f"it said {seen.said!r}, we say {missing or 'found'}")
    if seen.opened and tuple(n.path for n in ours.scope) != seen.scope:
        problems.append(f"scope {[n.path for n in ours.scope]}, the loader has {seen.scope}")
    real = {(os.path.realpath(s.requester), _one_way(s.name)): s for s in seen.searches}
    told = set()
    for edge in ours.edges:
        asked = _one_way(edge.needed.replace("$ORIGIN", os.path.dirname(edge.object)))
        search = real.get((edge.object, asked))
        if edge.rule == "soname-loaded":
            # A path that is written otherwise than before (x/../lib) is opened again: the same file.
            if asked == edge.path:
                told.add((edge.object, asked))
            elif search is not None:
                problems.append(f"{edge.object} searched for {edge.needed}, we say it was loaded before")
        elif search is None:
            problems.append(f"{edge.object} did not search for {edge.needed}, we say {edge.status}")
        else:
            told.add((edge.object, asked))
            problems += _same_places(search.tried, edge.tried, edge.needed) if "/" not in asked else []
            if edge.status in ("found", "host") and "/" not in asked:  # a path is opened without a word
                last = os.path.realpath(search.tried[-1]) if search.tried else None
                if last != edge.path:
                    problems.append(f"{edge.needed}: the loader took {last}, we {edge.path}")
        if edge is missing:
            break
    if missing is not None and seen.searches and not seen.opened:
        stopped = seen.searches[-1]
        asked = _one_way(missing.needed.replace("$ORIGIN", os.path.dirname(missing.object)))
        if (os.path.realpath(stopped.requester), _one_way(stopped.name)) != (missing.object, asked):
            problems.append(f"it stopped at {stopped}, we at {missing}")
    if seen.opened:
        told |= {
            (n.path, name) for n in ours.scope if n.elf for name in n.elf.auxiliaries
        }  # no edge if missing
        silent = set(real) - told - {key for key in real if key[0] in seen.process}
        problems += [f"{key} was searched for, we have no such search" for key in silent]
    return problems


def _one_way(name: str) -> str:
    """A path as the file's own, since the loader keeps the ``..`` of the entry that led to an object in its $ORIGIN."""
    return os.path.realpath(name) if name.startswith("/") else name


def _same_places(theirs: Sequence[str], ours: Sequence[str], name: str) -> list[str]:
    """The files tried, in order and each once; the loader also tries folders that do not exist, and default ones."""
    real = [p for p in theirs if p.startswith("/") and os.path.isdir(os.path.dirname(p))]
    kept = dict.fromkeys(map(_in_real_folder, real))
    own = dict.fromkeys(_in_real_folder(p) for p in ours if p.startswith("/"))
    if [*kept][: len(own)] != [*own]:
        return [f"{name}: the loader tried {[*kept]}, we {[*own]}"]
    return []


def _in_real_folder(place: str) -> str:
    return os.path.join(os.path.realpath(os.path.dirname(place)), os.path.basename(place))


def agree(
    root: Path, opener: Path | None = None, library_path: Sequence[str] = (), **more: object
) -> Observed:
    """The real loader's answer, after ours was held against it in every point."""
    seen = observe(root, opener, library_path)
    world = world_of(seen, opener is None, library_path, **more)
    problems = differences(seen, load(world, node_at(str(root))))
    assert not problems, "\n".join(problems)
    return seen
