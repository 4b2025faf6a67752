"""Accumulation, several backward passes, double backward, `autograd.grad`; and torch.func."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import nethook
from nethook.errors import NotRunError
from nethook.watching.fail_open import WatchWarning
from tests.modes import compiling as c
from tests.modes.cells_precision import no_hooks
from tests.modes.matrix import cell, mode
from tests.modes.steps import Rows, batches, equal, network, patched, watching

_NO_GRAD = "runs without gradient"
_PLAIN = "an edit does not depend on the backward pass"


class Hand:
    """Output gradients as plain tensor hooks see them, a list a step."""

    def __init__(self, model: nn.Module) -> None:
        self.grads: dict[str, list[list[torch.Tensor]]] = {}
        self.on = True
        for name, module in model.named_modules():
            if not list(module.children()):
                module.register_forward_hook(self._hook(name))

    def _hook(self, name: str) -> Any:
        def keep(grad: torch.Tensor) -> None:
            if self.on:
                self.grads.setdefault(name, [[]])[-1].append(grad.detach().clone())

        return lambda _m, _a, out: out.register_hook(keep) and None

    def step(self) -> None:
        for each in self.grads.values():
            each.append([])

    def check(self, rows: Rows) -> None:
        assert self.grads
        for name, steps in self.grads.items():
            seen = rows[name, "grads"]
            for step, grads in enumerate(filter(None, steps)):
                joined = torch.cat([grad.double().flatten() for grad in grads])
                assert seen["tensors"][step] == len(grads)
                # Relative to the elements: a mean may be next to nothing.
                np.testing.assert_allclose(
                    seen["mean"][step], joined.mean(), 1e-6, 1e-7 * float(joined.abs().max())
                )
                assert seen["max"][step] == joined.max()


@contextmanager
def _first_backward_only() -> Iterator[None]:
    """A step has one backward pass, and all others are taken for something else."""
    from nethook.watching.hooks.wrappers import _OnBackward

    original = _OnBackward.__call__

    def call(self: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        if self.session.clock.backwards:
            return function(*args, **kwargs)
        return original(self, function, *args, **kwargs)

    with patched("nethook.watching.hooks.wrappers._OnBackward.__call__", call):
        yield


@contextmanager
def _every_gradient() -> Iterator[None]:
    """Whatever flows back is taken for a gradient of the loss."""
    from nethook.watching.measuring.taps import GradTap

    original = GradTap.__call__

    def call(self: Any, grad: Any) -> None:
        self.layers.calls.in_backward += 1
        try:
            original(self, grad)
        finally:
            self.layers.calls.in_backward -= 1

    with patched("nethook.watching.measuring.taps.GradTap.__call__", call):
        yield


ACCUMULATED = mode(
    "Backward passes", "accumulation", "several micro-batches per step",
    edit=_PLAIN, features=_NO_GRAD,
)  # fmt: skip


@cell(
    "watch", ACCUMULATED, "mlp", guard=_first_backward_only,
    without="only the first micro-batch of a step is measured",
)  # fmt: skip
def watch_accumulation(name: str) -> None:
    model = network(name)
    hand = Hand(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(model, optimizer) as rows:
        for _ in range(3):
            optimizer.zero_grad()
            for x, y in batches(name, 2):
                (c.loss(model(x), y) / 2).backward()
            optimizer.step()
            hand.step()
    hand.check(rows)
    assert list(rows["0", "outputs"]["tensors"]) == [2, 2, 2]
    assert list(rows["0.weight", "param_grads"]["tensors"]) == [1, 1, 1]


@cell("trace", ACCUMULATED, "mlp", guard=no_hooks, without="nothing is recorded")
def trace_accumulation(name: str) -> None:
    model = network(name)
    hand = Hand(model)
    for _ in range(3):
        hand.grads.clear()
        with nethook.trace(model, grads=True) as tape:
            for x, y in batches(name, 2):
                c.loss(model(x), y).backward()
        for at in tape:
            equal([call.grad for call in tape[at].calls], hand.grads[at][0])


RETAINED = mode(
    "Backward passes", "`retain_graph=True`", "one graph, several backward passes",
    edit=_PLAIN, features=_NO_GRAD,
)  # fmt: skip


@cell(
    "watch", RETAINED, "mlp", guard=_first_backward_only,
    without="only the first backward pass of a step is measured",
)  # fmt: skip
def watch_retained(name: str) -> None:
    model = network(name)
    hand = Hand(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(model, optimizer) as rows:
        for x, y in batches(name):
            optimizer.zero_grad()
            out = model(x)
            c.loss(out, y).backward(retain_graph=True)
            out.square().mean().backward()
            optimizer.step()
            hand.step()
    hand.check(rows)
    assert list(rows["0", "outputs"]["tensors"]) == [1, 1, 1]


@cell("trace", RETAINED, "mlp", guard=no_hooks, without="nothing is recorded")
def trace_retained(name: str) -> None:
    model = network(name)
    hand = Hand(model)
    for x, y in batches(name):
        hand.grads.clear()
        with nethook.trace(model, grads=True) as tape:
            out = model(x)
            c.loss(out, y).backward(retain_graph=True)
            out.square().mean().backward()
        for at in tape:
            equal(list(tape[at].calls[0].grads), hand.grads[at][0])


PENALTY = mode(
    "Backward passes", "gradient penalty", "`autograd.grad(create_graph=True)`, then a backward",
    edit=_PLAIN, features=_NO_GRAD,
    trace="a tape keeps the gradients of every backward pass: `.grads`",
)  # fmt: skip


@cell(
    "watch", PENALTY, "mlp", guard=_every_gradient,
    without="gradients of the penalty's inner pass are counted as the loss's",
)  # fmt: skip
def watch_gradient_penalty(name: str) -> None:
    model = network(name)
    hand = Hand(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(model, optimizer) as rows:
        for x, y in batches(name):
            optimizer.zero_grad()
            x.requires_grad_()
            loss = c.loss(model(x), y)
            hand.on = False
            [grad] = torch.autograd.grad(loss, x, create_graph=True)
            hand.on = True
            (loss + grad.square().sum()).backward()
            optimizer.step()
            hand.step()
    hand.check(rows)


ASKED = mode(
    "Backward passes", "`torch.autograd.grad`", "no `.backward()` at all",
    edit=_PLAIN, features=_NO_GRAD,
)  # fmt: skip


@cell(
    "watch", ASKED, "mlp", guard=_every_gradient,
    without="gradients are recorded that no step uses",
)  # fmt: skip
def watch_autograd_grad(name: str) -> None:
    """Looking at a gradient between steps changes nothing of what is recorded."""
    expected, _ = c.watched_eagerly(name)
    model = network(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(model, optimizer) as rows:
        for x, y in batches(name):
            optimizer.zero_grad()
            loss = c.loss(model(x), y)
            torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
            loss.backward()
            optimizer.step()
    c.same(rows, expected, ("outputs", "grads", "param_grads"))


@cell("trace", ASKED, "mlp", guard=no_hooks, without="nothing is recorded")
def trace_autograd_grad(name: str) -> None:
    model = network(name)
    hand = Hand(model)
    for x, y in batches(name):
        hand.grads.clear()
        x.requires_grad_()
        with nethook.trace(model, grads=True) as tape:
            torch.autograd.grad(c.loss(model(x), y), x)
        for at in tape:
            equal([tape[at].grad], hand.grads[at][0])


# -- torch.func -----------------------------------------------------------------------------------

VMAP = mode("torch.func", "`vmap`, `grad`", "values do not outlive the transform",
            features="calls the model itself, outside a transform")  # fmt: skip
CALLED = mode("torch.func", "`functional_call`", "with other parameters than the model's own",
              features="calls the model itself, with its own parameters")  # fmt: skip


def _transforms_unseen(room: str) -> Any:
    return lambda: patched(f"nethook.{room}.in_transform", lambda: False)


def _mapped(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Any:
    weights = {name: each.detach() for name, each in model.named_parameters()}

    def one(weights: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        out = torch.func.functional_call(model, weights, (x[None],))
        return c.loss(out, y[None])

    return torch.func.vmap(torch.func.grad(one), (None, 0, 0))(weights, x, y)


@cell(
    "watch", VMAP, "mlp", guard=_transforms_unseen("watching.measuring.taps"),
    without="calls inside the transform are counted as training",
)  # fmt: skip
def watch_beside_transforms(name: str) -> None:
    """Per-sample gradients between steps: theirs are no calls of the training."""
    expected, _ = c.watched_eagerly(name)
    model = network(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(model, optimizer) as rows:
        for x, y in batches(name):
            before = _mapped(network(name, seed=3), x, y)
            equal(list(before.values()), list(_mapped(network(name, seed=3), x, y).values()))
            _mapped(model, x, y)
            optimizer.zero_grad()
            c.loss(model(x), y).backward()
            optimizer.step()
    c.same(rows, expected, ("outputs", "grads", "param_grads"))
    assert not any(rows["0", "outputs"]["skipped"])


@cell(
    "trace", VMAP, "mlp", guard=_transforms_unseen("tracing.taps"),
    without="a value is kept that no longer exists",
    refused="`NotRunError`: '0' was called, but inside a torch.func transform (vmap, grad, …), "
    "whose values do not outlive it",
)  # fmt: skip
def trace_in_a_transform(name: str) -> None:
    model = network(name)
    for x, y in batches(name):
        with nethook.trace(model, "0") as tape:
            _mapped(model, x, y)
        with pytest.raises(NotRunError, match=r"inside a torch\.func transform"):
            tape["0"].output


@cell("edit", VMAP, "mlp", guard=no_hooks, without="nothing is changed")
def edit_in_a_transform(name: str) -> None:
    model, by_hand = network(name), network(name)
    by_hand[1].register_forward_hook(lambda _m, _a, out: out * 0.5)
    for x, y in batches(name):
        with nethook.edit(model, outputs={"1": nethook.edits.scale(0.5)}):
            found = _mapped(model, x, y)
        equal(list(found.values()), list(_mapped(by_hand, x, y).values()))


def _with_other_weights(model: nn.Module, other: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.func.functional_call(model, dict(other.named_parameters()), (x,))


@cell("watch", CALLED, "mlp", guard=no_hooks, without="nothing is recorded")
def watch_functional_call(name: str) -> None:
    expected, _ = c.watched_eagerly(name)
    model, weights = network(name, seed=5), network(name)
    optimizer = torch.optim.SGD(weights.parameters(), 0.1)
    # It holds nothing of the model, and watching says so.
    with (  # noqa: PT031  the warning comes at the beginning
        pytest.warns(WatchWarning, match="holds none of them"),
        watching(model, optimizer) as rows,
    ):
        for x, y in batches(name):
            optimizer.zero_grad()
            c.loss(_with_other_weights(model, weights, x), y).backward()
            optimizer.step()
    # Outputs and their gradients are those of the weights that were given. Parameters, which are
    # the model's own, and which nothing trains, have no gradients.
    first = {key: expected[key] for key in expected if key[1] in ("outputs", "grads")}
    for key, fields in first.items():
        np.testing.assert_array_equal(rows[key]["mean"][0], fields["mean"][0])
    assert ("0.weight", "param_grads") not in rows


@cell("trace", CALLED, "mlp", guard=no_hooks, without="nothing is recorded")
def trace_functional_call(name: str) -> None:
    model, weights = network(name, seed=5), network(name)
    for x, _ in batches(name):
        with nethook.trace(weights) as expected:
            weights(x)
        with nethook.trace(model) as tape:
            _with_other_weights(model, weights, x)
        equal([tape[at].output for at in tape], [expected[at].output for at in expected])


@cell("edit", CALLED, "mlp", guard=no_hooks, without="nothing is changed")
def edit_functional_call(name: str) -> None:
    model, weights = network(name, seed=5), network(name)
    edits = {"outputs": {"1": nethook.edits.scale(0.5)}}
    for x, _ in batches(name):
        with nethook.edit(weights, **edits):
            expected = weights(x)
        with nethook.edit(model, **edits):
            assert torch.equal(_with_other_weights(model, weights, x), expected)
