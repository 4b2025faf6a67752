"""Logistic regression in float64: Newton's method, or L-BFGS for many classes or features.

The penalty is `penalty / 2 * |weights|²` beside the sum of the losses; biases have none. That is
scikit-learn's `LogisticRegression(C=1 / penalty)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional as F

from nethook.errors import ResultError
from nethook.interp.directions.samples import Samples

_MOST_STEPS = 100
_WIDEST = 1024  # features up to which a Hessian is cheap
_TOLERANCE = 1e-10  # of the gradient, relative to the first


@dataclass(frozen=True)
class Linear:
    """Weights (outputs, features) and biases (outputs,); two classes have one output."""

    weights: torch.Tensor
    bias: torch.Tensor

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """The scores, (samples, outputs)."""
        return x @ self.weights.T + self.bias


def fit_logistic(
    samples: Samples,
    labels: torch.Tensor,
    classes: int,
    penalty: float,
    rows: torch.Tensor | None = None,
    start: Linear | None = None,
) -> Linear:
    """The weights of least loss on the chosen rows; `start` is where the search begins."""
    problem = _Problem(samples, labels, classes, penalty, rows)
    first = problem.zeros() if start is None else torch.cat([start.weights, start.bias[:, None]], 1)
    solved = problem.newton(first) if problem.is_small else problem.lbfgs(first)
    return Linear(solved[:, :-1].clone(), solved[:, -1].clone())


class _Problem:
    """The loss of weights with their biases, (outputs, features + 1), over chunks of rows."""

    def __init__(
        self, samples: Samples, labels: torch.Tensor, classes: int, penalty: float,
        rows: torch.Tensor | None,
    ) -> None:  # fmt: skip
        self._samples = samples
        self._labels = labels
        self._outputs = 1 if classes == 2 else classes
        self._penalty = penalty
        self._rows = rows

    @property
    def is_small(self) -> bool:
        """Whether Newton's method is the better one."""
        return self._outputs == 1 and self._samples.width <= _WIDEST

    def zeros(self) -> torch.Tensor:
        """Where a search begins."""
        return torch.zeros(self._outputs, self._samples.width + 1, dtype=torch.double)

    def evaluate(
        self, weights: torch.Tensor, *, curved: bool = False
    ) -> tuple[float, torch.Tensor, torch.Tensor]:
        """The loss, its gradient, and for one output its Hessian, if asked for."""
        width = self._samples.width + 1
        loss = torch.zeros((), dtype=torch.double)
        gradient = torch.zeros(self._outputs, width, dtype=torch.double)
        hessian = torch.zeros((width, width) if curved else (0,), dtype=torch.double)
        for chosen, chunk in self._samples.chunks():
            x, labels = chunk, self._labels[chosen]
            if self._rows is not None:
                there = self._rows[chosen]
                x, labels = x[there], labels[there]
            x = torch.cat([x, torch.ones(len(x), 1, dtype=torch.double)], 1)
            scores = x @ weights.T
            if self._outputs == 1:
                score, label = scores[:, 0], labels.double()
                loss += F.softplus(score).sum() - score @ label
                share = torch.sigmoid(score)
                gradient[0] += x.T @ (share - label)
                if curved:
                    hessian += x.T @ (x * (share * (1 - share))[:, None])
            else:
                loss += F.cross_entropy(scores, labels, reduction="sum")
                wrong = torch.softmax(scores, 1) - F.one_hot(labels, self._outputs)
                gradient += wrong.T @ x
        parts = [loss.reshape(1), gradient.flatten(), hessian.flatten()]
        sums = self._samples.total(torch.cat(parts))
        loss, flat, curve = sums[0], sums[1 : 1 + gradient.numel()], sums[1 + gradient.numel() :]
        gradient, hessian = flat.view_as(gradient), curve.view_as(hessian)
        loss = loss + self._penalty / 2 * weights[:, :-1].square().sum()
        gradient = gradient.clone()
        gradient[:, :-1] += self._penalty * weights[:, :-1]
        if curved:
            hessian = hessian + torch.diag(
                torch.tensor([self._penalty] * (width - 1) + [0.0], dtype=torch.double)
            )
        return float(loss), gradient, hessian

    def newton(self, weights: torch.Tensor) -> torch.Tensor:
        """Newton's method with steps that are halved until the loss falls."""
        loss, gradient, hessian = self.evaluate(weights, curved=True)
        scale = max(1.0, float(self.evaluate(self.zeros())[1].norm()))
        for _ in range(_MOST_STEPS):
            if float(gradient.norm()) <= _TOLERANCE * scale:
                break
            # A bias that nothing holds (all labels alike) has no curvature of its own.
            floor = 1e-12 * float(hessian.diagonal().max()) * torch.eye(len(hessian)).double()
            step = torch.linalg.solve(hessian + floor, gradient[0])[None]
            size, slope = 1.0, float((gradient * step).sum())
            while size > 1e-8:
                new = self.evaluate(weights - size * step, curved=True)
                if new[0] <= loss - 1e-4 * size * slope or size * slope < 1e-13 * max(
                    1.0, abs(loss)
                ):
                    break
                size /= 2
            weights = weights - size * step
            loss, gradient, hessian = new
        return _finite(weights)

    def lbfgs(self, weights: torch.Tensor) -> torch.Tensor:
        """L-BFGS on features of equal spread, which changes the way and not the end."""
        spread = self._spread()
        inner = (weights * spread).clone().requires_grad_()
        search = torch.optim.LBFGS(
            [inner], max_iter=2000, max_eval=4000, history_size=20, line_search_fn="strong_wolfe",
            tolerance_grad=1e-9, tolerance_change=1e-14,
        )  # fmt: skip

        def closure() -> torch.Tensor:
            loss, gradient, _ = self.evaluate(inner.detach() / spread)
            inner.grad = gradient / spread
            return torch.tensor(loss, dtype=torch.double)

        search.step(closure)
        return _finite(inner.detach() / spread)

    def _spread(self) -> torch.Tensor:
        sums = torch.zeros(3, self._samples.width, dtype=torch.double)
        for _, chunk in self._samples.chunks():
            sums += torch.stack([torch.ones(self._samples.width) * len(chunk), chunk.sum(0),
                                 chunk.square().sum(0)])  # fmt: skip
        count, total, squares = self._samples.total(sums)
        spread = (squares / count - (total / count).square()).clamp(min=0).sqrt()
        return torch.cat([torch.where(spread > 0, spread, 1.0), torch.ones(1)]).double()


def _finite(weights: torch.Tensor) -> torch.Tensor:
    if not bool(weights.isfinite().all()):
        raise ResultError(
            "the logistic regression has no finite solution; choose a larger penalty, or "
            'kind="ridge".'
        )
    return weights
