"""`InstrumentedModel`: a wrapper whose layers can be retained and edited by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

from torch import nn

from nethook.addresses.tree import Tree
from nethook.classic.blending import apply_ablation_replacement
from nethook.classic.calling import OptionalArguments
from nethook.classic.on_call import put_on
from nethook.classic.sequential_parts import run_in_part
from nethook.editing.changes import ChangeOutput
from nethook.editing.entries import Entry
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.scope import Scope
from nethook.torch_private import backward_id
from nethook.tracing.keep import Keep, keep_value, read_value, snapshots

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
        self._retained: dict[str, _HookedLayer] = {}  # those of them that are retained
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
        for _, aka in map(name_and_aka, layernames):
            if aka not in self._retained:  # what is retained already stays as it was asked for
                self._retained[aka] = self._hooked[aka]
                self._hooked[aka].retain(detach=detach)

    def stop_retaining_layers(self, layernames: Iterable[LayerName]) -> None:
        """Keeps the outputs of these layers no longer, and lets go of what was kept."""
        for _, aka in map(name_and_aka, layernames):
            layer = self._retained.pop(aka, None)
            if layer is not None:
                layer.stop_retaining()

    def retained_features(self, clear: bool = False) -> OrderedDict[str, Any]:
        """What was kept of all layers, by name; None where a layer has not run.

        With `clear` it is let go of.
        """
        return OrderedDict((aka, self.retained_layer(aka, clear)) for aka in self._retained)

    def retained_layer(self, aka: str | None = None, clear: bool = False) -> Any:
        """What was kept of one layer; None given means the first that was asked for."""
        if aka is None:
            aka = next(iter(self._retained))
        return self._retained[aka].read(clear=clear)

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
        name, aka = name_and_aka(layername)
        self.add_hooks([(name, aka)])
        self._hooked[aka].edit(rule, kwargs)

    def remove_edits(self, layername: LayerName | None = None) -> None:
        """Ends the edits of one layer, or of all."""
        if layername is None:
            for layer in self._hooked.values():
                layer.remove_edits()
        elif (aka := name_and_aka(layername)[1]) in self._hooked:
            self._hooked[aka].remove_edits()

    # -- hooks --------------------------------------------------------------------------------

    def add_hooks(self, layernames: Iterable[LayerName]) -> None:
        """Puts hooks on layers, all of them or, where one cannot be, none.

        Raises:
            ValueError: where there is no such layer, or it is hooked by another name.
        """
        needed: dict[str, str] = {}  # aka -> name
        hooked = {aka: layer.name for aka, layer in self._hooked.items()}
        for name, aka in map(name_and_aka, layernames):
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
        for aka, module in modules.items():
            self._hooked[aka] = _HookedLayer(self, needed[aka], aka, module, tree)

    def close(self) -> None:
        """Takes every hook off, and lets go of what was kept and of all edits."""
        while self._hooked:
            self._hooked.popitem()[1].hooks.remove()
        self._parts.remove()
        self._retained.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _HookedLayer:
    """A layer, what is retained of it, how it is edited, and its hooks.

    One hook retains; a second one edits, once that is asked for, and so comes after the first.
    """

    def __init__(
        self, imodel: InstrumentedModel, name: str, aka: str, module: nn.Module, tree: Tree
    ) -> None:
        self.name = name
        self._imodel = imodel  # held: its hooks are to stay until it is closed
        self._aka = aka
        self._module = module
        self._keep: Keep | None = None
        self._retained: Any = None
        self._change: ChangeOutput | None = None
        self._rule: OptionalArguments | None = None
        self._arguments: dict[str, Any] = {}
        # As the originals: the calls of every thread.
        scope = Scope("nethook.InstrumentedModel", tree, threads="all", stays=True)
        self.hooks = scope.hooks
        scope.open(lambda hooks: put_on(hooks, tree, module, name, after=self._returns))

    def retain(self, *, detach: bool) -> None:
        """Keeps the output of each call from now on."""
        self._keep = snapshots(detach=detach)

    def stop_retaining(self) -> None:
        """Keeps nothing any longer, and lets go of what was kept."""
        self._keep = self._retained = None

    def read(self, *, clear: bool) -> Any:
        """What was kept of the latest call; None if there was none."""
        value = read_value(self._retained, self.name)
        self._retained = None if clear else value
        return value

    def _returns(self, args: tuple[Any, ...], *told: Any) -> None:
        if self._keep is not None and backward_id() == -1:
            self._retained = keep_value(self._keep, told[-1])

    def edit(self, rule: Callable[..., Any] | None, arguments: dict[str, Any]) -> None:
        """Edits each output from now on: by a rule, or by the blend."""
        self._rule = None if rule is None else OptionalArguments(rule)
        self._arguments.update(arguments)
        if self._change is None:
            entry = Entry("outputs", self.name, (), self._edited)
            self._change = ChangeOutput(self.hooks.owner, self.name, [entry])
            self.hooks.forward(self._module, self._change)

    def remove_edits(self) -> None:
        """Leaves the outputs as they are from now on."""
        self._rule = None
        self._arguments.clear()

    def _edited(self, x: Any) -> Any:
        """The new output; the same object where nothing changes."""
        if self._rule is None:
            given = {name: self._arguments.get(name) for name in ("ablation", "replacement")}
            return apply_ablation_replacement(x, self._imodel, **given)
        new = self._rule((x, self._imodel), {"name": self._aka, **self._arguments})
        return x if new is None else new


def name_and_aka(layername: LayerName) -> tuple[str, str]:
    """The name of a layer in the model, and the one to call it by."""
    if isinstance(layername, str):
        return layername, layername
    name, aka = layername
    return name, aka
