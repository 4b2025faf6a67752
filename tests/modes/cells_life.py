"""The life of a model that is watched: copied, loaded, converted, changed in its parts."""

from __future__ import annotations

import copy
import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakSet

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

import nethook
from tests.modes.matrix import cell, mode
from tests.modes.steps import batches, network, patched, train

GROUP = "Life of a model"
BESIDE = dict.fromkeys(
    ("trace", "edit", "features"), "the model is looked up whenever a scope opens"
)
COPIED = mode(GROUP, "`deepcopy`, `torch.save`, `state_dict`", "copies have no hooks", **BESIDE)
LOADED = mode(GROUP, "`load_state_dict`", "into the same tensors", **BESIDE)
ASSIGNED = mode(GROUP, "`load_state_dict(assign=True)`", "with a new optimizer", **BESIDE)
STALE = mode(
    GROUP,
    "the same with the old optimizer",
    "its steps change nothing, which is reported",
    **BESIDE,
)
CONVERTED = mode(GROUP, "`.to`, `.half`, `.double`", "parameters move to other memory", **BESIDE)
REPLACED = mode(
    GROUP, "a module is replaced", "the new parameters are followed, which is reported", **BESIDE
)
TIED = mode(GROUP, "weights are tied", "two names, one parameter", **BESIDE)
PARAMETRISED = mode(
    GROUP, "`register_parametrization`, `prune`", "the parameter stays the same", **BESIDE
)
NORMALISED = mode(
    GROUP, "`weight_norm`", "replaced by other parameters, which is reported", **BESIDE
)

Change = Callable[[nn.Module, torch.optim.Optimizer], torch.optim.Optimizer | None]
BEFORE, AFTER = 2, 3


def _sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def _lived(name: str, change: Change) -> tuple[dict[str, Any], list[str], nn.Module]:
    """Two steps, a change, three steps: what was recorded, and what was said of it."""
    model = network(name)
    optimizer = _sgd(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.db"
        with nethook.watch(model, optimizer, to=path, budget=None) as watch:
            watch.be_silent()
            given = batches(name, BEFORE + AFTER)
            train(model, given[:BEFORE], optimizer)
            optimizer = change(model, optimizer) or optimizer
            kind = next(model.parameters()).dtype
            train(model, [(x.to(kind), y) for x, y in given[BEFORE:]], optimizer)
        with nethook.open_run(path) as run:
            said = [e.message for e in run.events if e.kind in ("parameters", "model-changed")]
            assert [e.message for e in run.events if e.kind == "watch-failed"] == []
            assert run.info["totals"]["steps"] == BEFORE + AFTER
            found = {
                (info.address, info.quantity): run.series(info.address, info.quantity)
                for info in run.catalogue
            }
    return found, said, model


def _weights(found: dict[Any, Any], address: str = "0.weight") -> Any:
    return found[address, "params"]["std"]


def _expected(name: str, change: Change) -> list[float]:
    """The deviation of the first weight before each step, without nethook."""
    model = network(name)
    optimizer = _sgd(model)
    seen = []
    for step, batch in enumerate(batches(name, BEFORE + AFTER)):
        if step == BEFORE:
            optimizer = change(model, optimizer) or optimizer
        seen.append(float(model[0].weight.detach().double().std(correction=0)))
        train(model, [(batch[0].to(next(model.parameters()).dtype), batch[1])], optimizer)
    return seen


def _doubled(name: str) -> dict[str, torch.Tensor]:
    return {key: 2 * value for key, value in network(name).state_dict().items()}


def _parameters_stay() -> Any:
    return patched("nethook.watching.loop.rebinding.Resolver.changed", lambda self: False)


@contextmanager
def _copies_carry_hooks() -> Iterator[None]:
    with (
        patched("nethook.hooks.saving.is_ours", lambda _: False),
        patched("nethook.hooks.hook.Hook.__reduce__", lambda _: "itself"),
    ):
        yield


def _saved(value: object) -> bytes:
    file = io.BytesIO()
    torch.save(value, file)
    return file.getvalue()


@cell("watch", COPIED, "mlp", guard=_copies_carry_hooks, without="copies write into the run")
def copies(name: str) -> None:
    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        twin = copy.deepcopy(model)
        train(twin, batches(name), _sgd(twin))
        saved = [_saved(each) for each in (model, model.state_dict(), optimizer)]
        with nethook.suspended(model):
            bare = [_saved(each) for each in (model, model.state_dict(), optimizer)]
        assert saved == bare

    found, said, _ = _lived(name, change)
    assert said == []
    np.testing.assert_array_equal(found["0", "outputs"]["count"], [128.0] * (BEFORE + AFTER))
    np.testing.assert_allclose(_weights(found), _expected(name, lambda *_: None), rtol=1e-6)


def _weights_once() -> Any:
    """Weights are read in the first step alone."""
    from nethook.watching.measuring.parameters import ParameterSet

    read = ParameterSet.weights
    seen: WeakSet[ParameterSet] = WeakSet()

    def once(self: ParameterSet) -> None:
        if self not in seen:
            seen.add(self)
            read(self)

    return patched("nethook.watching.measuring.parameters.ParameterSet.weights", once)


@cell("watch", LOADED, "mlp", guard=_weights_once, without="weights seem not to change")
def loaded(name: str) -> None:
    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        model.load_state_dict(_doubled(name))

    found, said, _ = _lived(name, change)
    assert said == []
    np.testing.assert_allclose(_weights(found), _expected(name, change), rtol=1e-6)


@cell("watch", ASSIGNED, "mlp", guard=_parameters_stay, without="parameters are no longer measured")
def assigned(name: str) -> None:
    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        model.load_state_dict(_doubled(name), assign=True)
        return _sgd(model)

    found, said, _ = _lived(name, change)
    assert len(said) == 1
    assert "are other tensors now, and an optimizer holds them" in said[0]
    np.testing.assert_allclose(_weights(found), _expected(name, change), rtol=1e-6)


@cell("watch", STALE, "mlp", guard=_parameters_stay, without="nothing is reported")
def stale(name: str) -> None:
    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        model.load_state_dict(_doubled(name), assign=True)

    _, said, model = _lived(name, change)
    assert len(said) == 1
    assert "whose steps do not change the model: make the optimizer anew" in said[0]
    assert torch.equal(model[0].weight, _doubled(name)["0.weight"])


def _no_second_look() -> Any:
    return patched("nethook.stats.tables.Table.find", lambda self, tensors: True)


@cell(
    "watch",
    CONVERTED,
    "mlp",
    guard=_no_second_look,
    without="bytes of one dtype are read as another",
)
def converted(name: str) -> None:
    for convert in (nn.Module.double, nn.Module.bfloat16):

        def change(model: nn.Module, optimizer: Any, convert: Any = convert) -> None:
            convert(model)

        found, said, _ = _lived(name, change)
        assert said == []
        np.testing.assert_allclose(_weights(found), _expected(name, change), rtol=2e-3)
        np.testing.assert_array_equal(found["0", "outputs"]["count"], [128.0] * (BEFORE + AFTER))


@cell("watch", REPLACED, "mlp", guard=_parameters_stay, without="nothing is reported")
def replaced(name: str) -> None:
    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        model[2] = nn.Linear(16, 5)
        return _sgd(model)

    found, said, _ = _lived(name, change)
    assert len(said) == 2
    assert "are other tensors now" in said[0]
    assert "the modules at '2' were replaced: what the new ones return is not recorded" in said[1]
    assert (found["2.weight", "params"]["count"] == 80).all()
    np.testing.assert_array_equal(found["2", "outputs"]["count"], [40.0] * BEFORE + [0.0] * AFTER)


@cell("watch", TIED, "mlp", guard=_parameters_stay, without="nothing is reported")
def tied(name: str) -> None:
    def tie(model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        model.append(nn.Linear(5, 5))
        model[3].bias = model[2].bias = nn.Parameter(torch.ones(5))
        return _sgd(model)

    found, said, _ = _lived(name, tie)
    assert any("'2.bias'" in each for each in said)
    assert (found["2.bias", "params"]["count"] == 5).all()
    assert found["2.bias", "params"]["mean"][BEFORE] == 1.0


class _Twice(nn.Module):
    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return 2 * weight


def _by_place() -> Any:
    """A parameter is what stands where it stood."""

    def find(self: Any) -> dict[str, torch.Tensor]:
        return {
            each.address: module._parameters.get(key) or torch.zeros(1)
            for each, module, key in self._places
        }

    return patched("nethook.watching.loop.rebinding.Resolver.find", find)


@cell("watch", PARAMETRISED, "mlp", guard=_by_place, without="a parameter seems to be gone")
def parametrised(name: str) -> None:
    def twice(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        parametrize.register_parametrization(model[0], "weight", _Twice())

    def pruned(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        prune.l1_unstructured(model[0], "weight", 0.5)

    for change in (twice, pruned):
        found, said, _ = _lived(name, change)
        assert said == []
        assert (found["0.weight", "params"]["count"] == 160).all()
        assert (found["0.weight", "param_grads"]["count"] == 160).all()


@cell("watch", NORMALISED, "mlp", guard=_parameters_stay, without="nothing is reported")
def normalised(name: str) -> None:
    def change(model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        parametrizations.weight_norm(model[0])
        return _sgd(model)

    found, said, _ = _lived(name, change)
    assert len(said) == 1
    assert "('0.weight') are no longer in the model" in said[0]
    assert (found["2.weight", "params"]["count"] == 80).all()
