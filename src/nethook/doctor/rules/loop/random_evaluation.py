"""In evaluation mode, the same sample gives another output every time.

Cause: `F.dropout(x)` without `training=self.training`, `nn.Dropout(p)(x)` made anew in the
forward, a dropout layer that `eval()` does not reach, attention whose `dropout_p` is never 0. Or
the pipeline that prepares inputs is that of training, with its random crops and noise.
Evidence: on a copy, two passes in evaluation mode with different random states differ, and a call
of dropout was active in them. Of a pipeline: answers of one evaluation after the other are compared
with the same labels, in the same order, and the inputs of the model are other ones each time.
Fix: hand the mode of the module to the function; a pipeline without random steps for evaluations.
Silent: where both passes are the same. Dropout that the script switches on with `training=True`,
models that draw samples, and inputs that differ (an attack, a test with noise) may be meant so: a
note or a question (`info`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import file_and_line, source_line
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.examined import finding_of, first, number, text
from nethook.runs.names import EQUAL, INPUTS

EXAMINED = "evaluation repeats itself"


class Thresholds(NamedTuple):
    """What may be changed."""

    differs: float = 1e-5  # how far outputs move, by the largest of them
    passes: float = 3  # evaluations in a row whose inputs differ and whose labels do not


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    result = first(history, EXAMINED)
    if result is None or not number(result, "differs", 0.0) > limit.differs:
        yield from _of_inputs(history, limit)
        return
    operation, p = text(result, "operation"), number(result, "p", 0.0)
    if operation:
        which = f"{operation} (p={p:g}) is active"
        fix = "Write F.dropout(x, p, training=self.training), or make one nn.Dropout in __init__."
        if operation.endswith("attention"):
            fix = "Write dropout_p=self.p if self.training else 0.0."
    else:
        which = "the model draws random numbers"
        fix = "Nothing, if the model is meant to sample. Fix a seed where evaluations are compared."
    yield finding_of(
        history,
        result,
        "random-evaluation",
        f"in evaluation mode {which}: two passes over one batch differ by "
        f"{number(result, 'differs'):.2g} of the largest output.",
        fix,
        {"difference": Evidence(number(result, "differs"), limit.differs)},
        "warning" if result.outcome == "found" else "info",
    )


def _of_inputs(history: History, limit: Thresholds) -> Iterator[Finding]:
    """Evaluations with the same labels and other inputs."""
    dtype = str(history.series_fact("", INPUTS, "dtype", ""))
    for name in dict.fromkeys(record.name for record in history.records("eval")):
        records = [
            record
            for record in history.records("eval", name)
            if record.fact("kind") == EQUAL and record.fact("same_labels") is not None
        ]
        if len(records) < limit.passes or "float" not in dtype:
            continue
        if all(
            record.fact("same_labels") and record.fact("same_inputs") is False for record in records
        ):
            source = records[0].fact("source")
            yield Finding(
                "random-evaluation",
                "info",
                f"evaluations compare answers with the same labels each time"
                f"{source_line(source)}, and the model is given other inputs each time: are they "
                "prepared with the random steps of training?",
                "Prepare inputs of evaluations without random crops, flips and noise. If this is a "
                "test with noise, or of an attack, all is well.",
                first_step=min(records[0].step, max(0, history.steps - 1)),
                last_step=history.steps - 1,
                evidence={"evaluations with other inputs": Evidence(len(records), limit.passes)},
                lines=file_and_line(source),
            )
            return


RULE = Rule(
    "random-evaluation",
    Cause.LOOP,
    look,
    reads=(
        "examined.evaluation repeats itself",
        "examined.evaluation repeats itself.differs",
        "examined.evaluation repeats itself.lines",
        "examined.evaluation repeats itself.operation",
        "examined.evaluation repeats itself.p",
        "loss.kind",
        "loss.same_inputs",
        "loss.same_labels",
        "loss.source",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
        "series.inputs.info.dtype",
    ),
    defaults=Thresholds(),
)
