"""Mixed precision: autocast, loss scalers, pure half types, fused optimizers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

import nethook
from tests.modes import compiling as c
from tests.modes.matrix import Mode, cell, mode
from tests.modes.steps import Rows, batches, equal, network, patched, watching

GRADS = ("grads", "param_grads")


@contextmanager
def no_hooks() -> Iterator[None]:
    """Nothing is put on a module."""
    with patched("nethook.hooks.attachment._InTables.put_on", lambda *_: None):
        yield


@contextmanager
def no_scaler() -> Iterator[None]:
    """Loss scalers are not seen."""
    with patched("nethook.watching.hooks.wrappers._OnScale.after", lambda *_: None):
        yield


@contextmanager
def low_precision() -> Iterator[None]:
    """Sums are taken in the tensor's own type."""
    from nethook.stats.rows import Slot

    original = Slot.fold

    def fold(self: Any, tensor: torch.Tensor, factor: float = 1.0) -> int:
        mean = tensor.detach().mean() if tensor.is_floating_point() else tensor
        return original(self, mean.expand(tensor.shape), factor)

    with patched("nethook.stats.rows.Slot.fold", fold):
        yield


class Hand:
    """Means and counts of outputs, in float64, from hooks written by hand."""

    def __init__(self, model: nn.Module) -> None:
        self.means: dict[str, list[float]] = {}
        self.outputs: dict[str, torch.Tensor] = {}
        for name, module in model.named_modules():
            if not list(module.children()):
                module.register_forward_hook(self._hook(name))

    def _hook(self, name: str) -> Any:
        def hook(module: nn.Module, args: Any, output: torch.Tensor) -> None:
            self.means.setdefault(name, []).append(output.detach().double().mean().item())
            self.outputs[name] = output.detach().clone()

        return hook


def _step(
    model: nn.Module, x: Any, y: Any, optimizer: Any, scaler: Any, auto: torch.dtype | None
) -> None:
    optimizer.zero_grad()
    with torch.autocast("cpu", auto or torch.bfloat16, enabled=auto is not None):
        loss = c.loss(model(x).float(), y)
    if scaler is None:
        loss.backward()
        optimizer.step()
    else:
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def _trained(
    name: str, *, auto: torch.dtype | None = None, dtype: torch.dtype = torch.float32,
    scaled: bool = False, fused: bool = False, watch: bool = True,
) -> tuple[nn.Module, Rows, Hand]:  # fmt: skip
    model = network(name).to(dtype)
    hand = Hand(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0) if scaled else None
    data = [(x.to(dtype), y) for x, y in batches(name)]
    if not watch:
        for x, y in data:
            _step(model, x, y, optimizer, scaler, auto)
        return model, {}, hand
    with watching(model, optimizer) as rows:
        for x, y in data:
            _step(model, x, y, optimizer, scaler, auto)
    return model, rows, hand


def _check_means(rows: Rows, hand: Hand) -> None:
    for name, means in hand.means.items():
        np.testing.assert_allclose(rows[name, "outputs"]["mean"], means, 1e-9, 1e-12)


def _check_watch(name: str, **how: Any) -> None:
    model, rows, hand = _trained(name, **how)
    alone, _, _ = _trained(name, watch=False, **how)
    equal(list(model.parameters()), list(alone.parameters()))
    _check_means(rows, hand)


def _check_scaled(name: str, *, fused: bool) -> None:
    """Gradients are those without a scaler, up to the rounding of a power of two: none."""
    _, plain, _ = _trained(name, fused=fused)
    _, rows, _ = _trained(name, scaled=True, fused=fused)
    for key in [key for key in plain if key[1] in GRADS]:
        for field in ("mean", "std", "max"):
            np.testing.assert_allclose(rows[key][field], plain[key][field], 1e-6, 1e-12)


def _check_trace(name: str, auto: torch.dtype | None, dtype: torch.dtype) -> None:
    model = network(name).to(dtype)
    hand = Hand(model)
    for x, _ in batches(name):
        with torch.autocast("cpu", auto or torch.bfloat16, enabled=auto is not None):
            with nethook.trace(model) as tape:
                model(x.to(dtype))
        for site in tape:
            assert tape[site].output.dtype is hand.outputs[site].dtype
        equal([tape[site].output for site in tape], [hand.outputs[site] for site in tape])


def _check_edit(name: str, auto: torch.dtype | None, dtype: torch.dtype) -> None:
    model, by_hand = network(name).to(dtype), network(name).to(dtype)
    by_hand[0].register_forward_hook(lambda _m, _a, out: out * 0.5)
    for x, _ in batches(name):
        with torch.autocast("cpu", auto or torch.bfloat16, enabled=auto is not None):
            with nethook.edit(model, outputs={"0": nethook.edits.scale(0.5)}):
                out = model(x.to(dtype))
            assert torch.equal(out, by_hand(x.to(dtype)))


def _check_features(name: str, auto: torch.dtype | None, dtype: torch.dtype) -> None:
    model = network(name).to(dtype)
    hand = Hand(model)
    for x, _ in batches(name):
        with torch.autocast("cpu", auto or torch.bfloat16, enabled=auto is not None):
            found = nethook.features(model, x.to(dtype), at="1")
        assert torch.equal(found, hand.outputs["1"])
        assert found.dtype is hand.outputs["1"].dtype


def _cells(declared: Mode, auto: torch.dtype | None, dtype: torch.dtype) -> None:
    @cell(
        "watch", declared, "mlp", guard=low_precision,
        without="sums are only as precise as the dtype of the tensor",
    )  # fmt: skip
    def watch(name: str) -> None:
        _check_watch(name, auto=auto, dtype=dtype)

    @cell("trace", declared, "mlp", guard=no_hooks, without="nothing is recorded")
    def trace(name: str) -> None:
        _check_trace(name, auto, dtype)

    @cell("edit", declared, "mlp", guard=no_hooks, without="nothing is changed")
    def edit(name: str) -> None:
        _check_edit(name, auto, dtype)

    @cell("features", declared, "mlp", guard=no_hooks, without="nothing is read")
    def features(name: str) -> None:
        _check_features(name, auto, dtype)


for _name, _what, _auto, _dtype in (
    ("`torch.autocast(bfloat16)`", "float32 weights", torch.bfloat16, torch.float32),
    ("pure `bfloat16`", "weights and activations", None, torch.bfloat16),
    ("pure `float16`", "weights and activations", None, torch.float16),
):
    _cells(mode("Mixed precision", _name, _what), _auto, _dtype)

_SAME = {
    "edit": "as without a scaler",
    "features": "runs without gradient",
    "trace": "gradients on a tape are as computed, including the scaler's factor",
}
SCALED = mode("Mixed precision", "`GradScaler`", "gradients are reported unscaled", **_SAME)
FUSED = mode(
    "Mixed precision", "fused optimizer under a `GradScaler`", "gradients still scaled at its step",
    **_SAME,
)  # fmt: skip
INF = mode("Mixed precision", "a step that a scaler skips", "infinite gradients", **_SAME)


@cell("watch", SCALED, "mlp", guard=no_scaler, without="output gradients are 256 times too large")
def watch_scaled(name: str) -> None:
    _check_scaled(name, fused=False)


@cell("watch", FUSED, "mlp", guard=no_scaler, without="gradients are 256 times too large")
def watch_fused(name: str) -> None:
    _check_scaled(name, fused=True)


@contextmanager
def _no_skips() -> Iterator[None]:
    with patched("nethook.watching.hooks.wrappers._OnScalerStep.skipped", lambda *_: None):
        yield


@cell("watch", INF, "mlp", guard=_no_skips, without="the skipped step is not counted")
def watch_a_skipped_step(name: str) -> None:
    model = network(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    with watching(model, optimizer) as rows:
        for number, (x, y) in enumerate(batches(name, 4)):
            optimizer.zero_grad()
            loss = c.loss(model(x), y) * (torch.inf if number == 1 else 1.0)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    assert len(rows["0", "outputs"]["mean"]) == 4  # a skipped step is a step
    used = rows["0.weight", "param_grads"]["tensors"]
    assert list(used) == [1, 0, 1, 1]
