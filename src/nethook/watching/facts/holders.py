"""Who holds a parameter that no watched model has.

A module registers what is assigned to an attribute of it, and not what lies in a Python list, dict,
tuple or function there: such layers are used in the forward, get gradients, and are in no
`parameters()`. First the attributes of the watched models are looked through; what is not found
there belongs to a module of its own, or to none.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import torch
from torch import nn

from nethook.hooks.process.optimizers import objects_by_age, with_subclasses
from nethook.torch_private import CHILDREN, children_of, parameters_of

_DEEP: Final = 4  # containers inside containers
_MOST: Final = 20_000  # things in containers that are looked at
_KINDS: Final[dict[Any, str]] = {
    list: "list", tuple: "tuple", set: "set", frozenset: "set", dict: "dict"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Holder:
    """Where a parameter was found.

    `how` is `list`, `dict`, `tuple`, `set`, `function`, `attribute` (of a watched module, past its
    registration), `module` (another network) or `nothing`; `where` is the address of the
    container, or the name of the network; `kind` the class of the module that has the parameter,
    `line` where that was put there, as `net.py:12`; `training` the mode of the network.
    """

    how: str
    where: str = ""
    kind: str = ""
    line: str = ""
    training: bool = True


def holders(
    models: Mapping[str, nn.Module], wanted: set[int], parameters: set[int]
) -> dict[int, Holder]:
    """The holder of each tensor whose id is wanted; those of no module are left out.

    `parameters` are those among them that a module may have registered.
    """
    found: dict[int, Holder] = {}
    for model, root in models.items():
        prefix = f"{model}." if model else ""
        for name, module in root.named_modules():
            for attribute, value in _attributes(module):
                how = _how(value)
                for kind, tensor in _inside(value) if how else ():
                    if id(tensor) in wanted and id(tensor) not in found:
                        where = f"{prefix}{name}.{attribute}" if name else f"{prefix}{attribute}"
                        line = _line_of(type(module), attribute)
                        found[id(tensor)] = Holder(how, where, kind, line)
    left = parameters - found.keys()
    if left:
        found |= _of_other_modules(left)
    return found


def _attributes(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """What a module has besides what every module has."""
    for name, value in list(vars(module).items()):
        if name not in _usual():
            yield name, value


@cache
def _usual() -> frozenset[str]:
    return frozenset(vars(nn.Module()))


def _how(value: Any) -> str:
    if isinstance(value, nn.Module | nn.Parameter):
        return "attribute"
    for kind, name in _KINDS.items():
        if isinstance(value, kind):
            return name
    return "function" if getattr(value, "__closure__", None) else ""


def _inside(value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Every parameter in a container, with the class of the module that has it."""
    waiting: list[tuple[Any, int]] = [(value, 0)]
    seen: set[int] = set()
    while waiting and len(seen) < _MOST:
        thing, depth = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, nn.Module):
            kind = type(thing).__name__
            yield from ((kind, parameter) for parameter in thing.parameters())
        elif isinstance(thing, torch.Tensor):
            if thing.requires_grad and thing.is_leaf:
                yield type(thing).__name__, thing
        elif depth < _DEEP:
            waiting += [(part, depth + 1) for part in _parts(thing)]


def _parts(thing: Any) -> Iterable[Any]:
    if isinstance(thing, dict):
        return list(thing.values())
    if isinstance(thing, list | tuple | set | frozenset):
        return list(thing)
    cells = getattr(thing, "__closure__", None) or ()
    return [cell.cell_contents for cell in cells if _is_filled(cell)]


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _of_other_modules(wanted: set[int]) -> dict[int, Holder]:
    """The networks of the process that have them. Takes some ten milliseconds."""
    alive: list[nn.Module] = objects_by_age(with_subclasses(nn.Module))
    alive = [module for module in alive if CHILDREN in vars(module)]
    above = {
        id(child): (module, key)
        for module in alive
        for key, child in children_of(module).items()
        if child is not None and child is not module
    }
    found: dict[int, Holder] = {}
    for module in alive:
        for tensor in parameters_of(module).values():
            if id(tensor) not in wanted or id(tensor) in found:
                continue
            root = module
            for _ in range(64):
                if id(root) not in above:
                    break
                root = above[id(root)][0]
            kind = type(root)
            found[id(tensor)] = Holder(
                "module", _name_of(root), kind.__name__, _line_of(kind, None), root.training
            )
    return found


def _name_of(root: nn.Module) -> str:
    """Its variable in the script; its class where it has none."""
    for name, value in list(vars(sys.modules["__main__"]).items()):
        if value is root and not name.startswith("_"):
            return name
    return type(root).__name__


def _line_of(kind: type, attribute: str | None) -> str:
    """The first line of a class that names an attribute of its instances; else its first one."""
    code = getattr(vars(kind).get("__init__"), "__code__", None)
    if code is None or "/torch/nn/" in code.co_filename.replace("\\", "/"):
        return ""
    number = code.co_firstlineno
    if attribute is not None:
        last = max((line for *_, line in code.co_lines() if line), default=number)
        for at in range(number, last + 1):
            if f"self.{attribute}" in linecache.getline(code.co_filename, at):
                number = at
                break
    return f"{Path(code.co_filename).name}:{number}"
