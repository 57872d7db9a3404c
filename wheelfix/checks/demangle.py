"""C++ names for people."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=4096)
def demangled(name: str) -> str:
    """The C++ name behind a mangled one (Itanium ABI), the name itself where it is none or too long to read."""
    if not name.startswith("_Z") or len(name) > 2000:
        return name
    from itanium_demangler import parse

    try:
        node = parse(name)
        return name if node is None else str(node)
    except Exception:  # the parser has no error class of its own, and names come from strangers
        return name
