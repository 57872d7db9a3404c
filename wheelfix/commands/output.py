"""Where an answer goes: a file, a terminal or a pipe, and what each can show."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wheelfix.commands.options import UsageError
from wheelfix.report.escape import plain


@dataclass(frozen=True, slots=True)
class Look:
    """How text is laid out: its width in columns, and whether colours are understood."""

    width: int = 80
    colour: bool = False


def look(path: Path | None = None) -> Look:
    """What standard output can show: the width and colours of a terminal, else 80 columns and none.

    NO_COLOR counts where it is not empty (no-color.org).
    """
    if path is not None or not sys.stdout.isatty():
        return Look()
    colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Look(max(shutil.get_terminal_size().columns, 20), colour)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A line on a terminal's standard error that says what is being done, once it has taken a second.

    Gives what is to be called after each of ``total`` parts.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda: None
        return
    import threading

    lock, over, count = threading.Lock(), threading.Event(), 0

    def told() -> None:
        part = f" {count} of {total} done" if total > 1 else ""
        print(
            f"\r\x1b[K{what}{part} ... {round(time.monotonic() - start)} s",
            end="",
            file=sys.stderr,
            flush=True,
        )

    def watch() -> None:
        while not over.wait(1):
            with lock:
                told()

    def done() -> None:
        nonlocal count
        count += 1

    start = time.monotonic()
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield done
    finally:
        over.set()
        watcher.join()
        if time.monotonic() - start > 1:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def tell_for_now(name: str, doing: str) -> None:
    """On a terminal's standard error, one line that the next call replaces; nothing elsewhere.

    The name is cut where both do not fit: of a line that wraps, only the last row could be taken back.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        return
    columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
    line = plain(name)[: max(columns - 1 - len(doing), 0)] + doing
    print(f"\r\x1b[K{line[: columns - 1]}", end="", file=sys.stderr, flush=True)


def write(text: str, path: Path | None = None) -> None:
    """Write an answer whole. A reader that closes the pipe early has read enough: the exit status stays.

    Raises ``UsageError`` where the file or standard output cannot be written.
    """
    if path is not None:
        try:
            path.write_text(text, "utf-8", errors="backslashreplace")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Python flushes once more at its end, and would complain then.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise UsageError(f"cannot write to standard output: {error.strerror}") from error
