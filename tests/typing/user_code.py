"""A user's program as mypy --strict sees it; `make check` reads this file, nothing runs it.

Every public name has its exact type here. A `type: ignore` that is not needed is an error under
--strict, so the lines at the end prove that wrong code is seen as wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

import nethook
from nethook import Inputs, errors, inputs, trace

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
x = torch.randn(4, 8)

# Where: modules, or tensors with params=True.
assert_type(nethook.select(model, "*", nn.ReLU, exclude="2"), dict[str, nn.Module])
assert_type(
    nethook.select(model, type=nn.Linear, where=lambda name, _: name != "0"), dict[str, nn.Module]
)
assert_type(nethook.select(model, re.compile(r"\d"), ["0", model[1]]), dict[str, nn.Module])
assert_type(nethook.select(model, "**.weight", params=True), dict[str, torch.Tensor])
assert_type(nethook.get_module(model, "0"), nn.Module)
assert_type(nethook.get_parameter(model, "0.weight"), torch.Tensor)
assert_type(inputs(x, scale=2.0), Inputs)
assert_type(nethook.inputs(x).args, tuple[Any, ...])

# How: hooks are listed, and taken off for a block.
hooks: Sequence[object] = nethook.audit(model)
assert_type(nethook.audit(model)[0].address, str)
assert_type(nethook.audit(model)[0].ours, bool)
with nethook.suspended(model) as nothing:
    assert_type(nothing, None)

# Look: a tape is a mapping from address to record.
with trace(model, "0", nn.ReLU, inputs=True, grads=True, param_grads=True, calls="last") as tape:
    model(x).sum().backward()
by_address: Mapping[str, object] = tape
assert_type(list(tape), list[str])
assert_type(tape["0"].address, str)
assert_type(len(tape["0"].calls), int)
assert_type(tape["0"].args, tuple[Any, ...])
assert_type(tape["0"].calls[0].kwargs, dict[str, Any])
output: torch.Tensor = tape["0"].last.output
gradient: torch.Tensor = tape.params["0.weight"].grad
assert_type(tape.clear(), None)
with trace(model, calls=3, copy=False, detach=False, device="cpu", dtype=torch.float64, stop=True):
    model(x)

# Sites, attention and the graph: plain data.
for site in nethook.sites(model, x)["**/linear"].filter(type=nn.Linear, depth=2):
    assert_type(site.address, str)
    assert_type(site.shapes, tuple[tuple[int, ...], ...])
assert_type(nethook.sites(model, x, copy=True).to_dict(), dict[str, Any])
with trace(model, "0", nodes=True) as tape:
    result = model(x)
node: torch.autograd.graph.Node = tape["0"].node
assert_type(nethook.autograd_graph(result, tape=tape)[0].address, str | None)
assert_type(nethook.autograd_graph(result, model=model).tree(rows=20), str)
attention: dict[str, torch.Tensor] = nethook.attention_probs(model, x)
# Show: figures of runs and tapes.
figure = nethook.figures.feature_maps(tape, "0", sample=1, each=True)
nethook.figures.save(figure, "a.svg")
nethook.figures.heatmap("run.db", "gradients", all_time=True, theme="dark")
assert_type(nethook.figures.report("run.db", "report.html"), Path)
assert_type(nethook.open_run("run.db").findings[0]["code"], Any)

# Classic: the names that existing code imports.
with nethook.Trace(model, "0", retain_input=True, edit_output=torch.relu, stop=True) as traced:
    assert_type(traced, nethook.Trace)
    assert_type(traced.called, int)
with nethook.TraceDict(model, ["0"], clone={"0": True}, edit_output={"0": torch.relu}) as several:
    assert_type(several["0"], nethook.Trace)
with nethook.InstrumentedModel(model) as instrumented:
    instrumented.retain_layers([("0", "first"), "2"])
    instrumented.edit_layer("0", 0.5, x)
    assert_type(instrumented.layer_names(), list[str])
assert_type(nethook.subsequence(model, upto_layer="2"), nn.Sequential)
assert_type(nethook.module_names(model), list[str])
nethook.set_requires_grad(False, model, x)
with nethook.classic.rome.Trace(model, "0"):
    model(x)

# Features: a tensor for a module, a dict for several names; on disk, a data set.
assert_type(nethook.features(model, x, at=model[0]), torch.Tensor)
assert_type(nethook.features(model, x, at=["0", "2"], pool="mean"), dict[str, torch.Tensor])
assert_type(nethook.extract(model, [x], at="0", to="features").rows, int)
assert_type(nethook.load_features("features").tensor("0"), torch.Tensor)
# Start: gains, plans, calibration, proof.
assert_type(nethook.init.gain("gelu", "backward", q=2.0), float)
assert_type(nethook.init.moments(torch.tanh).slope, float)
assert_type(nethook.init.calculate_gain("leaky_relu", negative_slope=0.2), float)
assert_type(nethook.init.initialize_layer(nn.Linear(2, 2), "relu", method="auto"), nn.Linear)
start = nethook.init.plan(model, x, "he", zero=True)
assert_type(start["0.weight"].std, float | None)
assert_type(nethook.init.apply_(model, start, generator=0), nn.Sequential)
assert_type(nethook.init.calibrate_(model, x, 1.0, plan=start).forwards, int)
assert_type(nethook.init.verify(model, x, lambda out: out.sum()).ok(0.5, 2.0), bool)
assert_type(nethook.init.sweep(lambda width: nn.Linear(8, width), [2, 4], x).ok(), bool)

# A run file, as numpy columns.
with nethook.open_run("runs/mnist.db") as opened:
    assert_type(len(opened.series("conv1", "outputs", phase="eval")), int)
    assert_type(opened.ranks[0].state, str)
    deviation: npt.NDArray[np.float64] = opened.series("conv1")["std"]
    quantiles: npt.NDArray[np.float64] = opened.quantiles("conv1", q=(0.1, 0.9))
    logged: npt.NDArray[np.float64] = opened.scalars["accuracy"].value

# Errors are one tree; each is also a standard type.
caught: type[LookupError] = errors.NoSuchSiteError
base: type[errors.NethookError] = nethook.errors.SeveralCallsError
version: str = nethook.__version__
run: Callable[..., object] = nethook.trace

# What is wrong is seen as wrong.
nethook.trase(model)  # type: ignore[attr-defined]
nethook.get_module("0", model)  # type: ignore[arg-type]
nethook.select(model, wher=print)  # type: ignore[call-overload]
nethook.trace(model, calls="first")  # type: ignore[arg-type]
nethook.audit(model)[0].ours = True  # type: ignore[misc]
nethook.init.gain("relu", kind="sideways")  # type: ignore[arg-type]
wrong: dict[str, nn.Module] = nethook.select(model, params=True)  # type: ignore[assignment]
