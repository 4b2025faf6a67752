r"""Addresses of operations inside a forward: `module/op#k`.

    conv1/relu#0     the first relu in a call of conv1
    /add#1           the second add in a call of the model itself
    layer*/add       every add in a call of layer1, layer2, …
    **/softmax       every softmax, in whatever module
    **/*             every operation

The part before the slash is a pattern for modules, in which `**` alone means all of them, the model
itself included. The part behind it is a glob over names of operations, and `#k` a number, a glob
over numbers, or nothing, which means all. `k` counts from 0 within one call of the module, one
count for each name. A name of a module that holds one of the signs `* ? [ ] { } / # \` is written
with a backslash before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeGuard

from nethook.addresses.glob import before_op, escape, has_op, is_literal, translate, unescape
from nethook.addresses.patterns import find_modules, flatten
from nethook.addresses.tree import Site, Tree
from nethook.errors import PatternError

_EVERY_MODULE = "**"
_NAME_AND_NUMBER = re.compile(r"((?:\\.|[^\\#])*)(?:#(.*))?", re.DOTALL)


def op_address(module: str, name: str, k: int) -> str:
    """The address of an operation, from that of its module."""
    return f"{op_prefix(module)}{name}#{k}"


def op_prefix(module: str) -> str:
    """What the addresses of all operations of a module begin with."""
    return f"{escape(module)}/"


def is_op_pattern(pattern: Any) -> TypeGuard[str]:
    """Whether a pattern addresses operations."""
    return isinstance(pattern, str) and has_op(pattern)


def split_patterns(patterns: Iterable[Any]) -> tuple[list[Any], list[OpPattern]]:
    """Patterns for modules, and those for operations, read."""
    modules: list[Any] = []
    ops: list[OpPattern] = []
    for pattern in flatten(patterns):
        if is_op_pattern(pattern):
            ops.append(OpPattern(pattern))
        else:
            modules.append(pattern)
    return modules, ops


class OpPattern:
    """A pattern for operations, read: which modules, which names, which numbers."""

    __slots__ = ("_name", "_number", "every", "every_module", "module", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.module = before_op(text)
        self.every_module = self.module == _EVERY_MODULE
        match = _NAME_AND_NUMBER.fullmatch(text[len(self.module) + 1 :])
        assert match is not None  # the expression matches every text
        name, number = match.groups()
        self._check(name, number)
        self._name: str | re.Pattern[str] = unescape(name) if is_literal(name) else translate(name)
        self._number: int | re.Pattern[str] | None = None
        if number is not None:
            self._number = int(number) if number.isdecimal() else translate(number)
        self.every = name in ("*", "**") and number is None  # means all operations of a module

    def _check(self, name: str, number: str | None) -> None:
        if not name or "/" in name or number == "" or (number and _not_a_number(number)):
            raise PatternError(
                f"{self.text!r} is not the address of an operation: that is module/op#k, such as "
                "'conv1/relu#0', '/add' for all of the model itself, or '**/softmax'. A '/' or '#' "
                "in a module's name is written with a backslash before it."
            )

    @property
    def name(self) -> str | None:
        """The name that it means; None if it means several."""
        return self._name if isinstance(self._name, str) else None

    @property
    def number(self) -> int | None:
        """The number that it means; None if it means several."""
        return self._number if isinstance(self._number, int) else None

    @property
    def only_module(self) -> str | None:
        """The name of the module that it means; None if it is a glob."""
        return unescape(self.module) if is_literal(self.module) else None

    @property
    def one(self) -> tuple[str, int] | None:
        """The name and number of the only operation that it means in a module, if it is one."""
        if isinstance(self._name, str) and isinstance(self._number, int):
            return self._name, self._number
        return None

    def matches(self, name: str, k: int) -> bool:
        """Whether it means the operation number `k` of that name, in a module that it means."""
        if self.every:
            return True
        if isinstance(self._name, str):
            if name != self._name:
                return False
        elif self._name.fullmatch(name) is None:
            return False
        if self._number is None:
            return True
        if isinstance(self._number, int):
            return k == self._number
        return self._number.fullmatch(str(k)) is not None

    def means_module(self, names: Iterable[str]) -> bool:
        """Whether it means the module of these names."""
        if self.every_module:
            return True
        if is_literal(self.module):
            return unescape(self.module) in names
        expression = translate(self.module)
        return any(expression.fullmatch(name) for name in names)

    def sites(self, tree: Tree) -> list[Site]:
        """The modules that it means; `NoSuchSiteError` where there are none."""
        if self.every_module:
            return tree.sites
        return [site for site, _ in find_modules(tree, [self.module]).values()]

    def __repr__(self) -> str:
        return f"OpPattern({self.text!r})"


def _not_a_number(number: str) -> bool:
    return is_literal(number) and not number.isdecimal()
