"""No experiment finds a fault in a healthy step, and each finds its own faults and no others'."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from nethook.examining.experiment import Experiment, NotReplayableError, Result
from nethook.examining.experiments.inputs.input_matters import InputMatters
from nethook.examining.experiments.inputs.no_look_ahead import NoLookAhead
from nethook.examining.experiments.inputs.order_matters import OrderMatters
from nethook.examining.experiments.inputs.padding_adds_nothing import PaddingAddsNothing
from nethook.examining.experiments.inputs.words_matter import WordsMatter
from nethook.examining.experiments.network.axes_keep_their_meaning import AxesKeepTheirMeaning
from nethook.examining.experiments.network.evaluation_repeats import EvaluationRepeats
from nethook.examining.experiments.network.samples_independent import SamplesIndependent
from nethook.examining.experiments.network.softmax_has_a_choice import SoftmaxHasAChoice
from nethook.examining.experiments.targets.every_term_has_a_gradient import EveryTermHasAGradient
from nethook.examining.experiments.targets.input_and_target_lie_alike import InputAndTargetLieAlike
from nethook.examining.experiments.targets.loss_scores_what_differs import LossScoresWhatDiffers
from nethook.examining.experiments.targets.rows_meet_targets import RowsMeetTargets
from nethook.examining.experiments.targets.what_the_target_is import WhatTheTargetIs
from tests.examining.experiments.healthy import HEALTHY
from tests.examining.experiments.ill import ILL, MATTERS
from tests.examining.experiments.steps import Step

EXPERIMENTS = (
    SamplesIndependent(),
    RowsMeetTargets(),
    NoLookAhead(),
    WhatTheTargetIs(),
    EvaluationRepeats(),
    InputMatters(),
    WordsMatter(),
    InputAndTargetLieAlike(),
    LossScoresWhatDiffers(),
)  # fmt: skip
OF_SHAPES = (
    AxesKeepTheirMeaning(),
    SoftmaxHasAChoice(),
    EveryTermHasAGradient(),
    PaddingAddsNothing(),
    OrderMatters(),
)
"""They have faulty steps in files of their own."""


def results(step: Step, experiments: Sequence[Experiment] = EXPERIMENTS) -> list[Result]:
    rehearsal = step.rehearsal()
    assert rehearsal.replayable, rehearsal.why_not
    made = []
    with torch.no_grad():  # as examinations run in a script's step
        for experiment in experiments:
            if experiment.applies(rehearsal) is None:
                try:
                    made.append(experiment.run(rehearsal))
                except NotReplayableError as error:
                    made.append(Result(experiment.name, "not applicable", str(error)))
    return made


ASKED = {  # what looks exactly like a fault, and may be meant
    "set_transformer_scores_elements", "experts_with_limited_room", "monte_carlo_dropout",
    "noise_as_an_input_of_a_generator", "experts_for_tokens_with_limited_room",
    "sentence_autoencoder_with_teacher_forcing", "recall_of_the_first_value",
    "variational_autoencoder", "monte_carlo_dropout_layer",
    "tokens_masked_in_the_model", "tokens_masked_of_which_some_stay",  # they draw what they hide
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_nothing_is_found_in_a_healthy_step(name: str) -> None:
    torch.manual_seed(0)
    outcomes = {
        result.experiment: result.outcome
        for result in results(HEALTHY[name](), (*EXPERIMENTS, *OF_SHAPES))
    }
    assert "found" not in outcomes.values()
    assert ("question" in outcomes.values()) <= (name in ASKED)


@pytest.mark.parametrize("name", sorted(ILL))
def test_a_fault_is_found_by_its_own_experiment(name: str) -> None:
    torch.manual_seed(0)
    expected, make = ILL[name]
    found = [result.experiment for result in results(make()) if result.outcome == "found"]
    assert found == [expected]


def test_every_experiment_has_its_hard_negatives_and_faults() -> None:
    assert len(HEALTHY) > 2 * len(ILL)
    for experiment in EXPERIMENTS:
        faults = [name for name, (expected, _) in ILL.items() if expected == experiment.name]
        assert len(faults) >= (2 if experiment.name == MATTERS else 4)
