"""The rule `train-mode-evaluation`: when it reports, and when it does not."""

from __future__ import annotations

import pytest

from nethook.doctor.rules.loop import train_mode_evaluation
from tests.doctor.ill import ON, modes, stuck, well


def test_two_evaluations_with_dropout_on() -> None:
    made = modes("dropout", ON, calls=30).loss([2.0, 1.9], "e", "eval")
    (finding,) = made.found("train-mode-evaluation")
    assert finding.message.startswith("2 evaluations ran with `modal` in training mode: dropout")
    once = modes("dropout", ON, calls=30).loss([2.0], "e", "eval")
    assert not once.found("train-mode-evaluation")


def test_evaluations_without_a_loss_are_counted() -> None:
    made = modes("norm", ON, calls=30)
    made.info["totals"] = {"evaluations": 2}
    (finding,) = made.found("train-mode-evaluation")
    assert "batch norm judges each sample by its batch" in finding.message


def test_a_single_evaluation_of_a_norm_is_a_question() -> None:
    made = modes("norm", ON, calls=30)
    made.info["totals"] = {"evaluations": 1}
    (finding,) = made.found("train-mode-evaluation")
    assert finding.severity == "info"
    assert finding.message.endswith("Is that meant, to bring its statistics up to date?")
    made.loss([2.0], "e", "eval")  # somebody has asked how good it is
    (finding,) = made.found("train-mode-evaluation")
    assert finding.severity == "warning"


def test_a_single_pass_that_is_followed_by_an_evaluation() -> None:
    # `update_bn`, and then `eval()`: the statistics were brought up to date.
    made = modes("norm", ON, [200, "eval", True], [200, "eval", False], calls=30)
    made.info["totals"] = {"evaluations": 1}
    assert not made.found("train-mode-evaluation")


def test_a_single_pass_with_dropout() -> None:
    made = modes("dropout", ON, calls=30)
    made.info["totals"] = {"evaluations": 1}
    assert not made.found("train-mode-evaluation")


def test_what_the_pre_flight_check_reports() -> None:
    finding = train_mode_evaluation.before_training(("fc/dropout#0",))
    assert "two passes over one batch differ (`fc/dropout#0`)" in finding.message
    assert finding.sites == ("fc/dropout#0",)


def test_norms_that_are_written_in_evaluation_mode() -> None:
    made = stuck()
    made.info["written_in_evaluation"] = {"buffers": ["a.mean", "a.var", "b.mean"], "step": 40}
    (finding,) = made.found("train-mode-evaluation")
    assert finding.sites == ("a", "b")
    assert finding.first_step == 40
    assert "depends on the others in its batch" in finding.message
    made.info["written_in_evaluation"] = {"buffers": [], "step": 40}
    assert not made.found("train-mode-evaluation")


def test_samples_one_by_one() -> None:
    made = modes("norm", ON, calls=30)
    made.info |= {"totals": {"evaluations": 1}, "single_samples": 160}
    (finding,) = made.found("train-mode-evaluation")
    assert finding.message.startswith("one evaluation ran with")


def test_a_network_that_was_loaded_and_asked_in_training_mode() -> None:
    made = well()
    made.info["loaded_twins"] = [{"layers": ["1", "4"]}]
    (finding,) = made.found("train-mode-evaluation")
    assert finding.severity == "info"
    assert finding.sites == ("1", "4")
    assert "weights were loaded into another network" in finding.message
    assert not well().found("train-mode-evaluation")


@pytest.mark.parametrize("kind", ["norm", "dropout"])
def test_layers_that_were_put_back_by_themselves_are_a_question(kind: str) -> None:
    """`model.eval()`, and then `.train()` of each norm or dropout: adaptation, or sampling."""
    made = modes(kind, ON, [200, "eval", True], calls=30).loss([2.0, 1.9], "e", "eval")
    made.module("other", activation="linear", modes=[ON, [200, "eval", False]])
    (finding,) = made.found("train-mode-evaluation")
    assert finding.severity == "info"
    assert finding.message.endswith("The layers beside were in evaluation mode: is that meant?")


def test_half_a_network_that_is_left_in_training_mode() -> None:
    """`model.encoder.eval()` alone: the whole decoder is in training mode."""
    made = stuck()
    for at, (name, training) in enumerate((("encoder", False), ("decoder", True))):
        for layer, kind in (("fc", "linear"), ("norm", "norm")):
            made.module(
                f"{name}.{layer}", activation=kind, first_call=at, calls={"train": 200, "eval": 30},
                modes=[ON, [200, "eval", training]] if not training else [ON],
            )  # fmt: skip
    made.loss([2.0, 1.9], "e", "eval")
    (finding,) = made.found("train-mode-evaluation")
    assert finding.severity == "warning"
    assert finding.sites == ("decoder.norm",)
