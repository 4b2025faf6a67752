"""Targets: from what a model returns to one number per row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from nethook.addresses.nested import map_tensors
from nethook.errors import OptionError
from nethook.interp.lenses.lens import logits_of

Function: TypeAlias = Callable[[Any], torch.Tensor]
Given: TypeAlias = int | tuple[int, ...] | list[int] | torch.Tensor | str | Function | None

_FORMS = (
    'a class (3), one class per row ([3, 1, 0]), "top", an index of several dimensions ((3, 10, '
    "12)), or a function of the output that gives one number per row"
)


class Target:
    """What is explained: a class, one class per row, or any function of the output."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._classes: torch.Tensor | None = None
        self._index: tuple[int, ...] | None = None
        self._function: Function | None = None
        if isinstance(given, bool) or (isinstance(given, str) and given != "top"):
            raise _wrong(given)
        if isinstance(given, int):
            self._index = (given,)
        elif isinstance(given, tuple):
            self._index = tuple(given)
        elif isinstance(given, list | torch.Tensor):
            self._classes = torch.as_tensor(given)
            if self._classes.ndim != 1 or self._classes.is_floating_point():
                raise _wrong(given)
        elif callable(given):
            self._function = given
        elif given is not None and given != "top":
            raise _wrong(given)

    @property
    def whole(self) -> bool:
        """Whether it must be given all rows of the batch at once, in their order."""
        return self._function is not None

    @property
    def function(self) -> Function | None:
        """The function of the output, where it is one."""
        return self._function

    def settle(self, output: Any, rows: int) -> None:
        """Learns from the output for the input itself: which class is on top, how many rows."""
        if self._function is not None:
            self.of(output, torch.arange(rows), rows)
            return
        scores = logits_of(output)
        if scores.ndim == 0 or scores.shape[0] != rows:
            raise OptionError(
                f"`target` must find one row of scores for each of the {rows} rows of the input; "
                f"got {tuple(scores.shape)} from the model. Give a function of the output."
            )
        if self._given == "top":
            self._check_classes(scores)
            self._classes = scores.argmax(1).cpu()
        elif self._given is None:
            if scores.numel() != rows:
                raise OptionError(
                    f"`target` must say which of {tuple(scores.shape)} numbers is explained: "
                    f"{_FORMS}; got None."
                )
            self._index = (0,) * (scores.ndim - 1)
        elif self._classes is not None:
            self._check_classes(scores)
            if len(self._classes) != rows:
                raise OptionError(
                    f"`target` must have a class for each of the {rows} rows; got "
                    f"{len(self._classes)}."
                )
        self.of(output, torch.arange(rows), rows)

    def of(self, output: Any, which: torch.Tensor, rows: int) -> torch.Tensor:
        """The numbers of an output whose rows are copies of rows `which` of the input."""
        if self._function is not None:
            return self._called(self._function, output, len(which), rows)
        scores = logits_of(output)
        if self._classes is not None:
            classes = self._classes[which].to(scores.device)
            if int(classes.min()) < 0 or int(classes.max()) >= scores.shape[1]:
                raise self._outside(scores)
            return scores.gather(1, classes[:, None]).squeeze(1)
        assert self._index is not None
        if len(self._index) != scores.ndim - 1:
            raise OptionError(
                f"`target` must name one number of each row of {tuple(scores.shape)}; got "
                f"{self._given!r}. Give {'an index' if scores.ndim > 2 else 'a class'}, or a "
                "function: lambda out: out[:, 3].mean((1, 2)) is a class over a region."
            )
        try:
            index: tuple[Any, ...] = (slice(None), *self._index)
            return scores[index]
        except IndexError:
            raise self._outside(scores) from None

    def _called(self, function: Function, output: Any, count: int, rows: int) -> torch.Tensor:
        found = [
            _checked(function(_copy_of(output, copy, count, rows)), rows)
            for copy in range(count // rows)
        ]
        return found[0] if len(found) == 1 else torch.cat(found)

    def _check_classes(self, scores: torch.Tensor) -> None:
        if scores.ndim != 2:
            raise OptionError(
                f"`target` must be an index or a function where the model returns "
                f"{tuple(scores.shape)}; got {self._given!r}. lambda out: out[:, 3].mean((1, 2)) "
                "is a class over a region."
            )

    def _outside(self, scores: torch.Tensor) -> OptionError:
        return OptionError(
            f"`target` must lie inside the {tuple(scores.shape[1:])} scores of a row; got "
            f"{self._given!r}."
        )


def _copy_of(output: Any, copy: int, count: int, rows: int) -> Any:
    """One copy of the batch in the output of several."""
    if count == rows:
        return output

    def part(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.ndim == 0 or tensor.shape[0] != count:
            return tensor
        return tensor.narrow(0, copy * rows, rows)

    return map_tensors(part, output)


def _checked(value: Any, rows: int) -> torch.Tensor:
    if not isinstance(value, torch.Tensor) or value.shape != (rows,):
        got = f"shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else type(value)
        raise OptionError(
            f"`target` must give one number per row of the batch, a tensor of shape ({rows},); got "
            f"{got}. Do not average over rows: lambda out: out[:, 3].mean((1, 2))."
        )
    return value


def _wrong(given: Any) -> OptionError:
    return OptionError(f"`target` must be {_FORMS}; got {given!r:.60}.")
