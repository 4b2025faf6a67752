"""Private names of torch stand in one file, and nethook goes on where one is missing."""

from __future__ import annotations

import ast
import gc
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from operator import methodcaller
from pathlib import Path

import pytest
import torch
from torch import nn

from nethook import torch_private
from nethook.private_names import NAMES, release

pytestmark = pytest.mark.short

PACKAGE = Path(__file__).parents[1] / "src" / "nethook"
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "torch_private.py"]
NATIVE = [path for ending in ("*.cpp", "*.h") for path in sorted(PACKAGE.rglob(ending))]


def is_private(word: str) -> bool:
    return word.startswith("_") and not word.startswith("__")


def private_attributes() -> set[str]:
    """Names with one leading underscore that objects and modules of torch have."""
    x = torch.ones(2, requires_grad=True)
    holders = [
        x,
        (x * x).grad_fn,
        x.untyped_storage(),
        nn.Linear(1, 1),
        nn.Module,
        torch.optim.SGD([x]),
        torch.utils.data.DataLoader([1]),
        torch.nn.parallel.DistributedDataParallel,
        torch.nn.modules.module,
        torch.nn.modules.batchnorm,
        torch.nn.modules.dropout,
        sys.modules["torch.optim.optimizer"],
        torch.utils.checkpoint,
        torch.nn.utils.clip_grad,
        torch.autograd.forward_ad,
        torch.autograd.Variable,
        torch,
        torch._C,
    ]
    found = {word for holder in holders for word in dir(holder)}
    found |= {word for holder in holders for word in getattr(holder, "__dict__", {})}
    found |= {path.rpartition(".")[2].removesuffix("()") for path in NAMES}
    return {word for word in found if is_private(word)} - CHANCE


# Words that torch uses for something else, and nethook for attributes of its own objects.
CHANCE = {"_name", "_state", "_hooks", "_data", "_call", "_values", "_index", "_sum", "_keys"}


def names_defined_in(tree: ast.AST) -> set[str]:
    """What a file defines itself: its own attributes may be called as torch's are."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                found.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


OF_TORCH = private_attributes()
PATH = re.compile(r"^torch(\.\w+)*\._[a-zA-Z]\w*(\.\w+)*$")


def uses(source: str, own: set[str] = frozenset()) -> Iterator[str]:
    """Every place in a program that uses a private name of torch."""
    for node in ast.walk(ast.parse(source)):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            paths = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (f"line {line}: {path}" for path in paths if PATH.match(path))
        elif isinstance(node, ast.Import):
            yield from (f"line {line}: {each.name}" for each in node.names if PATH.match(each.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            written = ast.unparse(node)
            of_self = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if written.startswith("torch.") or (
                node.attr in OF_TORCH and node.attr not in own and not of_self
            ):
                yield f"line {line}: {written}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value in NAMES:
                continue  # names an entry of the list
            if PATH.match(node.value) or (node.value in OF_TORCH and node.value not in own):
                yield f"line {line}: {node.value!r}"


@cache
def names_defined_anywhere() -> set[str]:
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in FILES)
    return {name for tree in trees for name in names_defined_in(tree)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_other_file_uses_a_private_name_of_torch(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    elsewhere = names_defined_anywhere() - set(private_words_of_the_list())
    own = names_defined_in(ast.parse(source)) | elsewhere
    assert list(uses(source, own)) == []


def private_words_of_the_list() -> Iterator[str]:
    for path in NAMES:
        yield from (word for word in path.removesuffix("()").split(".") if is_private(word))


@pytest.mark.parametrize("path", NATIVE, ids=lambda path: path.name)
def test_nor_does_the_native_kernel(path: Path) -> None:
    strings = re.findall(r'"((?:[^"\\]|\\.)*)"', path.read_text(encoding="utf-8"))
    assert [each for each in strings if each in OF_TORCH or PATH.match(each)] == []
    assert "aoti_torch" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "source",
    [
        "torch._C._current_graph_task_id()",
        "from torch._subclasses.fake_tensor import FakeTensor",
        "from torch.utils import _pytree",
        "import torch._dynamo",
        "tensor._version",
        "self.tensor._base",
        "module._forward_hooks.clear()",
        "getattr(module, '_forward_hooks')",
        "sys.modules['torch._dynamo.config']",
        "node._saved_self",
        "nn.modules.batchnorm._BatchNorm",
        "torch.optim.optimizer._global_optimizer_pre_hooks",
    ],
)
def test_the_search_can_fail(source: str) -> None:
    assert list(uses(source))


@pytest.mark.parametrize("path", NAMES)
def test_every_name_says_what_it_is_for(path: str) -> None:
    each = NAMES[path]
    assert path.startswith("torch.")
    assert any(is_private(word) for word in path.split(".")) or path.endswith("()")
    assert len(each.question.split()) >= 3
    assert len(each.lost.split()) >= 1
    assert release(each.since) >= (2, 8)


class Saved:
    """As a node of autograd: what it saved is read by code that is not Python's."""

    _saved_it = property(methodcaller("read"))

    def __init__(self, read: Callable[[], object]) -> None:
        self.read = read


class Handler:
    """Handlers of a signal in every form; each calls something, and says so when it is done."""

    def __init__(self) -> None:
        self.done = 0

    def __call__(self, number: int, frame: object) -> None:
        self.count()

    def count(self) -> None:
        self.done += 1

    def forms(self) -> list[Callable[..., None]]:
        return [self, self.__call__, partial(self.__call__), lambda *_: self.count()]


read_on_old_torch = torch_private._saved_unless_a_function_runs


def test_before_torch_2_10_a_hook_of_the_scripts_is_not_run() -> None:
    ran = []
    x = torch.ones(3, requires_grad=True)
    plain = (x * torch.full((3,), 5.0)).grad_fn
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: ran.append(1) or t):
        hooked = (x * torch.full((3,), 5.0)).grad_fn
    assert read_on_old_torch(plain, "other").tolist() == [5.0] * 3
    assert read_on_old_torch(hooked, "other") is None
    assert ran == []


@pytest.mark.parametrize("form", range(4))
def test_there_a_signal_is_handled_to_its_end(form: int) -> None:
    handler = Handler()
    before = signal.signal(signal.SIGUSR1, handler.forms()[form])
    try:
        read_on_old_torch(Saved(partial(signal.raise_signal, signal.SIGUSR1)), "it")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert handler.done == 1
    assert sys.getprofile() is None


def test_there_an_error_of_a_signal_comes_out() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: 1 / 0)
    try:
        with pytest.raises(ZeroDivisionError):
            read_on_old_torch(Saved(partial(signal.raise_signal, signal.SIGUSR1)), "it")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert sys.getprofile() is None
    assert gc.isenabled()


def test_there_destructors_wait() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            gone.append(1)

    gone: list[int] = []
    often = gc.get_threshold()
    Cycle()
    numbers = range(1000)
    saved = Saved(partial(list, zip(numbers, numbers, strict=True)))  # it makes many containers
    gc.set_threshold(1)
    try:
        assert len(read_on_old_torch(saved, "it")) == 1000
    finally:
        gc.set_threshold(*often)
    gc.collect()
    assert gone == [1]


@pytest.mark.parametrize("on", [True, False])
def test_there_collecting_is_as_it_was(on: bool) -> None:
    if not on:
        gc.disable()
    try:
        read_on_old_torch(Saved(list), "it")
        assert gc.isenabled() == on
    finally:
        gc.enable()


PROGRAM = """
import torch, nethook
from nethook import torch_private
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
x, y = torch.randn(6, 4), torch.randint(2, (6,))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
lines = []
with nethook.trace(model, grads=True) as tape:
    torch.nn.functional.cross_entropy(model(x), y).backward()
lines += [f"{tape[name].output.sum():.6f} {tape[name].grad.sum():.6f}" for name in ("0", "1", "2")]
with nethook.trace(model, "**/*") as tape:
    model(x)
lines += list(tape)
with nethook.edit(model, outputs={"1": nethook.edits.zero()}):
    lines.append(f"{model(x).sum():.6f}")
lines.append(f"{nethook.features(model, x, at='1').sum():.6f}")
with nethook.watch(model, optimizer, to="run.db", budget=None) as watch:
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        lines.append(f"{loss.item():.6f}")
run = nethook.open_run("run.db")
lines += [str(each) for each in run.sites]
lines += [str(each) for each in nethook.audit(model)]
print("\\n".join(lines))
"""


def test_nethook_works_the_plain_way(tmp_path: Path) -> None:
    """With every name that can be done without switched off, the same numbers come out."""
    said = []
    for plain in ("", "all"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=tmp_path,
            env={**os.environ, "NETHOOK_PLAIN": plain},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
        (tmp_path / "run.db").unlink()
    assert said[0] == said[1]
    assert len(said[0].splitlines()) > 12


def test_what_was_saved_in_several_tensors_is_read_without_hooks() -> None:
    x = torch.randn(5, 3, requires_grad=True)
    index = torch.tensor([1, 2])
    (saved,) = torch_private.saved_without_hooks(x[index].grad_fn, "indices")
    assert torch.equal(saved, index)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        hooked = x[index].grad_fn
    assert torch_private.saved_without_hooks(hooked, "indices") is None


def test_one_tensor_that_was_saved_is_read_without_hooks() -> None:
    read = torch_private.reader_without_hooks("total_weight")
    logits, targets = torch.randn(5, 3, requires_grad=True), torch.tensor([0, 1, 2, -100, 0])

    def node() -> object:
        return torch.nn.functional.cross_entropy(logits, targets).grad_fn

    assert read(node()).item() == 4.0
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        hooked = node()
    assert read(hooked) is None
