"""Mutation run: does a test fail for every guard that is taken away?

    python tools/mutants.py                            the room `hooks/`, with its tests
    python tools/mutants.py --file autograd/gradients.py   one file
    python tools/mutants.py --lines autograd/gradients.py:40-60   the mutants of some lines
    python tools/mutants.py --sample 3                 every third of them
    python tools/mutants.py --list                     the mutants, without running anything

Each mutant is one change to the source: a condition negated, an operator swapped, a statement, an
argument, a decorator or a `with` left out, a constant or a returned value replaced. The tests of
its file run against it, then those that `GUARDS` names for the file. A mutant that makes a test
fail (or hang) is killed; one that does not has survived, and shows either a missing test or code
that does nothing.

torch is imported once. Each mutant is a fork of this process, in which the changed source is
loaded in place of the file; the working tree is never written to. What a test starts as a new
process does not have the change, so such tests guard nothing here. Left unchanged are docstrings,
annotations, `__repr__`, `__slots__` (they save memory and do nothing else), overloads, protocols
and blocks under `TYPE_CHECKING`.
"""

# ruff: noqa: T201  (a program that prints for people)

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import gc
import importlib.abc
import importlib.util
import itertools
import os
import resource
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
ROOM = ROOT / "src" / "nethook" / "hooks"
TESTS = ROOT / "tests" / "hooks"
# Tests beyond a file's own that guard it: arguments of pytest, one run each, the quickest first.
_OPS = "tests/hooks/ops/test_watch.py tests/hooks/ops/test_consumer.py"
_OPS_USED = (
    "tests/tracing/test_ops.py tests/tracing/sites/test_survey.py tests/editing/test_ops.py"
    " -k 'not zoo and not by_hand and not returns_none'"  # these run hundreds of models
)
_SCOPES = ("tests/tracing/test_scope.py tests/tracing/tape/test_tape.py",)
_CELLS = "tests/modes/test_matrix.py -k"
GUARDS: dict[str, tuple[str, ...]] = {
    **{f"ops/{file.name}": (_OPS, _OPS_USED) for file in ROOM.glob("ops/*.py")},
    "ops/watch.py": (_OPS_USED,),
    "attachment.py": _SCOPES,
    "process/export.py": (f"{_CELLS} 'test_cell and Export'",),
    "wrapped.py": ("tests/hooks/test_audit.py", "tests/hooks/process/test_loss_functions.py"),
    "autograd/gradients.py": ("tests/hooks/process/test_optimizers.py", *_SCOPES),
    "hook.py": ("tests/hooks/test_threads.py tests/hooks/test_audit.py", *_SCOPES),
    "compile/graph.py": (
        "tests/modes/test_graphs.py",
        f"{_CELLS} 'test_cell and torch.compile and views'",
    ),
    "autograd/lazy_copy.py": ("tests/tracing/test_keep.py",),
    "registries.py": ("tests/hooks/test_audit.py",),
    "process/discovery.py": ("tests/running/test_following.py",),
    "autograd/nodes.py": ("tests/editing/callbacks/test_nodes.py",),
    "modes.py": _SCOPES,
    "layouts/unhookable.py": ("tests/hooks/test_audit.py", *_SCOPES),
    "layouts/dtensor.py": ("tests/tracing/test_keep.py",),
    "suspend.py": ("tests/hooks/test_audit.py",),
    "threads.py": (f"{_CELLS} 'test_cell and Threads and not spawn and not DataLoader'",),
}

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
_OTHERS = {"any": "all", "all": "any", "min": "max", "max": "min"}
_DROPPABLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.Delete, ast.Raise, ast.For, ast.Assert)

_MEMORY = 8 << 30  # bytes that a fork may have
_BROKEN = 70  # a fork that did not come to its end


def named(file: Path) -> str:
    """A file of the room as it is called here: `autograd/gradients.py`."""
    return file.relative_to(ROOM).as_posix()


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


# -- running ---------------------------------------------------------------------------------------


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from changed code."""

    def __init__(self, mutant: Mutant) -> None:
        package = mutant.file.relative_to(ROOT / "src").with_suffix("")
        self._name = ".".join(package.parts)
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._mutant.file, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        exec(self._mutant.code, module.__dict__)


class _Quickly:
    """A plugin of pytest: hypothesis tries the same examples every time, and makes none smaller."""

    def pytest_configure(self) -> None:
        from hypothesis import HealthCheck, Phase, settings

        settings.register_profile(
            "mutants",
            deadline=None,
            database=None,
            derandomize=True,
            phases=(Phase.explicit, Phase.generate),
            suppress_health_check=[HealthCheck.too_slow],
        )
        settings.load_profile("mutants")


class _Limit(NamedTuple):
    """Seconds that tests may take; a mutant that takes more hangs."""

    processor: int = 600
    clock: int = 1200


def run(mutant: Mutant | None, tests: list[str], limit: _Limit = _Limit()) -> str:  # noqa: B008
    """Runs tests in a fork, against a mutant; None is the source as it is.

    Returns "survived" if all pass, else "killed" or "hung".
    """
    child = os.fork()
    if child == 0:
        try:
            code = _in_fork(mutant, tests, limit)
        except BaseException:
            code = _BROKEN
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what its tests have left behind
    code = os.waitstatus_to_exitcode(status)
    # Failed tests are 1, files that cannot be imported 2, errors of pytest's own 3; a signal is
    # negative. The rest is no answer: no such file, no such test.
    if code > 3:
        sys.exit(f"pytest {shlex.join(tests)} ends with {code} ({mutant or 'no mutant'})")
    if -code in (signal.SIGXCPU, signal.SIGALRM):
        return "hung"
    return "killed" if code else "survived"


def _in_fork(mutant: Mutant | None, tests: list[str], limit: _Limit) -> int:
    os.setsid()
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (limit.processor, limit.processor + 5))
    signal.alarm(limit.clock)
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    if mutant is not None:
        sys.meta_path.insert(0, _Changed(mutant))
    import pytest

    try:
        return int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *tests], [_Quickly()]))
    except BaseException:  # what a mutant breaks may break pytest as well
        return 3


def tests_for(file: Path, *, own: bool) -> list[list[str]]:
    """The tests of a file, as arguments of pytest: its own come first, and kill most."""
    first = TESTS / Path(named(file)).with_name(f"test_{file.name}")
    runs = [[str(first)]] if first.exists() else []
    if not own:
        runs += [shlex.split(command) for command in GUARDS.get(named(file), ())]
    if not runs:
        sys.exit(
            f"no tests for {named(file)}: write {first.relative_to(ROOT)}, or name some in GUARDS"
        )
    return runs


def main() -> None:
    """Makes the mutants, runs the tests against each, and prints who survived."""
    options = _arguments()
    chosen = [
        mutant
        for file in sorted(set(ROOM.rglob("*.py")) - set(ROOM.glob("canaries/*.py")))
        if options.file in (None, named(file))
        for mutant in mutants(file)
        if options.lines is None or _in_lines(mutant, options.lines)
    ][:: options.sample]
    if options.list:
        print(*chosen, f"{len(chosen)} mutants", sep="\n")
        return
    os.chdir(ROOT)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # What is slow to import, and needed in every fork.
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401
    import torch
    import torch._dynamo

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # else collections in the forks would copy all memory
    started = time.perf_counter()
    results: list[tuple[Mutant, str]] = []
    for file, group in itertools.groupby(chosen, key=lambda mutant: mutant.file):
        results += _results(list(group), tests_for(file, own=options.own))
    _report(results, time.perf_counter() - started, options.sample)


def _results(group: list[Mutant], runs: list[list[str]]) -> Iterator[tuple[Mutant, str]]:
    """What became of each mutant of a file: the first run of tests that fails decides."""
    limits = []
    for tests in runs:
        clock, processor = time.perf_counter(), _children()
        if run(None, tests) != "survived":
            sys.exit(f"pytest {shlex.join(tests)} fails without any mutant: mend it first")
        took = _children() - processor, time.perf_counter() - clock
        limits.append(_Limit(10 + 5 * int(took[0]), 60 + 10 * int(took[1])))
    for number, mutant in enumerate(group, 1):
        words = (run(mutant, *pair) for pair in zip(runs, limits, strict=True))
        word = next((word for word in words if word != "survived"), "survived")
        print(f"[{number}/{len(group)}] {word:8}  {mutant}", file=sys.stderr, flush=True)
        yield mutant, word


def _children() -> float:
    """Seconds of the processor that the forks so far have taken."""
    times = os.times()
    return times.children_user + times.children_system


def _report(results: list[tuple[Mutant, str]], seconds: float, sample: int) -> None:
    print(f"{'file':<20}{'mutants':>8}{'killed':>8}{'share':>8}")
    for name in [*sorted({named(mutant.file) for mutant, _ in results}), None]:
        words = [word for mutant, word in results if name in (None, named(mutant.file))]
        killed = len(words) - words.count("survived")
        print(f"{name or 'all':<20}{len(words):>8}{killed:>8}{killed / max(len(words), 1):>8.1%}")
    survivors = [mutant for mutant, word in results if word == "survived"]
    print(f"\nsurvivors ({len(survivors)}):")
    print(*survivors, sep="\n")
    which = "all mutants" if sample == 1 else f"one mutant in {sample}"
    hung = sum(word == "hung" for _, word in results)
    average = seconds / max(len(results), 1)
    print(f"\n{which}, {hung} of the killed hung; {seconds / 60:.0f} minutes, {average:.1f} s each")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--file", help="only this file of the room: gradients.py")
    parser.add_argument("--lines", help="only these lines: gradients.py:40-60")
    parser.add_argument("--own", action="store_true", help="only the file's own tests: quicker")
    parser.add_argument("--sample", type=int, default=1, metavar="K", help="every K-th mutant")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    return parser.parse_args()


def _in_lines(mutant: Mutant, lines: str) -> bool:
    name, _, span = lines.partition(":")
    first, _, last = span.partition("-")
    return named(mutant.file) == name and int(first) <= mutant.line <= int(last or first)


if __name__ == "__main__":
    main()
