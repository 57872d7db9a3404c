"""Small wheels, written by zipfile: the expectations never come from our own writer."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

MakeWheel = Callable[..., Path]
TAG = "py3-none-manylinux_2_28_x86_64"


def record_row(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    quoted = f'"{name}"' if "," in name else name
    return f"{quoted},sha256={digest},{len(data)}\n"


@pytest.fixture
def make_wheel(tmp_path: Path) -> MakeWheel:
    """Writes a wheel: members by name, and overrides of what is right."""

    def make(
        members: Mapping[str, bytes],
        *,
        record: Callable[[str], str] = lambda text: text,
        metadata: str = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n",
        wheel: str = f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {TAG}\n",
        file_name: str = f"demo-1.0-{TAG}.whl",
        modes: Mapping[str, int] | None = None,
    ) -> Path:
        info = "demo-1.0.dist-info"
        files = {**members, f"{info}/METADATA": metadata.encode(), f"{info}/WHEEL": wheel.encode()}
        rows = "".join(record_row(n, d) for n, d in files.items()) + f"{info}/RECORD,,\n"
        files[f"{info}/RECORD"] = record(rows).encode()
        path = tmp_path / file_name
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                entry = zipfile.ZipInfo(name, (2020, 2, 2, 2, 2, 2))
                entry.create_system = 3
                entry.external_attr = (0o100000 | (modes or {}).get(name, 0o644)) << 16
                archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
        return path

    return make
