"""The model is evaluated with dropout or batch statistics on.

Cause: `model.eval()` is missing before the evaluation.
Evidence: passes without gradient in which a loss was taken, over a run of batches with no step
between, while batch norm or dropout was in training mode; and that in most such passes.
Fix: call `model.eval()` before, `model.train()` after.
Silent: for passes in which no loss is taken (Monte-Carlo dropout, `update_bn`, a momentum teacher,
a GAN's generator pass), and for models without such modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.rules.eval_mode_training import MODAL
from nethook.doctor.words import some


@dataclass(frozen=True)
class Thresholds:
    """What may be changed."""

    passes: float = 2  # evaluations


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    evaluations = [len(curve) for curve in history.losses("eval")]
    if not evaluations or max(evaluations) < limit.passes:
        return
    wrong = []
    for module in history.modules:
        if module.fact("activation") in MODAL:
            modes = [each for each in module.fact("modes", []) if len(each) == 3]
            in_eval = [training for _, phase, training in modes if phase == "eval"]
            if in_eval and all(in_eval):
                wrong.append((module, next(s for s, phase, _ in modes if phase == "eval")))
    if not wrong:
        return
    sites = tuple(module.address for module, _ in wrong)
    yield Finding(
        "train-mode-evaluation",
        "warning",
        f"{max(evaluations)} evaluations ran with {some(sites, 'module')} in training mode: what "
        "they say of the model is noisy and too bad, and batch norm learns from the test data.",
        "Call model.eval() before an evaluation and model.train() after it.",
        sites=sites,
        first_step=int(min(step for _, step in wrong)),
        last_step=history.steps - 1,
        evidence={"evaluations in training mode": Evidence(max(evaluations), limit.passes)},
    )


RULE = Rule(
    "train-mode-evaluation",
    Cause.LOOP,
    look,
    reads=(
        "info.losses",
        "module.activation",
        "module.modes",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
