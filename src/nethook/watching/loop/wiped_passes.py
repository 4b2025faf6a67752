"""Backward passes whose gradients are cleared before the step: lost, or used in some other way.

A loop that clears its gradients in every micro-batch steps on those of the last one alone. A loop
that means it looks much the same: it has moved the weights in between (SAM), wanted the gradient of
its inputs (adversarial examples), kept a copy of each gradient and steps on a sum of them (PCGrad),
or runs in the closure of an optimizer (LBFGS). So a few of these steps are looked at closely, and
what was seen is told in one event.

Nothing is looked at before a pass was wiped, which in most loops never happens; and nothing where
there are several optimizers, each of which clears what is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from nethook.runs import names
from nethook.stats.native import readable
from nethook.stats.sampling import sampled
from nethook.watching.journal import Journal
from nethook.watching.loop.track import Track
from nethook.watching.measuring.witnesses import Witnesses

LOOKED: Final = 6
"""Steps that are looked at."""
COORDINATES: Final = 64
"""Of the gradient of each parameter that is compared."""
SAME: Final = 0.999
"""Cosine from which on a gradient is the one that the last pass has left: clipping scales it."""


class WipedPasses:
    """Looks at the first steps in which gradients of a pass were cleared and others were used.

    Arguments:
        journal: where the event goes.
        tracks: the optimizers, by whatever key.
    """

    def __init__(self, journal: Journal, tracks: Mapping[int, Track]) -> None:
        self._journal = journal
        self._tracks = tracks
        self.looks = False
        """Whether to be told of passes: once one was wiped, and until enough were looked at."""
        self._done = False
        self._witnesses: Witnesses | None = None
        self._weights: tuple[list[int], list[Any]] | None = None  # when the last pass began
        self._left: torch.Tensor | None = None  # some of the gradient that the last pass has left
        self._wiped = 0  # passes of this step
        self._seen = {"steps": 0, "wiped": 0, "moved": 0, "inputs": 0, "other": 0}
        self._now = {"moved": False, "inputs": False}

    def wiped(self, passes: int) -> None:
        """Gradients of so many passes are about to be cleared that no step has used."""
        if self._done or len(self._tracks) != 1:
            return
        clock = self._journal.clock
        if clock.turns.inside:  # in a closure
            self.looks, self._done = False, True
            return
        if not self.looks:
            # From the next pass on; this one has begun already, and nobody has looked.
            self.looks = True
            return
        self._wiped += passes
        if self._weights is not None and self._witnesses is not None:
            versions, weights = self._weights
            moved = self._witnesses.versions() != versions or self._witnesses.have_changed(weights)
            self._now["moved"] |= moved

    def call_begins(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """The model is called, with gradients."""
        given = [*args, *kwargs.values()]
        self._now["inputs"] |= any(
            isinstance(value, torch.Tensor) and value.requires_grad for value in given
        )

    def backward_begins(self) -> None:
        """A backward pass is about to run."""
        parameters = self._parameters()
        if not parameters:  # the optimizer is known from its first step on
            return
        if self._witnesses is None:
            self._witnesses = Witnesses(parameters)
        self._weights = self._witnesses.versions(), self._witnesses.some_weights()

    def backward_ended(self) -> None:
        """It has run."""
        self._left = some_of(self._parameters())

    def step_begins(self) -> None:
        """The optimizer is about to use the gradients as they are."""
        wiped, left = self._wiped, self._left
        now = self._now
        self._wiped, self._left = 0, None
        self._now = {"moved": False, "inputs": False}
        if not wiped or left is None:  # what an optimizer holds is known from its first step on
            return
        seen = self._seen
        seen["steps"] += 1
        seen["wiped"] += wiped
        seen["moved"] += now["moved"]
        seen["inputs"] += now["inputs"]
        used = some_of(self._parameters())
        same = used is not None and _cosine(left, used) >= SAME
        seen["other"] += not same
        if seen["steps"] >= LOOKED:
            self.looks, self._done = False, True
            self._weights = self._witnesses = None
            message = f"gradients of {seen['wiped']} passes were cleared in {LOOKED} steps"
            self._journal.event(names.WIPED_PASSES, message, data=dict(seen))

    def _parameters(self) -> list[torch.Tensor]:
        tracks = self._tracks.values()
        return [parameter for track in tracks if track.set is not None
                for parameter in track.set.probes]  # fmt: skip


def some_of(parameters: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """Some coordinates of the gradients; None where there are none that can be read."""
    parts = []
    for parameter in parameters:
        grad = parameter.grad
        if grad is not None and readable.is_readable(grad) and grad.numel():
            flat = sampled(grad.detach().reshape(-1), COORDINATES, dim=0, step=1)
            parts.append(flat.to("cpu", torch.float64))
    return torch.cat(parts) if parts else None


def _cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    if a.shape != b.shape:
        return 0.0
    size = float(a.norm() * b.norm())
    return float(a @ b) / size if size > 0 else 0.0
