"""The figure of a lens: layers by positions, each with its likeliest token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from nethook.drawing.data import Spec
from nethook.drawing.studies.token_grid import token_grid
from nethook.errors import OptionError

if TYPE_CHECKING:
    import torch


def reader(tokenizer: Any) -> Callable[[int], str]:
    """What turns an id into text."""
    if tokenizer is None:
        return str
    if hasattr(tokenizer, "decode"):
        return lambda index: str(tokenizer.decode([index]))
    if callable(tokenizer):
        return lambda index: str(tokenizer(index))
    if isinstance(tokenizer, Sequence):
        return lambda index: str(tokenizer[index])
    raise OptionError(
        "`tokenizer` must have a method decode, or be a function or a sequence of texts by id; got "
        f"{type(tokenizer).__name__}."
    )


def lens_spec(
    sites: Sequence[str], values: torch.Tensor, ids: torch.Tensor, probs: torch.Tensor, *,
    texts: torch.Tensor | None, tokenizer: Any, unit: str,
) -> Spec:  # fmt: skip
    """The figure of one row of a batch.

    `values` are the colours, (layers, positions); `ids` and `probs` (layers, positions, 3) the
    likeliest tokens. Without positions, as of a classifier, there is one column. `texts` are the
    ids of the text itself.
    """
    text = reader(tokenizer)
    if values.ndim == 1:
        values, ids, probs = (t.unsqueeze(1) for t in (values, ids, probs))
    count = values.shape[1]
    names = [str(index) for index in range(count)]
    if texts is not None and len(texts) == count:
        names = [text(int(index)) for index in texts]
    tops = [[text(int(cell[0])) for cell in line] for line in ids]
    hover = [
        [
            ", ".join(f"{text(int(i))} {float(p):.3f}" for i, p in zip(*cell, strict=True))
            for cell in zip(line_ids, line_probs, strict=True)
        ]
        for line_ids, line_probs in zip(ids, probs, strict=True)
    ]
    return token_grid(
        "What the model would say after each layer", sites, names, values.cpu().numpy(),
        texts=tops, hover=hover, unit=unit,
    )  # fmt: skip
