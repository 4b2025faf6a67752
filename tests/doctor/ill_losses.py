"""As in `ill`: runs for the rules about losses, targets and evaluations, ill and healthy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.doctor.synthetic import Made, falling, flat

Run = Callable[[], Made]
STEPS = (0, 1, 2, 3, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192)
OF_LOGITS = {"kind": "cross_entropy", "chain": ["NllLoss", "LogSoftmax", "Addmm"]}


def given(kind: str, *chain: str, **facts: Any) -> Made:
    """A loss whose operations are these."""
    return Made().loss(falling(200)).record(kind=kind, chain=list(chain), **facts)


def logarithms(
    low: float, high: float, sums: tuple[float, float] = (1.0, 1.0), **facts: Any
) -> Made:
    """A loss of log-probabilities that was given numbers between these."""
    prediction = {"shape": [32, 10], "min": low, "max": high}
    return given("nll", "NllLoss", "Softmax", prediction=prediction, row_sums=list(sums), **facts)


def padded(
    share: float, right: float = 1.0, rest: float = 0.4, target: float = 0.0, **facts: Any
) -> Made:
    """Losses of which a share is padding."""
    numbers = {"share": share, "target": target, "accuracy": right, "accuracy_elsewhere": rest}
    return Made().loss(falling(200)).record(*STEPS, **OF_LOGITS, padding=numbers, **facts)


def terms(
    large: Any, small: Any, constant: float = 0.69,
    kinds: tuple[str, str] = ("mse", "cross_entropy"),
    factor: float = 1.0, know: bool = True,
) -> Made:  # fmt: skip
    """A loss of two terms, with their values at each record."""
    values = np.broadcast_to(large, len(STEPS)), np.broadcast_to(small, len(STEPS))
    made = Made().loss(falling(200, float(values[0][0]), float(values[0][-1])))
    for step, big, little in zip(STEPS, *values, strict=True):
        made.record(
            step, kind=kinds[0], value=float(big) + factor * float(little),
            parts=[{"kinds": [kinds[0]], "factor": 1.0}, {"kinds": [kinds[1]], "factor": factor}],
            part_values=[float(big), float(little)] if know else [float("nan"), float(little)],
            part_constants=[float("nan"), constant],
        )  # fmt: skip
    return made


def dollars(
    values: Any = None, *, kind: str = "mse", shape: Sequence[int] = (32,), steps: int = 200,
    target: tuple[float, float] = (2.5e5, 5e4), last: tuple[float, float] | None = None,
    prediction: tuple[float, float] = (0.1, 0.2), error: float = 5e4, **facts: Any,
) -> Made:  # fmt: skip
    """Large targets, of this mean and spread, under a loss that ends where one answer would be."""
    course = np.geomspace(6.5e10, 3e9, steps) if values is None else values
    made = Made(steps).loss(course)
    for step in (step for step in STEPS if step < steps):
        mean, std = target if last is None or step < 24 else last
        began = prediction if step == 0 else (mean / 2, std / 2)
        made.record(
            step, kind=kind, floored=True, error=error, **facts,
            target={"shape": list(shape), "mean": mean, "std": std},
            prediction={"shape": list(shape), "mean": began[0], "std": began[1]},
        )  # fmt: skip
    return made


FALLS = np.geomspace(1500.0, 16.0, len(STEPS))
LEARNT = np.geomspace(0.69, 0.1, len(STEPS))


def batches(*labels: list[int], values: Any = None, classes: int = 4) -> Made:
    """Losses whose batches have targets of these classes."""
    made = Made().loss(flat(200, 1.0, 0.6) if values is None else values)
    for step, counts in zip(STEPS, labels, strict=False):
        full = [*counts, *[0] * (classes - len(counts))]
        made.record(step, **OF_LOGITS, class_counts=full, floored=True)
    return made


def in_turn(size: int = 16, classes: int = 4, every: int = 1) -> list[list[int]]:
    """Batches of one class each, in order."""
    rows = []
    for at in range(len(STEPS)):
        rows.append([size if label == at // every % classes else 0 for label in range(classes)])
    return rows


def numbers(means: list[float], std: float, correlation: float) -> Made:
    """Losses whose targets are numbers with these means and this spread in a batch."""
    made = Made().loss(falling(200))
    for step, mean in zip(STEPS, means, strict=False):
        target = {"shape": [32, 1], "mean": mean, "std": std, "min": mean - 1, "max": mean + 1}
        made.record(step, kind="mse", target=target, correlation=correlation)
    return made


CYCLE = [-1.5, -1.0, 0.0, 1.0, 1.5] * 3


def scaled(
    train: tuple[float, float], test: tuple[float, float], *, dtype: str = "float32",
    loss: float | None = None, ends: tuple[float, float, float, float] = (-3.0, 3.0, -3.0, 3.0),
    zeros: float = 0.0,
) -> Made:  # fmt: skip
    """Mean and spread of inputs in training and evaluation; least and greatest of both."""
    made = Made().loss(falling(200)).record(kind="cross_entropy")
    least, greatest = np.full(200, ends[0]), np.full(200, ends[1])
    if ends[0] == 0.0:  # the extremes are in a few stretches alone
        least[::2], greatest[1::2] = 0.02, 0.98
    made.series(
        "", "inputs", mean=train[0], std=train[1], min=least, max=greatest, rms=1.0,
        info={"dtype": dtype},
    )  # fmt: skip
    made.series(
        "", "inputs", phase="eval", at=[96, 192], mean=[test[0]] * 2, std=[test[1]] * 2,
        min=[ends[2]] * 2, max=[ends[3]] * 2, zero_share=[zeros] * 2,
    )  # fmt: skip
    if loss is not None:
        made.loss([loss] * 2, "train.py:30", "eval", at=[96, 192])
        made.record(192, name="train.py:30", phase="eval", kind="cross_entropy")
    return made


ILL: dict[str, Run] = {
    "target-not-normalized": dollars,
    "output-misfits-loss": lambda: logarithms(0.01, 0.2, value=-0.1),
    "padding-dominates": lambda: padded(0.9),
    "unbalanced-loss-terms": lambda: terms(FALLS, 0.68),
    "unshuffled-data": lambda: batches(*in_turn()),
    "evaluation-scale": lambda: scaled((0.0, 1.0), (0.76, 0.07)),
}

HEALTHY: dict[str, list[Run]] = {
    "output-misfits-loss": [
        lambda: given("cross_entropy", "NllLoss", "LogSoftmax", "Addmm"),
        lambda: given("cross_entropy", "NllLoss", "LogSoftmax", "Mul", "Tanh"),  # a soft cap
        lambda: given("cross_entropy", "NllLoss", "LogSoftmax", "LogSoftmax"),  # of no use
        lambda: logarithms(-9.0, 0.0, (-40.0, -20.0)),
        lambda: logarithms(-9.0, 1e-7, (-40.0, -20.0)),  # rounding
        lambda: given("mse", "MseLoss", "Relu"),
        lambda: given("bce", "BinaryCrossEntropy", "Sigmoid"),
        lambda: given("bce_with_logits", "BinaryCrossEntropyWithLogits", "Addmm"),
        lambda: given("bce", "BinaryCrossEntropy", "Softmax", prediction={"shape": [32, 2]}),
    ],
    "padding-dominates": [
        lambda: Made().loss(falling(200)).record(*STEPS, **OF_LOGITS, class_counts=[950, 50]),
        lambda: padded(0.3),
        lambda: padded(0.0),  # a class is frequent, and the inputs under it differ
        lambda: padded(0.9, options={"weight": True}),
        lambda: Made().record(0, 1, 2, **OF_LOGITS, padding={"share": 0.9, "target": 0.0}),
        lambda: padded(0.05, target=2.0),
    ],
    "target-not-normalized": [
        lambda: dollars(falling(200, 6e10, 1e8, 1e7)),
        lambda: dollars(target=(60.0, 40.0)),
        lambda: dollars(prediction=(2.4e5, 3.0)),
    ],
    "unbalanced-loss-terms": [
        lambda: terms(FALLS, LEARNT),  # small, and learnt
        lambda: terms(np.geomspace(1.5, 0.3, len(STEPS)), 0.69),  # of one size
        lambda: terms(FALLS, 0.01, constant=float("nan"), kinds=("mse", "penalty")),
        lambda: terms(FALLS, 1.6, constant=1.6, factor=-0.01),  # an entropy bonus
        lambda: terms(1500.0, 0.69),  # nothing is learnt at all
        lambda: terms(FALLS, 0.69, constant=float("nan"), kinds=("l1", "bce_with_logits")),
        lambda: Made().loss(falling(200)).record(*STEPS, kind="mse"),
    ],
    "unshuffled-data": [
        lambda: batches(*[[4, 4, 4, 4]] * len(STEPS)),
        lambda: batches(*[[9, 4, 2, 1]] * len(STEPS)),  # unbalanced, and mixed
        lambda: batches(*in_turn(size=1)),  # one sample per batch
        lambda: batches(*[[16, 0, 0, 0]] * len(STEPS)),  # there is one class
        lambda: batches(*in_turn()[:5]),  # too few were looked at
        lambda: numbers(CYCLE, 1.0, 0.9),
        lambda: numbers([0.02 * at for at in range(15)], 1.0, 0.1),
    ],
    "evaluation-scale": [
        lambda: scaled((0.0, 1.0), (0.02, 0.98)),
        lambda: scaled((0.0, 1.2), (0.0, 1.0)),  # noise is added in training
        lambda: scaled((50.0, 30.0), (900.0, 10.0), dtype="int64"),  # tokens
        lambda: scaled((0.13, 0.3), (0.13, 0.31), ends=(0.0, 1.0, 0.0, 1.0), zeros=0.8),  # pixels
        lambda: scaled((0.0, 1.0), (0.4, 0.7), loss=0.11),
        lambda: Made().loss(falling(200)).series("", "inputs", mean=0.0, std=1.0, min=-3, max=3),
    ],
}  # fmt: skip
"""Nothing at all is said of these; what is said below a warning is in each rule's own tests."""
