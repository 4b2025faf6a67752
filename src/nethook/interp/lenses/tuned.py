"""`tuned_lens`: a lens whose layers are translated into the last one's words (Belrose et al. 2023).

A layer's value h becomes h + A h + b before it is put in the place of the last block's output. A
and b are zero at first, which is the logit lens, and are fitted to KL(model ‖ lens).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from nethook.addresses.patterns import Pattern
from nethook.drawing.data import Spec
from nethook.drawing.studies.token_grid import token_grid
from nethook.errors import OptionError
from nethook.extracting.progress import Bar
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.batches import batches
from nethook.interp.lenses.lens import (
    Lens,
    Read,
    blocks_for,
    final_and_layers,
    lens,
    logits_of,
    suffix,
)
from nethook.interp.results.result import Result
from nethook.restoring.unchanged import unchanged
from nethook.text.table import Table


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TunedLens(Result):
    """Translators by layer: `weights` A, (width, width), and `biases` b; and the KL per step."""

    _FORMAT: ClassVar[str] = "nethook_tuned_lens"

    sites: tuple[str, ...]
    weights: dict[str, torch.Tensor]
    biases: dict[str, torch.Tensor]
    kl: torch.Tensor
    into: str

    def translate(self, value: torch.Tensor, site: str) -> torch.Tensor:
        """A layer's value in the last layer's words."""
        if site not in self.weights:
            raise OptionError(f"`site` must be one of {', '.join(self.sites)}; got {site!r}.")
        a, b = (part[site].to(value.device, value.dtype) for part in (self.weights, self.biases))
        return value + value @ a.T + b

    def lens(self, model: nn.Module, inputs: Any, *, read: Read = logits_of) -> Lens:
        """What the model would say after each layer, by these translators."""
        at = list(self.sites)
        return lens(model, inputs, at=at, into=self.into, read=read, translate=self.translate)

    def spec(self) -> Spec:
        """The figure as plain data: the KL to the model of each layer, before and after."""
        return token_grid(
            "How far each layer is from what the model will say", self.sites,
            ("logit lens", "after tuning"), self.kl[[0, -1]].T.double().numpy(),
            texts=[[f"{value:.3g}" for value in row] for row in self.kl[[0, -1]].T.tolist()],
            unit="KL to the model", axes=("layer", "lens"),
        )  # fmt: skip

    def table(self) -> Table:
        """The KL to the model of each layer, before and after."""
        rows = [
            (site, f"{float(self.kl[0, layer]):.4g}", f"{float(self.kl[-1, layer]):.4g}")
            for layer, site in enumerate(self.sites)
        ]
        columns = ("layer", "KL of the logit lens", "KL after tuning")
        title = f"tuned lens of {len(rows)} layers, {len(self.kl)} steps"
        return Table(title, columns, rows, frozenset(columns[1:]))


def tuned_lens(
    model: nn.Module,
    data: Any,
    at: Pattern | None = None,
    *,
    into: str | None = None,
    read: Read = logits_of,
    epochs: int = 1,
    lr: float = 1e-2,
    progress: bool | None = None,
) -> TunedLens:
    """Fits a translator for every layer, so that its lens says what the model will say.

        tuned = interp.tuned_lens(model, loader, at="transformer.h.*", epochs=3)
        tuned.lens(model, tokens).figure(tokenizer)

    Arguments:
        model: any `nn.Module`; its weights are not changed.
        data: inputs, or a loader of batches; every batch is a step.
        at, into, read: as in `interp.lens`.
        epochs: how often the data are gone through.
        lr: of Adam.
        progress: whether to show a bar; None: on a terminal and in a notebook.

    Returns:
        A `TunedLens`.

    Cost: per batch a forward, and a forward and backward of the model behind `into` for all layers.
    """
    if type(epochs) is not int or epochs < 1:
        raise OptionError(f"`epochs` must be a positive number; got {epochs!r}.")
    state: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    adam: torch.optim.Adam | None = None
    history = []
    last, blocks = "", None
    bar = Bar(None, 0, shown=progress, label="tuning", unit="batches")
    with bar:
        for _ in range(epochs):
            for given in batches(data):
                if blocks is None:
                    blocks = blocks_for(model, given, at, into)
                with unchanged(model, given, evaluation=True), layer_by_layer():
                    with torch.no_grad():
                        final, values, last, skipped = final_and_layers(
                            model, given, at, into, read, blocks
                        )
                    if adam is None:
                        state = {site: _zeros(value) for site, value in values.items()}
                        every = [part for pair in state.values() for part in pair]
                        adam = torch.optim.Adam(every, lr=lr)
                    with torch.enable_grad():
                        moved = [_moved(value, state[site]) for site, value in values.items()]
                        logits = suffix(model, given, last, skipped, moved, read)
                        kl = _kl(final, logits)
                        every = [part for pair in state.values() for part in pair]
                        grads = torch.autograd.grad(kl.sum(), every)
                for part, grad in zip(every, grads, strict=True):
                    part.grad = grad
                adam.step()
                history.append(kl.detach().double().cpu())
                bar.advance(1)
    return TunedLens(
        sites=tuple(state), into=last, kl=torch.stack(history),
        weights={site: a.detach().cpu() for site, (a, _) in state.items()},
        biases={site: b.detach().cpu() for site, (_, b) in state.items()},
    )  # fmt: skip


def _zeros(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    width = value.shape[-1]
    a = torch.zeros(width, width, dtype=value.dtype, device=value.device, requires_grad=True)
    b = torch.zeros(width, dtype=value.dtype, device=value.device, requires_grad=True)
    return a, b


def _moved(value: torch.Tensor, pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    a, b = pair
    return value + value @ a.T + b


def _kl(final: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    """KL(final ‖ layer), the mean over rows and positions: (layers,)."""
    said = torch.log_softmax(final.float() if final.dtype.itemsize < 4 else final, -1)
    each = torch.log_softmax(logits.to(said.dtype), -1)
    apart = (said.exp() * (said - each)).sum(-1)
    return apart.flatten(1).mean(1)
