"""A line of the script does nothing: a call that comes too late, or a switch that torch has not.

Cause: gradients are clipped after the step that used them, or after they were cleared. Or an
attribute was misspelt, `parameter.require_grad = False`, or set on a module, which has no such
switch: `model.features.requires_grad = False`. Python makes a new attribute of it. Or the best
weights were kept as `model.state_dict()`, which is no copy: they are those of now. Or
`load_state_dict(state, strict=False)` finds no name that fits: those of the state begin with
"module." or "model.". Or a target network is given its own state instead of the other's. Or a
scheduler of the learning rate was made, and its `step` is never called. Or weights are loaded, and
an initialisation of all parameters comes after it.
Evidence: the order of the loop's calls: at no clipping there are gradients of a backward pass that
a step is still to use. Of an attribute: it is there, its name is one slip away from a switch of
torch's, and the switch itself says the opposite. Of a load: every tensor of the state is the
model's own, in the same memory, and was written many times since the state was taken; or was taken
for the call, several times, and the weights have never changed between. Of names: torch itself
says that every parameter of a model that is trained is missing, and that names were left over; no
later load has filled it. Of a scheduler: the optimizer has the `initial_lr` that it sets, no call
of `step` was seen, and the rate is the same from the first step to the last; a warning where that
is not the rate that was asked for, as in a warm-up that never begins.
Fix: the call goes between `backward` and `step`; write the name that torch knows: `requires_grad`,
or `module.requires_grad_(False)`; keep `copy.deepcopy(model.state_dict())`; take the beginning off
the names of a state, and look at what `load_state_dict` returns.
Silent: where one order of the loop has the call in the right place, where another optimizer steps
after it, and where gradients are not cleared before the next pass, which then adds to the clipped
ones; where a part of the names fits, or nothing was left over (a head, an adapter); where a module
is given its own state and is trained as well, or changed by other code; where the switch has the
same value, for attributes that a class sets itself, and for names that are further away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nethook.doctor.finding import Evidence, Finding
from nethook.doctor.history import History
from nethook.doctor.phrases import call_lines, some
from nethook.doctor.rule import Cause, Rule
from nethook.doctor.signals.graph import graph_of
from nethook.doctor.signals.progress import PROGRESS_READS, progress
from nethook.runs.names import CLIPS, GROUPS, OPTIMIZER_STEPS, ORDER, SCHEDULES
from nethook.text.numbers import ascii_number

_STEPS = ("step", "skipped-step")


class Thresholds(NamedTuple):
    """What may be changed."""

    clips: float = 3  # clippings: one may be a probe
    attributes: float = 1  # that mean nothing
    writes: float = 8  # to the weights between taking a state and loading it
    loads: float = 3  # of its own state into a module
    unscheduled: float = 100  # steps of an optimizer whose scheduler makes none


def look(history: History, limit: Thresholds) -> Iterator[Finding]:
    """The findings of every kind of such a line."""
    yield from _clipping(history, limit)
    yield from _scheduler(history, limit)
    for attribute in graph_of(history).attributes:
        if int(attribute.get("count", 0)) >= limit.attributes:
            yield _attribute(attribute, history, limit)
    for load in graph_of(history).loads:
        if int(load.get("writes", 0)) > limit.writes:
            yield _load(load, history, limit)
    for load in graph_of(history).same_loads:
        if int(load.get("times", 0)) >= limit.loads:
            yield _same_load(load, history, limit)
    for load in graph_of(history).unmatched_loads:
        yield _unmatched(load, history)
    for load in graph_of(history).lost_loads:
        yield _lost(load, history)


def _clipping(history: History, limit: Thresholds) -> Iterator[Finding]:
    """Gradients that are clipped too late."""
    orders = [(event.step, [*map(str, event.data.get("calls") or [])])
              for event in history.events(ORDER)]  # fmt: skip
    clipping = [
        (step, calls)
        for step, calls in orders
        if "clip" in calls and "backward" in calls and any(call in _STEPS for call in calls)
    ]
    clips = history.loop(CLIPS)
    # What came before the watch did is missing in the first of them.
    judged = clipping[1:] or clipping
    if clips.total < limit.clips or not judged:
        return
    if not all(clips_too_late(calls) for _, calls in judged):
        return
    went = progress(history)
    ill = went is not None and not went.does_its_job
    first = int(clips.where(clips.value > 0).step[0])
    yield Finding(
        "call-without-effect",
        "error" if ill else "warning",
        f"gradients were clipped {clips.total:.0f} times, each time after the step that used them "
        "or after they were cleared: no step has ever used a clipped gradient.",
        "Call torch.nn.utils.clip_grad_norm_ between loss.backward() and optimizer.step().",
        first_step=first,
        last_step=history.steps - 1,
        evidence={
            "clippings": Evidence(clips.total, limit.clips),
            "clippings that a step has used": Evidence(0, 1),
        },
        lines=call_lines(history, "clip"),
    )


def clips_too_late(calls: Sequence[str]) -> bool:
    """Whether in this order, which repeats itself, no clipping is of use."""
    fresh = cleared = False  # whether gradients are there that no step has used; or none at all
    for place, call in enumerate(calls):
        if call == "backward":
            fresh, cleared = True, False
        elif call in _STEPS:
            fresh = False
        elif call == "zero_grad":
            fresh, cleared = False, True
        elif call == "clip":
            # Up to the next pass: another optimizer may step on them, or nobody clears them.
            after = [*calls[place + 1 :], *calls]
            until = after[: after.index("backward")]
            if fresh or any(step in until for step in _STEPS):
                return False
            if not (cleared or "zero_grad" in until):
                return False
    return True


def _attribute(attribute: Mapping[str, Any], history: History, limit: Thresholds) -> Finding:
    name, meant = str(attribute.get("name", "")), str(attribute.get("meant", ""))
    count, value = int(attribute.get("count", 0)), bool(attribute.get("value"))
    kind = str(attribute.get("of", "parameter"))
    sites = tuple(str(site) or "the model" for site in attribute.get("sites") or ())
    if meant.endswith("()"):
        said = f"a module has no switch of that name, and its parameters go on with {not value}"
        fix = f"Write module.{meant[:-2]}({value})."
    else:
        said = f"torch knows `{meant}`, which is still {not value}"
        fix = f"Write {kind}.{meant} = {value}."
    line = str(attribute.get("line", ""))
    since = int(attribute.get("since", history.first_step))
    return Finding(
        "call-without-effect",
        "warning",
        f"`{name} = {value}` was set on {some(sites, kind)}, and does nothing: {said}.",
        fix,
        sites=tuple(site for site in sites if site != "the model"),
        first_step=since,
        last_step=max(history.steps - 1, since),
        evidence={"attributes that mean nothing": Evidence(count, limit.attributes)},
        lines=(line,) if line else (),
    )


def _scheduler(history: History, limit: Thresholds) -> Iterator[Finding]:
    """A scheduler whose `step` is never called."""
    steps = history.loop(OPTIMIZER_STEPS).total
    # A run that was cut off may have ended before its first epoch did.
    if steps < limit.unscheduled or history.loop(SCHEDULES).total or history.info("ended"):
        return
    asked = {
        f"{event.data.get('optimizer')}.{place}": float(group["initial_lr"])
        for event in history.events(GROUPS)
        for place, group in enumerate(event.data.get("groups") or ())
        if isinstance(group, Mapping) and isinstance(group.get("initial_lr"), int | float)
    }
    rates = {name: curve for name, curve in history.rates().items() if name in asked and len(curve)}
    if not rates or any(np.ptp(curve.value) > 0 for curve in rates.values()):
        return
    name, curve = min(
        rates.items(), key=lambda item: float(item[1].value[0]) / (asked[item[0]] or 1)
    )
    rate, wanted = float(curve.value[0]), asked[name]
    other = abs(rate - wanted) > 1e-6 * abs(wanted)
    yield Finding(
        "call-without-effect",
        "warning" if other else "info",
        f"a scheduler was made for the optimizer, and its step() was never called in {steps:.0f} "
        f"steps: the learning rate has stayed at {ascii_number(rate)}"
        + (f", and the optimizer was made with {ascii_number(wanted)}." if other else "."),
        "Call scheduler.step() after optimizer.step(), or once per epoch, as the schedule counts.",
        first_step=history.first_step,
        last_step=max(history.steps - 1, 0),
        evidence={
            "steps without one of the scheduler": Evidence(steps, limit.unscheduled),
            "learning rate": Evidence(rate),
        },
    )


def _load(load: Mapping[str, Any], history: History, limit: Thresholds) -> Finding:
    writes, line = int(load.get("writes", 0)), str(load.get("line", ""))
    return Finding(
        "call-without-effect",
        "warning",
        f"load_state_dict{f' ({line})' if line else ''} loads the model's own tensors into it: the "
        f"state was taken {writes} updates before, by reference, and has changed with every one of "
        "them. The weights stay those of the last step.",
        "Keep a copy of the weights: copy.deepcopy(model.state_dict()), or write them to a file "
        "with torch.save.",
        first_step=0,
        last_step=max(history.steps - 1, 0),
        evidence={"updates of the weights since": Evidence(writes, limit.writes)},
        lines=(line,) if line else (),
    )


def _same_load(load: Mapping[str, Any], history: History, limit: Thresholds) -> Finding:
    times, line = int(load.get("times", 0)), str(load.get("line", ""))
    return Finding(
        "call-without-effect",
        "warning",
        f"load_state_dict{f' ({line})' if line else ''} gave a network its own state {times} "
        "times, and its weights have never changed between: it is what it was at the first one.",
        "Load the state of the network that learns: target.load_state_dict(model.state_dict()).",
        first_step=history.first_step,
        last_step=max(history.steps - 1, history.first_step),
        evidence={"loads of its own state": Evidence(times, limit.loads)},
        lines=(line,) if line else (),
    )


def _unmatched(load: Mapping[str, Any], history: History) -> Finding:
    given, wanted = int(load.get("given", 0)), int(load.get("wanted", 0))
    fits, line = int(load.get("fits", 0)), str(load.get("line", ""))
    prefix = (
        f" Without what they begin with, {fits} of them would fit." if fits > 0.5 * wanted else ""
    )
    return Finding(
        "call-without-effect",
        "warning",
        f"load_state_dict{f' ({line})' if line else ''} has loaded nothing: none of the {given} "
        f"names that it was given (`{load.get('one_given')}`, …) is one of the {wanted} parameters "
        f"of the module (`{load.get('one_wanted')}`, …), and strict=False hides it.{prefix} The "
        "weights stay as they were.",
        "Make the names fit: {name.removeprefix('model.'): tensor for name, tensor in "
        "state.items()}; and leave strict=False out, or look at what load_state_dict returns.",
        first_step=history.first_step,
        last_step=max(history.steps - 1, history.first_step),
        evidence={"parameters that were loaded": Evidence(0, 1), "names given": Evidence(given)},
        lines=(line,) if line else (),
    )


def _lost(load: Mapping[str, Any], history: History) -> Finding:
    weights, line = int(load.get("weights", 0)), str(load.get("line", ""))
    names = tuple(str(name) for name in load.get("names") or ())
    return Finding(
        "call-without-effect",
        "warning",
        f"load_state_dict{f' ({line})' if line else ''} filled {some(names, 'weight')}, and before "
        "the first step every one of them was written over with numbers that have nothing to do "
        "with those: what was loaded is lost.",
        "Initialise first and load afterwards; or initialise the new layers alone.",
        sites=names,
        first_step=history.first_step,
        last_step=max(history.steps - 1, history.first_step),
        evidence={"loaded weights that were replaced": Evidence(weights, 1)},
        lines=(line,) if line else (),
    )


RULE = Rule(
    "call-without-effect",
    Cause.LOOP,
    look,
    reads=(
        *PROGRESS_READS,
        "event.groups",
        "event.order",
        "info.ended",
        "info.graph",
        "scalar.lr",
        "series.@loop.clips.mean",
        "series.@loop.forwards.mean",
        "series.@loop.optimizer_steps.mean",
        "series.@loop.schedules.mean",
    ),
    defaults=Thresholds(),
)
