"""What a checkpoint computes again is run as it was, where it was."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.hooks.ops.watch import recomputing, watch_ops
from nethook.torch_private import CHECKPOINT_GENERATOR


class Log(OpConsumer):
    """Writes down every operation, and whether it is computed again."""

    def __init__(self) -> None:
        self.ops: list[tuple[str, bool]] = []

    def after(self, op: Op, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        self.ops.append((op.address, recomputing()))


class Block(nn.Module):
    """Computes a part again that is no module."""

    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.how = how

    def forward(self, x: Tensor) -> Tensor:
        h = torch.exp(x)
        return checkpoint(lambda x, scale=3.0: torch.exp(x * scale), h, **self.how)


def slope(how: dict[str, Any]) -> Tensor:
    """The gradient without checkpoints, by autograd."""
    x = torch.full((2,), 0.1, requires_grad=True)
    torch.exp(torch.exp(x) * how.get("scale", 3.0)).sum().backward()
    assert x.grad is not None
    return x.grad


@pytest.mark.parametrize(
    "how",
    [{"use_reentrant": False}, {"use_reentrant": False, "scale": 2.0}, {"use_reentrant": True}],
)
@pytest.mark.parametrize("open_in_backward", [True, False])
def test_it_has_the_same_addresses_while_the_scope_is_open(
    how: dict[str, Any], open_in_backward: bool
) -> None:
    model, log = Block(**how), Log()
    x = torch.full((2,), 0.1, requires_grad=True)
    hooks = Attachment(Owner("nethook.test"))
    watch_ops(Tree(model), hooks, log)
    out = model(x)
    assert log.ops == [(each, False) for each in ("/exp#0", "/mul#0", "/exp#1")]
    log.ops.clear()
    if not open_in_backward:
        hooks.remove()
    out.sum().backward()
    again = [("/mul#0", True), ("/exp#1", True)]
    if not how["use_reentrant"]:
        again.pop()  # torch stops when it has all that it needs
    assert log.ops == (again if open_in_backward else [])
    hooks.remove()
    assert x.grad is not None
    assert torch.equal(x.grad, slope(how))
    assert torch._C._len_torch_function_stack() == 0


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_checkpoint_outside_the_model_is_as_ever(reentrant: bool) -> None:
    model, log = nn.ReLU(), Log()
    x = torch.ones(2, requires_grad=True)
    with Attachment(Owner("nethook.test")) as hooks:
        watch_ops(Tree(model), hooks, log)
        checkpoint(lambda x: x * 3, x, use_reentrant=reentrant).sum().backward()
        assert log.ops == []
        model(checkpoint(lambda x: x * 3, x, use_reentrant=reentrant)).sum().backward()
    assert log.ops == [("/relu#0", False)]
    assert x.grad is not None
    assert torch.equal(x.grad, torch.full((2,), 6.0))


@pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14),
    reason="a checkpoint can be made without its arguments, as by a decorator, from torch 2.14 on",
)
@pytest.mark.parametrize("reentrant", [True, False])
def test_a_function_that_was_decorated_has_the_same_addresses(reentrant: bool) -> None:
    class Decorated(nn.Module):
        @checkpoint(use_reentrant=reentrant)
        def part(self, x: Tensor) -> Tensor:
            return torch.exp(x * 3.0)

        def forward(self, x: Tensor) -> Tensor:
            return self.part(torch.exp(x))

    log, x = Log(), torch.full((2,), 0.1, requires_grad=True)
    with Attachment(Owner("nethook.test")) as hooks:
        model = Decorated()
        watch_ops(Tree(model), hooks, log)
        model(x).sum().backward()
    again = [("/mul#0", True), ("/exp#1", True)][: 2 if reentrant else 1]
    assert log.ops == [("/exp#0", False), ("/mul#0", False), ("/exp#1", False), *again]
    assert x.grad is not None
    assert torch.equal(x.grad, slope({}))


def test_what_a_checkpoint_computes_for_itself_is_no_operation_of_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Up to 2.11 torch makes a tensor of its own before the block runs; here every torch does."""
    original = getattr(torch.utils.checkpoint, CHECKPOINT_GENERATOR)

    def prepares(*args: Any, **kwargs: Any) -> Iterator[None]:
        torch.ones(1).sin()
        yield from original(*args, **kwargs)

    monkeypatch.setattr(torch.utils.checkpoint, CHECKPOINT_GENERATOR, prepares)
    model, log = Block(use_reentrant=False), Log()
    with Attachment(Owner("nethook.test")) as hooks:
        watch_ops(Tree(model), hooks, log)
        model(torch.full((2,), 0.1, requires_grad=True))
    assert [address for address, _ in log.ops] == ["/exp#0", "/mul#0", "/exp#1"]


def test_what_a_first_checkpoint_imports_is_no_operation_of_the_model() -> None:
    """The compiler of torch 2.8 computes with tensors while it is imported."""
    program = (
        "import sys, warnings, torch, nethook\n"
        "from torch.utils.checkpoint import checkpoint\n"
        "warnings.simplefilter('ignore')\n"
        "class Block(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return checkpoint(torch.relu, x, use_reentrant=True) * 2\n"
        "block = Block()\n"
        "assert 'torch._dynamo' not in sys.modules\n"
        "with nethook.trace(block, '**/*') as tape:\n"
        "    block(torch.ones(1, 3, requires_grad=True))\n"
        "print(*tape)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "/relu#0 /mul#0\n", done.stderr
