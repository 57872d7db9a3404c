"""``wheelfix verify``: the gate."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfix.commands.options import (
    UsageError,
    add_exclude,
    add_jobs,
    add_limits,
    add_rules,
    add_world,
    audit_options,
)
from wheelfix.stages import stage

if TYPE_CHECKING:
    from wheelfix.model.finding import Report
    from wheelfix.report.html_blocks import Blocks

_EPILOG = """\
examples:
  wheelfix verify dist/*.whl
  wheelfix verify --policy static-cxx-runtime dist/*.whl
  wheelfix verify --with torch-2.14.1-*.whl my_extension-1.0-*.whl
  wheelfix verify --plat manylinux_2_28_x86_64 my-1.0-cp311-cp311-linux_x86_64.whl
  wheelfix verify --select 'cxx-runtime-*,needed-missing' --fail-on warning my.whl
  wheelfix verify --format json -o report.json dist/*.whl
  wheelfix verify --report html=report.html dist/*.whl

exit status: 0 clean; 1 findings at or above --fail-on; 2 wrong usage or policy; 3 an input is no wheel;
with several wheels the highest of all
"""
_FORMATS = ("text", "json", "sarif", "junit", "github", "markdown", "html")


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "verify",
        help="judge wheels: what breaks, on which machine, why, and how to fix it",
        description="Judges each wheel by its archive, its platform tag, what the loader does with it on the oldest\n"
        "machine that the tag promises, and by the policies in force.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("wheels", metavar="WHEEL", nargs="+", type=Path)
    add("--plat", metavar="TAG", help="judge against this platform tag instead of the file name's")
    add_exclude(parser)
    add_rules(parser)
    add(
        "--fail-on",
        choices=["error", "warning", "never"],
        default="error",
        help="the least severity that gives exit status 1 (default: error)",
    )
    add("--format", choices=_FORMATS, default="text", help="default: text")
    add("-o", "--output", type=Path, metavar="FILE", help="write the report here instead of standard output")
    add(
        "--report",
        dest="reports",
        action="append",
        default=[],
        metavar="FORMAT=FILE",
        help="write a report in another format too; may be repeated",
    )
    told = parser.add_mutually_exclusive_group()
    told.add_argument("-v", "--verbose", action="store_true", help="notes and evidence too")
    told.add_argument("-q", "--quiet", action="store_true", help="the verdict alone, a line for each wheel")
    add_jobs(parser)
    add_limits(parser)
    add_world(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Judge every wheel, write one report, return the highest exit status."""
    from wheelfix import audit
    from wheelfix.commands.output import progress, write

    others = [_other(text) for text in options.reports]
    setting = audit.prepare(audit_options(options))
    blocks: tuple[Blocks | None, ...] = ()
    with progress("judging", len(options.wheels)) as done:
        if "html" in (options.format, *(form for form, _ in others)):
            from wheelfix.report import html_blocks

            report, blocks = audit.audit_and_look(options.wheels, setting, html_blocks.blocks, done)
        else:
            report = audit.audit_wheels(options.wheels, setting, done)
    with stage("report"):
        for form, path in others:
            write(_rendered(report, form, path, options, blocks), path)
        write(_rendered(report, options.format, options.output, options, blocks), options.output)
    return exit_status(report, options.fail_on)


def exit_status(report: Report, fail_on: str) -> int:
    """5 where wheelfix itself failed, 3 where a wheel is unreadable, else 1 for a finding at or above ``fail_on``, else 0."""
    if any(f.rule == "internal-error" for w in report.wheels for f in w.findings):
        return 5
    if any(w.verdict == "unreadable" for w in report.wheels):
        return 3
    counted = {"error": {"error"}, "warning": {"error", "warning"}, "never": set[str]()}[fail_on]
    return 1 if any(f.severity in counted for w in report.wheels for f in w.findings) else 0


def _other(text: str) -> tuple[str, Path]:
    """A format and where its report goes. Raises ``UsageError`` for anything else."""
    form, _, path = text.partition("=")
    if form not in _FORMATS or not path:
        raise UsageError(f"--report {text}: give FORMAT=FILE; formats are {', '.join(_FORMATS)}")
    return form, Path(path)


def _rendered(
    report: Report, form: str, path: Path | None, options: argparse.Namespace, blocks: Sequence[Blocks | None]
) -> str:
    from wheelfix.checks import RULES
    from wheelfix.commands.output import look
    from wheelfix.report import github, json, junit, markdown, sarif, text

    if form == "json":
        return json.render(report)
    if form == "sarif":
        return sarif.render(report, RULES)
    if form == "junit":
        return junit.render(report, RULES)
    if form == "github":
        return github.render(report)
    if form == "markdown":
        return markdown.render(report)
    if form == "html":
        from wheelfix.report import html

        return html.render(report, RULES, blocks)
    how = look(path)
    why = {rule.id: rule.why for rule in RULES.values()}
    return text.render(
        report,
        why=why,
        width=how.width,
        colour=how.colour,
        verbose=options.verbose,
        quiet=options.quiet,
    )
