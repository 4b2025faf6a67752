"""The functions from before `InstrumentedModel`: dicts on the model itself.

Their hooks stay as long as the layer does. `nethook.audit` shows them; each function returns a
handle, and `.remove()` takes off what it put on.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import Any

from torch import nn

from nethook.addresses.tree import Tree
from nethook.classic.blending import apply_ablation_replacement, get_and_match_shape
from nethook.classic.instrumented import LayerName
from nethook.classic.retained import read, retain
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner


def retain_layer_output(dest: MutableMapping[str, Any], layer: nn.Module, name: str) -> Attachment:
    """Lets `dest[name]` hold what a layer returns, detached, after each of its calls."""
    hooks = Attachment(Owner("nethook.retain_layers"))
    dest[name] = None
    hooks.forward(layer, _Retain(hooks, name, dest))
    return hooks


def edit_layer_output(
    alpha: MutableMapping[str, Any], value: MutableMapping[str, Any], layer: nn.Module, name: str
) -> Attachment:
    """Lets a layer return `x * (1 - alpha[name]) + value[name] * alpha[name]`.

    Where `alpha[name]` is None, as at first, nothing is changed.
    """
    hooks = Attachment(Owner("nethook.edit_layers"))
    alpha[name] = value[name] = None
    hooks.forward(layer, _Blend(hooks, name, alpha, value))
    return hooks


def retain_layers(model: nn.Module, layer_names: Iterable[LayerName]) -> LayerHooks:
    """Lets `model.retained` hold what the layers return: name -> detached output."""
    layers = _layers(model, layer_names)
    retained: dict[str, Any] = {}
    model.retained = retained  # type: ignore[assignment]
    return LayerHooks(retain_layer_output(retained, layer, aka) for aka, layer in layers.items())


def edit_layers(model: nn.Module, layer_names: Iterable[LayerName]) -> LayerHooks:
    """Lets `model.ablation` and `model.replacement` say how the layers' outputs are edited."""
    layers = _layers(model, layer_names)
    ablation: dict[str, Any] = {}
    replacement: dict[str, Any] = {}
    model.ablation, model.replacement = ablation, replacement  # type: ignore[assignment]
    return LayerHooks(
        edit_layer_output(ablation, replacement, layer, aka) for aka, layer in layers.items()
    )


def clear_edit(model: Any) -> None:
    """Sets all that `edit_layers` made to None, so that nothing is edited."""
    for name in model.ablation:
        model.ablation[name] = None
        model.replacement[name] = None


def _layers(model: nn.Module, layer_names: Iterable[LayerName]) -> dict[str, nn.Module]:
    """The layers by the name to call them by; all are looked up before any is hooked."""
    tree = Tree(model)
    found: dict[str, nn.Module] = {}
    for each in layer_names:
        name, aka = (each, each) if isinstance(each, str) else each
        site = tree.find(name)
        if site is None:
            raise AssertionError(f"Layer {name} not found")
        found[aka] = site.module
    return found


class LayerHooks:
    """The handle of hooks on several layers. Letting it go leaves them on."""

    def __init__(self, each: Iterable[Attachment]) -> None:
        self._each = list(each)

    def remove(self) -> None:
        """Takes them all off; a second call does nothing."""
        for hooks in self._each:
            hooks.remove()


class _Retain(Hook):
    __slots__ = ("_dest", "_hooks")

    def __init__(self, hooks: Attachment, name: str, dest: MutableMapping[str, Any]) -> None:
        super().__init__(hooks.owner, name)
        self._hooks = hooks  # held: nobody else need keep it for the hook to stay
        self._dest = dest

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        self._dest[self.address] = read(retain(output, detach=True))


class _Blend(Hook):
    __slots__ = ("_alpha", "_hooks", "_value")

    def __init__(
        self, hooks: Attachment, name: str,
        alpha: MutableMapping[str, Any], value: MutableMapping[str, Any],
    ) -> None:  # fmt: skip
        super().__init__(hooks.owner, name)
        self._hooks = hooks
        self._alpha = alpha
        self._value = value

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        amount = get_and_match_shape(self._alpha, self.address, output)
        if amount is None:
            return None
        value = get_and_match_shape(self._value, self.address, output)
        return apply_ablation_replacement(output, None, amount, value)
