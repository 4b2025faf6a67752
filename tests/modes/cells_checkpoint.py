"""Activation checkpointing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)

import nethook
from tests.modes import compiling as c
from tests.modes.matrix import Mode, cell, mode
from tests.modes.steps import Blocks, batches, equal, network, patched, same, train, watching

Run = Callable[[nn.Module, torch.Tensor], torch.Tensor]


class Checked(nn.Module):
    """The network of the cells with its blocks run as `run` says, and the same addresses."""

    def __init__(self, net: Blocks, run: Run) -> None:
        super().__init__()
        self.embed, self.blocks, self.head = net.embed, net.blocks, net.head
        self._run = run

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embed(x)
        for block in self.blocks:
            x = self._run(block, x)
        return self.head(x).mean(1)


def _keep_products(_: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    kept = op in (torch.ops.aten.addmm.default, torch.ops.aten.mm.default)
    return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE


def _reentrant(block: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return checkpoint(block, x, use_reentrant=True)


def _plain(block: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return checkpoint(block, x, use_reentrant=False)


def _nested(block: nn.Module, x: torch.Tensor) -> torch.Tensor:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x + checkpoint(lambda h: block.down(block.act(block.up(block.norm(h)))), x,
                              use_reentrant=False)  # fmt: skip

    return checkpoint(inner, x, use_reentrant=False)


def _selective(block: nn.Module, x: torch.Tensor) -> torch.Tensor:
    contexts = partial(create_selective_checkpoint_contexts, _keep_products)
    return checkpoint(block, x, use_reentrant=False, context_fn=contexts)


def _counted_again(module: str) -> Any:
    return lambda: patched(f"nethook.{module}.backward_id", lambda: -1)


def _edited_once() -> Any:
    from nethook.editing.changes import ChangeOutput

    original = ChangeOutput.__call__

    def first_pass_only(self: Any, module: Any, args: Any, output: Any) -> Any:
        again = torch._C._current_graph_task_id() != -1
        return None if again else original(self, module, args, output)

    return patched("nethook.editing.changes.ChangeOutput.__call__", first_pass_only)


def _checked(run: Run, compile_: bool = False) -> Any:
    model = Checked(network("blocks"), run)  # type: ignore[arg-type]
    return torch.compile(model, backend="aot_eager", fullgraph=True) if compile_ else model


def check_watch(run: Run, compile_: bool = False) -> None:
    expected, _ = c.watched_eagerly("blocks")
    with c.fresh():
        model = _checked(run, compile_)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        with watching(model, optimizer) as rows:
            train(model, batches("blocks"), optimizer)
    same(rows, expected, ("outputs", "grads", "param_grads"))


def check_trace(run: Run, compile_: bool = False) -> None:
    with c.fresh():
        plain, model = network("blocks"), _checked(run, compile_)
        for x, y in batches("blocks"):
            with nethook.trace(plain) as expected:
                c.loss(plain(x), y).backward()
            with nethook.trace(model) as tape:
                c.loss(model(x), y).backward()
            equal([tape[at].output for at in expected], [expected[at].output for at in expected])


def check_edit(run: Run, compile_: bool = False) -> None:
    edits = {"outputs": {"blocks.*.act": nethook.edits.scale(0.5)}}
    with c.fresh():
        plain, model = network("blocks"), _checked(run, compile_)
        for x, y in batches("blocks"):
            for each in (plain, model):
                with nethook.edit(each, **edits):
                    c.loss(each(x), y).backward()
            equal([p.grad for p in model.parameters()], [p.grad for p in plain.parameters()])


_NO_BACKWARD = "runs without gradient, so nothing is recomputed"
_WAYS: tuple[tuple[str, str, Run, bool], ...] = (
    ("`use_reentrant=False`", "recomputed in backward", _plain, False),
    ("`use_reentrant=True`", "the first pass has no gradient", _reentrant, False),
    ("nested", "a checkpoint inside a checkpoint", _nested, False),
    ("selective", "some operations are kept", _selective, False),
    ("inside `torch.compile`", "recomputed by the compiled backward", _plain, True),
)


def _cells(declared: Mode, run: Run, compile_: bool) -> None:
    @cell(
        "watch", declared, "blocks",
        guard=c.no_taps_in_graphs if compile_ else _counted_again("watching.measuring.taps"),
        without="nothing is recorded" if compile_ else "what is recomputed is counted twice",
    )  # fmt: skip
    def watch(_: str) -> None:
        check_watch(run, compile_)

    @cell(
        "trace", declared, "blocks",
        guard=c.scope_stays_compiled if compile_ else _counted_again("tracing.taps"),
        without="nothing is recorded" if compile_ else "a block has two calls",
    )  # fmt: skip
    def trace(_: str) -> None:
        check_trace(run, compile_)

    @cell(
        "edit", declared, "blocks",
        guard=_edited_once, without="recompute disagrees with the first pass",
    )  # fmt: skip
    def edit(_: str) -> None:
        check_edit(run, compile_)


for _name, _what, _way, _compile in _WAYS:
    _cells(mode("Activation checkpointing", _name, _what, features=_NO_BACKWARD), _way, _compile)
