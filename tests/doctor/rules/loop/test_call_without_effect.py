"""The rule `call-without-effect`: when it reports, and when it does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nethook.doctor.rules.loop.call_without_effect import clips_too_late
from tests.doctor.ill import calls, graph, misspelt, stuck
from tests.doctor.small_runs import Net, codes, findings, train
from tests.doctor.synthetic import Made


def test_the_finding_has_the_name_and_its_line() -> None:
    (finding,) = misspelt().found("call-without-effect")
    assert finding.message.startswith("`require_grad = False` was set on `a.weight` and `a.bias`")
    assert "torch knows `requires_grad`, which is still True" in finding.message
    assert finding.fix == "Write parameter.requires_grad = False."
    assert finding.lines == ("train.py:8",)


def test_a_module_has_no_such_switch() -> None:
    made = misspelt(of="module", name="requires_grad", meant="requires_grad_()", sites=["first"])
    (finding,) = made.found("call-without-effect")
    assert "a module has no switch of that name" in finding.message
    assert finding.fix == "Write module.requires_grad_(False)."


@pytest.mark.parametrize(
    "name", ["require_grad", "requires_grads", "requires_gard", "Requires_grad"]
)
def test_a_slip_on_a_parameter(tmp_path: Path, name: str) -> None:
    model = Net()
    for parameter in model.first.parameters():
        setattr(parameter, name, False)
    (first, *_) = findings(tmp_path, model, train)
    assert first.code == "call-without-effect"
    assert first.sites == ("first.weight", "first.bias")


def test_a_switch_on_a_module(tmp_path: Path) -> None:
    model = Net()
    model.first.requires_grad = False
    (first, *_) = findings(tmp_path, model, train)
    assert (first.code, first.sites) == ("call-without-effect", ("first",))


class Configured(Net):
    """An option of its own that happens to have that name."""

    def __init__(self) -> None:
        super().__init__()
        self.requires_grad = False


def test_hard_negatives(tmp_path: Path) -> None:
    # What other libraries set on parameters.
    model = Net()
    for parameter in model.parameters():
        for name in (
            "no_weight_decay",
            "sequence_parallel",
            "is_norm",
            "_is_hf_initialized",
            "grad_ok",
        ):
            setattr(parameter, name, False)
    assert codes(tmp_path / "a", model, train) == [""]

    # The switch says the same.
    model = Net()
    for parameter in model.first.parameters():
        parameter.require_grad = False
        parameter.requires_grad = False
    assert "call-without-effect" not in codes(tmp_path / "b", model, train)

    # The class sets it itself.
    assert codes(tmp_path / "c", Configured(), train) == [""]

    # On a module whose parameters are frozen, too.
    model = Net()
    model.first.requires_grad_(False)
    model.first.requires_grad = False
    assert "call-without-effect" not in codes(tmp_path / "d", model, train)

    # A value that is no switch.
    model = Net()
    model.first.weight.requires_grads = "see below"
    assert codes(tmp_path / "e", model, train) == [""]


@pytest.mark.parametrize(
    ("order", "late"),
    [
        ("zero_grad forward backward step clip", True),
        ("forward backward step zero_grad clip", True),
        ("zero_grad clip forward backward step", True),
        ("forward zero_grad backward unscale step update clip schedule", True),
        ("zero_grad forward backward clip step", False),
        ("zero_grad forward backward unscale clip step update", False),
        ("forward backward step clip", False),  # it clips what the next pass adds to
        ("zero_grad forward backward step clip step", False),  # of a second optimizer
        ("zero_grad forward backward clip step forward backward step clip", False),
        ("zero_grad forward backward clip skipped-step", False),
    ],
)
def test_orders_of_calls(order: str, late: bool) -> None:
    assert clips_too_late(order.split()) is late


def test_clipping_names_its_line() -> None:
    first, later = ["forward", "backward", "step", "clip"], "zero_grad forward backward step clip"
    (finding,) = calls(first, later.split()).found("call-without-effect")
    assert finding.lines == ("train.py:12",)
    assert finding.severity == "warning"  # the run does its job
    assert "clipped 200 times" in finding.message


def test_a_state_that_was_kept_by_reference() -> None:
    made = graph(stuck(), loads=[{"line": "train.py:60", "writes": 240}])
    (finding,) = made.found("call-without-effect")
    assert finding.lines == ("train.py:60",)
    assert "240 updates before, by reference" in finding.message
    assert not graph(stuck(), loads=[{"line": "", "writes": 2}]).found("call-without-effect")


def scheduled(asked: float | None, *rates: float, steps: float = 0.0) -> Made:
    """An optimizer that a scheduler was made for, with these rates."""
    made = stuck().rate(*rates).loop("schedules", steps)
    group = {"weight_decay": 0.0} | ({} if asked is None else {"initial_lr": asked})
    return made.event("groups", optimizer="0", groups=[group])


def test_a_scheduler_that_never_steps() -> None:
    (finding,) = scheduled(2e-3, *[2e-5] * 200).found("call-without-effect")
    assert finding.severity == "warning"
    assert "has stayed at 2e-05, and the optimizer was made with 0.002." in finding.message
    (finding,) = scheduled(2e-3, *[2e-3] * 200).found("call-without-effect")
    assert finding.severity == "info"


def test_rates_that_are_no_fault_of_a_scheduler() -> None:
    assert not scheduled(None, *[2e-3] * 200).found("call-without-effect")
    assert not scheduled(2e-3, *[2e-5] * 200, steps=0.01).found("call-without-effect")
    by_hand = np.geomspace(2e-3, 1e-5, 200)
    assert not scheduled(2e-3, *by_hand).found("call-without-effect")
    cut = scheduled(2e-3, *[2e-5] * 200)
    cut.info["ended"] = {"error": "KeyboardInterrupt", "interrupted": True}
    assert not cut.found("call-without-effect")


def test_a_network_that_is_given_its_own_state() -> None:
    (finding,) = graph(stuck(), same_loads=[{"line": "train.py:60", "times": 40}]).found(
        "call-without-effect"
    )
    assert "(train.py:60) gave a network its own state 40 times" in finding.message
    assert finding.lines == ("train.py:60",)
    twice = graph(stuck(), same_loads=[{"line": "", "times": 2}])
    assert not twice.found("call-without-effect")


def test_a_state_of_which_no_name_fits() -> None:
    load = {
        "line": "train.py:9", "given": 8, "wanted": 6, "fits": 6, "one_given": "model.a.weight",
        "one_wanted": "a.weight",
    }  # fmt: skip
    (finding,) = graph(stuck(), unmatched_loads=[load]).found("call-without-effect")
    assert "none of the 8 names that it was given (`model.a.weight`, …)" in finding.message
    assert "Without what they begin with, 6 of them would fit." in finding.message
    (other,) = graph(stuck(), unmatched_loads=[{**load, "fits": 0}]).found("call-without-effect")
    assert "would fit" not in other.message


def test_weights_that_were_loaded_and_written_over() -> None:
    load = {"line": "train.py:8", "weights": 2, "names": ["a.weight", "b.weight"]}
    (finding,) = graph(stuck(), lost_loads=[load]).found("call-without-effect")
    assert finding.severity == "warning"
    assert "(train.py:8) filled `a.weight` and `b.weight`" in finding.message
    assert finding.lines == ("train.py:8",)
