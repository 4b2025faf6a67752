"""Evaluation gets inputs on another scale than training.

Cause: mean and standard deviation are subtracted in training and not in evaluation, pixels are
divided by 255 in one of them, or a scaler was fitted again on the test data.
Evidence: mean and spread of what enters the model in both phases, against how much they differ from
one stretch of training to the next; or evaluation inputs that reach exactly 0 and 1, as all
training inputs together do and single batches do not, with another mean or spread.
Fix: prepare both in the same way; fit scalers on training data alone.
Silent: for inputs that are no floating-point numbers, for passes that do not evaluate (agents,
generators), and where both phases are alike. A note where the difference is not gross and no worse
loss or score shows its harm: a plot may go beyond the data on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.evaluated import EVALUATED_READS, answers
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import INPUTS
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    ratio: float = 2  # of the spreads, either way
    offset: float = 1  # between the means, by the spread in training
    gross: float = 4  # times that, where it is a warning without any loss
    worse: float = 2  # loss of evaluations, by that of training at the same time
    windows: float = 3  # of training
    exact: float = 1e-6  # how near to 0 and 1
    differs: float = 0.15  # the same as `ratio` and `offset`, for a scaler that was fitted again


class _Phase(NamedTuple):
    mean: float
    std: float
    low: float
    high: float


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    dtype = str(history.series_fact("", INPUTS, "dtype", ""))
    if "int" in dtype or "bool" in dtype:
        return
    means = history.curve("", INPUTS, "mean")
    train, test = _phase(history, "train"), _phase(history, "eval")
    if train is None or test is None or len(means) < limit.windows or not train.std > 0:
        return
    # Training itself may go from one scale to another; then evaluation is not what is odd.
    own = float(np.max(np.abs(means.value - train.mean))) / train.std
    offset = abs(test.mean - train.mean) / train.std
    ratio = max(test.std, 1e-12) / train.std
    factor = max(ratio, 1 / ratio)
    step = int(history.curve("", INPUTS, "mean", "eval").step[0])
    if (offset > limit.offset + own or factor > limit.ratio) and not _within(history, test):
        worse, told = _worse(history, limit)
        gross = offset > limit.gross * limit.offset or factor > limit.gross * limit.ratio
        serious = worse or (gross and worse is None)
        meaning = (
            "they do not seem to be prepared in the same way"
            if serious
            else "either the data is another, or it is not prepared in the same way"
        )
        yield Finding(
            "evaluation-scale",
            "warning" if serious else "info",
            f"inputs have mean {number(train.mean)} and spread {number(train.std)} in training, "
            f"and mean {number(test.mean)} and spread {number(test.std)} in evaluation{told}: "
            f"{meaning}.",
            "Prepare evaluation inputs as training inputs are: the same division, the same mean "
            "and standard deviation.",
            first_step=min(step, history.steps - 1),
            last_step=history.steps - 1,
            evidence={
                "distance of the means, by the spread in training": Evidence(offset, limit.offset),
                "ratio of the spreads": Evidence(ratio, limit.ratio),
            },
        )
    elif _fitted_again(history, train, test, limit):
        yield Finding(
            "evaluation-scale",
            "warning" if _worse(history, limit)[0] else "info",
            f"evaluation inputs lie between exactly {test.low:g} and {test.high:g}, as all "
            f"training inputs together do, and have mean {number(test.mean)} and spread "
            f"{number(test.std)} instead of {number(train.mean)} and {number(train.std)}: it seems "
            "that the scaler was fitted again on the test data, and one number means two things.",
            "Fit the scaler on the training data alone: scaler.fit(train), then "
            "scaler.transform(test).",
            first_step=min(step, history.steps - 1),
            last_step=history.steps - 1,
            evidence={
                "least evaluation input": Evidence(test.low, 0.0),
                "greatest evaluation input": Evidence(test.high, 1.0),
            },
        )


def _phase(history: History, phase: str) -> _Phase | None:
    mean, std, low, high = [
        history.curve("", INPUTS, column, phase).value for column in ("mean", "std", "min", "max")
    ]
    if not (len(mean) and len(std) and len(low) and len(high)):
        return None
    if not (np.isfinite(mean).all() and np.isfinite(std).all()):
        return None
    # The spread over all of training has that between its stretches in it.
    spread = float(np.sqrt(np.mean(std**2) + np.var(mean)))
    return _Phase(median(mean), spread, float(np.min(low)), float(np.max(high)))


def _within(history: History, test: _Phase) -> bool:
    """Whether some stretch of training was like evaluation."""
    mean, std = history.curve("", INPUTS, "mean").value, history.curve("", INPUTS, "std").value
    near = np.abs(mean - test.mean) <= np.maximum(std, test.std)
    alike = (std < 2 * test.std) & (test.std < 2 * std)
    return bool((near & alike).any()) if len(mean) == len(std) else False


def _worse(history: History, limit: Thresholds) -> tuple[bool | None, str]:
    """Whether evaluations are far worse than training at about the same time, and in words.

    By their losses, or by answers that were compared; None where neither is known.
    """
    tested = max(history.losses("eval"), key=len, default=None)
    trained = max(history.losses(), key=len, default=None)
    kinds = {record.fact("kind") for record in history.records("train")}
    alike = kinds & {record.fact("kind") for record in history.records("eval")}
    if tested is not None and trained is not None and len(tested) and len(trained) and alike:
        before = median(trained.value[-max(5, len(trained) // 10) :])
        after = median(tested.value[-3:])
        if before > _NOTHING and np.isfinite(after):
            worse = after / before > limit.worse
            times = f", and its loss is {after / before:.2g} times that of training"
            return worse, times if worse else ""
    scored = answers(history)
    if scored is None or not scored.of_classes:
        return None, ""
    said = f", and {scored.score:.0%} of its answers are right, against {scored.trained:.0%}"
    return scored.falls, f"{said} in training" if scored.falls else ""


def _fitted_again(history: History, train: _Phase, test: _Phase, limit: Thresholds) -> bool:
    """Whether both phases lie between exactly 0 and 1, and single stretches of training do not."""
    for phase in (train, test):
        if abs(phase.low) > limit.exact or abs(phase.high - 1) > limit.exact:
            return False
    low, high = history.curve("", INPUTS, "min").value, history.curve("", INPUTS, "max").value
    # Where each image, or each sample, reaches 0 and 1 by itself, every stretch does.
    some = float(np.mean((np.abs(low) <= limit.exact) & (np.abs(high - 1) <= limit.exact)))
    zeros = history.curve("", INPUTS, "zero_share", "eval").value
    rare = not len(zeros) or float(np.max(zeros)) < _RARE
    ratio = test.std / train.std
    differs = abs(test.mean - train.mean) / train.std > limit.differs
    differs = differs or not 1 - limit.differs < ratio < 1 + limit.differs
    return some < 0.5 and rare and differs


_NOTHING: Final = 1e-12
_RARE: Final = 0.02  # zeros, where only the least number of all is one

RULE = Rule(
    "evaluation-scale",
    Cause.DATA,
    look,
    reads=(
        *EVALUATED_READS,
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
        "series.inputs.info.dtype",
        "series.inputs.max",
        "series.inputs.mean",
        "series.inputs.min",
        "series.inputs.std",
        "series.inputs.zero_share",
    ),
    defaults=Thresholds(),
)
