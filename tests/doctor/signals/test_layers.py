"""Layers as rules see them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nethook.doctor.signals.layers import (
    activated_by,
    fades,
    first_layer,
    gradient_profile,
    late,
    leaves,
    measured,
    mode_changes,
    near_ends,
    norm_of_weights,
    pairs,
    profile,
    saturated_layers,
    stopped_layers,
    weighted,
)
from tests.doctor.ill import layers
from tests.doctor.synthetic import Made


def test_leaves_come_in_the_order_of_their_first_calls() -> None:
    made = Made().module("b", first_call=1).module("a", first_call=0)
    made.module("idle", first_call=None).module("block", leaf=False)
    assert [module.address for module in leaves(made.history())] == ["a", "b"]


def test_norms_have_weights_and_are_not_layers() -> None:
    made = Made().module("fc", parameters=["w"]).module("bn", activation="norm", parameters=["s"])
    made.module("relu")
    assert [module.address for module in weighted(made.history())] == ["fc"]


@pytest.mark.parametrize(
    ("dtype", "kind"), [("int64", "embedding"), ("bool", "embedding"), ("float32", "norm")]
)
def test_the_first_layer(dtype: str, kind: str) -> None:
    made = Made().module("bn", activation="norm")
    made.series("", "inputs", mean=0.0, info={"dtype": dtype})
    assert first_layer(made.history()) == kind
    assert first_layer(Made().history()) == ""


def test_thinned_curves_end_where_they_end() -> None:
    curve = Made().loop("grad_norm", np.arange(200.0)).history().loop("grad_norm")
    assert late(curve, 200).step[0] == 100
    thinned = curve.where(curve.step % 64 == 0)  # 0, 64, 128, 192
    assert late(thinned, 200).step.tolist() == [64, 128, 192]
    assert measured(thinned, thinned.since(100), least=2).step.tolist() == [128, 192]


def test_functions_after_layers() -> None:
    made = Made().module("fc", activation="linear").module("act", activation="bounded")
    made.info["ops"] = [
        {"site": "fc", "op": "linear", "from": []},
        {"site": "", "op": "tanh", "from": [0]},
        {"site": "act", "op": "sigmoid", "from": [0]},  # a module has numbers of its own
        {"site": "", "op": "cos", "from": [0]},
        "nonsense",
    ]
    assert activated_by(made.history()) == {"fc": "tanh"}


@pytest.mark.parametrize(("name", "slope"), [("tanh", np.tanh), ("sigmoid", None)])
def test_the_share_near_the_ends_of_a_function(name: str, slope: object) -> None:
    made = Made().module("fc", activation="linear")
    made.series("fc", "outputs", mean=0.7, std=3.0)
    history = made.history()
    share = near_ends(history, leaves(history)[0], {"fc": name}).value[0]
    inputs = np.random.default_rng(0).normal(0.7, 3.0, 400_000)
    outputs = np.tanh(inputs) if slope is not None else 1 / (1 + np.exp(-inputs))
    low, high = (-0.97, 0.97) if slope is not None else (0.03, 0.97)
    counted = np.mean((outputs < low) | (outputs > high))
    assert share == pytest.approx(counted, abs=3e-3)


def test_saturated_and_stopped_layers() -> None:
    made = Made()
    for name, share in {"half": 0.5, "most": 0.9, "all": 1.0}.items():
        made.module(name, activation="bounded").series(name, "outputs", near_share=share)
    made.module("dead", activation="rectifier").series("dead", "outputs", zero_share=1.0)
    made.module("alive", activation="rectifier").series("alive", "outputs", zero_share=0.9)
    assert saturated_layers(made.history()) == {"most": 0.9, "all": 1.0}
    assert stopped_layers(made.history()) == ["all", "dead"]


def test_profiles_over_depth() -> None:
    history = layers(Made(), a=1e-4, b=1e-2, c=1.0).history()
    assert gradient_profile(history, 0, 10) == [("a", 1e-4), ("b", 1e-2), ("c", 1.0)]
    assert profile(history, "outputs", "rms", weighted(history), 0, 10) == [
        ("a", 1.0), ("b", 1.0), ("c", 1.0),
    ]  # fmt: skip
    assert fades(history)
    assert not fades(history, 1e-5)
    assert not fades(layers(Made(), a=1e-9, b=1.0).history())  # two layers
    sizes = [("a", 1.0), ("b", 0.0), ("c", math.nan), ("d", math.inf), ("e", 2.0)]
    assert list(pairs(sizes)) == [("a", 1.0), ("e", 2.0)]


def test_the_norm_of_all_weights() -> None:
    made = Made().parameter("a", elements=9).series("a", "params", rms=2.0)
    made.parameter("b", elements=64).series("b", "params", rms=np.r_[1.0, np.full(199, 50.0)])
    assert norm_of_weights(made.history()) == pytest.approx(math.sqrt(9 * 4 + 64))
    assert norm_of_weights(Made().history()) == 1.0


def test_changes_of_a_mode_by_phase() -> None:
    changes = [[0, "train", True], [5, "eval", False], [6, "train", False], ["damaged"]]
    (module,) = Made().module("bn", modes=changes).history().modules
    assert mode_changes(module, "train") == [(0, True), (6, False)]
    assert mode_changes(module, "eval") == [(5, False)]
    (without,) = Made().module("bn", modes=None).history().modules
    assert mode_changes(without, "train") == []
