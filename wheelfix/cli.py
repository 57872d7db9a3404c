"""From arguments to one command, from what it raises to an exit status.

A command's module is imported only when the command is chosen, and imports what it needs when it runs:
``--help`` and ``--version`` must cost next to nothing.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any, NoReturn

from wheelfix import __version__

#: Every command: its module in ``wheelfix.commands``, and what it does in a few words.
COMMANDS = {
    "verify": "judge wheels: what breaks, on which machine, why, and how to fix it",
    "repair": "put missing libraries into wheels, mend names, paths and tags, prove the result",
    "show": "what a wheel holds, which tags it can have and why not a better one",
    "tree": "who loads whom, from where, by which rule",
    "symbols": "which object supplies each undefined symbol",
    "diff": "what changed between two wheels, as a loader sees it",
    "explain": "what a rule means, why it breaks and how to fix it",
    "policy": "list, show and check policies",
}

_EPILOG = """\
examples:
  wheelfix verify dist/*.whl                     the gate before an upload
  wheelfix repair dist/*.whl                     writes repaired wheels to wheelhouse/
  wheelfix verify --with torch.whl my.whl        with a wheel that yours needs at run time
  wheelfix explain needed-missing                what a finding means

exit status:
  0  clean, or nothing at or above --fail-on
  1  findings at or above --fail-on
  2  wrong usage, or a policy file that does not validate
  3  an input that cannot be read as a wheel at all
  4  repair is blocked; nothing was written
  5  a bug in wheelfix

environment:
  NO_COLOR              no colours on a terminal
  WHEELFIX_TRACEBACK    set to 1: the whole traceback of a bug
"""


def run() -> NoReturn:
    """The command as a program: run it, and end at once.

    Nothing is open any more. To take down an interpreter that has LIEF in it costs a tenth of a second, or a fifth with
    the facts of a large wheel.
    """
    status = main()
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status that ``--help`` lists.

    An interrupt or a closed pipe ends the process by its signal, as the shell expects of every program.
    """
    # Facts are tuples of tuples without cycles: looking for garbage among them costs a fifth of a run.
    gc.disable()
    _prepare_streams()
    _quiet_workers()
    with suppress(ValueError):  # signals belong to the main thread
        signal.signal(signal.SIGTERM, _terminate)
    try:
        options = parser_for(sys.argv[1:] if argv is None else argv)
        status: int = _profiled(options) if getattr(options, "profile", False) else options.run(options)
        sys.stdout.flush()
    except _Terminated:
        _die_of(signal.SIGTERM)
    except KeyboardInterrupt:
        _die_of(signal.SIGINT)
    except BrokenPipeError:
        _die_of(signal.SIGPIPE)
    except Exception as error:
        status, text = explained(error)
        print(f"wheelfix: {text}", file=sys.stderr)
        if status == 5 and os.environ.get("WHEELFIX_TRACEBACK"):
            import traceback

            traceback.print_exception(error)
    return status


def _profiled(options: argparse.Namespace) -> int:
    """Run the command, and print to standard error where the time went."""
    from wheelfix import stages

    stages.watch()
    with stages.stage("other"):
        status: int = options.run(options)
    sys.stderr.write(stages.table())
    return status


def _prepare_streams() -> None:
    """Streams that take anything: names from strangers may hold what the locale cannot say, and a stream may be closed."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115  # as long as the process lives
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


@cache
def _quiet_workers() -> None:
    """Signals are for this process, which ends its forked workers by SIGTERM and cleans up.

    A worker that the terminal's Ctrl-C killed while it waited for work would keep the lock of the queue, and ending the
    others would wait for it for ever (multiprocessing/pool.py, ``_help_stuff_finish``).
    """
    for number, action in ((signal.SIGINT, signal.SIG_IGN), (signal.SIGTERM, signal.SIG_DFL)):
        os.register_at_fork(after_in_child=partial(signal.signal, number, action))


class _Terminated(BaseException):
    """SIGTERM came (a CI system stops a job by it): what is half written is to be removed, as on an interrupt."""


def _terminate(*_: object) -> NoReturn:
    raise _Terminated


def parser_for(argv: Sequence[str]) -> argparse.Namespace:
    """The parsed command line. Exits with status 2 where it is wrong, as argparse does."""
    parser = argparse.ArgumentParser(
        prog="wheelfix",
        description="Predicts what the dynamic loader does with a compiled wheel on the oldest machine\n"
        "that its tag promises, says what is wrong and why, and repairs what can be repaired.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"wheelfix {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    chosen = argv[0] if argv else None
    for name, summary in COMMANDS.items():
        if name == chosen:
            importlib.import_module(f"wheelfix.commands.{name}").add_parser(subparsers)
        else:
            subparsers.add_parser(name, help=summary)
    if "_ARGCOMPLETE" in os.environ:
        _complete(parser, subparsers)
    if not argv:
        parser.print_help(sys.stderr)
        parser.exit(2)
    options, unknown = parser.parse_known_args(argv)
    if unknown:
        _refuse(unknown, subparsers.choices.get(argv[0], parser))
    if not hasattr(options, "run"):
        parser.error("the first argument must be a command")
    return options


def _refuse(unknown: Sequence[str], command: argparse.ArgumentParser) -> NoReturn:
    """What argparse says of arguments that nobody takes, by the command that does not, and what was probably meant."""
    import re

    from wheelfix.commands.options import closest

    asked = unknown[0].partition("=")[0]
    near = closest(asked, re.findall(r"--[a-z-]+", command.format_help())) if asked.startswith("--") else ""
    command.error(f"unrecognized arguments: {' '.join(unknown)}{near}")


def _complete(parser: argparse.ArgumentParser, subparsers: Any) -> None:
    """Answer a shell that asks how a line could go on (docs/completion.md); ends the process."""
    import argcomplete

    subparsers.choices.clear()
    for name in COMMANDS:
        importlib.import_module(f"wheelfix.commands.{name}").add_parser(subparsers)
    argcomplete.autocomplete(parser)


def explained(error: Exception) -> tuple[int, str]:
    """The exit status of what a command raised, and the line that says so."""
    from wheelfix.archive.limits import Unreadable
    from wheelfix.commands.options import UsageError
    from wheelfix.policy.load import PolicyErrors
    from wheelfix.report.escape import plain

    if isinstance(error, UsageError):
        return 2, f"error: {plain(str(error))}"
    if isinstance(error, PolicyErrors):
        lines = "".join(f"\n  {plain(str(e))}" for e in error.errors)
        return 2, f"error: the policy does not validate:{lines}"
    if isinstance(error, Unreadable):
        return 3, f"error: an input cannot be read as a wheel: {plain(str(error))}"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else ""
    return 5, (
        f"this is a bug in wheelfix {__version__}: {type(error).__name__}: {plain(str(error))}{place}\n"
        "  Please report it with the command line, the wheel (or where to get it) and what the same command prints"
        " with WHEELFIX_TRACEBACK=1."
    )


def _die_of(number: signal.Signals) -> NoReturn:
    """End as a program ends that does not handle the signal: shells and make know what that means."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)  # what is still buffered has no reader
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
