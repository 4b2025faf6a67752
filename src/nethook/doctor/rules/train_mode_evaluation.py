"""The model is evaluated with dropout or batch statistics on.

Cause: `model.eval()` is missing before the evaluation.
Evidence: passes without gradient in which a loss was taken, or which went over a run of different
batches with no step between, while batch norm or dropout was in training mode; and that in all of
them.
Fix: call `model.eval()` before, `model.train()` after.
Silent: for passes over one batch in which no loss is taken (Monte-Carlo dropout, a momentum
teacher, a GAN's generator pass), for a single pass over many (`update_bn`), and for models without
such modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.phrases import some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.rules.eval_mode_training import MODAL
from nethook.doctor.signals.layers import mode_changes


class Thresholds(NamedTuple):
    """What may be changed."""

    passes: float = 2  # evaluations


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    totals = history.info("totals", {})
    passes = [len(curve) for curve in history.losses("eval")]
    passes.append(int(totals.get("evaluations", 0)) if isinstance(totals, dict) else 0)
    evaluations = max(passes)
    if evaluations < limit.passes:
        return
    wrong = [
        (module, since)
        for module in history.modules
        if module.fact("activation") in MODAL and (since := _in_training_mode(module)) is not None
    ]
    if not wrong:
        return
    sites = tuple(module.address for module, _ in wrong)
    kinds = {module.fact("activation") for module, _ in wrong}
    what = " and ".join(text for kind, text in _EFFECTS.items() if kind in kinds)
    yield Finding(
        "train-mode-evaluation",
        "warning",
        f"{evaluations} evaluations ran with {some(sites, 'module')} in training mode: {what}.",
        "Call model.eval() before an evaluation and model.train() after it.",
        sites=sites,
        first_step=int(min(step for _, step in wrong)),
        last_step=history.steps - 1,
        evidence={"evaluations in training mode": Evidence(evaluations, limit.passes)},
    )


_EFFECTS = {
    "dropout": "dropout makes what they say of the model noisy and too bad",
    "norm": "batch norm judges each sample by its batch, and learns from the test data",
}


def _in_training_mode(module: SiteFacts) -> int | None:
    """Since when a module is evaluated in training mode; None where it is not."""
    calls = module.fact("calls", {})
    if not (isinstance(calls, dict) and calls.get("eval")):
        return None
    in_eval = mode_changes(module, "eval")
    flags = [training for _, training in in_eval or mode_changes(module, "train")]
    if not flags or not all(flags):
        return None
    return in_eval[0][0] if in_eval else 0


def before_training(dropouts: tuple[str, ...]) -> Finding:
    """A finding of the pre-flight check: operations that drop in evaluation mode."""
    return Finding(
        "train-mode-evaluation",
        "warning",
        "in evaluation mode the model still drops: two passes over one batch differ "
        f"({some(dropouts, 'operation')}).",
        "Write F.dropout(x, p, training=self.training), or use nn.Dropout.",
        sites=dropouts,
        evidence={"operations that drop in evaluation": Evidence(len(dropouts), 1)},
    )


RULE = Rule(
    "train-mode-evaluation",
    Cause.LOOP,
    look,
    reads=(
        "info.totals",
        "module.activation",
        "module.calls",
        "module.modes",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
