"""`Attribution`: how much each part of an input or a value adds to a target, with its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch

from nethook.errors import OptionError, ResultError
from nethook.interp.results.files import read_result, write_result
from nethook.interp.results.places import FEATURES, PIXELS, SIGNAL, TOKENS, largest, place_names
from nethook.interp.results.places import summed as summed_per_place
from nethook.interp.results.statistics import interval_over_rows

if TYPE_CHECKING:
    from nethook.drawing.data import Spec
    from nethook.text.table import Table

_FORMAT = "nethook_attribution"
_LISTED = 12
_NORMAL = 1.959964  # 95 % of a normal distribution lie within so many standard errors


class Part(NamedTuple):
    """The attribution of one place, with its interval where there is one."""

    place: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Attribution:
    """What `interp.integrated_gradients` and its relatives return.

    Attributes:
        method: the name of the method.
        values: the attribution of every element, (rows, …), with the shape of what was studied;
            a dimension of one where a method treats its elements together.
        score: the target for the input, (rows,).
        start: the target for the baseline, (rows,); None for a method without a baseline.
        delta: the completeness error, (rows,): the sum of the values minus (score − start). None
            for a method whose values need not add up.
        errors: standard errors of the values, of a method that samples.
        steps: gradients taken per row, (rows,), where the number was chosen by the error.
        at: the address of what was studied; "" is the input.
        kind: what the places of a value are: "pixels", "tokens", "samples", "features" or
            "elements".
        baseline: the baseline in words.
        inputs: the input as it was given, where it is a picture or token ids: for the figure.
        names: texts of places, a tuple for each row or one for all rows: `named` puts them there.
        runs: forwards of the model, each of many rows.
        notes: what else should be known.
    """

    method: str
    values: torch.Tensor
    score: torch.Tensor
    start: torch.Tensor | None = None
    delta: torch.Tensor | None = None
    errors: torch.Tensor | None = None
    steps: torch.Tensor | None = None
    at: str = ""
    kind: str = FEATURES
    baseline: str = ""
    inputs: torch.Tensor | None = None
    names: tuple[tuple[str, ...], ...] = ()
    runs: int = 0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.values) != len(self.score):
            raise ResultError(
                f"`values` must have a row for each of the {len(self.score)} scores; got "
                f"{len(self.values)}."
            )

    # -- numbers ------------------------------------------------------------------------------

    @property
    def summed(self) -> torch.Tensor:
        """Values added up over channels or the width of tokens: (rows, places …)."""
        return summed_per_place(self.values, self.kind)

    def top(
        self, n: int = 10, *, row: int | None = None, names: Sequence[str] | None = None
    ) -> list[Part]:
        """The places with the largest attribution of either sign.

        Arguments:
            n: how many.
            row: of one row of the batch; otherwise of the mean over rows.
            names: texts in the place of the numbers of places.
        """
        value, low, high = self._with_interval(row)
        named = self._names(value, self._given(row) if names is None else names)
        order = value.flatten().abs().nan_to_num(nan=-1.0).argsort(descending=True, stable=True)
        flat = [each.flatten() for each in (value, low, high)]
        return [
            Part(named[place], *(float(each[place]) for each in flat))
            for place in order[:n].tolist()
        ]

    def _with_interval(self, row: int | None) -> tuple[torch.Tensor, ...]:
        """Values per place with their 95 % interval: over rows, or of what was sampled."""
        shown = self.shown()
        if row is None and len(shown) > 1:
            low, high = interval_over_rows(shown.movedim(0, -1), 0.95)
            return shown.double().mean(0), low, high
        one = shown[row or 0].double()
        if self.errors is None or self.errors.shape != self.values.shape:
            nothing = torch.full_like(one, math.nan)
            return one, nothing, nothing
        # Errors of elements that are added up; where a place is one element, this is its own.
        error = summed_per_place(self.errors.double().square(), self.kind)[row or 0].sqrt()
        return one, one - _NORMAL * error, one + _NORMAL * error

    def shown(self) -> torch.Tensor:
        """Per place, as tables and figures have it: sums; of gradients, the largest channel."""
        values = self.values.detach().cpu()
        if self.start is None:
            return largest(values, self.kind)
        return summed_per_place(values, self.kind)

    def _given(self, row: int | None) -> Sequence[str] | None:
        """The names that the result has for a row, or for all rows at once."""
        if len(self.names) == 1:
            return self.names[0]
        return self.names[row] if self.names and row is not None else None

    def named(self, names: Any) -> Self:
        """The same with names, which tables and figures have from then on, and files keep.

            a.named(tokenizer).save("runs/bert.studies/words.json")

        Arguments:
            names: of features, their names; of tokens, a tokenizer or a function of ids, or the
                texts of every row.
        """
        from nethook.interp.results.looks import token_texts

        rows = range(1 if self.inputs is None else len(self.values))
        if isinstance(names, Sequence) and names and not isinstance(names[0], str):
            found = tuple(tuple(map(str, row)) for row in names)
        elif isinstance(names, Sequence):
            found = (tuple(map(str, names)),)
        else:
            found = tuple(
                tuple(token_texts(names, None if self.inputs is None else self.inputs[row]))
                for row in rows
            )
        made = replace(self, names=found)
        _check_names(made)
        return made

    def _names(self, shown: torch.Tensor, names: Sequence[str] | None) -> list[str]:
        if names is not None and len(names) < shown.numel():
            raise OptionError(
                f"`names` must have a text for each of the {shown.numel()} {self.kind}; got "
                f"{len(names)}."
            )
        return place_names(shown.shape, self.kind, names)

    # -- looks --------------------------------------------------------------------------------

    def figure(
        self, names: Any = None, *, row: int | None = None, images: torch.Tensor | None = None,
        theme: str = "light",
    ) -> Any:  # fmt: skip
        """A Plotly figure: a picture with an overlay, coloured tokens, a curve, or bars.

        Arguments:
            names: of tokens, their texts or a tokenizer; of features, their names.
            row: one row of the batch. None shows the first pictures or the first text; of features
                the mean over rows with its 95 % interval.
            images: pictures to lay the values over, where the input is none.
            theme: "light" or "dark".
        """
        from nethook.drawing.rendering.render import figure

        return figure(self.spec(names, row=row, images=images), theme)

    def spec(
        self, names: Any = None, *, row: int | None = None, images: torch.Tensor | None = None
    ) -> Spec:
        """The figure as plain data."""
        from nethook.interp.results.looks import attribution_spec

        return attribution_spec(self, names, row, images)

    def table(self, *, row: int | None = None, names: Sequence[str] | None = None) -> Table:
        """The places with the largest attribution, and under the title how it was found."""
        from nethook.text.table import Table

        parts = self.top(_LISTED, row=row, names=names)
        has_interval = any(not math.isnan(part.low) for part in parts)
        columns = [self.kind.removesuffix("s") if self.kind != PIXELS else "row, column", "value"]
        rows = [[part.place, f"{part.value:.4g}"] for part in parts]
        if has_interval:
            columns.append("95 % interval")
            rows = [
                [*cells, f"{part.low:.4g} … {part.high:.4g}"]
                for cells, part in zip(rows, parts, strict=True)
            ]
        return Table(self._title(), columns, rows, frozenset({"value"}))

    def _title(self) -> str:
        from nethook.text.numbers import count

        shape = " × ".join(str(length) for length in self.values.shape[1:])
        title = f"{self.method} of {self.at or 'the input'}: {count(len(self.score), 'row')}"
        title += f" of {shape}" if shape else ""
        title += f"; score {_mean(self.score)}"
        if self.start is not None:
            title += f", {_mean(self.start)} at the baseline ({self.baseline or 'given'})"
        if self.delta is not None:
            title += f"\ncompleteness error {float(self.delta.abs().max()):.2g} at most"
        if self.steps is not None and len(self.steps):
            least, most = int(self.steps.min()), int(self.steps.max())
            title += f", {least} steps" if least == most else f", {least} to {most} steps"
        for note in self.notes:
            title += f"\n{note}"
        return title

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()

    # -- files --------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Writes `path` (JSON) and a safetensors file beside it. `Attribution.load` reads them."""
        given = {each.name: getattr(self, each.name) for each in fields(Attribution)}
        if not self.names:
            del given["names"]
        tensors = {name: value for name, value in given.items() if name in _TENSORS}
        plain = {name: value for name, value in given.items() if name not in _TENSORS}
        there = {name: value for name, value in tensors.items() if value is not None}
        write_result(Path(path), _FORMAT, plain, there)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads what `save` has written; nothing in the files is run."""
        plain, tensors = read_result(Path(path), _FORMAT)
        try:
            given: dict[str, Any] = {**_checked(plain), **tensors}
            return cls(**given)
        except (TypeError, ValueError, ResultError) as error:
            raise ResultError(f"{Path(path).name} is not an attribution: {error}") from None


def _check_names(made: Attribution) -> None:
    """Refuses texts of which there are too many or too few."""
    places = math.prod(made.shown().shape[1:])
    if len(made.names) not in (1, len(made.values)) or any(
        len(row) != places for row in made.names
    ):
        got = ", ".join(str(len(row)) for row in made.names[:3])
        raise OptionError(
            f"`names` must have a text for each of the {places} {made.kind}, once or for each row; "
            f"got {got}."
        )


_TENSORS = ("values", "score", "start", "delta", "errors", "steps", "inputs")
_KINDS = (PIXELS, TOKENS, SIGNAL, FEATURES, "elements")


def _mean(numbers: torch.Tensor) -> str:
    return f"{float(numbers.double().mean()):.4g}"


def _checked(plain: dict[str, Any]) -> dict[str, Any]:
    """What a file says, as the fields need it; an error where it is of another type."""
    kinds: dict[str, Any] = {"method": str, "at": str, "kind": str, "baseline": str, "runs": int}
    names = plain.pop("names", [])
    if set(plain) != {*kinds, "notes"}:
        raise ResultError(f"it must have exactly the fields {sorted({*kinds, 'notes'})}.")
    for name, kind in kinds.items():
        if not isinstance(plain[name], kind) or isinstance(plain[name], bool):
            raise ResultError(f"{name!r} must be a {kind.__name__}; got {plain[name]!r:.40}.")
    if plain["kind"] not in _KINDS:
        raise ResultError(f"'kind' must be one of {', '.join(_KINDS)}; got {plain['kind']!r:.40}.")
    notes = plain["notes"]
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise ResultError(f"'notes' must be a list of texts; got {notes!r:.40}.")
    texts = isinstance(names, list) and all(isinstance(row, list) for row in names)
    if not texts or not all(isinstance(text, str) for row in names for text in row):
        raise ResultError(f"'names' must be lists of texts; got {names!r:.40}.")
    return {**plain, "notes": tuple(notes), "names": tuple(map(tuple, names))}
