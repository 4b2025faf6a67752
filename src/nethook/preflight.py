"""`nethook.checkup`: what is wrong with a model before it is trained, from one batch.

The one place where two rooms meet: `examining` makes the experiments, and a watch records those
that the doctor's rules read. Neither room knows the other.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nethook.examining.checkup.checkup import check_up
from nethook.examining.checkup.result import Checkup
from nethook.keywords import suggests
from nethook.watching.watch import Watch, watch


@suggests
def checkup(
    model: nn.Module,
    batch: Any,
    loss_fn: Callable[[Any, Any], torch.Tensor] | None = None,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    steps: int = 40,
) -> Checkup:
    """Looks at a model before it is trained: one batch, a few seconds. The model is not changed.

        print(nethook.checkup(model, (x, y), nn.CrossEntropyLoss()))
        assert nethook.checkup(model, (x, y), loss_fn, optimizer).ok        # in a test

    Looked at are: the scale of signal and gradient over depth, units that start equal, the first
    loss against what it should be, the scale of the inputs, whether output, loss and target fit
    each other, whether every parameter gets a gradient, dead units, whether evaluation
    agrees with training where it should, and whether the model can overfit sixteen samples.

    Arguments:
        model: any `nn.Module`. Copies of it are run and trained; everything is left as it was
            (docs/sites.md says what that means).
        batch: `(inputs, targets)`; inputs are a tensor, a tuple, a mapping, or
            `nethook.inputs(...)`. Without a `loss_fn` the inputs alone.
        loss_fn: called with output and targets. None: the output has a `.loss`.
        optimizer: the one that is to train the model. It is copied, too: which parameters it has,
            and whether its settings learn, is then part of the check.
        steps: how many steps a few samples are trained for.

    Returns:
        A `Checkup`: `.ok`, `.findings` (as of `diagnose`), `.checks`, `.scales`, `.to_dict()`.

    Raises:
        InputsError: a batch, a loss or a model that cannot be checked, and why.
    """
    return check_up(model, batch, loss_fn, optimizer, steps=steps, record=_silent_watch)


def _silent_watch(
    model: nn.Module, optimizer: torch.optim.Optimizer, path: Path, *, examine: bool
) -> Watch:
    """Records every step in full, and prints nothing."""
    begun = watch(model, optimizer, path, budget=None, batches=1, examine=examine)
    begun.be_silent()
    begun.expect_one_batch()
    return begun
