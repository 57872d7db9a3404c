"""RECORD: the list of a wheel's files with their hashes (PEP 376, PEP 427)."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from wheelfix.model.finding import Fault

#: Files that sign RECORD, or are it: they cannot stand in it with a hash (PEP 427).
UNLISTED = ("RECORD", "RECORD.jws", "RECORD.p7s")
_WEAK = frozenset({"md5", "sha1", ""})


@dataclass(frozen=True, slots=True)
class Row:
    """One row of RECORD; ``algorithm`` and ``digest`` are "" and ``size`` None where the row leaves them out."""

    path: str
    algorithm: str = ""
    digest: str = ""  # urlsafe base64, padding removed
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Digest:
    """What a member's bytes really are: inflated size, and its digest by each algorithm that was asked for."""

    size: int
    by_algorithm: Mapping[str, str]


def encoded(digest: bytes) -> str:
    """A digest as RECORD writes it."""
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def parse_record(text: str) -> tuple[tuple[Row, ...], tuple[Fault, ...]]:
    """The rows of RECORD, and a fault for each that cannot be read."""
    rows: list[Row] = []
    faults: list[Fault] = []
    reader = csv.reader(io.StringIO(text, newline=""))
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return tuple(rows), tuple(faults)
        except csv.Error as error:
            faults.append(
                Fault("record-path", f"RECORD cannot be read on from line {reader.line_num}: {error}")
            )
            return tuple(rows), tuple(faults)
        if not cells:
            continue
        path, hash_, size = (*cells, "", "")[:3]
        algorithm, _, digest = hash_.partition("=")
        if size and not (size.isascii() and size.isdigit() and len(size) < 20):
            faults.append(Fault("record-hash", f"RECORD gives {path!r} the size {size!r}", path))
            size = ""
        rows.append(Row(path, algorithm.lower(), digest.rstrip("="), int(size) if size else None))


def format_record(rows: Iterable[Row]) -> str:
    """RECORD's text: CSV with LF line ends, quoted only where needed."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    quoting = csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        hash_ = f"{row.algorithm}={row.digest}" if row.digest else ""
        # Many versions of the csv module quote only the line ends that they write themselves.
        (quoting if "\r" in row.path else writer).writerow(
            (row.path, hash_, "" if row.size is None else row.size)
        )
    return text.getvalue()


def compare(rows: Iterable[Row], found: Mapping[str, Digest | None], dist_info: str) -> Iterator[Fault]:
    """What RECORD and the archive say differently.

    ``found`` maps every member that is a file to its digest, None where its bytes could not be read (another
    fault tells that).
    """
    exempt = {f"{dist_info}/{name}" for name in UNLISTED}
    listed: set[str] = set()
    for row in rows:
        path = row.path
        listed.add(path)
        if path.startswith(("/", "\\")) or ".." in path.replace("\\", "/").split("/") or path[1:2] == ":":
            yield Fault("record-path", f"RECORD lists {path!r}, which lies outside the wheel", path)
        elif path not in found:
            if not path.endswith("/"):
                yield Fault("record-path", f"RECORD lists {path!r}, which the archive does not hold", path)
        elif path not in exempt:
            yield from _held(row, found[path])
    for path in found:
        if path not in listed and path not in exempt:
            yield Fault("record-missing", f"{path} is in the archive but not in RECORD", path)


def _held(row: Row, real: Digest | None) -> Iterator[Fault]:
    if row.algorithm in _WEAK:
        what = f"only a {row.algorithm} hash" if row.algorithm else "no hash"
        yield Fault(
            "record-hash", f"RECORD gives {what} for {row.path}; sha256 or better is required", row.path
        )
        return
    if real is None:
        return
    digest = real.by_algorithm.get(row.algorithm)
    if digest is None:
        yield Fault("record-hash", f"RECORD hashes {row.path} with the unknown {row.algorithm!r}", row.path)
    elif digest != row.digest:
        yield Fault(
            "record-hash",
            f"{row.path} is not what RECORD hashed: its {row.algorithm} differs",
            row.path,
            {"recorded": f"{row.algorithm}={row.digest}", "found": f"{row.algorithm}={digest}"},
        )
    elif row.size is not None and row.size != real.size:
        yield Fault(
            "record-hash",
            f"{row.path} has {real.size} bytes, RECORD says {row.size}",
            row.path,
            {"recorded": row.size, "found": real.size},
        )
