"""The functions from before `InstrumentedModel`: dicts on the model itself.

Their hooks stay as long as the layer does. `nethook.audit` shows them; each function returns a
handle, and `.remove()` takes off what it put on.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from functools import partial
from typing import Any

from torch import nn

from nethook.addresses.tree import Tree
from nethook.classic.blending import apply_ablation_replacement, get_and_match_shape
from nethook.classic.instrumented import LayerName, name_and_aka
from nethook.classic.on_call import OnCall
from nethook.editing.changes import ChangeOutput
from nethook.editing.entries import Entry
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.tracing.keep import keep_value, read_value, snapshots

_Values = MutableMapping[str, Any]
_keep = snapshots(detach=True)


def retain_layer_output(dest: MutableMapping[str, Any], layer: nn.Module, name: str) -> Attachment:
    """Lets `dest[name]` hold what a layer returns, detached, after each of its calls."""
    hooks = Attachment(Owner("nethook.retain_layers"))
    dest[name] = None
    hooks.forward(layer, OnCall(hooks.owner, name, partial(_retain, hooks, dest, name)))
    return hooks


def edit_layer_output(
    alpha: MutableMapping[str, Any], value: MutableMapping[str, Any], layer: nn.Module, name: str
) -> Attachment:
    """Lets a layer return `x * (1 - alpha[name]) + value[name] * alpha[name]`.

    Where `alpha[name]` is None, as at first, nothing is changed.
    """
    hooks = Attachment(Owner("nethook.edit_layers"))
    alpha[name] = value[name] = None
    entry = Entry("outputs", name, (), partial(_blend, hooks, alpha, value, name))
    hooks.forward(layer, ChangeOutput(hooks.owner, name, [entry]))
    return hooks


# Both are given their attachment only to hold it: their hooks stay where nobody else keeps it.


def _retain(_: Attachment, dest: _Values, name: str, args: tuple[Any, ...], output: Any) -> None:  # noqa: ARG001
    dest[name] = read_value(keep_value(_keep, output), name)


def _blend(_: Attachment, alpha: _Values, value: _Values, name: str, output: Any) -> Any:
    amount = get_and_match_shape(alpha, name, output)
    if amount is None:
        return output
    replacement = get_and_match_shape(value, name, output)
    return apply_ablation_replacement(output, None, amount, replacement)


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
    layers: dict[str, nn.Module] = {}
    for name, aka in map(name_and_aka, layer_names):
        site = tree.find(name)
        if site is None:
            raise AssertionError(f"Layer {name} not found")
        layers[aka] = site.module
    return layers


class LayerHooks:
    """The handle of hooks on several layers. Letting it go leaves them on."""

    def __init__(self, attachments: Iterable[Attachment]) -> None:
        self._attachments = list(attachments)

    def remove(self) -> None:
        """Takes them all off; a second call does nothing."""
        for hooks in self._attachments:
            hooks.remove()
