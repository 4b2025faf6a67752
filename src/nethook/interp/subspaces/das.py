"""`das`: a subspace of a site that holds a variable, found by interchange (Geiger et al. 2023)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional as F

from nethook.addresses.inputs import Inputs
from nethook.drawing.data import Spec
from nethook.editing.catalogue import swap_subspace
from nethook.errors import OptionError
from nethook.extracting.progress import Bar
from nethook.interp.batches import rows_of, some_rows
from nethook.interp.devices import device_of, moved_inputs
from nethook.interp.lenses.lens import logits_of
from nethook.interp.results.result import Result
from nethook.interp.subspaces.interchange import interchanged, orthonormal, site_value
from nethook.restoring.randomness import random_states_unchanged
from nethook.restoring.unchanged import unchanged
from nethook.text.table import Table

Read = Callable[[Any], torch.Tensor]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Subspace(Result):
    """The result of `interp.das`. Accuracies are of pairs that were held out.

    Attributes:
        basis: orthonormal columns, (features, size).
        accuracy: how often the interchange gives the counterfactual label.
        random_basis: the same with a random subspace of this size.
        arbitrary_labels: of a subspace that was fitted to shuffled labels, for these.
        random_weights: of a subspace of the same network with its weights shuffled, for the labels.
        losses: of the fit, per step.
    """

    _FORMAT: ClassVar[str] = "nethook_subspace"

    site: str
    position: int | None
    basis: torch.Tensor
    accuracy: float
    random_basis: float
    arbitrary_labels: float
    random_weights: float
    chance: float
    losses: torch.Tensor

    def swap(self, source: torch.Tensor) -> swap_subspace:
        """An edit that takes the part in the subspace from a source's value of the site."""
        return swap_subspace(source, self.basis, positions=self.position)

    def spec(self) -> Spec:
        """The figure as plain data: the accuracy beside that of its controls."""
        from nethook.drawing.studies.causes import bars_spec

        names = ("found subspace", "random basis", "arbitrary labels", "random weights", "chance")
        numbers = torch.tensor([row[1] for row in self._numbers()], dtype=torch.double)
        title = f"Interchange at {self.site}: accuracy"
        return bars_spec(title, names, numbers.numpy(), unit="accuracy")

    def _numbers(self) -> list[tuple[str, float]]:
        return [
            ("found subspace", self.accuracy), ("random basis", self.random_basis),
            ("arbitrary labels", self.arbitrary_labels), ("random weights", self.random_weights),
            ("chance (most frequent label)", self.chance),
        ]  # fmt: skip

    def table(self) -> Table:
        """The accuracy and its controls."""
        width, size = self.basis.shape
        where = "" if self.position is None else f", position {self.position}"
        title = f"subspace of {size} of {width} features at {self.site}{where}"
        rows = [(name, f"{number:.3f}") for name, number in self._numbers()]
        return Table(title, ("interchange", "accuracy"), rows, frozenset({"accuracy"}))


def das(
    model: nn.Module,
    base: Any,
    source: Any,
    labels: torch.Tensor,
    at: str,
    *,
    size: int = 1,
    position: int | None = None,
    read: Read | None = None,
    steps: int = 200,
    lr: float = 0.05,
    batch: int = 128,
    seed: int = 0,
    progress: bool | None = None,
) -> Subspace:
    """Finds a subspace such that taking it from the source gives the counterfactual label.

        found = interp.das(model, base, source, labels, at="h.3", size=2, position=-1)
        found                                     # the accuracy beside three controls

    Arguments:
        model: any `nn.Module`; its weights are not changed.
        base, source: inputs of as many rows: row i of the source is the counterpart of row i.
        labels: per row, the class that the model should say for the base if the variable had the
            source's value.
        at: the site, one address: (rows, features) or (rows, tokens, features).
        size: of the subspace.
        position: the one token that is changed, counted in the tensor; None: all of them.
        read: from the model's output to logits (rows, classes); None: `.logits` or the first
            tensor, of which the last position where there are several.
        steps, lr, batch: of Adam; rows are drawn at random.
        seed: of the split in halves, of the start and of the draws.
        progress: whether to show a bar; None: on a terminal and in a notebook.

    Returns:
        A `Subspace` with the accuracy on the half of the pairs that it was not fitted to, and with
        three controls: a random subspace; one that was fitted to shuffled labels, which shows what
        a search finds where there is nothing; one of the network with shuffled weights, which
        shows what it finds in any network.

    Cost: three times `steps` forwards and backwards behind the site, and one run of the sources.
    """
    given = [moved_inputs(each, device_of(model)) for each in (base, source)]
    count = rows_of(given[0])
    if rows_of(given[1]) != count or tuple(labels.shape) != (count,) or count < 4:
        raise OptionError(
            "`base`, `source` and `labels` must have the same rows, at least 4; got "
            f"{count}, {rows_of(given[1])} and {tuple(labels.shape)}."
        )
    for name, number in (("size", size), ("steps", steps), ("batch", batch)):
        if type(number) is not int or number < 1:
            raise OptionError(f"`{name}` must be a positive number; got {number!r}.")
    study = _Study(model, at, position, read or _last_logits, size, steps, lr, batch, seed)
    bar = Bar(3 * steps, 0, shown=progress, label="aligning", unit="steps")
    with random_states_unchanged(seed=seed), unchanged(model, tuple(given), evaluation=True), bar:
        return study.result(given[0], given[1], labels.long(), bar)


class _Study:
    """One search with its controls."""

    def __init__(
        self, model: nn.Module, at: str, position: int | None, read: Read, size: int, steps: int,
        lr: float, batch: int, seed: int,
    ) -> None:  # fmt: skip
        self._model = model
        self._at = at
        self._position = position
        self._read = read
        self._size = size
        self._steps = steps
        self._lr = lr
        self._batch = batch
        self._draw = torch.Generator().manual_seed(seed)

    def result(self, base: Inputs, source: Inputs, labels: torch.Tensor, bar: Bar) -> Subspace:
        """The subspace, and its controls."""
        order = torch.randperm(len(labels), generator=self._draw)
        train, test = order[: len(order) // 2], order[len(order) // 2 :]
        values = site_value(self._model, source, self._at)
        width = values.shape[-1]
        if self._size > width:
            raise OptionError(f"`size` must be at most {width}, the features; got {self._size}.")
        start = torch.randn(width, self._size, generator=self._draw).to(values)
        basis, losses = self._fitted(self._model, base, values, labels, train, start, bar)
        shuffled = labels[torch.randperm(len(labels), generator=self._draw)]
        fitted, _ = self._fitted(self._model, base, values, shuffled, train, start, bar)
        other = _shuffled_weights(self._model, self._draw)
        with unchanged(other, evaluation=True):
            theirs = site_value(other, source, self._at)
            learnt, _ = self._fitted(other, base, theirs, labels, train, start, bar)
            random_weights = self._accuracy(other, base, theirs, labels, test, learnt)
        accuracies = [
            self._accuracy(self._model, base, values, wanted, test, each)
            for wanted, each in (
                (labels, basis), (labels, orthonormal(start)), (shuffled, fitted),
            )
        ]  # fmt: skip
        return Subspace(
            site=self._at, position=self._position, basis=basis.cpu(), accuracy=accuracies[0],
            random_basis=accuracies[1], arbitrary_labels=accuracies[2],
            random_weights=random_weights, losses=losses,
            chance=float(torch.bincount(labels[test]).max()) / len(test),
        )  # fmt: skip

    def _fitted(
        self, model: nn.Module, base: Inputs, values: torch.Tensor, labels: torch.Tensor,
        rows: torch.Tensor, start: torch.Tensor, bar: Bar,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        free = start.clone().requires_grad_()
        adam = torch.optim.Adam([free], lr=self._lr)
        losses = []
        for _ in range(self._steps):
            chosen = rows[torch.randperm(len(rows), generator=self._draw)[: self._batch]]
            with torch.enable_grad():
                logits = self._logits(model, base, values, chosen, orthonormal(free))
                loss = F.cross_entropy(logits, labels[chosen].to(logits.device))
                (free.grad,) = torch.autograd.grad(loss, [free])
            adam.step()
            losses.append(float(loss.detach()))
            bar.advance(1)
        return orthonormal(free.detach()), torch.tensor(losses).double()

    def _logits(
        self, model: nn.Module, base: Inputs, values: torch.Tensor, rows: torch.Tensor,
        basis: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        some = some_rows(base, rows, rows_of(base))
        source = values[rows.to(values.device)]
        found = self._read(interchanged(model, some, source, self._at, basis, self._position))
        if found.ndim != 2:
            raise OptionError(
                f"`read` must give logits (rows, classes); got {tuple(found.shape)}. Write "
                "read=lambda out: out.logits[:, -1]."
            )
        return found

    def _accuracy(
        self, model: nn.Module, base: Inputs, values: torch.Tensor, labels: torch.Tensor,
        rows: torch.Tensor, basis: torch.Tensor,
    ) -> float:  # fmt: skip
        right = []
        with torch.no_grad():
            for chosen in rows.split(self._batch):
                said = self._logits(model, base, values, chosen, basis).argmax(-1).cpu()
                right.append(said == labels[chosen])
        return float(torch.cat(right).double().mean())


def _last_logits(output: Any) -> torch.Tensor:
    found = logits_of(output)
    return found[:, -1] if found.ndim == 3 else found


def _shuffled_weights(model: nn.Module, draw: torch.Generator) -> nn.Module:
    """A copy whose parameters each have their own numbers in another order."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            order = torch.randperm(parameter.numel(), generator=draw).to(parameter.device)
            parameter.copy_(parameter.flatten()[order].view_as(parameter))
    return other
