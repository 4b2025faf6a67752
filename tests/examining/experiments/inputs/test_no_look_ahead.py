"""No look ahead."""

from __future__ import annotations

import torch

from nethook.examining.experiments.inputs.no_look_ahead import NoLookAhead
from tests.examining.experiments.healthy import HEALTHY
from tests.examining.experiments.ill import ILL


def test_how_far_it_sees() -> None:
    torch.manual_seed(0)
    whole = NoLookAhead().run(ILL["no_causal_mask"][1]().rehearsal())
    assert (whole.outcome, whole.facts["reach"], whole.facts["shift"]) == ("found", -1, 1)
    near = NoLookAhead().run(ILL["convolution_padded_on_both_sides"][1]().rehearsal())
    assert (near.outcome, near.facts["reach"]) == ("found", 2)


def test_an_encoder_may_read_everything() -> None:
    result = NoLookAhead().run(HEALTHY["sentence_autoencoder_with_teacher_forcing"]().rehearsal())
    assert result.outcome == "question"
    assert "on purpose" in result.reason


def test_an_input_of_the_decoder_decides() -> None:
    result = NoLookAhead().run(HEALTHY["translation_that_copies_its_source"]().rehearsal())
    assert result.outcome == "fine"


def test_where_it_does_not_apply() -> None:
    assert "no part of the inputs" in (
        NoLookAhead().applies(HEALTHY["masked_language_model"]().rehearsal()) or ""
    )
    result = NoLookAhead().run(HEALTHY["autoencoder"]().rehearsal())
    assert result.outcome == "not applicable"
