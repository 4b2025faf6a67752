"""`logit_attribution`: how much each part's write adds to a logit, directly.

This is not the lens. The final norm's scale is frozen at the value that it has in the whole run, so
that the readout is linear in the residual stream, and the logit is the sum of what each part wrote,
plus biases. What a part does through later parts is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.addresses.lookup import get_module
from nethook.addresses.nested import replace, tensors
from nethook.editing.scope import edit
from nethook.errors import OptionError
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.attention.roles import Roles, roles
from nethook.interp.lenses.lens import Read, last_stack, logits_of
from nethook.interp.rows import repeat_rows
from nethook.restoring.copies import own_inputs
from nethook.restoring.unchanged import unchanged
from nethook.text.table import Table
from nethook.tracing.scope import trace

_TOLERANCE = 1e-3  # of the largest logit; rounding stays far below


@dataclass(frozen=True, repr=False)
class LogitAttribution:
    """What each part adds to the logits of the last position: `values` (parts, rows, vocabulary).

    The parts are the stream before the first block, what each block's parts wrote, and "bias": the
    norm's and the head's. Their sum is the model's logits.
    """

    parts: tuple[str, ...]
    values: torch.Tensor
    logits: torch.Tensor

    def of(self, token: int, against: int | None = None) -> torch.Tensor:
        """What each part adds to one logit, or to the difference of two: (parts, rows)."""
        value = self.values[..., token]
        return value if against is None else value - self.values[..., against]

    def table(self, row: int = 0) -> Table:
        """Of one row: what each part adds to the logit of the likeliest token."""
        token = int(self.logits[row].argmax())
        rows = [
            (part, f"{float(value):+.4f}")
            for part, value in zip(self.parts, self.of(token)[:, row], strict=True)
        ]
        title = f"token {token} of row {row}: logit {float(self.logits[row, token]):.4f}"
        return Table(title, ("part", "adds"), rows, right=frozenset({"adds"}))

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()


def logit_attribution(
    model: nn.Module, inputs: Any, *, position: int = -1, read: Read = logits_of
) -> LogitAttribution:
    """How much each part's write to the residual stream adds to the logits of one position.

        parts = interp.logit_attribution(model, tokens)
        parts.of(token, against=other)          # (parts, rows): their sum is the logit difference

    The final norm's scale is frozen at the value that it has in this run, so the sum of all parts
    is exactly the model's logit. (`interp.lens` lets each layer have its own scale: another thing.)

    Arguments:
        model: a stack of blocks that add to one stream, with a norm and a linear head behind them.
        inputs: a tensor, a tuple, a mapping, or `nethook.inputs(...)`.
        position: which position's logits; -1 is the last of the tensor.
        read: where the logits are in the model's output.

    Returns:
        A `LogitAttribution`.

    Raises:
        OptionError: where the logits are not a sum of the parts: a norm on the stream itself, or a
            head that is not linear (a soft cap, a hidden layer).

    Cost: three forwards, one of them with a row per part.
    """
    given = as_inputs(inputs)
    found = roles(model, inputs)
    blocks = last_stack(found.blocks)
    writes = [write.address for name in blocks for write in found[name].writes]
    norm = next((name for name in found.readout[:1] if _is_norm(model, name)), None)
    with unchanged(model, given, evaluation=True), torch.no_grad(), layer_by_layer():
        sites = [blocks[0], blocks[-1], *writes]
        if "" in writes:
            raise OptionError(_no_stream(found))
        with trace(model, list(dict.fromkeys(sites)), inputs=True) as tape:
            logits = read(own_inputs(given).call(model))
        stream = _tensor(tape[blocks[-1]].output)
        begin = _tensor((tape[blocks[0]].args, tape[blocks[0]].kwargs))
        parts = [begin, *(_tensor(tape[name].output).reshape(begin.shape) for name in writes)]
        total = torch.stack(parts).sum(0)
        scale = float(stream.abs().amax())
        if not torch.allclose(total, stream, rtol=0, atol=_TOLERANCE * scale):
            raise OptionError(_no_stream(found))
        if norm is None:
            norm = blocks[-1]
            normed = parts
        else:
            normed = _frozen(get_module(model, norm), stream, parts)
        names = ["embedding", *writes, *(["norm's bias"] if len(normed) > len(parts) else [])]
        rows = _read_each(model, given, norm, [torch.zeros_like(stream), *normed], read)
    if logits.ndim > 2:  # a classifier has one prediction per row
        rows, logits = rows[:, :, position], logits[:, position]
    head = rows[0]
    values = torch.cat([rows[1:] - head, head[None]])
    if len(normed) > len(parts):  # one bias: the norm's, seen through the head, and the head's own
        values = torch.cat([values[:-2], (values[-2] + values[-1])[None]])
        names = names[:-1]
    worst = float((values.sum(0) - logits).abs().amax())
    if worst > _TOLERANCE * float(logits.abs().amax()):
        raise OptionError(
            "the logits are not the sum of what the parts wrote: behind the norm "
            f"{norm!r} the model is not linear (a soft cap, or a hidden layer in the head); the "
            f"sum is off by {worst:.2g}. Use interp.lens, which needs no linearity."
        )
    return LogitAttribution((*names, "bias"), values, logits)


def _frozen(norm: nn.Module, stream: torch.Tensor, parts: list[torch.Tensor]) -> list[torch.Tensor]:
    """What a norm makes of each part with its scale frozen, and its bias where it has one."""
    out = norm(stream)
    bias = norm(torch.zeros_like(stream))
    # A layer norm takes the mean away, an RMS norm does not: adding a constant shows it.
    shifted = norm(stream + stream.abs().amax())
    centred = torch.allclose(shifted, out, rtol=0, atol=1e-2 * float(out.abs().amax()))

    def centre(value: torch.Tensor) -> torch.Tensor:
        return value - value.mean(-1, keepdim=True) if centred else value

    whole = centre(stream)
    gain = torch.where(whole == 0, torch.zeros_like(whole), (out - bias) / whole)
    frozen = [gain * centre(part) for part in parts]
    return [*frozen, bias] if bool((bias != 0).any()) else frozen


def _read_each(
    model: nn.Module, given: Inputs, site: str, values: list[torch.Tensor], read: Read
) -> torch.Tensor:
    """The logits of the model's rest behind a site, for several values there."""
    count, batch = len(values), values[0].shape[0]
    together = torch.cat(values)

    def put(value: Any) -> Any:
        path, first = tensors(value)[0]
        return replace(value, path, together.to(first.dtype))

    with edit(model, outputs={site: put}):
        out = read(repeat_rows(own_inputs(given), count, batch).call(model))
    split: torch.Tensor = out.unflatten(0, (count, batch))
    return split


def _is_norm(model: nn.Module, name: str) -> bool:
    """Whether a module behind the blocks has no matrix, so that it can be a norm."""
    return all(weight.ndim < 2 for weight in get_module(model, name).parameters())


def _tensor(value: object) -> torch.Tensor:
    return tensors(value)[0][1]


def _no_stream(found: Roles) -> str:
    return (
        "the output of the last block is not the sum of what the blocks' parts wrote (layout: "
        f"{found.layout or 'unknown'}), so no logit is a sum of parts. Use interp.lens or "
        "interp.sweep, which need no such sum."
    )
