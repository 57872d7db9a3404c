"""A wheel written from another one: what did not change is copied as compressed bytes, RECORD comes last.

The archive appears whole under its name or not at all: it is written beside its target, flushed to the disk and
renamed. The same input gives the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import struct
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from wheelfix.archive.directory import DEFLATED, STORED, UNIX, UTF8, Entry, read_directory
from wheelfix.archive.record import Row, encoded, format_record
from wheelfix.model.limits import Limits

_PIECE = 1 << 20
_MOST32 = 0xFFFFFFFF
_MOST16 = 0xFFFF
_EPOCH = 315532800  # 1980-01-01, the first time that a ZIP archive can hold
# Below this size the better of libdeflate and zlib is kept: on one small object in ten libdeflate loses over 1 %.
_TRY_BOTH = 1 << 20


@dataclass(frozen=True, slots=True)
class NewMember:
    """A member that the source does not hold: its bytes and its Unix permission bits."""

    data: bytes
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different in the new archive; every name is a member's name in the source, or a new one.

    ``replaced`` gives members new bytes and keeps their place, time and mode; ``renamed`` maps old names to new
    ones; ``modes`` sets permission bits.
    """

    replaced: Mapping[str, bytes] = field(default_factory=dict)
    added: Mapping[str, NewMember] = field(default_factory=dict)
    removed: Collection[str] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    modes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Packed:
    """Bytes as they stand in an archive."""

    data: bytes
    method: int
    crc: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class _Item:
    """One member of the new archive: copied from the source (``entry`` without ``packed``) or with bytes of its own."""

    name: str
    raw_name: bytes
    flags: int
    external: int
    made_on: int
    date_time: int
    entry: Entry | None
    packed: _Packed | None


def write_wheel(
    source: Path,
    target: Path,
    changes: Changes,
    *,
    dist_info: str,
    hashes: Mapping[str, str],
    level: int | None = None,
    jobs: int = 1,
    epoch: int | None = None,
    directory: Sequence[Entry] | None = None,
) -> None:
    """Write ``source`` with ``changes`` to ``target``; ``directory`` is that of the source, where it is known.

    ``hashes`` are the SHA-256 digests of the source's members as RECORD writes them (they were computed when the
    wheel was read); ``level`` is zlib's, 0 for stored members; ``epoch`` the time of new members in seconds
    (SOURCE_DATE_EPOCH). Raises ``OSError`` where something cannot be read or written, and leaves nothing behind.
    """
    record = f"{dist_info}/RECORD"
    with source.open("rb") as file:
        if directory is None:
            directory, _ = read_directory(file, Limits())
        entries = {e.name: e for e in directory}
        packed = _pack_all({**changes.replaced, **{n: m.data for n, m in changes.added.items()}}, level, jobs)
        items = _items(entries, changes, packed, dist_info, _dos_time(epoch))
        digests = {i.name: _row(i, hashes) for i in items if not i.name.endswith("/")}
        text = format_record((*digests.values(), Row(record))).encode()
        old = entries.get(record)
        items.append(
            _Item(
                record,
                record.encode(),
                old.flags & UTF8 if old else _utf8(record),
                old.external if old else _external(0o644),
                old.made_on if old else UNIX,
                old.date_time if old else _dos_time(epoch),
                None,
                _pack(text, level),
            )
        )
        _write(file, target, items)


def _items(
    entries: Mapping[str, Entry],
    changes: Changes,
    packed: Mapping[str, _Packed],
    dist_info: str,
    new_time: int,
) -> list[_Item]:
    """The members in their order: those of the source, new ones before the trailing metadata, RECORD left out."""
    record = f"{dist_info}/RECORD"
    kept: list[_Item] = []
    for name, entry in entries.items():
        if name in changes.removed or name in changes.added or name == record:
            continue
        new_name = changes.renamed.get(name, name)
        mode = changes.modes.get(name)
        external = entry.external
        if mode is not None:
            external = (external & 0xFFFF) | (stat.S_IFREG | mode) << 16
        kept.append(
            _Item(
                new_name,
                entry.raw_name if new_name == name else new_name.encode(),
                entry.flags & UTF8 if new_name == name else _utf8(new_name),
                external,
                UNIX if mode is not None else entry.made_on,
                entry.date_time,
                entry,
                packed.get(name),
            )
        )
    fresh = [
        _Item(n, n.encode(), _utf8(n), _external(m.mode), UNIX, new_time, None, packed[n])
        for n, m in changes.added.items()
    ]
    tail = len(kept)
    while tail and kept[tail - 1].name.startswith(f"{dist_info}/"):
        tail -= 1
    own = [i for i in fresh if i.name.startswith(f"{dist_info}/")]
    others = [i for i in fresh if not i.name.startswith(f"{dist_info}/")]
    return [*kept[:tail], *others, *kept[tail:], *own]


def _row(item: _Item, hashes: Mapping[str, str]) -> Row:
    if item.packed is not None:
        return Row(item.name, "sha256", item.packed.sha256, item.packed.size)
    entry = item.entry
    if entry is None:
        return Row(item.name)
    return Row(item.name, "sha256", hashes[entry.name], entry.size)


def _pack_all(contents: Mapping[str, bytes], level: int | None, jobs: int) -> dict[str, _Packed]:
    """Compress on all cores, the largest first: libdeflate, zlib and hashlib release the GIL."""
    order = sorted(contents, key=lambda n: -len(contents[n]))
    if jobs <= 1 or len(order) < 2:
        return {n: _pack(contents[n], level) for n in order}
    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip(order, pool.map(lambda n: _pack(contents[n], level), order), strict=True))


def _pack(data: bytes, level: int | None) -> _Packed:
    import deflate

    digest = encoded(hashlib.sha256(data).digest())
    crc = zlib.crc32(data)
    wanted = 6 if level is None or level < 0 else level
    best = data
    method = STORED
    if wanted and data:
        best, method = bytes(deflate.deflate_compress(data, wanted)), DEFLATED
        if len(data) < _TRY_BOTH:
            other = zlib.compressobj(wanted, zlib.DEFLATED, -15)
            plain = other.compress(data) + other.flush()
            best = min(best, plain, key=len)
        if len(best) >= len(data):
            best, method = data, STORED
    return _Packed(best, method, crc, len(data), digest)


def _utf8(name: str) -> int:
    return 0 if name.isascii() else UTF8


def _external(mode: int) -> int:
    return (stat.S_IFREG | mode) << 16


def _dos_time(epoch: int | None) -> int:
    """Seconds since 1970 as a ZIP archive writes them (date in the upper half), the first possible time by default."""
    import datetime

    moment = datetime.datetime.fromtimestamp(max(epoch or 0, _EPOCH), datetime.timezone.utc)
    date = (min(moment.year, 2107) - 1980) << 9 | moment.month << 5 | moment.day
    return date << 16 | moment.hour << 11 | moment.minute << 5 | moment.second // 2


def _write(source: BinaryIO, target: Path, items: list[_Item]) -> None:
    handle, scratch = tempfile.mkstemp(prefix=".wheelfix-", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            directory = [_member(source, out, item) for item in items]
            _finish(out, directory)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(scratch, 0o666 & ~_umask())
        os.replace(scratch, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _member(source: BinaryIO, out: BinaryIO, item: _Item) -> bytes:
    """Write one member with its local header; its entry of the central directory."""
    offset = out.tell()
    if item.packed is not None:
        method, crc = item.packed.method, item.packed.crc
        compressed, size = len(item.packed.data), item.packed.size
    elif item.entry is not None:
        method, crc = item.entry.method, item.entry.crc
        compressed, size = item.entry.compressed, item.entry.size
    else:
        method, crc, compressed, size = STORED, 0, 0, 0
    large = compressed >= _MOST32 or size >= _MOST32
    extra = struct.pack("<HHQQ", 1, 16, size, compressed) if large else b""
    common = (
        45 if large else 20,
        item.flags,
        method,
        item.date_time & _MOST16,
        item.date_time >> 16,
        crc,
        _MOST32 if large else compressed,
        _MOST32 if large else size,
    )
    out.write(struct.pack("<4s5H3L2H", b"PK\3\4", *common, len(item.raw_name), len(extra)))
    out.write(item.raw_name + extra)
    if item.packed is not None:
        out.write(item.packed.data)
    elif item.entry is not None:
        for piece in _raw(source, item.entry):
            out.write(piece)
    fields = [size, compressed] if large else []
    if offset >= _MOST32:
        fields.append(offset)
    central = struct.pack(f"<HH{len(fields)}Q", 1, 8 * len(fields), *fields) if fields else b""
    version = 45 if central else 20
    return (
        struct.pack(
            "<4s6H3L5H2L",
            b"PK\1\2",
            item.made_on << 8 | version,
            version,
            *common[1:],
            len(item.raw_name),
            len(central),
            0,
            0,
            0,
            item.external,
            min(offset, _MOST32),
        )
        + item.raw_name
        + central
    )


def _raw(source: BinaryIO, entry: Entry) -> Iterator[bytes]:
    """The compressed bytes of a member as they stand in the source."""
    if entry.data_offset is None:
        raise OSError(f"the bytes of {entry.name} are not in the archive")
    source.seek(entry.data_offset)
    left = entry.compressed
    while left:
        piece = source.read(min(_PIECE, left))
        if not piece:
            raise OSError(f"the archive ends inside {entry.name}")
        left -= len(piece)
        yield piece


def _finish(out: BinaryIO, directory: list[bytes]) -> None:
    """The central directory and its end records (APPNOTE 4.3.12 to 4.3.16)."""
    start = out.tell()
    for entry in directory:
        out.write(entry)
    length = out.tell() - start
    count = len(directory)
    if count >= _MOST16 or length >= _MOST32 or start >= _MOST32:
        end64 = out.tell()
        out.write(struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, length, start))
        out.write(struct.pack("<4sLQL", b"PK\6\7", 0, end64, 1))
    out.write(
        struct.pack(
            "<4s4H2LH",
            b"PK\5\6",
            0,
            0,
            min(count, _MOST16),
            min(count, _MOST16),
            min(length, _MOST32),
            min(start, _MOST32),
            0,
        )
    )
