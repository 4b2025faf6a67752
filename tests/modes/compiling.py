"""What the cells of compiled models share: ways to compile, graphs counted, guards."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import nn

import nethook
from tests.modes.steps import Rows, batches, equal, network, patched, same, train, watching

Compile = Callable[..., Any]
"""`compile(model, backend)` -> what is called."""


def whole(model: nn.Module, backend: str = "eager") -> Any:
    return torch.compile(model, backend=backend, fullgraph=True)


def dynamic(model: nn.Module, backend: str = "eager") -> Any:
    return torch.compile(model, backend=backend, fullgraph=True, dynamic=True)


def in_place(model: nn.Module, backend: str = "eager") -> Any:
    model.compile(backend=backend, fullgraph=True)
    return model


def regional(model: Any, backend: str = "eager") -> Any:
    for block in model.blocks:
        block.compile(backend=backend, fullgraph=True)
    return model


@contextmanager
def fresh() -> Iterator[None]:
    """Nothing was compiled before, and nothing is afterwards."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    # Thousands of records for tools that are not here; pytest would keep and format them all.
    trace = logging.getLogger("torch.__trace")
    propagate, trace.propagate = trace.propagate, False
    try:
        yield
    finally:
        trace.propagate = propagate
        torch._dynamo.reset()


def graphs() -> int:
    """How many were compiled; a graph break is an error."""
    counters = torch._dynamo.utils.counters
    assert not counters["graph_break"]
    return int(counters["stats"]["unique_graphs"])


@cache
def watched_eagerly(name: str) -> tuple[Rows, list[torch.Tensor]]:
    """What eager training records, and returns."""
    model = network(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(model, optimizer) as rows:
        outputs = train(model, batches(name), optimizer)
    return rows, outputs


@cache
def unwatched(name: str, compile_: Compile, backend: str) -> tuple[list[torch.Tensor], int]:
    """What compiled training returns without a watch, the weights it ends with, and its graphs."""
    with fresh():
        model = network(name)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        outputs = train(compile_(model, backend), batches(name), optimizer)
        return [*outputs, *(each.detach().clone() for each in model.parameters())], graphs()


def check_watch(
    name: str, compile_: Compile, backend: str = "eager", *, called: bool = False
) -> None:
    """The same numbers as in eager, the same bits as without a watch, as many graphs."""
    expected, _ = watched_eagerly(name)
    plain, count = unwatched(name, compile_, backend)
    with fresh():
        model = network(name)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        compiled = compile_(model, backend)
        if called:
            before = {key: value.clone() for key, value in model.state_dict().items()}
            compiled(batches(name)[0][0])  # with gradients, and without a watch
            model.load_state_dict(before)
        with watching(compiled, optimizer) as rows:
            outputs = train(compiled, batches(name), optimizer)
        assert graphs() == count + called
    equal([*outputs, *model.parameters()], plain)
    if backend == "inductor":  # sums in another order than eager's
        same(rows, expected, ("outputs", "grads", "inputs"), rtol=1e-4, atol=1e-5)
    else:
        same(rows, expected, ("outputs", "grads", "param_grads", "updates", "inputs"))


def check_trace(name: str, compile_: Compile) -> None:
    """The same values and gradients as eager, and the compiled code is used again afterwards."""
    with fresh():
        model, compiled = network(name), compile_(network(name))
        for x, y in batches(name):
            loss(compiled(x), y).backward()
            before = graphs()
            with nethook.trace(model, grads=True) as expected:
                loss(model(x), y).backward()
            with nethook.trace(compiled, grads=True) as tape:
                loss(compiled(x), y).backward()
            assert list(tape) == list(expected)
            equal([tape[at].output for at in tape], [expected[at].output for at in expected])
            equal([tape[at].grad for at in tape], [expected[at].grad for at in expected])
            loss(compiled(x), y).backward()
            assert graphs() == before


def check_edit(name: str, compile_: Compile, at: str) -> None:
    """The same results as eager."""
    with fresh():
        model, compiled = network(name), compile_(network(name))
        for x, _ in batches(name):
            plain = compiled(x)
            edits = {"outputs": {at: nethook.edits.scale(0.5)}}
            with nethook.edit(model, **edits):
                expected = model(x)
            with nethook.edit(compiled, **edits):
                assert torch.equal(compiled(x), expected)
            assert torch.equal(compiled(x), plain)
            assert not torch.equal(plain, expected)


def check_features(name: str, compile_: Compile, at: str) -> None:
    """The same features as eager."""
    with fresh():
        model, compiled = network(name), compile_(network(name))
        for x, _ in batches(name):
            compiled(x)
            expected = nethook.features(model, x, at=at)
            assert torch.equal(nethook.features(compiled, x, at=at), expected)


def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(out, y)


# -- guards ---------------------------------------------------------------------------------------


def no_taps_in_graphs() -> AbstractContextManager[None]:
    return patched("nethook.watching.measuring.taps.show", lambda *_: None)


def hooks_unchecked() -> AbstractContextManager[None]:
    return patched("nethook.watching.attach.check_hooks_in_graphs", lambda *_: None)


def scope_stays_compiled() -> AbstractContextManager[None]:
    return patched("nethook.hooks.scope.run_eagerly_where_compiled", lambda *_: None)


def nothing() -> AbstractContextManager[None]:
    return nullcontext()
