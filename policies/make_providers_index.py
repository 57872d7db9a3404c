"""The index that pip is configured for, as make_providers.py asks it: releases, and the members of a wheel.

Uses pip's own finder and session (index URLs, certificates, retries), from its internal modules: what pip offers as
commands reads whole wheels. Made with pip 23.2.
"""

from __future__ import annotations

import sys
import zipfile
from typing import Any

from pip._internal.cli.cmdoptions import make_target_python
from pip._internal.commands import create_command
from pip._internal.network.lazy_wheel import HTTPRangeRequestUnsupported, LazyZipOverHTTP

_PLATFORMS = (
    *(f"manylinux_2_{n}" for n in range(5, 41)),
    "manylinux2014",
    "manylinux2010",
    "manylinux1",
    "linux",
)


class Index:
    """The wheels for CPython 3.11 on x86_64 that the index has."""

    def __init__(self, most_bytes: int) -> None:
        command: Any = create_command("download")
        options, _ = command.parse_args(
            ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--implementation=cp"]
            + [f"--platform={p}_x86_64" for p in _PLATFORMS]
        )
        self._session = command._build_session(options)
        self._finder = command._build_package_finder(
            options, self._session, make_target_python(options), ignore_requires_python=True
        )
        self._most_bytes = most_bytes
        self._links: dict[tuple[str, str], Any] = {}

    def versions(self, distribution: str) -> tuple[str, ...]:
        """The releases that have a wheel here and were not withdrawn (PEP 592)."""
        found = [c for c in self._finder.find_all_candidates(distribution) if not c.link.is_yanked]
        for candidate in sorted(found, key=lambda c: str(c.link.filename)):
            self._links.setdefault((distribution, str(candidate.version)), candidate.link)
        return tuple(dict.fromkeys(str(c.version) for c in found))

    def members(self, distribution: str, version: str) -> tuple[str, ...] | None:
        """The names in the central directory of a wheel; None, with a message, for one that is too large to fetch."""
        link = self._links[distribution, version]
        if link.is_file:
            with zipfile.ZipFile(link.file_path) as archive:
                return tuple(archive.namelist())
        try:
            with LazyZipOverHTTP(link.url_without_fragment, self._session) as file:
                return tuple(zipfile.ZipFile(file).namelist())
        except HTTPRangeRequestUnsupported:
            return self._whole(link)

    def _whole(self, link: Any) -> tuple[str, ...] | None:
        import tempfile

        with self._session.get(link.url_without_fragment, stream=True) as answer:
            answer.raise_for_status()
            size = int(answer.headers.get("Content-Length", self._most_bytes + 1))
            if size > self._most_bytes:
                print(f"{link.filename}: {size} bytes and no ranges, left out", file=sys.stderr)
                return None
            with tempfile.TemporaryFile() as file:
                for chunk in answer.iter_content(1 << 20):
                    file.write(chunk)
                return tuple(zipfile.ZipFile(file).namelist())
