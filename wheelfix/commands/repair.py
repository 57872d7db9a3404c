"""``wheelfix repair``: auditwheel's flags and environment variables, wheelfix's plan and proof."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheelfix.commands.options import UsageError, add_exclude, add_jobs, add_limits, add_world, audit_options

if TYPE_CHECKING:
    from wheelfix import audit
    from wheelfix.model.plan import Blocked
    from wheelfix.repair.apply import Writing
    from wheelfix.repair.propose import RepairOptions
    from wheelfix.repair.work import Done

_EPILOG = """environment:
  AUDITWHEEL_PLAT                    default of --plat
  AUDITWHEEL_ZIP_COMPRESSION_LEVEL   default of --zip-compression-level
  AUDITWHEEL_LD_LIBRARY_PATH         folders to search first for libraries of this machine
  LD_LIBRARY_PATH                    folders to search next
  SOURCE_DATE_EPOCH                  time of members that are new, in seconds since 1970

exit status: 0 written, or nothing to do; 2 wrong usage; 3 an input is no wheel; 4 blocked, nothing written
"""


def add_parser(subparsers: Any) -> None:
    """Declare the command and its options."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "repair",
        help="put missing libraries into wheels, mend names, paths and tags, prove the result",
        description="Repairs each wheel for the oldest machine that a tag can truly promise, or says why it cannot.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("wheels", metavar="WHEEL", nargs="+", type=Path)
    add(
        "-w", "--wheel-dir", type=Path, default=Path("wheelhouse"), metavar="DIR", help="default: wheelhouse/"
    )
    add("--dry-run", action="store_true", help="say what would be done, write nothing")
    add("--json", action="store_true", help="with --dry-run: the plan as JSON (wheelfix/plan/1)")
    add("--no-verify", action="store_true", help="write even where errors remain that repair cannot mend")
    add(
        "--plat",
        dest="target",
        default=os.environ.get("AUDITWHEEL_PLAT", "auto"),
        metavar="TAG",
        help="a platform tag that the result must have and deserve (auto: the best one alone)",
    )
    add("--only-plat", action="store_true", help="no better tag beside --plat")
    add("--no-update-tags", dest="update_tags", action="store_false", help="keep the tags as they are")
    add_exclude(parser)
    add(
        "-L", "--lib-sdir", default=".libs", metavar="SUFFIX", help="folder of grafts, after the name (.libs)"
    )
    add("--strip", action="store_true", help="strip symbols from all objects and grafts")
    add(
        "-z",
        "--zip-compression-level",
        type=int,
        choices=range(10),
        default=os.environ.get("AUDITWHEEL_ZIP_COMPRESSION_LEVEL"),
        metavar="0-9",
        help="of members that change or are new",
    )
    add("--disable-isa-ext-check", action="store_true", help="accept objects for newer processors")
    add("--allow-pure-python-wheel", action="store_true", help="copy a wheel that has no ELF objects")
    add(
        "--ldpaths",
        metavar="DIRS",
        help="search these folders instead of LD_LIBRARY_PATH and this machine's own",
    )
    add(
        "--patcher",
        default=os.environ.get("AUDITWHEEL_PATCHER"),
        choices=["patchelf", "lief-patchelf", "none"],
        help="accepted, has no effect",
    )
    add("-v", "--verbose", action="store_true", help="every change with its reason")
    add_jobs(parser)
    add_limits(parser)
    add_world(parser, baseline=False)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Repair each wheel; the exit status is the highest of all."""
    from wheelfix.archive.reader import Unreadable
    from wheelfix.model.plan import Blocked
    from wheelfix.repair.show import as_json

    setting, wishes, writing = _setting(options), _wishes(options), _writing(options)
    plans: list[tuple[str, Any]] = []
    status = 0
    for path in options.wheels:
        try:
            outcome = _one(path, setting, wishes, writing, options)
        except Unreadable as reason:
            outcome, code = Blocked(path.name, (f"it cannot be read as a wheel: {reason}",)), 3
        except OSError as reason:
            outcome, code = (
                Blocked(path.name, (f"{reason.filename or options.wheel_dir}: {reason.strerror}",)),
                4,
            )
        else:
            code = 4 if isinstance(outcome, Blocked) else 0
        status = max(status, code)
        plans.append((str(path), outcome if isinstance(outcome, Blocked) else outcome.plan))
        if not options.json:
            _tell(path, outcome, options)
    if options.json:
        print(json.dumps(as_json(plans), indent=2))
    return status


def _one(
    path: Path,
    setting: audit.Setting,
    wishes: RepairOptions,
    writing: Writing,
    options: argparse.Namespace,
) -> Done | Blocked:
    from wheelfix.audit import for_wheel
    from wheelfix.commands.output import tell_for_now
    from wheelfix.repair.buildhost import finder
    from wheelfix.repair.owner import owner
    from wheelfix.repair.work import repair

    setting = for_wheel(path, setting)
    folder = None if options.dry_run else options.wheel_dir

    def say(stage: str) -> None:
        tell_for_now(path.name, f": {stage} ...")

    try:
        search = finder(os.environ, options.ldpaths)
        return repair(path, folder, setting, wishes, writing, search, owner, say)
    finally:
        tell_for_now("", "")


def _tell(path: Path, outcome: Done | Blocked, options: argparse.Namespace) -> None:
    """The summary of one wheel; names from it may hold anything and are made plain."""
    from wheelfix.model.plan import Blocked
    from wheelfix.repair.show import as_text, megabytes
    from wheelfix.report.escape import plain

    if isinstance(outcome, Blocked):
        print(f"{plain(path.name)}: blocked, nothing written", file=sys.stderr)
        for reason in outcome.reasons:
            print(f"  {plain(reason)}", file=sys.stderr)
        return
    lines = list(as_text(outcome.plan, verbose=options.verbose))
    if outcome.plan.empty:
        lines.append("nothing to repair")
    lines += [f"left    {f.message} [{f.rule}]" for f in outcome.findings if f.severity == "error"]
    if outcome.target is not None:
        sizes = f"{megabytes(outcome.size_before)} -> {megabytes(outcome.size_after)}"
        lines.append(f"wrote   {outcome.target} ({sizes})")
    print(plain(path.name))
    for line in lines:
        print(f"  {plain(line)}")


def _setting(options: argparse.Namespace) -> audit.Setting:
    from dataclasses import replace

    from wheelfix import audit

    asked = audit_options(options)
    return audit.prepare(replace(asked, ignore=("isa-too-new",) if options.disable_isa_ext_check else ()))


def _wishes(options: argparse.Namespace) -> RepairOptions:
    from wheelfix.repair.propose import RepairOptions

    return RepairOptions(
        plat=options.target,
        only_plat=options.only_plat,
        update_tags=options.update_tags,
        lib_sdir=options.lib_sdir,
        strip=options.strip,
        no_verify=options.no_verify,
        allow_pure=options.allow_pure_python_wheel,
    )


def _writing(options: argparse.Namespace) -> Writing:
    from wheelfix.repair.apply import Writing

    epoch = os.environ.get("SOURCE_DATE_EPOCH") or None
    if epoch is not None and not epoch.isdigit():
        raise UsageError(f"SOURCE_DATE_EPOCH is {epoch!r}, no number of seconds since 1970")
    return Writing(
        level=options.zip_compression_level, jobs=options.jobs, epoch=int(epoch) if epoch else None
    )
