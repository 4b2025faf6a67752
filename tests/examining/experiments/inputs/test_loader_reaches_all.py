"""The loader reaches every sample."""

from __future__ import annotations

import dataclasses

import torch
from torch.nn import functional as F

from nethook.examining.batch_facts import LoaderFacts
from nethook.examining.experiments.inputs.loader_reaches_all import LoaderReachesAll
from nethook.examining.rehearsal import Rehearsal
from tests.examining.experiments.healthy import mlp
from tests.examining.experiments.steps import step


def loaded(loader: LoaderFacts | None) -> Rehearsal:
    y = torch.randn(8, 3)
    made = step(mlp(4, 3), torch.randn(8, 4), then=lambda out: F.mse_loss(out, y)).rehearsal()
    made.history = dataclasses.replace(made.history, loader=loader)
    return made


def test_fewer_weights_than_samples() -> None:
    result = LoaderReachesAll().run(loaded(LoaderFacts(8, True, True, 700, 10)))
    assert result.outcome == "found"
    assert result.facts == {"within_reach": 10, "samples": 700}


def test_a_weight_for_each_sample() -> None:
    assert LoaderReachesAll().run(loaded(LoaderFacts(8, True, True, 700, 700))).outcome == "fine"


def test_samples_in_order_are_counted() -> None:
    result = LoaderReachesAll().run(loaded(LoaderFacts(8, True, False, 700)))
    assert result.outcome == "fine"
    assert result.facts == {"samples": 700, "in_order": True}


def test_other_samplers_do_not_say() -> None:
    for loader in (
        None,
        LoaderFacts(8, True),  # one of the script's own
        LoaderFacts(8, True, True, 700),  # all of them, in turn
        LoaderFacts(8, True, True, None, 10),  # a data set without a length
    ):
        assert LoaderReachesAll().applies(loaded(loader)) is not None
