"""`sites`: one forward, and every address in it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import FrameType
from typing import Any

import torch
from torch import nn

from nethook.addresses.inputs import as_inputs
from nethook.addresses.nested import tensors
from nethook.addresses.tree import Tree
from nethook.hooks.layouts.fused import layer_by_layer
from nethook.hooks.modes import quiet
from nethook.hooks.ops.consumer import ModuleCall, Op, OpConsumer
from nethook.hooks.ops.watch import watch_ops
from nethook.hooks.process.source_line import line_of_model
from nethook.hooks.scope import Scope
from nethook.restoring.copies import stand_in
from nethook.restoring.unchanged import unchanged
from nethook.tracing.sites.site_map import SiteInfo, SiteMap


def sites(model: nn.Module, inputs: Any, *, copy: bool = False) -> SiteMap:
    """Runs a model once and lists every module call and every operation in it.

        print(nethook.sites(model, x))
        nethook.sites(model, x)["**/softmax"]

    Arguments:
        model: any `nn.Module`. It runs in the mode it is in, with gradients where those are on
            (under `torch.no_grad()` it takes less memory). Everything is left as it was:
            docs/sites.md says what that means.
        inputs: a tensor, a tuple, a mapping, or `nethook.inputs(...)`. With `meta` tensors the
            model is run without data: a large one costs no memory and no time to speak of.
        copy: runs a deep copy instead, for a model that holds objects which a forward changes.

    Returns:
        A `SiteMap`: nested, in order of execution; each site with its address, its module's class
        or its name, shapes and types, parameters, the line of the model's code, and its calls.

    What `nn.TransformerEncoder` would run as one fused kernel runs layer by layer here, so that it
    can be seen. Costs one forward, and some microseconds for each operation.
    """
    given = as_inputs(inputs)
    tree = Tree(model)  # before anything runs: it refuses what is not a model
    with (
        unchanged(model, given),
        layer_by_layer(),
    ):
        stand, own = stand_in(tree.root, given, copied=copy)
        tree = tree if stand is tree.root else Tree(stand)
        survey = _Survey(tree, sys._getframe())
        with Scope("nethook.sites", tree) as hooks:
            watch_ops(tree, hooks, survey)
            try:
                own.call(tree.root)
            except Exception as error:
                if any(tensor.is_meta for _, tensor in tensors((own.args, dict(own.kwargs)))):
                    error.add_note(
                        "nethook.sites ran the model without data, because an input is on the "
                        "device 'meta'. Where a forward depends on values, give it inputs with "
                        "data."
                    )
                raise
    return survey.map()


class _Survey(OpConsumer):
    """Writes down each module and operation when it is first met, and counts its calls."""

    def __init__(self, tree: Tree, stop: FrameType) -> None:
        self._sites = {site.address: site for site in tree.sites}
        # Shown are a module's own, and which of all an operation is given; tied ones by one name.
        self._parameters = {id(site.tensor): site.address for site in tree.parameters().sites}
        self._stop: FrameType | None = stop
        self._rows: dict[str, SiteInfo] = {}
        self._calls: dict[str, int] = {}
        self._order: list[tuple[str, int]] = []
        self._running: list[str] = []  # addresses of the modules under way
        self._not_returned: set[str] = set()

    def entered(self, call: ModuleCall, args: tuple[Any, ...]) -> None:
        """A module is called."""
        address = call.place.address
        if address not in self._rows:
            site = self._sites[address]
            own = self._named(site.module.parameters(recurse=False))
            self._add(address, "module", type(site.module).__name__, own, args, call.place.names)
            self._rows[address] = replace(self._rows[address], cls=type(site.module))
            self._not_returned.add(address)
        self._count(address)
        self._running.append(address)

    def left(self, call: ModuleCall, output: Any) -> None:
        """It has returned."""
        while self._running and self._running.pop() != call.place.address:
            pass  # calls inside that raised what no hook was told of
        if call.place.address in self._not_returned:
            self._not_returned.discard(call.place.address)
            row = self._rows[call.place.address]
            self._rows[row.address] = replace(row, **_described(output))

    def after(
        self, op: Op, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
        result: Any,
    ) -> None:  # fmt: skip
        """An operation has run."""
        if op.address not in self._rows:
            used = self._named(tensor for _, tensor in tensors((args, kwargs)))
            self._add(op.address, "op", op.name, used, (args, kwargs), op.names)
            row = self._rows[op.address]
            self._rows[op.address] = replace(row, **_described(result))
        self._count(op.address)

    def _add(
        self, address: str, kind: Any, name: str, parameters: tuple[str, ...], given: Any,
        names: tuple[str, ...],
    ) -> None:  # fmt: skip
        around = tuple(dict.fromkeys(self._rows[address].number for address in self._running))
        with quiet():
            inputs = tuple(_shape(tensor) for _, tensor in tensors(given))
        self._rows[address] = SiteInfo(
            address=address,
            kind=kind,
            type=name,
            depth=len(around),
            module=self._running[-1] if self._running else None,
            shapes=(),
            dtypes=(),
            input_shapes=inputs,
            parameters=parameters,
            source=line_of_model(self._stop),
            calls=0,
            names=tuple(dict.fromkeys(names)),
            number=len(self._rows),
            around=around,
        )

    def _named(self, given: Iterable[torch.Tensor]) -> tuple[str, ...]:
        # A parameter that was put in another's place for a call (`functional_call`) has no name.
        names = self._parameters
        return tuple(names[id(tensor)] for tensor in given if id(tensor) in names)

    def _count(self, address: str) -> None:
        number = self._calls.get(address, 0)
        self._calls[address] = number + 1
        self._order.append((address, number))

    def map(self) -> SiteMap:
        """What was seen."""
        self._stop = None  # a frame holds all that its function held
        rows = tuple(replace(row, calls=self._calls[row.address]) for row in self._rows.values())
        uncalled = tuple(
            address
            for address, site in self._sites.items()
            # A list of modules has no forward: it is never called.
            if address not in self._rows and _forward(site.module) is not nn.Module.forward
        )
        return SiteMap(rows, tuple(self._order), uncalled)


def _forward(module: nn.Module) -> object:
    return getattr(type(module), "forward", None)  # a class of a ScriptModule has none


def _described(value: Any) -> dict[str, Any]:
    with quiet():
        members = [tensor for _, tensor in tensors(value)]
        return {
            "shapes": tuple(_shape(tensor) for tensor in members),
            "dtypes": tuple(str(tensor.dtype).removeprefix("torch.") for tensor in members),
        }


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    # A nested tensor has no shape; along the dimension in which its parts differ it is -1.
    if tensor.is_nested:
        return (tensor.size(0), *[-1] * (tensor.dim() - 1))
    return tuple(int(size) for size in tensor.shape)
