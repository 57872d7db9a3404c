"""Globs of the policy language: over member paths, and over names of libraries and symbols."""

from __future__ import annotations

import fnmatch
import re
from functools import lru_cache


def matches_path(path: str, pattern: str) -> bool:
    """Whether a member path matches: ``*`` and ``?`` stay inside one folder, ``**`` crosses folders.

    A pattern without a slash matches the whole path only where it is ``**``; ``pkg/**`` takes everything
    below ``pkg``.
    """
    return _path_pattern(pattern).fullmatch(path) is not None


def matches_any(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether a member path matches at least one of the patterns."""
    return any(matches_path(path, p) for p in patterns)


def matches_name(name: str, pattern: str) -> bool:
    """Whether a library or symbol name matches, case-sensitively; ``*`` matches anything."""
    return fnmatch.fnmatchcase(name, pattern)


@lru_cache(maxsize=1024)
def _path_pattern(pattern: str) -> re.Pattern[str]:
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            parts.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            parts.append(".*")
            at += 2
        elif pattern[at] == "*":
            parts.append("[^/]*")
            at += 1
        elif pattern[at] == "?":
            parts.append("[^/]")
            at += 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            body = re.sub(r"([\\\[&~|])", r"\\\1", pattern[at + 1 : end])
            parts.append(f"[{'^' + body[1:] if body.startswith('!') else body}]")
            at = end + 1
        else:
            parts.append(re.escape(pattern[at]))
            at += 1
    try:
        return re.compile("".join(parts), re.DOTALL)
    except re.error:
        return re.compile(re.escape(pattern))
