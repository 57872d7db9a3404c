"""Mutated wheels: archives written entry by entry with whatever they should not hold."""

from __future__ import annotations

import base64
import hashlib
import random
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.fuzz import objects
from tests.fuzz.numbers import noise, number, shape

_NAMES = (
    "pkg/../../escape.py", "/etc/passwd", "C:\\x.py", "pkg\\x.py", "pkg/a\0b.py", "", "/", "..", "pkg/", "PKG/__init__.py",
    "pkg/x.so/inside.py", "p" * 300, "pkg/" + "d/" * 200 + "x", "pkg/\u00e4\u4e2d.py", "pkg/new\nline.so", "con.py",
    "x-1.0.data/scripts/tool", "x-1.0.data/data/lib/libd.so", "x-1.0.data/bogus/y", "x-1.0.dist-info/RECORD.jws", "x.libs/liba.so.1",
    "pkg/liba.so", "pkg/libb.so.1", "pkg/x.cpython-311-x86_64-linux-gnu.so",
)  # fmt: skip
_FILES = (
    "x-1.0-cp311-cp311-manylinux_2_28_x86_64.whl", "x-1.0-py3-none-any.whl", "x-1.0-cp39-abi3-manylinux2014_x86_64.whl",
    "x-1.0-cp311-cp311-musllinux_1_2_x86_64.whl", "x-1.0-cp311-cp311-linux_x86_64.whl", "x-1.0-py3-none-manylinux_2_17_aarch64.whl",
    "x-1.0-1-cp311-cp311-manylinux_2_28_x86_64.manylinux_2_34_x86_64.whl", "x.whl", "x-1.0-a-b-c.whl", "x-1!2-cp311-cp311-win_amd64.whl",
)  # fmt: skip


@dataclass
class Entry:
    """One member as it will be written; ``local`` and ``central`` override fields of the two headers."""

    name: bytes
    data: bytes
    method: int = 8
    flags: int = 0
    external: int = 0o100644 << 16
    made_on: int = 3
    local: dict[str, int] = field(default_factory=dict)
    central: dict[str, int] = field(default_factory=dict)
    extra: bytes = b""


def file_name(rng: random.Random) -> str:
    """The name under which a mutated wheel is judged."""
    return rng.choice(_FILES[:6] if rng.random() < 0.9 else _FILES)


def mutated(rng: random.Random) -> bytes:
    """One wheel, wrong in one to four ways, in its members or its structure."""
    entries = _members(rng)
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        rng.choice((_rename, _duplicate, _field, _field, _flags, _extra, _bomb))(rng, entries)
    data = bytearray(_packed(entries, rng))
    if rng.random() < 0.5:
        rng.choice((noise, noise, shape, _around, _directory))(rng, data)
    return bytes(data)


def _members(rng: random.Random) -> list[Entry]:
    info = "x-1.0.dist-info"
    files = {"pkg/__init__.py": b"import ctypes\nctypes.CDLL('libq.so.3')\n"}
    for _ in range(rng.choice((0, 1, 1, 2))):
        data = objects.mutated(rng) if rng.random() < 0.5 else rng.choice(objects.seeds())
        files[
            rng.choice(
                ("pkg/x.cpython-311-x86_64-linux-gnu.so", "pkg/liba.so", "x.libs/libb.so.1", "pkg/tool")
            )
        ] = data
    files[f"{info}/METADATA"] = _text(
        rng, b"Metadata-Version: 2.1\nName: x\nVersion: 1.0\nRequires-Dist: torch>=2\n"
    )
    files[f"{info}/WHEEL"] = _text(
        rng, b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-manylinux_2_28_x86_64\n"
    )
    rows = b"".join(
        b"%b,sha256=%b,%d\n"
        % (n.encode(), base64.urlsafe_b64encode(hashlib.sha256(d).digest()).rstrip(b"="), len(d))
        for n, d in files.items()
    )
    files[f"{info}/RECORD"] = _text(rng, rows + f"{info}/RECORD,,\n".encode())
    return [Entry(n.encode(), d, rng.choice((0, 8, 8))) for n, d in files.items()]


def _text(rng: random.Random, text: bytes) -> bytes:
    if rng.random() < 0.7:
        return text
    data = bytearray(text)
    kind = rng.randrange(5)
    if kind == 0:
        shape(rng, data)
    elif kind == 1:
        noise(rng, data)
    elif kind == 2:
        data += rng.choice(
            (
                b'"unclosed',
                b"a,b,c,d,e\n",
                b"Tag: \xff\xfe\n",
                b"Requires-Dist: ;;;\n",
                b"\0\0\0",
                b"Name: y\n",
                b"/abs,sha256=x,1\n",
            )
        )
    elif kind == 3:
        data *= rng.choice((0, 2, 50))
    else:
        lines = data.split(b"\n")
        rng.shuffle(lines)
        data = bytearray(b"\n".join(lines))
    return bytes(data)


def _rename(rng: random.Random, entries: list[Entry]) -> None:
    name = rng.choice(_NAMES)
    rng.choice(entries).name = name.encode("utf-8") if rng.random() < 0.9 else rng.randbytes(9)


def _duplicate(rng: random.Random, entries: list[Entry]) -> None:
    one = rng.choice(entries)
    name = one.name if rng.random() < 0.7 else one.name.swapcase()
    entries.insert(rng.randrange(len(entries) + 1), Entry(name, rng.choice((one.data, b"other")), one.method))


def _field(rng: random.Random, entries: list[Entry]) -> None:
    one = rng.choice(entries)
    where = rng.choice((one.local, one.central))
    name = rng.choice(
        (
            "crc",
            "packed",
            "size",
            "method",
            "flags",
            "name_length",
            "extra_length",
            "offset",
            "comment",
            "disk",
        )
    )
    where[name] = number(rng, len(one.data))


def _flags(rng: random.Random, entries: list[Entry]) -> None:
    one = rng.choice(entries)
    one.flags |= rng.choice((1, 8, 0x20, 0x40, 0x800, 0x2000))
    one.method = rng.choice((one.method, 12, 14, 93, 99, 0xFFFF))
    one.external = rng.choice((0o120777 << 16, 0o040755 << 16, 0o104755 << 16, 0, 0xFFFFFFFF, one.external))
    one.made_on = rng.choice((0, 3, 11, 255))


def _extra(rng: random.Random, entries: list[Entry]) -> None:
    one = rng.choice(entries)
    body = b"".join(struct.pack("<Q", number(rng, len(one.data))) for _ in range(rng.randrange(4)))
    one.extra = struct.pack("<HH", rng.choice((1, 1, 0x7075, 9)), rng.choice((len(body), 0, 0xFFFF))) + body
    if rng.random() < 0.6:
        one.central |= dict.fromkeys(
            rng.sample(("packed", "size", "offset"), rng.randrange(1, 4)), 0xFFFFFFFF
        )


def _bomb(rng: random.Random, entries: list[Entry]) -> None:
    data = b"\x7fELF" + bytes(rng.choice((1 << 16, 1 << 20, 4 << 20)))
    entries.insert(
        0,
        Entry(
            b"pkg/bomb.so", data, 8, central={"size": number(rng, len(data))} if rng.random() < 0.5 else {}
        ),
    )


def _packed(entries: Sequence[Entry], rng: random.Random) -> bytes:
    out, directory = bytearray(), bytearray()
    for one in entries:
        packer = zlib.compressobj(6, zlib.DEFLATED, -15)
        body = packer.compress(one.data) + packer.flush() if one.method == 8 else one.data
        common = {
            "flags": one.flags,
            "method": one.method,
            "crc": zlib.crc32(one.data),
            "packed": len(body),
            "size": len(one.data),
        }
        common |= {
            "name_length": len(one.name),
            "extra_length": len(one.extra),
            "comment": 0,
            "disk": 0,
            "offset": len(out),
        }
        local, central = common | one.local, common | one.central
        out += _fields("<IHHHHHIIIHH", 0x04034B50, 20, local["flags"], local["method"], 0, 33, local["crc"], local["packed"],
                       local["size"], local["name_length"], local["extra_length"])  # fmt: skip
        out += one.name + one.extra + body
        directory += _fields("<IHHHHHHIIIHHHHHII", 0x02014B50, one.made_on << 8 | 20, 20, central["flags"], central["method"], 0, 33,
                             central["crc"], central["packed"], central["size"], central["name_length"], central["extra_length"],
                             central["comment"], central["disk"], 0, one.external, central["offset"])  # fmt: skip
        directory += one.name + one.extra
    count = len(entries) if rng.random() < 0.95 else number(rng, len(entries))
    end = _fields("<IHHHHIIH", 0x06054B50, 0, 0, count, count, len(directory), len(out), 0)
    return bytes(out + directory + end)


def _fields(form: str, *values: int) -> bytes:
    widths = {"H": 0xFFFF, "I": 0xFFFFFFFF}
    return struct.pack(form, *(v & widths[kind] for kind, v in zip(form[1:], values, strict=True)))


def _around(rng: random.Random, data: bytearray) -> None:
    data[:0] = rng.randbytes(rng.choice((0, 1, 100)))
    data += rng.randbytes(rng.choice((0, 1, 100)))


def _directory(rng: random.Random, data: bytearray) -> None:
    """A number in the end record, or a ZIP64 record before it."""
    at = data.rfind(b"PK\5\6")
    if at < 0:
        return
    if rng.random() < 0.5:
        where = at + rng.choice((4, 8, 10, 12, 16, 20))
        data[where : where + 4] = struct.pack("<I", number(rng, len(data)) & 0xFFFFFFFF)
        return
    values = [number(rng, len(data)) for _ in range(4)]
    record = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, *values)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, rng.choice((at, number(rng, len(data)))), 1)
    data[at:at] = record + locator
