"""No experiment finds a fault in a healthy step, and each finds its own faults and no others'."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest
import torch

from nethook.examining.examine import every_experiment
from nethook.examining.experiment import Experiment, NotReplayableError, Result
from nethook.examining.experiments.inputs.input_matters import InputMatters
from nethook.examining.experiments.inputs.loader_reaches_all import LoaderReachesAll
from nethook.examining.experiments.inputs.mask_matters import MaskMatters
from nethook.examining.experiments.inputs.no_look_ahead import NoLookAhead
from nethook.examining.experiments.inputs.order_matters import OrderMatters
from nethook.examining.experiments.inputs.padding_adds_nothing import PaddingAddsNothing
from nethook.examining.experiments.inputs.words_matter import WordsMatter
from nethook.examining.experiments.network.axes_keep_their_meaning import AxesKeepTheirMeaning
from nethook.examining.experiments.network.evaluation_repeats import EvaluationRepeats
from nethook.examining.experiments.network.samples_independent import SamplesIndependent
from nethook.examining.experiments.network.softmax_has_a_choice import SoftmaxHasAChoice
from nethook.examining.experiments.targets.episodes_end import EpisodesEnd
from nethook.examining.experiments.targets.every_term_has_a_gradient import EveryTermHasAGradient
from nethook.examining.experiments.targets.input_and_target_lie_alike import InputAndTargetLieAlike
from nethook.examining.experiments.targets.loss_scores_what_differs import LossScoresWhatDiffers
from nethook.examining.experiments.targets.rows_meet_targets import RowsMeetTargets
from nethook.examining.experiments.targets.targets_are_signs import TargetsAreSigns
from nethook.examining.experiments.targets.what_the_target_is import WhatTheTargetIs
from tests.examining.experiments import healthy_losses, healthy_sequences  # noqa: F401
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
OTHERS = (
    AxesKeepTheirMeaning(),
    SoftmaxHasAChoice(),
    EveryTermHasAGradient(),
    PaddingAddsNothing(),
    OrderMatters(),
    MaskMatters(),
    LoaderReachesAll(),
    EpisodesEnd(),
    TargetsAreSigns(),
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


ASKED: Final = {  # what looks exactly like a fault, and may be meant
    "samples are independent": {
        "set_transformer_scores_elements", "experts_with_limited_room",
        "experts_for_tokens_with_limited_room",
    },
    "evaluation repeats itself": {
        "monte_carlo_dropout", "monte_carlo_dropout_layer", "noise_as_an_input_of_a_generator",
        "variational_autoencoder",
        # They draw what they hide.
        "tokens_masked_in_the_model", "tokens_masked_of_which_some_stay",
    },
    "no look ahead": {"sentence_autoencoder_with_teacher_forcing"},
    "what the target is": {"recall_of_the_first_value"},
    "a softmax has a choice": {"attention_over_one_step"},
    "the mask matters": {"a_weight_for_each_place"},
    "the order matters": {  # bags of words, and attention without positions
        "bag_of_words", "bag_of_words_with_padding_left_out", "mask_weighs_the_mean",
        "mask_of_the_largest", "mask_that_the_model_makes_itself", "several_padded_inputs",
        "padding_whose_embedding_is_zero", "attention_over_steps", "queries_of_one_key",
        "gate_of_parts", "heads_of_an_attention", "scores_without_their_last_axis",
        "experts_for_tokens_with_limited_room",
    },
}  # fmt: skip

HARD: Final = {
    "samples are independent": {
        "set_transformer_scores_elements", "experts_with_limited_room", "batch_norm_in_training",
        "mixup_in_the_forward", "sorted_by_length_in_the_model",
        "rollouts_time_first", "packed_and_sorted", "advantages_normalised_over_the_batch",
    },
    "predictions line up with targets": {
        "rollouts_time_first_permuted", "segmentation_channels_last",
        "several_heads_each_further_ahead", "language_model_shifts_after_the_forward",
        "packed_and_sorted", "tagger_that_reads_both_ways", "recurrent_language_model_time_first",
    },
    "no look ahead": {
        "language_model_shifts_after_the_forward", "several_heads_each_further_ahead",
        "translation_that_copies_its_source", "sentence_autoencoder_with_teacher_forcing",
        "overlapping_windows_seen_backwards_only", "prefix_language_model",
    },
    "what the target is": {
        "autoencoder", "masked_convolution_of_pixels", "echo_of_earlier_steps",
        "recall_of_the_first_value", "translation_that_copies_its_source",
        "text_autoencoder_without_its_first_word", "padded_sentences_written_again",
    },
    "evaluation repeats itself": {
        "dropout_as_it_should_be", "monte_carlo_dropout", "variational_autoencoder",
        "noise_as_an_input_of_a_generator", "stochastic_depth_written_by_hand",
        "tokens_masked_in_the_model", "batch_norm_in_training",
    },
    "the input matters": {
        "noise_as_an_input_of_a_generator", "physics_with_second_derivatives",
        "variational_autoencoder", "learning_the_identity", "two_inputs_in_a_dict",
        "padded_on_the_left",
    },
    "the words matter": {
        "mask_is_for_the_loss_alone", "padded_on_the_left", "last_word_by_its_length",
        "several_padded_inputs", "whole_numbers_that_are_no_words", "mask_tells_lengths",
    },
    "input and target lie alike": {
        "pictures_and_masks_mirrored_together", "masks_of_noise", "symmetric_pictures",
        "depth_that_grows_downwards", "maps_with_channels_last", "masks_that_are_mostly_empty",
        "maps_of_other_pictures",
    },
    "the loss scores what differs": {
        "padding_left_out_by_a_mask", "only_what_is_there_is_located",
        "positive_and_unlabelled_places", "answers_count_and_questions_do_not",
        "frames_after_the_end_left_out", "mask_is_for_the_loss_alone",
    },
    "axes keep their meaning": {
        "pictures_cut_into_patches", "channels_shuffled_between_groups", "heads_of_an_attention",
        "positions_shifted_against_each_other", "frames_stacked_by_two",
        "segmentation_channels_last", "encoder_and_decoder_of_a_library",
    },
    "a softmax has a choice": {
        "attention_over_steps", "attention_of_several_heads_over_one_step",
        "attention_over_one_step", "queries_of_one_key", "gate_of_parts",
        "scores_without_their_last_axis",
    },
    "every term has a gradient": {
        "clip_returns_both_tables", "hinge_of_a_critic", "mixup_in_the_forward",
        "several_heads_each_further_ahead", "variational_autoencoder",
    },
    "padding adds nothing": {
        "mask_weighs_the_mean", "mask_of_an_attention", "mask_of_the_largest",
        "bag_of_words_with_padding_left_out", "last_word_by_its_length",
        "padding_whose_embedding_is_zero", "mask_tells_lengths",
    },
    "the order matters": {
        "distances_count_and_directions_do_not", "sines_for_positions", "steps_side_by_side",
        "read_both_ways_and_averaged", "convolution_over_time", "bag_of_words",
    },
    "the mask matters": {
        "mask_weighs_the_mean", "mask_of_an_attention", "mask_tells_lengths",
        "mask_is_for_the_loss_alone", "tags_of_a_decoder_with_its_mask_for_the_loss",
        "mask_that_the_model_makes_itself", "padding_whose_embedding_is_zero",
        "a_weight_for_each_place",
    },
    "the loader reaches every sample": {
        "a_weight_for_each_sample", "samples_left_out_by_a_weight_of_zero",
        "weights_of_a_part_of_the_data", "samples_in_order", "a_few_draws_of_many_weights",
    },
    "episodes end": {
        "episodes_end_by_a_factor", "episodes_end_by_a_choice", "episodes_end_by_a_filled_mask",
        "a_discount_for_each_row", "episodes_end_by_writing_zeros",
        "values_with_an_entropy_for_each_row",
    },
    "targets are signs": {
        "pairs_pulled_and_pushed", "pairs_that_all_belong_together", "rankings_of_pairs",
        "hinge_of_signs", "soft_margin_of_signs",
    },
}  # fmt: skip
"""Experiment -> steps that it looks at, and in which dependence, order or randomness is meant.

Those on trained weights ("answers fit their samples", "it can learn at all") find nothing by
themselves; their healthy steps are in their own tests.
"""


@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_nothing_is_found_in_a_healthy_step(name: str) -> None:
    torch.manual_seed(0)
    outcomes = {
        result.experiment: result.outcome
        for result in results(HEALTHY[name](), (*EXPERIMENTS, *OTHERS))
    }
    assert not [experiment for experiment, outcome in outcomes.items() if outcome == "found"]
    asked = {experiment for experiment, outcome in outcomes.items() if outcome == "question"}
    assert asked <= {experiment for experiment, names in ASKED.items() if name in names}
    for experiment, names in HARD.items():
        assert name not in names or outcomes.get(experiment) in ("fine", "question")


def test_every_experiment_has_at_least_five_hard_negatives() -> None:
    assert set(HARD) == {experiment.name for experiment in (*EXPERIMENTS, *OTHERS)}
    for names in HARD.values():
        assert len(names) >= 5
        assert names <= set(HEALTHY)
    trained = {"answers fit their samples", "it can learn at all"}
    assert {experiment.name for experiment in every_experiment()} == {*HARD, *trained}


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
