"""Exports of a model that is watched: the same artefact as without."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import nn

import nethook
from nethook.errors import ScopeError
from tests.modes import compiling as c
from tests.modes.matrix import Mode, cell, mode
from tests.modes.steps import batches, network, patched, watching

_BESIDE = {
    "trace": "a trace is a block around a call: leave it, or export inside `nethook.suspended`",
    "edit": "an edit is part of what is exported; `nethook.suspended` leaves it out",
    "features": "its hooks are removed when it returns",
}


def _scripted(model: nn.Module, x: torch.Tensor) -> Any:
    return str(torch.jit.script(model).inlined_graph)


def _traced(model: nn.Module, x: torch.Tensor) -> Any:
    # Every traced class gets a name of its own, and every value its number.
    found = str(torch.jit.trace(model, x).inlined_graph)
    return re.sub(r"___torch_mangle_\d+\.", "", found)


def _exported(model: nn.Module, x: torch.Tensor) -> Any:
    return str(torch.export.export(model, (x,)).graph)


def _exported_strictly(model: nn.Module, x: torch.Tensor) -> Any:
    return str(torch.export.export(model, (x,), strict=True).graph)


def _onnx_scripted(model: nn.Module, x: torch.Tensor) -> Any:
    buffer = io.BytesIO()
    torch.onnx.export(model, (x,), buffer, dynamo=False)
    return buffer.getvalue()


def _onnx(model: nn.Module, x: torch.Tensor) -> Any:
    program = torch.onnx.export(model, (x,), dynamo=True, verbose=False)
    assert program is not None
    found = program.model_proto
    # Where in the sources of torch and of this file a node comes from is no part of what it does.
    for each in (found, found.graph, *found.graph.node, *found.graph.value_info):
        del each.metadata_props[:]
    return bytes(found.SerializeToString(deterministic=True))


def _hooks_stay() -> Any:
    return patched("nethook.watching.attach.export_without_hooks", lambda *_: None)


@contextmanager
def _nothing_is_known() -> Iterator[None]:
    with _hooks_stay(), patched("nethook.hooks.compile.graph.is_exporting", lambda: False):
        yield


def _check(name: str, export: Callable[[nn.Module, torch.Tensor], Any]) -> None:
    model = network(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with c.fresh(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = export(network(name), batches(name)[0][0])
        with watching(model, optimizer) as rows:
            for x, y in batches(name):
                found = export(model, x)
                if optimizer.state_dict()["state"] == {} and found != alone:
                    raise AssertionError("another artefact")
                optimizer.zero_grad()
                c.loss(model(x), y).backward()
                optimizer.step()
                if isinstance(alone, bytes):
                    break  # weights are in the file
            else:
                assert found == alone
    assert all(rows["0", "outputs"]["tensors"] == 1)  # and exporting is no call


def _cells(declared: Mode, export: Callable[[nn.Module, torch.Tensor], Any]) -> None:
    @cell(
        "watch", declared, "mlp",
        guard=_nothing_is_known if export in (_exported, _onnx) else _hooks_stay,
        without="torch rejects the hooks, or exports them, or calls of the exported model count",
    )  # fmt: skip
    def watch(name: str) -> None:
        _check(name, export)


for _name, _what, _export in (
    ("`torch.jit.script`", "refuses hooks in Python", _scripted),
    ("`torch.jit.trace`", "runs the model, and hooks become part of the result", _traced),
    ("`torch.export`", "non-strict tracing", _exported),
    ("`torch.export(strict=True)`", "traces with Dynamo", _exported_strictly),
    ("`torch.onnx.export`", "through `torch.export`", _onnx),
    ("`torch.onnx.export(dynamo=False)`", "through TorchScript", _onnx_scripted),
):
    _cells(mode("Export", _name, _what, **_BESIDE), _export)

GRAPHED = mode(
    "Export", "`torch.cuda.make_graphed_callables`", "replays kernels without running Python",
    **_BESIDE,
)  # fmt: skip


@cell(
    "watch", GRAPHED, "mlp", guard=_hooks_stay,
    without="torch asks for a GPU, or complains about hooks without saying who owns them",
    refused="`ScopeError`: the model is hooked by nethook.watch, and a CUDA graph would replay its "
    "kernels without calling a hook: close the watch first",
)  # fmt: skip
def watch_graphed_callables(name: str) -> None:
    model = network(name)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, _ in batches(name):
        with watching(model, optimizer):
            with pytest.raises(ScopeError, match="close the watch first"):
                torch.cuda.make_graphed_callables(model, (x,))
            model(x).sum().backward()
            optimizer.step()
        assert not nethook.audit(model).ours
