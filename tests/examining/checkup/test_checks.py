"""What was measured, compared with what it should be."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nethook.doctor.finding import Finding
from nethook.examining.checkup import checks
from nethook.examining.checkup.modes import Modes
from nethook.examining.checkup.trial import FirstSteps, Trial
from nethook.init.proof.report import FAR, LayerScale, Report


def report(*rows: tuple[float, float], **more: Any) -> Report:
    scales = [
        LayerScale(f"l{index}", f"l{index}.weight", forward, backward, 1.0, 0.0, **more)
        for index, (forward, backward) in enumerate(rows)
    ]
    return Report("Net", tuple(scales), 0.0)


def finding(code: str, severity: Any = "error") -> Finding:
    return Finding(code, severity, "m", "f", sites=("a",))


@pytest.mark.parametrize(
    ("scales", "state", "word"),
    [
        ([1.0, 29.0, 1.0], "ok", None),
        ([1.0, 31.0, 1.0], "bad", "large"),
        ([1.0, 1 / 29, 1.0], "ok", None),
        ([1.0, 1 / 31, 1.0], "bad", "small"),
        ([1.0, 1.0, 1e-6], "ok", None),  # the last layer may be small on purpose
    ],
)
def test_the_signal_over_depth(scales: list[float], state: str, word: str | None) -> None:
    check, found = checks.signal(report(*((scale, 1.0) for scale in scales)))
    assert check.state == state
    assert [f"too {word}" in each.message for each in found] == [True] * (word is not None)


def test_one_layer_is_named_once() -> None:
    check, _ = checks.signal(report((0.493, 1.0), (0.2, 1.0)))  # the last may be small on purpose
    assert check.text == "0.493 (`l0`) times what keeps its scale"
    check, _ = checks.signal(report((0.5, 1.0), (2.0, 1.0)))
    assert check.text == "between 0.5 (`l0`) and 2 (`l1`) times what keeps its scale"


def test_a_signal_vanishes_where_verify_says_so() -> None:
    assert checks.GROWTH == FAR


def test_layers_that_norms_cancel_do_not_count() -> None:
    check, _ = checks.signal(report((1e9, 1.0), cancelled_by="bn"))
    assert check.state == "unknown"


@pytest.mark.parametrize(
    ("grads", "state", "codes"),
    [
        ([1.1e-3, 0.1, 1.0], "ok", []),
        ([0.9e-3, 0.1, 1.0], "bad", ["vanishing-gradient"]),
        ([999.0, 1.0, 1.0], "ok", []),
        ([1001.0, 1.0, 1.0], "bad", ["exploding-gradient"]),
        ([1e-9, 1.0], "ok", []),  # two layers
        ([1.0, math.nan], "unknown", []),
    ],
)
def test_the_gradient_over_depth(grads: list[float], state: str, codes: list[str]) -> None:
    check, found = checks.gradient(report(*((1.0, grad) for grad in grads)))
    assert check.state == state
    assert [each.code for each in found] == codes


@pytest.mark.parametrize(
    ("first", "state"),
    [
        (FirstSteps((), (6.8, 2.3), 6.8), "ok"),
        (FirstSteps((), (7.0, 2.3), 7.0), "bad"),
        (FirstSteps((), (0.1, 2.3), 0.1), "ok"),  # it was trained before
        (FirstSteps((), None, 5.0), "unknown"),
        (FirstSteps((), None, math.nan), "bad"),
    ],
)
def test_the_first_loss(first: FirstSteps, state: str) -> None:
    check, found = checks.initial_loss(first)
    assert check.state == state
    assert bool(found) is (state == "bad" and math.isfinite(first.loss))


def test_inputs() -> None:
    assert checks.inputs({}, [])[0].state == "ok"
    assert checks.inputs({"input": (0.0, 1.0)}, [])[0].text == "input mean 0, spread 1"
    assert checks.inputs({"input": (8.0, 6.1)}, [])[0].state == "note"
    assert checks.inputs({"input": (8.0, 5.9)}, [])[0].state == "ok"
    bad = checks.inputs({"input": (0.0, 1.0)}, [finding("input-collapsed")])[0]
    assert bad.state == "bad"
    assert bad.text.endswith(": input-collapsed")


def test_findings_of_rules_decide_three_checks() -> None:
    assert checks.fit([finding("dead-units")])[0].state == "ok"
    assert checks.fit([finding("output-range")])[0].text == "output-range"
    assert checks.start([])[0].state == "ok"
    assert checks.start([finding("symmetric-init")])[0].text == "equal in `a`"
    assert checks.reachable([], 6)[0].text == "all 6 that are trained get a gradient"
    assert checks.reachable([finding("unused-module", "info")], 6)[0].state == "note"
    assert checks.reachable([finding("no-gradient")], 6)[0].state == "bad"


@pytest.mark.parametrize(
    ("dead", "samples", "state"),
    [
        ({"act": (29, 100)}, 16, "ok"),
        ({"act": (30, 100)}, 16, "bad"),
        ({}, 16, "ok"),
        ({"act": (100, 100)}, 7, "unknown"),
    ],
)
def test_dead_units(dead: dict[str, tuple[int, int]], samples: int, state: str) -> None:
    check, found = checks.units(dead, samples)
    assert check.state == state
    assert bool(found) is (state == "bad")


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (Modes(True, True, (), (), ()), "ok"),
        (Modes(True, False, ("drop",), (), ()), "ok"),
        (Modes(True, False, (), (), ()), "note"),
        (Modes(False, False, (), (), ("x/rand#0",)), "note"),
        (Modes(False, False, (), ("x/dropout#0",), ()), "bad"),
    ],
)
def test_training_and_evaluation(seen: Modes, state: str) -> None:
    check, found = checks.modes(seen)
    assert check.state == state
    assert bool(found) is (state == "bad")


def test_a_few_samples_that_are_not_learnt() -> None:
    flat, falls = Trial("SGD", (2.0,) * 12), Trial("Adam", (2.0,) * 6 + (0.1,) * 6)
    assert checks.overfits([falls], 32, True, [])[0].name == "learns 16 samples"
    assert checks.overfits([falls], 32, True, [])[0].state == "ok"
    assert checks.overfits([flat, falls], 8, False, [])[0].state == "ok"
    check, (with_given,) = checks.overfits([flat, falls], 8, True, [])
    assert (check.state, with_given.severity) == ("bad", "warning")
    _, (with_none,) = checks.overfits([flat, flat], 8, True, [])
    assert with_none.severity == "error"
    assert not checks.overfits([flat], 8, True, [finding("no-gradient")])[1]  # that is the cause
