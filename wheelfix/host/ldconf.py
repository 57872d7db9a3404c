"""The folders that ldconfig is told of: /etc/ld.so.conf with its includes, then the trusted ones."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

CONF = Path("/etc/ld.so.conf")


def default_folders(conf: Path = CONF) -> tuple[str, ...]:
    """Every configured folder in order, then /lib64, /usr/lib64, /lib and /usr/lib; each once."""
    trusted = ("/lib64", "/usr/lib64", "/lib", "/usr/lib")
    return tuple(dict.fromkeys((*_configured(conf, set()), *trusted)))


def _configured(conf: Path, seen: set[str]) -> Iterator[str]:
    """ldconfig's parse_conf: comments, ``include`` with globs, ``hwcap`` ignored; else the line is a folder.

    An old ``=TYPE`` is cut off. A file that includes itself is read once (ldconfig would not end).
    """
    if os.path.realpath(conf) in seen:
        return
    seen.add(os.path.realpath(conf))
    try:
        lines = conf.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        text = line.partition("#")[0].strip()
        words = text.split()
        if not words or words[0] == "hwcap":
            continue
        if words[0] == "include" and len(words) > 1:
            for pattern in words[1:]:
                for place in sorted(glob.glob(os.path.join(conf.parent, pattern))):
                    yield from _configured(Path(place), seen)
        else:
            yield text.partition("=")[0].rstrip().rstrip("/") or "/"
