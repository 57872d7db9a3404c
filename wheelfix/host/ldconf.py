"""The folders that ldconfig is told of: /etc/ld.so.conf with its includes, then the trusted ones."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

CONF = Path("/etc/ld.so.conf")
_DEEPEST = 16


def default_folders(conf: Path = CONF) -> tuple[str, ...]:
    """Every configured folder in order, then /lib64, /usr/lib64, /lib and /usr/lib; each once."""
    trusted = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
    return tuple(dict.fromkeys((*_configured(conf, 0), *trusted)))


def _configured(conf: Path, depth: int) -> Iterator[str]:
    """ldconfig's parse_conf: comments, folders (an old ``=TYPE`` cut off), ``include`` with globs, ``hwcap`` ignored."""
    if depth > _DEEPEST:
        return
    try:
        lines = conf.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        words = line.partition("#")[0].split()
        if not words or words[0] == "hwcap":
            continue
        if words[0] == "include":
            for pattern in words[1:]:
                for place in sorted(glob.glob(os.path.join(conf.parent, pattern))):
                    yield from _configured(Path(place), depth + 1)
        else:
            yield from (w.partition("=")[0].rstrip("/") or "/" for w in words)
