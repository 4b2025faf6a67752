"""Which sites a pattern means.

A pattern is a name, a glob, a compiled regular expression, a class, a module, a predicate
`(name, value) -> bool`, or a list of these. The names of parameters are matched the same way; a
pattern that names modules means the parameters below them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from torch import nn

from nethook.addresses.glob import before_op, has_op, is_literal, translate, unescape
from nethook.addresses.suggest import hint, listing
from nethook.addresses.tree import AnySite, Index, Parameters, ParameterSite, Site, Tree
from nethook.errors import NoSuchSiteError, PatternError

Pattern: TypeAlias = (
    str | re.Pattern[str] | type[Any] | nn.Module | Callable[[str, Any], bool] | Iterable["Pattern"]
)

_SPELT = (str, re.Pattern)  # a union would be made again at every question

# Sites that were found, each with the name by which a pattern found it; keyed by their order.
Found: TypeAlias = dict[int, tuple[AnySite, str]]


def find_modules(tree: Tree, patterns: Iterable[Pattern]) -> Found[Site]:
    """The modules that any of `patterns` means. Each pattern must mean at least one."""
    sites: Found[Site] = {}
    for pattern in flatten(patterns):
        matched = _modules_of(tree, pattern)
        if not matched:
            again = partial(_modules_of, tree)
            parameter = _meant_parameter(tree, pattern)
            raise NoSuchSiteError(parameter or _nothing(pattern, tree, again, kind="module"))
        for site, name in matched:
            sites.setdefault(site.order, (site, name))
    return sites


def find_parameters(
    tree: Tree, parameters: Parameters, patterns: Iterable[Pattern]
) -> Found[ParameterSite]:
    """The parameters and buffers that any of `patterns` means. Each must mean at least one."""
    sites: Found[ParameterSite] = {}
    for pattern in flatten(patterns):
        matched = _parameters_of(tree, parameters, pattern)
        if not matched:
            again = partial(_parameters_of, tree, parameters)
            raise NoSuchSiteError(_nothing(pattern, parameters, again, kind="parameter"))
        for site, name in matched:
            sites.setdefault(site.order, (site, name))
    return sites


def flatten(patterns: Iterable[Pattern]) -> list[Pattern]:
    """`patterns` with lists of patterns opened up, however deep they lie."""
    flat: list[Pattern] = []
    for pattern in patterns:
        # A module may be iterable (nn.Sequential), and so may a callable: they come first.
        if isinstance(pattern, _SPELT) or callable(pattern):
            flat.append(pattern)
        elif isinstance(pattern, Iterable):
            flat.extend(flatten(pattern))
        else:
            raise PatternError(
                "A pattern must be a name, a glob, a compiled regular expression, a module class, "
                "a module, a function (name, module) -> bool, or a list of these; got "
                f"{pattern!r} of type {type(pattern).__name__}. A name is written as a string, "
                'also where it is a number: "0".'
            )
    return flat


def is_a(site: Site | ParameterSite, cls: type[Any] | tuple[type[Any], ...]) -> bool:
    """Whether a site is of a class; for a parameter, its own class or that of an owner."""
    # The parameters of all Linear layers, and all that are an nn.Parameter: both read naturally.
    if isinstance(site, ParameterSite):
        return isinstance(site.tensor, cls) or any(is_a(owner, cls) for owner in site.owners)
    return isinstance(site.module, cls)


def _modules_of(tree: Tree, pattern: Pattern) -> list[tuple[Site, str]]:
    if isinstance(pattern, _SPELT):
        return _by_name(tree, pattern)
    if isinstance(pattern, type):
        return [(site, site.address) for site in tree.sites if is_a(site, pattern)]
    if isinstance(pattern, nn.Module):
        one = tree.find_module(pattern)
        return [] if one is None else [(one, one.address)]
    assert callable(pattern)  # `flatten` lets nothing else through
    return [
        (site, name)
        for site in tree.sites
        for name in site.names
        if pattern(name, site.module)  # asked for each name: the first one counts
    ]


def _parameters_of(
    tree: Tree, parameters: Parameters, pattern: Pattern
) -> list[tuple[ParameterSite, str]]:
    if isinstance(pattern, _SPELT):
        return _by_name(parameters, pattern) + _below(parameters, _by_name(tree, pattern))
    if isinstance(pattern, type):
        own = [
            (site, site.address) for site in parameters.sites if isinstance(site.tensor, pattern)
        ]
        return own + _below(parameters, _modules_of(tree, pattern))
    if isinstance(pattern, nn.Module):
        return _below(parameters, _modules_of(tree, pattern))
    assert callable(pattern)
    return [
        (site, name)
        for site in parameters.sites
        for name in site.names
        if pattern(name, site.tensor)
    ]


def _below(
    parameters: Parameters, modules: list[tuple[Site, str]]
) -> list[tuple[ParameterSite, str]]:
    """The parameters below modules, first by the names by which the modules were found."""
    names = [name for _, name in modules] + [name for site, _ in modules for name in site.names]
    return [pair for name in dict.fromkeys(names) for pair in parameters.below(name)]


def _by_name(index: Index[AnySite], pattern: str | re.Pattern[str]) -> list[tuple[AnySite, str]]:
    if isinstance(pattern, re.Pattern):
        return index.match(pattern)
    if has_op(pattern):
        raise PatternError(
            f"{pattern!r} addresses an operation inside a forward; a module or parameter is "
            f"needed here: {before_op(pattern)!r}. A '/' in a name is written '\\/'."
        )
    if not is_literal(pattern):
        return index.match(translate(pattern))
    # A name with a backslash in it may be typed as it is, where it means nothing else.
    for name in (unescape(pattern), pattern):
        one = index.find(name)
        if one is not None:
            return [(one, name if name in one.names else one.address)]
    return []


def _meant_parameter(tree: Tree, pattern: Pattern) -> str:
    """What to type where a module was asked for by the name of a parameter; "" where it was not."""
    found = _by_name(tree.parameters(), pattern) if isinstance(pattern, str) else []
    if not found:
        return ""
    name = found[0][1]
    owner = name.rpartition(".")[0]
    what = (
        f"is a parameter of {owner!r}, and no module"
        if len(found) == 1
        else f"matches {len(found)} parameters, {name!r} first, and no module"
    )
    return (
        f"{pattern!r} {what}. Read it with nethook.get_parameter(model, {name!r}), its gradient "
        f"with trace(model, {owner!r}, param_grads=True); change it with edit(model, params=...)."
    )


def _nothing(
    pattern: Pattern,
    index: Index[AnySite],
    matched: Callable[[str], list[tuple[AnySite, str]]],
    *,
    kind: str,
) -> str:
    names = index.shown()
    if isinstance(pattern, str):
        others = hint(
            pattern, names, kind=kind, matched=lambda other: [name for _, name in matched(other)]
        )
        return f"no {kind} matches {pattern!r}. {others}"
    if isinstance(pattern, re.Pattern):
        inside = [name for name in names if pattern.search(name)]
        near = f" It is found inside {listing(inside)}." if inside else ""
        return f"no {kind} matches {pattern!r}, which must match a whole name.{near}"
    if isinstance(pattern, type):
        return f"no {kind} is a {pattern.__module__}.{pattern.__qualname__}."
    if isinstance(pattern, nn.Module):
        return f"this {type(pattern).__name__} is not a part of the model, or was replaced in it."
    return f"no {kind} satisfies {pattern!r}."
