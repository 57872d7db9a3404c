"""Faults for the examples: what turns a good wheel into a bad one."""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import subprocess
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wheelfix.elf.edit import find_patchelf

SAMPLES = Path(__file__).resolve().parents[1] / "sample_wheels"

#: The members of a wheel: name and bytes, in the order of the archive; names may repeat.
Members = list[tuple[str, bytes]]
Change = Callable[[Members], Members]


@dataclass(frozen=True, slots=True)
class Example:
    """A sample wheel, what is done to it, and how it is judged."""

    sample: str = "healthy"
    options: tuple[str, ...] = ()
    policy: str = ""  # the tables of policy.toml; empty: no policy
    change: Change | None = None
    lists: bool = True  # RECORD is made true after the change
    raw: Callable[[bytes], bytes] | None = None  # a change of the archive's own bytes
    name: Callable[[str], str] = str  # a change of the file's name
    modes: tuple[tuple[str, int], ...] = ()  # file modes of members, by the ending of the name
    method: int = zipfile.ZIP_DEFLATED
    done: str = ""  # the change in words


def patched(*arguments: str, member: str = "_ext.abi3.so") -> Change:
    """A member (by the ending of its name) after a call of patchelf."""

    def change(members: Members) -> Members:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "object"
            out = []
            for name, data in members:
                if name.endswith(member):
                    path.write_bytes(data)
                    subprocess.run([find_patchelf(), *arguments, str(path)], check=True)
                    data = path.read_bytes()
                out.append((name, data))
            return out

    return change


def replaced(ending: str, new: Callable[[bytes], bytes]) -> Change:
    """The member whose name ends so, with other bytes."""
    return lambda members: [(n, new(d) if n.endswith(ending) else d) for n, d in members]


def listed(members: Members) -> Members:
    """The same with a RECORD that is true."""

    def row(name: str, data: bytes) -> str:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        return f"{name},sha256={digest},{len(data)}"

    record = next(n for n, _ in members if n.endswith(".dist-info/RECORD"))
    rows = [row(n, d) for n, d in members if n != record] + [f"{record},,"]
    return [(n, "\n".join(rows).encode() + b"\n" if n == record else d) for n, d in members]


def archive(
    members: Members, modes: tuple[tuple[str, int], ...] = (), method: int = zipfile.ZIP_DEFLATED
) -> bytes:
    """The members as a ZIP archive that is the same each time; ``method`` compresses the last one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a name that stands twice
        for name, data in members:
            info = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            info.external_attr = next((m for ending, m in modes if name.endswith(ending)), 0o100644) << 16
            info.compress_type = method if name == members[-1][0] else zipfile.ZIP_DEFLATED
            out.writestr(info, data)
    return buffer.getvalue()


def without_crc(data: bytes) -> bytes:
    """A byte of the first member's packed data is another."""
    at = 30 + int.from_bytes(data[26:28], "little") + 12
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def in_turn(*changes: Change) -> Change:
    """The changes one after the other."""
    return lambda members: functools.reduce(lambda so_far, change: change(so_far), changes, members)


def copied(name: str) -> Change:
    """A copy of the helper library under another name."""
    return lambda m: added(name, next(d for n, d in m if n.endswith("libhelper.so")))(m)


def added(name: str, data: bytes) -> Change:
    """A member more, in the package of the healthy sample."""
    return lambda members: [*members, (f"sample_healthy/{name}", data)]


def second(name: str, *arguments: str) -> Change:
    """A copy of the helper library whose SONAME is its name, after a call of patchelf with more arguments."""
    return in_turn(copied(name), patched("--set-soname", name, *arguments, member=name))


def other_library() -> bytes:
    """A library without the functions of the helper."""
    with zipfile.ZipFile(next(SAMPLES.glob("sample_registration_dropped-*.whl"))) as wheel:
        return wheel.read("sample_registration_dropped/_ext.abi3.so")
