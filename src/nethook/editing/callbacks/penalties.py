"""Losses from inside the network: penalties on what modules return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from nethook.editing.calling import call_form
from nethook.editing.entries import show_pattern
from nethook.errors import EditError
from nethook.torch_private import backward_id


class Penalty:
    """A penalty on the outputs of some sites, collected call by call until it is asked for."""

    def __init__(self, pattern: Any, function: Callable[..., torch.Tensor], weight: float) -> None:
        self.what = f"penalty({show_pattern(pattern)})"
        self._apply = call_form(function, self)
        self._weight = weight
        self._terms: list[torch.Tensor] = []
        self._without_graph = False

    def __call__(self, output: Any, site: str) -> None:
        """Takes in one output."""
        term = self._apply(output, site)
        if not isinstance(term, torch.Tensor) or term.numel() != 1:
            came = tuple(term.shape) if isinstance(term, torch.Tensor) else type(term).__name__
            raise EditError(
                f"{self.what} at {site!r} must return one number as a tensor; got {came}."
            )
        # A checkpointed block is computed again in backward. The term was collected in the first
        # pass; it was made here once more only so that both passes do the same.
        if backward_id() != -1:
            return
        if not torch.is_grad_enabled():
            self._without_graph = True  # an evaluation: nothing to learn from
            return
        self._terms.append(term.reshape(()) * self._weight)

    def take(self) -> torch.Tensor:
        """The sum of what was collected, which is then forgotten."""
        if not self._terms and self._without_graph:
            raise EditError(
                f"{self.what} saw its sites run only without gradient, so it has none to give: "
                "under no_grad, or under reentrant checkpointing, whose first pass has no graph. "
                "There, use checkpoint(..., use_reentrant=False)."
            )
        if not self._terms:
            raise EditError(
                f"{self.what} saw nothing since the last time: attach the callbacks and run the "
                "model before asking for cb.loss()."
            )
        terms, self._terms, self._without_graph = self._terms, [], False
        return torch.stack([term.to(terms[0].device) for term in terms]).sum()
