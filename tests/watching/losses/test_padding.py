"""How much of a loss is padding: by what the inputs repeat at the end of their rows."""

from __future__ import annotations

import math

import pytest
import torch

from nethook.watching.losses.kinds import LOG_PROBABILITIES, VALUES, Operands
from nethook.watching.losses.padding import NAMES, padding_numbers

ROWS, LONG, CLASSES = 16, 20, 5


def sequences(pad: int = 0, *, left: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets of 3 to 8 positions, padded."""
    chance = torch.Generator().manual_seed(0)
    inputs = torch.randint(7, 99, (ROWS, LONG), generator=chance)
    targets = torch.randint(1, CLASSES, (ROWS, LONG), generator=chance)
    for row in range(ROWS):
        length = int(torch.randint(3, 9, (1,), generator=chance))
        place = slice(0, LONG - length) if left else slice(length, LONG)
        inputs[row, place], targets[row, place] = 3, pad
    return inputs, targets


def numbers(inputs, targets, ignore=None, prediction=None):
    prediction = torch.zeros(targets.numel(), CLASSES) if prediction is None else prediction
    operands = Operands(
        prediction, targets, LOG_PROBABILITIES, classes=prediction.dim() - 1, ignore=ignore
    )
    found = padding_numbers([inputs], operands)
    names = [name.removeprefix("padding.") for name in NAMES]
    return None if found is None else dict(zip(names, found.tolist(), strict=True))


@pytest.mark.parametrize("left", [False, True])
def test_padding_is_where_inputs_repeat_their_end(left):
    inputs, targets = sequences(left=left)
    share = float((targets == 0).float().mean())
    found = numbers(inputs, targets.view(-1))
    assert found["share"] == pytest.approx(share)
    assert (found["target"], found["ignored"]) == (0.0, 0.0)
    assert found["real"] == (targets > 0).sum()
    assert found["accuracy"] == 1.0  # the first class is predicted everywhere
    assert found["accuracy_elsewhere"] == 0.0


def test_a_model_that_shifts_its_tokens_is_given_one_more():
    inputs, targets = sequences()
    whole = torch.cat([inputs, inputs[:, -1:]], 1)
    share = numbers(inputs, targets)["share"]
    assert share > 0.5
    assert numbers(whole, targets)["share"] == share
    scores = torch.zeros(ROWS, CLASSES, 1, LONG)  # as of a cross entropy of (rows, classes, steps)
    operands = Operands(scores, targets[:, None], LOG_PROBABILITIES, classes=1)
    assert float(padding_numbers([whole], operands)[0]) == pytest.approx(share)
    assert numbers(whole[:, 1:-1], targets) is None  # of another length
    assert numbers(torch.randn(ROWS, LONG + 1), targets) is None  # no tokens
    assert numbers(whole.T, targets) is None
    assert numbers(torch.randint(7, 99, whole.shape), targets)["share"] == 0


def test_time_may_come_first():
    inputs, targets = sequences()
    found = numbers(inputs.t().contiguous(), targets.t().reshape(-1))
    assert found["share"] == pytest.approx(float((targets == 0).float().mean()))


def test_vectors_may_be_padded_with_zeros():
    inputs, targets = sequences()
    vectors = torch.randn(ROWS, LONG, 6) * (inputs != 3)[..., None]
    assert numbers(vectors, targets.view(-1))["share"] > 0.6


def test_what_is_left_out_does_not_count():
    inputs, targets = sequences(pad=-100)
    found = numbers(inputs, targets.view(-1), ignore=-100)
    assert (found["share"], found["ignored"]) == (0.0, 1.0)
    assert math.isnan(found["target"])


def test_a_frequent_class_is_no_padding():
    inputs = torch.randint(7, 99, (ROWS, LONG), generator=torch.Generator().manual_seed(1))
    assert numbers(inputs, torch.zeros(ROWS * LONG, dtype=torch.long))["share"] < 0.02


def test_rows_that_end_differently_are_not_padded():
    inputs = torch.arange(ROWS)[:, None].expand(ROWS, LONG).clone()  # each repeats its own number
    assert numbers(inputs, torch.zeros(ROWS * LONG, dtype=torch.long))["share"] < 0.2


def test_other_shapes_are_not_looked_at():
    inputs, targets = sequences()
    assert numbers(inputs, targets.view(-1)[:-1]) is None
    assert numbers(inputs[:, :1], targets[:, 0]) is None  # one position per sample
    pixels = torch.zeros(ROWS, LONG)  # an image in one row is no sequence
    found = padding_numbers([pixels], Operands(pixels + 1, pixels.clone(), VALUES))
    assert found is None
    assert padding_numbers([inputs], Operands()) is None


def frames(*lengths: int, features: int = 6) -> torch.Tensor:
    """Sounds of these lengths, padded with zeros."""
    made = torch.randn(len(lengths), max(lengths), features)
    for row, length in zip(made, lengths, strict=True):
        row[length:] = 0
    return made


def of_frames(target: torch.Tensor) -> float:
    found = padding_numbers(
        [torch.randn(len(target), 4)], Operands(torch.randn_like(target), target, VALUES)
    )
    assert found is not None
    return float(found[0])


def test_frames_of_numbers_that_are_padded():
    assert of_frames(frames(20, 4, 5, 6, 8)) == pytest.approx(1 - 43 / 100)


def test_frames_that_look_padded_and_are_not():
    pictures = torch.zeros(8, 28, 28)
    for at, picture in enumerate(pictures):  # each has a border, of another width
        picture[4 : 16 + at % 4] = torch.rand(12 + at % 4, 28)
    assert of_frames(pictures) == 0
    rain = torch.relu(torch.randn(8, 30, 3) - 1.0)  # zeros are values, and stand anywhere
    rain[:, 20:] = 0
    rain[0, -1] = 1.0
    assert of_frames(rain) == 0
    assert of_frames(frames(10, 10, 10, 10)) == 0
    equal = frames(20, 6, 6, 6, 6)  # one that is longer, and a border of the others
    assert of_frames(equal) == 0
