"""How private names of torch are looked up, and listed with what they are for.

`nethook.torch_private` is the list; this file uses no private name itself.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final, NamedTuple, NoReturn

import torch

from nethook.errors import TorchChangedError
from nethook.torch_versions import refuse_old_torch, release, window

refuse_old_torch()  # before a name is looked up that an older torch never had


class PrivateName(NamedTuple):
    """One private name of torch: the question it answers, where it exists, what it is worth.

    Attributes:
        path: as torch spells it.
        question: what nethook asks by it.
        lost: what is lost where this torch has no such name.
        since: the first torch, from 2.8 on, that has it.
        until: the last one; "" while the newest has it.
        has_plain_way: whether nethook goes on without it; otherwise its use is an error.
    """

    path: str
    question: str
    lost: str
    since: str
    until: str
    has_plain_way: bool

    @property
    def is_expected(self) -> bool:
        """Whether the torch that is installed should have it."""
        here = release(torch.__version__)
        return release(self.since) <= here and (not self.until or here <= release(self.until))


NAMES: Final[dict[str, PrivateName]] = {}
"""All of them, by path."""

_PLAIN: Final = frozenset(os.environ.get("NETHOOK_PLAIN", "").split(","))
_MISSING: Final = object()


def note(
    path: str,
    question: str,
    lost: str,
    *,
    has_plain_way: bool = False,
    since: str = "2.8",
    until: str = "",
) -> bool:
    """Lists a name. Returns whether it may be used: not where `NETHOOK_PLAIN` asks for less."""
    NAMES[path] = PrivateName(path, question, lost, since, until, has_plain_way)
    return not (has_plain_way and (path in _PLAIN or "all" in _PLAIN))


def name(
    path: str,
    question: str,
    lost: str,
    plain: Any = None,
    *,
    since: str = "2.8",
    until: str = "",
) -> Any:
    """What `path` stands for; the plain way where this torch has no such name."""
    usable = note(path, question, lost, has_plain_way=plain is not None, since=since, until=until)
    value = look_up(path) if usable else _MISSING
    if value is not _MISSING:
        return value
    return _gone(path, lost) if plain is None else plain


def reader(path: str, question: str, lost: str, plain: Callable[..., Any] | None = None) -> Any:
    """A function that reads the attribute in which `path` ends."""
    usable = note(path, question, lost, has_plain_way=plain is not None)
    return attrgetter(path.rpartition(".")[2]) if usable else plain


def look_up(path: str) -> Any:
    """What a dotted path stands for; parts that nobody has imported yet are imported."""
    value: Any = sys.modules["torch"]
    prefix = "torch"
    for name in path.split(".")[1:]:
        prefix = f"{prefix}.{name}"
        try:
            value = getattr(value, name)
        except AttributeError:
            try:
                value = importlib.import_module(prefix)
            except ImportError:
                return _MISSING
    return value


def exists(path: str) -> bool:
    """Whether this torch has a name."""
    return look_up(path) is not _MISSING


def _gone(path: str, lost: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise TorchChangedError(
            f"torch {torch.__version__} has no {path}; without it {lost}. Install a torch "
            f"that nethook was tested with ({window()}), or a newer nethook."
        )

    return refuse
