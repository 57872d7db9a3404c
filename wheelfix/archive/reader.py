"""A wheel, read whole: every member inflated, hashed and inspected once, on all cores.

The bytes pass in pieces; those of ELF members are handed to what ``hold`` makes, which keeps what ``inspect``
needs of them. LIEF never
releases the GIL, so the work is shared between forked processes that open the archive themselves, and only
where there is enough of it: starting them costs more than a small wheel.
"""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Protocol

from isal import isal_zlib

from wheelfix.archive.directory import (
    DEFLATED,
    ENCRYPTED,
    PATCH,
    STORED,
    STRONGLY_ENCRYPTED,
    Entry,
    read_directory,
)
from wheelfix.archive.limits import Unreadable
from wheelfix.archive.metadata import (
    Metadata,
    disagreements,
    dist_info_folders,
    parse_file_name,
    parse_metadata,
)
from wheelfix.archive.record import Digest, compare, encoded, parse_record
from wheelfix.model.elf import ElfFacts
from wheelfix.model.finding import Fault
from wheelfix.model.limits import Limits
from wheelfix.model.wheel import Content, Member, Scheme, WheelFacts

__all__ = ["Hold", "Inspect", "Inspected", "Limits", "Unreadable", "read_member", "read_wheel"]

_INFLATE_ERROR: type[Exception] = isal_zlib.error  # type: ignore[assignment]  # its stub says instance
_OTHER_HASH = re.compile(r",(?!sha256=)\w+=")
_LIBRARY_NAME = re.compile(rb"[\w.+-]+\.so(?:\.\d+)*")
_PIECE = 1 << 18  # inflated bytes that are hashed while they are still in the processor's cache
_INPUT = 1 << 16  # compressed bytes: what an inflater does not take at once is copied for the next call
_WORTH_A_FORK = 12 << 20  # inflated bytes: below, one process is done before two have started
_BATCH = 8 << 20  # inflated bytes of small members that travel together
_NOTHING_KNOWN: Mapping[str, Member] = MappingProxyType({})
_SCHEMES: dict[str, Scheme] = {
    "purelib": "purelib",
    "platlib": "platlib",
    "scripts": "scripts",
    "data": "data",
    "headers": "headers",
}


@dataclass(frozen=True, slots=True)
class Inspected:
    """What the bytes of one member are; made by the ``inspect`` that the caller hands in."""

    content: Content = "other"
    elf: ElfFacts | None = None
    faults: tuple[Fault, ...] = ()
    rest: Any = None  # what ``settle`` needs


class Held(Protocol):
    """What is kept of a member while its pieces pass by."""

    def feed(self, piece: bytes, /) -> None: ...
    def data(self) -> Any: ...


#: Makes what keeps a member of so many bytes.
Hold = Callable[[int], Held]

#: Called with a member's name and what was kept of it; None asks for the same again with all its bytes.
Inspect = Callable[[str, Any], Inspected | None]

#: Called with each outcome of ``Inspect``, always in the process that reads the wheel.
Settle = Callable[[Inspected], Inspected]


class _Whole:
    """Keeps every byte."""

    def __init__(self, size: int) -> None:
        self._pieces: list[bytes] = []
        self.feed = self._pieces.append

    def data(self) -> bytes:
        return self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What reading one member gave."""

    digest: Digest | None
    inspected: Inspected
    faults: tuple[Fault, ...] = ()
    ctypes_names: tuple[str, ...] = ()


def read_wheel(
    path: Path,
    *,
    inspect: Inspect,
    settle: Settle | None = None,
    hold: Hold = _Whole,
    jobs: int = 1,
    limits: Limits | None = None,
    meanwhile: Callable[[bool], None] | None = None,
    known: Mapping[str, Member] = _NOTHING_KNOWN,
) -> WheelFacts:
    """All facts of one wheel; ``inspect(name, data)`` is called with every member that can be an ELF object.

    ``data`` is what ``hold`` kept: by default all bytes. What each inspection gave passes through ``settle`` here:
    what is costly to start belongs there, since it starts once while other processes read. ``meanwhile`` is called
    while they do, and told whether a name looks like that of an ELF object.
    ``known`` holds members by name whose bytes were read before, and are not read again.
    Raises ``Unreadable`` where the file is no wheel at all; whatever is wrong with a wheel that can be read
    is among its faults, and never hides the rest.
    """
    limits = limits or Limits()
    # First: where nothing is there (the shell hands on a pattern that matches nothing), the name is not what is wrong.
    refuse_what_is_no_file(path)
    file_name = parse_file_name(path.name)
    try:
        with path.open("rb") as file:
            entries, faults = read_directory(file, limits)
            size = file.seek(0, 2)
            files = _last_of_each(entries)
            folders = dist_info_folders(list(files))
            texts = {
                name: _text(file, files.get(f"{folders[0]}/{name}") if folders else None, limits)
                for name in ("METADATA", "WHEEL", "RECORD")
            }
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    wanted, too_much = _within(limits, (e for n, e in files.items() if n not in known))
    task = _Task(path, _algorithms(texts["RECORD"] or ""), inspect, hold, limits)
    with _reading(task, wanted, jobs, settle) as read_all:
        rows, row_faults = parse_record(texts["RECORD"] or "")
        metadata = parse_metadata(texts["METADATA"], texts["WHEEL"])
        if meanwhile is not None:
            meanwhile(any(_named_like_elf(e.name) for e in wanted))
        seen = read_all()
    dist_info = folders[0] if folders else None
    members = tuple(_member(e, known.get(n) or seen.get(n), metadata) for n, e in files.items())
    all_faults = [*faults, *too_much]
    for name, one in seen.items():
        place = _installed(name, metadata)[0]
        all_faults += [_placed(f, place) for f in (*one.faults, *one.inspected.faults)]
    held = [n.partition("/")[2] for n in files if dist_info and n.startswith(dist_info + "/")]
    all_faults += disagreements(file_name, folders, held, metadata)
    if dist_info is not None and "RECORD" in held:
        all_faults += row_faults
        digests = {n: Digest(m.size, {"sha256": m.sha256}) if m.sha256 else None for n, m in known.items()}
        digests |= {n: one.digest for n, one in seen.items()}
        found = {n: digests.get(n) for n, e in files.items() if not e.is_folder}
        all_faults += compare(rows, found, dist_info)
    return WheelFacts(
        filename=path.name,
        name=metadata.name or file_name.name,
        version=metadata.version or file_name.version,
        build=file_name.build,
        tags=file_name.tags,
        wheel_tags=metadata.tags,
        root_is_purelib=metadata.root_is_purelib,
        dist_info=dist_info,
        requires_dist=metadata.requires_dist,
        provides_extra=metadata.provides_extra,
        members=members,
        faults=tuple(all_faults),
        file_size=size,
    )


def refuse_what_is_no_file(path: Path) -> None:
    """Raises ``Unreadable`` for what would make a reader wait (a pipe) or never end (a device), and what is not there."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise Unreadable(getattr(error, "strerror", None) or str(error)) from error
    if not stat.S_ISREG(mode):
        raise Unreadable("it is no file" if not stat.S_ISDIR(mode) else "it is a folder")


def read_member(file: BinaryIO, entry: Entry, limits: Limits | None = None) -> bytes | None:
    """The inflated bytes of one member, None where they cannot be had or are not what the entry says."""
    limits = limits or Limits()
    if entry.size > limits.member or _refusal(entry) is not None:
        return None
    try:
        data = b"".join(_pieces(file, entry))
    except (OSError, _INFLATE_ERROR):
        return None
    return data if len(data) == entry.size and isal_zlib.crc32(data) == entry.crc else None


def _last_of_each(entries: Sequence[Entry]) -> dict[str, Entry]:
    """The entry that zipfile (and so pip) would install under each name: the last one."""
    return {e.name: e for e in entries}


def _text(file: BinaryIO, entry: Entry | None, limits: Limits) -> str | None:
    if entry is None or entry.size > limits.metadata:
        return None
    data = read_member(file, entry, limits)
    return None if data is None else data.decode("utf-8", "replace")


def _installed(name: str, metadata: Metadata) -> tuple[str, Scheme]:
    """Where an installer puts a member, and by which scheme (binary distribution format, "Spreading")."""
    top, _, rest = name.partition("/")
    if top.endswith(".data"):
        key, _, inner = rest.partition("/")
        scheme = _SCHEMES.get(key)
        if scheme in ("purelib", "platlib"):
            return inner, scheme
        if scheme is not None:
            return f"{scheme}:{inner}", scheme
    return name, "purelib" if metadata.root_is_purelib else "platlib"


def _placed(fault: Fault, place: str) -> Fault:
    return fault if fault.member is not None else Fault(fault.rule, fault.message, place, fault.evidence)


def _member(entry: Entry, seen: _Seen | Member | None, metadata: Metadata) -> Member:
    path, scheme = _installed(entry.name, metadata)
    if isinstance(seen, Member):
        return replace(seen, path=path, scheme=scheme, mode=entry.mode, compressed=entry.compressed)
    return Member(
        name=entry.name,
        path=path,
        scheme=scheme,
        size=entry.size,
        compressed=entry.compressed,
        sha256=seen.digest.by_algorithm["sha256"] if seen and seen.digest else "",
        mode=entry.mode,
        content="directory" if entry.is_folder else seen.inspected.content if seen else "other",
        elf=seen.inspected.elf if seen else None,
        ctypes_names=seen.ctypes_names if seen else (),
    )


def _algorithms(record: str) -> dict[str, str]:
    """The hash algorithms that RECORD names beside SHA-256, by path."""
    if _OTHER_HASH.search(record) is None:
        return {}
    rows, _ = parse_record(record)
    return {r.path: r.algorithm for r in rows if r.algorithm in hashlib.algorithms_guaranteed}


def _within(limits: Limits, entries: Iterable[Entry]) -> tuple[list[Entry], list[Fault]]:
    """The files that are read, in the order of the archive, and those that are too large for it or in no file."""
    faults: list[Fault] = []
    wanted: list[Entry] = []
    total = 0
    for entry in entries:
        if entry.is_folder:
            faults += _in_folder(entry)
            continue
        total += entry.size
        if entry.size > limits.member or total > limits.total:
            faults.append(
                Fault(
                    "archive-limit",
                    f"{entry.name} claims {entry.size} bytes, {total} with all before it: not read (--limit member=N, total=N)",
                    entry.name,
                    {"size": entry.size, "total": total},
                )
            )
            total -= entry.size
        else:
            wanted.append(entry)
    return wanted, faults


@contextmanager
def _reading(
    task: _Task, wanted: Sequence[Entry], jobs: int, settle: Settle | None
) -> Iterator[Callable[[], dict[str, _Seen]]]:
    """Starts to read files, and gives what waits for the end: each file's bytes hashed and inspected, by name."""
    batches = list(_batches(wanted))
    if jobs <= 1 or len(batches) < 2 or sum(e.size for e in wanted) < _WORTH_A_FORK:
        yield lambda: dict(_settled((task(b) for b in batches), settle))
        return
    import multiprocessing

    # The largest first, so that no process is left alone with a large one at the end.
    order = sorted(batches, key=lambda b: -sum(e.size for e in b))
    with multiprocessing.get_context("fork").Pool(min(jobs, len(batches)), _adopt, (task,)) as pool:
        results = pool.imap_unordered(_work, order)

        def gathered() -> dict[str, _Seen]:
            seen = dict(_settled(results, settle))
            return {e.name: seen[e.name] for e in wanted}

        yield gathered


def _settled(
    results: Iterable[Iterable[tuple[str, _Seen]]], settle: Settle | None
) -> Iterator[tuple[str, _Seen]]:
    """Each member's name and what reading it gave, as soon as its batch is there."""
    for name, one in (pair for result in results for pair in result):
        if settle is None or one.inspected.rest is None:
            yield name, one
        else:
            yield name, replace(one, inspected=settle(one.inspected))


def _batches(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    batch: list[Entry] = []
    weight = 0
    for entry in entries:
        if batch and weight + entry.size > _BATCH:
            yield batch
            batch, weight = [], 0
        batch.append(entry)
        weight += entry.size
    if batch:
        yield batch


@dataclass(frozen=True, slots=True)
class _Task:
    """Reads batches of members in whichever process it is called."""

    path: Path
    algorithms: dict[str, str]
    inspect: Inspect
    hold: Hold
    limits: Limits

    def __call__(self, batch: Sequence[Entry]) -> list[tuple[str, _Seen]]:
        with self.path.open("rb") as file:
            return [(e.name, _read(file, e, self)) for e in batch]


_task: _Task | None = None  # of this worker process, inherited at the fork


def _adopt(task: _Task) -> None:
    global _task
    _task = task


def _work(batch: Sequence[Entry]) -> list[tuple[str, _Seen]]:
    return _task(batch) if _task is not None else []


def _read(file: BinaryIO, entry: Entry, task: _Task) -> _Seen:
    limits = task.limits
    refusal = _refusal(entry)
    if refusal is not None:
        return _Seen(None, Inspected(), (refusal,))
    hashes: dict[str, Any] = {
        name: hashlib.new(name) for name in {"sha256", task.algorithms.get(entry.name, "sha256")}
    }
    held: Held | None = None
    size = crc = 0
    text = True
    source: list[bytes] | None = [] if entry.name.endswith(".py") and entry.size <= limits.metadata else None
    try:
        for piece in _pieces(file, entry):
            if size == 0 and (piece.startswith(b"\x7fELF") or _named_like_elf(entry.name)):
                held = task.hold(entry.size)
            if source is not None:
                source.append(piece)
            if size == 0:
                text = _looks_like_text(piece[:4096])
            size += len(piece)
            if size > entry.size:
                break
            crc = isal_zlib.crc32(piece, crc)
            for one in hashes.values():
                one.update(piece)
            if held is not None:
                held.feed(piece)
    except (_INFLATE_ERROR, OSError) as error:
        return _Seen(None, Inspected(), (_broken(entry, f"cannot be inflated ({error})"),))
    if size != entry.size:
        how = "more" if size > entry.size else f"only {size} bytes"
        broken = _broken(entry, f"inflates to {how}; the directory says {entry.size}")
        return _Seen(None, Inspected(), (broken,))
    if crc != entry.crc:
        return _Seen(None, Inspected(), (_broken(entry, "does not have the CRC that the directory says"),))
    faults = []
    if size >= limits.ratio_from and size > limits.ratio * max(entry.compressed, 1):
        ratio = size // max(entry.compressed, 1)
        faults.append(
            Fault(
                "zip-ratio",
                f"{entry.name} inflates {ratio} times, from {entry.compressed} to {size} bytes",
                entry.name,
                {"ratio": ratio, "size": size, "compressed": entry.compressed},
            )
        )
    digest = Digest(
        size,
        {
            name: encoded(h.digest(32) if name.startswith("shake") else h.digest())
            for name, h in hashes.items()
        },
    )
    inspected: Inspected | None = Inspected("text" if text else "other")
    if held is not None or (size == 0 and _named_like_elf(entry.name)):
        inspected = task.inspect(entry.name, held.data() if held is not None else b"")
        if inspected is None and size <= limits.held:
            del held
            inspected = task.inspect(entry.name, b"".join(_pieces(file, entry)))
    if inspected is None:
        message = f"reading {entry.name} would take more than {limits.held} bytes of memory (--limit held=N)"
        inspected = Inspected("elf", None, (Fault("elf-limit", message, evidence={"limit": limits.held}),))
    return _Seen(digest, inspected, tuple(faults), _ctypes_names(b"".join(source or ())))


def _ctypes_names(source: bytes) -> tuple[str, ...]:
    """Library names in a Python source that speaks of ctypes: what it may open when it is imported."""
    if b"ctypes" not in source and b"CDLL" not in source:
        return ()
    return tuple(sorted({m.decode("ascii") for m in _LIBRARY_NAME.findall(source)}))


def _refusal(entry: Entry) -> Fault | None:
    """Why a member's bytes cannot be had, or None."""
    if entry.flags & (ENCRYPTED | STRONGLY_ENCRYPTED):
        return Fault("zip-unsupported", f"{entry.name} is encrypted; installers cannot read it", entry.name)
    if entry.flags & PATCH:
        return Fault("zip-unsupported", f"{entry.name} is a patch of another file, not a file", entry.name)
    if entry.method not in (STORED, DEFLATED):
        return Fault(
            "zip-unsupported",
            f"{entry.name} is compressed by method {entry.method}; installers read stored and deflated only",
            entry.name,
            {"method": entry.method},
        )
    if entry.data_offset is None:
        return Fault("zip-crc", f"the bytes of {entry.name} are not in the file", entry.name)
    return None


def _in_folder(entry: Entry) -> Iterator[Fault]:
    """What is wrong with an entry for a folder: it is made by its name alone, and nobody looks at what it holds."""
    if entry.size:
        message = (
            f"{entry.name} is a folder by its name and holds {entry.size} bytes, which no installer writes"
        )
        yield Fault("zip-unsupported", message, entry.name, {"size": entry.size})
    elif entry.method not in (STORED, DEFLATED) or entry.flags & (ENCRYPTED | STRONGLY_ENCRYPTED | PATCH):
        yield from filter(None, [_refusal(entry)])


def _broken(entry: Entry, how: str) -> Fault:
    return Fault("zip-crc", f"{entry.name} {how}", entry.name)


def _pieces(file: BinaryIO, entry: Entry) -> Iterator[bytes]:
    """The inflated bytes in pieces of at most ``_PIECE``, never more than one beyond the announced size."""
    file.seek(entry.data_offset or 0)
    left = entry.compressed
    if entry.method == STORED:
        while left:
            piece = file.read(min(_PIECE, left))
            if not piece:
                return
            left -= len(piece)
            yield piece
        return
    inflater = isal_zlib.decompressobj(-15)
    produced = 0
    pending = b""
    while not inflater.eof and produced <= entry.size:
        if not pending:
            pending = file.read(min(_INPUT, left))
            left -= len(pending)
        piece = inflater.decompress(pending, _PIECE)
        pending = inflater.unconsumed_tail
        produced += len(piece)
        if piece:
            yield piece
        elif not pending and not left:
            return


def _named_like_elf(name: str) -> bool:
    """A shared library by its name: libx.so, libx.so.1.2 (what stands there is looked at, whatever it is)."""
    base = name.rpartition("/")[2]
    head, dot, tail = base.partition(".so")
    return bool(head and dot) and (not tail or tail.replace(".", "").isdigit())


def _looks_like_text(head: bytes) -> bool:
    if b"\0" in head:
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.start >= len(head) - 3
    return True
