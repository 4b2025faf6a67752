"""The plan of the house: READMEs, sizes, who imports whom, and who may touch torch's hooks."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "nethook"
FILES = sorted(PACKAGE.rglob("*.py"))
ROOMS = sorted({path.parent for path in FILES} - {PACKAGE})

# The methods and functions of torch that register a hook or enter a mode ...
REGISTERS = re.compile(
    r"^register_.*hook$|^retain_grad$|^saved_tensors_hooks$"
    r"|^Torch(Function|Dispatch)Mode$|^_(push_on|pop)_torch_(function|dispatch)_stack$"
)
# ... and the tables that it keeps them in.
TABLES = re.compile(r"^_(global_)?(forward|backward|post_accumulate|state_dict|load_state).*hooks?")


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def hook_uses(source: str) -> list[str]:
    """Every place in a program that registers a hook with torch or reads its tables of hooks."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Attribute):
            names = [node.attr]
        elif isinstance(node, ast.Name):
            # A method alone, so a name by itself is no use of it: it is an option of `Trace`.
            names = [] if node.id == "retain_grad" else [node.id]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch"):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value]  # getattr(module, "_forward_hooks")
        found += [
            f"line {getattr(node, 'lineno', 0)}: {name}"
            for name in names
            if REGISTERS.match(name) or TABLES.match(name)
        ]
    return found


@pytest.mark.parametrize("room", ROOMS, ids=name_of)
def test_a_room_has_a_readme_of_about_ten_lines(room: Path) -> None:
    lines = (room / "README.md").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert 5 <= len(lines) <= 20


@pytest.mark.parametrize("room", ROOMS, ids=name_of)
def test_a_readme_lists_the_files_of_its_room_and_no_others(room: Path) -> None:
    if room.name == "rules":
        return  # docs/doctor.md lists them, and tests/doctor/test_catalogue.py compares
    text = (room / "README.md").read_text(encoding="utf-8")
    bullets = re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE)
    named = {word for bullet in bullets for word in re.findall(r"`(\w+)/?`", bullet)}
    here = {path.stem for path in room.glob("*.py")} - {"__init__"}
    here |= {path.parent.name for path in room.glob("*/__init__.py")}
    assert named == here


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_is_short_enough_to_read(path: Path) -> None:
    most = 920 if path.name == "torch_private.py" else 500  # a list, which is one file on purpose
    lines = path.read_text(encoding="utf-8").splitlines()
    imported = ast.parse("\n".join(lines)).body
    imports = [each for each in imported if isinstance(each, ast.Import | ast.ImportFrom)]
    assert len(lines) - sum(each.end_lineno - each.lineno + 1 for each in imports) <= most


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in FILES
        # The list of private names gives out the tables; it puts nothing into them.
        if PACKAGE / "hooks" not in path.parents and path.name != "torch_private.py"
    ],
    ids=name_of,
)
def test_only_hooks_registers_anything_with_torch(path: Path) -> None:
    assert hook_uses(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "module.register_forward_hook(f)",
        "nn.Module.register_full_backward_pre_hook(module, f)",
        "tensor.register_hook(f)",
        "node.register_prehook(f)",
        "tensor.register_post_accumulate_grad_hook(f)",
        "from torch.nn.modules.module import register_module_forward_hook",
        "tensor.retain_grad()",
        "len(module._forward_pre_hooks)",
        "tensor._backward_hooks = None",
        "getattr(module, '_forward_hooks')",
        "with torch.autograd.graph.saved_tensors_hooks(pack, unpack): pass",
        "from torch.overrides import TorchFunctionMode",
        "torch._C._push_on_torch_function_stack(mode)",
    ],
)
def test_the_search_for_hooks_can_fail(source: str) -> None:
    assert hook_uses(source)


def imports_of(name: str, source: str, modules: set[str]) -> set[str]:
    """The modules of the package that a module imports anywhere.

    At its top, under `TYPE_CHECKING` and inside functions: what a reader has to know first counts,
    not what the interpreter loads first.
    """
    targets: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports are written in full"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                targets.add(full if full in modules else node.module or "")
    return targets & modules - {name}


def cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that reach one another: Tarjan's strongly connected components."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in order:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                groups.append(sorted(group))

    for module in sorted(graph):
        if module not in order:
            visit(module)
    return groups


def test_no_module_reaches_itself_by_imports() -> None:
    sources = {
        ".".join(("nethook", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path.read_text(encoding="utf-8")
        for path in FILES
    }
    modules = set(sources)
    graph = {name: imports_of(name, source, modules) for name, source in sources.items()}
    assert sum(map(len, graph.values())) > 1000  # it does see imports
    assert cycles(graph) == []


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set()}, []),
        ({"a": {"b"}, "b": {"a"}}, [["a", "b"]]),
        ({"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": {"b"}}, [["b", "c", "d"]]),
        ({"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"c"}}, [["c", "d"], ["a", "b"]]),
    ],
)
def test_the_search_for_cycles_finds_them(
    graph: dict[str, set[str]], expected: list[list[str]]
) -> None:
    assert cycles(graph) == expected


def test_the_search_for_cycles_reads_every_kind_of_import() -> None:
    source = """
import nethook.first
from nethook.second import name
from nethook import third
if TYPE_CHECKING:
    from nethook.fourth import Name
def load():
    from nethook.fifth import Name
import torch
"""
    numbers = ("first", "second", "third", "fourth", "fifth")
    modules = {"nethook", *(f"nethook.{number}" for number in numbers)}
    targets = imports_of("nethook.sixth", source, modules)
    assert targets == {f"nethook.{number}" for number in numbers}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """import-linter on the package in `folder/src`, with the contracts of `folder`."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    # -S: an editable install finds its own sources before any path; a copy must be found instead.
    path = [str(folder / "src"), *{sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}]
    return subprocess.run(
        [sys.executable, "-S", "-c", program, "--no-cache", "--no-logo"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_room_imports_only_what_it_may() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("file", "reached"),
    [
        ("errors.py", "addresses.inputs"),
        ("addresses/extra.py", "hooks.audit"),
        ("hooks/extra.py", "tracing.tape"),
        ("hooks/extra.py", "drawing.data"),
        ("hooks/extra.py", "stats.fields"),
        ("stats/extra.py", "addresses.inputs"),
        ("drawing/extra.py", "addresses.inputs"),
        ("drawing/extra.py", "tracing.tape"),
        ("text/extra.py", "addresses.inputs"),
        ("tracing/extra.py", "cli.main"),
        ("watching/measuring/extra.py", "watching.session"),
        ("watching/losses/extra.py", "watching.loop.optimizers"),
    ],
)
def test_the_import_contract_can_fail(file: str, reached: str, tmp_path: Path) -> None:
    done = lint_with(tmp_path, file, f"import nethook.{reached}")
    importer = file.removesuffix(".py").replace("/", ".")
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(rf"nethook\.{importer}\s+->\s+nethook\.{reached}\b", done.stdout)


def test_a_room_that_nobody_planned_breaks_the_contract(tmp_path: Path) -> None:
    done = lint_with(tmp_path, "attic/__init__.py", "")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "attic" in done.stdout


def lint_with(folder: Path, file: str, line: str) -> subprocess.CompletedProcess[str]:
    """import-linter on a copy of the package in which `file` has one more line."""
    shutil.copy(ROOT / "pyproject.toml", folder)
    package = folder / "src" / "nethook"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    changed = package / file
    changed.parent.mkdir(exist_ok=True)
    with changed.open("a", encoding="utf-8") as stream:
        stream.write(f"\n{line}\n")
    return lint_imports(folder)
