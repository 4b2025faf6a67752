"""A batch in its parts: what the model is given, labels, ids.

    a tensor                         inputs
    (inputs,), (inputs, labels), (inputs, labels, ids)     also as a list
    a mapping                        labels under "labels" or "label", ids under "ids" or "id",
                                     and all else inputs by name
    nethook.inputs(...)              inputs

Anything else goes through `split=`, a function from a batch to one of these forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import torch

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.errors import InputsError

_LABELS = ("labels", "label")
_IDS = ("ids", "id")

Column: TypeAlias = torch.Tensor | list[str]


class Batch(NamedTuple):
    """The parts of a batch. Labels and ids are a tensor or texts, one for each sample."""

    inputs: Inputs
    labels: Column | None
    ids: Column | None


def split_batch(batch: Any, split: Callable[[Any], Any] | None) -> Batch:
    """The parts of one batch."""
    given = batch if split is None else split(batch)
    inputs, labels, ids = _parts(given, split is not None)
    if isinstance(inputs, list):  # what a loader makes of a tuple
        inputs = tuple(inputs)
    return Batch(as_inputs(inputs), _column(labels, "labels"), _column(ids, "ids"))


def _parts(given: Any, was_split: bool) -> tuple[Any, Any, Any]:
    if isinstance(given, torch.Tensor | Inputs):
        return given, None, None
    if isinstance(given, Mapping):
        inputs = dict(given)
        labels = _pop(inputs, _LABELS)
        return inputs, labels, _pop(inputs, _IDS)
    if isinstance(given, tuple | list) and 1 <= len(given) <= 3:
        inputs, labels, ids = (*given, None, None)[:3]
        return inputs, labels, ids
    what = f"{type(given).__name__} of {len(given)}" if hasattr(given, "__len__") else repr(given)
    source = "`split` must return" if was_split else "`loader` must give"
    raise InputsError(
        f"{source} a tensor, (inputs, labels), (inputs, labels, ids), or a mapping with labels "
        f"under 'labels' and ids under 'ids'; got a {what}. Sort it out with split=, as in "
        "split=lambda batch: (batch[0], batch[2])."
    )


def _pop(inputs: dict[Any, Any], names: tuple[str, ...]) -> Any:
    present = [name for name in names if name in inputs]
    if len(present) > 1:
        raise InputsError(
            f"A batch must not have both {present[0]!r} and {present[1]!r}. Choose one with split=."
        )
    return inputs.pop(present[0]) if present else None


def _column(values: Any, what: str) -> Column | None:
    if values is None:
        return None
    if isinstance(values, torch.Tensor):
        return values
    if isinstance(values, list | tuple):
        if values and all(isinstance(value, str) for value in values):
            return list(values)
        try:
            return torch.as_tensor(values)
        except (TypeError, ValueError, RuntimeError):
            pass  # said below
    members = values if isinstance(values, list | tuple) else ()
    kinds = sorted({type(member).__name__ for member in members})
    inside = f" of {', '.join(kinds)}" if kinds else ""
    raise InputsError(
        f"`{what}` must be a tensor, a list of numbers or a list of texts, one per sample; got "
        f"{type(values).__name__}{inside}. Leave them out, or change them, with split=."
    )
