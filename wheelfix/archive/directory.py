"""The directory of a ZIP archive, held against its local headers.

Own code and not ``zipfile``, because the gate needs what that module hides: local headers that disagree
with the central directory, entries that only one of the two lists, bytes between entries. The layout is
that of PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.3.
"""

from __future__ import annotations

import os
import re
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from wheelfix.archive.limits import Unreadable
from wheelfix.model.finding import Fault
from wheelfix.model.limits import Limits

STORED, DEFLATED = 0, 8
ENCRYPTED, DESCRIPTOR, PATCH, STRONGLY_ENCRYPTED, UTF8 = 0x1, 0x8, 0x20, 0x40, 0x800
UNIX = 3  # "version made by", upper byte

_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_LOCAL_MAGIC = b"PK\3\4"
_MOST = 0xFFFFFFFF
_EXTRA = 64  # bytes of extra fields that are read with a local header; most have fewer
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the central directory. ``data_offset`` is where its bytes begin, None where no local header is."""

    name: str
    raw_name: bytes
    flags: int
    method: int
    crc: int
    compressed: int
    size: int
    offset: int
    data_offset: int | None
    made_on: int
    external: int
    date_time: int
    extra: bytes

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")

    @property
    def mode(self) -> int | None:
        """Unix permission bits, None where the archive was not made on Unix or holds none."""
        bits = self.external >> 16
        return stat.S_IMODE(bits) if self.made_on == UNIX and bits else None

    @property
    def is_symlink(self) -> bool:
        return self.made_on == UNIX and stat.S_ISLNK(self.external >> 16)


def read_directory(file: BinaryIO, limits: Limits) -> tuple[tuple[Entry, ...], tuple[Fault, ...]]:
    """Every entry of the central directory, in its order, and what is wrong with the archive's structure.

    Raises ``Unreadable`` where there is no central directory to read.
    """
    size = file.seek(0, 2)
    start, count, shift, faults = _central(file, size, limits)
    entries: list[Entry] = []
    file.seek(start)
    for _ in range(count):
        head = file.read(_CENTRAL.size)
        if len(head) < _CENTRAL.size or not head.startswith(b"PK\1\2"):
            faults.append(_disagree("the central directory ends before the number of entries it announces"))
            break
        fields = _CENTRAL.unpack(head)
        names = file.read(fields[10] + fields[11] + fields[12])
        raw, extra = names[: fields[10]], names[fields[10] : fields[10] + fields[11]]
        entry, found = _entry(file, fields, raw, extra, shift, size)
        faults += found
        entries.append(entry)
    faults += _names(entries, limits)
    faults += _gaps(file, entries, start)
    return tuple(entries), tuple(faults)


def _disagree(message: str, member: str | None = None, **evidence: object) -> Fault:
    return Fault("zip-local-central", message, member, evidence)


def _central(file: BinaryIO, size: int, limits: Limits) -> tuple[int, int, int, list[Fault]]:
    """Where the central directory begins, its number of entries, and by how much all offsets are shifted."""
    faults: list[Fault] = []
    tail_at = max(0, size - 0xFFFF - _END.size)
    file.seek(tail_at)
    tail = file.read()
    at = tail.rfind(b"PK\5\6")
    while at >= 0:
        if at + _END.size <= len(tail):
            comment = _END.unpack_from(tail, at)[7]
            if at + _END.size + comment <= len(tail):
                break
        at = tail.rfind(b"PK\5\6", 0, at)
    if at < 0:
        raise Unreadable("it is no ZIP archive (no end of central directory)")
    _, disk, _, _, count, length, offset, comment = _END.unpack_from(tail, at)
    end = tail_at + at
    if at + _END.size + comment < len(tail):
        extra = len(tail) - at - _END.size - comment
        faults.append(_disagree(f"{extra} bytes stand behind the end of the archive", bytes=extra))
    locator = at - _LOCATOR64.size
    if locator >= 0 and tail.startswith(b"PK\6\7", locator):
        _, _, where, _ = _LOCATOR64.unpack_from(tail, locator)
        if where + _END64.size > size:
            raise Unreadable("its ZIP64 end of central directory lies outside the file")
        file.seek(where)
        fields = _END64.unpack(file.read(_END64.size))
        if fields[0] != b"PK\6\6":
            raise Unreadable("its ZIP64 end of central directory is damaged")
        big = {"count": fields[7], "length": fields[8], "offset": fields[9]}
        for what, small, most in (
            ("count", count, 0xFFFF),
            ("length", length, _MOST),
            ("offset", offset, _MOST),
        ):
            if small not in (most, big[what]):
                faults.append(
                    _disagree(f"the ZIP64 and the plain end record differ in the directory's {what}")
                )
        count, length, offset = fields[7], fields[8], fields[9]
        end = where
    elif disk:
        raise Unreadable("it is one part of an archive that spans several files")
    if count > limits.members:
        raise Unreadable(
            f"it announces {count} entries; more than {limits.members} are not read (--limit members=N)"
        )
    shift = end - length - offset
    if shift < 0:
        raise Unreadable("its central directory lies outside the file")
    if shift:
        faults.append(_disagree(f"{shift} bytes stand before the archive", bytes=shift))
    return offset + shift, count, shift, faults


def _entry(
    file: BinaryIO, fields: tuple[int, ...], raw: bytes, extra: bytes, shift: int, size: int
) -> tuple[Entry, list[Fault]]:
    _, made, _, flags, method, time, date, crc, packed, plain = fields[:10]
    external, offset = fields[15], fields[16]
    name = _decoded(raw, flags)
    plain, packed, offset = _zip64(extra, plain, packed, offset)
    offset += shift
    faults: list[Fault] = []
    if (damage := _damage(extra, fields[9], fields[8], fields[16])) is not None:
        faults.append(_disagree(f"{name}: its extra field {damage}, so that pip refuses the archive", name))
    data_offset = None
    # Beside the central directory, which is read in pieces of its own.
    local = os.pread(file.fileno(), _LOCAL.size + len(raw) + _EXTRA, min(offset, size))
    if len(local) < _LOCAL.size or not local.startswith(_LOCAL_MAGIC):
        faults.append(_disagree(f"{name} has no local header at offset {offset}", name, offset=offset))
    else:
        _, _, l_flags, l_method, _, _, l_crc, l_packed, l_plain, n_name, n_extra = _LOCAL.unpack_from(local)
        data_offset = offset + _LOCAL.size + n_name + n_extra
        if data_offset - offset > len(local):
            local = os.pread(file.fileno(), data_offset - offset, offset)
        l_raw, l_extra = local[_LOCAL.size :][:n_name], local[_LOCAL.size + n_name :][:n_extra]
        l_plain, l_packed, _ = _zip64(l_extra, l_plain, l_packed, 0)
        pairs = [("name", raw, l_raw), ("method", method, l_method)]
        pairs.append(("encryption", flags & ENCRYPTED, l_flags & ENCRYPTED))
        if not l_flags & DESCRIPTOR:
            pairs += [("CRC", crc, l_crc), ("size", plain, l_plain), ("packed size", packed, l_packed)]
        differ = [what for what, ours, theirs in pairs if ours != theirs]
        if differ:
            faults.append(
                _disagree(
                    f"{name}: the local header and the central directory differ in {', '.join(differ)}",
                    name,
                    differ=differ,
                    offset=offset,
                )
            )
        if data_offset + packed > size:
            faults.append(_disagree(f"{name} ends behind the end of the file", name, offset=offset))
            data_offset = None
    entry = Entry(
        name=name,
        raw_name=raw,
        flags=flags,
        method=method,
        crc=crc,
        compressed=packed,
        size=plain,
        offset=offset,
        data_offset=data_offset,
        made_on=made >> 8,
        external=external,
        date_time=date << 16 | time,
        extra=extra,
    )
    return entry, faults


def _decoded(raw: bytes, flags: int) -> str:
    """The name as zipfile reads it: UTF-8 where the flag says so, else CP437 (APPNOTE appendix D)."""
    if flags & UTF8:
        return raw.decode("utf-8", "backslashreplace")
    return raw.decode("cp437")


def _zip64(extra: bytes, plain: int, packed: int, offset: int) -> tuple[int, int, int]:
    """Sizes and offset with those that the ZIP64 extra field (id 1) holds put in place."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            body = extra[at + 4 : at + 4 + length]
            values = list(struct.unpack(f"<{len(body) // 8}Q", body[: len(body) // 8 * 8]))
            if plain == _MOST and values:
                plain = values.pop(0)
            if packed == _MOST and values:
                packed = values.pop(0)
            if offset == _MOST and values:
                offset = values.pop(0)
            break
        at += 4 + length
    return plain, packed, offset


def _damage(extra: bytes, plain: int, packed: int, offset: int) -> str | None:
    """Why ``zipfile`` refuses the extra field of an entry of the central directory, None where it does not."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if at + 4 + length > len(extra):
            return f"ends inside its part {kind:#06x}"
        if kind == 1:
            wanted = 8 * sum(value in (_MOST, (1 << 64) - 1) for value in (plain, packed, offset))
            if length < wanted:
                return f"holds {length} bytes of ZIP64 sizes and offsets instead of {wanted}"
        at += 4 + length
    return None


def _names(entries: list[Entry], limits: Limits) -> Iterator[Fault]:
    seen: dict[str, Entry] = {}
    for entry in entries:
        name = entry.name
        if len(entry.raw_name) > limits.name_length:
            yield Fault(
                "archive-limit",
                f"a member's name has {len(entry.raw_name)} bytes (--limit name-length=N)",
                name[:80],
            )
        reason = unsafe(name)
        if entry.flags & UTF8 and reason is None:
            try:
                entry.raw_name.decode("utf-8")
            except UnicodeDecodeError:
                reason = "is not UTF-8 although it says so"
        if reason is not None:
            yield Fault("zip-slip", f"the member name {name!r} {reason}", name, {"reason": reason})
        if entry.is_symlink:
            yield Fault(
                "zip-symlink",
                f"{name} is stored as a symbolic link; installers write its target's name as a text file",
                name,
            )
        other = seen.get(name)
        if other is not None:
            same = other.crc == entry.crc and other.size == entry.size
            what = "the same content" if same else "different content"
            yield Fault(
                "zip-duplicate",
                f"{name} stands twice in the archive, with {what}: installers disagree on which one wins",
                name,
                {"crcs": [f"{other.crc:08x}", f"{entry.crc:08x}"]},
            )
        seen[name] = entry


def unsafe(name: str) -> str | None:
    """Why a member name cannot be installed inside its target, or None where it can."""
    if "\0" in name:
        return "holds a NUL character"
    if "\\" in name:
        return "holds a backslash, a path separator on Windows"
    if name.startswith("/"):
        return "is an absolute path"
    if _DRIVE.match(name):
        return "begins with a drive letter"
    if ".." in name.split("/"):
        return "climbs out of the target with `..`"
    if not name.strip("/"):
        return "is empty"
    return None


def _gaps(file: BinaryIO, entries: list[Entry], directory: int) -> Iterator[Fault]:
    """Entries that overlap, and bytes between them that the central directory does not know."""
    spans = sorted(((e.offset, e) for e in entries if e.data_offset is not None), key=lambda s: s[0])
    reached = 0
    last = "the start of the archive"
    for offset, entry in [*spans, (directory, None)]:
        if offset < reached:
            yield _disagree(
                f"{entry.name if entry else 'the central directory'} overlaps {last} at offset {offset}",
                entry.name if entry else None,
                offset=offset,
            )
        elif offset > reached:
            file.seek(reached)
            gap = file.read(min(offset - reached, 1 << 20))
            if gap.startswith(_LOCAL_MAGIC) or _LOCAL_MAGIC in gap:
                at = reached + gap.find(_LOCAL_MAGIC)
                yield _disagree(
                    f"a local entry at offset {at} is not listed in the central directory: installers that"
                    " read the archive as a stream unpack it, others never see it",
                    _local_name(gap[gap.find(_LOCAL_MAGIC) :]),
                    offset=at,
                )
            elif any(gap):
                yield _disagree(f"{offset - reached} bytes behind {last} belong to no entry", offset=reached)
        if entry is not None and entry.data_offset is not None:
            reached = max(reached, entry.data_offset + entry.compressed + _descriptor(file, entry, directory))
            last = entry.name


def _local_name(gap: bytes) -> str | None:
    if len(gap) < _LOCAL.size:
        return None
    fields = _LOCAL.unpack_from(gap)
    return _decoded(gap[_LOCAL.size : _LOCAL.size + fields[9]], fields[2]) or None


def _descriptor(file: BinaryIO, entry: Entry, directory: int) -> int:
    """Bytes of the data descriptor behind an entry (APPNOTE 4.3.9: signature optional, sizes of 4 or 8 bytes)."""
    if not entry.flags & DESCRIPTOR or entry.data_offset is None:
        return 0
    end = entry.data_offset + entry.compressed
    head = os.pread(file.fileno(), min(24, max(0, directory - end)), end)
    for form in ("<4sLLL", "<4sLQQ", "<LLL", "<LQQ"):
        length = struct.calcsize(form)
        if len(head) >= length:
            fields = struct.unpack_from(form, head)
            if fields[0] == b"PK\7\x08":
                fields = fields[1:]
            if tuple(fields) == (entry.crc, entry.compressed, entry.size):
                return length
    return 0
