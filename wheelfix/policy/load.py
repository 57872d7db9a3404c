"""Policy files: TOML in, one ``Policy`` in force out, or every error of every file with its key's path."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wheelfix.model.limits import Limits
from wheelfix.model.policy import (
    Cuda,
    CxxRuntime,
    Deny,
    Policy,
    Provider,
    Registration,
    RequireFile,
    RequireNeeded,
    RpathRule,
    Size,
    SymbolContract,
    Waiver,
)
from wheelfix.policy.data import data_folder
from wheelfix.policy.schema import SECTIONS, SEVERITIES, TOP, Table, Wrong, closest, quoted, text, texts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_MOST_FILES = 64


@dataclass(frozen=True, slots=True, order=True)
class PolicyError:
    """One thing wrong with a policy: the file, the key's path (``deny[0].reach``; "" for the whole), what and how to mend it."""

    file: str
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}: {self.key}: {self.message}" if self.key else f"{self.file}: {self.message}"


class PolicyErrors(Exception):
    """A policy does not validate; ``errors`` holds everything that is wrong, file by file."""

    def __init__(self, errors: Sequence[PolicyError]) -> None:
        super().__init__("\n".join(map(str, errors)))
        self.errors = tuple(errors)


@dataclass(slots=True)
class _Reading:
    """What has been read so far: the errors, and the parsed files in the order in which they take effect."""

    known_rules: Collection[str]
    most: int  # bytes of one file
    errors: list[PolicyError] = field(default_factory=list)
    done: dict[str, Policy] = field(default_factory=dict)


def shipped_policies() -> tuple[str, ...]:
    """The names of the policies that come with the tool."""
    return tuple(sorted(p.stem for p in data_folder().glob("*.toml")))


def load_policies(
    names: Sequence[str], *, known_rules: Collection[str] = (), limits: Limits | None = None
) -> Policy:
    """The policy that several names or files make together, later ones overriding earlier ones.

    ``known_rules`` are the ids that [severity] and [[waive]] may name; empty: any. Raises ``PolicyErrors``
    with all errors of all files.
    """
    reading = _Reading(known_rules, (limits or Limits()).policy)
    for name in names:
        _file(reading, name, Path(), (), "")
    if reading.errors:
        raise PolicyErrors(reading.errors)
    merged = Policy()
    for policy in reading.done.values():
        merged = _over(merged, policy)
    return merged


def _file(reading: _Reading, name: str, folder: Path, above: tuple[str, ...], said_by: str) -> None:
    """Read one policy and, first, all that it extends; what was read already is not read again."""
    shown = said_by or name
    path = place(name, folder)
    if path is None:
        reading.errors.append(PolicyError(shown, "extends" if said_by else "", absent(name)))
        return
    identity = str(path)
    if identity in above:
        circle = " extends ".join(Path(p).name for p in (*above[above.index(identity) :], identity))
        reading.errors.append(
            PolicyError(shown, "extends", f"policies extend each other in a circle: {circle}")
        )
        return
    if identity in reading.done:
        return
    if len(reading.done) + len(above) > _MOST_FILES:
        reading.errors.append(PolicyError(shown, "extends", f"more than {_MOST_FILES} policies in all"))
        return
    label = path.name
    data = read_toml(path, label, reading.most, reading.errors)
    if data is None:
        return
    before = len(reading.errors)
    extends = _value(reading, label, "extends", data.get("extends", []), texts) or ()
    for base in extends:
        _file(reading, base, path.parent, (*above, identity), label)
    policy = _policy(reading, data, label, path.stem)
    if len(reading.errors) == before:
        reading.done[identity] = policy


def place(name: str, folder: Path) -> Path | None:
    """The file that a name means: a shipped policy, or a path (relative to the file that names it)."""
    if "/" not in name and not name.endswith(".toml") and "\0" not in name:
        shipped = data_folder() / f"{name}.toml"
        if shipped.is_file():
            return shipped
    try:
        path = (folder / name).resolve()
        return path if path.is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def absent(name: str) -> str:
    """What to say of a name for which there is neither a shipped policy nor a file."""
    hint = closest(name, shipped_policies()) or f"; shipped: {', '.join(shipped_policies())}"
    return f"there is no policy or file {name!r}{hint}"


def read_toml(path: Path, label: str, most: int, errors: list[PolicyError]) -> dict[str, Any] | None:
    """A TOML file of at most so many bytes; None, and one more of the errors of ``label``, where it cannot be read."""
    try:
        with path.open("rb") as file:
            raw = file.read(most + 1)
        if len(raw) > most:
            raise Wrong(f"is larger than {most} bytes (--limit policy=N)")
        return tomllib.loads(raw.decode("utf-8"))
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 (byte {error.start})"
    except RecursionError:
        message = "is nested too deeply"
    except (tomllib.TOMLDecodeError, Wrong) as error:
        message = str(error)
    except ValueError as error:  # integers of thousands of digits, dates that do not exist
        message = f"holds a value that cannot be read: {error}"
    errors.append(PolicyError(label, "", message))
    return None


def _policy(reading: _Reading, data: Mapping[str, Any], file: str, stem: str) -> Policy:
    for key in data:
        if key not in TOP:
            reading.errors.append(PolicyError(file, quoted(key), f"unknown key{closest(key, TOP)}"))
    schema = data.get("schema")
    if schema != 1 or isinstance(schema, bool):
        said = "must be 1" if "schema" in data else "is required: schema = 1"
        reading.errors.append(PolicyError(file, "schema", said))
    name = _value(reading, file, "name", data.get("name", stem), text) or stem
    rows = {section: tuple(_rows(reading, data, file, section, name)) for section in SECTIONS}
    one = {section: rows[section][0] if rows[section] else None for section in ("platform", "cuda", "size")}
    platform, cuda, size = one["platform"], one["cuda"], one["size"]
    return Policy(
        names=(name,),
        tag=platform[1].get("tag") if platform else None,
        tag_key=f"{name}:platform.tag" if platform and "tag" in platform[1] else None,
        cxx_runtime=tuple(CxxRuntime(key, **row) for key, row in rows["cxx-runtime"]),
        require_files=tuple(RequireFile(key, **row) for key, row in rows["require-file"]),
        require_needed=tuple(RequireNeeded(key, **row) for key, row in rows["require-needed"]),
        deny=tuple(Deny(key, **row) for key, row in rows["deny"]),
        imports=tuple(_symbols(key, row) for key, row in rows["import"]),
        exports=tuple(_symbols(key, row) for key, row in rows["export"]),
        sole_definers=tuple(_symbols(key, row) for key, row in rows["sole-definer"]),
        registrations=tuple(Registration(key, **row) for key, row in rows["registration"]),
        providers=tuple(Provider(key, **row) for key, row in rows["provider"]),
        rpaths=tuple(RpathRule(key, **row) for key, row in rows["rpath"]),
        cuda=Cuda(cuda[0], **cuda[1]) if cuda else None,
        size=Size(size[0], **{k.replace("-", "_"): v for k, v in size[1].items()}) if size else None,
        waivers=tuple(Waiver(key, **row) for key, row in rows["waive"]),
        severities=_severities(reading, data.get("severity", {}), file),
    )


def _symbols(key: str, row: Mapping[str, Any]) -> SymbolContract:
    return SymbolContract(key, row["object"], row["symbol"], row.get("from"))


def _rows(
    reading: _Reading, data: Mapping[str, Any], file: str, section: str, name: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The entries of one section that are right, each with the key by which findings name it."""
    if section not in data:
        return
    table, value = SECTIONS[section], data[section]
    single = not table.array or (table.single_ok and isinstance(value, dict))
    entries = [value] if single else value
    if not isinstance(entries, list):
        reading.errors.append(PolicyError(file, section, f"must be an array of tables: [[{section}]]"))
        return
    for index, entry in enumerate(entries):
        key = section if not table.array else f"{section}[{index}]"
        if not isinstance(entry, dict):
            form = f"[[{section}]]" if table.array else f"[{section}]"
            reading.errors.append(PolicyError(file, key, f"must be a table: {form}"))
            continue
        row = _row(reading, file, key, entry, table)
        if section == "waive" and row is not None and not _known(row["rule"], reading):
            close = closest(row["rule"], reading.known_rules)
            reading.errors.append(
                PolicyError(file, f"{key}.rule", f"there is no rule {row['rule']!r}{close}")
            )
        elif row is not None:
            yield f"{name}:{key}", row


def _row(
    reading: _Reading, file: str, key: str, entry: Mapping[str, Any], table: Table
) -> dict[str, Any] | None:
    before = len(reading.errors)
    row = {}
    for name, value in entry.items():
        if name not in table.keys:
            reading.errors.append(
                PolicyError(file, f"{key}.{quoted(name)}", f"unknown key{closest(name, tuple(table.keys))}")
            )
        else:
            row[name] = _value(reading, file, f"{key}.{name}", value, table.keys[name])
    for name in sorted(table.required - entry.keys()):
        reading.errors.append(PolicyError(file, f"{key}.{name}", "is required"))
    return row if len(reading.errors) == before else None


def _value(reading: _Reading, file: str, key: str, value: Any, reader: Any) -> Any:
    try:
        return reader(value)
    except Wrong as wrong:
        reading.errors.append(PolicyError(file, key, str(wrong)))
        return None


def _severities(reading: _Reading, value: Any, file: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        reading.errors.append(PolicyError(file, "severity", "must be a table: [severity]"))
        return {}
    for rule, severity in value.items():
        key = f"severity.{quoted(rule)}"
        if not _known(rule, reading):
            close = closest(rule, reading.known_rules)
            reading.errors.append(PolicyError(file, key, f"there is no rule {rule!r}{close}"))
        if severity not in SEVERITIES:
            reading.errors.append(PolicyError(file, key, f"must be one of {', '.join(SEVERITIES)}"))
    return dict(value)


def _known(rule: str, reading: _Reading) -> bool:
    return not reading.known_rules or rule in reading.known_rules


def _over(base: Policy, later: Policy) -> Policy:
    """``later`` on top of ``base``: lists grow, single values and severities are replaced where given."""
    return replace(
        base,
        names=(*base.names, *later.names),
        tag=later.tag or base.tag,
        tag_key=later.tag_key or base.tag_key,
        cxx_runtime=base.cxx_runtime + later.cxx_runtime,
        require_files=base.require_files + later.require_files,
        require_needed=base.require_needed + later.require_needed,
        deny=base.deny + later.deny,
        imports=base.imports + later.imports,
        exports=base.exports + later.exports,
        sole_definers=base.sole_definers + later.sole_definers,
        registrations=base.registrations + later.registrations,
        providers=base.providers + later.providers,
        rpaths=base.rpaths + later.rpaths,
        cuda=_cuda_over(base.cuda, later.cuda),
        size=_size_over(base.size, later.size),
        waivers=base.waivers + later.waivers,
        severities={**base.severities, **later.severities},
    )


def _cuda_over(base: Cuda | None, later: Cuda | None) -> Cuda | None:
    if base is None or later is None:
        return later or base
    return Cuda(
        later.key,
        base.architectures if later.architectures is None else later.architectures,
        base.ptx if later.ptx == "any" else later.ptx,
    )


def _size_over(base: Size | None, later: Size | None) -> Size | None:
    if base is None or later is None:
        return later or base
    return Size(
        later.key,
        base.wheel_max if later.wheel_max is None else later.wheel_max,
        base.member_max if later.member_max is None else later.member_max,
    )
