"""Every rule, and the checks that judge by them: one subject a file, each rule beside its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType, ModuleType

from wheelfix.checks import (
    archive,
    contract,
    cuda,
    cxx,
    elf,
    hardening,
    musl,
    needed,
    platform,
    processes,
    python,
    requires,
    search_paths,
    symbols,
)
from wheelfix.checks.rule import Rule
from wheelfix.checks.subject import Subject
from wheelfix.model.finding import Finding

#: The modules that judge, in the order in which their findings are told.
MODULES = (
    archive,
    elf,
    platform,
    python,
    musl,
    needed,
    search_paths,
    requires,
    processes,
    symbols,
    cxx,
    contract,
    cuda,
    hardening,
)

#: Those that ask who supplies each symbol. What they find of one object does not depend on the bindings of another.
BY_BINDINGS = (python, musl, needed, symbols, cxx, contract)

RULES: Mapping[str, Rule] = MappingProxyType({r.id: r for module in MODULES for r in module.RULES})


def run(subject: Subject, modules: Iterable[ModuleType] = MODULES) -> Iterator[Finding]:
    """All findings of all checks, before policies and command-line options change severities."""
    for module in modules:
        yield from module.check(subject)
