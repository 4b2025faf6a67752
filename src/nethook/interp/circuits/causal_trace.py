"""`causal_trace`: which states restore an answer after the subject's embeddings were corrupted.

The method of ROME (Meng et al. 2022). Row 0 of a batch is clean; the other rows get noise on the
subject's embeddings, the same noise in every cell; a cell restores the clean state of some layers
at one position.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import Inputs, as_inputs
from nethook.addresses.nested import replace, tensors
from nethook.addresses.patterns import Pattern
from nethook.editing.scope import edit
from nethook.errors import NoSuchSiteError, OptionError
from nethook.interp.estimates.gradients import numbers
from nethook.interp.results.sweep import Sweep
from nethook.interp.rows import repeat_rows
from nethook.restoring.copies import own_inputs
from nethook.restoring.unchanged import unchanged
from nethook.tracing.scope import trace

Metric = Callable[[Any], torch.Tensor]
_NO_EMBEDDING = (
    "no nn.Embedding was given the text, so there is nothing to corrupt. Name the module whose "
    "output is (1, positions, width): embedding='model.embed'."
)


def causal_trace(
    model: nn.Module,
    tokens: Any,
    subject: slice | Sequence[int],
    at: Pattern,
    *,
    metric: Metric,
    samples: int = 10,
    noise: float = 3.0,
    window: int = 1,
    embedding: str | None = None,
    seed: int = 0,
) -> Sweep:
    """Which states, at which layer and position, restore what noise on the subject destroyed.

        r = interp.causal_trace(model, tokens, subject=slice(2, 5), at="transformer.h.*",
                                metric=lambda out: out.logits[:, -1].softmax(-1)[:, answer])
        r.recovered.mean(-1); r.figure(texts)

    Arguments:
        model: any `nn.Module` that looks tokens up in an `nn.Embedding`.
        tokens: inputs with one row, the text.
        subject: which positions are corrupted.
        at: whose outputs are restored: blocks, attentions or MLPs.
        metric: `fn(output)` gives one number per row.
        samples: how many draws of noise, a row each.
        noise: its standard deviation, in standard deviations of the subject's embeddings.
        window: how many neighbouring layers are restored together, around each.
        embedding: the address of the token embedding. None finds it: the `nn.Embedding` that is
            given the text.
        seed: of the noise.

    Returns:
        A `Sweep` over positions whose rows are the draws of noise. `base` is the corrupted metric,
        `source` the clean one, so `recovered` is the share that a state restores.

    Cost: a forward of `samples + 1` rows per layer and position; layers before the restored ones
    are answered from the corrupted run and do not run again.
    """
    started = time.perf_counter()
    for name, count in (("samples", samples), ("window", window)):
        if type(count) is not int or count < 1:
            raise OptionError(f"`{name}` must be a positive number; got {count!r}.")
    given = as_inputs(tokens)
    with unchanged(model, given, evaluation=True), torch.no_grad():
        where, embedded = _embedding(model, given, embedding)
        length, size = embedded.shape
        places = list(range(length))[subject] if isinstance(subject, slice) else list(subject)
        if not places or not all(-length <= place < length for place in places):
            raise OptionError(
                f"`subject` must name positions of the text, 0 to {length - 1}; got {subject!r}."
            )
        draw = torch.Generator().manual_seed(seed)
        spread = noise * float(embedded[places].float().std())
        drawn = spread * torch.randn(samples, len(places), size, generator=draw)
        run = _Run(
            model, repeat_rows(own_inputs(given), samples + 1, 1), where, places, drawn, metric
        )
        corrupted, recorded = run.corrupted(at)
        run.find_rows(given, recorded, length)
        sites = list(recorded)
        values = torch.stack(
            [
                torch.stack(
                    [
                        run.restored(recorded, _window(sites, layer, window), position)
                        for position in range(length)
                    ]
                )
                for layer in range(len(sites))
            ]
        )
    return Sweep(
        sites=tuple(sites),
        cells=tuple(map(str, range(length))),
        over="positions",
        values=values[..., 1:],
        base=corrupted[1:],
        source=corrupted[:1].expand(samples).clone(),
        rows=1,
        runs=2 + len(sites) * length,
        change=f"restoring {window if window > 1 else 'a'} state{'s' * (window > 1)} under noise",
        seconds=time.perf_counter() - started,
    )


class _Run:
    """Forwards of one text with noise on its subject; row 0 is clean."""

    def __init__(
        self, model: nn.Module, inputs: Inputs, where: str, places: list[int],
        drawn: torch.Tensor, metric: Metric,
    ) -> None:  # fmt: skip
        self._model = model
        self._inputs = inputs
        self._where = where
        self._places = places
        self._drawn = drawn
        self._metric = metric
        self._behind: set[str] = set()  # sites whose rows are behind the tokens

    def _corrupt(self, value: torch.Tensor) -> torch.Tensor:
        new = value.clone()
        new[1:, self._places] += self._drawn.to(value.device, value.dtype)
        return new

    def corrupted(self, at: Pattern) -> tuple[torch.Tensor, dict[str, Any]]:
        """The metric without anything restored, and what the layers returned."""
        with (
            edit(self._model, outputs={self._where: self._corrupt}),
            trace(self._model, at) as tape,
        ):
            output = own_inputs(self._inputs).call(self._model)
        recorded = {r.address: r.output for r in tape.values() if r.entries}
        if not recorded:
            raise NoSuchSiteError(f"nothing ran at {at!r}.")
        return numbers(self._metric, output, len(self._drawn) + 1), recorded

    def find_rows(self, given: Inputs, recorded: dict[str, Any], length: int) -> None:
        """Finds out where rows and tokens of each site are."""
        shapes = {name: tensors(value)[0][1].shape[:2] for name, value in recorded.items()}
        rows = len(self._drawn) + 1
        if rows == length:  # nothing tells them apart: those of the text alone do
            with trace(self._model, list(recorded)) as tape:
                own_inputs(given).call(self._model)
            shapes = {name: tensors(tape[name].last.output)[0][1].shape[:2] for name in recorded}
            rows = 1
        for name, shape in shapes.items():
            if tuple(shape) == (length, rows) and length != rows:
                self._behind.add(name)
            elif tuple(shape) != (rows, length):
                raise OptionError(
                    f"`at` must be sites of the shape (rows, {length} tokens, …); got {name!r} "
                    f"with {rows} rows and the shape "
                    f"{tuple(tensors(recorded[name])[0][1].shape)}."
                )

    def restored(self, recorded: dict[str, Any], layers: list[str], position: int) -> torch.Tensor:
        """The metric with some layers' clean state at one position."""

        def restorer(name: str) -> Callable[[Any], Any]:
            dim = 1 if name in self._behind else 0

            def restore(value: Any) -> Any:
                path, first = tensors(value)[0]
                new = first.clone()
                view = new.transpose(0, dim)  # rows first
                view[1:, position] = view[0, position]
                return replace(value, path, new)

            return restore

        # What runs before the first restored layer is the same in every cell.
        before = list(recorded)[: list(recorded).index(layers[0])]
        answers = {
            name: _answer(recorded[name])
            for name in before
            if isinstance(recorded[name], torch.Tensor)
        }
        with edit(
            self._model,
            outputs={self._where: self._corrupt, **{name: restorer(name) for name in layers}},
            answers=answers,
        ):
            output = own_inputs(self._inputs).call(self._model)
        return numbers(self._metric, output, len(self._drawn) + 1)


def _answer(value: torch.Tensor) -> Callable[..., torch.Tensor]:
    def answer(_args: tuple[Any, ...], _kwargs: dict[str, Any]) -> torch.Tensor:
        return value.clone()

    return answer


def _window(sites: list[str], layer: int, window: int) -> list[str]:
    """The layers around one, as ROME counts them."""
    return sites[max(0, layer - window // 2) : min(len(sites), layer - (-window // 2))]


def _embedding(model: nn.Module, given: Inputs, named: str | None) -> tuple[str, torch.Tensor]:
    """The address of the token embedding, and the text's embeddings, (positions, width)."""
    known = named is not None or any(isinstance(m, nn.Embedding) for m in model.modules())
    if not known:
        raise NoSuchSiteError(_NO_EMBEDDING)
    with trace(model, named if named is not None else nn.Embedding, inputs=True) as tape:
        own_inputs(given).call(model)
    texts = [t for _, t in tensors((given.args, dict(given.kwargs))) if not t.is_floating_point()]
    for record in tape.values():
        if not record.entries:
            continue
        value = tensors(record.last.output)[0][1]
        ids = [t for _, t in tensors(record.last.args)]
        if named is not None or any(
            _same(i, text) for i in ids for text in texts if text.ndim == 2
        ):
            if value.ndim != 3 or value.shape[0] != 1:
                raise OptionError(
                    "`tokens` must be one text, (1, positions); got embeddings of the shape "
                    f"{tuple(value.shape)}. Trace one text at a time."
                )
            return record.address, value[0]
    raise NoSuchSiteError(_NO_EMBEDDING)


def _same(one: torch.Tensor, two: torch.Tensor) -> bool:
    return one.shape == two.shape and torch.equal(one, two)
