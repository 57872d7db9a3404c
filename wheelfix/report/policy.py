"""A policy in force as text: each entry with the key by which findings name it."""

from __future__ import annotations

import dataclasses

from wheelfix.model.policy import Policy
from wheelfix.report.escape import plain


def described(policy: Policy) -> str:
    """Every entry of the policy, one a line, in the order in which files took effect.

    Where a later file replaces a single value of an earlier one, the key tells whose it is.
    """
    lines = [f"policies, later ones override: {', '.join(policy.names)}"]
    if policy.tag is not None:
        lines.append(f"{policy.tag_key}: {policy.tag}")
    for field in dataclasses.fields(policy):
        value = getattr(policy, field.name)
        entries = value if isinstance(value, tuple) else (value,)
        for entry in entries:
            if dataclasses.is_dataclass(entry) and not isinstance(entry, type):
                lines.append(_entry(entry))
    lines += [f"severity.{rule}: {severity}" for rule, severity in policy.severities.items()]
    return "".join(f"{plain(line)}\n" for line in lines)


def _entry(entry: object) -> str:
    pairs = {f.name: getattr(entry, f.name) for f in dataclasses.fields(entry)}  # type: ignore[arg-type]
    key = pairs.pop("key")
    said = ", ".join(f"{_key(name)} = {_value(v)}" for name, v in pairs.items() if v is not None)
    return f"{key}: {said}"


def _key(name: str) -> str:
    """A field as the file spells it: ``from`` cannot be a name in Python."""
    return "from" if name == "provider" else name.replace("_", "-")


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return str(value)
