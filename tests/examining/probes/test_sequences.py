"""Sequences whose target is the sequence itself."""

from __future__ import annotations

import pytest
import torch

from nethook.examining.probes.sequences import Layout, aligned_inputs, followed, scored_rows
from tests.examining.experiments.healthy import HEALTHY
from tests.examining.experiments.ill import ILL


@pytest.mark.parametrize(
    ("name", "shift", "reach"),
    [
        ("language_model", 1, 0),
        ("language_model_of_probabilities_by_hand", 1, 0),
        ("bigram_table", 1, 0),
        ("prefix_language_model", 1, 0),
        ("prefix_language_model_masked_by_weights", 1, 0),
        ("recurrent_language_model_time_first", 1, 0),
        ("overlapping_windows_seen_backwards_only", 1, 0),
        ("masked_convolution_of_pixels", 0, -1),
        ("text_autoencoder_without_its_first_word", 0, None),
    ],
)
def test_healthy_models(name: str, shift: int, reach: int | None) -> None:
    torch.manual_seed(0)
    (told,) = followed(HEALTHY[name]().rehearsal())
    assert told.shift_of_output == shift
    if reach is None:
        assert told.reach is None
    else:
        assert told.reach is not None
        assert told.reach - (told.offset or 0) == reach


@pytest.mark.parametrize(
    ("name", "shift", "reach"),
    [
        ("no_causal_mask", 1, None),
        ("convolution_padded_on_both_sides", 1, 2),
        ("labels_not_shifted", 0, 0),
        ("labels_shifted_twice_by_a_library", 2, 0),
        ("recurrent_model_of_its_own_input", 0, 0),
    ],
)
def test_faults(name: str, shift: int, reach: int | None) -> None:
    torch.manual_seed(0)
    told = followed(ILL[name][1]().rehearsal())[0]
    assert (told.shift, told.reach) == (shift, reach)


def test_only_what_the_loss_scores_counts() -> None:
    rehearsal = HEALTHY["prefix_language_model_masked_by_weights"]().rehearsal()
    rows = scored_rows(rehearsal)
    assert rows.shape == (8, 13)
    assert not rows[:, :5].any()
    assert rows[:, 5:].all()


def test_targets_that_are_something_else() -> None:
    for name in ("classifier", "masked_language_model", "translation_that_copies_its_source"):
        expected = name.startswith("translation")
        assert aligned_inputs(HEALTHY[name]().rehearsal()) == expected


def test_layouts() -> None:
    x = torch.arange(24).reshape(2, 3, 4)
    assert Layout(0).sequence(x).shape == (2, 3, 4)
    assert torch.equal(Layout(0, samples=1, time=0).sequence(x)[:, :, 0], x[:, :, 0].T)
    channels = Layout(0, samples=0, time=2, steps=4)
    assert torch.equal(channels.sequence(x)[1, 2], x[1, :, 2])
    rows = channels.rows(x, 2)
    assert rows is not None
    assert torch.equal(rows[1, 2], x[1, :, 2])
    assert channels.rows(x.reshape(-1), 2) is None
    flat = Layout(0, samples=1, time=0, steps=3).rows(torch.arange(6), 2)
    assert flat is not None
    assert flat[..., 0].tolist() == [[0, 2, 4], [1, 3, 5]]
