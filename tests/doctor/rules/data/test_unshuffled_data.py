"""The rule `unshuffled-data`: when it reports, and when it does not."""

from __future__ import annotations

import numpy as np

from tests.doctor.ill_losses import CYCLE, STEPS, batches, in_turn, numbers
from tests.doctor.synthetic import Made, falling, flat


def test_classes_in_order_again_and_again() -> None:
    (finding,) = batches(*in_turn()).found("unshuffled-data")
    assert finding.severity == "warning"
    assert finding.message.startswith("each batch is nearly of one class: the most frequent one")
    assert "again and again" in finding.message
    assert finding.evidence["likeness of targets in a batch"].value > 0.99


def test_classes_that_come_once_may_be_meant() -> None:
    (finding,) = batches(*in_turn(every=4)).found("unshuffled-data")
    assert finding.severity == "info"
    assert "one after the other" in finding.message


def test_a_network_that_knows_all_of_them() -> None:
    (finding,) = batches(*in_turn(), values=falling(200)).found("unshuffled-data")
    assert finding.severity == "info"
    assert batches(*in_turn(), values=flat(200, 1.3)).found("unshuffled-data")[0].severity != "info"


def test_a_sampler_that_draws_a_few_classes_per_batch() -> None:
    rows = []
    chance = np.random.default_rng(0)
    for _ in STEPS:
        chosen = chance.permutation(12)[:4]
        rows.append([8 if label in chosen else 0 for label in range(12)])
    assert not batches(*rows, classes=12).found("unshuffled-data")


def test_yes_and_no() -> None:
    def binary(*shares: float) -> Made:
        made = Made().loss(flat(200, 0.7, 0.4))
        for step, share in zip(STEPS, shares, strict=False):
            target = {"shape": [32], "positive_share": share, "binary_share": 1.0}
            made.record(step, kind="bce_with_logits", target=target)
        return made

    assert binary(*[0.0, 0.0, 1.0] * 5).found("unshuffled-data")[0].severity == "warning"
    assert not binary(*[0.5, 0.4, 0.6] * 5).found("unshuffled-data")
    assert not binary(*[0.1, 0.0, 0.05] * 5).found("unshuffled-data")


def test_sorted_numbers() -> None:
    (finding,) = numbers(CYCLE, 0.05, 0.02).found("unshuffled-data")
    assert finding.severity == "warning"
    assert "tell batches apart" in finding.message


def test_a_series_in_time() -> None:
    (finding,) = numbers(CYCLE, 0.05, 0.9).found("unshuffled-data")
    assert finding.severity == "info"
    (finding,) = numbers([0.1 * at for at in range(15)], 0.05, 0.0).found("unshuffled-data")
    assert finding.severity == "info"  # it goes on and on
