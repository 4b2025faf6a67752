"""Batch norm or dropout is in eval mode while the model trains.

Cause: `model.eval()` was called for an evaluation, and `model.train()` was not called again.
Evidence: the `training` flag of these modules at calls with gradient, over most of the steps since
it changed.
Fix: call `model.train()` at the start of each epoch.
Silent: where the module's parameters are frozen (a backbone kept in eval mode on purpose), where
that was a first stage and the module trains ever since, for
dropout in a model of which other such modules train, and for norms that alone are in eval mode
while the layers around them train.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.phrases import some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.layers import mode_changes


class Thresholds(NamedTuple):
    """What may be changed."""

    share: float = 0.3  # of the training steps


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding, with every module that is in the wrong mode."""
    moving = [module for module in history.modules if module.fact("activation") in MODAL]
    trained = {
        parameter.address
        for parameter in history.parameters
        if parameter.fact("groups") and parameter.fact("requires_grad") is not False
    }
    wrong: list[tuple[SiteFacts, int]] = []
    right = 0
    for module in moving:
        since, steps = _eval_steps(module, history.steps)
        if steps >= limit.share * history.steps and history.steps > 3:
            wrong.append((module, since))
        else:
            right += bool(module.fact("modes"))
    # A norm whose weights nobody trains is frozen on purpose, and so is a dropout beside it.
    norms = [(m, since) for m, since in wrong if m.fact("activation") == "norm"]
    frozen = bool(norms) and not any(set(m.fact("parameters", [])) & trained for m, _ in norms)
    if not wrong or frozen or (right and not norms) or _set_by_themselves(history, limit):
        return
    sites = tuple(module.address for module, _ in wrong)
    first = min(since for _, since in wrong)
    kinds = sorted({module.kind for module, _ in wrong})
    yield Finding(
        "eval-mode-training",
        "error",
        f"{some(sites, 'module')} ({', '.join(kinds)}) trained in eval mode from step {first} on: "
        "batch norm uses stale statistics and dropout drops nothing.",
        "Call model.train() at the start of each epoch, after every evaluation.",
        sites=sites,
        first_step=first,
        last_step=history.steps - 1,
        evidence={
            "share of training steps in eval mode": Evidence(
                max(_eval_steps(m, history.steps)[1] for m, _ in wrong) / max(1, history.steps),
                limit.share,
            )
        },
    )


def _set_by_themselves(history: History, limit: Thresholds) -> bool:
    """Whether all other layers train: somebody has put norms alone into eval mode, and meant it."""
    others = [
        module
        for module in history.modules
        if module.fact("leaf") and module.fact("modes") and module.fact("activation") not in MODAL
    ]
    steps = history.steps
    return bool(others) and not any(
        _eval_steps(module, steps)[1] >= limit.share * steps for module in others
    )


KEPT = 16
"""Changes of a module's mode that a run keeps."""

MODAL = ("norm", "dropout")
"""Kinds of modules that do something else in eval mode."""


def _eval_steps(module: SiteFacts, steps: int) -> tuple[int, int]:
    """Since when, and for how many steps, a module trained in eval mode."""
    changes = mode_changes(module, "train")
    if [training for _, training in changes] == [False, True] and changes[1][0] <= steps // 2:
        return 0, 0  # a first stage, with a backbone that was frozen: it trains since
    # So many changes are kept and no more: what came after the last of them is not known.
    end = steps if len(module.fact("modes", [])) < KEPT else 0
    ends = [step for step, _ in changes[1:]] + [end] * bool(changes)
    stretches = [
        (step, max(0, end - step))
        for (step, training), end in zip(changes, ends, strict=True)
        if not training
    ]
    if not stretches:
        return 0, 0
    return stretches[0][0], sum(length for _, length in stretches)


RULE = Rule(
    "eval-mode-training",
    Cause.LOOP,
    look,
    reads=(
        "module.activation",
        "module.leaf",
        "module.modes",
        "module.parameters",
        "parameter.groups",
        "parameter.requires_grad",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
