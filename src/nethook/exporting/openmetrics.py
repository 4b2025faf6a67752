"""A run as metrics that Prometheus reads: `nethook metrics RUN`, and `/metrics` of the page.

    nethook_train_step{run="mnist",rank="0"} 412
    nethook_train_loss{run="mnist",rank="0",loss="train.py:42"} 0.0812

The text is the exposition format of Prometheus (version 0.0.4). It is made by reading the run file,
so training knows nothing of it. There is no label for layers: a network has thousands, and every
value of a label is a series that the server keeps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from nethook.runs import names
from nethook.runs.reading.losses.shown import shown_losses
from nethook.runs.reading.results import Scalar
from nethook.runs.reading.run import Run
from nethook.text.findings import SEVERITIES, read_findings

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""What a server says that the text is."""


class Metric(NamedTuple):
    """A family of samples: what each means, and the labels and the value of each."""

    name: str
    kind: str  # gauge or counter
    help: str
    samples: list[tuple[dict[str, str], float]]


def openmetrics(run: Run, name: str | None = None) -> str:
    """The numbers of a run at its last step, as text.

    Arguments:
        run: which.
        name: the value of the label `run`; the name of the file otherwise.
    """
    return openmetrics_of_many({name if name is not None else run.path.stem: run})


def openmetrics_of_many(runs: Mapping[str, Run]) -> str:
    """The numbers of several runs, by the value of the label `run`: each metric stands once."""
    families: dict[str, tuple[Metric, list[str]]] = {}
    for name, run in runs.items():
        common = {"run": name, "rank": "0"}
        for metric in _metrics(run):
            _, lines = families.setdefault(metric.name, (metric, []))
            lines += [
                f"{metric.name}{_labels({**common, **labels})} {_number(value)}"
                for labels, value in metric.samples
                if not math.isnan(value)
            ]
    text = []
    for metric, lines in families.values():
        if lines:
            text.append(f"# HELP {metric.name} {_escaped(metric.help)}")
            text.append(f"# TYPE {metric.name} {metric.kind}")
            text += lines
    return "".join(f"{line}\n" for line in text)


def _metrics(run: Run) -> Iterator[Metric]:
    info = run.info
    scalars = run.scalars
    last = max((rank.last_step for rank in run.ranks), default=-1)
    yield _gauge("nethook_train_step", "The last step that was recorded, from 0.", last)
    yield Metric(
        "nethook_train_steps_total", "counter", "Steps that were recorded.", [({}, last + 1)]
    )
    seconds = _loop(run, names.STEP_SECONDS)
    yield Metric(
        "nethook_train_step_seconds_total", "counter",
        "Seconds that these steps took.",
        [({}, seconds)],
    )  # fmt: skip
    yield from _losses(run, scalars)
    yield Metric(
        "nethook_train_grad_norm", "gauge", "Norm of all gradients, before and after clipping.",
        [
            ({"stage": "clipped"}, _last(scalars, names.GRAD_NORM)),
            ({"stage": "unclipped"}, _last(scalars, names.GRAD_NORM_UNCLIPPED)),
        ],
    )  # fmt: skip
    yield _gauge(
        "nethook_train_update_ratio", "Norm of the last update by the norm of all parameters.",
        _last(scalars, names.UPDATE_RATIO),
    )  # fmt: skip
    rates = [name for name in scalars if name.startswith("lr:")]
    yield Metric(
        "nethook_train_learning_rate", "gauge", "Learning rate of each group of parameters.",
        [({"group": name.removeprefix("lr:")}, _last(scalars, name)) for name in rates],
    )  # fmt: skip
    yield Metric(
        "nethook_train_skipped_steps_total", "counter", "Steps that a loss scaler left out.",
        [({}, _loop(run, names.SKIPPED_STEPS))],
    )  # fmt: skip
    yield _findings(run)
    yield _gauge(
        "nethook_watch_overhead_ratio", "Cost of watching as a fraction of the training's time.",
        _as_float(info.get("overhead")),
    )  # fmt: skip
    yield _gauge(
        "nethook_train_last_step_timestamp_seconds", "When the last step was recorded.",
        _last_time(scalars),
    )  # fmt: skip
    about = {"model": _models(info), "version": _version(info)}
    yield Metric("nethook_run_info", "gauge", "What runs.", [(about, 1.0)])


def _losses(run: Run, scalars: Mapping[str, Scalar]) -> Iterator[Metric]:
    for phase, name in (("train", "nethook_train_loss"), ("eval", "nethook_eval_loss")):
        shown = shown_losses(run, phase, scalars)
        what = "training" if phase == "train" else "evaluation"
        yield Metric(
            name, "gauge", f"The last {what} loss, by where it is made.",
            [({"loss": loss.name}, loss.last) for loss in shown],
        )  # fmt: skip


def _findings(run: Run) -> Metric:
    found = read_findings(run.findings)
    counts = {
        (finding.code, finding.severity): sum(
            (each.code, each.severity) == (finding.code, finding.severity) for each in found
        )
        for finding in found
    }
    # A severity without findings is 0 and not absent: an alert can ask for its increase.
    samples: list[tuple[dict[str, str], float]] = [
        ({"code": code, "severity": severity}, float(number))
        for (code, severity), number in counts.items()
    ]
    there = {finding.severity for finding in found}
    absent = [severity for severity in SEVERITIES if severity not in there]
    samples += [({"code": "", "severity": severity}, 0.0) for severity in absent]
    return Metric("nethook_findings", "gauge", "Findings of the doctor so far.", samples)


def _gauge(name: str, about: str, value: float) -> Metric:
    return Metric(name, "gauge", about, [({}, float(value))])


def _loop(run: Run, quantity: str) -> float:
    """The sum over all steps of a number of the loop; NaN where it was never recorded."""
    if not any((each.address, each.quantity) == (names.LOOP, quantity) for each in run.catalogue):
        return math.nan
    series = run.series(names.LOOP, quantity)
    mean = series["mean"]
    known = np.isfinite(mean)
    if not known.any():
        return math.nan
    return float((mean[known] * series.steps[known]).sum())


def _last(scalars: Mapping[str, Scalar], name: str) -> float:
    scalar = scalars.get(name)
    return float(scalar.value[-1]) if scalar is not None and len(scalar) else math.nan


def _last_time(scalars: Mapping[str, Scalar]) -> float:
    own = [scalar for name, scalar in scalars.items() if names.is_own_scalar(name) and len(scalar)]
    return max((float(scalar.time[-1]) for scalar in own), default=math.nan)


def _models(info: Mapping[str, Any]) -> str:
    """The classes of the models, as the run has them."""
    models = info.get("models")
    if not isinstance(models, Mapping):
        return ""
    kinds = (each.get("type", "") for each in models.values() if isinstance(each, Mapping))
    return ", ".join(str(kind) for kind in kinds)


def _version(info: Mapping[str, Any]) -> str:
    versions = info.get("versions")
    return str(versions.get("nethook", "")) if isinstance(versions, Mapping) else ""


def _as_float(value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number else math.nan


def _labels(labels: Mapping[str, str]) -> str:
    pairs = (f'{name}="{_quoted(value)}"' for name, value in labels.items())
    return f"{{{','.join(pairs)}}}"


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1 << 53 else repr(value)
