"""Running a part of a Sequential: `sequential(x, layer="3")`, or from one layer to another.

The old wrapper replaced the forward of the Sequential to that end. Here a hook takes the extra
arguments away before the forward, and lets it find no other children than those that are meant; a
second hook, which is called on an error as well, gives them all back.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook
from nethook.torch_private import CHILDREN, children_of

_OPTIONS = ("layer", "first_layer", "last_layer")


def run_in_part(sequential: nn.Module, hooks: Attachment) -> None:
    """Lets a Sequential take `layer`, `first_layer` and `last_layer` while the hooks are on."""
    choose = _Choose(hooks.owner, "")
    hooks.forward_pre(sequential, choose)
    hooks.forward(sequential, _GiveBack(hooks.owner, "", choose), always_call=True)


class _Choose(Hook):
    """Before the forward: leaves only the children that were asked for."""

    __slots__ = ("children",)

    def __init__(self, *owner_and_address: Any) -> None:
        super().__init__(*owner_and_address)
        self.children: list[dict[str, Any]] = []  # what to give back, one per call that is running

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The arguments without ours; None where there are none of ours."""
        if not self.children and not kwargs.keys() & set(_OPTIONS):
            return None
        # A part that calls the whole again finds all children: those that were there at first.
        everything = self.children[0] if self.children else children_of(module)
        chosen = _chosen_children(everything, *(kwargs.get(option) for option in _OPTIONS))
        self.children.append(children_of(module))
        module.__dict__[CHILDREN] = chosen
        return args, {name: value for name, value in kwargs.items() if name not in _OPTIONS}


class _GiveBack(Hook):
    """After the forward, however it ended: all children are there again."""

    __slots__ = ("_choose",)

    def __init__(self, owner: Any, address: str, choose: _Choose) -> None:
        super().__init__(owner, address)
        self._choose = choose

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        """Puts them back."""
        if self._choose.children:
            module.__dict__[CHILDREN] = self._choose.children.pop()


def _chosen_children(children: dict[str, Any], layer: Any, first: Any, last: Any) -> dict[str, Any]:
    """The children from `first` to `last`, or `layer` alone."""
    if layer is not None:
        if first is not None or last is not None:
            raise AssertionError(
                "`layer` must be given alone; got first_layer or last_layer as well. Give one or "
                "the other, not both."
            )
        first = last = layer
    names = list(children)
    for wanted in (first, last):
        if wanted is not None and str(wanted) not in names:
            raise AssertionError(f"{wanted} not found")
    begin = 0 if first is None else names.index(str(first))
    end = len(names) if last is None else names.index(str(last)) + 1
    if last is not None and end <= begin:
        raise ValueError(f"Layer {last} comes before {first}")
    return {name: children[name] for name in names[begin:end]}
