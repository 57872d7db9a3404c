"""Options that several commands share, and their way into ``audit.Options``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wheelfix.commands.completion import offers_policies, offers_rules

if TYPE_CHECKING:
    from wheelfix.audit import Options
    from wheelfix.model.limits import Limits


class UsageError(Exception):
    """The command line asks for something that cannot be; the message says what and how to mend it."""


def add_world(parser: argparse.ArgumentParser, *, baseline: bool = True) -> None:
    """WORLD: the policies in force and everything around the wheel that the loader sees."""
    group = parser.add_argument_group("the world that the loader sees")
    policy = group.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME|FILE",
        help="judge by this policy; may be repeated, later ones override earlier ones (default: what pyproject.toml asks"
        " for, else by the tag)",
    )
    offers_policies(policy)
    group.add_argument(
        "--with",
        dest="with_",
        action="append",
        default=[],
        type=Path,
        metavar="WHEEL|DIR",
        help="a wheel that is installed beside it, or every wheel of a folder; may be repeated",
    )
    group.add_argument("--env", type=Path, metavar="PREFIX", help="an installed environment beside it")
    if baseline:
        group.add_argument(
            "--baseline",
            choices=["tag", "host"],
            default="tag",
            help="the machine: the oldest that the tag promises (default), or this one",
        )
    group.add_argument(
        "--ld-library-path",
        type=_folders,
        default=[],
        metavar="DIRS",
        help="LD_LIBRARY_PATH of that machine: folders of site-packages (of this machine with --baseline host)",
    )


def add_limits(parser: argparse.ArgumentParser) -> None:
    """``--limit``: how much of an input is read before it is refused."""
    parser.add_argument(
        "--limit",
        dest="limits",
        action="append",
        default=[],
        metavar="NAME=N",
        help="read more, or less, of an input before it is refused: members=200000, held=2G, ...; a finding that a"
        " limit was met names it",
    )


def add_exclude(parser: argparse.ArgumentParser) -> None:
    """``--exclude``: libraries that somebody else supplies."""
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="libraries (by the name in DT_NEEDED) that the machine supplies by other means; may be repeated",
    )


def add_jobs(parser: argparse.ArgumentParser) -> None:
    """``-j``: how many processes work at the same time; all processors that this one may use by default.

    ``--profile``, which no help tells, is for who works on wheelfix: ``cli.main`` prints where the time went.
    """
    parser.add_argument(
        "-j",
        "--jobs",
        type=_count,
        default=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        metavar="N",
        help="processes at a time (default: one for each processor)",
    )
    parser.add_argument("--profile", action="store_true", help=argparse.SUPPRESS)


def add_rules(parser: argparse.ArgumentParser) -> None:
    """``--select`` and ``--ignore``."""
    for name, what in (("--select", "only these rules"), ("--ignore", "all but these rules")):
        rules = parser.add_argument(
            name,
            type=_names,
            action="extend",
            default=[],
            metavar="RULES",
            help=f"{what}: ids or globs, separated by commas",
        )
        offers_rules(rules)


def audit_options(options: argparse.Namespace) -> Options:
    """What the pipeline is asked for, by the command line and by the project.

    Raises ``UsageError`` for what cannot be, ``PolicyErrors`` for a ``[tool.wheelfix]`` that does not validate.
    """
    from wheelfix.audit import Options
    from wheelfix.commands.project import with_project

    chosen = vars(options)
    if options.env is not None and not options.env.is_dir():
        raise UsageError(f"--env {options.env}: there is no such folder")
    for path in options.with_:
        if not path.exists():
            raise UsageError(f"--with {path}: there is no such file or folder")
    baseline = chosen.get("baseline", "tag")
    for folder in options.ld_library_path:
        if baseline == "tag" and folder.startswith("/"):
            raise UsageError(
                f"--ld-library-path {folder}: name a folder of site-packages (a relative path); folders of this machine"
                " count with --baseline host"
            )
    asked = Options(
        policies=tuple(options.policy),
        with_=tuple(options.with_),
        env=options.env,
        baseline=baseline,
        ld_library_path=tuple(options.ld_library_path),
        exclude=tuple(chosen.get("exclude", ())),
        plat=_platform(chosen.get("plat")),
        jobs=chosen.get("jobs", 1),
        select=_known(chosen.get("select", ())),
        ignore=_known(chosen.get("ignore", ())),
        limits=_limits(chosen.get("limits", ())),
    )
    alone = [chosen[name] for name in ("wheel", "file", "old", "new") if name in chosen]
    return with_project(asked, chosen.get("wheels", alone))


def _limits(asked: Sequence[str]) -> Limits:
    from dataclasses import fields, replace

    from wheelfix.model.limits import Limits

    names = {f.name.replace("_", "-"): f.name for f in fields(Limits)}
    chosen: dict[str, int] = {}
    for text in asked:
        name, _, number = text.partition("=")
        if name not in names:
            raise UsageError(f"--limit {text}: there is no limit {name!r}; there are {', '.join(names)}")
        scale = 1 << {"K": 10, "M": 20, "G": 30}.get(number[-1:].upper(), 0)
        digits = number if scale == 1 else number[:-1]
        if not (digits.isascii() and digits.isdigit()) or len(digits) > 15 or not int(digits):
            raise UsageError(f"--limit {text}: give a number, like {name}=1000 or {name}=2G")
        chosen[names[name]] = int(digits) * scale
    return replace(Limits(), **chosen)


def closest(name: str, names: list[str]) -> str:
    """A half-sentence that offers the name that was probably meant, or nothing."""
    import difflib

    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def _known(patterns: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """The patterns, each of which names at least one rule."""
    if not patterns:
        return ()
    import fnmatch

    from wheelfix.checks import RULES

    for pattern in patterns:
        if not fnmatch.filter(RULES, pattern):
            near = closest(pattern, list(RULES))
            raise UsageError(f"no rule is called {pattern}{near} (wheelfix explain lists them all)")
    return tuple(patterns)


def _platform(tag: str | None) -> str | None:
    if tag is None:
        return None
    from wheelfix.policy.platform import for_platform

    if for_platform(tag) is None:
        raise UsageError(
            f"--plat {tag}: no policy covers it; name a platform tag with its architecture, like manylinux_2_28_x86_64"
        )
    return tag


def _folders(text: str) -> list[str]:
    return [part for part in text.split(":") if part]


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes")
    return number
