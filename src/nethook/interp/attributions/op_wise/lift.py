"""`op_lift`: DeepLIFT's idea at every operation: two forwards and a backward."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from nethook.addresses.nested import map_tensors, tensors
from nethook.addresses.patterns import Pattern
from nethook.addresses.tree import Tree
from nethook.errors import OptionError
from nethook.extracting.progress import Bar
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.hooks.ops.watch import watch_ops
from nethook.hooks.scope import Scope
from nethook.interp.attributions.baselines import baseline_of
from nethook.interp.attributions.batches import rows_per_run, runs_of
from nethook.interp.attributions.integrated import above_tolerance, check_steps
from nethook.interp.attributions.op_wise.rules import Rule, ruled
from nethook.interp.attributions.op_wise.tables import rule_of
from nethook.interp.attributions.subject import Subject, subject
from nethook.interp.attributions.targets import Given
from nethook.interp.results.attribution import Attribution


def op_lift(
    model: nn.Module,
    x: object,
    target: Given = None,
    at: Pattern | None = None,
    *,
    baseline: Any = None,
    tol: float | None = 1e-3,
    nodes: int = 12,
    max_nodes: int = 192,
    progress: bool | None = None,
) -> Attribution:
    """What each element adds to a target, by a rule at every operation: DeepLIFT made general.

        a = interp.op_lift(model, images, target=3);  a.values, a.delta

    The model runs on the input and on the baseline. On the way back, every non-linear operation
    passes on its Jacobian integrated between its two inputs, in the place of the one at the input:
    of functions of each element (ReLU, GELU, exp) the quotient of differences, of products the
    middle, of the largest of a window the exact shares; of everything else (layer norm, softmax,
    attention, recurrent layers) so many `nodes` of that operation alone. So the values add up to
    `score − start`, whether operations are modules or functions, used again, or residual; `delta`
    says how exactly. On networks of ReLUs the result is that of DeepLIFT's rescale rule.

    Arguments:
        model, x, target, at, progress: as in `interp.saliency`.
        baseline: as in `interp.integrated_gradients`.
        tol: the largest completeness error of a row. Nodes double for the rows above it; None
            takes `nodes` nodes and no more.
        nodes: points of Gauss–Legendre quadrature for operations that have no closed form.
        max_nodes: where doubling ends. What is still above `tol` then is warned of.

    Returns:
        An `Attribution` with `start`, `delta`, and the nodes of each row as `steps`.

    Cost: two forwards and a backward, in which operations without a closed form run `nodes` times.
    """
    check_steps(tol, nodes=nodes, max_nodes=max_nodes)
    with subject(model, x, target, at) as study:
        base, words = baseline_of(study, baseline)
        everything = torch.arange(study.rows)
        found = _Found(study, base)
        rows, count = everything, nodes
        while True:
            found.lift(rows, count, progress)
            rows = rows[found.delta[rows].abs() > (tol if tol is not None else math.inf)]
            if not len(rows) or 2 * count > max_nodes:
                break
            rows, count = everything if study.target.whole else rows, 2 * count
        return study.result(
            "op-wise lift", found.values, score=found.score, start=found.start, delta=found.delta,
            steps=found.steps, baseline=words,
            notes=above_tolerance("op_lift", found.delta, tol, f"{count} nodes", "max_nodes"),
        )  # fmt: skip


class _Found:
    """What was found so far, per row."""

    def __init__(self, study: Subject, base: torch.Tensor) -> None:
        self._study = study
        self._base = base
        self._per_run = max(
            rows_per_run(study, 2 * study.rows) // 2, study.rows if study.target.whole else 1
        )
        self.values = torch.zeros_like(study.value)
        self.score = study.score.clone()
        self.start = torch.zeros_like(self.score)
        self.delta = torch.full((study.rows,), math.inf, dtype=torch.float64)
        self.steps = torch.zeros(study.rows, dtype=torch.long)

    def lift(self, rows: torch.Tensor, nodes: int, progress: bool | None) -> None:
        """Lifts some rows with so many nodes."""
        study, base = self._study, self._base
        runs = runs_of(len(rows), self._per_run)
        with Bar(runs, 0, shown=progress, label=f"{nodes} nodes", unit="rows") as bar:
            for which in rows.split(self._per_run):
                score, start, grads = _lifted(study, base, which, nodes)
                values = grads.double() * (study.value[which] - base[which])
                change = score.double() - start.double()
                self.score[which], self.start[which] = score, start
                self.values[which] = values.to(study.value.dtype)
                self.delta[which] = values.flatten(1).sum(1).cpu() - change.cpu()
                self.steps[which] = nodes
                bar.advance(len(which))


def _lifted(
    study: Subject, base: torch.Tensor, which: torch.Tensor, nodes: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The target for input and baseline, and the gradient by the rules, of some rows."""
    lift = _Lift(nodes)
    tree = Tree(study.model)
    with torch.enable_grad(), Scope("nethook.op_lift", tree) as hooks:
        watch_ops(tree, hooks, lift)
        first = study.call(base[which].clone().requires_grad_(), which)
        start = study.target.of(first, which, study.rows).detach()
        lift.begin_again()
        leaf = study.value[which].clone().requires_grad_()
        output = study.call(leaf, which)
        lift.check_ended()
    with torch.enable_grad():
        scores = _target(study, output, first, which, nodes)
        found: Sequence[torch.Tensor | None] = torch.autograd.grad(
            scores.sum(), leaf, allow_unused=True
        )
    grads = torch.zeros_like(leaf) if found[0] is None else found[0]
    return scores.detach(), start, grads


def _target(
    study: Subject, output: Any, first: Any, which: torch.Tensor, nodes: int
) -> torch.Tensor:
    """The target; a function of the user's is one more operation, from output to numbers."""
    if study.target.function is None:
        return study.target.of(output, which, study.rows)
    given, bound = _apart(output)
    if not given:
        return study.target.of(output, which, study.rows)
    base = tuple(t.detach() for t in _differentiable(first))
    rule = Rule("nodes", lambda *new: study.target.of(bound(new), which, study.rows), base, nodes)
    result: torch.Tensor = ruled(rule, given)
    return result


class _Lift(OpConsumer):
    """Notes what operations are given in a first run, and gives them their rule in a second."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._noted: list[tuple[str, str, tuple[torch.Tensor, ...]]] = []
        self._next: int | None = None

    def begin_again(self) -> None:
        """From here on operations are those of the run on the input."""
        self._next = 0

    def check_ended(self) -> None:
        """Both runs must have had the same operations."""
        if self._next != len(self._noted):
            raise self._other("the end of the run", self._next or 0)

    def instead(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        compute: Callable[..., Any],
    ) -> Any:  # fmt: skip
        """The operation, with its rule where it is not linear."""
        kind = rule_of(op.name, args, kwargs)
        given = _differentiable((args, kwargs))
        if kind == "linear" or not given or not torch.is_grad_enabled():
            return compute(*args, **kwargs)
        if self._next is None:
            self._noted.append((op.address, kind, tuple(t.detach().clone() for t in given)))
            return compute(*args, **kwargs)
        if self._next >= len(self._noted):
            raise self._other(op.address, self._next)
        address, noted, base = self._noted[self._next]
        same = [t.shape for t in base] == [t.shape for t in given]
        if (address, noted) != (op.address, kind) or not same:
            raise self._other(op.address, self._next)
        self._next += 1
        _, bound = _apart((args, kwargs))

        def call(*new: torch.Tensor) -> Any:
            new_args, new_kwargs = bound(new)
            return function(*new_args, **new_kwargs)

        pool = (args[1:], {k: v for k, v in kwargs.items() if k != "input"})
        return ruled(
            Rule(kind, call, base, self._nodes, pool if kind == "pool" else ((), {})), given
        )

    def _other(self, where: str, number: int) -> OptionError:
        there = self._noted[number][0] if number < len(self._noted) else "the end of the run"
        return OptionError(
            "`baseline` must lead the model through the same operations as the input; at "
            f"{where!r} the run on the baseline had {there!r}. Choose a baseline of the same kind."
        )


def _differentiable(value: Any) -> list[torch.Tensor]:
    return [t for _, t in tensors(value) if t.is_floating_point() and t.requires_grad]


def _apart(value: Any) -> tuple[list[torch.Tensor], Callable[[Any], Any]]:
    """The tensors of a value that depend on the input, and a function that puts others there."""

    def bound(new: Any) -> Any:
        each = iter(new)

        def put(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.is_floating_point() and tensor.requires_grad:
                placed: torch.Tensor = next(each)
                return placed
            return tensor.detach()

        return map_tensors(put, value)

    return _differentiable(value), bound
