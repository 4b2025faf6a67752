"""`select`: patterns to modules, or to parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from types import UnionType
from typing import Any, Literal, overload

import torch
from torch import nn

from nethook.addresses.patterns import Found, Pattern, find_modules, find_parameters, is_a
from nethook.addresses.tree import AnySite, Index, Site, Tree
from nethook.errors import NoSuchSiteError, OptionError

_Classes = type[Any] | tuple[type[Any], ...]


@overload
def select(
    model: nn.Module,
    *patterns: Pattern,
    exclude: Pattern | None = None,
    type: _Classes | None = None,
    where: Callable[[str, nn.Module], bool] | None = None,
    params: Literal[False] = False,
) -> dict[str, nn.Module]: ...


@overload
def select(
    model: nn.Module,
    *patterns: Pattern,
    exclude: Pattern | None = None,
    type: _Classes | None = None,
    where: Callable[[str, torch.Tensor], bool] | None = None,
    params: Literal[True],
) -> dict[str, torch.Tensor]: ...


def select(
    model: nn.Module,
    *patterns: Pattern,
    exclude: Pattern | None = None,
    type: _Classes | None = None,
    where: Callable[[str, Any], bool] | None = None,
    params: bool = False,
) -> dict[str, nn.Module] | dict[str, torch.Tensor]:
    r"""The modules (or parameters) of a model that the patterns mean, by name, in model order.

        nethook.select(model, "layer*.conv?", nn.ReLU, exclude="layer4.**")
        nethook.select(model, type=nn.Conv2d)
        nethook.select(model, "fc*.bias", params=True)

    Arguments:
        model: any `nn.Module`. Wrappers (`DataParallel`, `torch.compile`, …) are looked through:
            the names are those of the bare model; the long spelling is accepted too.
        patterns: a union of names, globs (`*` within a segment, `**` across segments, `?`,
            `[abc]`, `{a,b}`; a backslash before a character that is meant itself), compiled
            regular expressions (matched against the whole name), classes, modules, functions
            `(name, module) -> bool`, or lists of these. No pattern means everything.
        exclude: a pattern, or a list of them, for what is left out.
        type: keeps only instances of this class (or one of these classes).
        where: keeps only what this function `(name, module) -> bool` answers True for; the name
            is the one that is returned.
        params: selects parameters and buffers instead. A pattern that means a module then means
            all parameters below it; `type` may be `nn.Parameter` or the class of the owner.

    Returns:
        A new dict, name to module (or tensor). A shared module or a tied weight appears once,
        under the first of its names that a pattern matched.

    Raises:
        NoSuchSiteError: where a pattern matches nothing, or nothing is left.

    Cost: one walk over the model, however many patterns there are.
    """
    tree = Tree(model)
    if params:
        index = tree.parameters()
        matched = find_parameters(tree, index, patterns) if patterns else _all(index)
        _check_not_empty(patterns, matched)
        out = find_parameters(tree, index, [exclude]) if exclude is not None else {}
        kept = _narrow(matched, out, type, where, lambda site: site.tensor)
        return {name: site.tensor for name, site in kept}
    chosen = select_sites(tree, *patterns, exclude=exclude, type=type, where=where)
    return {name: site.module for name, site in chosen}


def select_sites(
    tree: Tree,
    *patterns: Pattern,
    exclude: Pattern | None = None,
    type: _Classes | None = None,
    where: Callable[[str, Any], bool] | None = None,
) -> list[tuple[str, Site]]:
    """What `select` does, on a tree that was walked already."""
    matched = find_modules(tree, patterns) if patterns else _all(tree)
    _check_not_empty(patterns, matched)
    out = find_modules(tree, [exclude]) if exclude is not None else {}
    return _narrow(matched, out, type, where, lambda site: site.module)


def _check_not_empty(patterns: tuple[Pattern, ...], matched: Found[AnySite]) -> None:
    # `select(model)` means everything; `select(model, [])` is a list that came out empty. A pattern
    # that matches nothing has raised by now.
    if patterns and not matched:
        raise NoSuchSiteError(
            "A list of patterns must hold at least one; got an empty list, which matches nothing. "
            "Leave the argument out to select everything."
        )


def _all(index: Index[AnySite]) -> Found[AnySite]:
    return {site.order: (site, site.address) for site in index.sites}


def _narrow(
    matched: Found[AnySite],
    out: Found[AnySite],
    cls: _Classes | None,
    where: Callable[[str, Any], bool] | None,
    value: Callable[[AnySite], object],
) -> list[tuple[str, AnySite]]:
    if cls is not None and not _are_classes(cls):
        raise OptionError(
            f"`type` must be a class or a tuple of classes; got {cls!r}. Write type=nn.Conv2d."
        )
    kept = [
        (name, site)
        for order, (site, name) in sorted(matched.items(), key=itemgetter(0))
        if order not in out
        and (cls is None or is_a(site, cls))
        and (where is None or where(name, value(site)))
    ]
    if not kept and (matched or cls is not None or where is not None):
        raise NoSuchSiteError(_none_left(matched.values(), out, cls, where))
    return kept


def _are_classes(cls: object) -> bool:
    if isinstance(cls, tuple):
        return all(_are_classes(member) for member in cls)
    return isinstance(cls, type | UnionType)


def _none_left(
    matched: Iterable[tuple[AnySite, str]],
    out: Found[AnySite],
    cls: _Classes | None,
    where: Callable[[str, Any], bool] | None,
) -> str:
    count = len(list(matched))
    reasons = [
        *(["exclude="] if out else []),
        *([f"type={cls!r}"] if cls is not None else []),
        *(["where="] if where is not None else []),
    ]
    return f"{count} matched, and none of them passes {' and '.join(reasons)}."
