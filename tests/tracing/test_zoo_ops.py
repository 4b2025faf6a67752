"""Every exhibit of the zoo with all its operations traced: the run is the same, and so are values.

The oracle of the values is a mode of its own that is entered by hand, with plain hooks on every
module; it knows nothing of nethook.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

import nethook
from tests.tracing.zoo_runs import bare, escaped, hooks_of, judged, read_all
from tests.zoo import Exhibit, assert_same, differences, modules_of, observe, snapshot
from tests.zoo.marks import every_exhibit, exhibits_that

EVERYTHING = {"inputs": True, "grads": True, "input_grads": True}


@every_exhibit
def test_tracing_every_operation_changes_nothing(exhibit: Exhibit) -> None:
    @contextmanager
    def traced(model: nn.Module) -> Iterator[None]:
        with nethook.trace(model, "**/*", **EVERYTHING) as tape:
            yield
            repr(tape)
            for record in tape.values():
                for call in record.calls:
                    read_all(call)

    assert_same(bare(exhibit), observe(exhibit, around=traced, audit=hooks_of), "traced")


class ByHand(TorchFunctionMode):
    """What every function of torch returned, with the module it was called in."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[tuple[str, dict[str, int]]] = []
        self.seen: list[tuple[str, Any]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        module, counts = self.inside[-1] if self.inside else ("", {})
        name = func.__name__.strip("_")
        counts[name] = counts.get(name, -1) + 1
        number = counts[name]
        result = func(*args, **(kwargs or {}))
        shown = args[0] if func is torch.Tensor.__setitem__ else result
        again = torch._C._current_graph_task_id() != -1
        if self.inside and not again and not torch._C._are_functorch_transforms_active():
            with torch._C.DisableTorchFunction():
                value = snapshot(shown, values_only=True)
            self.seen.append((f"{escaped(module)}/{name}#{number}", value))
        return result

    def enter(self, name: str) -> None:
        self.inside.append((name, {}))

    def leave(self) -> None:
        self.inside.pop()


@judged
def test_values_and_addresses_equal_those_of_a_mode_by_hand(exhibit: Exhibit) -> None:
    hand = ByHand()
    tapes: list[Any] = []

    @contextmanager
    def by_hand(model: nn.Module) -> Iterator[None]:
        handles = []
        for name, module in modules_of(model).items():
            with suppress(LookupError):
                (address,) = nethook.select(model, module)
                if nethook.get_module(model, address) is not module:
                    continue  # a wrapper, which is transparent
                enter = lambda _, __, at=address: hand.enter(at)  # noqa: E731
                handles.append(module.register_forward_pre_hook(enter, prepend=True))
                leave = lambda *_: hand.leave()  # noqa: E731
                handles.append(module.register_forward_hook(leave, prepend=True))
            del name
        with hand:
            yield
        for handle in handles:
            handle.remove()

    @contextmanager
    def traced(model: nn.Module) -> Iterator[None]:
        with nethook.trace(model, "**/*") as tape:
            yield
        tapes.append(tape)

    observe(exhibit, around=by_hand)
    observe(exhibit, around=traced)
    (tape,) = tapes
    expected: dict[str, list[Any]] = {}
    for address, value in hand.seen:
        expected.setdefault(address, []).append(value)
    # What the tape has, the oracle has, call by call; beyond it are only functions that compute
    # nothing.
    for address, record in tape.items():
        assert len(record.calls) == len(expected.get(address, [])), address
        if "/empty" in address:
            continue  # whatever lay in memory
        for call, value in zip(record.calls, expected.get(address, []), strict=True):
            with suppress(nethook.errors.OverwrittenError):
                lines = differences(value, snapshot(call.output, values_only=True))
                assert not lines, f"{address}: {lines}"
    missed = {
        address.rpartition("/")[2].partition("#")[0] for address in expected.keys() - tape.keys()
    }
    # To know its device, a checkpoint of torch 2.8 to 2.11 makes a tensor that is not the model's.
    of_torch = {"empty"} if "checkpoint" in exhibit.name else set()
    assert missed <= NO_OPS | of_torch, missed


# Seen in the zoo, and rightly without an address: they read or set, and compute nothing.
NO_OPS = {
    "get", "set", "size", "dim", "numel", "len", "item", "bool", "int", "float", "index",
    "is_floating_point", "is_complex", "is_contiguous", "is_coalesced", "is_sparse", "stride",
    "set_grad_enabled", "requires_grad", "retain_grad", "register_hook", "backward", "numpy",
    "tolist", "repr", "format", "element_size", "data_ptr", "storage_offset", "nelement", "is_neg",
    "untyped_storage", "device", "is_conj", "is_inference", "is_signed", "reduce_ex", "hash",
    "equal", "is_view", "dlpack", "dlpack_device", "record_function_enter_new",
    "record_function_exit._RecordFunction", "get_device", "array", "contains",
    "setstate", "is_same_size",
}  # fmt: skip


STABLE = {
    "attention_written_out", "lstm_bidirectional", "transformer_norm_first", "batch_norm", "wide",
    "recursion", "parameter_containers", "shared_called_twice", "slice_written",
}  # fmt: skip


@exhibits_that(lambda item: item.name in STABLE)
@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
def test_addresses_are_the_same_whatever_else_is_traced(exhibit: Exhibit, train: bool) -> None:
    seen: list[list[str]] = []

    def traced(*patterns: Any, **options: Any) -> Any:
        @contextmanager
        def around(model: nn.Module) -> Iterator[None]:
            model.train(train)
            with nethook.trace(model, *patterns, **options) as tape:
                yield
            seen.append([each for each in tape if "/" in each])

        return around

    observe(exhibit, around=traced("**/*"))
    observe(exhibit, around=traced("**/*", lambda name, module: True, **EVERYTHING))
    assert seen[0] == seen[1]
    assert seen[0]
