"""Parts of nested `nn.Sequential`s, cut out by name."""

from __future__ import annotations

import copy
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any, cast

from torch import nn

from nethook.torch_private import children_of

_Name = list[str] | None


def subsequence(
    sequential: nn.Module,
    first_layer: str | None = None,
    last_layer: str | None = None,
    after_layer: str | None = None,
    upto_layer: str | None = None,
    single_layer: str | None = None,
    share_weights: bool = False,
) -> nn.Sequential:
    """The part of a `nn.Sequential` between two layers, as a Sequential.

        nethook.subsequence(model, upto_layer="layer4.conv1")

    Arguments:
        sequential: a Sequential; dotted names lead through Sequentials inside it.
        first_layer, last_layer: the first and the last layer to take.
        after_layer, upto_layer: the layer before the first one, and the one after the last.
        single_layer: the only layer to take.
        share_weights: whether the layers are those of the model, or deep copies.

    Raises:
        ValueError: where there is no such layer, or the end comes before the start.
        AssertionError: where a name leads through something that is not a Sequential.
    """
    if single_layer is not None:
        if not (first_layer is last_layer is after_layer is upto_layer is None):
            raise AssertionError(
                "`single_layer` must be given alone; got another layer as well. Leave the others "
                "out."
            )
        first_layer = last_layer = single_layer
    first, last, after, upto = (
        None if name is None else str(name).split(".")
        for name in (first_layer, last_layer, after_layer, upto_layer)
    )
    cut = hierarchical_subsequence(sequential, first, last, after, upto, share_weights)
    return cast(nn.Sequential, cut)


def hierarchical_subsequence(
    sequential: nn.Module,
    first: _Name,
    last: _Name,
    after: _Name,
    upto: _Name,
    share_weights: bool = False,
    depth: int = 0,
) -> nn.Module | None:
    """What `subsequence` does, for names split at their dots.

    At a `depth` above 0 it looks at the names from there on, and gives None instead of an empty
    Sequential.
    """
    if (first is not None and after is not None) or (last is not None and upto is not None):
        raise AssertionError(
            "`first` must be given without `after`, and `last` without `upto`; got both. Give one, "
            "not both."
        )
    return _cut(sequential, _Ends(first, last, after, upto), depth, None if share_weights else {})


@dataclass(frozen=True)
class _Ends:
    """Where the part begins and ends; None where it is the whole."""

    first: _Name
    last: _Name
    after: _Name
    upto: _Name

    def names(self) -> list[list[str]]:
        return [n for n in (self.first, self.last, self.after, self.upto) if n is not None]

    def inside(self, name: str, depth: int) -> _Ends:
        """The ends that lie further inside the child of that name."""

        def deeper(end: _Name) -> _Name:
            goes_on = end is not None and end[depth] == name and len(end) > depth + 1
            return end if goes_on else None

        return replace(self, **{key: deeper(end) for key, end in vars(self).items()})


def _cut(
    layer: nn.Module, ends: _Ends, depth: int, memo: dict[int, Any] | None
) -> nn.Module | None:
    if not ends.names():
        # One memo for all layers: weights that are tied stay tied in the copy.
        return layer if memo is None else copy.deepcopy(layer, memo)
    if not isinstance(layer, nn.Sequential):
        name = ".".join(ends.names()[0][:depth]) or "arg"
        raise AssertionError(f"{name} not Sequential")  # noqa: TRY004  what it always was
    children: Any = children_of(layer)  # one that is there twice is run twice
    begin, end = _range(list(children), ends, depth)
    cut = {
        name: _cut(child, ends.inside(name, depth), depth + 1, memo)
        for name, child in list(children.items())[begin:end]
    }
    kept = OrderedDict((name, child) for name, child in cut.items() if child is not None)
    if not kept and depth:
        return None
    sequence = nn.Sequential(kept)
    sequence.training = layer.training
    return sequence


def _range(names: list[str], ends: _Ends, depth: int) -> tuple[int, int]:
    """From which child on, and up to which."""

    def index_of(end: list[str]) -> int:
        if end[depth] not in names:
            raise ValueError(f"Layer {'.'.join(end)} not found")
        return names.index(end[depth])

    def innermost(end: list[str]) -> bool:
        return len(end) == depth + 1

    begin, stop = 0, len(names)
    if ends.first is not None:
        begin = index_of(ends.first)
    if ends.after is not None:
        begin = index_of(ends.after) + innermost(ends.after)
    if ends.last is not None:
        stop = index_of(ends.last) + 1
    if ends.upto is not None:
        stop = index_of(ends.upto) + (not innermost(ends.upto))
    start, end = ends.first or ends.after, ends.last or ends.upto
    if start is not None and end is not None:
        # The layers are compared, not the numbers: between two neighbours there is nothing, and
        # there would be nothing either in a part whose last layer stands just before its first.
        if index_of(end) < index_of(start):
            raise ValueError(f"Layer {'.'.join(end)} comes before {'.'.join(start)}")
        if index_of(end) == index_of(start):  # one layer twice, or one of the two inside the other
            behind = start is ends.after and innermost(start)
            before = end is ends.upto and innermost(end) and not innermost(start)
            if behind or before:
                raise ValueError(f"Layer {'.'.join(end)} does not come after {'.'.join(start)}")
    return begin, stop
