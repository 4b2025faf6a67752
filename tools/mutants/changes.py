"""The mutants of a file: every change to its source that a test should notice.

Left unchanged are docstrings, annotations, `__repr__`, `__slots__` (they save memory and do nothing
else), overloads, protocols and blocks under `TYPE_CHECKING`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from tools.mutants.guards import named

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
_OTHERS = {"any": "all", "all": "any", "min": "max", "max": "min"}
_DROPPABLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Raise, ast.For, ast.Assert)


class Mutant(NamedTuple):
    """One change: the file, the line, what was changed, and the code that results."""

    file: Path
    line: int
    change: str
    code: CodeType

    def __str__(self) -> str:
        return f"{named(self.file)}:{self.line}  {self.change}"


class _Change(NamedTuple):
    """Puts `new` where `old` is, in a field of a node (or in a list in that field)."""

    node: ast.AST
    field: str
    at: int | None
    new: Any  # None takes the entry out of its list

    def swap(self) -> Any:
        """Makes the change; returns what undoes it."""
        holder = getattr(self.node, self.field)
        if self.at is None:
            setattr(self.node, self.field, self.new)
            return lambda: setattr(self.node, self.field, holder)
        before = list(holder)
        holder[self.at : self.at + 1] = [] if self.new is None else self.new
        return lambda: holder.__setitem__(slice(None), before)


def mutants(file: Path) -> Iterator[Mutant]:
    """Every mutant of a file, in the order of its lines."""
    tree = ast.parse(file.read_text(), str(file))
    changes = sorted(_changes(tree), key=lambda change: change[0])
    for line, text, change in changes:
        undo = change.swap()
        ast.fix_missing_locations(tree)
        yield Mutant(file, line, text, compile(tree, str(file), "exec"))
        undo()


def _changes(node: ast.AST) -> Iterator[tuple[int, str, _Change]]:
    """The changes to a node and to all below it: line, description, change."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "type_params", "bases"):
            continue
        entries: list[tuple[int | None, Any]] = [(None, value)]
        if isinstance(value, list):
            entries = list(enumerate(value))
        for index, child in entries:
            if not isinstance(child, ast.AST) or _is_left_alone(child):
                continue
            line = getattr(child, "lineno", getattr(node, "lineno", 0))
            for text, new in _alternatives(node, field, child):
                put = new if index is None or new is None else new if type(new) is list else [new]
                yield line, text, _Change(node, field, index, put)
            yield from _changes(child)


def _is_left_alone(child: ast.AST) -> bool:
    if isinstance(child, ast.FunctionDef):
        decorators = [ast.unparse(decorator) for decorator in child.decorator_list]
        return child.name == "__repr__" or "overload" in decorators
    if isinstance(child, ast.ClassDef):
        return "Protocol" in [ast.unparse(base) for base in child.bases]
    if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
        return True
    if isinstance(child, ast.Assign) and ast.unparse(child.targets[0]) == "__slots__":
        return True
    docstring = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
    return isinstance(child, ast.Import | ast.ImportFrom) or docstring


def _alternatives(node: ast.AST, field: str, child: Any) -> Iterator[tuple[str, Any]]:
    """What could stand in the place of `child`: a description, and the new node (or nodes)."""
    shown = _short(child)
    if field == "test" or (field == "ifs" and isinstance(node, ast.comprehension)):
        # A comparison and a `not` are turned round below.
        simple = isinstance(child, ast.Compare) and type(child.ops[0]) in _SWAPS
        if not simple and not _is_not(child):
            yield f"negate: {shown}", ast.UnaryOp(ast.Not(), child)
    if _is_not(child):
        yield f"drop not: {shown}", child.operand
    if isinstance(child, ast.Compare | ast.BoolOp | ast.BinOp | ast.AugAssign):
        yield from _other_operators(child, shown)
    if isinstance(child, ast.BoolOp):
        for index, value in enumerate(child.values):
            rest = [*child.values[:index], *child.values[index + 1 :]]
            new = rest[0] if len(rest) == 1 else ast.BoolOp(child.op, rest)
            yield f"drop operand {_short(value)}: {shown}", new
    if isinstance(child, ast.Constant) and not isinstance(node, ast.JoinedStr):
        yield from _other_constants(child, shown)
    if isinstance(child, ast.Name) and child.id in _OTHERS and isinstance(node, ast.Call):
        yield f"{child.id} -> {_OTHERS[child.id]}", ast.Name(_OTHERS[child.id], ast.Load())
    if field == "keywords" and isinstance(node, ast.Call):
        yield f"drop argument {child.arg}: {_short(node)}", None
    if field == "decorator_list":
        yield f"drop decorator: {shown}", None
    if isinstance(child, ast.Return) and child.value is not None and not _is_none(child.value):
        yield f"return None: {shown}", ast.Return(ast.Constant(None))
    if isinstance(child, ast.IfExp):
        yield f"always the first: {shown}", child.body
        yield f"always the second: {shown}", child.orelse
    if isinstance(child, ast.With):
        yield f"drop with: {shown}", child.body
    bare_return = isinstance(child, ast.Return) and child.value is None
    assigned = isinstance(child, ast.AnnAssign) and child.value is not None
    if isinstance(child, _DROPPABLE) or bare_return or assigned:
        yield f"drop: {shown}", ast.Pass()


def _other_operators(child: Any, shown: str) -> Iterator[tuple[str, ast.AST]]:
    operators = child.ops if isinstance(child, ast.Compare) else [child.op]
    for index, operator in enumerate(operators):
        swapped = _SWAPS.get(type(operator))
        if swapped is None:
            continue
        new = copy.copy(child)
        if isinstance(child, ast.Compare):
            new.ops = [*child.ops[:index], swapped(), *child.ops[index + 1 :]]
        else:
            new.op = swapped()
        yield f"{type(operator).__name__} -> {swapped.__name__}: {shown}", new


def _other_constants(child: ast.Constant, shown: str) -> Iterator[tuple[str, ast.AST]]:
    value = child.value
    if isinstance(value, bool):
        yield f"{value} -> {not value}", ast.Constant(not value)
    elif isinstance(value, int):
        yield f"{value} -> {value + 1}", ast.Constant(value + 1)
    elif isinstance(value, str):
        yield f"{shown} -> another text", ast.Constant(f"XX{value}")


def _is_not(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 70 else f"{text[:69]}…"
