"""The figure of a lens: layers by positions, each with its likeliest token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from nethook.drawing.render import figure
from nethook.drawing.token_grid import token_grid
from nethook.errors import OptionError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from nethook.interp.lenses.lens import Lens


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


def lens_figure(lens: Lens, tokenizer: Any, *, row: int, kl: bool, theme: str) -> Figure:
    """The figure of one row of a batch."""
    text = reader(tokenizer)
    ids, probs = lens.top(min(3, lens.logits.shape[-1]))
    values = lens.kl() if kl else probs[..., 0]
    if values.ndim == 2:  # one prediction per row, as a classifier's
        values, ids, probs = (t.unsqueeze(2) for t in (values, ids, probs))
    values, ids, probs = values[:, row], ids[:, row], probs[:, row]  # (layers, positions[, 3])
    count = values.shape[1]
    names = [str(index) for index in range(count)]
    if lens.inputs is not None and lens.inputs.shape[1] == count:
        names = [text(int(index)) for index in lens.inputs[row]]
    tops = [[text(int(cell[0])) for cell in line] for line in ids]
    hover = [
        [
            ", ".join(f"{text(int(i))} {float(p):.3f}" for i, p in zip(*cell, strict=True))
            for cell in zip(line_ids, line_probs, strict=True)
        ]
        for line_ids, line_probs in zip(ids, probs, strict=True)
    ]
    spec = token_grid(
        "What the model would say after each layer", lens.sites, names, values.cpu().numpy(),
        texts=tops, hover=hover, unit="KL to the model" if kl else "probability",
    )  # fmt: skip
    return figure(spec, theme)
