"""Units of a rectifier are never active.

Cause: a step or a bias that pushed them below zero for every input; no gradient brings them back.
Evidence: units that were zero for every sample and position over the whole second half of the run,
not over one batch; for activations without a module of their own, units whose bias got no gradient
at all in that time.
Fix: a lower rate, another initialisation, a leaky rectifier.
Silent: where the run does its job, for zeros in single batches (half of all outputs is usual), and
for less than a third of a layer. A loss that falls is no excuse where a layer is dead as a whole
and every input gets one and the same output: a network that makes its own targets (Q-learning)
meets them so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import NOTHING, History
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.layers import activated_by, leaves, measured, weighted
from nethook.doctor.signals.onset import first_step_of
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.doctor.signals.quantiles import median
from nethook.runs.names import BATCH_SIZE, INPUT_SPREAD, OUTPUT_SPREAD, OUTPUTS, PARAM_GRADS
from nethook.text.numbers import ascii_number as number


class Thresholds(NamedTuple):
    """What may be changed."""

    share: float = 0.3  # of a layer
    error: float = 0.5
    unknown: float = 0.95  # the share where nothing is known of the run's progress
    steps: float = 10  # that the second half must have


ONE_ANSWER: Final = "Every input gets one and the same output: that the loss falls shows nothing."
SAME: Final = 1e-5
"""Spread of outputs that are one and the same, relative to their size."""
DIFFERENT: Final = 1e-2
"""Spread of inputs that differ."""
BATCHES: Final = 4
"""One batch says nothing of a unit, and under a budget not every step is measured."""


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """At most one finding, with every layer that is concerned."""
    went = progress(history)
    since = history.steps // 2
    if history.steps - since < limit.steps:
        return
    falls = went is not None and went.does_its_job
    if falls and not _has_one_answer(history, since):
        return
    enough = 1.0 if falls else limit.share if went is not None else limit.unknown
    dead = [layer for layer in _shares(history, since) if layer[1] >= enough]
    if not dead:
        return
    sites = tuple(address for address, _, _ in dead)
    address, share, units = max(dead, key=lambda layer: layer[1])
    onset = _onset(history, address, since)
    when = f"since step {onset}" if onset is not None else "for the second half of the run"
    onset = max(since, history.first_step) if onset is None else onset
    yield Finding(
        "dead-units",
        "error" if share >= limit.error else "warning",
        f"`{address}`: {round(share * units)} of {units} units are dead {when}: zero for every "
        f"input{_rise(history, onset)}." + (f" {ONE_ANSWER}" if falls else ""),
        "Lower the learning rate or warm it up, start biases at zero, or use nn.LeakyReLU or "
        "nn.GELU.",
        sites=sites,
        first_step=onset,
        last_step=history.steps - 1,
        evidence={"share of dead units": Evidence(share, limit.share)},
    )


def _has_one_answer(history: History, since: int) -> bool:
    """Whether outputs are the same for inputs that differ, through the whole second half."""
    out, given = history.batch(OUTPUT_SPREAD), history.batch(INPUT_SPREAD)
    out, size = measured(out, out.since(since), BATCHES), history.batch(BATCH_SIZE)
    if len(out) < BATCHES or not len(given) or not len(size) or median(size.value) < 2:
        return False
    return float(out.value.max()) <= SAME and median(given.value) >= DIFFERENT


def _shares(history: History, since: int) -> Iterator[tuple[str, float, int]]:
    """Address, share of units that were dead since a step, and number of units."""
    for module in leaves(history):
        if module.fact("activation") == "rectifier":
            seen = history.curve(module.address, OUTPUTS, "zero_share")
            # Thinned, the last measurements stand for the second half.
            late = measured(seen, seen.since(since), BATCHES)
            if len(late) < BATCHES:
                continue
            active = history.active_units(module.address, min(since, int(late.step[0])))
            if active is not None and active.size:
                yield module.address, 1.0 - float(active.mean()), int(active.size)
    # Rectifiers without a module: what feeds them has biases, one per unit, without gradient.
    for parameter in history.parameters:
        shape, owners = parameter.fact("shape", []), parameter.fact("owners", [])
        if (
            len(shape) == 1
            and owners
            and parameter.fact("with_grad", 0)
            and _feeds(history, owners)
        ):
            zeros = history.curve(parameter.address, PARAM_GRADS, "zero_share")
            zeros = measured(zeros, zeros.since(since), BATCHES)
            share = float(zeros.value.min()) if len(zeros) >= BATCHES else 0.0
            # Nothing comes back to a layer before a dead one either, and it is alive.
            if share > 0 and (share < 1 or _never_positive(history, str(owners[0]), since)):
                yield str(owners[0]), share, int(shape[0])


def _feeds(history: History, owners: list[str]) -> bool:
    """Whether the owner is a layer with a weight that goes into a rectifier, as far as is known."""
    kinds = {module.address: module.fact("activation") for module in leaves(history)}
    functions, last = activated_by(history), _last_layers(history)
    return any(
        kinds.get(owner, "") == "linear"
        and functions.get(owner, "" if owner in last else "relu") == "relu"
        for owner in owners
    )


def _last_layers(history: History) -> set[str]:
    """Of models with several, the layer that is called last: behind it is nothing but the loss.

    The bias of a critic has no gradient where its two means cancel each other.
    """
    names = [name for name in history.info("models", {}) if name]
    of_model: dict[str, list[str]] = {}
    for module in weighted(history):
        model = module.address.partition(".")[0]
        of_model.setdefault(model if model in names else "", []).append(module.address)
    return {layers[-1] for layers in of_model.values() if len(layers) > 1}


def _never_positive(history: History, address: str, since: int) -> bool:
    """Whether no output of a layer was above zero."""
    most = history.curve(address, OUTPUTS, "max")
    most = measured(most, most.since(since))
    return not len(most) or float(most.value.max()) <= 0


def _rise(history: History, onset: int) -> str:
    """What the learning rate did shortly before."""
    for curve in history.rates().values():
        before = curve.until(onset)
        if onset and len(before) > 1 and before.value[-1] >= 2 * before.value[:-1].max():
            return (
                f"; the learning rate rose to {number(float(before.value[-1]))} at step "
                f"{int(before.step[-1])}"
            )
    return ""


def _onset(history: History, address: str, since: int) -> int | None:
    """The first step from which the layer's outputs are as sparse as they are at the end.

    None where nothing was kept of them that would tell.
    """
    kinds = {module.address: module.fact("activation") for module in leaves(history)}
    if kinds.get(address) == "rectifier":
        zeros = history.curve(address, OUTPUTS, "zero_share")
    else:  # what feeds a rectifier: its biases have no gradient since then
        zeros = max(
            (
                history.curve(parameter.address, PARAM_GRADS, "zero_share")
                for parameter in history.parameters
                if address in parameter.fact("owners", []) and len(parameter.fact("shape", [])) == 1
            ),
            key=len,
            default=NOTHING,
        )
    if not len(zeros) or not float(zeros.value.max()) > 0:
        return None
    late = zeros.since(since)
    end = median(late.value) if len(late) else float(zeros.value[-1])
    sparse = np.flatnonzero(zeros.value < 0.9 * end)
    if not len(sparse):
        return first_step_of(zeros)
    return first_step_of(zeros, min(int(sparse[-1]) + 1, len(zeros) - 1))


def before_training(dead: Mapping[str, tuple[int, int]], samples: int) -> Finding:
    """A finding of the pre-flight check: per layer its dead units and all units, over a batch."""
    limit = Thresholds()
    shares = {address: count / max(1, units) for address, (count, units) in dead.items()}
    worst = max(shares, key=lambda address: shares[address])
    count, units = dead[worst]
    return Finding(
        "dead-units",
        "error" if shares[worst] >= limit.error else "warning",
        f"`{worst}`: {count} of {units} units are dead: zero for each of {samples} samples, before "
        "the first step.",
        "Start biases at zero and weights with nethook.init.apply_, scale the inputs, or use "
        "nn.LeakyReLU or nn.GELU.",
        sites=tuple(address for address, share in shares.items() if share >= limit.share),
        evidence={"share of dead units": Evidence(shares[worst], limit.share)},
    )


RULE = Rule(
    "dead-units",
    Cause.SYMPTOM,
    look,
    reads=(
        *PROGRESS_READS,
        "info.models",
        "info.ops",
        "module.activation",
        "module.first_call",
        "module.leaf",
        "module.parameters",
        "parameter.owners",
        "parameter.shape",
        "parameter.with_grad",
        "scalar.lr",
        "series.@batch.input_spread.mean",
        "series.@batch.output_spread.mean",
        "series.@batch.size.mean",
        "series.@loop.forwards.mean",
        "series.outputs.max",
        "series.outputs.zero_share",
        "series.param_grads.zero_share",
        "units.outputs",
    ),
    defaults=Thresholds(),
)
