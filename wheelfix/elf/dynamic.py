"""The dynamic segment, its string table and verneed while they are changed without moving anything."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from wheelfix.elf import tables
from wheelfix.elf.layout import (
    DT_AUXILIARY,
    DT_FILTER,
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    DT_STRTAB,
    DT_VERDEF,
    DT_VERNEED,
    Broken,
    read_layout,
)
from wheelfix.elf.proof import EditFailed
from wheelfix.elf.versions import version_records
from wheelfix.model.elf import PT_DYNAMIC
from wheelfix.model.limits import Limits

# Those, and DT_CONFIG, DT_DEPAUDIT and DT_AUDIT, which may share their strings with what is changed.
_STRING_TAGS = frozenset(
    {DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_FILTER, DT_AUXILIARY, 0x6FFFFEFA, 0x6FFFFEFB, 0x6FFFFEFC}
)
_RENAMED_TAGS = frozenset({DT_NEEDED, DT_FILTER, DT_AUXILIARY})


class Dynamic:
    """The dynamic segment, its string table and verneed of one object while they are changed in place."""

    def __init__(self, data: bytes) -> None:
        limits = Limits()
        layout, _ = read_layout(data, limits)
        segment = next((s for s in reversed(layout.segments) if s.kind == PT_DYNAMIC), None)
        place = layout.room(segment.vaddr) if segment is not None else None
        text = layout.room(layout.value(DT_STRTAB) or 0)
        if segment is None or place is None or text is None:
            raise Broken("elf-truncated", "the object has no dynamic segment")
        self._data = data
        self._layout = layout
        self._at = place[0]
        self._room = segment.filesz // (2 * layout.word)
        self._entries = [list(e) for e in layout.dynamic]
        self._text_at = text[0]
        self._text = bytearray(tables.string_table(data, layout, limits))
        self._text_changed = False
        lookups = tables.symbol_lookups(data, layout)
        count = tables.symbol_count(data, layout, lookups, limits)
        self._symbol_names = sorted(tables.name_offsets(data, layout, count))
        self._files: dict[int, int] = {}  # file offset of a vn_file field -> its value
        self._names: set[int] = set()  # strings of verneed and verdef that stay as they are
        for pointer in (DT_VERNEED, DT_VERDEF):
            for record in version_records(data, layout, pointer, limits):
                if record.name_at is not None:
                    (value,) = struct.unpack_from(layout.order + "I", data, record.name_at)
                    if record.head:
                        self._files[record.name_at] = value
                    else:
                        self._names.add(value)

    def remove_needed(self, names: Iterable[str]) -> None:
        """Drop every DT_NEEDED of these names; the loader would still look for a file that verneed names."""
        for name in names:
            raw = name.encode()
            kept = [e for e in self._entries if e[0] != DT_NEEDED or self._string(e[1]) != raw]
            if any(self._string(v) == raw for v in self._files.values()):
                raise EditFailed(f"{name} cannot be dropped: the object wants versions of it")
            self._entries = kept

    def rename(self, old: str, new: str) -> bool:
        """Give a needed file another name wherever the loader reads it; False where the new one has no room."""
        raw = old.encode()
        entries = [e for e in self._entries if e[0] in _RENAMED_TAGS and self._string(e[1]) == raw]
        files = [f for f, v in self._files.items() if self._string(v) == raw]
        if not entries and not files:
            return True
        target = self._placed(new.encode(), [e[1] for e in entries] + [self._files[f] for f in files])
        if target is None:
            return False
        for entry in entries:
            entry[1] = target
        self._files.update(dict.fromkeys(files, target))
        return True

    def filters_only(self, renames: Iterable[tuple[str, str]]) -> list[str]:
        """The new names of what a DT_FILTER or DT_AUXILIARY names and no DT_NEEDED does, before and after."""
        needed = {self._string(v) for t, v in self._entries if t == DT_NEEDED}
        filters = {self._string(v) for t, v in self._entries if t in _RENAMED_TAGS} - needed
        return [n for o, n in renames if o.encode() in filters and n.encode() not in needed]

    def set_string(self, tags: Sequence[int], tag: int, value: str) -> bool:
        """Make ``tag`` the only entry among ``tags``, with this string; False where there is no room."""
        present = [e for e in self._entries if e[0] in tags]
        if not present and len(self._entries) + 2 > self._room:  # DT_NULL stays
            return False
        target = self._placed(value.encode(), [e[1] for e in present])
        if target is None:
            return False
        if present:
            first = self._entries.index(present[0])
            self.drop(tags)
            self._entries.insert(first, [tag, target])
        else:
            self._entries.append([tag, target])
        return True

    def drop(self, tags: Iterable[int]) -> None:
        self._entries = [e for e in self._entries if e[0] not in tags]

    def written(self) -> bytes:
        """The bytes of the object with all changes."""
        form = self._layout.order + ("qQ" if self._layout.bits == 64 else "iI")
        padding = [[0, 0]] * (self._room - len(self._entries))
        dynamic = b"".join(struct.pack(form, *e) for e in [*self._entries, *padding])
        patches = [(self._at, dynamic)]
        patches += [(f, struct.pack(self._layout.order + "I", v)) for f, v in self._files.items()]
        if self._text_changed:
            patches.append((self._text_at, bytes(self._text)))
        whole = bytearray(self._data)
        for at, piece in patches:
            whole[at : at + len(piece)] = piece
        return bytes(whole)

    def _string(self, offset: int) -> bytes:
        return bytes(self._text[offset : self._text.find(b"\0", offset)])

    def _placed(self, new: bytes, old: Sequence[int]) -> int | None:
        """An offset in the string table where ``new`` stands, written over one of the old strings if need be.

        ``old`` are the places that will no longer be used. A string may be the tail of a longer one, so the
        whole of what ends at its NUL must be without another user before it is written over.
        """
        found = self._text.find(new + b"\0")
        if found >= 0:
            return found
        used = sorted(
            [*self._names, *self._files.values(), *(v for t, v in self._entries if t in _STRING_TAGS)]
        )
        for offset in dict.fromkeys(old):
            end = self._text.find(b"\0", offset)
            start = self._text.rfind(b"\0", 0, offset) + 1
            users = bisect_left(used, end) - bisect_left(used, start)
            others = bisect_left(self._symbol_names, end) - bisect_left(self._symbol_names, start)
            if len(new) <= end - offset and not others and users == old.count(offset):
                self._text[offset : end + 1] = new.ljust(end + 1 - offset, b"\0")
                self._text_changed = True
                return offset
        return None
