"""From patterns to points."""

from __future__ import annotations

from torch import nn

from nethook.addresses.op_addresses import OpPattern, op_address, split_patterns
from nethook.addresses.patterns import Pattern, find_modules
from nethook.addresses.tree import Tree
from nethook.errors import NoSuchSiteError, OptionError
from nethook.interp.attention.heads import Attention, Heads
from nethook.interp.estimates.points import Point


def module_points(model: nn.Module, at: Pattern) -> list[Point]:
    """The outputs of modules and operations, as points in order of the model."""
    tree = Tree(model)
    modules, ops = split_patterns([at])
    points = (
        [Point(site.address) for site, _ in find_modules(tree, modules).values()] if modules else []
    )
    for pattern in ops:
        if pattern.one is None:
            raise OptionError(
                f"`at` must name operations with their number, module/op#k; got {pattern.text!r}. "
                "nethook.sites(model, inputs) lists them."
            )
        points += [Point(op_address(site.address, *pattern.one)) for site in pattern.sites(tree)]
    return points


def within(model: nn.Module, found: Heads, at: Pattern) -> list[Attention]:
    """The attentions that a pattern means: by operation, by module, or inside a module."""
    tree = Tree(model)
    modules, ops = split_patterns([at])
    names = (
        [name for site, _ in find_modules(tree, modules).values() for name in site.names]
        if modules
        else []
    )
    rows = [
        row
        for row in found
        if any(
            not name or row.module == name or row.module.startswith(f"{name}.") for name in names
        )
        or any(_is_meant(pattern, row) for pattern in ops)
    ]
    if not rows:
        known = ", ".join(repr(row.address) for row in found.rows[:4])
        raise NoSuchSiteError(f"no attention ran at {at!r}. The model's attentions: {known}.")
    return rows


def _is_meant(pattern: OpPattern, row: Attention) -> bool:
    name, _, number = row.address.rpartition("/")[2].partition("#")
    return pattern.matches(name, int(number)) and pattern.means_module([row.module])
