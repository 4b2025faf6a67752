"""torch.compile."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from tests.modes import compiling as c
from tests.modes.matrix import Mode, cell, mode
from tests.modes.steps import Rows, batches, network, patched, same, train, watching

PASSED_BY = "compiled code bypasses the hooks, and nothing is recorded"
NOT_EDITED = "compiled code bypasses the edit"

_WAYS: tuple[tuple[str, str, Callable[..., Any], tuple[str, ...], str], ...] = (
    (
        "`torch.compile(model, fullgraph=True)`", "the whole model is one graph", c.whole,
        ("conv", "blocks"), "embed",
    ),
    ("`dynamic=True`", "one graph for every size of batch", c.dynamic, ("blocks",), "embed"),
    ("`model.compile()`", "compiled in place", c.in_place, ("blocks",), "embed"),
    (
        "`block.compile()`", "repeated blocks, which share one graph", c.regional, ("blocks",),
        "blocks.2.act",
    ),
)  # fmt: skip


def _cells(declared: Mode, compile_: Callable[..., Any], models: tuple[str, ...], at: str) -> None:
    name = models[-1]

    @cell("trace", declared, name, guard=c.scope_stays_compiled, without=PASSED_BY)
    def trace(model: str) -> None:
        c.check_trace(model, compile_)

    @cell("edit", declared, name, guard=c.scope_stays_compiled, without=NOT_EDITED)
    def edit(model: str) -> None:
        c.check_edit(model, compile_, at)

    @cell("features", declared, name, guard=c.scope_stays_compiled, without=PASSED_BY)
    def features(model: str) -> None:
        c.check_features(model, compile_, at)

    @cell("watch", declared, *models, guard=c.no_taps_in_graphs, without=PASSED_BY)
    def watch(model: str) -> None:
        c.check_watch(model, compile_, "aot_eager" if compile_ is c.regional else "eager")


for _name, _what, _compile, _models, _at in _WAYS:
    _cells(mode("torch.compile", _name, _what), _compile, _models, _at)


_TRACED = dict.fromkeys(("trace", "edit"), "the rows above attach after the first call, too")
AFTER = mode(
    "torch.compile", "attached after the first call", "the code was compiled without hooks",
    features=_TRACED["trace"], **_TRACED,
)  # fmt: skip


@cell(
    "watch", AFTER, "mlp", guard=c.hooks_unchecked,
    without="the graph without hooks continues to be used",
)  # fmt: skip
def watch_after_the_first_call(model: str) -> None:
    c.check_watch(model, c.whole, called=True)


SIBLING = mode(
    "torch.compile", "one block of several",
    "hooks on one of the blocks that share a graph",
    edit="tested in the row of `block.compile()`, which edits one block", features="as `edit`",
    trace="as `edit`",
)  # fmt: skip


@cell(
    "watch", SIBLING, "blocks", guard=c.hooks_unchecked,
    without="the graph of a block without hooks is used for the one with hooks",
)  # fmt: skip
def watch_one_sibling(model: str) -> None:
    def watched(compiled: bool) -> Rows:
        net = network(model)
        if compiled:
            c.regional(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        with watching(net, optimizer, include="blocks.2.**") as rows:
            train(net, batches(model), optimizer)
        return rows

    with c.fresh():
        same(watched(True), watched(False))


COPY = mode(
    "torch.compile", "a copy without hooks", "a teacher of the same class, compiled first",
    trace="runs eagerly", edit="runs eagerly", features="runs eagerly",
)  # fmt: skip


@cell(
    "watch", COPY, "mlp", guard=c.hooks_unchecked,
    without="the teacher's graph, without hooks, is used for the student",
)  # fmt: skip
def watch_beside_a_teacher(model: str) -> None:
    expected, _ = c.watched_eagerly(model)
    with c.fresh():
        teacher, student = network(model, seed=1), network(model)
        optimizer = torch.optim.SGD(student.parameters(), 0.1)
        with watching(student, optimizer) as rows:
            taught, learning = c.whole(teacher), c.whole(student)
            taught(batches(model)[0][0])
            train(learning, batches(model), optimizer)
    same(rows, expected)


INDUCTOR = mode(
    "torch.compile", "Inductor", "the default backend, fused kernels",
    trace="runs eagerly, whatever the backend", edit="runs eagerly", features="runs eagerly",
)  # fmt: skip


@cell("watch", INDUCTOR, "conv", guard=c.no_taps_in_graphs, without=PASSED_BY)
def watch_with_inductor(model: str) -> None:
    c.check_watch(model, c.whole, "inductor")


IN_PLACE = mode(
    "torch.compile", "written in place", "a layer that returns a view, then `ReLU(inplace=True)`",
    trace="runs eagerly", edit="runs eagerly", features="runs eagerly",
)  # fmt: skip


def _views_asked() -> Any:
    """Gradients are asked for by plain tensor hooks."""

    def show_one(site: Any, args: Any, value: Any, training: bool, first: bool, back: Any) -> None:
        torch.ops.nethook.show_value(value, site, training, first)
        if back is not None and training and value.requires_grad:
            value.register_hook(lambda grad: torch.ops.nethook.show_grad(grad, back))

    return patched("nethook.hooks.compile.graph._show_one", show_one)


@cell(
    "watch", IN_PLACE, "views", guard=_views_asked,
    without="the gradient of the view is lost when the view is written to",
)  # fmt: skip
def watch_views_written_in_place(model: str) -> None:
    c.check_watch(model, c.whole)


FUNCTION = mode(
    "torch.compile", "a compiled function", "it calls the model and computes the loss",
    trace="refused: see `docs/look.md`", edit="as `trace`", features="calls the model itself",
)  # fmt: skip


@cell("watch", FUNCTION, "mlp", guard=c.no_taps_in_graphs, without=PASSED_BY)
def watch_inside_a_compiled_function(model: str) -> None:
    expected, _ = c.watched_eagerly(model)
    with c.fresh():
        net = network(model)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        step = torch.compile(lambda x, y: c.loss(net(x), y), backend="aot_eager", fullgraph=True)
        with watching(net, optimizer) as rows:
            for x, y in batches(model):
                optimizer.zero_grad()
                step(x, y).backward()
                optimizer.step()
    same(rows, expected)


STEP = mode(
    "torch.compile", "a compiled step of the optimizer", "`torch.compile(optimizer.step)`",
    trace="not affected", edit="not affected", features="not affected",
)  # fmt: skip


def _traced_into() -> Any:
    """The hooks around a step are left to the compiler."""
    return patched("nethook.hooks.process.optimizers._leave_alone", lambda *_: None)


@cell(
    "watch", STEP, "mlp", guard=_traced_into,
    without="the compiler fails inside the hooks, and watching ends",
)  # fmt: skip
def watch_a_compiled_step(model: str) -> None:
    expected, _ = c.watched_eagerly(model)
    with c.fresh(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = network(model)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        step = torch.compile(optimizer.step, backend="aot_eager")
        with watching(net, optimizer) as rows:
            for x, y in batches(model):
                optimizer.zero_grad()
                c.loss(net(x), y).backward()
                step()
    same(rows, expected)
