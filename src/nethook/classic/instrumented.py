"""`InstrumentedModel`: a wrapper whose layers can be retained and edited by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from torch import nn

from nethook.addresses.tree import Tree
from nethook.classic.blending import apply_ablation_replacement, is_blend
from nethook.classic.calling import OptionalArguments
from nethook.classic.retained import read, retain
from nethook.classic.sequential_parts import run_in_part
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Hook, Owner
from nethook.hooks.layouts.unhookable import RouterPair, routed_modules
from nethook.hooks.scope import Scope
from nethook.torch_private import backward_id

LayerName = str | tuple[str, str]  # the name in the model, or that and the one to call it by


class InstrumentedModel(nn.Module):
    """A model whose layers' outputs can be retained and edited.

        with nethook.InstrumentedModel(model) as inst:
            inst.retain_layer("layer4")
            inst.edit_layer("layer4", ablation=mask, replacement=0.5)
            inst(x)
            inst.retained_layer("layer4")      # before the edit

    Wherever a layer is named, `(name, aka)` names it and gives it another name, by which it is
    known from then on. Until it is closed, a Sequential can be run in part, through the wrapper or
    directly: `inst(x, layer="3")`, `inst.model(x, first_layer="1", last_layer="3")`.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self._hooked: dict[str, _HookedLayer] = {}  # by what it is called
        self._retained: OrderedDict[str, Any] = OrderedDict()
        self._detach: dict[str, bool] = {}
        self._edits: dict[str, _LayerEdit] = {}
        self._parts = Attachment(Owner("nethook.InstrumentedModel"))
        if type(model).forward is nn.Sequential.forward:
            run_in_part(model, self._parts)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Runs the model, or, where it is a Sequential, a part of it."""
        return self.model(*inputs, **kwargs)

    def layer_names(self) -> list[str]:
        """The names of all modules of the model."""
        return [name for name, _ in self.model.named_modules()]

    # -- retaining ----------------------------------------------------------------------------

    def retain_layer(self, layername: LayerName, detach: bool = True) -> None:
        """Keeps the output of a layer, as it is before edits, at each forward."""
        self.retain_layers([layername], detach)

    def retain_layers(self, layernames: Iterable[LayerName], detach: bool = True) -> None:
        """Keeps the outputs of layers, as they are before edits, at each forward."""
        layernames = list(layernames)
        self.add_hooks(layernames)
        for _, aka in map(_pair, layernames):
            if aka not in self._retained:  # what is retained already stays as it was asked for
                self._retained[aka] = None
                self._detach[aka] = detach

    def stop_retaining_layers(self, layernames: Iterable[LayerName]) -> None:
        """Keeps the outputs of these layers no longer, and lets go of what was kept."""
        for _, aka in map(_pair, layernames):
            self._retained.pop(aka, None)

    def retained_features(self, clear: bool = False) -> OrderedDict[str, Any]:
        """What was kept of all layers, by name; None where a layer has not run.

        With `clear` it is let go of.
        """
        return OrderedDict((aka, self.retained_layer(aka, clear)) for aka in self._retained)

    def retained_layer(self, aka: str | None = None, clear: bool = False) -> Any:
        """What was kept of one layer; None given means the first that was asked for."""
        if aka is None:
            aka = next(iter(self._retained))
        result = self._retained[aka] = read(self._retained[aka])
        if clear:
            self._retained[aka] = None
        return result

    # -- editing ------------------------------------------------------------------------------

    def edit_layer(
        self,
        layername: LayerName,
        rule: Callable[..., Any] | Any = None,
        replacement: Any = None,
        **kwargs: Any,
    ) -> None:
        """Edits the output of a layer at each forward.

            inst.edit_layer("layer4", mask, features)            # ablation and replacement
            inst.edit_layer("layer4", rule=function, strength=2) # a rule, and arguments for it

        A rule is called as `rule(x, imodel, name=aka, **kwargs)`, with those of the arguments
        that it takes, and returns the new output. The rule that is used without one is
        `x * (1 - ablation) + replacement * ablation`, each a number, an array or a tensor, with
        fewer dimensions aligned at the channels.

        A later call for the same layer replaces the rule, and without one it goes back to that
        blend, with the ablation and the replacement of that call alone. Other arguments for rules
        add up over the calls.
        """
        if rule is not None and not callable(rule):
            if "ablation" in kwargs:
                raise TypeError(
                    "`ablation` was given twice: by position and by name. Give it once: "
                    "edit_layer(name, ablation, replacement)."
                )
            kwargs["ablation"], rule = rule, None
        if rule is None:
            kwargs = {"ablation": None, **kwargs, "replacement": replacement}
        elif replacement is not None:
            kwargs["replacement"] = replacement
        name, aka = _pair(layername)
        self.add_hooks([(name, aka)])
        self._hooked[aka].let_edit(self, aka)
        edit = self._edits.setdefault(aka, _LayerEdit())
        edit.arguments.update(kwargs)
        edit.rule = None if rule is None else OptionalArguments(rule)

    def remove_edits(self, layername: LayerName | None = None) -> None:
        """Ends the edits of one layer, or of all."""
        if layername is None:
            self._edits.clear()
        else:
            self._edits.pop(_pair(layername)[1], None)

    # -- hooks --------------------------------------------------------------------------------

    def add_hooks(self, layernames: Iterable[LayerName]) -> None:
        """Puts hooks on layers, all of them or, where one cannot be, none.

        Raises:
            ValueError: where there is no such layer, or it is hooked by another name.
        """
        needed: dict[str, str] = {}  # aka -> name
        hooked = {aka: layer.name for aka, layer in self._hooked.items()}
        for name, aka in map(_pair, layernames):
            if hooked.get(aka) != name:
                if aka in hooked or name in hooked.values():
                    raise ValueError(f"Layer {aka if aka in hooked else name} already hooked")
                needed[aka] = hooked[aka] = name
        if not needed:
            return
        tree = Tree(self.model)
        modules: dict[str, nn.Module] = {}
        for aka, name in needed.items():
            site = tree.find(name)
            if site is None:
                raise ValueError(f"Layer {name} not found in model")
            modules[aka] = site.module
        routed = routed_modules(tree)
        for aka, module in modules.items():
            layer = self._hooked[aka] = _HookedLayer(needed[aka], module, tree)
            layer.let_retain(self, aka, routed=id(module) in routed)

    def _retain(self, aka: str, output: Any) -> None:
        """Keeps what a layer returned, if it is to be kept."""
        if aka in self._retained and backward_id() == -1:
            self._retained[aka] = retain(output, detach=self._detach[aka])

    def _edited(self, aka: str, output: Any) -> Any:
        """What a layer is to return instead; None for no change."""
        edit = self._edits.get(aka)
        return None if edit is None else edit.apply(output, self, aka)

    def close(self) -> None:
        """Takes every hook off, and lets go of what was kept and of all edits."""
        while self._hooked:
            self._hooked.popitem()[1].hooks.remove()
        self._parts.remove()
        self._retained.clear()
        self._edits.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _LayerEdit:
    """The edit of one layer: a rule and what it is called with."""

    def __init__(self) -> None:
        self.rule: OptionalArguments | None = None
        self.arguments: dict[str, Any] = {}

    def apply(self, x: Any, imodel: InstrumentedModel, aka: str) -> Any:
        """The new output; None for no change."""
        if self.rule is not None:
            return self.rule((x, imodel), {"name": aka, **self.arguments})
        if not is_blend(self.arguments):
            return None
        given = {name: self.arguments.get(name) for name in ("ablation", "replacement")}
        return apply_ablation_replacement(x, imodel, **given)


class _HookedLayer:
    """A layer and its hooks: one that retains, and one that edits once that is asked for."""

    def __init__(self, name: str, module: nn.Module, tree: Tree) -> None:
        self.name = name
        # As the originals: the calls of every thread.
        scope = Scope("nethook.InstrumentedModel", tree, threads="all", stays=True)
        self.hooks = scope.open(lambda hooks: hooks)
        self._module = module
        self._edits = False

    def let_retain(self, imodel: InstrumentedModel, aka: str, *, routed: bool) -> None:
        hook = _Retain(self.hooks.owner, self.name, imodel, aka)
        if routed:  # a hook of its own would change what the layer computes
            RouterPair(self.hooks).forward(self._module, hook)
        else:
            self.hooks.forward(self._module, hook)

    def let_edit(self, imodel: InstrumentedModel, aka: str) -> None:
        if not self._edits:
            self._edits = True
            self.hooks.forward(self._module, _Edit(self.hooks.owner, self.name, imodel, aka))


class _OnLayer(Hook):
    """After the forward of a layer."""

    __slots__ = ("_aka", "_imodel")

    def __init__(self, owner: Owner, address: str, imodel: InstrumentedModel, aka: str) -> None:
        super().__init__(owner, address)
        self._imodel = imodel  # held: the hook is to stay until it is closed
        self._aka = aka


class _Retain(_OnLayer):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...], *rest: Any) -> None:
        self._imodel._retain(self._aka, rest[-1])  # a global hook is given kwargs as well


class _Edit(_OnLayer):
    __slots__ = ()

    def __call__(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        return self._imodel._edited(self._aka, output)


def _pair(layername: LayerName) -> tuple[str, str]:
    if isinstance(layername, str):
        return layername, layername
    name, aka = layername
    return name, aka
