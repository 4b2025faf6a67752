"""`lens`: what the model would say if it ended after each layer.

A layer's output is put in the place of the last block's, and the model's own rest runs on it: no
final norm, head, soft cap or projection has to be found. (Direct logit attribution is another
thing: `logit_attribution`.)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import nn

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.addresses.nested import replace, tensors
from nethook.addresses.patterns import Pattern
from nethook.editing.scope import edit
from nethook.errors import NoSuchSiteError, OptionError
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.interp.attention.roles import roles
from nethook.interp.batches import rows_of
from nethook.interp.devices import device_of
from nethook.interp.results.result import Result
from nethook.interp.rows import repeat_rows
from nethook.restoring.copies import own_inputs
from nethook.restoring.unchanged import unchanged
from nethook.text.table import Table
from nethook.tracing.scope import trace
from nethook.tracing.tape.record import Record

if TYPE_CHECKING:
    from nethook.drawing.data import Spec

Read = Callable[[Any], torch.Tensor]


def logits_of(output: Any) -> torch.Tensor:
    """The logits in what a model returned: `.logits`, or its first tensor of floats."""
    found = getattr(output, "logits", None)
    if isinstance(found, torch.Tensor):
        return found
    first = next((t for _, t in tensors(output) if t.is_floating_point()), None)
    if first is None:
        raise OptionError(
            "`read` must say where the logits are in the output; got an output without a tensor of "
            "floats. Write read=lambda output: output['scores']."
        )
    return first


@dataclass(frozen=True, eq=False, repr=False)
class Lens(Result):
    """What each layer would say: `logits`, (layers, rows, …, vocabulary).

    `sites` are the layers, in order of execution; `final` are the model's own logits.
    """

    _FORMAT: ClassVar[str] = "nethook_lens"

    sites: tuple[str, ...]
    logits: torch.Tensor
    final: torch.Tensor
    inputs: torch.Tensor | None = field(default=None)  # token ids, for the figure
    texts: tuple[str, ...] = ()  # of tokens by id: `named` puts them there

    @property
    def probs(self) -> torch.Tensor:
        """The probabilities of each layer."""
        return torch.softmax(self.logits.float(), -1)

    def top(self, k: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
        """The k likeliest tokens of each layer, and their probabilities: (layers, rows, …, k)."""
        if not 1 <= k <= self.logits.shape[-1]:
            raise OptionError(
                f"`k` must be a number from 1 to {self.logits.shape[-1]}, all tokens; got {k!r}."
            )
        found = self.probs.topk(k, -1)
        return found.indices, found.values

    def rank(self, token: int | torch.Tensor) -> torch.Tensor:
        """How many tokens each layer finds likelier than this one: 0 is the first.

        `token` is one id, or ids of the shape (rows, …) of the logits without the vocabulary.
        """
        ids = torch.as_tensor(token, device=self.logits.device)
        ids = ids.expand(self.logits.shape[1:-1]).unsqueeze(-1).expand(*self.logits.shape[:-1], 1)
        return (self.logits > self.logits.gather(-1, ids)).sum(-1)

    def kl(self) -> torch.Tensor:
        """KL(final ‖ layer) in nats: (layers, rows, …)."""
        final = torch.log_softmax(self.final.float(), -1)
        each = torch.log_softmax(self.logits.float(), -1)
        return (final.exp() * (final - each)).sum(-1)

    def table(self, row: int = 0) -> Table:
        """Of one row: the likeliest token of each layer at the last position, and its distance."""
        ids, probs = self.top(1)
        kl = self.kl()
        last = (row, *[-1] * (self.logits.ndim - 3))
        rows = [
            (
                site, self._text(int(ids[layer][last][0])), f"{float(probs[layer][last][0]):.3f}",
                f"{float(kl[layer][last]):.3g}",
            )
            for layer, site in enumerate(self.sites)
        ]  # fmt: skip
        title = f"lens of {len(rows)} layers, row {row}" + (", last position" * (len(last) > 1))
        columns = ("layer", "top", "probability", "KL to the model")
        return Table(title, columns, rows, right=frozenset(columns[1:]))

    def _text(self, token: int) -> str:
        return self.texts[token] if self.texts else str(token)

    def figure(
        self, tokenizer: Any = None, *, row: int = 0, kl: bool = False, theme: str = "light"
    ) -> Any:
        """Layers by positions: each layer's likeliest token as text; colour is its probability.

        Arguments:
            tokenizer: what turns ids into text: an object with `decode`, a function, or a sequence
                of texts by id. None shows the ids.
            row: which row of the batch.
            kl: colour is the KL divergence to the model's own output instead.
            theme: `light` or `dark`.
        """
        from nethook.drawing.rendering.render import figure

        return figure(self.spec(tokenizer, row=row, kl=kl), theme)

    def spec(self, tokenizer: Any = None, *, row: int = 0, kl: bool = False) -> Spec:
        """The figure as plain data."""
        from nethook.interp.lenses.picture import lens_spec

        ids, probs = self.top(min(3, self.logits.shape[-1]))
        values = self.kl() if kl else probs[..., 0]
        return lens_spec(
            self.sites, values[:, row], ids[:, row], probs[:, row],
            texts=None if self.inputs is None else self.inputs[row],
            tokenizer=tokenizer or self.texts or None,
            unit="KL to the model" if kl else "probability",
        )  # fmt: skip

    def named(self, tokenizer: Any) -> Lens:
        """The same with the texts of all tokens, which tables, figures and files have.

        Arguments:
            tokenizer: as for `figure`.
        """
        from nethook.interp.lenses.picture import reader

        text = reader(tokenizer)
        return dataclasses.replace(self, texts=tuple(text(i) for i in range(self.logits.shape[-1])))


def lens(
    model: nn.Module,
    inputs: Any,
    at: Pattern | None = None,
    *,
    into: str | None = None,
    read: Read = logits_of,
    translate: Callable[[torch.Tensor, str], torch.Tensor] | None = None,
    rows: int | None = None,
) -> Lens:
    """What the model would say if it ended after each layer (the logit lens).

        lens = interp.lens(model, tokens)
        lens.top(5); lens.rank(token); lens.kl(); lens.figure(tokenizer)

    The output of each layer is put in the place of the last block's output, and the model's own
    rest runs on it. So the last layer's logits are the model's, and every kind of final norm, head,
    soft cap or projection is what the model itself does.

    Arguments:
        model: any `nn.Module`.
        inputs: a tensor, a tuple, a mapping, or `nethook.inputs(...)`.
        at: which layers: modules or operations (`"model.layers.*"`, `"h.*/add#0"` for sums inside
            blocks). None means the blocks that `interp.roles` finds.
        into: where layers are put: the address of the last block. None means the last module of
            `at`, or of the blocks.
        read: where the logits are in the model's output. The default is `.logits`, else the first
            tensor.
        translate: `fn(value, site)` is applied to a layer's output before it is put in place, as a
            tuned lens does.
        rows: how many layers run as one batch; None means all. With 1, each layer runs alone, and
            the bits are those that the model itself would compute.

    Returns:
        A `Lens`.

    Cost: two forwards: one to record, and one of `layers × batch` rows, in which the blocks before
    the last are answered and do not run.
    """
    given = as_inputs(inputs)
    device_of(model)  # an error where it has no values
    if rows is not None and (type(rows) is not int or rows < 1):
        raise OptionError(f"`rows` must be a positive number of layers, or None; got {rows!r}.")
    with unchanged(model, given, evaluation=True), torch.no_grad(), layer_by_layer():
        final, values, last, skipped = final_and_layers(model, given, at, into, read)
        sites = tuple(values)
        moved = [value if translate is None else translate(value, s) for s, value in values.items()]
        step = len(moved) if rows is None else rows
        logits = [
            suffix(model, given, last, skipped, moved[first : first + step], read)
            for first in range(0, len(moved), step)
        ]
    return Lens(sites, torch.cat(logits), final, _ids(given))


def blocks_for(
    model: nn.Module, given: Inputs, at: Pattern | None, into: str | None
) -> tuple[str, ...]:
    """The blocks of the model, where they have to be found; otherwise none."""
    needed = at is None or (into is None and _means_ops(at))
    return last_stack(roles(model, given).blocks) if needed else ()


def final_and_layers(
    model: nn.Module, given: Inputs, at: Pattern | None, into: str | None, read: Read,
    blocks: tuple[str, ...] | None = None,
) -> tuple[torch.Tensor, dict[str, torch.Tensor], str, list[str]]:  # fmt: skip
    """The model's logits, the values of layers, where they are put, and which need not run."""
    blocks = blocks_for(model, given, at, into) if blocks is None else blocks
    with trace(model, list(blocks) if at is None else at, calls="all") as tape:
        final = read(own_inputs(given).call(model))
    ran = [record for record in tape.values() if record.entries]
    if not ran:
        raise NoSuchSiteError(f"nothing ran at {at!r}.")
    values = dict(pair for record in ran for pair in _layers(record))
    last = into or (blocks[-1] if blocks else ran[-1].address)
    # A block that gives one tensor, and whose place another's output takes, need not run.
    skipped = [
        record.address
        for record in ran
        if at is None and len(record.entries) == 1 and _is_tensor(record.last.output)
    ]
    return final, values, last, skipped


def suffix(
    model: nn.Module, given: Inputs, last: str, skipped: list[str], values: Sequence[torch.Tensor],
    read: Read,
) -> torch.Tensor:  # fmt: skip
    """The rest of the model behind `last`, on several values as one batch: (values, rows, …)."""
    count, batch = len(values), _rows(given, values[0])
    shapes = {tuple(value.shape) for value in values}
    if len(shapes) > 1:
        listed = ", ".join(map(str, sorted(shapes)[:4]))
        raise OptionError(
            f"`at` must name layers that return values of one shape, which the last of them takes; "
            f"got {listed}. Name the blocks, or leave `at` out."
        )

    def put(value: Any) -> Any:
        path, first = tensors(value)[0]
        together = torch.cat(list(values))
        if first.shape != together.shape and values[0].ndim > 1:  # tokens first, rows behind them
            together = torch.cat(list(values), 1)
        if first.shape != together.shape:
            raise OptionError(
                f"`into` must be a site of the shape of the layers, {tuple(values[0].shape)}; got "
                f"{last!r}, which returned {tuple(first.shape)} with {count} layers in a batch."
            )
        return replace(value, path, together.to(first.dtype))

    def skip(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return tensors((args, kwargs))[0][1].clone()

    with edit(model, outputs={last: put}, answers=dict.fromkeys(skipped, skip)):
        out: torch.Tensor = read(repeat_rows(own_inputs(given), count, batch).call(model))
    split: torch.Tensor = out.unflatten(0, (count, batch))
    return split


def _rows(given: Inputs, value: torch.Tensor) -> int:
    """The rows of the inputs: those of the value, unless these are behind its tokens."""
    inside = tensors((given.args, dict(given.kwargs)))
    if any(t.ndim and t.shape[0] == value.shape[0] for _, t in inside):
        return value.shape[0]
    return rows_of(given)


def _layers(record: Record) -> list[tuple[str, torch.Tensor]]:
    """The first tensor of each call; a block that is used again and again is as many layers."""
    found = [tensors(call.output)[0][1] for call in record.calls]
    if len(found) == 1:
        return [(record.address, found[0])]
    return [(f"{record.address}, call {number}", value) for number, value in enumerate(found)]


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def last_stack(blocks: tuple[str, ...]) -> tuple[str, ...]:
    """The blocks of the last stack: a decoder's, where there is an encoder as well."""
    stack = blocks[-1].rpartition(".")[0]
    return tuple(name for name in blocks if name.rpartition(".")[0] == stack)


def _means_ops(at: Any) -> bool:
    patterns = at if isinstance(at, list | tuple) else [at]
    return all(isinstance(pattern, str) and "/" in pattern for pattern in patterns)


def _ids(given: Inputs) -> torch.Tensor | None:
    whole = (t for _, t in tensors((given.args, dict(given.kwargs))))
    return next((t for t in whole if t.ndim == 2 and not t.is_floating_point()), None)
