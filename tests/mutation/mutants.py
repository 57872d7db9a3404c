"""Makes mutants: one small change of behaviour in one place of a module.

Left alone is what says something to people and to type checkers: docstrings, the texts of rules, formatted
messages, annotations, decorators, ``__all__``.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_TWINS = {"any": "all", "all": "any", "min": "max", "max": "min"}
_STRING_METHODS = {
    "startswith",
    "endswith",
    "removeprefix",
    "removesuffix",
    "split",
    "partition",
    "rpartition",
}
_TEXTS = {"message", "remedy", "what", "why", "fix", "example"}

Path_ = tuple[tuple[str, int | None], ...]  # fields that lead from the module to a node
Change = Callable[[ast.AST], ast.AST]  # gets a copy of the node, returns what takes its place


class Mutant(NamedTuple):
    """One mutant; ``number`` counts those of its function with the same words."""

    file: str
    function: str
    was: str
    now: str
    number: int
    source: Callable[[], str]


def mutants(file: str, text: str) -> Iterator[Mutant]:
    """Every mutant of one module."""
    module = ast.parse(text)
    texts = _for_texts_alone(module)
    seen: dict[tuple[str, str, str], int] = {}
    for path, node, change in _changes(module, (), ()):
        if path[0] in texts:
            continue
        changed = change(copy.deepcopy(node))
        words = (_function(module, path), _line(node), _line(changed))
        seen[words] = seen.get(words, 0) + 1
        yield Mutant(file, *words, seen[words], partial(_source, module, path, changed))


def _source(module: ast.Module, path: Path_, changed: ast.AST) -> str:
    tree = copy.deepcopy(module)
    _put(tree, path, changed)
    return ast.unparse(ast.fix_missing_locations(tree))


def of_files(root: Path, files: Sequence[Path]) -> list[Mutant]:
    """Every mutant of several modules, with paths from ``root``."""
    return [m for f in sorted(files) for m in mutants(f.relative_to(root).as_posix(), f.read_text("utf-8"))]


def _line(node: ast.AST) -> str:
    return ast.unparse(node).strip().partition("\n")[0]


def _function(module: ast.Module, path: Path_) -> str:
    """The dotted name of the innermost function or class around a place."""
    names, node = [], module
    for field, index in path:
        node = getattr(node, field) if index is None else getattr(node, field)[index]
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
    return ".".join(names)


def _put(tree: ast.AST, path: Path_, new: ast.AST) -> None:
    *before, (field, index) = path
    for step, place in before:
        tree = getattr(tree, step) if place is None else getattr(tree, step)[place]
    if index is None:
        setattr(tree, field, new)
    else:
        getattr(tree, field)[index] = new


def _changes(
    node: ast.AST, path: Path_, above: tuple[ast.AST, ...]
) -> Iterator[tuple[Path_, ast.AST, Change]]:
    if _is_text(node, above):
        return
    for change in _of_node(node, above):
        yield path, node, change
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list"):
            continue
        if isinstance(value, ast.AST):
            yield from _changes(value, (*path, (field, None)), (*above, node))
        elif isinstance(value, list):
            for index, one in enumerate(value):
                if isinstance(one, ast.AST):
                    yield from _changes(one, (*path, (field, index)), (*above, node))


def _is_text(node: ast.AST, above: tuple[ast.AST, ...]) -> bool:
    """What is only read by people, or by a type checker."""
    match node:
        case ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Call(func=ast.Name("Rule" | "TypeVar" | "NewType")):
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.keyword(arg=str(name)):
            return name in _TEXTS
        case ast.Assign(targets=[ast.Name(name)]):
            # Type aliases: module-level names in CamelCase for a subscript or a union of names.
            camel = name.lstrip("_")[:1].isupper() and not name.isupper()
            return name == "__all__" or (len(above) == 1 and camel)
    return False


def _for_texts_alone(module: ast.Module) -> set[tuple[str, int | None]]:
    """The first steps of the paths to private strings of a module that nothing but texts for people reads."""
    read = set(_names_read(module, ()))
    found: set[tuple[str, int | None]] = set()
    for place, statement in enumerate(module.body):
        match statement:
            case ast.Assign(targets=[ast.Name(name)], value=ast.Constant(value=str())):
                if name.startswith("_") and name not in read:
                    found.add(("body", place))
    return found


def _names_read(node: ast.AST, above: tuple[ast.AST, ...]) -> Iterator[str]:
    """The names that code reads, texts for people left out."""
    if _is_text(node, above):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _names_read(child, (*above, node))


def _to(**fields: object) -> Change:
    """Replaces fields of the node."""

    def change(node: ast.AST) -> ast.AST:
        for name, value in fields.items():
            setattr(node, name, value)
        return node

    return change


def _instead(new: ast.AST) -> Change:
    return lambda _: new


def _without(place: int) -> Change:
    """A boolean operation without one of its operands."""

    def change(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.BoolOp)
        values = [v for i, v in enumerate(node.values) if i != place]
        return values[0] if len(values) == 1 else ast.BoolOp(node.op, values)

    return change


def _compared(ops: list[ast.cmpop]) -> Iterator[Change]:
    for place, op in enumerate(ops):
        for other in _COMPARISONS[type(op)]:
            yield _to(ops=[*ops[:place], other(), *ops[place + 1 :]])


def _of_node(node: ast.AST, above: tuple[ast.AST, ...]) -> Iterator[Change]:
    parent = above[-1] if above else None
    match node:
        case ast.Compare(ops=ops):
            yield from _compared(ops)
        case ast.BoolOp(op=op, values=values):
            yield _to(op=ast.And() if isinstance(op, ast.Or) else ast.Or())
            for place in range(len(values)):
                yield _without(place)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _instead(operand)
        case ast.BinOp(op=op) if type(op) in _OPERATORS and not _joins_strings(node):
            yield _to(op=_OPERATORS[type(op)]())
        case ast.AugAssign(op=op):
            if type(op) in _OPERATORS:
                yield _to(op=_OPERATORS[type(op)]())
            yield _instead(ast.Pass())
        case ast.Constant(value=bool(value)):
            yield _to(value=not value)
        case ast.Constant(value=int(value)):
            yield _to(value=value + 1)
            yield _to(value=value - 1)
        case ast.Constant(value=str(value)) if _is_compared(above):
            yield _to(value=value + "x" if value else "x")
        case ast.Call(func=ast.Name(name)) if name in _TWINS:
            yield _to(func=ast.Name(_TWINS[name]))
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield _to(value=ast.Constant(None))
        case ast.Expr():  # a yield, or a call for its effect
            yield _instead(ast.Pass())
        case ast.Break():
            yield _instead(ast.Continue())
        case ast.Continue():
            yield _instead(ast.Break())
        case ast.For():
            yield _to(iter=ast.Tuple([], ast.Load()))
        case ast.ExceptHandler(type=ast.expr()):
            yield _to(type=ast.Name("NotImplementedError"))
    if isinstance(node, ast.expr) and not isinstance(node, ast.BoolOp):
        if isinstance(parent, (ast.If, ast.IfExp, ast.While)) and node is parent.test:
            yield _instead(ast.Constant(False))
            if not isinstance(parent, ast.While):
                yield _instead(ast.Constant(True))
        elif isinstance(parent, ast.comprehension) and node in parent.ifs:
            yield _instead(ast.Constant(True))


def _joins_strings(node: ast.BinOp) -> bool:
    return any(isinstance(n, (ast.JoinedStr, ast.Constant)) and _is_string(n) for n in ast.walk(node))


def _is_string(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_compared(above: tuple[ast.AST, ...]) -> bool:
    """Whether a string is compared: with ==, in, a method of strings, a subscript, or as part of a constant table."""
    for node in reversed(above):
        match node:
            case ast.Compare() | ast.Subscript():
                return True
            case ast.Tuple() | ast.Set() | ast.List() | ast.Dict():
                continue
            case ast.Call(func=ast.Attribute(attr=name)):
                return name in _STRING_METHODS
            case ast.Call(func=ast.Name("frozenset" | "set" | "tuple" | "dict")):
                continue
            case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                return name.isupper()
            case _:
                return False
    return False
