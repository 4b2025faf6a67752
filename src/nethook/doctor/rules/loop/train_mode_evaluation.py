"""The model is evaluated with dropout or batch statistics on.

Cause: `model.eval()` is missing before the evaluation, or a layer normalises by its batch whatever
the mode is (`F.batch_norm(..., training=True)`).
Evidence: passes without gradient in which a loss was taken or answers were compared with labels, or
which went over a run of different batches with no step between, while batch norm or dropout was in
training mode; and that in all of them. Or running statistics that were written while the model was
in evaluation mode. Or, as a question, a network that was loaded after the training and called so.
Fix: call `model.eval()` before, `model.train()` after; pass `training=self.training`.
Silent: for passes over one batch in which no loss is taken (Monte-Carlo dropout, a momentum
teacher, a GAN's generator pass), and for models without such modules. A single pass over many
batches is a question where the model was never in evaluation mode (it may be `update_bn`), and
nothing is said of it where the model was; where its samples come one by one, or a loss was taken of
it, it is an evaluation. It is a question, too, where the layers beside each of them were in
evaluation mode: it was put back by itself, to adapt a norm to new data or to sample with dropout.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History, SiteFacts
from nethook.doctor.phrases import one_or_many, some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.rules.loop.eval_mode_training import MODAL
from nethook.doctor.signals.layers import leaves, mode_changes
from nethook.runs.names import EQUAL


class Thresholds(NamedTuple):
    """What may be changed."""

    passes: float = 2  # evaluations


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding."""
    totals = history.info("totals", {})
    passes = [len(curve) for curve in history.losses("eval")]
    passes.append(int(totals.get("evaluations", 0)) if isinstance(totals, dict) else 0)
    evaluations = max(passes)
    written = history.info("written_in_evaluation", {})
    if isinstance(written, dict) and written.get("buffers"):
        yield _writes(
            history, list(written["buffers"]), int(written.get("step") or history.first_step)
        )
        return
    loaded = [one for one in history.info("loaded_twins", []) if isinstance(one, dict)]
    if loaded and not evaluations:
        yield _of_loaded(history, loaded[0])
    singles = history.info("single_samples")
    once = evaluations < limit.passes and singles is None
    if not evaluations:
        return
    wrong = [
        (module, since)
        for module in history.modules
        if module.fact("activation") in MODAL
        and (since := _in_training_mode(history, module)) is not None
    ]
    if not wrong:
        return
    sites = tuple(module.address for module, _ in wrong)
    kinds = {module.fact("activation") for module, _ in wrong}
    if once and "norm" not in kinds:
        return  # dropout that is asked once may be asked on purpose
    scored = any(record.fact("kind") == EQUAL for record in history.records("eval"))
    asked = once and not scored and not any(len(curve) for curve in history.losses("eval"))
    alone = _put_back(history, sites)
    count = "one evaluation" if evaluations == 1 else f"{evaluations} evaluations"
    what = " and ".join(text for kind, text in _EFFECTS.items() if kind in kinds)
    yield Finding(
        "train-mode-evaluation",
        "info" if asked or alone else "warning",
        f"{count} ran with {some(sites, 'module')} in training mode: {what}."
        + (_ALONE if alone else _ASKED if asked else ""),
        "Call model.eval() before an evaluation and model.train() after it.",
        sites=sites,
        first_step=int(min(step for _, step in wrong)),
        last_step=history.steps - 1,
        evidence={"evaluations in training mode": Evidence(evaluations, limit.passes)},
    )


def _of_loaded(history: History, loaded: dict[str, Any]) -> Finding:
    """A network that was loaded after the training is asked as its constructor made it."""
    layers = tuple(map(str, loaded.get("layers") or ()))
    last = max(history.steps - 1, history.first_step)
    return Finding(
        "train-mode-evaluation",
        "info",
        "after the training, weights were loaded into another network of the same kind, and it was "
        f"called with {some(layers, 'module')} in training mode: dropout drops, and batch norm "
        "judges each sample by its batch. Is that meant?",
        "Call model.eval() after model.load_state_dict(...), before it is asked.",
        sites=layers,
        first_step=last,
        last_step=last,
        evidence={"layers in training mode": Evidence(len(layers), 1)},
    )


def _writes(history: History, written: list[str], step: int) -> Finding:
    layers = tuple(dict.fromkeys(name.rpartition(".")[0] or name for name in written))
    return Finding(
        "train-mode-evaluation",
        "warning",
        f"in evaluation mode {some(layers, 'layer')} {one_or_many(layers, 'has', 'have')} written "
        f"running statistics ({some(written, 'buffer')}): what the model says of a sample depends "
        "on the others in its batch.",
        "Give the norm the mode of its module: F.batch_norm(..., training=self.training).",
        sites=layers,
        first_step=min(step, max(0, history.steps - 1)),
        last_step=history.steps - 1,
        evidence={"statistics written in evaluation mode": Evidence(len(written), 0)},
    )


_EFFECTS = {
    "dropout": "dropout makes what they say of the model noisy and too bad",
    "norm": "batch norm judges each sample by its batch, and learns from the test data",
}


_ASKED = " Is that meant, to bring its statistics up to date?"
_ALONE = " The layers beside were in evaluation mode: is that meant?"


def _put_back(history: History, sites: tuple[str, ...]) -> bool:
    """Whether each of these layers lies beside one that is evaluated in evaluation mode."""
    calm = {
        module.address.rpartition(".")[0]
        for module in leaves(history)
        if (changes := mode_changes(module, "eval")) and not any(flag for _, flag in changes)
    }
    return all(site.rpartition(".")[0] in calm for site in sites)


def _in_training_mode(history: History, module: SiteFacts) -> int | None:
    """Since when a module is evaluated in training mode; None where it is not."""
    calls = module.fact("calls", {})
    if not (isinstance(calls, dict) and calls.get("eval")):
        return None
    in_eval = mode_changes(module, "eval")
    flags = [training for _, training in in_eval or mode_changes(module, "train")]
    if not flags or not all(flags):
        return None
    return in_eval[0][0] if in_eval else history.first_step


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
        "info.loaded_twins",
        "info.single_samples",
        "info.totals",
        "info.written_in_evaluation",
        "loss.kind",
        "module.activation",
        "module.calls",
        "module.first_call",
        "module.leaf",
        "module.modes",
        "series.@loop.forwards.mean",
        "series.@loss.loss.mean",
    ),
    defaults=Thresholds(),
)
