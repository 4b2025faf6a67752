"""Debugging gradients: which parameters get none, and whether the others are right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from nethook.addresses.tree import ParameterSite, Tree
from nethook.errors import EditError
from nethook.restoring.unchanged import unchanged

if TYPE_CHECKING:
    from nethook.text.table import Table


@dataclass(frozen=True)
class GradientCheck:
    """What was found out about the gradient of one parameter.

    `state` is `ok`, `none` (the loss does not depend on it), `zero`, `not finite`, `wrong` (it
    differs from finite differences) or `frozen`. `error` is the largest relative difference.
    """

    address: str
    state: str
    norm: float | None
    error: float | None


@dataclass(frozen=True, repr=False)
class GradientReport:
    """The checks of all parameters, in model order."""

    checks: tuple[GradientCheck, ...]

    @property
    def ok(self) -> bool:
        """Whether every gradient is there, finite and right."""
        return all(check.state in ("ok", "frozen") for check in self.checks)

    def __getitem__(self, address: str) -> GradientCheck:
        """The check of one parameter."""
        return {check.address: check for check in self.checks}[address]

    def __repr__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        from nethook.text.table import Table

        rows = [
            (
                check.address,
                check.state,
                "" if check.norm is None else f"{check.norm:.3g}",
                "" if check.error is None else f"{check.error:.1g}",
            )
            for check in self.checks
        ]
        title = f"gradients of {len(self.checks)} parameters: {'all right' if self.ok else 'look'}"
        columns = ("parameter", "gradient", "norm", "difference")
        return Table(title, columns, rows, frozenset(["norm", "difference"]))


def check_gradients(
    model: nn.Module, loss: Callable[[], torch.Tensor], samples: int, tolerance: float
) -> GradientReport:
    """Runs `loss` and its backward pass, and compares with finite differences. See `Callbacks`."""
    sites = [s for s in Tree(model).parameters().sites if isinstance(s.tensor, nn.Parameter)]
    with unchanged(model):
        for site in sites:
            site.tensor.grad = None
        with unchanged(model):  # each evaluation starts from the same buffers and random numbers
            value: object = loss()
            if not isinstance(value, torch.Tensor) or value.numel() != 1:
                returned = (
                    f"a tensor of shape {tuple(value.shape)}"
                    if isinstance(value, torch.Tensor)
                    else type(value).__name__
                )
                raise EditError(
                    "`loss` must be a function that returns one number as a tensor; got "
                    f"{returned}. Return criterion(model(x), y)."
                )
            value.backward()
            grads = [site.tensor.grad for site in sites]
        return GradientReport(
            tuple(
                _check(model, site, grad, loss, samples, tolerance)
                for site, grad in zip(sites, grads, strict=True)
            )
        )


def _check(
    model: nn.Module, site: ParameterSite, grad: torch.Tensor | None,
    loss: Callable[[], torch.Tensor], samples: int, tolerance: float,
) -> GradientCheck:  # fmt: skip
    if not site.tensor.requires_grad:
        return GradientCheck(site.address, "frozen", None, None)
    if grad is None:
        return GradientCheck(site.address, "none", None, None)
    grad = grad.to_dense() if grad.is_sparse else grad
    norm = float(torch.linalg.vector_norm(grad))
    if not torch.isfinite(grad).all():
        return GradientCheck(site.address, "not finite", norm, None)
    # The largest elements are compared: there a difference of losses is well above rounding.
    largest = grad.abs().flatten().topk(min(samples, grad.numel())).indices.tolist()
    numeric = [_difference(model, site.tensor, index, loss) for index in largest]
    exact = [float(grad.flatten()[index]) for index in largest]
    scale = max([abs(slope) for slope in (*exact, *numeric)], default=0.0)
    if scale == 0.0:
        return GradientCheck(site.address, "zero", norm, 0.0 if samples else None)
    error = (
        max(abs(a - b) for a, b in zip(exact, numeric, strict=True)) / scale if samples else None
    )
    wrong = error is not None and error > tolerance
    state = "wrong" if wrong else "zero" if norm == 0.0 else "ok"
    return GradientCheck(site.address, state, norm, error)


def _difference(
    model: nn.Module, parameter: torch.Tensor, index: int, loss: Callable[[], torch.Tensor]
) -> float:
    """The slope of the loss along one element, from the loss a little above and a little below."""
    values: list[float] = []
    flat = parameter.data.view(-1)
    old = flat[index].item()
    # A central difference errs by about step² (its series) and by eps / step (rounding); the two
    # are equal near eps ** (1/3): 5e-3 in float32, 6e-6 in float64. In float32 the step grows with
    # the element, or it would be lost in the rounding of a large one.
    step = 1e-2 * max(abs(old), 1e-1) if parameter.dtype != torch.float64 else 1e-5
    for offset in (step, -step):
        flat[index] = old + offset
        with unchanged(model), torch.no_grad():
            values.append(float(loss()))
    flat[index] = old
    return (values[0] - values[1]) / (2 * step)
