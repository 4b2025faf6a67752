"""The names of what a watched run has in its file; `docs/run-file.md` explains each.

`watching` writes them; the doctor, the figures and the command line read them. They stand here, so
that a reader needs nothing but the file.

    run.series("conv1", OUTPUTS)["std"]
    run.series(LOOP, GRAD_NORM)["mean"]
    run.series(loss_address("train.py:42"), LOSS, phase="eval")["mean"]
"""

from __future__ import annotations

from typing import Final

# -- series: (address, quantity) ------------------------------------------------------------------

# Of leaf modules, and of the model as a whole (address "", or its name where there are several).
OUTPUTS: Final = "outputs"
"""What the module returned: all tensors of all its calls."""
GRADS: Final = "grads"
"""The gradient of the loss with respect to `outputs`, without the factor of a loss scaler."""
INPUTS: Final = "inputs"
"""Of the model as a whole: the first tensor of its arguments; others are `inputs:1` and so on."""

# Of parameters (address as in `model.named_parameters()`).
PARAMS: Final = "params"
"""The parameter as the step found it, before the update."""
PARAM_GRADS: Final = "param_grads"
"""Its gradient as the optimizer uses it: summed over micro-batches, unscaled, clipped."""
UNCLIPPED: Final = "unclipped_grads"
"""The same before clipping; only in steps in which something was clipped."""
UPDATES: Final = "updates"
"""What the step added to it: the difference, so momentum and decay are in it."""
UPDATE_COSINE: Final = "update_cosine"
"""One number per step: the cosine of its update with the one before, from up to 64 coordinates."""
SECOND_MOMENT: Final = "second_moment"
"""What Adam and its like keep of the squared gradient, at these coordinates."""
PART: Final = "part"
"""In the `info` of these series, in a run of several ranks: `[index, parts]`, what the rank holds.

`[0, 1]` is all of it: the same on every rank.
"""

# Numbers of the loop as a whole: one number per step, so `mean`, `min`, `max` are over steps.
LOOP: Final = "@loop"
"""The address of numbers of the loop. No site's address begins with "@"."""
FORWARDS: Final = "forwards"
"""Outermost calls of the model in training."""
BACKWARDS: Final = "backwards"
"""Backward passes: more than one where gradients are accumulated."""
OPTIMIZER_STEPS: Final = "optimizer_steps"
"""Calls of `optimizer.step`, of all optimizers."""
SKIPPED_STEPS: Final = "skipped_steps"
"""Steps that a loss scaler left out because gradients were not finite."""
ZERO_GRADS: Final = "zero_grads"
"""Times that gradients were cleared, by `zero_grad` or otherwise."""
OLD_GRADIENTS: Final = "old_gradients"
"""Backward passes that began on top of gradients which a step had used already."""
WIPED: Final = "wiped_backwards"
"""Backward passes whose gradients were cleared before a step could use them."""
EMPTY_GRADIENTS: Final = "empty_gradients"
"""Share of the optimizers' parameters without a gradient, or with zeros alone, at the step."""
CLIPS: Final = "clips"
"""Calls of `clip_grad_norm_` and `clip_grad_value_`."""
SCALED_CLIPS: Final = "scaled_clips"
"""Those that clipped gradients which still had the factor of a loss scaler."""
UNSCALES: Final = "unscales"
"""Calls of `GradScaler.unscale_` from the loop itself."""
SCHEDULES: Final = "schedules"
"""Calls of `step` of a learning-rate scheduler."""
GRAD_NORM: Final = "grad_norm"
"""Norm of all gradients as the optimizers use them."""
GRAD_NORM_UNCLIPPED: Final = "grad_norm_unclipped"
"""The same before clipping."""
CLIP_LIMIT: Final = "clip_limit"
"""What was clipped to: `max_norm` or `clip_value`."""
UPDATE_RATIO: Final = "update_ratio"
"""Norm of all updates by norm of all parameters."""
LOSS_SCALE: Final = "loss_scale"
"""The factor of the loss scaler."""
STEP_SECONDS: Final = "step_seconds"
"""From the end of one step to the end of the next."""
WATCH_SECONDS: Final = "watch_seconds"
"""The part of it that nethook took on the training thread."""

# Numbers of batches, one per training step (of the first of its micro-batches).
BATCH: Final = "@batch"
"""The address of numbers of batches; with several models `@batch:NAME`."""
BATCH_SIZE: Final = "size"
"""Length of the first dimension of the first tensor."""
INPUT_SPREAD: Final = "input_spread"
"""Spread between samples of the inputs, relative to their size: 0 where all samples are equal."""
OUTPUT_SPREAD: Final = "output_spread"
"""The same of the model's output."""
INPUT_DISTINCT: Final = "input_distinct"
"""Different values among up to 4,096 elements of the first input."""
REPEATED: Final = "repeated"
"""1 where the batch is the same as the one before, else 0."""

# Of losses.
LOSS: Final = "loss"
"""The value of a loss, without the factor of a loss scaler: one number per backward pass."""


def loss_address(name: str) -> str:
    """The address of the series of a loss; its name is where it was made, `train.py:42`."""
    return f"@loss:{name}"


def batch_address(model: str) -> str:
    """The address of numbers of the batches of a model; "" where there is one."""
    return f"{BATCH}:{model}" if model else BATCH


PER_ELEMENT: Final = (OUTPUTS, GRADS, INPUTS, PARAMS, PARAM_GRADS, UNCLIPPED, UPDATES)
"""Quantities that summarise tensors; all others have one number (or a small sample) per step."""

# -- scalars --------------------------------------------------------------------------------------

# `loss:NAME`, `grad_norm` and `update_ratio` keep the last 100,000 steps one by one, and of what is
# older min, max and mean; those below are kept for the whole run, one point per change.
KEPT_STEPS: Final = 100_000
"""Steps of which loss, gradient norm and update ratio are kept one by one."""
KEPT_FINGERPRINTS: Final = 4096
"""Steps of which the fingerprint of the batch is kept."""
FINGERPRINT: Final = "batch_fingerprint"
"""A number that equal batches share; of the last 4,096 steps."""
PARAMS_FINGERPRINT: Final = "params_fingerprint"
"""A number that equal parameters share; at steps 0, 1, 2, 4, 8, … of every rank."""


def lr_name(optimizer: str, group: int) -> str:
    """The scalar of a learning rate, one point per change: `lr:0.1` is group 1 of optimizer "0"."""
    return f"lr:{optimizer}.{group}"


def fingerprint_name(index: int, parts: int) -> str:
    """The scalar of the fingerprint of parameters; of those that are spread, one for each part."""
    return PARAMS_FINGERPRINT if parts == 1 else f"{PARAMS_FINGERPRINT}:{index}of{parts}"


def loss_name(name: str, phase: str = "train") -> str:
    """The scalar of a loss: one point per step, or per evaluation pass."""
    return f"{'' if phase == 'train' else f'{phase}_'}loss:{name}"


def score_name(name: str) -> str:
    """The scalar of a score: the share of right answers of each evaluation."""
    return f"{_SCORE}{name}"


_SCORE: Final = "accuracy:"
EQUAL: Final = "equal"
"""The kind of a record of answers that were compared with labels."""

_LOSSES: Final = {phase: loss_name("", phase) for phase in ("train", "eval")}


def loss_of_scalar(scalar: str) -> tuple[str, str] | None:
    """The name of a loss and its phase, from the scalar of it; None where it is another one."""
    for phase, prefix in _LOSSES.items():
        if scalar.startswith(prefix):
            return scalar.removeprefix(prefix), phase
    return None


OLDER: Final = "older:"
"""What the names of buckets begin with: min, max and mean of points that are no longer kept."""


def older_name(scalar: str) -> str:
    """The name of the buckets of a scalar; "" where older points are not kept at all."""
    kept = scalar in _NORMS or loss_of_scalar(scalar) is not None
    return f"{OLDER}{scalar}" if kept else ""


TRAINER: Final = "trainer/"
"""What the names of a trainer's own numbers begin with: some are names of nethook's as well."""

_NORMS: Final = (GRAD_NORM, GRAD_NORM_UNCLIPPED, UPDATE_RATIO)


def is_own_scalar(name: str) -> bool:
    """Whether watching writes a scalar by this name; all others are the script's own."""
    prefixes = (*_LOSSES.values(), "lr:", FINGERPRINT, PARAMS_FINGERPRINT, OLDER)
    return name in _NORMS or name.startswith(prefixes)


# -- events ---------------------------------------------------------------------------------------

MADE_BY_OPTIMIZER: Final = "made by the optimizer from finite gradients"
"""The reason of a non-finite number where the step itself made it."""
ORDER: Final = "order"
"""The order of the loop's calls, at the first step and whenever it changes."""
MODE: Final = "mode"
"""`training` of modules changed between two passes of one phase."""
GROUPS: Final = "groups"
"""Settings of an optimizer, other than its learning rates, at the start and on change."""
PARAMETERS: Final = "parameters"
"""`requires_grad` or membership in an optimizer changed, or parameters are other tensors now."""
MODEL_CHANGED: Final = "model-changed"
"""Modules of the model were replaced by others, which are not watched."""
THREAD: Final = "thread"
"""Another thread than the watch's own called the model: it is followed from here on, or is not."""
STEP_SKIPPED: Final = "step-skipped"
"""A loss scaler left a step out."""
SCALE_CHANGED: Final = "loss-scale"
"""The loss scale changed."""
CLOCK: Final = "clock"
"""What counts as a step: an optimizer's step, a backward pass, or a call of the model."""
THINNED: Final = "thinned"
"""To keep its budget nethook now measures less, or more again."""
FAILED: Final = "watch-failed"
"""Something in nethook failed; that part of watching is off, and training goes on."""
CLOSED: Final = "watch-closed"
"""Watching ended: what was seen, and what it cost."""
INTERRUPTED: Final = "interrupted"
"""An exception, caught by the script or not, cut a call of the loop short."""
NON_FINITE: Final = "non-finite"
"""The first NaN or infinity, and what made it."""
WIPED_PASSES: Final = "wiped-passes"
"""What was seen of a few steps in which gradients of a backward pass were cleared before the step:
whether these were lost, or used in some other way."""

RESUMED: Final = "resumed"
"""The run went on: when it had stopped, with which step it goes on, and what has changed."""

SINK_FAILED: Final = "sink-failed"
"""A tracker refused what it was sent: it gets nothing more, and the run goes on."""

EVENTS: Final = (
    ORDER, MODE, GROUPS, PARAMETERS, MODEL_CHANGED, THREAD, STEP_SKIPPED, SCALE_CHANGED, CLOCK,
    THINNED, FAILED, INTERRUPTED, CLOSED, NON_FINITE, WIPED_PASSES, RESUMED, SINK_FAILED,
)  # fmt: skip
"""Every kind of event that watching writes."""

# What may stand in the order of a step's calls.
CALLS: Final = (
    "forward", "loss", "backward", "zero_grad", "unscale", "clip", "step", "skipped-step", "update",
    "schedule", "evaluation",
)  # fmt: skip
"""`update` is `GradScaler.update`; `evaluation` a pass without gradient."""
