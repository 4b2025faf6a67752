"""The rule `train-mode-evaluation`: when it reports, and when it does not."""

from __future__ import annotations

from nethook.doctor.rules.loop import train_mode_evaluation
from tests.doctor.ill import ON, modes, stuck


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
