"""Numbers of predictions and targets against numpy, scikit-learn and closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nethook.watching.losses.kinds import (
    LOG_PROBABILITIES,
    LOGITS,
    PROBABILITIES,
    Operands,
    unbroadcast,
)
from nethook.watching.losses.numbers import SAMPLE, numbers_of, unpacked


def plain(operands: Operands) -> dict:
    numbers = numbers_of(operands)
    return unpacked(numbers.packed().tolist(), numbers.layout())


def entropy(shares) -> float:
    return -sum(share * math.log(share) for share in shares if share > 0)


@settings(max_examples=40, deadline=None)
@given(
    batch=st.integers(1, 9),
    classes=st.integers(1, 7),
    positions=st.lists(st.integers(1, 4), max_size=2),
    ignore=st.sampled_from([None, -100, 0]),
    seed=st.integers(0, 1000),
)
def test_classes_against_numpy_and_scikit_learn(batch, classes, positions, ignore, seed):
    from sklearn.metrics import accuracy_score  # a second, which collecting need not take

    torch.manual_seed(seed)
    logits = torch.randn(batch, classes, *positions)
    labels = torch.randint(0, classes, (batch, *positions))
    if ignore == -100:
        labels[torch.rand(labels.shape) < 0.3] = -100
    found = plain(Operands(logits, labels, LOGITS, classes=1, ignore=ignore))
    guesses, flat = logits.argmax(1).flatten().numpy(), labels.flatten().numpy()
    keep = flat != (-12345 if ignore is None else ignore)
    guesses, flat = guesses[keep], flat[keep]
    assert found["rows"] == len(flat)
    if not len(flat):
        return
    assert found["accuracy"] == pytest.approx(accuracy_score(flat, guesses), abs=1e-6)
    counts = np.bincount(flat, minlength=classes)
    assert found["class_counts"] == counts.tolist()
    assert found["argmax_counts"] == np.bincount(guesses, minlength=classes).tolist()
    assert found["target"]["class_entropy"] == pytest.approx(
        entropy(counts / counts.sum()), abs=1e-5
    )
    assert (found["target"]["min"], found["target"]["max"]) == (flat.min(), flat.max())
    chances = logits.softmax(1).movedim(1, -1).reshape(-1, classes).numpy()[keep]
    expected = np.mean([entropy(row) for row in chances])
    assert found["prediction"]["entropy"] == pytest.approx(expected, abs=1e-5)


def test_labels_outside_of_the_classes_are_counted_and_do_no_harm():
    found = plain(Operands(torch.zeros(4, 3), torch.tensor([0, 3, -1, 2]), LOGITS, classes=1))
    assert found["target"]["outside"] == 2
    assert (found["target"]["min"], found["target"]["max"]) == (-1, 3)
    assert found["rows"] == 2


def test_logits_and_log_probabilities_say_the_same():
    torch.manual_seed(0)
    logits, labels = torch.randn(6, 4), torch.randint(0, 4, (6,))
    first = plain(Operands(logits, labels, LOGITS, classes=1))
    second = plain(Operands(logits.log_softmax(1), labels, LOG_PROBABILITIES, classes=1))
    for key in ("entropy", "confidence", "width"):
        assert first["prediction"][key] == pytest.approx(second["prediction"][key], abs=1e-5)


def test_chances_as_targets():
    soft = torch.tensor([[0.7, 0.3], [0.1, 0.9]])
    scores = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    found = plain(Operands(scores, soft, LOGITS, classes=1))
    assert found["accuracy"] == 0.5
    assert found["class_counts"] == [1, 1]
    assert found["argmax_counts"] == [2, 0]
    assert found["target"]["row_sums"] == pytest.approx([1.0, 1.0])


def test_values_against_numpy():
    torch.manual_seed(0)
    first, second = torch.randn(50, 3), torch.randint(0, 4, (50, 3)).float()
    found = plain(Operands(first, second))
    a, b = first.numpy().ravel(), second.numpy().ravel()
    assert found["correlation"] == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-5)
    assert found["error"] == pytest.approx(np.abs(a - b).mean(), abs=1e-5)
    assert found["target"]["integral"] is True
    assert found["target"]["distinct"] == 4
    assert found["prediction"]["distinct"] == 150
    assert found["prediction"]["mean"] == pytest.approx(a.mean(), abs=1e-6)
    assert found["prediction"]["std"] == pytest.approx(a.std(), abs=1e-5)
    spread = math.sqrt(first.numpy().var(0).mean() / np.square(a).mean())
    assert found["spread"] == pytest.approx(spread, abs=1e-5)
    sums = first.sum(1)
    assert found["row_sums"] == pytest.approx([sums.min().item(), sums.max().item()], abs=1e-5)
    assert found["target"]["row_sums"] == [second.sum(1).min().item(), second.sum(1).max().item()]


@pytest.mark.parametrize(("space", "middle"), [(LOGITS, 0.0), (PROBABILITIES, 0.5)])
def test_two_classes(space, middle):
    scores = torch.tensor([-1.0, 1.0, 1.0, 1.0]) * 0.4 + middle
    found = plain(Operands(scores, torch.tensor([0.0, 1.0, 0.0, 0.0]), space))
    assert found["accuracy"] == 0.5
    assert found["prediction"]["positive_share"] == 0.75
    assert found["target"]["positive_share"] == 0.25
    assert found["target"]["class_entropy"] == pytest.approx(entropy([0.25, 0.75]))
    assert found["target"]["binary_share"] == 1.0


def test_only_a_sample_of_large_tensors_is_read():
    logits = torch.randn(64, 10, 64, 64)
    labels = torch.randint(0, 10, (64, 64, 64))
    agree = logits.scatter(1, labels[:, None], 100.0)
    found = plain(Operands(agree, labels, LOGITS, classes=1))
    assert 0 < found["rows"] <= SAMPLE
    assert found["accuracy"] == 1.0  # the rows of both samples belong together
    many = plain(Operands(torch.randn(500, 1000), torch.randn(500, 1000)))
    assert many["elements"] <= SAMPLE


def test_of_very_many_classes_shares_are_kept_and_no_list():
    found = plain(Operands(torch.eye(1001), torch.arange(1001), LOGITS, classes=1))
    assert "class_counts" not in found
    assert found["target"]["distinct"] == found["rows"]
    assert found["target"]["largest_share"] == pytest.approx(1 / found["rows"])


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(0, 3),
        torch.zeros(2, 3, dtype=torch.complex64),
        torch.zeros(2, 3, device="meta"),
        torch.zeros(2, 3).to_sparse(),
    ],
)
def test_what_cannot_be_read_gives_no_numbers(tensor):
    assert not numbers_of(Operands(tensor, torch.zeros(2, 3)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int32])
def test_other_types(dtype):
    found = plain(Operands(torch.arange(6).to(dtype), torch.arange(6).to(dtype)))
    assert (found["target"]["min"], found["target"]["max"]) == (0, 5)


@pytest.mark.parametrize(
    ("shape", "to"), [((8,), (8, 8)), ((8, 1), (8, 8)), ((3, 1, 5), (3, 4, 5)), ((8, 8), (8, 8))]
)
def test_the_shape_before_broadcasting(shape, to):
    assert unbroadcast(torch.rand(shape).expand(to)) == shape
