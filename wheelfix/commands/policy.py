"""``wheelfix policy``: what policies there are, what they ask for, and whether a file is one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfix.commands.completion import offers_policies
from wheelfix.commands.options import UsageError, add_jobs, add_limits, add_world, audit_options

if TYPE_CHECKING:
    from wheelfix.audit import Options
    from wheelfix.checks.subject import Subject
    from wheelfix.report.draft import Entry

_EPILOG = """\
examples:
  wheelfix policy list
  wheelfix policy show executorch-cuda    all that is in force, what it extends included
  wheelfix policy init -o ci/contract.toml dist/my-1.0-*.whl    a first one, from a wheel that is good
  wheelfix policy check my-policy.toml    exit status 2 and every error with the path of its key
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command with its three sub-commands."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "policy",
        help="list, show, check and draft policies",
        description="Policies are TOML files: shipped ones by name, your own by path.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the shipped policies, with the first line of each")
    listing.set_defaults(run=_list)
    show = actions.add_parser("show", help="what a policy asks for, entry by entry")
    offers_policies(show.add_argument("policy", metavar="NAME|FILE", nargs="+"))
    show.set_defaults(run=_show)
    check = actions.add_parser("check", help="whether files are valid policies")
    check.add_argument("policy", metavar="FILE", nargs="+")
    check.set_defaults(run=_check)
    init = actions.add_parser(
        "init",
        help="a first policy, from what a good wheel holds",
        description="Drafts a policy from a wheel that is known to be good: its libraries, what they need and supply\n"
        "each other, search paths, C++ runtime, device code, sizes. Give what it is installed with\n"
        "(--with, --env), and take out what is accidental.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    init.add_argument("wheel", metavar="WHEEL", type=Path)
    init.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="a new file; default: standard output"
    )
    add_jobs(init)
    add_limits(init)
    add_world(init)
    init.set_defaults(run=_init)


def run(options: argparse.Namespace) -> int:
    """Run the chosen sub-command."""
    chosen: int = options.run(options)
    return chosen


def _list(options: argparse.Namespace) -> int:
    from wheelfix.commands.output import write
    from wheelfix.policy.data import data_folder
    from wheelfix.policy.load import shipped_policies

    lines = []
    for name in shipped_policies():
        first = (data_folder() / f"{name}.toml").read_text("utf-8").partition("\n")[0]
        lines.append(f"{name:<20} {first.lstrip('# ')}\n")
    write("".join(lines))
    return 0


def _show(options: argparse.Namespace) -> int:
    from wheelfix.checks import RULES
    from wheelfix.commands.output import write
    from wheelfix.policy.load import load_policies
    from wheelfix.report.policy import described

    write(described(load_policies(options.policy, known_rules=RULES)))
    return 0


def _check(options: argparse.Namespace) -> int:
    from wheelfix.checks import RULES
    from wheelfix.commands.output import write
    from wheelfix.policy.load import PolicyError, PolicyErrors, load_policies

    errors: list[PolicyError] = []
    for name in options.policy:
        try:
            load_policies([name], known_rules=RULES)
            write(f"{name} is a valid policy\n")
        except PolicyErrors as wrong:
            errors += wrong.errors
    if errors:
        raise PolicyErrors(errors)
    return 0


def _init(options: argparse.Namespace) -> int:
    """Draft, judge the wheel by the draft, and leave out what it does not keep itself."""
    import tempfile
    from dataclasses import replace

    from wheelfix import audit
    from wheelfix.commands.output import write
    from wheelfix.report.draft import as_toml

    if options.output is not None and options.output.exists():
        raise UsageError(f"{options.output} is there already; name a new file, or remove it")
    asked = replace(audit_options(options), policies=(), project=None)
    subject = audit.subject_of(options.wheel, audit.prepare(asked))
    name, extends, found = _drafted(subject, options)
    left_out: list[str] = []
    with tempfile.TemporaryDirectory(prefix="wheelfix-") as folder:
        draft = Path(folder, "draft.toml")
        while True:
            text = as_toml(name, extends, found, options.wheel.name, left_out=left_out)
            draft.write_text(text, "utf-8")
            broken = _unkept(options.wheel, replace(asked, policies=(str(draft),)), name, found)
            if not broken:
                break
            left_out += [f"{entry.section} of {entry.seen}: {why}" for entry, why in broken]
            found = [entry for entry in found if all(entry is not b for b, _ in broken)]
    write(text, options.output)
    return 0


def _drafted(subject: Subject, options: argparse.Namespace) -> tuple[str, tuple[str, ...], list[Entry]]:
    """The draft's name, what it extends and its entries, before the wheel is judged by them."""
    from packaging.utils import canonicalize_name

    from wheelfix.archive.directory import read_directory
    from wheelfix.archive.reader import read_member
    from wheelfix.commands.show import objects_of
    from wheelfix.model.limits import Limits
    from wheelfix.policy.load import load_policies
    from wheelfix.report.draft import backend_strings, entries

    wheel = subject.wheel
    extends = tuple(options.policy) or _extended(subject)
    backends: dict[str, tuple[str, ...]] = {}
    registering = [
        m for m in wheel.elves if m.elf and any("register_backend" in s.name for s in m.elf.symbols)
    ]
    if registering:
        with options.wheel.open("rb") as file:
            directory = {e.name: e for e in read_directory(file, Limits())[0]}
            for member in registering:
                strings = backend_strings(member, read_member(file, directory[member.name]) or b"")
                if strings:
                    backends[member.path] = strings
    providers = load_policies(extends).providers
    found = list(entries(subject, tuple(objects_of(subject)), providers, backends))
    return canonicalize_name(wheel.name or "contract"), extends, found


def _extended(subject: Subject) -> tuple[str, ...]:
    """The shipped policies that the wheel is judged by: that of its C library, and who brings what it needs."""
    from wheelfix.policy.globs import matches_name
    from wheelfix.policy.load import load_policies

    needed = {n for m in subject.wheel.elves if m.elf for n in m.elf.needed}
    own = {m.path.rpartition("/")[2] for m in subject.wheel.elves}
    nvidia = load_policies(["nvidia-pypi"]).providers
    others = [p for p in load_policies(["torch-extension"]).providers if p not in nvidia]
    for name, providers in (("torch-extension", others), ("nvidia-pypi", nvidia)):
        if any(matches_name(n, p.library) for p in providers for n in needed - own):
            return (*subject.policy.names, name)
    return subject.policy.names


def _unkept(path: Path, options: Options, name: str, found: Sequence[Entry]) -> list[tuple[Entry, str]]:
    """The entries of a draft that its own wheel does not keep, each with what is said of it."""
    from wheelfix import audit
    from wheelfix.report.draft import ARRAYS

    report = audit.audit_wheel(path, audit.prepare(options))
    keys: dict[str, Entry] = {}
    counts: dict[str, int] = {}
    for entry in found:
        number = counts[entry.section] = counts.get(entry.section, -1) + 1
        keys[
            f"{name}:{entry.section}[{number}]" if entry.section in ARRAYS else f"{name}:{entry.section}"
        ] = entry
    broken: dict[int, tuple[Entry, str]] = {}
    for finding in report.findings:
        if finding.policy is not None and finding.severity == "error":
            key = next((k for k in keys if finding.policy == k or finding.policy.startswith(f"{k}.")), None)
            if key is not None:
                broken.setdefault(id(keys[key]), (keys[key], finding.message))
    return list(broken.values())
