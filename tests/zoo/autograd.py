"""Unusual ways to and through the autograd graph."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)

from tests.zoo.exhibit import Exhibit, Given, Quiet

__all__ = ["EXHIBITS"]

BATCHED = "values inside of a transform of torch.func cannot be read outside of it"


def _mlp() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))


class Checkpointed(nn.Module):
    """Runs its middle again in the backward pass, with the random numbers of the first time."""

    def __init__(self, *, reentrant: bool) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.block = nn.Sequential(
            nn.Linear(4, 4), nn.Dropout(), nn.ReLU(inplace=True), nn.Linear(4, 4)
        )
        self.last = nn.Linear(4, 2)
        self._reentrant = reentrant

    def forward(self, x: Tensor) -> Tensor:
        hidden = checkpoint(self.block, self.first(x), use_reentrant=self._reentrant)
        return self.last(hidden)


class SequentialCheckpoint(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(*(nn.Linear(4, 4) for _ in range(4)))

    def forward(self, x: Tensor) -> Any:
        return checkpoint_sequential(self.body, 2, x, use_reentrant=False)


class SelectiveCheckpoint(nn.Module):
    """Saves the products and computes the rest again, by a dispatch mode that counts operations."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.GELU())

    def forward(self, x: Tensor) -> Any:
        kept = [torch.ops.aten.addmm.default]
        contexts = partial(create_selective_checkpoint_contexts, kept)
        return checkpoint(self.block, x, use_reentrant=False, context_fn=contexts)


class Cube(torch.autograd.Function):
    """A function with a gradient that is deliberately not that of the cube."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, times: int) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x)
        signs = x.sign()
        ctx.mark_non_differentiable(signs)
        return x**3 * times, signs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        return grads[0] * x, None


class Dirty(torch.autograd.Function):
    """A function that writes its input and returns it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        return grads[0] * 2


class OwnFunctions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.cube = CubeModule()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.cube(Dirty.apply(self.fc(x)))


class CubeModule(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return Cube.apply(x, 2)


def _gradient_penalty(model: nn.Module, given: Given) -> object:
    x = given.floats(3, 4)
    out = model(x)
    (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    return out, (slope.norm(dim=-1) - 1) ** 2


class InnerGradient(nn.Module):
    """Its forward takes a gradient of its own: two steps of an inner optimisation."""

    def __init__(self) -> None:
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            for _ in range(2):
                (slope,) = torch.autograd.grad(self.energy(x).square().sum(), x, create_graph=True)
                x = x - 0.1 * slope
        return x


class InnerBackward(nn.Module):
    """Its forward calls backward(), which fills the gradients of its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.critic = nn.Linear(4, 1)
        self.fc = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        probe = x.detach().requires_grad_()
        self.critic(probe).sum().backward()
        assert probe.grad is not None
        return self.fc(x) + probe.grad


class Vmapped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        return torch.func.vmap(self.inner)(x)


class FuncGrad(nn.Module):
    """Per-sample gradients: vmap over grad over functional_call."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        weights = dict(self.inner.named_parameters())

        def loss(weights: dict[str, Tensor], sample: Tensor) -> Tensor:
            out: Tensor = torch.func.functional_call(self.inner, weights, (sample,))
            return out.square().sum()

        per_sample: dict[str, Tensor] = torch.func.vmap(torch.func.grad(loss), (None, 0))(
            weights, x
        )
        return per_sample


class Jacobian(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x: Tensor) -> Tensor:
        return torch.func.jacrev(self.inner)(x)


class ForwardMode(nn.Module):
    """Forward-mode differentiation: dual numbers run through the children."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, torch.ones_like(x))
            primal, tangent = forward_ad.unpack_dual(self.inner(dual))
            assert tangent is not None
            return primal * 1, tangent * 1


class PartlyUnused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.split = nn.Sequential(nn.Linear(4, 4), nn.Unflatten(-1, (2, 2)))
        self.ignored = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        self.ignored(x)  # its output leads nowhere
        return self.split(x)[:, 0]


class WrittenTooEarly(nn.Module):
    """Writes a value that the backward pass needs: autograd refuses, and says so."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.Sigmoid()

    def forward(self, x: Tensor) -> Tensor:
        y = self.act(self.fc(x))
        y.mul_(2)
        return y


def _fails_in_backward(model: nn.Module, given: Given) -> object:
    try:
        model(given.floats(3, 4)).sum().backward()
    except RuntimeError as error:
        return str(error)
    return None


def _grad_of_some(model: nn.Module, given: Given) -> object:
    """`autograd.grad` for the inputs and one weight: no gradient is accumulated anywhere."""
    x = given.floats(3, 4)
    weight = model.get_parameter("0.weight")
    return torch.autograd.grad(model(x).square().sum(), [x, weight])


def _dropped_graph(model: nn.Module, given: Given) -> object:
    """Many forwards whose graphs are thrown away before the one that counts."""
    for _ in range(5):
        model(given.floats(3, 4))
    return model(given.floats(3, 4))


EXHIBITS = (
    Exhibit(
        "checkpoint_reentrant",
        "Reentrant checkpoint: first without gradient, again inside the backward.",
        lambda: Checkpointed(reentrant=True),
    ),
    Exhibit(
        "checkpoint",
        "Checkpoint without reentry: the second run stops early, by an exception of its own.",
        lambda: Checkpointed(reentrant=False),
    ),
    Exhibit(
        "checkpoint_sequential", "Checkpoints over segments of a Sequential.", SequentialCheckpoint
    ),
    Exhibit(
        "checkpoint_selective",
        "A selective checkpoint watches every operation, and must find the same ones again.",
        SelectiveCheckpoint,
    ),
    Exhibit(
        "own_functions",
        "autograd.Function that marks outputs dirty and not differentiable.",
        OwnFunctions,
    ),
    Exhibit(
        "double_backward",
        "A gradient penalty: the loss contains a gradient.",
        _mlp,
        _gradient_penalty,
    ),
    Exhibit(
        "inner_gradient", "A forward that differentiates through its own children.", InnerGradient
    ),
    Exhibit(
        "backward_refused",
        "A value that autograd needs is overwritten: its error and message stay what they are.",
        WrittenTooEarly,
        _fails_in_backward,
        differentiable=False,
    ),
    Exhibit("inner_backward", "A forward that calls backward().", InnerBackward),
    Exhibit(
        "autograd_grad",
        "autograd.grad for some tensors instead of backward().",
        _mlp,
        _grad_of_some,
        differentiable=False,
    ),
    Exhibit("graphs_dropped", "Graphs that are never back-propagated.", _mlp, _dropped_graph),
    Exhibit("partly_unused", "An output that leads nowhere, and one used in part.", PartlyUnused),
    Exhibit("vmap_inside", "torch.func.vmap over a child.", Vmapped, no_oracle=BATCHED),
    Exhibit(
        "func_grad_inside", "Per-sample gradients by vmap over grad.", FuncGrad, no_oracle=BATCHED
    ),
    Exhibit(
        "jacobian_inside",
        "torch.func.jacrev through a child.",
        Jacobian,
        lambda model, given: model(given.floats(4)),
        no_oracle=BATCHED,
    ),
    Exhibit(
        "forward_mode",
        "Dual numbers of forward-mode differentiation.",
        ForwardMode,
        quiet=[Quiet(Warning, "`torch.jit", "torch scripts its own formulas here")],
    ),
)
