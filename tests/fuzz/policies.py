"""Mutated policies: shipped ones with words, types and structure changed, and tables made at random."""

from __future__ import annotations

import random
import re
from functools import lru_cache
from pathlib import Path

from tests.fuzz.numbers import noise, shape

_WORDS = (
    "true", "-1", "1.5", "[]", "{}", "[[1]]", '""', '"*"', '"**"', '"[z-a]"', '"\\u0000"', "1979-05-27", "99999999999999999999", "inf",
    '"100 XB"', '"-5 MB"', '"sm_9000"', '"static"', '"closure"', '["a", 1]', '"manylinux_9_99"', '"../x"', '"\U0001f600"', "nan",
)  # fmt: skip
_KEYS = (
    "schema",
    "name",
    "extends",
    "objects",
    "linkage",
    "reach",
    "symbol",
    "from",
    "until",
    "tag",
    "ptx",
    "loads",
    "unknown",
    "a.b",
    '""',
)
_TABLES = (
    "[platform]", "[[cxx-runtime]]", "[cxx-runtime]", "[[require-file]]", "[[require-needed]]", "[[deny]]", "[[import]]", "[[export]]",
    "[[sole-definer]]", "[[registration]]", "[[provider]]", "[[rpath]]", "[cuda]", "[size]", "[[waive]]", "[severity]", "[[unknown]]", "[deny.x]",
)  # fmt: skip


@lru_cache(maxsize=1)
def seeds() -> tuple[str, ...]:
    folder = Path(__file__).parents[2] / "policies"
    return tuple(p.read_text("utf-8")[:6000] for p in sorted(folder.glob("*.toml")))


def mutated(rng: random.Random) -> bytes:
    """The bytes of one policy file."""
    text = rng.choice(seeds()) if rng.random() < 0.7 else _made(rng)
    for _ in range(rng.choice((0, 1, 2, 5))):
        text = rng.choice((_value, _value, _key, _line, _table))(rng, text)
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if rng.random() < 0.2 and data:
        rng.choice((noise, shape))(rng, data)
    return bytes(data)


def _made(rng: random.Random) -> str:
    lines = ["schema = 1"] if rng.random() < 0.8 else []
    for _ in range(rng.randrange(6)):
        lines.append(rng.choice(_TABLES))
        lines += [f"{rng.choice(_KEYS)} = {rng.choice(_WORDS)}" for _ in range(rng.randrange(4))]
    return "\n".join(lines) + "\n"


def _value(rng: random.Random, text: str) -> str:
    return _somewhere(rng, text, r"= .*", f"= {rng.choice(_WORDS)}")


def _key(rng: random.Random, text: str) -> str:
    return _somewhere(rng, text, r"(?m)^[a-z-]+ =", f"{rng.choice(_KEYS)} =")


def _table(rng: random.Random, text: str) -> str:
    return _somewhere(rng, text, r"(?m)^\[.*\]$", rng.choice(_TABLES))


def _line(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


def _somewhere(rng: random.Random, text: str, pattern: str, new: str) -> str:
    found = list(re.finditer(pattern, text))
    if not found:
        return text
    one = rng.choice(found)
    return text[: one.start()] + new + text[one.end() :]
