"""Attributes that somebody set on a parameter or module and that torch does not know.

`parameter.require_grad = False` is no error in Python: the parameter has one attribute more, and
learns on. What is looked for are names one slip away from a switch of torch's, with a value that
differs from the switch's own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from torch import nn

_OF_PARAMETERS: Final = ("requires_grad",)
_OF_MODULES: Final = ("training",)


class Attributes:
    """Looks for such attributes.

    Arguments:
        models: the watched models by name.
    """

    def __init__(self, models: Mapping[str, nn.Module]) -> None:
        self._models = models
        self._since: dict[tuple[str, str, str, bool], int] = {}

    def found(self, step: int) -> list[dict[str, Any]]:
        """Each name with the switch that was meant, its value, where it is, its line, since when.

        Arguments:
            step: at which it is looked.
        """
        groups: dict[tuple[str, str, str, bool], list[str]] = {}
        for address, kind, name, meant, value in self._set():
            groups.setdefault((kind, name, meant, value), []).append(address)
        return [
            {
                "of": kind, "name": name, "meant": meant, "value": value,
                "count": len(addresses), "sites": addresses[:20], "line": line_of(name),
                "since": self._since.setdefault((kind, name, meant, value), step),
            }
            for (kind, name, meant, value), addresses in groups.items()
        ]  # fmt: skip

    def _set(self) -> Iterator[tuple[str, str, str, str, bool]]:
        for model, root in self._models.items():
            prefix = f"{model}." if model else ""
            for name, module in root.named_modules():
                address = f"{prefix}{name}".rstrip(".")
                for key, meant, value in _slips_of_module(module):
                    yield address, "module", key, meant, value
            for name, parameter in root.named_parameters():
                for key, value in vars(parameter).items():
                    for meant in _OF_PARAMETERS:
                        if (
                            isinstance(value, bool)
                            and is_slip(key, meant)
                            and getattr(parameter, meant) is not value
                        ):
                            yield f"{prefix}{name}", "parameter", key, meant, value


def _slips_of_module(module: nn.Module) -> Iterator[tuple[str, str, bool]]:
    for key, value in vars(module).items():
        # What the class itself sets is an option of its own.
        if not isinstance(value, bool) or key == "training" or _is_own(type(module), key):
            continue
        if key == "requires_grad" or is_slip(key, "requires_grad"):
            learning = [parameter.requires_grad for parameter in module.parameters()]
            if not value and learning and all(learning):
                yield key, "requires_grad_()", value
        for meant in _OF_MODULES:
            if is_slip(key, meant) and getattr(module, meant) is not value:
                yield key, meant, value


def _is_own(kind: type, name: str) -> bool:
    """Whether a class, or one that it is derived from, sets an attribute of this name itself."""
    for each in kind.__mro__:
        for member in vars(each).values():
            code = getattr(member, "__code__", None)
            if code is not None and name in code.co_names and each is not nn.Module:
                return True
    return False


def is_slip(name: str, meant: str) -> bool:
    """Whether two names differ by one letter that is wrong, missing, doubled or swapped."""
    if name == meant or name.startswith("_") or abs(len(name) - len(meant)) > 1:
        return False
    short, long = sorted((name.lower(), meant), key=len)
    start = 0
    while start < len(short) and short[start] == long[start]:
        start += 1
    rest_short, rest_long = short[start:], long[start:]
    if len(short) < len(long):
        return rest_short == rest_long[1:]
    swapped = rest_short[:2] == rest_long[:2][::-1] and rest_short[2:] == rest_long[2:]
    return swapped or rest_short[1:] == rest_long[1:]


def line_of(name: str) -> str:
    """The line of the script that sets an attribute of this name, as `train.py:42`."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if not file:
        return ""
    import ast  # as a rule there is no such attribute

    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return ""
    named = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    lines = [node.lineno for node in named if node.attr == name and isinstance(node.ctx, ast.Store)]
    return f"{Path(file).name}:{min(lines)}" if lines else ""
