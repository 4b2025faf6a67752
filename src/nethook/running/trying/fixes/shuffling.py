"""Data loaders that shuffle.

Evaluations judge it: the loss of training batches in which every sample is of one class says
nothing. Cannot be applied to data that no `DataLoader` of torch loads, to one with a sampler of its
own, and to iterable datasets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from nethook.hooks.attachment import Attachment
from nethook.hooks.imports import when_imported
from nethook.running.trying.change import Change
from nethook.running.trying.limits import wrap
from nethook.runs.reading.run import Run

CODES: Final = ("unshuffled-data",)
_SECOND: Final = 2  # `shuffle` among the arguments by position


def propose(finding: Mapping[str, Any], run: Run) -> Change | None:
    """Shuffling."""
    code = str(finding.get("code"))
    return Change("shuffling", code, "data loaders with shuffle=True", judged_by="eval")


def apply(change: Change, hooks: Attachment, done: Callable[[], None]) -> None:
    """For all loaders that are made from now on."""
    when_imported("torch.utils.data.dataloader", partial(_wrap, hooks, done))


def _wrap(hooks: Attachment, done: Callable[[], None]) -> None:
    from torch.utils.data import IterableDataset

    def made(original: Any, loader: Any, *args: Any, **named: Any) -> Any:
        dataset = args[0] if args else named.get("dataset")
        own = len(args) > _SECOND + 1 or named.get("sampler") or named.get("batch_sampler")
        shuffles = args[_SECOND] if len(args) > _SECOND else named.get("shuffle")
        if not own and not shuffles and not isinstance(dataset, IterableDataset):
            args = args[:_SECOND]
            named["shuffle"] = True
            done()
        return original(loader, *args, **named)

    wrap(hooks, "torch.utils.data.dataloader.DataLoader", "__init__", made)
