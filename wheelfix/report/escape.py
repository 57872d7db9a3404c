"""Names out of wheels are a stranger's text: nothing in them may steer a terminal or break a line."""

from __future__ import annotations


def plain(text: str) -> str:
    r"""The text with every control, format and surrogate character, and every space but the plain one, as an escape.

    ``str.isprintable`` is the rule (Unicode categories "Other" and "Separator"), which covers terminal
    escapes, line breaks and the marks that turn the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
