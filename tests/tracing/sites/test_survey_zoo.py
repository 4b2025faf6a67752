"""The site map of real architectures: nothing is missed, nothing is counted twice, nothing moves.

Two judges that know nothing of nethook's: a function mode that counts what Python calls, and a
dispatch mode that follows every value from the output back to where it was computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import nethook
from nethook.addresses.inputs import as_inputs
from nethook.addresses.nested import tensors
from nethook.addresses.tree import Tree
from nethook.hooks.attachment import Attachment
from nethook.hooks.hook import Owner
from nethook.hooks.ops.consumer import Op, OpConsumer
from nethook.hooks.ops.watch import watch_ops
from tests.tracing.architectures import built, every_architecture


@contextmanager
def layer_by_layer() -> Iterator[None]:
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad():
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


class Counting(TorchFunctionMode):
    """Counts the calls of torch's functions that give a tensor, or write into one."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        result = function(*args, **(kwargs or {}))
        name = function.__name__
        reads = name in ("__get__", "__set__", "requires_grad_")  # an attribute is no operation
        computes = name == "__setitem__" or any(
            isinstance(each, torch.Tensor) for each in tree_leaves(result)
        )
        if computes and not reads:
            self.calls[name.strip("_")] += 1
        return result


@every_architecture
def test_the_operations_are_those_that_python_calls(name: str) -> None:
    model, inputs = built(name)
    with layer_by_layer(), Counting() as counted:
        as_inputs(inputs).call(model)
    found = nethook.sites(model, inputs)
    types = {row.address: row.type for row in found}
    kinds = {row.address: row.kind for row in found}
    listed = Counter(types[address] for address, _ in found.order if kinds[address] == "op")
    assert listed == counted.calls
    assert sum(row.calls for row in found.ops) == counted.calls.total()
    assert len(found.ops) > 2


class Flow(TorchDispatchMode):
    """Notes what every kernel read and wrote, by memory, and which address was running."""

    def __init__(self) -> None:
        super().__init__()
        self.address: str | None = None
        self.makers: dict[int, list[tuple[str, str | None, list[int]]]] = {}
        self.alive: list[Any] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        result = function(*args, **(kwargs or {}))
        read = [self.memory(each) for _, each in tensors((args, kwargs))]
        mutable = function._schema.is_mutable
        for each in tree_leaves(result):
            if isinstance(each, torch.Tensor):
                made = self.memory(each)
                if mutable or made not in read:  # a view computes nothing
                    self.makers.setdefault(made, []).append((str(function), self.address, read))
        return result

    def memory(self, tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        self.alive.append(storage)  # so that no other memory gets its number
        return storage._cdata


class Addresses(OpConsumer):
    def __init__(self, flow: Flow, blind_to: str) -> None:
        self.flow = flow
        self.blind_to = blind_to

    def wants(self, op: Op) -> bool:
        return op.name != self.blind_to

    def before(self, op: Op, function: Any, args: Any, kwargs: Any) -> None:
        self.flow.address = op.address

    def after(self, op: Op, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        self.flow.address = None


def walk_back(model: nn.Module, inputs: Any, *, blind_to: str = "") -> tuple[set[Any], set[int]]:
    """The addresses at which the values behind the output were made, and their memory."""
    flow = Flow()
    with layer_by_layer(), Attachment(Owner("test")) as hooks:
        watch_ops(Tree(model), hooks, Addresses(flow, blind_to))
        with flow:
            output = as_inputs(inputs).call(model)
    waiting = [each.untyped_storage()._cdata for _, each in tensors(output)]
    seen: set[int] = set()
    used: set[str | None] = set()
    while waiting:
        memory = waiting.pop()
        if memory not in seen:
            seen.add(memory)
            for _, address, read in flow.makers.get(memory, ()):
                used.add(address)
                waiting += read
    return used, seen


@every_architecture
def test_every_value_that_reaches_the_output_was_made_at_an_address(name: str) -> None:
    model, inputs = built(name)
    known = {row.address for row in nethook.sites(model, inputs)}
    used, seen = walk_back(model, inputs)
    assert used <= known
    assert len(used) > 2 or name == "lstm"
    # The walk went through the whole model: to its parameters, and to what it was given.
    parameters = {each.untyped_storage()._cdata for each in model.parameters() if each.numel()}
    assert len(parameters & seen) > 0.9 * len(parameters)


def test_the_judges_can_fail() -> None:
    model, inputs = built("gpt2")
    assert None in walk_back(model, inputs, blind_to="layer_norm")[0]
    with layer_by_layer(), Counting() as counted:
        as_inputs(inputs).call(model)
        torch.ones(1) + 1
    assert counted.calls.total() == sum(row.calls for row in nethook.sites(model, inputs).ops) + 2


@every_architecture
def test_addresses_do_not_depend_on_the_run(name: str) -> None:
    model, inputs = built(name)
    first = nethook.sites(model, inputs)
    assert nethook.sites(model, inputs).to_dict() == first.to_dict()
    assert nethook.sites(model, inputs, copy=True).order == first.order
    with nethook.trace(model, lambda *_: True, inputs=True):
        assert nethook.sites(model, inputs).to_dict() == first.to_dict()
    with nethook.trace(model, "**/*"), nethook.edit(model, outputs={"**/*": no_change}):
        assert nethook.sites(model, inputs).to_dict() == first.to_dict()
    without_data = on_meta(inputs)
    assert nethook.sites(model, without_data).order == first.order


@every_architecture
def test_training_and_evaluation_have_the_same_addresses(name: str) -> None:
    model, inputs = built(name)
    evaluated = nethook.sites(model, inputs)
    model.train()
    try:
        trained = nethook.sites(model, inputs)
    finally:
        model.eval()
    counters = {  # what a batch norm counts in training is other code
        row.address for row in trained.ops if "num_batches_tracked" in " ".join(row.parameters)
    }
    kept = [each for each in trained.order if each[0] not in counters]
    assert kept == list(evaluated.order)
    assert bool(counters) == any(isinstance(each, nn.BatchNorm2d) for each in model.modules())


@every_architecture
def test_shapes_lines_and_parameters_are_those_of_the_run(name: str) -> None:
    """Against hooks by hand on every module."""
    model, inputs = built(name)
    found = nethook.sites(model, inputs)
    seen: dict[str, list[tuple[int, ...]]] = {}

    def note(address: str) -> Any:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            seen.setdefault(address, [tuple(each.shape) for _, each in tensors(output)])

        return hook

    named_modules = list(model.named_modules())
    handles = [module.register_forward_hook(note(address)) for address, module in named_modules]
    with layer_by_layer():
        as_inputs(inputs).call(model)
    for handle in handles:
        handle.remove()
    assert {row.address: list(row.shapes) for row in found.modules} == seen
    named = dict(model.named_parameters()) | dict(model.named_buffers())
    assert {each for row in found for each in row.parameters} <= set(named)
    for row in found:
        assert row.source is not None or row.address == ""
        if row.source is not None:
            lines = Path(row.source.file).read_text(encoding="utf-8").splitlines()
            assert lines[row.source.line - 1].strip()


def on_meta(inputs: Any) -> Any:
    given = as_inputs(inputs)
    args = [each.to("meta") for each in given.args]
    kwargs = {key: each.to("meta") for key, each in given.kwargs.items()}
    return nethook.inputs(*args, **kwargs)


def no_change(value: Any) -> None:
    """An edit that leaves everything as it is."""
