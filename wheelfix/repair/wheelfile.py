"""WHEEL of a repaired wheel: other Tag lines, and perhaps another Root-Is-Purelib; everything else as it was."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TAG = re.compile(rb"^Tag:.*(?:\r?\n|\Z)", re.M | re.I)
_PURELIB = re.compile(rb"^(Root-Is-Purelib:[ \t]*)\S+", re.M | re.I)


def retagged(text: bytes, tags: Sequence[str], platlib: bool) -> bytes:
    """The file with these tags (binary distribution format: one line for each expanded tag).

    The new lines stand where the first old one stood, else at the end of the header.
    """
    newline = b"\r\n" if b"\r\n" in text else b"\n"
    lines = b"".join(b"Tag: " + tag.encode() + newline for tag in tags)
    first = _TAG.search(text)
    if first is not None:
        head, rest = text[: first.start()], _TAG.sub(b"", text[first.start() :])
    else:
        body = text.rstrip(b"\r\n")
        head, rest = body + newline if body else b"", b""
    result = head + lines + rest
    return _PURELIB.sub(rb"\1false", result) if platlib else result
